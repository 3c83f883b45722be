//! Why a device loads nothing of an artifact, in the terms of CUDA and HIP.

use super::device_query::Device;

table! {
    /// The errors that a loader reports, as CUDA's and HIP's headers number them.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    #[non_exhaustive]
    pub enum LoadFailure: (&'static str, &'static str) {
        /// CUDA: not a loadable image, or half of one.
        InvalidImage = ("CUDA_ERROR_INVALID_IMAGE", "cudaErrorInvalidKernelImage");
        /// CUDA: no cubin fits and no PTX compiles for the device.
        NoBinary = ("CUDA_ERROR_NO_BINARY_FOR_GPU", "cudaErrorNoKernelImageForDevice");
        /// CUDA: PTX, on its own, whose target is later than the device.
        InvalidPtx = ("CUDA_ERROR_INVALID_PTX", "cudaErrorInvalidPtx");
        /// CUDA: PTX of an ISA later than the driver.
        UnsupportedPtxVersion = ("CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "cudaErrorUnsupportedPtxVersion");
        /// HIP: no code object fits. Recent versions of clr's `hip_fatbin.cpp` return `hipErrorInvalidImage` (200) instead
        /// where a bundle holds none, and this for a single code object; earlier ones returned this for both.
        HipNoBinary = ("hipErrorNoBinaryForGpu", "hipErrorInvalidImage for a bundle in recent releases");
    }
}

impl LoadFailure {
    /// The number that the driver API, the runtime API and HIP give it.
    #[must_use]
    pub const fn code(self) -> u32 {
        match self {
            Self::InvalidImage => 200,
            Self::NoBinary | Self::HipNoBinary => 209,
            Self::InvalidPtx => 218,
            Self::UnsupportedPtxVersion => 222,
        }
    }

    /// The name in the driver API (`cuda.h`), or in HIP.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.row().0
    }

    /// The name in the runtime API (`driver_types.h`), or another name in HIP.
    #[must_use]
    pub const fn runtime_name(self) -> &'static str {
        self.row().1
    }
}

/// An image that the loader does not take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PassedOver {
    /// Position among the images.
    pub index: usize,
    /// The image, as its `Display` has it.
    pub image: String,
    /// Why, in one sentence.
    pub reason: String,
}

/// Why a device loads nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.text())]
#[non_exhaustive]
pub struct LoadError {
    /// The error that a user meets.
    pub failure: LoadFailure,
    /// The device.
    pub device: Device,
    /// Every image, with the reason against it.
    pub passed_over: Vec<PassedOver>,
}

impl LoadError {
    /// The error for bytes that are no artifact, or half of one.
    #[must_use]
    pub fn invalid_image(device: Device) -> Self {
        Self {
            failure: match device {
                Device::Nvidia(_) => LoadFailure::InvalidImage,
                Device::Amd(_) => LoadFailure::HipNoBinary,
            },
            device,
            passed_over: Vec::new(),
        }
    }

    fn text(&self) -> String {
        let Self {
            failure,
            device,
            passed_over,
        } = self;
        let mut text = format!(
            "nothing to load on {device}: {} ({}, {})",
            failure.name(),
            failure.code(),
            failure.runtime_name()
        );
        if passed_over.is_empty() {
            text.push_str("; there is no image");
        }
        for PassedOver { index, image, reason } in passed_over {
            text.push_str(&format!("; image {index}, {image}: {reason}"));
        }
        text
    }
}
