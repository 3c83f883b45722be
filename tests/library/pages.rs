//! The Rust that the documentation shows. Each block stands here as it stands there, with what it takes for granted around it: it
//! compiles. Most of it needs a GPU to run.
#![allow(dead_code, unused_variables, reason = "compiled, and not called")]
#![allow(
    unsafe_code,
    clippy::undocumented_unsafe_blocks,
    reason = "the pages launch kernels, and say around it what has to hold"
)]

use std::{fs, path::Path, time::Duration};

use gpulower::{
    Artifact, Compiler, Isolation, Options,
    jit::{Program, ProgramOptions},
    runtime::{Arguments, Context, DeviceBuffer, Function, LaunchShape, LoadOptions, MemRef, Module, Stream},
    session::JitSession,
    worker::Worker,
};

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

fn readme() -> Result {
    use gpulower::{Compiler, Emit, Target};

    // `environment` lets CUDA_HOME and its like count.
    let compiler = Compiler::builder().environment().build();
    let targets = Target::parse_list("sm_90,gfx942")?;
    let source = std::fs::read("examples/softmax.mlir")?;
    for artifact in compiler
        .compile_source("softmax.mlir", &source, &targets, Emit::Binary)?
        .artifacts
    {
        println!(
            "{} for {}: {} bytes",
            artifact.module,
            artifact.target_names(),
            artifact.bytes.len()
        );
    }
    Ok(())
}

fn cache() {
    use gpulower::{Compiler, cache::Cache};

    let cache = Cache::builder().directory("/var/cache/kernels").build();
    let compiler = Compiler::builder().cache(cache).build();
}

fn run(compiler: Compiler, source: Vec<u8>) -> Result {
    let mut program = Program::build_source(&compiler, "app.mlir", &source, &ProgramOptions::default())?;
    let returned = unsafe { program.run()? };
    Ok(())
}

fn loading(context: Context, bytes: Vec<u8>, artifact: Artifact) -> Result {
    let module = Module::load(&context, "kernels.fatbin", &bytes, &LoadOptions::default())?;
    let module = artifact.load(&context, &LoadOptions::default())?; // with the crate `gpulower`
    let saxpy = module.function("saxpy")?;
    Ok(())
}

fn launching(saxpy: Function, stream: Stream, x: DeviceBuffer, y: DeviceBuffer, n: i64) -> Result {
    let mut arguments = Arguments::new();
    arguments
        .value(2.0f32)
        .memref(&MemRef::of::<f32>(&x, &[n])?)
        .buffer(&y)
        .value(n as u32);
    let shape = LaunchShape::linear(n as u32, 256).with_dynamic_shared(96 << 10);
    let launch = saxpy.launch(&shape, &arguments)?; // checked
    unsafe { launch.enqueue(&stream)? }; // enqueued, not waited for
    Ok(())
}

fn failures(stream: Stream) -> Result {
    match stream.synchronize() {
        Err(error) if error.is_context_lost() => std::process::exit(1), // the parent starts another
        other => other?,
    }
    Ok(())
}

fn sessions(context: Context, source: &str, other: &str) -> Result {
    let session = JitSession::new(Compiler::builder().build(), &context)?;
    session.add("saxpy", source)?; // lowered, compiled, loaded
    let saxpy = session.function("saxpy", "saxpy")?; // launched as in runtime.md
    session.add("saxpy", other)?; // replaced; `saxpy` stays what it was
    let ahead = session.prepare("gelu", source)?; // compiled on another thread
    ahead.wait()?; // loaded, under its name
    Ok(())
}

fn after_a_reset(session: JitSession, context: Context) -> Result {
    let context = context.reset()?;
    session.rebuild(&context)?; // loads the images again; nothing is compiled
    Ok(())
}

fn workers() -> Result {
    let options = Options {
        isolation: Isolation::Worker,
        time_limit: Some(Duration::from_secs(60)),
        memory_limit: Some(4 << 30),
        ..Options::default()
    };
    let worker = Worker::program("/usr/bin/gpulower")?; // started as `gpulower worker`
    let compiler = Compiler::builder().options(options).worker(worker).build();
    Ok(())
}

/// The blocks of Rust in a page, as written there.
fn blocks(page: &str) -> Vec<&str> {
    let after = page.split("\n```rust").skip(1);
    let inside = after.filter_map(|rest| rest.split_once('\n')?.1.split_once("\n```"));
    inside.map(|(block, _)| block).collect()
}

#[test]
fn the_rust_of_the_pages_compiles() {
    let squeezed = |text: &str| -> String { text.split_whitespace().collect() };
    let here = squeezed(include_str!("pages.rs"));
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = 0;
    for page in [
        "README",
        "docs/cache",
        "docs/reliability",
        "docs/run",
        "docs/runtime",
        "docs/sessions",
    ] {
        let text = fs::read_to_string(root.join(format!("{page}.md"))).unwrap();
        for block in blocks(&text) {
            assert!(
                here.contains(&squeezed(block)),
                "{page}.md has other code than tests/library/pages.rs:\n{block}"
            );
            found += 1;
        }
    }
    assert_eq!(found, 9, "blocks");
}
