//! The drivers of GPUs, CUDA's and HIP, behind one interface: devices, contexts, streams, events, memory, loaded images.
//!
//! Both are loaded at run time and never linked. `cudarc`, which wraps CUDA's alone, ends the process with a panic where the
//! library or one of its functions is absent; here that is a [`DriverLoadError`].
//!
//! What a value stands for is given back when it is dropped, in whatever order: everything holds what it was made from. A call
//! that fails leaves nothing behind. Where giving back fails nobody can be told, so that it is logged. After a
//! [`Context::reset`] the values of the old context do nothing any more.
//!
//! Streams, events, modules and contexts are handles that the drivers let any thread use: they are `Send` and `Sync`. Only what
//! enters a context (`Context::enter`) is tied to a thread, and lasts for one call.

mod attributes;
mod context;
mod device;
mod entered;
mod error;
mod event;
mod functions;
mod launch;
mod library;
mod loaded;
mod memory;
mod module;
mod pinned;
mod raw;
mod slice;
mod status;
mod stream;
mod transfer;

pub use attributes::{DeviceLimits, FunctionAttributes};
pub use context::Context;
pub use device::Device;
pub use error::{DriverError, DriverLoadError};
pub use event::Event;
pub(crate) use launch::ArgumentBytes;
pub use launch::{Launch, LaunchShape};
pub use loaded::Driver;
pub use memory::DeviceBuffer;
pub(crate) use module::{EntryPoint, LoadedImage};
pub use module::{JitLog, JitOptions};
pub use pinned::PinnedBuffer;
pub use raw::{Registration, TensorShape};
pub use slice::DeviceSlice;
pub use status::{Fault, Status};
pub use stream::Stream;
pub use transfer::Transfer;
