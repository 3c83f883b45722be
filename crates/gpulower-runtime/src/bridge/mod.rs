//! The only `unsafe` code of this crate: the GPUs' drivers.
#![allow(
    unsafe_code,
    reason = "drivers are called through C functions; every block says why it is sound"
)]

pub mod driver;
pub mod vendor_library;
