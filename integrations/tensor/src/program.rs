//! A graph as a whole program: host code that allocates, copies and launches, for a C program to call.

use std::{error::Error, fmt::Write};

use crate::{
    graph::{Graph, Value},
    lower::Kernel,
};

fn memref(shape: &[usize]) -> String {
    let sizes: String = shape.iter().map(|size| format!("{size}x")).collect();
    format!("memref<{sizes}f16>")
}

/// The function `name` of the inputs and the result, in host memory, with all kernels.
pub fn program(graph: &Graph, kernels: &[Kernel], name: &str) -> Result<String, Box<dyn Error>> {
    let last = graph.len() - 1;
    let mut text = "module attributes {gpu.container_module} {\n".to_owned();
    for kernel in kernels {
        text += &kernel.device;
        text += "\n";
        text += &kernel.host;
    }
    let mut parameters: Vec<Value> = graph.inputs().map(|(value, _)| value).collect();
    parameters.push(last);
    let list: Vec<String> = parameters
        .iter()
        .map(|value| format!("%h{value}: {}", memref(graph.shape(*value))))
        .collect();
    writeln!(text, "func.func @{name}({}) {{", list.join(", "))?;
    let mut made: Vec<Value> = kernels
        .iter()
        .filter_map(|kernel| Some(kernel.parameters.last()?.0))
        .collect();
    made.extend(graph.inputs().map(|(value, _)| value));
    for value in &made {
        writeln!(text, "  %d{value} = gpu.alloc () : {}", memref(graph.shape(*value)))?;
    }
    for (value, _) in graph.inputs() {
        let kind = memref(graph.shape(value));
        writeln!(text, "  gpu.memcpy %d{value}, %h{value} : {kind}, {kind}")?;
    }
    for (number, kernel) in kernels.iter().enumerate() {
        call(&mut text, graph, number, kernel)?;
    }
    let kind = memref(graph.shape(last));
    writeln!(text, "  gpu.memcpy %h{last}, %d{last} : {kind}, {kind}")?;
    for value in &made {
        writeln!(text, "  gpu.dealloc %d{value} : {}", memref(graph.shape(*value)))?;
    }
    Ok(text + "  return\n}\n}\n")
}

/// The call of a step. One on rows sees its values with a dimension more.
fn call(text: &mut String, graph: &Graph, number: usize, kernel: &Kernel) -> Result<(), Box<dyn Error>> {
    let (mut names, mut kinds) = (Vec::new(), Vec::new());
    for (index, (value, seen)) in kernel.parameters.iter().enumerate() {
        let (shape, kind) = (graph.shape(*value), memref(seen));
        let mut name = format!("%d{value}");
        if shape != seen {
            name = format!("%s{number}_{index}");
            let groups = if shape.len() == 1 { "[[0, 1]]" } else { "[[0], [1, 2]]" };
            writeln!(
                text,
                "  {name} = memref.expand_shape %d{value} {groups} output_shape {seen:?} : {} into {kind}",
                memref(shape)
            )?;
        }
        names.push(name);
        kinds.push(kind);
    }
    Ok(writeln!(
        text,
        "  call @step{number}({}) : ({}) -> ()",
        names.join(", "),
        kinds.join(", ")
    )?)
}

/// What a test has to know to launch the images itself, as JSON.
pub fn plan(graph: &Graph, kernels: &[Kernel], files: &[String]) -> String {
    let inputs: Vec<String> = graph
        .inputs()
        .map(|(value, name)| format!("[{value}, \"{name}\"]"))
        .collect();
    let shapes: Vec<String> = (0..graph.len())
        .map(|value| format!("{:?}", graph.shape(value)))
        .collect();
    let steps: Vec<String> = kernels
        .iter()
        .zip(files)
        .map(|(kernel, file)| {
            let arguments: Vec<String> = kernel
                .arguments
                .iter()
                .filter_map(|index| kernel.parameters.get(*index))
                .map(|(value, shape)| format!("[{value}, {shape:?}]"))
                .collect();
            format!(
                "{{\"file\": \"{file}\", \"kernel\": \"{}\", \"grid\": {:?}, \"block\": {:?}, \"arguments\": [{}]}}",
                kernel.name,
                kernel.grid,
                kernel.block,
                arguments.join(", ")
            )
        })
        .collect();
    format!(
        "{{\"inputs\": [{}], \"shapes\": [{}], \"steps\": [\n{}]}}\n",
        inputs.join(", "),
        shapes.join(", "),
        steps.join(",\n")
    )
}
