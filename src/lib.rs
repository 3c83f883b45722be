//! gpulower
#![deny(unsafe_code)]

pub mod bridge;
pub mod compiler;
pub mod device;
pub mod error;
pub mod options;
pub mod passes;
pub mod report;
pub mod serialize;
pub mod stage;
pub mod target;
pub mod toolkit;

pub use crate::{
    compiler::{Compiler, CompilerBuilder, Emit},
    error::{Cause, Error, Failure},
    options::{Library, Options},
    report::{Artifact, Compilation, Decision, Format, Warning},
    stage::{Checkpoint, Stage, StageListener, Subject},
    target::Target,
    toolkit::{Search, Toolkit},
};
