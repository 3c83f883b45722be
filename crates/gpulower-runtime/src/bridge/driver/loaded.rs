//! The driver of one vendor, loaded and initialised.

use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, Weak};

use super::context::ContextInner;
use super::device::Device;
use super::error::{DriverError, DriverLoadError};
use super::functions::{Code, Functions};
use super::library::{self, Api, Own};
use super::status::{Fault, SUCCESS, Status, code};
use gpulower_image::target::{CudaRelease, PtxIsa, Vendor};

/// The driver of one vendor, loaded and initialised. It stays loaded for the life of the process.
///
/// Clones share one driver. It is `Send` and `Sync`: CUDA's driver API and HIP may be called from any thread.
#[derive(Clone)]
pub struct Driver(Arc<Inner>);

struct Inner {
    vendor: Vendor,
    path: PathBuf,
    version: (u32, u32),
    api: Api,
    /// The primary contexts that are in use, by device: there is one of each in a process.
    primary: Mutex<HashMap<u32, Weak<ContextInner>>>,
}

/// The drivers that were loaded from where they usually are.
static LOADED: [OnceLock<Driver>; 2] = [OnceLock::new(), OnceLock::new()];

impl Driver {
    /// NVIDIA's driver.
    ///
    /// # Errors
    ///
    /// [`DriverLoadError`].
    pub fn cuda() -> Result<Self, DriverLoadError> {
        Self::load(Vendor::Nvidia)
    }

    /// AMD's HIP.
    ///
    /// # Errors
    ///
    /// [`DriverLoadError`].
    pub fn hip() -> Result<Self, DriverLoadError> {
        Self::load(Vendor::Amd)
    }

    /// The driver of a vendor, from where it usually is. Once it was loaded, all calls give the same.
    ///
    /// # Errors
    ///
    /// [`DriverLoadError`]. A later call tries again.
    pub fn load(vendor: Vendor) -> Result<Self, DriverLoadError> {
        let [nvidia, amd] = &LOADED;
        let place = match vendor {
            Vendor::Nvidia => nvidia,
            Vendor::Amd => amd,
        };
        if let Some(driver) = place.get() {
            return Ok(driver.clone());
        }
        // SAFETY: the driver's names, in the places that the system's administrator fills. A program that cannot trust the
        // driver of its machine cannot use the GPU.
        let driver = unsafe { Self::load_from(vendor, &library::places(vendor)) }?;
        // Another thread may have been faster: its driver is everybody's, for contexts are kept there.
        Ok(place.get_or_init(|| driver).clone())
    }

    /// The first of `places` that can be loaded: paths, or names that the dynamic loader looks for.
    ///
    /// # Errors
    ///
    /// [`DriverLoadError`].
    ///
    /// # Safety
    ///
    /// What is found there is the vendor's driver: its constructors run, and functions are called by their names.
    pub unsafe fn load_from(vendor: Vendor, places: &[PathBuf]) -> Result<Self, DriverLoadError> {
        // SAFETY: the caller's contract.
        let (library, path) = unsafe { library::open(vendor, places) }?;
        let api = library::api(&library, vendor)
            .map_err(|missing| library::why_missing(&library, vendor, &path, missing.0))?;
        // The driver starts threads of its own: it is never unloaded.
        std::mem::forget(library);
        let mut driver = Inner {
            vendor,
            path,
            version: (0, 0),
            api,
            primary: Mutex::new(HashMap::new()),
        };
        driver.start()?;
        Ok(Self(Arc::new(driver)))
    }

    /// Whose it is.
    #[must_use]
    pub fn vendor(&self) -> Vendor {
        self.0.vendor
    }

    /// The library, as it was found.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// The newest release of CUDA that the driver supports, or the release of ROCm that it belongs to: (13, 0).
    #[must_use]
    pub fn version(&self) -> (u32, u32) {
        self.0.version
    }

    /// The newest PTX ISA that the driver reads; `None` for AMD's.
    #[must_use]
    pub fn newest_ptx(&self) -> Option<PtxIsa> {
        let (major, minor) = self.0.version;
        match self.0.vendor {
            Vendor::Nvidia => CudaRelease::new(u16::try_from(major).ok()?, u16::try_from(minor).ok()?).newest_ptx(),
            Vendor::Amd => None,
        }
    }

    /// The number of devices that this process may use, at least one.
    ///
    /// # Errors
    ///
    /// [`DriverError`].
    pub fn device_count(&self) -> Result<u32, DriverError> {
        let mut count = 0;
        // SAFETY: the pointer is valid for one write.
        let code = unsafe { (self.functions().device_count)(&raw mut count) };
        self.check("the number of devices", code)?;
        Ok(u32::try_from(count).unwrap_or(0))
    }

