//! The C library from outside: programs in C, C++ and Python, built against what `cargo xtask install` lays out.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;

use crate::command::{Context, Failure, capture, run, shown};
use crate::env::Workspace;
use crate::install;

#[derive(Debug, Args)]
pub struct Options {
    /// Python packages to import beside the library, installed from PyPI into a folder of their own: some 300 MB.
    #[arg(long, default_values_t = ["numba-cuda-mlir".to_owned(), "triton".to_owned()])]
    wheels: Vec<String>,
}

/// What the library needs of the system. More would keep it from running where it ran before.
const NEEDED: &[&str] = &[
    "ld-linux-x86-64.so.2",
    "libc.so.6",
    "libffi.so.8",
    "libgcc_s.so.1",
    "libm.so.6",
    "libstdc++.so.6",
    "libz.so.1",
];

/// Other LLVMs and an MLIR, which are opened for all to see.
const NEIGHBOURS: [&str; 3] = ["libLLVM.so.19.1", "libLLVM.so.22.1", "libMLIR.so.22.1"];

/// The commands of `cargo xtask test c`.
pub fn test(workspace: &Workspace) -> Result<Vec<Command>, Failure> {
    let mut command = workspace.cargo("xtask");
    command.args(["neighbours", "--wheels"]);
    command.env("GPULOWER_C_TESTS", "1");
    Ok(vec![command])
}

pub fn neighbours(_: &Workspace, _: &Options) -> Result<(), Failure> {
    Ok(())
}
