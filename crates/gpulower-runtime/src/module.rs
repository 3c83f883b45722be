//! Modules: images that are loaded, and what is in them.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::choose::{ChosenImage, PtxFallback, choose};
use super::function::{Function, FunctionInner};
use super::kernel::KernelInterface;
use super::module_error::ModuleError;
use crate::bridge::driver::{Context, DeviceSlice, DriverError, JitLog, JitOptions, LoadedImage};

/// `CUDA_ERROR_NOT_FOUND`, `hipErrorNotFound`.
const NOT_FOUND: i32 = 500;

/// How an image is chosen and loaded.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct LoadOptions {
    /// Whether the driver may compile PTX.
    pub ptx: PtxFallback,
    /// What its compiler is told. What is left open is what the container says, or the driver's default.
    pub jit: JitOptions,
}

/// An image that is loaded into a context. Clones share it; it is unloaded when the last of them and the last of its functions
/// is dropped.
///
/// It is `Send` and `Sync`.
#[derive(Clone)]
pub struct Module(Arc<Inner>);

struct Inner {
    name: String,
    image: String,
    from_ptx: bool,
    log: JitLog,
    kernels: Vec<KernelInterface>,
    loaded: Arc<LoadedImage>,
    /// The functions that are in use: whatever is set for one is set for the driver's only one.
    functions: Mutex<HashMap<String, Weak<FunctionInner>>>,
}

impl Module {
    /// Loads what the context's device takes of `bytes`: a cubin, PTX, an hsaco, or a container of them. `name` is what messages
    /// call them.
    ///
    /// # Errors
    ///
    /// [`ModuleError`].
    pub fn load(context: &Context, name: &str, bytes: &[u8], options: &LoadOptions) -> Result<Self, ModuleError> {
        let device = context.device();
        let chosen = choose(name, bytes, device.target()?, device.driver().newest_ptx(), options.ptx)?;
        Self::load_chosen(context, name, chosen, options)
    }

    fn load_chosen(
        context: &Context,
        name: &str,
        chosen: ChosenImage,
        options: &LoadOptions,
    ) -> Result<Self, ModuleError> {
        let from_ptx = chosen.is_ptx();
        let (result, log) = if from_ptx {
            let jit = JitOptions {
                max_registers: options.jit.max_registers.or(chosen.jit.max_registers),
                optimization: options.jit.optimization.or(chosen.jit.optimization),
                line_info: options.jit.line_info || chosen.jit.line_info,
            };
            LoadedImage::compile(context, &chosen.bytes, &jit)
        } else {
            (LoadedImage::load(context, &chosen.bytes), JitLog::default())
        };
        let loaded = result.map_err(|source| match source {
            // Neither is about the image.
            source @ (DriverError::ContextLost { .. }
            | DriverError::ContextReset { .. }
            | DriverError::OutOfMemory { .. }
            | DriverError::ShuttingDown { .. }) => ModuleError::Driver(source),
            source if from_ptx => ModuleError::Jit {
                name: name.to_owned(),
                image: chosen.name.clone(),
                log: Box::new(log.clone()),
                source: Box::new(source),
            },
            source => ModuleError::Refused {
                name: name.to_owned(),
                image: chosen.name.clone(),
                source: Box::new(source),
            },
        })?;
        Ok(Self(Arc::new(Inner {
            name: name.to_owned(),
            image: chosen.name,
            from_ptx,
            log,
            kernels: chosen.kernels,
            loaded: Arc::new(loaded),
            functions: Mutex::new(HashMap::new()),
        })))
    }

    /// What messages call it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The image that was loaded, in words: `image 2, cubin for sm_90`.
    #[must_use]
    pub fn image(&self) -> &str {
        &self.0.image
    }

    /// Whether the driver compiled it from PTX.
    #[must_use]
    pub fn is_from_ptx(&self) -> bool {
        self.0.from_ptx
    }

    /// What the driver's compiler said; empty for machine code.
    #[must_use]
    pub fn jit_log(&self) -> &JitLog {
        &self.0.log
    }

    /// The context.
    #[must_use]
    pub fn context(&self) -> &Context {
        self.0.loaded.context()
    }

    /// Its kernels, as the image describes them.
    #[must_use]
    pub fn kernels(&self) -> &[KernelInterface] {
        &self.0.kernels
    }

    /// `CUmodule` or `hipModule_t`, for other libraries.
    #[must_use]
    pub fn raw(&self) -> *mut std::ffi::c_void {
        self.0.loaded.raw()
    }

    /// A kernel, to be launched any number of times. This looks it up and asks the driver about it; launches do not.
    ///
    /// # Errors
    ///
    /// [`ModuleError::NoSuchKernel`], [`ModuleError::KernelLeftOut`], or the driver failed.
    pub fn function(&self, name: &str) -> Result<Function, ModuleError> {
        let inner = &self.0;
        let mut functions = inner.functions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(function) = functions.get(name).and_then(Weak::upgrade) {
            return Ok(Function::of(function));
        }
        let kernel = inner.kernels.iter().find(|kernel| kernel.name == name);
        let Some(kernel) = kernel else {
            return Err(ModuleError::NoSuchKernel {
                module: inner.name.clone(),
                kernel: name.to_owned(),
                kernels: inner.kernels.iter().map(|kernel| kernel.name.clone()).collect(),
            });
        };
        let entry = inner.loaded.entry_point(name).map_err(|error| match error.status() {
            Some(status) if status.code == NOT_FOUND => ModuleError::KernelLeftOut {
                module: inner.name.clone(),
                kernel: name.to_owned(),
            },
            _ => error.into(),
        })?;
        let function = Arc::new(FunctionInner::new(entry, kernel.clone()));
        functions.insert(name.to_owned(), Arc::downgrade(&function));
        Ok(Function::of(function))
    }

    /// A variable of the module that is visible outside of it, as memory of the device.
    ///
    /// # Errors
    ///
    /// [`ModuleError::NoSuchVariable`], or the driver failed.
    pub fn global(&self, name: &str) -> Result<DeviceSlice<'_>, ModuleError> {
        self.0.loaded.global(name).map_err(|error| match error.status() {
            Some(status) if status.code == NOT_FOUND => ModuleError::NoSuchVariable {
                module: self.0.name.clone(),
                variable: name.to_owned(),
            },
            _ => error.into(),
        })
    }
}

impl fmt::Debug for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Module")
            .field("name", &self.0.name)
            .field("image", &self.0.image)
            .field("loaded", &self.0.loaded)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "module_tests.rs"]
mod tests;
