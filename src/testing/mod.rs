//! What tests of several modules share: the vendors' tools, and small inputs for them.
#![cfg_attr(
    not(feature = "compile"),
    allow(dead_code, reason = "much of it serves tests of the compiler")
)]

pub(crate) mod amd;
pub(crate) mod nvidia;
