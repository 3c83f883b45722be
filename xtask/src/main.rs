//! The development commands of gpulower: `cargo xtask setup`, `demo`, `test`, `docs`, `compare`, `quality`, `fuzz`, `soak`,
//! `gpu`, `c`, `install`, `inputs`, `amd`, `wheel`, `dist` and `cross`.
//!
//! They are one program so that a developer's machine and the continuous integration do the same thing. It is built
//! before LLVM is there, so it depends on nothing of gpulower's but what tests share.

mod amd;
mod apt;
mod c_library;
mod check;
mod command;
mod compare;
mod cross;
mod demo;
mod dist;
mod docs;
mod env;
mod fuzz;
mod gpu;
mod growth;
mod inputs;
mod install;
mod integrations;
mod mutants;
mod openmp;
mod packages;
mod plugin;
mod quality;
mod root;
mod servers;
mod setup;
mod soak;
#[cfg(test)]
mod trust;
mod wheel;
mod wheels;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::command::Failure;
use crate::env::Workspace;

/// Development commands of gpulower.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    command: Subcommands,
}

#[derive(Debug, Subcommand)]
enum Subcommands {
    /// Install what building and testing need; does nothing when all of it is there.
    Setup,
    /// Build, compile the kernels under examples/ for one NVIDIA and one AMD chip, and print what came out.
    Demo(demo::Options),
    /// Formatting, clippy, documentation, Rust tests, lit tests, a short fuzz; stops at the first failure.
    Test(check::Options),
    /// Check the links of the documentation, and make the book of docs/ in target/book.
    Docs(docs::Options),
    /// Compile times of the release build beside those of mlir-opt, NVRTC, nvcc and clang.
    Compare(compare::Options),
    /// How fast kernels are that nobody tuned for, beside nvcc's.
    Quality(quality::Options),
    /// Compile for a long time: memory, and failures among good kernels on many threads.
    Soak(soak::Options),
    /// How time grows with the input: families of inputs, and the exponents.
    Growth(growth::Options),
    /// Whether the fast tests notice changes of the code that they are for: 90 of 100 have to be.
    Mutants(mutants::Options),
    /// Damaged inputs of every kind through the whole pipeline.
    Fuzz(fuzz::Options),
    /// The checks that need an NVIDIA GPU, here or on another machine.
    Gpu(gpu::Options),
    /// Programs, the C library and its headers, below one prefix.
    Install(install::Options),
    /// The C library in programs in C, C++ and Python, beside other LLVMs.
    C(c_library::Options),
    /// What is read of what other releases of MLIR and LLVM write: the table in docs/inputs.md.
    Inputs(inputs::Options),
    /// The Python package as a wheel, in target/wheels.
    Wheel(wheel::Options),
    /// Put what was built where the tests of integrations/ look for it.
    #[command(hide = true)]
    LayOutIntegrations,
    /// What is given to people: a Debian package, a tarball and the wheel, each tried in an empty root with --try.
    Dist(dist::Options),
    /// Programs, the C library and the wheel, built for another processor; their tests under qemu.
    Cross(cross::Options),
    /// Execute kernels for AMD chips without AMD hardware: all checks, or one kernel of yours.
    Amd(amd::Options),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(&arguments.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("\nxtask: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: &Subcommands) -> Result<(), Failure> {
    let workspace = Workspace::locate()?;
    match command {
        Subcommands::Setup => setup::run(&workspace, setup::Purpose::Test).map(drop),
        Subcommands::Demo(options) => demo::run(&workspace, options),
        Subcommands::Test(options) => check::run(&workspace, options),
        Subcommands::Docs(options) => docs::run(&workspace, options),
        Subcommands::Compare(options) => compare::run(&workspace, options),
        Subcommands::Quality(options) => quality::run(&workspace, options),
        Subcommands::Soak(options) => soak::run(&workspace, options),
        Subcommands::Growth(options) => growth::run(&workspace, options),
        Subcommands::Mutants(options) => mutants::run(&workspace, options),
        Subcommands::Fuzz(options) => fuzz::run(&workspace, options),
        Subcommands::Gpu(options) => gpu::run(&workspace, options),
        Subcommands::Install(options) => install::run(&workspace, options),
        Subcommands::C(options) => c_library::run(&workspace, options),
        Subcommands::Inputs(options) => inputs::run(&workspace, options),
        Subcommands::Wheel(options) => wheel::run(&workspace, options),
        Subcommands::LayOutIntegrations => integrations::lay_out(&workspace),
        Subcommands::Dist(options) => dist::run(&workspace, options),
        Subcommands::Cross(options) => cross::run(&workspace, options),
        Subcommands::Amd(options) => amd::run(&workspace, options),
    }
}
