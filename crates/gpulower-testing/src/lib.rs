//! What tests of several modules share: the vendors' tools, and small inputs for them.

pub mod amd;
pub mod nvidia;
