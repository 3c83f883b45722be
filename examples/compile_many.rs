//! Compiles many files with a cache, and says how far it is. One bad file costs that file alone.
//!
//! ```sh
//! cargo run --example compile_many -- examples/*.mlir   # twice: the second time everything is known
//! ```

use std::{env, error::Error, fs, path::Path, sync::Arc};

use gpulower::{Compiler, Emit, Progress, Target, cache::Cache};

fn main() -> Result<(), Box<dyn Error>> {
    let paths: Vec<String> = env::args().skip(1).collect();
    let sources = paths.iter().map(fs::read).collect::<Result<Vec<_>, _>>()?;
    let inputs: Vec<(&str, &[u8])> = paths
        .iter()
        .zip(&sources)
        .map(|(path, source)| (path.as_str(), source.as_slice()))
        .collect();

    let directory = env::temp_dir().join("gpulower-compile-many");
    let compiler = Compiler::builder()
        .environment()
        .cache(Cache::builder().directory(directory).build())
        .progress(Arc::new(|progress| {
            if let Progress::Finished {
                subject,
                from_cache,
                done,
                total,
                ..
            } = progress
            {
                let how = if *from_cache { "known" } else { "compiled" };
                println!("[{done} of {total}] {} for {}: {how}", subject.module, subject.target);
            }
        }))
        .build();

    let targets = Target::parse_list("sm_90")?;
    for (path, result) in paths.iter().zip(compiler.compile_many(&inputs, &targets, Emit::Ptx)) {
        match result {
            Ok(compilation) => println!("{}: {} artifacts", name(path), compilation.artifacts.len()),
            Err(failure) => eprintln!("{}: {failure}", name(path)),
        }
    }
    Ok(())
}

fn name(path: &str) -> std::borrow::Cow<'_, str> {
    Path::new(path)
        .file_name()
        .map_or_else(|| path.into(), |name| name.to_string_lossy())
}
