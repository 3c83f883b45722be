//! Bytes: PTX to cubin, object to hsaco, containers, and readers for each.
//!
//! Knows nothing of MLIR.

pub mod amd;
mod amd_pipe;
pub mod cubin;
mod cubin_attributes;
pub mod elf;
mod elf_raw;
pub mod fatbin;
mod fatbin_format;
mod fatbin_read;
#[cfg(test)]
mod fatbin_tests;
pub mod hsaco;
pub mod hsaco_attributes;
pub mod hsaco_flags;
mod hsaco_metadata;
pub mod nvidia;
mod nvidia_attempt;
mod nvidia_error;
pub mod nvidia_options;
pub mod nvjitlink;
pub mod nvptxcompiler;
mod nvptxcompiler_digest;
pub mod ptx;
pub mod ptx_log;
pub mod ptxas;
pub mod resource;

#[cfg(test)]
mod amd_testing;
#[cfg(test)]
mod amd_tests;
#[cfg(test)]
mod cubin_tests;
#[cfg(test)]
mod elf_tests;
#[cfg(test)]
mod hsaco_tests;
#[cfg(test)]
mod nvidia_testing;
#[cfg(test)]
mod nvidia_tests;
#[cfg(test)]
mod nvjitlink_tests;
#[cfg(test)]
mod nvptxcompiler_tests;
