//! What the library does, seen from outside. One program: each links LLVM.
#![allow(clippy::unwrap_used, reason = "tests end so")]

mod launch_arguments;
mod math;
mod pages;
