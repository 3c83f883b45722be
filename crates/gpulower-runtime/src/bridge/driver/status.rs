//! What the drivers return: codes, their names, and which of them mean that a context is lost.

use std::fmt;

use gpulower_image::target::Vendor;

/// A failure as a driver reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Status {
    /// Whose driver.
    pub vendor: Vendor,
    /// `CUresult` or `hipError_t`.
    pub code: i32,
    /// Its name: `CUDA_ERROR_ILLEGAL_ADDRESS`.
    pub name: String,
    /// What the driver says about it.
    pub text: String,
}

/// Prints `CUDA_ERROR_OUT_OF_MEMORY (2): out of memory`.
impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.code)?;
        if !self.text.is_empty() {
            write!(f, ": {}", self.text)?;
        }
        Ok(())
    }
}

/// `CUDA_SUCCESS`, `hipSuccess`.
pub(super) const SUCCESS: i32 = 0;

/// Codes that something is done about. CUDA's driver and HIP number them alike (`cuda.h` of CUDA 13.0, `hip_runtime_api.h`
/// of ROCm 5.2 to 7.2).
pub(super) mod code {
    pub(in crate::bridge::driver) const OUT_OF_MEMORY: i32 = 2;
    pub(in crate::bridge::driver) const DEINITIALIZED: i32 = 4;
    pub(in crate::bridge::driver) const NO_DEVICE: i32 = 100;
    pub(in crate::bridge::driver) const INVALID_DEVICE: i32 = 101;
    pub(in crate::bridge::driver) const INVALID_CONTEXT: i32 = 201;
    pub(in crate::bridge::driver) const NOT_READY: i32 = 600;
    pub(in crate::bridge::driver) const CONTEXT_IS_DESTROYED: i32 = 709;
}

gpulower_image::table! {
    /// What went wrong on the device so that nothing in its context works any more.
    ///
    /// NVIDIA calls these errors sticky: every later call in the context returns the same one, until the context is gone.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    #[non_exhaustive]
    pub enum Fault: &'static str {
        /// A kernel read or wrote memory that is not there, or not its own.
        IllegalAddress = "a kernel used an address that is not its own";
        /// A kernel ran longer than the device allows, as one that also drives a display does.
        Timeout = "a kernel ran longer than the device allows";
        /// An assertion in a kernel failed.
        Assert = "an assertion in a kernel failed";
        /// A kernel's stack was damaged or overflowed.
        HardwareStack = "the stack of a kernel overflowed or was damaged";
        /// A kernel met an instruction that the device does not have.
        IllegalInstruction = "a kernel met an instruction that the device does not have";
        /// A kernel read or wrote at an address that is no multiple of the access's size.
        MisalignedAddress = "a kernel used an address that is not aligned to the size of the access";
        /// A kernel used an address in an address space where the instruction allows none.
        InvalidAddressSpace = "a kernel used an address of the wrong address space";
        /// A kernel jumped out of its code.
        InvalidProgramCounter = "a kernel left its code";
        /// A kernel failed, and the driver does not say how: a trap, often.
        LaunchFailed = "a kernel failed while it ran";
        /// A kernel did not give back the tensor memory that it took.
        TensorMemoryLeak = "a kernel kept tensor memory that it has to give back";
        /// The hardware failed: memory, a link, or an error contained to this process.
        Hardware = "the hardware reports an error that cannot be corrected";
        /// Another device or process that took part failed.
        External = "another device or process that takes part failed";
    }
}

impl Fault {
    /// The fault behind a code; `None` if contexts outlive it.
    ///
    /// These are the codes of which `cuda.h` says that any further work returns the same error, or that the context cannot
    /// be used any more; and uncorrectable errors of memory and of NVLink.
    #[must_use]
    pub const fn of_code(code: i32) -> Option<Self> {
        Some(match code {
            214 | 220 | 226 => Self::Hardware,
            700 => Self::IllegalAddress,
            702 => Self::Timeout,
            710 => Self::Assert,
            714 => Self::HardwareStack,
            715 => Self::IllegalInstruction,
            716 => Self::MisalignedAddress,
            717 => Self::InvalidAddressSpace,
            718 => Self::InvalidProgramCounter,
            719 => Self::LaunchFailed,
            721 => Self::TensorMemoryLeak,
            810 | 911 => Self::External,
            _ => return None,
        })
    }

    /// In words.
    #[must_use]
    pub const fn description(self) -> &'static str {
        self.row()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The constants against NVIDIA's header.
    #[test]
    fn codes_are_those_of_cuda_h() {
        let header = std::fs::read_to_string(gpulower_testing::nvidia::part("include/cuda.h")).unwrap();
        let number = |name: &str| -> i32 {
            let (_, rest) = header.split_once(&format!("{name} ")).expect(name);
            let value = rest.trim_start_matches([' ', '=']);
            let end = value.find(|next: char| !next.is_ascii_digit()).unwrap();
            value[..end].parse().expect(name)
        };
        for (code, name) in [
            (SUCCESS, "CUDA_SUCCESS"),
            (code::OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"),
            (code::DEINITIALIZED, "CUDA_ERROR_DEINITIALIZED"),
            (code::NO_DEVICE, "CUDA_ERROR_NO_DEVICE"),
            (code::INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE"),
            (code::INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT"),
            (code::NOT_READY, "CUDA_ERROR_NOT_READY"),
            (code::CONTEXT_IS_DESTROYED, "CUDA_ERROR_CONTEXT_IS_DESTROYED"),
        ] {
            assert_eq!(code, number(name), "{name}");
        }
    }

    /// Every code of which the header says that the context is unusable afterwards is a fault, and no others but those that
    /// the hardware reports.
    #[test]
    fn faults_are_what_cuda_h_says_loses_the_context() {
        let header = std::fs::read_to_string(gpulower_testing::nvidia::part("include/cuda.h")).unwrap();
        let (_, list) = header.split_once("typedef enum cudaError_enum").unwrap();
        let (list, _) = list.split_once("} CUresult").unwrap();
        let mut seen = 0;
        for entry in list.split("/**").skip(1) {
            let (comment, rest) = entry.split_once("*/").unwrap();
            let (name, value) = rest.trim().split_once('=').unwrap();
            let digits: String = value.chars().filter(char::is_ascii_digit).collect();
            let code: i32 = digits.parse().unwrap();
            let words: Vec<&str> = comment
                .split_whitespace()
                .filter(|word| !word.chars().all(|character| character == '*'))
                .collect();
            let comment = words.join(" ");
            let lost = comment.contains("the process must be terminated and relaunched")
                || comment.contains("The context cannot be used anymore");
            let hardware = matches!(
                name.trim(),
                "CUDA_ERROR_ECC_UNCORRECTABLE" | "CUDA_ERROR_NVLINK_UNCORRECTABLE"
            );
            assert_eq!(
                Fault::of_code(code).is_some(),
                lost || hardware,
                "{} {code}: {comment}",
                name.trim()
            );
            seen += 1;
        }
        assert!(seen > 80, "{seen}");
    }

    #[test]
    fn a_status_prints_name_code_and_text() {
        let mut status = Status {
            vendor: Vendor::Nvidia,
            code: 2,
            name: "CUDA_ERROR_OUT_OF_MEMORY".to_owned(),
            text: "out of memory".to_owned(),
        };
        assert_eq!(status.to_string(), "CUDA_ERROR_OUT_OF_MEMORY (2): out of memory");
        status.text.clear();
        assert_eq!(status.to_string(), "CUDA_ERROR_OUT_OF_MEMORY (2)");
    }
}
