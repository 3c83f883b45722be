//! A graph as a whole program: host code that allocates, copies and launches, for a C program to call.

use crate::{graph::Graph, lower::Kernel, step::memref};

/// The function `name` of the inputs and the result, in host memory, with all kernels.
pub fn program(graph: &Graph, kernels: &[Kernel], name: &str) -> String {
    let kinds: Vec<String> = graph.shapes.iter().map(|shape| memref(shape)).collect();
    let (inputs, last) = (0..graph.inputs.len(), kinds.len() - 1);
    let parameters = inputs
        .clone()
        .chain([last])
        .map(|value| format!("%h{value}: {}", kinds[value]));
    let parameters = parameters.collect::<Vec<_>>().join(", ");

    let mut text = "module attributes {gpu.container_module} {\n".to_owned();
    for kernel in kernels {
        text += &kernel.code.join("\n");
    }
    text += &format!("func.func @{name}({parameters}) {{\n");
    for (value, kind) in kinds.iter().enumerate() {
        text += &format!("  %d{value} = gpu.alloc () : {kind}\n");
    }
    for value in inputs {
        text += &format!("  gpu.memcpy %d{value}, %h{value} : {0}, {0}\n", kinds[value]);
    }
    for (number, step) in graph.steps.iter().enumerate() {
        let values = step.operands.iter().chain([&step.output]);
        let (values, types): (Vec<_>, Vec<_>) = values
            .map(|value| (format!("%d{value}"), kinds[*value].as_str()))
            .unzip();
        text += &format!(
            "  call @step{number}({}) : ({}) -> ()\n",
            values.join(", "),
            types.join(", ")
        );
    }
    text += &format!("  gpu.memcpy %h{last}, %d{last} : {0}, {0}\n", kinds[last]);
    for (value, kind) in kinds.iter().enumerate() {
        text += &format!("  gpu.dealloc %d{value} : {kind}\n");
    }
    text + "  return\n}\n}\n"
}
