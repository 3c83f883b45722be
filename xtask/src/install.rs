//! `cargo xtask install`: programs, the C library, its headers and what build systems ask for, below one prefix.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;

use crate::command::{Context, Failure, run as run_command};
use crate::env::Workspace;
use crate::setup::{self, Purpose};

#[derive(Debug, Args)]
pub struct Options {
    /// The folder that gets include, lib, bin and share.
    #[arg(long, value_name = "DIR")]
    prefix: PathBuf,
}

/// What is copied as it is: from where in the checkout, to where below the prefix.
const FILES: &[(&str, &str)] = &[
    ("crates/gpulower-c/include/gpulower.h", "include"),
    ("crates/gpulower-c/include/gpulower.hpp", "include"),
    ("crates/gpulower-c/package/gpulower-config.cmake", "lib/cmake/gpulower"),
    ("crates/gpulower-c/package/gpulower-kernels.cmake", "lib/cmake/gpulower"),
    (
        "crates/gpulower-c/package/gpulower-config-version.cmake",
        "lib/cmake/gpulower",
    ),
    ("crates/gpulower-c/package/gpulower.pc", "lib/pkgconfig"),
    ("crates/gpulower-c/plugin/CMakeLists.txt", "share/gpulower/plugin"),
    ("crates/gpulower-c/plugin/plugin.cpp", "share/gpulower/plugin"),
    ("docs/c.md", "share/doc/gpulower"),
    ("docs/errors.md", "share/doc/gpulower"),
    ("docs/options.md", "share/doc/gpulower"),
    ("docs/report.schema.json", "share/doc/gpulower"),
    ("LICENSE", "share/doc/gpulower"),
    ("examples/c/CMakeLists.txt", "share/gpulower/examples/c"),
    ("examples/c/compile.c", "share/gpulower/examples/c"),
    ("examples/c/compile.cpp", "share/gpulower/examples/c"),
    ("examples/c/launch.c", "share/gpulower/examples/c"),
    ("examples/saxpy.mlir", "share/gpulower/examples"),
];

/// The name that programs are linked with, which is the library's own: `crates/gpulower-c/build.rs`.
const SONAME: &str = "libgpulower.so.1";

pub fn run(workspace: &Workspace, options: &Options) -> Result<(), Failure> {
    setup::run(workspace, Purpose::Demo)?;
    let mut build = workspace.cargo("build");
    build.args(["--release", "--locked", "-p", "gpulower-c", "-p", "gpulower-cli"]);
    run_command(&mut build)?;
    let built = workspace.binaries()?.with_file_name("release");
    lay_out(workspace, &built, &built.join("libgpulower_c.so"), &options.prefix)?;
    for file in ["bin/gpulower", "bin/gpulower-opt", "lib/libgpulower.so.1"] {
        let mut strip = Command::new("strip");
        run_command(strip.arg("--strip-unneeded").arg(options.prefix.join(file)))?;
    }
    document(&options.prefix)?;
    println!("installed below {}", options.prefix.display());
    Ok(())
}

/// Completions of shells and manual pages, where systems look for them: the program makes them of its options.
pub fn document(prefix: &Path) -> Result<(), Failure> {
    let gpulower = prefix.join("bin/gpulower");
    run_command(
        Command::new(&gpulower)
            .arg("man")
            .arg("-o")
            .arg(prefix.join("share/man/man1")),
    )?;
    for (shell, place) in [
        ("bash", "share/bash-completion/completions/gpulower"),
        ("zsh", "share/zsh/site-functions/_gpulower"),
        ("fish", "share/fish/vendor_completions.d/gpulower.fish"),
    ] {
        let place = prefix.join(place);
        let output = Command::new(&gpulower).args(["completions", shell]).output();
        let output = output.context(|| format!("run {}", gpulower.display()))?;
        fs::create_dir_all(place.parent().unwrap_or(prefix))
            .context(|| format!("make the folder of {}", place.display()))?;
        fs::write(&place, output.stdout).context(|| format!("write {}", place.display()))?;
    }
    Ok(())
}

/// Puts programs and the library, which are built, and everything else below the prefix.
pub fn lay_out(workspace: &Workspace, programs: &Path, library: &Path, prefix: &Path) -> Result<(), Failure> {
    lay_out_with("strip", workspace, programs, library, prefix)
}

/// With the `strip` of the processor that they are for.
pub fn lay_out_with(
    strip: &str,
    workspace: &Workspace,
    programs: &Path,
    library: &Path,
    prefix: &Path,
) -> Result<(), Failure> {
    for program in ["gpulower", "gpulower-opt"] {
        copy_stripped(strip, &programs.join(program), &prefix.join("bin").join(program))?;
    }
    let lib = prefix.join("lib");
    copy_stripped(strip, library, &lib.join(SONAME))?;
    let link = lib.join("libgpulower.so");
    let _ = fs::remove_file(&link);
    symlink(SONAME, &link).context(|| format!("make {}", link.display()))?;
    for (file, folder) in FILES {
        let file = workspace.root.join(file);
        let name = file.file_name().unwrap_or_default();
        copy(&file, &prefix.join(folder).join(name))?;
    }
    Ok(())
}

/// Copies a program or library without its debug information, which nobody beside the sources can use. (valgrind 3.19, of
/// Debian 12, gives up on what LLVM 22's linker writes.)
fn copy_stripped(strip: &str, from: &Path, to: &Path) -> Result<(), Failure> {
    copy(from, to)?;
    run_command(Command::new(strip).arg("--strip-debug").arg(to))
}

/// Copies a file.
fn copy(from: &Path, to: &Path) -> Result<(), Failure> {
    let folder = to.parent().unwrap_or(to);
    fs::create_dir_all(folder).context(|| format!("make {}", folder.display()))?;
    // Whoever has it open keeps the old file.
    let _ = fs::remove_file(to);
    fs::copy(from, to).context(|| format!("copy {} to {}", from.display(), to.display()))?;
    Ok(())
}
