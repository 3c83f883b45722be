//! What devices and functions say about themselves, as data.

use serde::Serialize;

use super::error::DriverError;
use super::functions::DeviceAttribute;
use gpulower_image::target::Vendor;

/// `CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR`.
pub(super) const CUDA_CAPABILITY_MAJOR: DeviceAttribute = 75;
/// `CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR`.
pub(super) const CUDA_CAPABILITY_MINOR: DeviceAttribute = 76;

/// Limits of a device, as its driver states them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct DeviceLimits {
    /// Most threads of a block along each dimension.
    pub block: [u32; 3],
    /// Most blocks of a grid along each dimension.
    pub grid: [u32; 3],
    /// Most threads of a grid along one dimension, where the blocks' number alone does not limit it: AMD's launches count
    /// threads in 32 bits (`hipModuleLaunchKernel`).
    pub threads_along_grid: Option<u64>,
    /// Most threads of a block.
    pub threads_per_block: u32,
    /// Bytes of shared memory that a block may use without asking for more.
    pub shared_bytes: u32,
    /// Bytes of shared memory that a block may use at most.
    pub shared_bytes_at_most: u32,
    /// Bytes of shared memory that the system takes of each block.
    pub shared_bytes_reserved: u32,
    /// Bytes of shared memory of a multiprocessor.
    pub shared_bytes_per_multiprocessor: u32,
    /// 32-bit registers that a block may use.
    pub registers_per_block: u32,
    /// Multiprocessors (compute units).
    pub multiprocessors: u32,
    /// Threads of a warp, or lanes of a wavefront.
    pub warp: u32,
    /// Whether kernels may wait for all blocks of their grid.
    pub cooperative: bool,
    /// Whether there are clusters of thread blocks.
    pub clusters: bool,
    /// Whether memory can be allocated in the order of a stream.
    pub memory_pools: bool,
}

/// The attributes of [`DeviceLimits`], in CUDA's numbers and in HIP's. The second number of a pair is `None` where HIP has no
/// such attribute.
const ATTRIBUTES: [(&str, DeviceAttribute, Option<DeviceAttribute>); 17] = [
    ("MAX_BLOCK_DIM_X", 2, Some(26)),
    ("MAX_BLOCK_DIM_Y", 3, Some(27)),
    ("MAX_BLOCK_DIM_Z", 4, Some(28)),
    ("MAX_GRID_DIM_X", 5, Some(29)),
    ("MAX_GRID_DIM_Y", 6, Some(30)),
    ("MAX_GRID_DIM_Z", 7, Some(31)),
    ("MAX_THREADS_PER_BLOCK", 1, Some(56)),
    ("MAX_SHARED_MEMORY_PER_BLOCK", 8, Some(74)),
    ("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN", 97, None),
    ("RESERVED_SHARED_MEMORY_PER_BLOCK", 111, None),
    // HIP: hipDeviceAttributeMaxSharedMemoryPerMultiprocessor, of AMD's own.
    ("MAX_SHARED_MEMORY_PER_MULTIPROCESSOR", 81, Some(10002)),
    ("MAX_REGISTERS_PER_BLOCK", 12, Some(71)),
    ("MULTIPROCESSOR_COUNT", 16, Some(63)),
    ("WARP_SIZE", 10, Some(87)),
    ("COOPERATIVE_LAUNCH", 95, Some(10)),
    ("CLUSTER_LAUNCH", 120, None),
    ("MEMORY_POOLS_SUPPORTED", 115, Some(88)),
];

/// The first attributes are those that every driver has; without a later one a device lacks what it stands for.
const REQUIRED: usize = 8;

impl DeviceLimits {
    /// Asks for each attribute.
    pub(super) fn ask(
        vendor: Vendor,
        attribute: impl Fn(DeviceAttribute) -> Result<i32, DriverError>,
    ) -> Result<Self, DriverError> {
        let mut values = [0u32; ATTRIBUTES.len()];
        for (index, (value, (_, cuda, hip))) in values.iter_mut().zip(ATTRIBUTES).enumerate() {
            let number = match vendor {
                Vendor::Nvidia => Some(cuda),
                Vendor::Amd => hip,
            };
            let Some(number) = number else { continue };
            match attribute(number) {
                Ok(found) => *value = u32::try_from(found).unwrap_or(0),
                Err(error) if index < REQUIRED => return Err(error),
                // An attribute of a later release than the driver's.
                Err(_) => {}
            }
        }
        let [
            block_x,
            block_y,
            block_z,
            grid_x,
            grid_y,
            grid_z,
            threads_per_block,
            shared_bytes,
            at_most,
            shared_bytes_reserved,
            shared_bytes_per_multiprocessor,
            registers_per_block,
            multiprocessors,
            warp,
            cooperative,
            clusters,
            memory_pools,
        ] = values;
        Ok(Self {
            block: [block_x, block_y, block_z],
            grid: [grid_x, grid_y, grid_z],
            threads_along_grid: match vendor {
                Vendor::Nvidia => None,
                Vendor::Amd => Some(u32::MAX.into()),
            },
            threads_per_block,
            shared_bytes,
            shared_bytes_at_most: at_most.max(shared_bytes),
            shared_bytes_reserved,
            shared_bytes_per_multiprocessor,
            registers_per_block,
            multiprocessors,
            warp,
            cooperative: cooperative != 0,
            clusters: clusters != 0,
            memory_pools: memory_pools != 0,
        })
    }
}

