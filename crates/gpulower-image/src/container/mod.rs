//! Containers: several images in one artifact, written and read without any vendor's tools.
//!
//! Every reader takes bytes that nobody vouches for: whatever is wrong with them is an error that names the offset.

pub mod archive;
pub mod bundle;
mod bundle_binary;
mod bundle_compressed;
mod bundle_error;
mod bundle_id;
mod bundle_text;
pub mod fatbin;
mod fatbin_format;
mod fatbin_read;
pub mod host_object;
pub mod host_sections;
pub mod offload_binary;
mod offload_binary_bytes;
mod offload_binary_error;
mod offload_binary_read;

#[cfg(test)]
mod bundle_refusals;
#[cfg(test)]
mod bundle_tests;
#[cfg(test)]
mod fatbin_tests;
#[cfg(test)]
mod host_object_tests;
#[cfg(test)]
mod offload_binary_tests;
