//! Images that a driver has loaded, and their functions.

use std::ffi::{CString, c_int, c_uint, c_void};
use std::fmt;
use std::ptr;
use std::sync::{Arc, Mutex, PoisonError};

use super::attributes::FunctionAttributes;
use super::context::{Context, Handle};
use super::error::DriverError;
use super::functions::{JitOption, LaunchConfiguration};
use super::library::Own;
use super::slice::DeviceSlice;

/// `CU_JIT_*` of `cuda.h`.
const MAX_REGISTERS: JitOption = 0;
const INFO_LOG_BUFFER: JitOption = 3;
const INFO_LOG_BUFFER_SIZE: JitOption = 4;
const ERROR_LOG_BUFFER: JitOption = 5;
const ERROR_LOG_BUFFER_SIZE: JitOption = 6;
const OPTIMIZATION_LEVEL: JitOption = 7;
const LOG_VERBOSE: JitOption = 12;
const GENERATE_LINE_INFO: JitOption = 13;

/// Room for each of the two logs of the driver's compiler. What is longer is cut by the driver.
const LOG_BYTES: usize = 64 << 10;

/// `CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES`.
const MAX_DYNAMIC_SHARED: u32 = 8;
/// `CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED`.
const NON_PORTABLE_CLUSTER: u32 = 14;

/// Drivers take an image without its size: zeros behind it end what they may read too far, and end PTX.
const PADDING: usize = 64;

/// What the driver's compiler for PTX is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct JitOptions {
    /// Most registers per thread.
    pub max_registers: Option<u32>,
    /// The level of optimisation, 0 to 4; the driver's default is 4.
    pub optimization: Option<u32>,
    /// Whether to keep the lines of the source for debuggers and profilers.
    pub line_info: bool,
}

/// What the driver's compiler said.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JitLog {
    /// Information and warnings: registers, spills.
    pub info: String,
    /// Errors.
    pub errors: String,
}

/// An image that the driver has loaded. It is unloaded when the value is dropped.
pub(crate) struct LoadedImage {
    context: Context,
    handle: Handle,
    /// The bytes, where the driver goes on using them: HIP's does, CUDA's has copied them.
    _bytes: Option<Vec<u8>>,
}

/// A kernel of a loaded image.
pub(crate) struct EntryPoint {
    image: Arc<LoadedImage>,
    handle: Handle,
    attributes: FunctionAttributes,
    /// Bytes of dynamic shared memory that a launch may ask for at present.
    dynamic_shared: Mutex<u32>,
}

impl LoadedImage {
    /// Loads machine code.
    ///
    /// The driver believes what it reads: the image is one that a reader of [`gpulower_image::image`] found sound.
    ///
    /// # Errors
    ///
    /// [`DriverError`].
    pub(crate) fn load(context: &Context, image: &[u8]) -> Result<Self, DriverError> {
        Self::load_with(context, image, &[])
    }

    /// Lets the driver compile PTX, and loads the result. The log comes with it, also where that fails.
    ///
    /// # Errors
    ///
    /// [`DriverError`].
    pub(crate) fn compile(context: &Context, ptx: &[u8], options: &JitOptions) -> (Result<Self, DriverError>, JitLog) {
        let mut info = vec![0u8; LOG_BYTES];
        let mut errors = vec![0u8; LOG_BYTES];
        // Values are passed in the place of pointers.
        let number = |value: usize| ptr::without_provenance_mut::<c_void>(value);
        let mut values = vec![
            (INFO_LOG_BUFFER, info.as_mut_ptr().cast::<c_void>()),
            (INFO_LOG_BUFFER_SIZE, number(LOG_BYTES)),
            (ERROR_LOG_BUFFER, errors.as_mut_ptr().cast::<c_void>()),
            (ERROR_LOG_BUFFER_SIZE, number(LOG_BYTES)),
            (LOG_VERBOSE, number(1)),
        ];
        if let Some(registers) = options.max_registers {
            values.push((MAX_REGISTERS, number(registers as usize)));
        }
        if let Some(level) = options.optimization {
            values.push((OPTIMIZATION_LEVEL, number(level as usize)));
        }
        if options.line_info {
            values.push((GENERATE_LINE_INFO, number(1)));
        }
        let result = Self::load_with(context, ptx, &values);
        let log = JitLog {
            info: log_text(&info),
            errors: log_text(&errors),
        };
        (result, log)
    }

