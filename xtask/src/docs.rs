//! `cargo xtask docs`: the book. Its links are checked, then mdBook makes `target/book` of `docs/`.

#[cfg(test)]
mod commands;
mod links;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;

use crate::command::{Context, Failure, capture, run as run_command, succeeds};
use crate::env::Workspace;

/// The release of mdBook that makes the book.
const MDBOOK: &str = "0.5.4";

#[derive(Debug, Args)]
pub struct Options {
    /// Check the links, and make nothing.
    #[arg(long)]
    check: bool,
    /// Write pictures of some pages, as a browser shows them, to this folder.
    #[arg(long, value_name = "DIR", conflicts_with = "check")]
    pictures: Option<PathBuf>,
}

/// Browsers that draw a page without a window.
const BROWSERS: &[&str] = &["chromium", "chromium-browser", "google-chrome"];

/// Pages with a picture, long code, a wide table.
const PICTURED: &[&str] = &["introduction", "tutorial", "options", "architecture"];

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
    let book = workspace.root.join("target/book");
    println!("docs: {}", book.join("index.html").display());
    match &options.pictures {
        Some(folder) => pictures(&book, folder),
        None => Ok(()),
    }
}

fn pictures(book: &Path, folder: &Path) -> Result<(), Failure> {
    let browser = BROWSERS
        .iter()
        .find(|name| succeeds(Command::new(name).arg("--version")));
    let browser = browser.ok_or_else(|| {
        Failure::new(format!(
            "none of {} is in PATH; Debian's package is chromium",
            BROWSERS.join(", ")
        ))
    })?;
    fs::create_dir_all(folder).context(|| format!("make {}", folder.display()))?;
    for page in PICTURED {
        let picture = folder.join(format!("{page}.png"));
        let mut draw = Command::new(browser);
        draw.args(["--headless", "--no-sandbox", "--disable-gpu", "--window-size=1500,1400"])
            .arg(format!("--screenshot={}", picture.display()))
            .arg(format!("file://{}", book.join(format!("{page}.html")).display()));
        let output = capture(&mut draw)?;
        if !picture.is_file() {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(Failure::new(format!(
                "{browser} made no picture of {page}.html: {said}"
            )));
        }
        println!("docs: {}", picture.display());
    }
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
    let _ = fs::remove_dir_all(folder.join("build"));
    Ok(program)
}
