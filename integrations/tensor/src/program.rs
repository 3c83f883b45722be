//! A graph as a whole program: host code that allocates, copies and launches, for a C program to call.

use crate::{graph::Graph, lower::Kernel, step::memref};

/// The function `name` of the inputs and the result, in host memory, with all kernels.
pub fn program(graph: &Graph, kernels: &[Kernel], name: &str) -> String {
    let types: Vec<String> = graph.shapes.iter().map(|shape| memref(shape)).collect();
    let (inputs, result) = (0..graph.inputs.len(), types.len() - 1);
    let parameters = inputs.clone().chain([result]);
    let parameters: Vec<_> = parameters.map(|value| format!("%h{value}: {}", types[value])).collect();

    let mut text = "module attributes {gpu.container_module} {\n".to_owned();
    for kernel in kernels {
        text += &kernel.code.join("\n");
    }
    text += &format!("func.func @{name}({}) {{\n", parameters.join(", "));
    for (value, kind) in types.iter().enumerate() {
        text += &format!("  %d{value} = gpu.alloc () : {kind}\n");
    }
    for value in inputs {
        text += &format!("  gpu.memcpy %d{value}, %h{value} : {0}, {0}\n", types[value]);
    }
    for (number, step) in graph.steps.iter().enumerate() {
        let values = step
            .values()
            .into_iter()
            .map(|value| (format!("%d{value}"), types[value].as_str()));
        let (values, kinds): (Vec<_>, Vec<_>) = values.unzip();
        let (values, kinds) = (values.join(", "), kinds.join(", "));
        text += &format!("  call @step{number}({values}) : ({kinds}) -> ()\n");
    }
    text += &format!("  gpu.memcpy %h{result}, %d{result} : {0}, {0}\n", types[result]);
    for (value, kind) in types.iter().enumerate() {
        text += &format!("  gpu.dealloc %d{value} : {kind}\n");
    }
    text + "  return\n}\n}\n"
}
