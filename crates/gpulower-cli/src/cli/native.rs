//! The NVIDIA GPUs of this machine, for `native`.

use gpulower::{
    runtime::Driver,
    target::{ComputeCapability, Device, PtxIsa},
};

/// What the driver of this machine says.
#[derive(Debug)]
pub struct Native {
    /// Each kind of GPU once, in order.
    pub capabilities: Vec<ComputeCapability>,
    /// The newest PTX ISA that the driver reads.
    pub newest_ptx: Option<PtxIsa>,
}

impl Native {
    /// Asks the driver. No context is made, and no GPU is used.
    pub fn ask() -> Result<Self, String> {
        let driver = Driver::cuda().map_err(|error| error.to_string())?;
        let mut capabilities = Vec::new();
        for device in driver.devices().map_err(|error| error.to_string())? {
            if let Device::Nvidia(capability) = device.target().map_err(|error| error.to_string())? {
                capabilities.push(capability);
            }
        }
        if capabilities.is_empty() {
            return Err(
                "the CUDA driver finds no device: there is no NVIDIA GPU, or this process may not use it (a \
                        container without it, CUDA_VISIBLE_DEVICES)"
                    .to_owned(),
            );
        }
        capabilities.sort();
        capabilities.dedup();
        Ok(Self {
            capabilities,
            newest_ptx: driver.newest_ptx(),
        })
    }
}
