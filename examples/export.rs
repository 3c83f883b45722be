//! Exports a whole program, host code and kernels, as an object that clang 19 finishes on a machine without MLIR.
//!
//! ```sh
//! cargo run --example export                       # examples/app.mlir to app.o, and the command that finishes it
//! ```

use std::{error::Error, fs};

use gpulower::{
    Compiler, Target,
    offload::{ExportForm, ExportOptions, export_source},
};

fn main() -> Result<(), Box<dyn Error>> {
    let source = fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/app.mlir"))?;
    let compiler = Compiler::builder().environment().build();
    let form = ExportForm::Object("clang-19,cuda-12.4".parse()?);
    let options = ExportOptions::new(form, "app.mlir", "x86_64-unknown-linux-gnu".parse()?);

    let exported = export_source(
        &compiler,
        "app.mlir",
        &source,
        &Target::parse_list("sm_80,sm_90")?,
        &options,
    )?;
    fs::write("app.o", &exported.bytes)?;
    println!(
        "app.o: {} bytes. There:\n{}",
        exported.bytes.len(),
        exported.finish.commands("app.o", "app")
    );
    Ok(())
}
