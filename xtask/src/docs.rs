//! `cargo xtask docs`: the book. Its links are checked, then mdBook makes `target/book` of `docs/`.

mod links;

use std::path::PathBuf;
use std::process::Command;

use clap::Args;

use crate::command::{Failure, capture, run as run_command};
use crate::env::Workspace;

/// The release of mdBook that makes the book.
const MDBOOK: &str = "0.5.4";

#[derive(Debug, Args)]
pub struct Options {
    /// Check the links, and make nothing.
    #[arg(long)]
    check: bool,
}

pub fn run(workspace: &Workspace, options: &Options) -> Result<(), Failure> {
    let wrong = links::check(&workspace.root)?;
    if !wrong.is_empty() {
        return Err(Failure::new(format!(
            "links are wrong in the documentation:\n{}",
            wrong.join("\n")
        )));
    }
    if options.check {
        println!("docs: every link leads to a page and a heading");
        return Ok(());
    }
    let mdbook = installed(workspace)?;
    run_command(workspace.command(mdbook).arg("build"))?;
    println!("docs: {}", workspace.root.join("target/book/index.html").display());
    Ok(())
}

/// The program mdBook in `.toolkit`, which is built there when it is missing or of another release.
fn installed(workspace: &Workspace) -> Result<PathBuf, Failure> {
    let folder = workspace.toolkit().join("mdbook");
    let program = folder.join("bin/mdbook");
    let version = capture(Command::new(&program).arg("--version")).map(|output| output.stdout);
    if version.is_ok_and(|version| String::from_utf8_lossy(&version).trim() == format!("mdbook v{MDBOOK}")) {
        return Ok(program);
    }
    println!("docs: building mdBook {MDBOOK}, once: some minutes");
    let mut install = workspace.cargo("install");
    // Without the server and what watches files, which are most of its dependencies.
    install
        .args(["mdbook", "--version", MDBOOK, "--locked", "--no-default-features"])
        .args(["--features", "search", "--root"])
        .arg(&folder)
        .env("CARGO_TARGET_DIR", folder.join("build"))
        // Flags for the build of gpulower are none for this one.
        .env_remove("RUSTFLAGS");
    run_command(&mut install)?;
    // The program is what is kept of 300 MB.
    let _ = std::fs::remove_dir_all(folder.join("build"));
    Ok(program)
}
