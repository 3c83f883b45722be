//! Whether a launch fits a kernel and a device, as a question of numbers.

use super::kernel::KernelInterface;
use super::launch_error::LaunchError;
use crate::bridge::driver::{DeviceLimits, FunctionAttributes, LaunchShape};

/// Blocks of a cluster that every device with clusters has ("CUDA C++ Programming Guide", "Thread Block Clusters").
pub(super) const PORTABLE_CLUSTER: u64 = 8;
/// Blocks of a cluster that any device has, for kernels that allow more than the portable size.
const LARGEST_CLUSTER: u32 = 16;

/// Refuses a launch that the driver would refuse, with the numbers.
///
/// # Errors
///
/// [`LaunchError`].
pub fn check(
    shape: &LaunchShape,
    kernel: &KernelInterface,
    function: &FunctionAttributes,
    device: &DeviceLimits,
) -> Result<(), LaunchError> {
    let name = || kernel.name.clone();
    for (what, given) in [
        ("a grid", Some(shape.grid)),
        ("a block", Some(shape.block)),
        ("a cluster", shape.cluster),
    ] {
        if let Some(given) = given.filter(|given| given.contains(&0)) {
            return Err(LaunchError::Nothing {
                kernel: name(),
                what,
                given,
            });
        }
    }
    check_grid(shape, kernel, device)?;
    check_block(shape, kernel, function, device)?;
    check_shared_memory(shape, kernel, function, device)?;
    check_cluster(shape, kernel, device)?;
    if shape.cooperative && !device.cooperative {
        return Err(LaunchError::NotCooperative { kernel: name() });
    }
    Ok(())
}

fn check_grid(shape: &LaunchShape, kernel: &KernelInterface, device: &DeviceLimits) -> Result<(), LaunchError> {
    let along = shape.grid.iter().zip(shape.block);
    let most_threads = along
        .map(|(&blocks, threads)| u64::from(blocks) * u64::from(threads))
        .max()
        .unwrap_or(0);
    let too_many = device.threads_along_grid.filter(|&limit| most_threads > limit);
    if exceeds(shape.grid, device.grid) || too_many.is_some() {
        return Err(LaunchError::Grid {
            kernel: kernel.name.clone(),
            given: shape.grid,
            limit: device.grid,
            threads: too_many,
        });
    }
    Ok(())
}

fn check_block(
    shape: &LaunchShape,
    kernel: &KernelInterface,
    function: &FunctionAttributes,
    device: &DeviceLimits,
) -> Result<(), LaunchError> {
    let given = shape.block;
    let threads = volume(given);
    if let Some(required) = kernel.required_block.filter(|&required| required != given) {
        return Err(LaunchError::RequiredBlock {
            kernel: kernel.name.clone(),
            given,
            required,
        });
    }
    if exceeds(given, device.block) || threads > u64::from(device.threads_per_block) {
        return Err(LaunchError::Block {
            kernel: kernel.name.clone(),
            given,
            limit: device.block,
            threads: device.threads_per_block,
        });
    }
    let compiled_for = kernel.max_threads_per_block.filter(|&most| most > 0);
    let limit = compiled_for.map_or(function.threads_per_block, |most| most.min(function.threads_per_block));
    if threads > u64::from(limit) {
        return Err(LaunchError::Threads {
            kernel: kernel.name.clone(),
            given,
            threads,
            limit,
            compiled_for: compiled_for.filter(|&most| most == limit),
            registers: function.registers,
        });
    }
    Ok(())
}

/// Bytes of dynamic shared memory that a launch of a function may ask for, when its limit is raised as far as it goes.
///
/// What the function declares is the driver's number, which it compares as well: the image's may lack the padding between the
/// two. The share that the system takes of each block is in neither (an H200 of driver 580: 232448 bytes in all, of cubins and
/// of PTX).
pub(super) fn dynamic_shared_at_most(function: &FunctionAttributes, device: &DeviceLimits) -> u32 {
    device.shared_bytes_at_most.saturating_sub(function.shared_bytes)
}

fn check_shared_memory(
    shape: &LaunchShape,
    kernel: &KernelInterface,
    function: &FunctionAttributes,
    device: &DeviceLimits,
) -> Result<(), LaunchError> {
    let most = dynamic_shared_at_most(function, device);
    if shape.dynamic_shared > most {
        return Err(LaunchError::SharedMemory {
            kernel: kernel.name.clone(),
            dynamic: shape.dynamic_shared,
            most,
            declared: function.shared_bytes,
            limit: device.shared_bytes_at_most,
        });
    }
    Ok(())
}

fn check_cluster(shape: &LaunchShape, kernel: &KernelInterface, device: &DeviceLimits) -> Result<(), LaunchError> {
    let Some(cluster) = shape.cluster.or(kernel.cluster) else {
        return Ok(());
    };
    let name = || kernel.name.clone();
    if !device.clusters {
        return Err(LaunchError::NoClusters { kernel: name() });
    }
    if let Some(required) = kernel.cluster.filter(|&required| required != cluster) {
        return Err(LaunchError::RequiredCluster {
            kernel: name(),
            given: cluster,
            required,
        });
    }
    let compiled_for = kernel.max_cluster_blocks;
    let limit = compiled_for.map_or(LARGEST_CLUSTER, |most| most.min(LARGEST_CLUSTER));
    let blocks = volume(cluster);
    if blocks > limit.into() {
        return Err(LaunchError::Cluster {
            kernel: name(),
            given: cluster,
            blocks,
            limit,
            compiled_for: compiled_for == Some(limit),
        });
    }
    let whole = shape
        .grid
        .iter()
        .zip(cluster)
        .all(|(blocks, cluster)| blocks.is_multiple_of(cluster));
    if !whole {
        return Err(LaunchError::PartOfCluster {
            kernel: name(),
            grid: shape.grid,
            cluster,
        });
    }
    Ok(())
}

/// Refuses a grid whose blocks wait for each other and do not fit on the device together.
///
/// # Errors
///
/// [`LaunchError::TooManyTogether`].
pub(super) fn check_together(
    shape: &LaunchShape,
    kernel: &KernelInterface,
    per_multiprocessor: u32,
    device: &DeviceLimits,
) -> Result<(), LaunchError> {
    let fit = u64::from(per_multiprocessor) * u64::from(device.multiprocessors);
    let blocks = volume(shape.grid);
    if blocks > fit {
        return Err(LaunchError::TooManyTogether {
            kernel: kernel.name.clone(),
            blocks,
            fit,
            per_multiprocessor,
            multiprocessors: device.multiprocessors,
        });
    }
    Ok(())
}

/// The number of elements of a shape.
pub(super) fn volume(shape: [u32; 3]) -> u64 {
    shape
        .iter()
        .fold(1u64, |product, &extent| product.saturating_mul(extent.into()))
}

/// Whether a shape is larger than a limit along any dimension.
fn exceeds(shape: [u32; 3], limit: [u32; 3]) -> bool {
    shape.iter().zip(limit).any(|(&extent, limit)| extent > limit)
}

#[cfg(test)]
#[path = "limits_tests.rs"]
mod tests;
