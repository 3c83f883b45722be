//! Images: what a GPU loads, read without any of its vendor's tools.
//!
//! A cubin, an hsaco and the head of a PTX module say which device they are for, which kernels they hold, and what each
//! kernel needs ([`resource::KernelResources`]). Every reader takes bytes that nobody vouches for.

pub mod cubin;
mod cubin_attributes;
pub mod elf;
pub mod hsaco;
pub mod hsaco_attributes;
pub mod hsaco_flags;
mod hsaco_metadata;
pub mod join_cubin;
pub mod join_object;
pub mod lto_ir;
pub mod producer;
pub mod ptx;
pub mod ptx_canonical;
pub mod ptx_components;
pub mod ptx_entries;
pub mod ptx_log;
pub mod ptx_loops;
pub mod ptx_sizes;
pub mod ptx_symbols;
mod ptx_tokens;
pub mod resource;
pub mod sass_loops;
pub mod symbols;
