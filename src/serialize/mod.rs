//! Machine code: PTX to a cubin, objects to an hsaco.
//!
//! Knows nothing of MLIR. What comes out is read with [`crate::image`].

pub mod amd;
mod amd_pipe;
pub mod device_link;
mod link_error;
pub mod nvfatbin;
pub mod nvidia;
mod nvidia_attempt;
mod nvidia_error;
pub mod nvidia_options;
pub(crate) mod nvptxcompiler;
pub(crate) mod ptxas;
mod source_files;

#[cfg(test)]
#[path = "../../tests/serialize/amd.rs"]
mod amd_tests;
#[cfg(test)]
#[path = "../../tests/serialize/nvfatbin.rs"]
mod nvfatbin_tests;
#[cfg(test)]
#[path = "../../tests/serialize/nvidia.rs"]
mod nvidia_tests;
#[cfg(test)]
#[path = "../../tests/serialize/nvjitlink.rs"]
mod nvjitlink_tests;
#[cfg(test)]
#[path = "../../tests/serialize/nvptxcompiler.rs"]
mod nvptxcompiler_tests;
