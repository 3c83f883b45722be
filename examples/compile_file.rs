//! Compiles the kernels of a file for an NVIDIA and an AMD chip, and prints what came out.
//!
//! ```sh
//! cargo run --example compile_file                        # examples/softmax.mlir
//! cargo run --example compile_file -- kernels.mlir sm_80,gfx1100
//! ```

use std::{env, error::Error, fs};

use gpulower::{Compiler, Emit, Target};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let path = arguments
        .next()
        .unwrap_or_else(|| concat!(env!("CARGO_MANIFEST_DIR"), "/examples/softmax.mlir").to_owned());
    let targets = Target::parse_list(arguments.next().as_deref().unwrap_or("sm_90,gfx942"))?;

    // `environment` lets CUDA_HOME and its like count; without it the library reads no environment variable.
    let compiler = Compiler::builder().environment().build();
    // A cubin for each sm_* target, an hsaco for each gfx* target.
    let compilation = compiler.compile_source(&path, &fs::read(&path)?, &targets, Emit::Binary)?;

    for artifact in &compilation.artifacts {
        let (module, targets, bytes) = (&artifact.module, artifact.target_names(), artifact.bytes.len());
        println!("{module} for {targets}: {bytes} bytes");
        for kernel in artifact.kernels() {
            let registers = kernel.registers.or(kernel.vgprs).unwrap_or(0);
            println!(
                "  kernel {}: {registers} registers, {} bytes of shared memory, {} bytes of scratch",
                kernel.name, kernel.shared_bytes, kernel.scratch_bytes
            );
        }
        for stage in &artifact.stages {
            println!("  {:12} {:7.1} ms", stage.stage.name(), stage.time.as_secs_f64() * 1e3);
        }
    }
    for warning in compilation.warnings() {
        eprintln!("warning: {warning}");
    }
    Ok(())
}
