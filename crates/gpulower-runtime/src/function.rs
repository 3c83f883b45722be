//! Functions: kernels that are loaded, and their launches.

use std::fmt;
use std::sync::Arc;

use super::arguments::Arguments;
use super::kernel::KernelInterface;
use super::launch_error::LaunchError;
use super::limits::{self, PORTABLE_CLUSTER, volume};
use crate::bridge::driver::{Context, DriverError, EntryPoint, FunctionAttributes, Launch, LaunchShape};

/// `CUDA_ERROR_INVALID_CLUSTER_SIZE`.
const INVALID_CLUSTER_SIZE: i32 = 912;

/// A kernel of a module. Clones share it, and keep the module loaded.
///
/// It is `Send` and `Sync`: two threads may launch one function.
#[derive(Clone)]
pub struct Function(Arc<FunctionInner>);

pub(super) struct FunctionInner {
    entry: EntryPoint,
    kernel: KernelInterface,
}

impl FunctionInner {
    pub(super) const fn new(entry: EntryPoint, kernel: KernelInterface) -> Self {
        Self { entry, kernel }
    }
}

impl Function {
    pub(super) const fn of(inner: Arc<FunctionInner>) -> Self {
        Self(inner)
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.kernel.name
    }

    /// Its parameters and requirements, as the image states them.
    #[must_use]
    pub fn kernel(&self) -> &KernelInterface {
        &self.0.kernel
    }

    /// What the driver says about it: threads, registers, shared and local memory, architectures.
    #[must_use]
    pub fn attributes(&self) -> &FunctionAttributes {
        self.0.entry.attributes()
    }

    /// The context.
    #[must_use]
    pub fn context(&self) -> &Context {
        self.0.entry.context()
    }

    /// `CUfunction` or `hipFunction_t`, for other libraries.
    #[must_use]
    pub fn raw(&self) -> *mut std::ffi::c_void {
        self.0.entry.raw()
    }

    /// Bytes of dynamic shared memory that a launch may ask for at most: what the device has for a block, less what the kernel
    /// declares.
    #[must_use]
    pub fn dynamic_shared_at_most(&self) -> u32 {
        limits::dynamic_shared_at_most(self.attributes(), self.context().limits())
    }

    /// How many of its blocks fit on a multiprocessor at once; 0 if not even one does.
    ///
    /// # Errors
    ///
    /// [`DriverError`].
    pub fn blocks_per_multiprocessor(&self, threads: u32, dynamic_shared: u32) -> Result<u32, DriverError> {
        if dynamic_shared > self.dynamic_shared_at_most() {
            return Ok(0);
        }
        self.0.entry.allow_dynamic_shared(dynamic_shared)?;
        self.0.entry.blocks_per_multiprocessor(threads, dynamic_shared)
    }

    /// A launch that fits the kernel and the device, to be [enqueued](Launch::enqueue).
    ///
    /// Everything is checked that can be: the number and sizes of the arguments, the shapes, the shared memory. Beyond what a
    /// kernel may use by default, the limit of dynamic shared memory is raised; so is that of the size of clusters. Nothing
    /// waits for the device.
    ///
    /// # Errors
    ///
    /// [`LaunchError`] with what is wanted and what there is.
    pub fn launch<'a>(&'a self, shape: &LaunchShape, arguments: &'a Arguments) -> Result<Launch<'a>, LaunchError> {
        let FunctionInner { entry, kernel } = &*self.0;
        let device = entry.context().limits();
        arguments.check(kernel)?;
        limits::check(shape, kernel, entry.attributes(), device)?;
        if shape.dynamic_shared > 0 {
            entry.allow_dynamic_shared(shape.dynamic_shared)?;
        }
        let mut shape = *shape;
        if kernel.cluster.is_some() {
            // What the kernel fixes, the launch need not repeat.
            shape.cluster = None;
        }
        let threads = volume(shape.block);
        if let Some(cluster) = shape.cluster.filter(|&cluster| volume(cluster) > PORTABLE_CLUSTER) {
            entry.allow_large_clusters()?;
            let fit = match entry.clusters_that_fit(&shape) {
                Err(error) if error.status().is_some_and(|status| status.code == INVALID_CLUSTER_SIZE) => 0,
                other => other?,
            };
            if fit == 0 {
                return Err(LaunchError::ClusterDoesNotFit {
                    kernel: kernel.name.clone(),
                    cluster,
                    threads,
                    dynamic: shape.dynamic_shared,
                });
            }
        }
        if shape.cooperative {
            let threads = u32::try_from(threads).unwrap_or(u32::MAX);
            let fit = entry.blocks_per_multiprocessor(threads, shape.dynamic_shared)?;
            limits::check_together(&shape, kernel, fit, device)?;
        }
        Ok(Launch::new(entry, shape, arguments.bytes()))
    }
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Function")
            .field("name", &self.0.kernel.name)
            .field("entry", &self.0.entry)
            .finish_non_exhaustive()
    }
}