/// What a driver says about a function that it has loaded. The numbers are those of `CUfunction_attribute`, which HIP's
/// `hipFunction_attribute` shares.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct FunctionAttributes {
    /// Most threads of a block: fewer than the device allows where registers do not suffice.
    pub threads_per_block: u32,
    /// Bytes of shared memory that the function declares.
    pub shared_bytes: u32,
    /// Bytes of constant memory that the user's variables take.
    pub constant_bytes: u32,
    /// Bytes of local memory per thread.
    pub local_bytes: u32,
    /// Registers per thread.
    pub registers: u32,
    /// The virtual architecture that it was compiled for, 90 for `compute_90`.
    pub ptx_version: u32,
    /// The architecture of its machine code, 90 for `sm_90`.
    pub binary_version: u32,
    /// Bytes of dynamic shared memory that a launch may ask for without the limit being raised.
    pub dynamic_shared_bytes: u32,
}

impl FunctionAttributes {
    /// Asks for each attribute. One that the driver does not know is 0.
    pub(super) fn ask(attribute: impl Fn(u32) -> Result<i32, DriverError>) -> Result<Self, DriverError> {
        let number = |value: i32| u32::try_from(value).unwrap_or(0);
        let optional = |index| attribute(index).map_or(0, number);
        Ok(Self {
            threads_per_block: number(attribute(0)?),
            shared_bytes: number(attribute(1)?),
            constant_bytes: optional(2),
            local_bytes: optional(3),
            registers: optional(4),
            ptx_version: optional(5),
            binary_version: optional(6),
            dynamic_shared_bytes: optional(8),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cudas_numbers_are_those_of_cuda_h() {
        let header = std::fs::read_to_string(gpulower_testing::nvidia::part("include/cuda.h")).unwrap();
        let names = ATTRIBUTES
            .iter()
            .map(|(name, number, _)| (format!("CU_DEVICE_ATTRIBUTE_{name} = "), *number))
            .chain([
                (
                    "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = ".to_owned(),
                    CUDA_CAPABILITY_MAJOR,
                ),
                (
                    "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = ".to_owned(),
                    CUDA_CAPABILITY_MINOR,
                ),
            ])
            .chain(
                [
                    ("MAX_THREADS_PER_BLOCK", 0),
                    ("SHARED_SIZE_BYTES", 1),
                    ("CONST_SIZE_BYTES", 2),
                    ("LOCAL_SIZE_BYTES", 3),
                    ("NUM_REGS", 4),
                    ("PTX_VERSION", 5),
                    ("BINARY_VERSION", 6),
                    ("MAX_DYNAMIC_SHARED_SIZE_BYTES", 8),
                ]
                .map(|(name, number)| (format!("CU_FUNC_ATTRIBUTE_{name} = "), number)),
            );
        for (name, number) in names {
            assert!(header.contains(&format!(" {name}{number},")), "{name}{number}");
        }
    }

    #[test]
    fn an_attribute_of_a_later_release_is_absent_and_no_error() {
        let status = |code| super::super::status::Status {
            vendor: Vendor::Nvidia,
            code,
            name: "CUDA_ERROR_INVALID_VALUE".to_owned(),
            text: String::new(),
        };
        let unknown = |call| {
            Err(DriverError::Failed {
                call,
                status: status(1),
            })
        };
        let limits = DeviceLimits::ask(Vendor::Nvidia, |attribute| match attribute {
            8 => Ok(49152),
            81.. => unknown("attribute"),
            other => Ok(other as i32),
        })
        .unwrap();
        assert_eq!((limits.block, limits.grid), ([2, 3, 4], [5, 6, 7]));
        assert_eq!((limits.shared_bytes, limits.shared_bytes_at_most), (49152, 49152));
        assert!(!limits.clusters && !limits.cooperative && !limits.memory_pools);
        // Without one that every driver has, nothing can be said.
        DeviceLimits::ask(Vendor::Nvidia, |_| unknown("attribute")).unwrap_err();
    }
}
