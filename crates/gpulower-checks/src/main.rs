//! What drives GPUs, fuzzing, measurements and soak tests. Not published: `cargo xtask` starts it.
//!
//! ```text
//! gpulower-checks differ gpu|amd|compile  kernels at random, run and compared with an interpretation
//! gpulower-checks fuzz [FOLDER]        carries out inputs that `cargo xtask fuzz` made
//! gpulower-checks growth               how time grows with the input: exponents for families of inputs
//! gpulower-checks measure ...          compile times inside one process, for `cargo xtask compare`
//! gpulower-checks runtime DIRECTORY    devices, memory, streams, loading, launching, faults: needs a GPU
//! gpulower-checks session              kernels added and replaced while a program runs: needs a GPU
//! gpulower-checks soak memory|mixed    compiling for a long time
//! ```

#[macro_use]
mod gpu_checks;

mod differ;
mod fuzz;
mod growth;
mod measure;
mod runtime;
mod session;
mod soak;

use std::{fmt::Debug, process::ExitCode};

fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        Some("differ") => status(differ::main()),
        Some("fuzz") => status(fuzz::main()),
        Some("growth") => status(growth::main()),
        Some("measure") => status(measure::main()),
        Some("runtime") => runtime::main(),
        Some("session") => session::main(),
        Some("soak") => status(soak::main()),
        _ => {
            eprintln!("usage: gpulower-checks differ|fuzz|growth|measure|runtime|session|soak ...");
            ExitCode::from(2)
        }
    }
}

fn status(result: Result<(), impl Debug>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("Error: {error:?}");
            ExitCode::FAILURE
        }
    }
}
