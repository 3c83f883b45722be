//! Readers and writers beside LLVM's and NVIDIA's own tools: what these write is read, and what is written here they read.
#![allow(clippy::unwrap_used, reason = "a test ends where something is not as expected")]

mod bundle;
mod chips;
mod cubin;
mod elf;
mod fatbin;
mod host_object;
mod hsaco;
mod inspect;
mod inspect_nvidia;
mod join_cubin;
mod join_object;
mod nvcc;
mod occupancy;
mod offload_binary;
