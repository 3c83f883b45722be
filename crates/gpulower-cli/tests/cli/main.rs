//! The program `gpulower` as its users see it: exit status, messages, files.
//!
//! CUDA is taken from `GPULOWER_CUDA`, or from `.toolkit/cuda`, which `cargo xtask setup` makes; AMD's device libraries
//! come from Debian's package rocm-device-libs.

mod aarch64;
mod builds;
mod cache;
mod compile;
mod containers;
mod export;
mod export_check;
mod faults;
mod growth;
mod hostile;
mod inspect;
mod isolation;
mod joins;
mod liboffload;
mod link;
mod memory;
mod offload_wrapper;
mod openmp;
mod outputs;
mod perfetto;
mod plans;
mod refusals;
mod reports;
mod reproducible;
mod run;
mod seen;
mod sessions;
mod shared;
mod silent;
mod stages;
mod support;
mod terminal;
mod toolkits;
mod words;
