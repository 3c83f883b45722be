//! The C library: `libgpulower.so` and `gpulower.h`.
//!
//! Bytes in, bytes out; no object of LLVM or MLIR crosses. `include/gpulower.h` is made from [`bridge`], where the
//! functions and their documentation are, and `docs/c.md` is the introduction.
//!
//! | module | owns |
//! |---|---|
//! | `bridge` | the functions, and everything that follows a pointer |
//! | `handle` | which handles live, and what they stand for |
//! | `config`, `request` | what is set by key and value |
//! | `operations` | the calls that do the work |
//! | `outcome`, `problem` | results and errors as C reads them |
//! | `log` | the log |

mod bridge;
mod config;
mod handle;
mod log;
mod operations;
mod outcome;
mod problem;
mod request;

/// Small allocations of ours that fail while LLVM works get its reserve, and so end in an error.
#[global_allocator]
static ALLOCATOR: gpulower::ReservingAllocator = gpulower::ReservingAllocator;
