//! The native half of the Python package `gpulower`: values that Python can hold go in and come out, text as JSON. What a user
//! sees is written in Python, in `python/gpulower`.

mod compiler;
mod failure;
mod files;
mod parameters;
mod program;
mod report;
mod waiting;

#[global_allocator]
static ALLOCATOR: gpulower::ReservingAllocator = gpulower::ReservingAllocator;

/// Nothing in it is for users: `gpulower/_native.pyi` declares it for the package.
// No object is changed once it is made, so that it needs no lock of the interpreter.
#[pyo3::pymodule(gil_used = false)]
mod _native {
    #[pymodule_export]
    use super::{
        compiler::{Compiler, Token},
        failure::Failure,
        files::{cache_clear, cache_usage, inspect, occupancy, pack},
        parameters::parameters,
        program::{main, opt_main, option_table, set_host, worker},
        waiting::{forget_work, working},
    };
}
