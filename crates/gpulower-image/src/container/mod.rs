//! Containers: several images in one artifact, written and read without any vendor's tools.
//!
//! Every reader takes bytes that nobody vouches for: whatever is wrong with them is an error that names the offset.

pub mod archive;
pub mod bundle;
mod bundle_id;
mod error;
pub mod fatbin;
pub mod host_object;
pub mod host_sections;
pub mod offload_binary;

pub use error::WriteError;

#[cfg(test)]
mod bundle_refusal_tests;
