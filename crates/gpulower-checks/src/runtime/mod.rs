//! Checks the runtime on an NVIDIA GPU: devices, memory, streams, loading, launching, faults.
//!
//! ```sh
//! cargo xtask gpu make DIRECTORY runtime      # where ptxas is: this program, and images for it
//! python3 DIRECTORY/main.py runtime           # where the GPU is
//! ```
//!
//! It prints a line for each check, and ends with 1 if one failed. Of gpulower it uses the runtime alone.

mod cycles;
mod faults;
mod fixture;
mod launching;
mod loading;
mod memory;
mod streams;
mod threads;

use std::process::ExitCode;

use fixture::{Check, Gpu, Images};

/// All checks.
fn checks() -> Vec<Check> {
    let groups: [&[Check]; 7] = [
        memory::CHECKS,
        streams::CHECKS,
        loading::CHECKS,
        launching::CHECKS,
        threads::CHECKS,
        cycles::CHECKS,
        faults::CHECKS,
    ];
    groups.concat()
}

pub fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(2).collect();
    let (directory, only) = match arguments.split_first() {
        Some((directory, only)) if !directory.starts_with('-') => (directory, only),
        _ => {
            eprintln!("usage: gpulower-checks runtime DIRECTORY [PART-OF-A-NAME ...]");
            return ExitCode::from(2);
        }
    };
    let images = match Images::read(directory.as_ref()) {
        Ok(images) => images,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(2);
        }
    };
    let gpu = match Gpu::new(images, directory.into()) {
        Ok(gpu) => gpu,
        Err(error) => {
            println!("FAILED {:<32} {error}", "start");
            return ExitCode::FAILURE;
        }
    };
    if let [flag, words @ ..] = only
        && flag == faults::CHILD
    {
        return crate::gpu_checks::ended(faults::child(&gpu, words));
    }
    println!("{}", gpu.describe());
    let status = crate::gpu_checks::run(&gpu, checks(), only, |gpu| gpu.context.synchronize());
    // What is still loaded here is released by the end of the process: that must be no error either.
    std::mem::forget(gpu);
    status
}