    fn load_with(context: &Context, image: &[u8], options: &[(JitOption, *mut c_void)]) -> Result<Self, DriverError> {
        let mut padded = Vec::with_capacity(image.len() + PADDING);
        padded.extend_from_slice(image);
        padded.resize(image.len() + PADDING, 0);
        let (mut names, mut values): (Vec<JitOption>, Vec<*mut c_void>) = options.iter().copied().unzip();
        let entered = context.enter("loading a module")?;
        let mut handle = ptr::null_mut();
        // SAFETY: the image lives until the call returns, which is as long as the driver needs it, and ends in zeros; names and
        // values are as many as is said, and the buffers among them have the sizes among them.
        let code = unsafe {
            (entered.functions().module_load)(
                &raw mut handle,
                padded.as_ptr().cast(),
                names.len() as c_uint,
                names.as_mut_ptr(),
                values.as_mut_ptr(),
            )
        };
        entered.check(code)?;
        let kept = matches!(entered.own(), Own::Hip(..)).then_some(padded);
        Ok(Self {
            context: context.clone(),
            handle: Handle(handle),
            _bytes: kept,
        })
    }

    /// The context.
    #[must_use]
    pub(crate) fn context(&self) -> &Context {
        &self.context
    }

    /// `CUmodule` or `hipModule_t`, for other libraries.
    #[must_use]
    pub(crate) fn raw(&self) -> *mut c_void {
        self.handle.0
    }

    /// A variable of the image.
    ///
    /// # Errors
    ///
    /// [`DriverError`]; of the code 500 if there is none of that name.
    pub(crate) fn global(&self, name: &str) -> Result<DeviceSlice<'_>, DriverError> {
        let call = "looking a variable up";
        let name = c_name(call, name)?;
        let entered = self.context.enter(call)?;
        let (mut address, mut bytes) = (0, 0);
        // SAFETY: the pointers are valid for one write each, the module lives, and the name ends in a NUL.
        entered.check(unsafe {
            (entered.functions().module_global)(&raw mut address, &raw mut bytes, self.handle.0, name.as_ptr())
        })?;
        Ok(DeviceSlice::of(&self.context, address, bytes))
    }

    /// A kernel of the image.
    ///
    /// # Errors
    ///
    /// [`DriverError`]; of the code 500 if there is none of that name.
    pub(crate) fn entry_point(self: &Arc<Self>, name: &str) -> Result<EntryPoint, DriverError> {
        let call = "looking a kernel up";
        let name = c_name(call, name)?;
        let entered = self.context.enter(call)?;
        let functions = entered.functions();
        let mut handle = ptr::null_mut();
        // SAFETY: the pointer is valid for one write, the module lives, and the name ends in a NUL.
        entered.check(unsafe { (functions.module_function)(&raw mut handle, self.handle.0, name.as_ptr()) })?;
        if let Own::Cuda(cuda) = entered.own()
            && let Some(load) = cuda.load_function
        {
            // The driver puts this off to the first launch, which would wait for the device then.
            // SAFETY: the function lives as long as its module.
            entered.check(unsafe { load(handle) })?;
        }
        let attributes = FunctionAttributes::ask(|attribute| {
            let mut value = 0;
            // SAFETY: the pointer is valid for one write, and the function lives.
            entered.check(unsafe { (functions.function_attribute)(&raw mut value, attribute, handle) })?;
            Ok(value)
        })?;
        Ok(EntryPoint {
            image: Arc::clone(self),
            handle: Handle(handle),
            dynamic_shared: Mutex::new(attributes.dynamic_shared_bytes),
            attributes,
        })
    }
}

impl Drop for LoadedImage {
    fn drop(&mut self) {
        if let Some(entered) = self.context.enter_to_release("unloading a module") {
            // SAFETY: it is ours, everything that used it held it, and this is its end.
            entered.log(unsafe { (entered.functions().module_unload)(self.handle.0) });
        }
    }
}

impl fmt::Debug for LoadedImage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LoadedImage({:p} of {:?})", self.raw(), self.context.device())
    }
}

