//! Loading and launching: devices, memory, streams, modules and kernels of NVIDIA and AMD, through drivers that are loaded at
//! run time.
//!
//! ```no_run
//! use gpulower_runtime::{Arguments, Driver, LaunchShape, LoadOptions, MemRef, Module};
//!
//! let context = Driver::cuda()?.device(0)?.context()?;
//! let stream = context.stream()?;
//!
//! // A cubin, PTX, a fat binary, ...: what the device takes of it is loaded.
//! let module = Module::load(&context, "saxpy.fatbin", &std::fs::read("saxpy.fatbin")?, &LoadOptions::default())?;
//! let saxpy = module.function("saxpy")?;
//!
//! let (x, y) = (context.allocate(4 * 1000)?, context.allocate(4 * 1000)?);
//! x.upload(&[1.0f32; 1000], &stream)?;
//! y.upload(&[2.0f32; 1000], &stream)?;
//!
//! let mut arguments = Arguments::new();
//! arguments.value(3.0f32).memref(&MemRef::of::<f32>(&x, &[1000])?).memref(&MemRef::of::<f32>(&y, &[1000])?);
//! let launch = saxpy.launch(&LaunchShape::new([4, 1, 1], [256, 1, 1]), &arguments)?;
//! // SAFETY: the kernel stays within the two memrefs, which live until the download below is done.
//! unsafe { launch.enqueue(&stream)? };
//!
//! let mut result = [0.0f32; 1000];
//! y.download(&mut result, &stream)?;
//! assert_eq!(result, [5.0; 1000]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | to | see |
//! |---|---|
//! | find a driver and its devices | [`Driver`], [`Device`] |
//! | learn what a device allows | [`Device::limits`] |
//! | enqueue work, and order it | [`Stream`], [`Event`] |
//! | hold memory | [`Context::allocate`], [`Stream::allocate`], [`Context::allocate_pinned`], [`Context::register`] |
//! | copy without waiting | [`DeviceSlice::upload_pinned`], [`Transfer`] |
//! | load images | [`Module::load`], [`PtxFallback`]; `gpulower`'s `Artifact::load` |
//! | know which image is taken, without a device | [`choose()`] |
//! | launch | [`Function::launch`], [`Launch::enqueue`] |
//! | check a launch, without a device | [`Arguments::check`], [`limits::check`] |
//! | know that a kernel failed | [`DriverError::ContextLost`], [`Fault`], [`Context::reset`] |
//!
//! Everything is `Send` and `Sync`, is released when it is dropped, and may be dropped in any order. Nothing here waits for the
//! device but what says so. `docs/runtime.md` tells more.

mod arguments;
mod bridge;
mod choose;
mod cubin_layout;
mod function;
mod kernel;
mod launch_error;
pub mod limits;
mod memref;
mod module;
mod module_error;

#[cfg(test)]
mod tests;

pub use crate::bridge::driver::{
    Context, Device, DeviceBuffer, DeviceLimits, DeviceSlice, Driver, DriverError, DriverLoadError, Event, Fault,
    FunctionAttributes, JitLog, JitOptions, Launch, LaunchShape, PinnedBuffer, Registration, Status, Stream,
    TensorShape, Transfer,
};
#[doc(hidden)]
pub use crate::bridge::vendor_library;
/// What may be copied as bytes is a matter of its traits; the `half` crate and others implement them.
pub use bytemuck;

pub use arguments::Arguments;
pub use choose::{ChosenImage, PtxFallback, choose};
pub use function::Function;
pub use kernel::KernelInterface;
pub use launch_error::LaunchError;
pub use memref::MemRef;
pub use module::{LoadOptions, Module};
pub use module_error::ModuleError;
