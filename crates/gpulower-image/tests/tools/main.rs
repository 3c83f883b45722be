//! Readers and writers beside LLVM's and NVIDIA's own tools: what these write is read, and what is written here they read.
#![allow(clippy::unwrap_used, reason = "a test ends where something is not as expected")]

mod bundle;
mod cubin;
mod elf;
mod fatbin;
mod host_object;
mod hsaco;
mod inspect;
mod inspect_hostile;
mod inspect_nvidia;
mod join_cubin;
mod nvcc;
mod occupancy;
mod offload_binary;
