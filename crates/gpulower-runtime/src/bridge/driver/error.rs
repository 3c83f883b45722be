//! What goes wrong with a driver: it cannot be used, or a call fails.

use std::path::PathBuf;

use super::status::{Fault, Status};
use gpulower_image::target::Vendor;

/// Why a driver cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DriverLoadError {
    /// The library is in none of the places, or cannot be loaded.
    #[error("no {} driver: {}{}\n{}", api(*.vendor), what_failed(*.vendor), places(.tried), where_from(*.vendor))]
    NotFound {
        /// Whose driver.
        vendor: Vendor,
        /// Each place, and the dynamic loader's message.
        tried: Vec<(PathBuf, String)>,
    },
    /// The library is not the driver's.
    #[error("{} has no function {function}: it is not the {} driver", .path.display(), api(*.vendor))]
    NotTheDriver {
        /// Whose driver it should be.
        vendor: Vendor,
        /// The library.
        path: PathBuf,
        /// The function.
        function: &'static str,
    },
    /// The driver is older than what is used of it.
    #[error(
        "the {} driver {} is too old: it supports {} {}.{}, and {} is needed{}; install a newer driver",
        api(*.vendor), .path.display(), product(*.vendor), .version.0, .version.1, needed(*.vendor),
        .function.map_or_else(String::new, |function| format!(" (it lacks {function})"))
    )]
    TooOld {
        /// Whose driver.
        vendor: Vendor,
        /// The library.
        path: PathBuf,
        /// The release of CUDA or ROCm that it supports.
        version: (u32, u32),
        /// A function that it lacks.
        function: Option<&'static str>,
    },
    /// The driver is there and sees no device.
    #[error("{}", no_device(*.vendor))]
    NoDevice {
        /// Whose driver.
        vendor: Vendor,
    },
    /// The driver does not start.
    #[error("the {} driver does not start: {call} returned {status}{}", api(*.vendor), start_advice(.status))]
    Failed {
        /// Whose driver.
        vendor: Vendor,
        /// The function.
        call: &'static str,
        /// What it returned.
        status: Status,
    },
}

/// What people call the interface.
pub(super) const fn api(vendor: Vendor) -> &'static str {
    match vendor {
        Vendor::Nvidia => "CUDA",
        Vendor::Amd => "HIP",
    }
}

const fn product(vendor: Vendor) -> &'static str {
    match vendor {
        Vendor::Nvidia => "CUDA",
        Vendor::Amd => "ROCm",
    }
}

const fn needed(vendor: Vendor) -> &'static str {
    match vendor {
        Vendor::Nvidia => "11.0 or newer",
        Vendor::Amd => "5.0 or newer",
    }
}

const fn what_failed(vendor: Vendor) -> &'static str {
    match vendor {
        Vendor::Nvidia => "libcuda.so.1 could not be loaded",
        Vendor::Amd => "libamdhip64.so could not be loaded",
    }
}

const fn where_from(vendor: Vendor) -> &'static str {
    match vendor {
        Vendor::Nvidia => "It comes with NVIDIA's driver, not with the CUDA toolkit",
        Vendor::Amd => "It comes with ROCm (the package of AMD's HIP runtime), not with the kernel's driver alone",
    }
}

const fn no_device(vendor: Vendor) -> &'static str {
    match vendor {
        Vendor::Nvidia => {
            "the CUDA driver finds no device: there is no NVIDIA GPU, or this process may not use it (a container without \
             it, CUDA_VISIBLE_DEVICES)"
        }
        Vendor::Amd => {
            "HIP finds no device: there is no AMD GPU that ROCm supports, or this process may not use it (/dev/kfd and \
             /dev/dri absent or not readable, a container without them, HIP_VISIBLE_DEVICES, ROCR_VISIBLE_DEVICES)"
        }
    }
}

/// What helps against the failures that are known to happen at the start.
fn start_advice(status: &Status) -> &'static str {
    match (status.vendor, status.code) {
        (Vendor::Nvidia, 34) => {
            "\nThis library is the toolkit's, for linkers: leave its folder `stubs` out of LD_LIBRARY_PATH, so that the driver's \
             is found"
        }
        (Vendor::Nvidia, 803 | 804) => {
            "\nThe library and the kernel's part of the driver are of different releases: restart after an upgrade, and in a \
             container let the host's libcuda.so.1 be found before a compatibility library"
        }
        (Vendor::Nvidia, 802) => "\nOn machines with NVSwitch the service nvidia-fabricmanager has to run",
        (Vendor::Nvidia, 999) => "\nThe kernel's module nvidia_uvm is often the reason: `nvidia-modprobe -u` loads it",
        _ => "",
    }
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

