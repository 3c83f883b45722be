//! Checks sessions on an NVIDIA GPU: kernels that are compiled, loaded and launched in one process, and what MLIR's operations
//! for the newer chips compute there.
//!
//! ```sh
//! cargo xtask gpu make DIRECTORY session      # where LLVM is
//! python3 DIRECTORY/main.py session           # where the GPU and a CUDA toolkit are
//! ```
//!
//! It prints a line for each check, and ends with 1 if one failed. It compiles by itself, and so takes a CUDA toolkit, which is
//! looked for as `gpulower` does.

mod adding;
mod ahead;
mod cycles;
mod faults;
mod features;
mod fixture;
mod growth;
mod kernels;
mod refused;

use std::process::ExitCode;

use fixture::{Check, Gpu};
use gpulower::target::Vendor;

/// All checks.
fn checks() -> Vec<Check> {
    let groups: [&[Check]; 7] = [
        adding::CHECKS,
        ahead::CHECKS,
        refused::CHECKS,
        features::CHECKS,
        faults::CHECKS,
        growth::CHECKS,
        cycles::CHECKS,
    ];
    groups.concat()
}

pub fn main() -> ExitCode {
    let mut only: Vec<String> = std::env::args().skip(2).collect();
    // Some of the checks are of both vendors' devices; `tests/amd/unit/test_hip.py` names them.
    let vendor = match only.first().map(String::as_str) {
        Some("--hip") => {
            only.remove(0);
            Vendor::Amd
        }
        _ => Vendor::Nvidia,
    };
    let gpu = match Gpu::new(vendor) {
        Ok(gpu) => gpu,
        Err(error) => {
            println!("FAILED {:<32} {error}", "start");
            return ExitCode::FAILURE;
        }
    };
    if let [flag, name] = only.as_slice()
        && flag == faults::CHILD
    {
        return crate::gpu_checks::ended(faults::child(&gpu, name));
    }
    println!("{}", gpu.describe());
    crate::gpu_checks::run(&gpu, checks(), &only, |gpu| gpu.context.synchronize())
}
