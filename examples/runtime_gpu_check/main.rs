//! Checks the runtime on an NVIDIA GPU: devices, memory, streams, loading, launching, faults.
//!
//! ```sh
//! scripts/check_runtime_on_gpu.sh make DIRECTORY      # where ptxas is: this program, and images for it
//! scripts/check_runtime_on_gpu.sh run DIRECTORY       # where the GPU is
//! ```
//!
//! It prints a line for each check, and ends with 1 if one failed. It needs the feature `runtime` alone: no LLVM, no toolkit.

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

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (directory, only) = match arguments.split_first() {
        Some((directory, only)) if !directory.starts_with('-') => (directory, only),
        _ => {
            eprintln!("usage: runtime_gpu_check DIRECTORY [PART-OF-A-NAME ...]");
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
            println!("FAILED {:<28} {error}", "start");
            return ExitCode::FAILURE;
        }
    };
    if let [flag, words @ ..] = only
        && flag == faults::CHILD
    {
        return match faults::child(&gpu, words) {
            Ok(detail) => {
                println!("{detail}");
                ExitCode::SUCCESS
            }
            Err(error) => {
                println!("{error}");
                ExitCode::FAILURE
            }
        };
    }
    println!("{}", gpu.describe());
    let (mut run, mut failed) = (0, 0);
    for (name, check) in checks() {
        if !only.is_empty() && !only.iter().any(|part| name.contains(part.as_str())) {
            continue;
        }
        run += 1;
        match check(&gpu) {
            Ok(detail) => println!("ok     {name:<28} {detail}"),
            Err(error) => {
                failed += 1;
                println!("FAILED {name:<28} {error}");
            }
        }
        // Nothing here loses the context on purpose, and nothing brings it back.
        if let Err(error) = gpu.context.synchronize() {
            println!("FAILED {name:<28} and nothing else can be checked: {error}");
            return ExitCode::FAILURE;
        }
    }
    println!("{} of {run} checks are right", run - failed);
    // What is still loaded here is released by the end of the process: that must be no error either.
    std::mem::forget(gpu);
    match failed {
        0 if run > 0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}
