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

#[cfg(test)]
mod amd_tests;
#[cfg(test)]
mod nvfatbin_tests;
#[cfg(test)]
mod nvidia_tests;
#[cfg(test)]
mod nvjitlink_tests;
#[cfg(test)]
mod nvptxcompiler_tests;