    /// A device by its index, which counts from 0 in the driver's order. Environment variables such as
    /// `CUDA_VISIBLE_DEVICES` change the order, for all libraries alike.
    ///
    /// # Errors
    ///
    /// [`DriverError::NoSuchDevice`], or the driver failed.
    pub fn device(&self, index: u32) -> Result<Device, DriverError> {
        let count = self.device_count()?;
        let ordinal = c_int::try_from(index).ok().filter(|_| index < count);
        let Some(ordinal) = ordinal else {
            return Err(DriverError::NoSuchDevice {
                vendor: self.0.vendor,
                index,
                count,
            });
        };
        let mut number = 0;
        // SAFETY: the pointer is valid for one write.
        let code = unsafe { (self.functions().device)(&raw mut number, ordinal) };
        self.check("looking a device up", code)?;
        Ok(Device::new(self.clone(), index, number))
    }

    /// All devices, in the driver's order.
    ///
    /// # Errors
    ///
    /// [`DriverError`].
    pub fn devices(&self) -> Result<Vec<Device>, DriverError> {
        (0..self.device_count()?).map(|index| self.device(index)).collect()
    }

    pub(super) fn functions(&self) -> &Functions {
        &self.0.api.functions
    }

    /// The primary contexts that are in use, by device.
    pub(super) fn primary_contexts(&self) -> &Mutex<HashMap<u32, Weak<ContextInner>>> {
        &self.0.primary
    }

    pub(super) fn own(&self) -> &Own {
        &self.0.api.own
    }

    /// Whether both are the same driver.
    pub(super) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// What a code means; `Ok` for success.
    pub(super) fn check(&self, call: &'static str, code: Code) -> Result<(), DriverError> {
        match code {
            SUCCESS => Ok(()),
            _ => Err(failure(call, self.0.status(code))),
        }
    }
}

/// The error for a status that is not success.
pub(super) fn failure(call: &'static str, status: Status) -> DriverError {
    match status.code {
        code::OUT_OF_MEMORY => DriverError::OutOfMemory {
            call,
            bytes: None,
            free: None,
            status,
        },
        code::DEINITIALIZED => DriverError::ShuttingDown { call, status },
        code => match Fault::of_code(code) {
            Some(fault) => DriverError::ContextLost { call, fault, status },
            None => DriverError::Failed { call, status },
        },
    }
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver")
            .field("vendor", &self.0.vendor)
            .field("path", &self.0.path)
            .field("version", &self.0.version)
            .finish_non_exhaustive()
    }
}

impl Inner {
    /// Initialises the driver, and asks for its version.
    fn start(&mut self) -> Result<(), DriverLoadError> {
        let vendor = self.vendor;
        let started = |inner: &Self, call, code| match code {
            SUCCESS => Ok(()),
            code::NO_DEVICE | code::INVALID_DEVICE => Err(DriverLoadError::NoDevice { vendor }),
            _ => Err(DriverLoadError::Failed {
                vendor,
                call,
                status: inner.status(code),
            }),
        };
        let (call, code) = match &self.api.own {
            // SAFETY: 0 is the only flag that either takes, and both may be called any number of times.
            Own::Cuda(cuda) => ("cuInit", unsafe { (cuda.init)(0) }),
            // SAFETY: as above.
            Own::Hip(hip, _) => ("hipInit", unsafe { (hip.init)(0) }),
        };
        started(self, call, code)?;
        let mut number = 0;
        // SAFETY: the pointer is valid for one write.
        let code = unsafe { (self.api.functions.version)(&raw mut number) };
        started(self, "the version of the driver", code)?;
        self.version = library::release(vendor, number);
        if self.version < library::oldest(vendor) {
            return Err(DriverLoadError::TooOld {
                vendor,
                path: self.path.clone(),
                version: self.version,
                function: None,
            });
        }
        let mut count = 0;
        // SAFETY: the pointer is valid for one write.
        let code = unsafe { (self.api.functions.device_count)(&raw mut count) };
        started(self, "the number of devices", code)?;
        match count {
            ..1 => Err(DriverLoadError::NoDevice { vendor }),
            _ => Ok(()),
        }
    }

    /// What the driver says about a code.
    fn status(&self, code: Code) -> Status {
        let (name, text) = match &self.api.own {
            Own::Cuda(cuda) => {
                let ask = |function: unsafe extern "C" fn(Code, *mut *const c_char) -> Code| {
                    let mut text = std::ptr::null();
                    // SAFETY: the pointer is valid for one write.
                    let found = unsafe { function(code, &raw mut text) };
                    if found == SUCCESS { text } else { std::ptr::null() }
                };
                (ask(cuda.error_name), ask(cuda.error_text))
            }
            // SAFETY: the functions take any number.
            Own::Hip(_, texts) => unsafe { ((texts.error_name)(code), (texts.error_text)(code)) },
        };
        let read = |text: *const c_char| {
            // SAFETY: what is not null is a NUL-terminated string of the driver's, which is never unloaded.
            (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
        };
        Status {
            vendor: self.vendor,
            code,
            name: read(name).unwrap_or_else(|| "an error this driver has no name for".to_owned()),
            text: read(text).unwrap_or_default(),
        }
    }
}
