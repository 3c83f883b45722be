//! gpulower
#![deny(unsafe_code)]

pub mod bridge;
pub mod device;
pub mod options;
pub mod serialize;
pub mod stage;
pub mod target;
pub mod toolkit;
