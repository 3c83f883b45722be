//! The only `unsafe` code of this crate: the GPUs' drivers.
#![allow(
    unsafe_code,
    reason = "drivers are called through C functions; every block says why it is sound"
)]
// What is `pub` in here is what other crates see: `xtask/src/trust.rs` has the list.
#![warn(unreachable_pub)]

pub(crate) mod driver;
pub mod vendor_library;
