//! Adds kernels to a session one by one, replaces one, compiles others ahead; launches them where there is an NVIDIA GPU.
//!
//! ```sh
//! cargo run --example session                       # with a GPU, or to see what is compiled
//! cargo run --example session -- --export DIRECTORY # writes the images, to be loaded elsewhere
//! ```
//!
//! The kernels are made here as text, `x[i] *= factor`, as an interpreter would. PTX is made, which the driver compiles, so
//! that no toolkit is needed.

use std::{error::Error, fs, path::PathBuf};

use gpulower::{
    Compiler, Emit,
    runtime::{Arguments, Context, Driver, LaunchShape, MemRef},
    session::{JitSession, SessionModule},
};

fn scale(factor: u32) -> String {
    format!(
        "gpu.module @kernels {{ gpu.func @scale(%x: memref<?xf32>) kernel {{
           %factor = arith.constant {factor}.0 : f32
           %i = gpu.thread_id x
           %v = memref.load %x[%i] : memref<?xf32>
           %r = arith.mulf %v, %factor : f32
           memref.store %r, %x[%i] : memref<?xf32>
           gpu.return }} }}"
    )
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let builder = JitSession::builder(Compiler::builder().build()).emit(Emit::Ptx);
    // An absent driver is an error like any other: here it means that the session only compiles.
    let device = Driver::cuda()
        .map_err(Box::<dyn Error>::from)
        .and_then(|driver| Ok(driver.device(0)?.context()?));
    let session = match &device {
        Ok(context) => builder.context(context).build()?,
        Err(error) => {
            println!("nothing will be launched: {error}");
            builder.target("sm_90".parse()?).build()?
        }
    };

    // Compiled on other threads; taken in when they are waited for, in the order in which that is done.
    let ahead = (10..14)
        .map(|factor| session.prepare(&format!("scale{factor}"), scale(factor)))
        .collect::<Result<Vec<_>, _>>()?;

    let first = session.add("scale", scale(2))?.module;
    println!("again: {:?}", session.add("scale", scale(2))?.change);
    let second = session.add("scale", scale(3))?;
    println!("other text: {:?}", second.change);
    for pending in ahead {
        pending.wait()?;
    }

    if let Ok(context) = &device {
        // The first is no longer the session's, and still what it was.
        println!(
            "2 * 3 * 10 = {}",
            product(context, [&first, &second.module, &session.module("scale10")?])?
        );
    }
    if let [flag, directory] = arguments.as_slice()
        && flag == "--export"
    {
        fs::create_dir_all(directory)?;
        for module in session.modules() {
            let artifact = module.artifact();
            let path = PathBuf::from(directory).join(format!("{}.{}", module.name(), artifact.format.extension()));
            fs::write(&path, &artifact.bytes)?;
            println!("{}: {} bytes", path.display(), artifact.bytes.len());
        }
    }
    Ok(())
}

/// What the kernels, one after the other, make of 1.
fn product(context: &Context, modules: [&SessionModule; 3]) -> Result<f32, Box<dyn Error>> {
    let stream = context.stream()?;
    let buffer = context.allocate(4 * 32)?;
    buffer.upload(&[1.0f32; 32], &stream)?;
    let mut arguments = Arguments::new();
    arguments.memref(&MemRef::of::<f32>(&buffer, &[32])?);
    for module in modules {
        let function = module.function("scale")?;
        let launch = function.launch(&LaunchShape::linear(32, 32), &arguments)?;
        // SAFETY: each of the 32 threads stays within the buffer of 32 elements, which lives until the download is done.
        #[allow(unsafe_code, reason = "what a kernel does is the caller's word")]
        unsafe { launch.enqueue(&stream) }?;
    }
    let mut result = [0.0f32; 32];
    buffer.download(&mut result, &stream)?;
    Ok(result[0])
}
