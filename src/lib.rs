//! Lowers MLIR modules with `gpu` dialect kernels to machine code for NVIDIA and AMD GPUs, in process.
//!
//! In: a [`melior`] module with `gpu.module`s, or MLIR, device LLVM IR or PTX in memory. Out: PTX, a cubin, a fat binary,
//! AMDGPU assembly, an object or an hsaco, or MLIR and LLVM IR from the stages between, with the resources that each
//! kernel uses. Device libraries (libdevice, ocml, ockl, the user's own) are linked on the way; a symbol that none of them
//! defines is an error in every format.
//!
//! ```no_run
//! use gpulower::{Compiler, Emit, Search, Target, Toolkit};
//!
//! // The library reads no environment: a program that wants CUDA_HOME and its like to count hands them in.
//! let search = Search::from_variables(|name| std::env::var_os(name));
//! let compiler = Compiler::builder().toolkit(Toolkit::discover(&search)).build();
//!
//! let targets = Target::parse_list("sm_90,gfx942")?;
//! let source = std::fs::read("kernels.mlir")?;
//! for artifact in compiler.compile_source("kernels.mlir", &source, &targets, Emit::Binary)?.artifacts {
//!     let name = format!("{}.{}.{}", artifact.module, artifact.target_names(), artifact.format.extension());
//!     std::fs::write(name, &artifact.bytes)?;
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Where to start
//!
//! | to | see |
//! |---|---|
//! | compile a file, or bytes | [`Compiler::compile_source`] |
//! | compile a module of your own context | [`Compiler::compile`], and [`compiler::prepare`] for the context's dialects |
//! | compile an LLVM module | [`Compiler::compile_llvm`] |
//! | run MLIR's passes on the way to the `gpu` dialect; see what came out, and what it launches | [`compiler::run_pipeline`], [`compiler::symbols`], [`compiler::launches()`] |
//! | put all targets of a module into one artifact | [`Emit::Fatbin`], [`Emit::Bundle`], [`Emit::Offload`] |
//! | join modules and objects into one image | [`Options::device_link`], [`serialize::device_link::link`] |
//! | put images from files into one container | [`pack::Pack`] |
//! | see what would be done | [`Compiler::plan_sources`] |
//! | name a chip | [`Target`], `"gfx90a:xnack+".parse()` |
//! | set an option | [`Options`], by field or by name with [`Options::set`] |
//! | say where CUDA and ROCm are | [`Search`], [`Toolkit`] |
//! | read registers, shared memory, spills, code size | [`Artifact::kernels`], [`image::resource::KernelResources`] |
//! | learn which tool was used, and why not another | [`Artifact::decisions`] |
//! | look at, or replace, what a stage made | [`StageListener`]; as files, [`stage_files`] |
//! | compile what may crash a compiler | [`Options::isolation`], [`worker`]; in process, [`contain_crashes`] |
//! | end a compilation early | [`Options::time_limit`], [`Compiler::with_cancellation`] |
//! | use the MLIR passes in a pass manager | [`passes::register`] |
//! | read a cubin, hsaco, fat binary, bundle or offload binary | [`image`], [`container`] |
//! | load and launch on a GPU of this machine | [`runtime`] |
//! | add, replace and launch kernels while a program runs | [`session`] |
//! | run a whole program, host code and kernels | [`jit`] |
//! | say what is in a file, and what a device loads of it | [`inspect::inspect()`], [`inspect::device::answer`] |
//! | say which clang registers which kernels of a host file | [`offload::check::check()`] |
//! | understand a failure | [`Failure`], [`Error`]: the stage, module, target, kernels, [`Location`] and [`ErrorKind`] |
//!
//! The programs `gpulower` and `gpulower-opt` stand on this library. `examples/` in the repository holds programs that
//! compile files and modules, and watch stages; `docs/` describes passes, options, targets and errors.
//!
//! # Layers
//!
//! A module uses those below it, never one above.
//!
//! | layer | modules |
//! |---|---|
//! | both | [`session`]: kernels that are compiled and loaded one by one; [`jit`]: whole programs |
//! | adaptors | [`passes`]: MLIR passes that call the compiler; [`runtime`]: loading and launching |
//! | export | [`offload`]: host code that launches kernels, for a compiler elsewhere to finish |
//! | one compilation | [`compiler`]: modules × targets, threads, results in order |
//! | stages | `device`: MLIR to PTX or an object; [`serialize`]: machine code |
//! | values | [`toolkit`], [`cache`], [`options`], [`stage_files`], `stage`, `report`, `error` |
//! | foreign code | `bridge`: all `unsafe` code and all C++, behind safe functions |
//! | readers and writers, without LLVM | [`pack`], [`inspect`], [`container`], [`image`], [`target`] |
//!
//! # What it leaves alone
//!
//! The library does not print, exit, abort or read environment variables, and starts no process but NVIDIA's `ptxas`,
//! where that is the PTX compiler in use, and the [`worker`]s that you ask for. It logs through
//! [`tracing`](https://docs.rs/tracing). A [`Compiler`] is `Send` and `Sync`, and two of them share nothing but a [`cache`]
//! that you give to both; MLIR's and LLVM's registries are, as ever, one for each process.
//!
//! # Building
//!
//! Building needs LLVM, MLIR and lld 22, which are linked statically; `MLIR_SYS_220_PREFIX`, `LLVM_SYS_221_PREFIX` and
//! `TABLEGEN_220_PREFIX` name their prefix. Nothing of NVIDIA's or AMD's is linked. [`melior`] and [`inkwell`] are
//! re-exported, since a program that shares contexts and modules with this library needs the same versions of them.
//!
//! The last of these layers is the crate `gpulower-image`, and [`runtime`] is `gpulower-runtime`: neither needs LLVM or a C++
//! compiler.
mod bridge;
pub mod cache;
pub mod compiler;
mod device;
mod error;
mod interrupt;
pub mod jit;
pub mod offload;
pub mod options;
pub mod passes;
mod progress;
mod read_file;
mod report;
pub mod serialize;
pub mod session;
mod shell;
mod stage;
pub mod stage_files;
pub mod toolkit;

pub use gpulower_image::{
    FileKind, ReadError, ReadProblem, Target, container, image, inspect, occupancy, pack, target,
};
pub use gpulower_runtime as runtime;
pub use inkwell;
pub use melior;

pub use crate::{
    bridge::{
        contain::{LlvmError, contain_crashes},
        exhausted::{ReservingAllocator, fail_in_words, output_was_closed},
        opt_main::{is_llvm_option, opt_main},
    },
    compiler::{Compiler, CompilerBuilder, Emit, worker, worker::Worker},
    device::UnresolvedSymbol,
    error::{Error, ErrorKind, Failure, Location, Note},
    interrupt::CancellationToken,
    options::{Isolation, Library, Options},
    progress::{Progress, ProgressCallback},
    read_file::{MOST_BYTES, read_all, read_file},
    report::{Artifact, Compilation, Decision, Format, Image, InputId, KernelSignature, Warning},
    shell::quoted as shell_quoted,
    stage::{Checkpoint, Stage, StageListener, StageTime, Subject},
    toolkit::{Search, Toolkit},
};

#[cfg(doctest)]
#[doc = include_str!("bridge/misuse.md")]
mod misuse {}
