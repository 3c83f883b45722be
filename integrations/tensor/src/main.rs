//! A tensor compiler: a graph to linalg, linalg to kernels by MLIR's own passes, kernels to machine code by gpulower.
//! USAGE says how it is called, README.md the rest.

mod device;
mod graph;
mod lower;
mod program;
mod step;

use std::{env, error::Error, fs, path::Path, process::ExitCode};

use gpulower::offload::{ExportForm, ExportOptions, export_source};
use gpulower::{Compiler, Emit, Target, cache::Cache};
use serde_json::json;

use crate::{graph::Graph, lower::Kernel, program::program, step::Tiles};

const USAGE: &str = "usage:
  gpulower-tensor compile MODEL TARGET FOLDER   images, and plan.json, which says how to launch them
  gpulower-tensor run MODEL FOLDER              on the first GPU, with tiles chosen by measuring
  gpulower-tensor export MODEL TARGETS FILE     an object for clang 19, with a function for C
MODEL is mlp:ROWS,INPUT,HIDDEN,OUTPUT or attention:ROWS,WIDTH. GPULOWER_TENSOR_CACHE is a folder for what was compiled.";

fn main() -> ExitCode {
    if let Err(error) = command() {
        eprintln!("error: {error}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

fn command() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let cache = env::var_os("GPULOWER_TENSOR_CACHE").map(|folder| Cache::builder().directory(folder).build());
    let compiler = Compiler::builder().environment().cache(cache).build();
    match words.as_slice() {
        ["compile", model, target, folder] => compile(&compiler, &graph_of(model)?, target.parse()?, Path::new(folder)),
        ["run", model, folder] => device::run(&graph_of(model)?, compiler, Path::new(folder)),
        ["export", model, targets, file] => export(&compiler, model, &Target::parse_list(targets)?, file),
        _ => Err(USAGE.into()),
    }
}

fn graph_of(model: &str) -> Result<Graph, Box<dyn Error>> {
    let (name, sizes) = model.split_once(':').ok_or(USAGE)?;
    let sizes = sizes.split(',').map(str::parse).collect::<Result<Vec<usize>, _>>()?;
    match (name, sizes.as_slice()) {
        ("mlp", &[rows, input, hidden, output]) => Ok(graph::mlp(rows, input, hidden, output)),
        ("attention", &[rows, width]) => Ok(graph::attention(rows, width)),
        _ => Err(USAGE.into()),
    }
}

/// All steps, with the tiles that come first.
fn lowered(graph: &Graph, targets: &[Target]) -> Result<Vec<Kernel>, Box<dyn Error>> {
    let tensor_cores = targets.iter().all(|target| target.as_amd().is_none());
    let lowered = graph.steps.iter().enumerate().map(|(number, step)| {
        let tiles = Tiles::of(graph, step, tensor_cores)?;
        lower::lower(graph, number, step, &tiles[0])
    });
    lowered.collect()
}

/// Writes an image for each step, and what one has to know to launch it.
fn compile(compiler: &Compiler, graph: &Graph, target: Target, folder: &Path) -> Result<(), Box<dyn Error>> {
    let kernels = lowered(graph, &[target])?;
    let text = program(graph, &kernels, "graph");
    let compiled = compiler.compile_source("graph.mlir", text.as_bytes(), &[target], Emit::Binary)?;
    fs::create_dir_all(folder)?;
    let mut steps = Vec::new();
    for ((step, kernel), artifact) in graph.steps.iter().zip(kernels).zip(compiled.artifacts) {
        let file = format!("{}.{}", artifact.module, artifact.format.extension());
        fs::write(folder.join(&file), &artifact.bytes)?;
        let shape = kernel.launch.shape?;
        let arguments = kernel.launch.arguments.into_iter();
        let arguments = arguments.map(|argument| Ok((step.values()[argument.parameter?], argument.sizes?)));
        let arguments: Vec<_> = arguments.collect::<Result<_, gpulower::Error>>()?;
        let (name, grid, block) = (kernel.launch.kernel, shape.grid, shape.block);
        steps.push(json!({"file": file, "kernel": name, "grid": grid, "block": block, "arguments": arguments}));
    }
    let plan = json!({"inputs": graph.inputs, "shapes": graph.shapes, "steps": steps});
    Ok(fs::write(folder.join("plan.json"), plan.to_string())?)
}

/// Writes the whole graph as one object that a clang without MLIR finishes. Its function has the model's name.
fn export(compiler: &Compiler, model: &str, targets: &[Target], file: &str) -> Result<(), Box<dyn Error>> {
    let graph = graph_of(model)?;
    let name = model.split(':').next().unwrap_or(model);
    let text = program(&graph, &lowered(&graph, targets)?, name);
    let form = ExportForm::Object("clang-19".parse()?);
    let options = ExportOptions::new(form, format!("{name}.mlir"), "x86_64-unknown-linux-gnu".parse()?);
    let exported = export_source(compiler, &format!("{name}.mlir"), text.as_bytes(), targets, &options)?;
    fs::write(file, &exported.bytes)?;
    println!("{}", exported.finish.commands(file, name));
    Ok(())
}
