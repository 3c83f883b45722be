//! What the library does, seen from outside. One program: each links LLVM.

mod launch_arguments;
mod math;