impl EntryPoint {
    /// The context.
    #[must_use]
    pub(crate) fn context(&self) -> &Context {
        &self.image.context
    }

    /// `CUfunction` or `hipFunction_t`, for other libraries.
    #[must_use]
    pub(crate) fn raw(&self) -> *mut c_void {
        self.handle.0
    }

    /// What the driver says about it, as it was loaded.
    #[must_use]
    pub(crate) fn attributes(&self) -> &FunctionAttributes {
        &self.attributes
    }

    /// Sees to it that a launch may ask for so many bytes of dynamic shared memory.
    ///
    /// # Errors
    ///
    /// [`DriverError`].
    pub(crate) fn allow_dynamic_shared(&self, bytes: u32) -> Result<(), DriverError> {
        let mut allowed = self.dynamic_shared.lock().unwrap_or_else(PoisonError::into_inner);
        if bytes <= *allowed {
            return Ok(());
        }
        // The limit is only ever raised, so that no launch of another thread finds it too low.
        self.set_attribute("raising the limit of dynamic shared memory", MAX_DYNAMIC_SHARED, bytes)?;
        *allowed = bytes;
        Ok(())
    }

    /// Allows clusters of more than the eight blocks that every device with clusters has.
    ///
    /// # Errors
    ///
    /// [`DriverError`].
    pub(crate) fn allow_large_clusters(&self) -> Result<(), DriverError> {
        self.set_attribute("allowing clusters of more than 8 blocks", NON_PORTABLE_CLUSTER, 1)
    }

    /// HIP has no such attributes, and needs none: it allows what the device has.
    fn set_attribute(&self, call: &'static str, attribute: u32, value: u32) -> Result<(), DriverError> {
        let entered = self.context().enter(call)?;
        match entered.own() {
            Own::Cuda(cuda) => {
                let value = c_int::try_from(value).unwrap_or(c_int::MAX);
                // SAFETY: the function lives as long as its module, which this holds.
                entered.check(unsafe { (cuda.set_function_attribute)(self.handle.0, attribute, value) })
            }
            Own::Hip(..) => Ok(()),
        }
    }

    /// How many of its blocks fit on a multiprocessor at once.
    ///
    /// # Errors
    ///
    /// [`DriverError`].
    pub(crate) fn blocks_per_multiprocessor(&self, threads: u32, dynamic_shared: u32) -> Result<u32, DriverError> {
        let entered = self.context().enter("the occupancy of a kernel")?;
        let mut blocks = 0;
        let threads = c_int::try_from(threads).unwrap_or(c_int::MAX);
        // SAFETY: the pointer is valid for one write, and the function lives.
        entered.check(unsafe {
            (entered.functions().occupancy)(&raw mut blocks, self.handle.0, threads, dynamic_shared as usize)
        })?;
        Ok(u32::try_from(blocks).unwrap_or(0))
    }

    /// How many clusters of a launch fit on the device at once; 0 if not even one does.
    pub(super) fn clusters_on_device(&self, configuration: &LaunchConfiguration) -> Result<u32, DriverError> {
        let entered = self.context().enter("the occupancy of a kernel in clusters")?;
        let Own::Cuda(cuda) = entered.own() else {
            return Ok(0);
        };
        let Some(function) = cuda.occupancy_clusters else {
            return Err(DriverError::Unsupported {
                vendor: entered.vendor(),
                what: "say how many clusters fit",
                needs: "that takes CUDA 11.8",
            });
        };
        let mut clusters = 0;
        // SAFETY: the pointers are valid, and the function lives.
        entered.check(unsafe { function(&raw mut clusters, self.handle.0, configuration) })?;
        Ok(u32::try_from(clusters).unwrap_or(0))
    }
}

impl fmt::Debug for EntryPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EntryPoint({:p} of {:?})", self.raw(), self.image)
    }
}

/// The text of a log up to its NUL.
fn log_text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(bytes.get(..end).unwrap_or_default())
        .trim()
        .to_owned()
}

/// A name as drivers take it.
fn c_name(what: &'static str, name: &str) -> Result<CString, DriverError> {
    CString::new(name).map_err(|_| DriverError::Range {
        what,
        problem: format!("the name {name:?} has a NUL in it"),
    })
}
