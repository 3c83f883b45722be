//! Compiles the kernels of a file for an NVIDIA and an AMD chip, and prints what came out.
//!
//! ```sh
//! cargo run --example compile_file                        # examples/softmax.mlir
//! cargo run --example compile_file -- kernels.mlir sm_80,gfx1100
//! ```
//!
//! The library reads no environment variables. A program that wants `CUDA_HOME` and its like to count hands them in, as
//! here.

use std::{env, error::Error, fs};

use gpulower::{Compiler, Emit, Options, Search, Target, Toolkit, toolkit::cache_directory};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let path = arguments
        .next()
        .unwrap_or_else(|| concat!(env!("CARGO_MANIFEST_DIR"), "/examples/softmax.mlir").to_owned());
    let targets = Target::parse_list(arguments.next().as_deref().unwrap_or("sm_90,gfx942"))?;

    let mut options = Options::default();
    options.set("debug", "line-tables")?;

    let variable = |name: &str| env::var_os(name);
    let mut builder = Compiler::builder()
        .options(options)
        .toolkit(Toolkit::discover(&Search::from_variables(variable)));
    if let Some(directory) = cache_directory(variable) {
        // nvPTXCompiler is used only where its shared object can be kept.
        builder = builder.cache_directory(directory);
    }
    let compiler = builder.build();

    // A cubin for each sm_* target, an hsaco for each gfx* target.
    let compilation = compiler.compile_source(&path, &fs::read(&path)?, &targets, Emit::Binary)?;

    for artifact in &compilation.artifacts {
        println!(
            "{} for {}: {} bytes",
            artifact.module,
            artifact.target_names(),
            artifact.bytes.len()
        );
        for image in &artifact.images {
            println!(
                "  {}: made by {}",
                image.target,
                image.tool.as_deref().unwrap_or("LLVM")
            );
        }
        for kernel in artifact.kernels() {
            let registers = kernel.registers.or(kernel.vgprs).unwrap_or(0);
            println!(
                "  kernel {}: {registers} registers, {} bytes of shared memory, {} bytes of scratch",
                kernel.name, kernel.shared_bytes, kernel.scratch_bytes
            );
        }
        for decision in &artifact.decisions {
            println!("  {}: {}: {}", decision.stage, decision.choice, decision.outcome);
        }
        for stage in &artifact.stages {
            println!("  {:12} {:7.1} ms", stage.stage.name(), stage.time.as_secs_f64() * 1e3);
        }
    }
    for warning in compilation.warnings() {
        eprintln!("warning: {}: {}", warning.stage, warning.message);
    }
    Ok(())
}