/// What there is to do after a fault.
const fn after_a_fault(vendor: Vendor) -> &'static str {
    match vendor {
        Vendor::Nvidia => {
            "NVIDIA's driver lets this process use the device no more: end it and start it anew. A program that has to outlive \
             a kernel that may fail runs it in a child process"
        }
        Vendor::Amd => {
            "Nothing in this context works any more; Context::reset tries to make a new one in this process, into which \
             everything has to be loaded again"
        }
    }
}

/// A call of the driver that failed, or would.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DriverError {
    /// There is not enough memory, on the device or for pinned host memory.
    #[error(
        "out of memory: {call}{} returned {status}{}",
        .bytes.map_or_else(String::new, |bytes| format!(" of {bytes} bytes")),
        .free.map_or_else(String::new, |(free, total)| format!("; {free} of {total} bytes of the device are free"))
    )]
    OutOfMemory {
        /// The function.
        call: &'static str,
        /// How many bytes were asked for, where that is known.
        bytes: Option<usize>,
        /// Bytes of the device that are free, and all of them, where that is known.
        free: Option<(usize, usize)>,
        /// What it returned.
        status: Status,
    },
    /// Something failed on the device, and nothing in the context works any more. With NVIDIA's driver nothing on the device
    /// works any more in the whole process.
    #[error(
        "{}: {call} returned {status}. The kernel that failed may be one that was launched earlier. {}",
        .fault.description(), after_a_fault(.status.vendor)
    )]
    ContextLost {
        /// The function that reported it.
        call: &'static str,
        /// What happened.
        fault: Fault,
        /// What it returned.
        status: Status,
    },
    /// The context that this belongs to was reset.
    #[error(
        "{call}: the context was reset, and what was made in it is gone; make it again in the context that Context::reset \
         returned"
    )]
    ContextReset {
        /// The function that was to be called.
        call: &'static str,
    },
    /// A new context fails like the one that was reset. This is what NVIDIA's driver does after every fault of a kernel.
    #[error(
        "the device does not work after a reset either: {call} returned {status}; end this process and start it anew"
    )]
    NotRecovered {
        /// The function that fails.
        call: &'static str,
        /// What it returned.
        status: Status,
    },
    /// Two things of different contexts were to be used together.
    #[error("{call}: {first} and {second} belong to different contexts")]
    OtherContext {
        /// The function that was to be called.
        call: &'static str,
        /// The first, in words.
        first: &'static str,
        /// The second, in words.
        second: &'static str,
    },
    /// The process is ending, and the driver is gone already.
    #[error("{call} returned {status}: the process is ending")]
    ShuttingDown {
        /// The function.
        call: &'static str,
        /// What it returned.
        status: Status,
    },
    /// The driver cannot do this.
    #[error("the {} driver cannot {what}: {needs}", api(*.vendor))]
    Unsupported {
        /// Whose driver.
        vendor: Vendor,
        /// What was asked for.
        what: &'static str,
        /// What it takes.
        needs: &'static str,
    },
    /// Bytes outside of a buffer, or a size that the operation does not take.
    #[error("{what}: {problem}")]
    Range {
        /// What was to be done.
        what: &'static str,
        /// What is wrong, with the sizes.
        problem: String,
    },
    /// The index is too large.
    #[error(
        "there is no device {index}: the {} driver shows {}{}",
        api(*.vendor),
        match .count { 1 => "one, which is device 0".to_owned(), count => format!("{count}, which are 0 to {}", count.saturating_sub(1)) },
        match .vendor {
            Vendor::Nvidia => " (CUDA_VISIBLE_DEVICES changes that)",
            Vendor::Amd => " (HIP_VISIBLE_DEVICES changes that)",
        }
    )]
    NoSuchDevice {
        /// Whose driver.
        vendor: Vendor,
        /// The index that was asked for.
        index: u32,
        /// How many devices there are.
        count: u32,
    },
    /// The device is of a chip that is not known here, so that no image can be chosen for it.
    #[error("device {index} is a {name:?}, which is no chip that is known here: {problem}")]
    UnknownChip {
        /// The device.
        index: u32,
        /// What the driver calls its chip.
        name: String,
        /// Why it is not known.
        problem: String,
    },
    /// Anything else that the driver reports.
    #[error("{call} returned {status}")]
    Failed {
        /// The function.
        call: &'static str,
        /// What it returned.
        status: Status,
    },
}

impl DriverError {
    /// What the driver returned, if it was asked.
    #[must_use]
    pub const fn status(&self) -> Option<&Status> {
        match self {
            Self::OutOfMemory { status, .. }
            | Self::ContextLost { status, .. }
            | Self::NotRecovered { status, .. }
            | Self::ShuttingDown { status, .. }
            | Self::Failed { status, .. } => Some(status),
            _ => None,
        }
    }

    /// Whether nothing in the context works any more: a kernel failed, or the context was reset.
    #[must_use]
    pub const fn is_context_lost(&self) -> bool {
        matches!(self, Self::ContextLost { .. } | Self::ContextReset { .. })
    }
}

#[cfg(test)]
#[path = "error_tests.rs"]
mod tests;
