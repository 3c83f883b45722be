//! Where the drivers' libraries are, and which of their functions there are.

use std::path::{Path, PathBuf};

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

use super::error::DriverLoadError;
use super::functions::{CudaFunctions, Functions, HipFunctions, HipTexts, Missing};
use crate::bridge::vendor_library;
use gpulower_image::target::Vendor;

/// Where CUDA's driver is, in this order: first wherever the dynamic loader looks.
const CUDA: [&str; 3] = [
    "libcuda.so.1",
    // Windows Subsystem for Linux.
    "/usr/lib/wsl/lib/libcuda.so.1",
    // NixOS.
    "/run/opengl-driver/lib/libcuda.so.1",
];

/// Where HIP is. The number grows with ROCm's major version; the name without one belongs to development packages, and to
/// what Python packages bring.
const HIP: [&str; 5] = [
    "libamdhip64.so.7",
    "libamdhip64.so.6",
    "libamdhip64.so.5",
    "libamdhip64.so",
    "/opt/rocm/lib/libamdhip64.so",
];

/// `RTLD_NOLOAD` of Linux: only what the process has loaded already.
const NO_LOAD: i32 = 4;

/// The places where a driver is looked for.
pub(super) fn places(vendor: Vendor) -> Vec<PathBuf> {
    let places: &[&str] = match vendor {
        Vendor::Nvidia => &CUDA,
        Vendor::Amd => &HIP,
    };
    places.iter().map(PathBuf::from).collect()
}

/// The functions of one driver.
pub(super) struct Api {
    pub(super) functions: Functions,
    pub(super) own: Own,
}

/// The functions that one vendor has alone.
pub(super) enum Own {
    Cuda(CudaFunctions),
    Hip(HipFunctions, HipTexts),
}

/// Opens the first of `places` that can be opened. One that the process has loaded already comes first: two copies of a
/// driver's library in one process do not share their contexts.
///
/// # Safety
///
/// What is found there is the vendor's driver.
pub(super) unsafe fn open(vendor: Vendor, places: &[PathBuf]) -> Result<(Library, PathBuf), DriverLoadError> {
    for path in places {
        // SAFETY: nothing is loaded, so no constructor runs.
        if let Ok(library) = unsafe { Library::open(Some(path.as_os_str()), RTLD_NOW | RTLD_LOCAL | NO_LOAD) } {
            return Ok((library, path.clone()));
        }
    }
    let mut tried = Vec::new();
    for path in places {
        // SAFETY: loading runs the constructors of the library, which is the driver, as the caller promises.
        match unsafe { vendor_library::open(path) } {
            Ok(library) => return Ok((library, path.clone())),
            Err(reason) => tried.push((path.clone(), reason)),
        }
    }
    Err(DriverLoadError::NotFound { vendor, tried })
}

/// Looks up the functions of the library.
pub(super) fn api(library: &Library, vendor: Vendor) -> Result<Api, Missing> {
    Ok(Api {
        // First what only this vendor has: its absence says that the library is another.
        own: match vendor {
            Vendor::Nvidia => Own::Cuda(CudaFunctions::load(library, vendor)?),
            Vendor::Amd => Own::Hip(HipFunctions::load(library, vendor)?, HipTexts::load(library)?),
        },
        functions: Functions::load(library, vendor)?,
    })
}

/// What the absence of `function` means: another library, or an old driver.
///
/// The release that a driver supports can be asked for before anything else.
pub(super) fn why_missing(library: &Library, vendor: Vendor, path: &Path, function: &'static str) -> DriverLoadError {
    let path = path.to_owned();
    let name: &[u8] = match vendor {
        Vendor::Nvidia => b"cuDriverGetVersion\0",
        Vendor::Amd => b"hipRuntimeGetVersion\0",
    };
    // SAFETY: the declaration in either header.
    let found = unsafe { library.get::<unsafe extern "C" fn(*mut i32) -> i32>(name) };
    let mut number = 0;
    match found {
        // SAFETY: the pointer is valid for one write, and the function may be called before the driver is initialised.
        Ok(version) if unsafe { version(&raw mut number) } == 0 => DriverLoadError::TooOld {
            vendor,
            path,
            version: release(vendor, number),
            function: Some(function),
        },
        _ => DriverLoadError::NotTheDriver { vendor, path, function },
    }
}

/// The release in a driver's version number.
///
/// CUDA: 1000 times the major plus 10 times the minor version. HIP: 10,000,000 times the major plus 100,000 times the minor
/// version plus the number of the build.
pub(super) fn release(vendor: Vendor, number: i32) -> (u32, u32) {
    let number = u32::try_from(number).unwrap_or(0);
    match vendor {
        Vendor::Nvidia => (number / 1000, number % 1000 / 10),
        Vendor::Amd => (number / 10_000_000, number % 10_000_000 / 100_000),
    }
}

/// The oldest release that is supported: the first whose functions of primary contexts are today's, or the first that was
/// looked at.
pub(super) const fn oldest(vendor: Vendor) -> (u32, u32) {
    match vendor {
        Vendor::Nvidia => (11, 0),
        Vendor::Amd => (5, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_releases() {
        assert_eq!(release(Vendor::Nvidia, 13000), (13, 0));
        assert_eq!(release(Vendor::Nvidia, 11080), (11, 8));
        assert_eq!(release(Vendor::Amd, 50_221_153), (5, 2));
        assert_eq!(release(Vendor::Amd, 60_443_484), (6, 4));
        assert_eq!(release(Vendor::Amd, -1), (0, 0));
    }
}
