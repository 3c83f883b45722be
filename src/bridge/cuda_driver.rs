//! The CUDA driver, loaded at run time: which devices there are, and which release of CUDA it supports.
//!
//! Declarations follow `cuda.h` of CUDA 13.0. Nothing here creates a context, and no device is used. Answers, and the
//! error without a visible device, were observed with driver 580.159 on an H200.

use std::ffi::{CStr, c_char, c_int, c_uint};
use std::path::{Path, PathBuf};
use std::ptr;

use libloading::os::unix::Library;

use super::vendor_library;
use crate::target::ComputeCapability;

/// Where the driver's library is, in this order: first wherever the dynamic loader looks.
const PLACES: [&str; 3] = [
    "libcuda.so.1",
    // Windows Subsystem for Linux.
    "/usr/lib/wsl/lib/libcuda.so.1",
    // NixOS.
    "/run/opengl-driver/lib/libcuda.so.1",
];

/// `CUDA_SUCCESS`.
const SUCCESS: c_int = 0;
/// `CUDA_ERROR_NO_DEVICE`.
const NO_DEVICE: c_int = 100;
/// `CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR`.
const ATTRIBUTE_MAJOR: c_int = 75;
/// `CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR`.
const ATTRIBUTE_MINOR: c_int = 76;

/// Why the driver could not be asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CudaDriverError {
    /// The driver's library is in none of the places, or cannot be loaded.
    #[error(
        "no CUDA driver: libcuda.so.1 could not be loaded{}\nIt comes with NVIDIA's driver, not with the CUDA toolkit",
        places(.tried)
    )]
    NotFound {
        /// Each place, and the dynamic loader's message.
        tried: Vec<(PathBuf, String)>,
    },
    /// The library lacks a function of the interface.
    #[error("{} has no function {function}: it is not the CUDA driver", .path.display())]
    MissingSymbol {
        /// The library.
        path: PathBuf,
        /// The function.
        function: &'static str,
    },
    /// The driver is there and sees no device.
    #[error(
        "the CUDA driver finds no device: there is no NVIDIA GPU, or this process may not use it (a container without \
         it, CUDA_VISIBLE_DEVICES)"
    )]
    NoDevice,
    /// The driver returned an error.
    #[error("the CUDA driver failed: {call} returned {code} ({name})")]
    Failed {
        /// The function.
        call: &'static str,
        /// `CUresult`.
        code: i32,
        /// What `cuGetErrorName` calls it.
        name: String,
    },
}

/// One line for each place. The dynamic loader's message mostly begins with it.
fn places(tried: &[(PathBuf, String)]) -> String {
    tried
        .iter()
        .map(|(path, reason)| {
            let place = format!("{}: ", path.display());
            let reason = reason.strip_prefix(&place).unwrap_or(reason);
            format!("\n  {place}{reason}")
        })
        .collect()
}

/// The driver, loaded and initialised.
#[derive(Debug)]
pub struct CudaDriver {
    driver_version: unsafe extern "C" fn(*mut c_int) -> c_int,
    device_count: unsafe extern "C" fn(*mut c_int) -> c_int,
    device: unsafe extern "C" fn(*mut c_int, c_int) -> c_int,
    device_attribute: unsafe extern "C" fn(*mut c_int, c_int, c_int) -> c_int,
    error_name: unsafe extern "C" fn(c_int, *mut *const c_char) -> c_int,
}

impl CudaDriver {
    /// Loads and initialises the driver of this machine. It stays loaded for the life of the process.
    ///
    /// # Errors
    ///
    /// [`CudaDriverError`]; [`CudaDriverError::NoDevice`] comes from here already if there is none.
    pub fn load() -> Result<Self, CudaDriverError> {
        Self::load_from(&PLACES.map(Path::new))
    }

    /// Loads the first of `places` that can be loaded.
    fn load_from(places: &[&Path]) -> Result<Self, CudaDriverError> {
        let mut tried = Vec::new();
        for &path in places {
            // SAFETY: loading runs the constructors of the library. It is the driver by its name, and a program that
            // cannot trust the driver of its machine cannot use the GPU.
            match unsafe { vendor_library::open(path) } {
                Ok(library) => return Self::initialise(library, path),
                Err(reason) => tried.push((path.to_owned(), reason)),
            }
        }
        Err(CudaDriverError::NotFound { tried })
    }

    fn initialise(library: Library, path: &Path) -> Result<Self, CudaDriverError> {
        macro_rules! required {
            ($function:literal) => {
                // SAFETY: the type that is inferred is the declaration in cuda.h: that of the field, or of `initialise`.
                unsafe { library.get(concat!($function, "\0").as_bytes()) }
                    .map(|symbol| *symbol)
                    .map_err(|_| CudaDriverError::MissingSymbol {
                        path: path.to_owned(),
                        function: $function,
                    })?
            };
        }
        let initialise: unsafe extern "C" fn(c_uint) -> c_int = required!("cuInit");
        let driver = Self {
            driver_version: required!("cuDriverGetVersion"),
            device_count: required!("cuDeviceGetCount"),
            device: required!("cuDeviceGet"),
            device_attribute: required!("cuDeviceGetAttribute"),
            error_name: required!("cuGetErrorName"),
        };
        // The driver starts threads of its own: it is never unloaded.
        std::mem::forget(library);
        // SAFETY: 0 is the only flag that the driver takes, and it may be initialised any number of times.
        let code = unsafe { initialise(0) };
        driver.check("cuInit", code)?;
        Ok(driver)
    }

