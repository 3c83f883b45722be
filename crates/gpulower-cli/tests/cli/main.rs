//! The program `gpulower` as its users see it: exit status, messages, files.
//!
//! CUDA is taken from `GPULOWER_CUDA`, or from `.toolkit/cuda`, which `cargo xtask setup` makes; AMD's device libraries
//! come from Debian's package rocm-device-libs.

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
mod link;
mod memory;
mod plans;
mod refusals;
mod reports;
mod reproducible;
mod run;
mod shared;
mod stages;
mod support;
mod terminal;
mod toolkits;
