//! Devices: what they are, and what they allow.

use std::ffi::{c_int, c_void};
use std::fmt;
use std::sync::{PoisonError, Weak};

use super::attributes::{self, DeviceLimits};
use super::context::Context;
use super::error::{DriverError, api};
use super::functions::{DeviceAttribute, DeviceNumber};
use super::library::Own;
use super::loaded::Driver;
use gpulower_image::target::{AmdTarget, ComputeCapability, Device as TargetDevice, Vendor};

/// One device of a driver.
#[derive(Clone)]
pub struct Device {
    driver: Driver,
    index: u32,
    number: DeviceNumber,
}

impl Device {
    pub(super) const fn new(driver: Driver, index: u32, number: DeviceNumber) -> Self {
        Self { driver, index, number }
    }

    /// The driver.
    #[must_use]
    pub fn driver(&self) -> &Driver {
        &self.driver
    }

    /// Its index, from 0.
    #[must_use]
    pub fn index(&self) -> u32 {
        self.index
    }

    pub(super) fn number(&self) -> DeviceNumber {
        self.number
    }

    /// Its name: `NVIDIA H200`.
    ///
    /// # Errors
    ///
    /// [`DriverError`].
    pub fn name(&self) -> Result<String, DriverError> {
        let mut name = [0u8; 256];
        // SAFETY: the buffer has the length that is passed; the driver ends the name with a NUL within it.
        let code = unsafe {
            (self.driver.functions().device_name)(name.as_mut_ptr().cast(), name.len() as c_int, self.number)
        };
        self.driver.check("the name of a device", code)?;
        Ok(until_nul(&name))
    }

    /// Bytes of its memory.
    ///
    /// # Errors
    ///
    /// [`DriverError`].
    pub fn total_memory(&self) -> Result<usize, DriverError> {
        let mut bytes = 0;
        // SAFETY: the pointer is valid for one write.
        let code = unsafe { (self.driver.functions().device_memory)(&raw mut bytes, self.number) };
        self.driver.check("the memory of a device", code)?;
        Ok(bytes)
    }

    /// What it is, as images are chosen for it: `9.0`, `gfx90a:sramecc+:xnack-`.
    ///
    /// # Errors
    ///
    /// [`DriverError::UnknownChip`], or the driver failed.
    pub fn target(&self) -> Result<TargetDevice, DriverError> {
        match self.driver.own() {
            Own::Cuda(_) => {
                let part = |attribute| -> Result<u16, DriverError> {
                    Ok(u16::try_from(self.attribute(attribute)?).unwrap_or(u16::MAX))
                };
                Ok(TargetDevice::Nvidia(ComputeCapability::new(
                    part(attributes::CUDA_CAPABILITY_MAJOR)?,
                    part(attributes::CUDA_CAPABILITY_MINOR)?,
                )))
            }
            Own::Hip(..) => {
                let name = self.amd_architecture()?;
                name.parse::<AmdTarget>()
                    .map(TargetDevice::Amd)
                    .map_err(|problem| DriverError::UnknownChip {
                        index: self.index,
                        name,
                        problem: problem.to_string(),
                    })
            }
        }
    }

    /// How large blocks, grids and shared memory may be.
    ///
    /// # Errors
    ///
    /// [`DriverError`].
    pub fn limits(&self) -> Result<DeviceLimits, DriverError> {
        DeviceLimits::ask(self.driver.vendor(), |attribute| self.attribute(attribute))
    }

    /// An attribute by its number in `cuda.h` or `hip_runtime_api.h`.
    ///
    /// # Errors
    ///
    /// [`DriverError`]; also for an attribute that this driver does not know.
    pub fn attribute(&self, attribute: u32) -> Result<i32, DriverError> {
        let attribute: DeviceAttribute = attribute;
        let mut value = 0;
        // SAFETY: the pointer is valid for one write; a number that is no attribute's is an error of the driver's.
        let code = unsafe { (self.driver.functions().device_attribute)(&raw mut value, attribute, self.number) };
        self.driver.check("an attribute of a device", code)?;
        Ok(value)
    }

    /// The device's primary context: the one that CUDA's runtime, and every library built on it, uses too. All calls give the
    /// same context as long as one clone of it lives.
    ///
    /// # Errors
    ///
    /// [`DriverError`].
    pub fn context(&self) -> Result<Context, DriverError> {
        let mut primary = self
            .driver
            .primary_contexts()
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(context) = primary.get(&self.index).and_then(Weak::upgrade)
            && let Some(context) = Context::living(context)
        {
            return Ok(context);
        }
        let context = Context::primary(self)?;
        primary.insert(self.index, context.downgrade());
        Ok(context)
    }

    /// A context of its own, apart from other libraries', which live in the primary one. Nothing made in one context can be
    /// used in the other. It is no shelter from a kernel that fails: with NVIDIA's driver that ends every context of the
    /// process on the device. AMD's devices have the primary context alone.
    ///
    /// # Errors
    ///
    /// [`DriverError`].
    pub fn separate_context(&self) -> Result<Context, DriverError> {
        Context::separate(self)
    }

    /// The target ID in HIP's properties of the device.
    fn amd_architecture(&self) -> Result<String, DriverError> {
        let Own::Hip(hip, _) = self.driver.own() else {
            return Ok(String::new());
        };
        // Size and offset of `gcnArchName` in `hipDeviceProp_t`: observed with the headers of ROCm 7.2 and 5.2.
        let (properties, offset) = match (hip.properties_6, hip.properties_5) {
            (Some(function), _) => (function, 1160),
            (None, Some(function)) => (function, 396),
            (None, None) => {
                return Err(DriverError::Unsupported {
                    vendor: Vendor::Amd,
                    what: "say which chip a device is",
                    needs: "it has no hipGetDeviceProperties",
                });
            }
        };
        // The structures have 1472 and 792 bytes; ROCm changes the function's name when one grows.
        let mut bytes = [0u64; 1024];
        // SAFETY: the buffer is aligned like the structure's largest members and several times as large.
        let code = unsafe { properties(bytes.as_mut_ptr().cast::<c_void>(), self.number) };
        self.driver.check("the properties of a device", code)?;
        let bytes: &[u8] = bytemuck::cast_slice(&bytes);
        Ok(until_nul(bytes.get(offset..offset + 256).unwrap_or_default()))
    }
}

/// The text in front of the first NUL.
fn until_nul(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(bytes.get(..end).unwrap_or_default()).into_owned()
}

/// Two values are equal if they mean the same device of the same driver.
impl PartialEq for Device {
    fn eq(&self, other: &Self) -> bool {
        self.driver.is(&other.driver) && self.index == other.index
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Device({} {})", api(self.driver.vendor()), self.index)
    }
}
