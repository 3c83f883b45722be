//! A tensor compiler: a graph to linalg, linalg to kernels by MLIR's own passes, kernels to machine code by gpulower.
//!
//! ```sh
//! gpulower-tensor compile MODEL --target gfx942 --output FOLDER   # images, and plan.json
//! gpulower-tensor run MODEL --data FOLDER                         # on the first GPU, with tiles chosen by measuring
//! gpulower-tensor export MODEL --target sm_80,sm_90 --output mlp.o
//! ```
//!
//! MODEL is `mlp:ROWS,INPUT,HIDDEN,OUTPUT` or `attention:ROWS,WIDTH`. README.md says the rest.

mod device;
mod graph;
mod linalg;
mod lower;
mod program;
mod schedule;

use std::{error::Error, fs, path::Path, process::ExitCode};

use gpulower::{
    Compiler, Emit, Target,
    cache::Cache,
    offload::{ExportForm, ExportOptions, export_source},
};

use crate::{graph::Graph, lower::Kernel};

const USAGE: &str = "usage: gpulower-tensor compile|run|export mlp:ROWS,INPUT,HIDDEN,OUTPUT|attention:ROWS,WIDTH \
                     [--target LIST] [--output PATH] [--data FOLDER] [--cache FOLDER] [--finish-with LIST]";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match command(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn command(arguments: &[String]) -> Result<(), Box<dyn Error>> {
    let [action, model, options @ ..] = arguments else {
        return Err(USAGE.into());
    };
    let option = |name: &str| {
        let given = options.chunks_exact(2).find(|pair| pair[0] == name);
        given.map(|pair| pair[1].as_str())
    };
    let needed = |name: &str| option(name).ok_or_else(|| format!("{name} is missing\n{USAGE}"));
    let graph = graph_of(model)?;
    let mut builder = Compiler::builder().environment();
    if let Some(folder) = option("--cache") {
        builder = builder.cache(Cache::builder().directory(folder).build());
    }
    let compiler = builder.build();
    match action.as_str() {
        "compile" => compile(&graph, &compiler, needed("--target")?, Path::new(needed("--output")?)),
        "run" => device::run(&graph, compiler, Path::new(needed("--data")?)),
        "export" => {
            let name = model.split(':').next().unwrap_or_default();
            let form = ExportForm::Object(option("--finish-with").unwrap_or("clang-19").parse()?);
            export(
                &graph,
                &compiler,
                needed("--target")?,
                (name, needed("--output")?),
                form,
            )
        }
        _ => Err(USAGE.into()),
    }
}

fn graph_of(model: &str) -> Result<Graph, Box<dyn Error>> {
    let (name, sizes) = model.split_once(':').ok_or(USAGE)?;
    let sizes = sizes.split(',').map(str::parse).collect::<Result<Vec<usize>, _>>()?;
    match (name, sizes.as_slice()) {
        ("mlp", &[rows, input, hidden, output]) => Ok(graph::mlp(rows, input, hidden, output)?),
        ("attention", &[rows, width]) => Ok(graph::attention(rows, width)?),
        _ => Err(USAGE.into()),
    }
}

/// All steps, with the tiles that come first.
fn lowered(graph: &Graph, tensor_cores: bool) -> Result<Vec<Kernel>, Box<dyn Error>> {
    let lower = |(number, step)| {
        let tiles = lower::candidates(graph, step, tensor_cores);
        lower::lower(graph, number, step, tiles.first())
    };
    graph.steps()?.iter().enumerate().map(lower).collect()
}

/// Writes an image for each step.
fn compile(graph: &Graph, compiler: &Compiler, target: &str, folder: &Path) -> Result<(), Box<dyn Error>> {
    let target: Target = target.parse()?;
    let kernels = lowered(graph, target.as_amd().is_none())?;
    fs::create_dir_all(folder)?;
    let names: Vec<String> = kernels.iter().map(|kernel| format!("{}.mlir", kernel.name)).collect();
    let sources = names
        .iter()
        .zip(&kernels)
        .map(|(name, kernel)| (name.as_str(), kernel.device.as_bytes()));
    let sources: Vec<_> = sources.collect();
    let mut files = Vec::new();
    for result in compiler.compile_many(&sources, &[target], Emit::Binary) {
        for artifact in result?.artifacts {
            let file = format!("{}.{}", artifact.module, artifact.format.extension());
            fs::write(folder.join(&file), &artifact.bytes)?;
            files.push(file);
        }
    }
    Ok(fs::write(
        folder.join("plan.json"),
        program::plan(graph, &kernels, &files),
    )?)
}

/// Writes the whole graph as one file that a clang without MLIR finishes.
fn export(
    graph: &Graph,
    compiler: &Compiler,
    targets: &str,
    (name, output): (&str, &str),
    form: ExportForm,
) -> Result<(), Box<dyn Error>> {
    let targets = Target::parse_list(targets)?;
    let kernels = lowered(graph, targets.iter().all(|target| target.as_amd().is_none()))?;
    let text = program::program(graph, &kernels, name)?;
    let options = ExportOptions::new(form, format!("{name}.mlir"), "x86_64-unknown-linux-gnu".parse()?);
    let exported = export_source(compiler, &format!("{name}.mlir"), text.as_bytes(), &targets, &options)?;
    fs::write(output, &exported.bytes)?;
    println!("{}", exported.finish.commands(output, name));
    Ok(())
}
