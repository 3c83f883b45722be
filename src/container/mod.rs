//! Containers: several images in one artifact, written and read without any vendor's tools.
//!
//! Every reader takes bytes that nobody vouches for: whatever is wrong with them is an error that names the offset.

pub mod fatbin;
mod fatbin_format;
mod fatbin_read;

#[cfg(all(test, feature = "compile"))]
mod fatbin_tests;
