//! Launches saxpy on the first GPU, from a file that gpulower made, and checks the result.
//!
//! ```sh
//! cargo run --bin gpulower -- compile examples/saxpy.mlir --target sm_90 --emit fatbin -o saxpy.fatbin
//! cargo run --example launch -- saxpy.fatbin
//! ```
//!
//! It uses the runtime alone: a program that depends on the crate `gpulower-runtime` instead builds in seconds and without
//! LLVM. For a GPU of AMD's, give it an hsaco or a bundle and `--hip`.

use std::error::Error;

use gpulower::runtime::{Arguments, Driver, LaunchShape, LoadOptions, MemRef, Module};

const COUNT: usize = 1_000_003;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let hip = arguments.iter().any(|argument| argument == "--hip");
    let Some(path) = arguments.iter().find(|argument| !argument.starts_with('-')) else {
        return Err("usage: launch FILE [--hip]".into());
    };

    // Drivers are loaded here; nothing of them is linked. An absent one is an error like any other.
    let driver = if hip { Driver::hip() } else { Driver::cuda() }?;
    let device = driver.device(0)?;
    let context = device.context()?;
    let stream = context.stream()?;
    println!("{} ({})", device.name()?, device.target()?);

    // Of all images in the file, the one that this device takes.
    let module = Module::load(&context, path, &std::fs::read(path)?, &LoadOptions::default())?;
    let saxpy = module.function("saxpy")?;
    println!("{}: {:?}", module.image(), saxpy.attributes());

    let (a, x): (f32, Vec<f32>) = (2.5, (0..COUNT).map(|index| index as f32 / 7.0).collect());
    let y: Vec<f32> = x.iter().map(|value| 1.0 - value).collect();
    let (on_x, on_y) = (context.allocate(4 * COUNT)?, context.allocate(4 * COUNT)?);
    on_x.upload(&x, &stream)?;
    on_y.upload(&y, &stream)?;

    // A memref of rank 1 stands for five parameters: two pointers, the offset, the size and the stride.
    let size = [COUNT as i64];
    let mut arguments = Arguments::new();
    arguments
        .value(a)
        .memref(&MemRef::of::<f32>(&on_x, &size)?)
        .memref(&MemRef::of::<f32>(&on_y, &size)?);
    let shape = LaunchShape::linear(COUNT as u32, 256);

    // What does not fit is refused before the driver sees it, with what was wanted and what there is.
    let too_large = saxpy.launch(&LaunchShape::linear(COUNT as u32, 2048), &arguments);
    if let Err(error) = too_large {
        println!("refused, as it should be: {error}");
    }
    let launch = saxpy.launch(&shape, &arguments)?;
    // SAFETY: saxpy stays within its two memrefs, which are inside of buffers that live until the download is done.
    #[allow(unsafe_code, reason = "what a kernel does is the caller's word")]
    unsafe { launch.enqueue(&stream) }?;

    let mut result = vec![f32::NAN; COUNT];
    on_y.download(&mut result, &stream)?;
    for (index, found) in result.iter().enumerate() {
        let expected = a.mul_add(x[index], y[index]);
        if *found != expected {
            return Err(format!("element {index} is {found} instead of {expected}").into());
        }
    }
    println!("all {COUNT} elements are right");
    Ok(())
}
