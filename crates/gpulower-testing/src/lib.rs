//! What tests of several modules share: the vendors' tools, and small inputs for them.
//!
//! What is missing or fails ends the test, with the reason.
#![allow(clippy::unwrap_used, reason = "tests end so")]

pub mod amd;
pub mod kernels;
pub mod nvidia;
pub mod pages;
pub mod servers;