    /// The newest release of CUDA that the driver supports, for example (13, 0).
    ///
    /// # Errors
    ///
    /// [`CudaDriverError::Failed`].
    pub fn cuda_version(&self) -> Result<(u32, u32), CudaDriverError> {
        let mut version = 0;
        // SAFETY: the pointer is valid for one write.
        let code = unsafe { (self.driver_version)(&raw mut version) };
        self.check("cuDriverGetVersion", code)?;
        // 1000 times the major plus 10 times the minor version.
        let version = u32::try_from(version).unwrap_or(0);
        Ok((version / 1000, version % 1000 / 10))
    }

    /// The compute capability of each device, in the driver's order, which `CUDA_VISIBLE_DEVICES` changes.
    ///
    /// # Errors
    ///
    /// [`CudaDriverError::NoDevice`] or [`CudaDriverError::Failed`].
    pub fn compute_capabilities(&self) -> Result<Vec<ComputeCapability>, CudaDriverError> {
        let mut count = 0;
        // SAFETY: the pointer is valid for one write.
        let code = unsafe { (self.device_count)(&raw mut count) };
        self.check("cuDeviceGetCount", code)?;
        if count <= 0 {
            return Err(CudaDriverError::NoDevice);
        }
        (0..count)
            .map(|index| {
                let mut device = 0;
                // SAFETY: the pointer is valid for one write.
                let code = unsafe { (self.device)(&raw mut device, index) };
                self.check("cuDeviceGet", code)?;
                let major = self.attribute(ATTRIBUTE_MAJOR, device)?;
                let minor = self.attribute(ATTRIBUTE_MINOR, device)?;
                Ok(ComputeCapability::new(major, minor))
            })
            .collect()
    }

    fn attribute(&self, attribute: c_int, device: c_int) -> Result<u16, CudaDriverError> {
        let mut value = 0;
        // SAFETY: the pointer is valid for one write.
        let code = unsafe { (self.device_attribute)(&raw mut value, attribute, device) };
        self.check("cuDeviceGetAttribute", code)?;
        Ok(u16::try_from(value).unwrap_or(u16::MAX))
    }

    fn check(&self, call: &'static str, code: c_int) -> Result<(), CudaDriverError> {
        match code {
            SUCCESS => Ok(()),
            NO_DEVICE => Err(CudaDriverError::NoDevice),
            _ => Err(CudaDriverError::Failed {
                call,
                code,
                name: self.name_of(code),
            }),
        }
    }

    fn name_of(&self, code: c_int) -> String {
        let mut name = ptr::null();
        // SAFETY: the pointer is valid for one write.
        let found = unsafe { (self.error_name)(code, &raw mut name) };
        if found != SUCCESS || name.is_null() {
            return "an error this driver has no name for".to_owned();
        }
        // SAFETY: on success it is a NUL-terminated string of the driver's, which is never unloaded.
        unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned()
    }
}

/// The compute capability of each NVIDIA GPU of this machine, in the driver's order.
///
/// # Errors
///
/// [`CudaDriverError`], [`CudaDriverError::NoDevice`] if there is none.
pub fn compute_capabilities() -> Result<Vec<ComputeCapability>, CudaDriverError> {
    CudaDriver::load()?.compute_capabilities()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_driver_that_is_not_there_says_where_it_was_looked_for() {
        let places = ["/nowhere/libcuda.so.1", "libcuda-that-nobody-has.so.1"];
        let text = CudaDriver::load_from(&places.map(Path::new)).unwrap_err().to_string();
        assert!(
            text.starts_with("no CUDA driver: libcuda.so.1 could not be loaded\n"),
            "{text}"
        );
        for place in places {
            let line = format!("\n  {place}: cannot open shared object file: No such file or directory");
            assert!(text.contains(&line), "{text}");
        }
        assert!(
            text.ends_with("\nIt comes with NVIDIA's driver, not with the CUDA toolkit"),
            "{text}"
        );
    }

    #[test]
    fn another_library_is_refused() {
        let error = CudaDriver::load_from(&[Path::new("libm.so.6")]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "libm.so.6 has no function cuInit: it is not the CUDA driver"
        );
    }

    /// Whatever this machine has: devices, or the reason why there are none.
    #[test]
    fn this_machine_answers() {
        match CudaDriver::load() {
            Ok(driver) => {
                assert!(driver.cuda_version().unwrap() >= (11, 0));
                for device in driver.compute_capabilities().unwrap() {
                    assert!(device.number() >= 50, "{device}");
                }
            }
            Err(CudaDriverError::NotFound { tried }) => assert_eq!(tried.len(), PLACES.len()),
            Err(CudaDriverError::NoDevice | CudaDriverError::Failed { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
}
