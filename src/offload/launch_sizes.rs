//! Sizes of a launch that are constants, against what its kernel states: code was made of what it states, such as the constants
//! that its sizes are then.

use melior::ir::{
    attribute::DenseI32ArrayAttribute,
    operation::{OperationLike, OperationRef},
};

use super::Runtime;
use crate::compiler::constant_of_launch as constant;

/// Most work items of a workgroup, for both vendors.
const MOST_ITEMS: i64 = 1024;

/// Most blocks of a cluster (CUDA C++ Programming Guide, "Thread Block Clusters").
const MOST_IN_CLUSTER: i64 = 16;

/// The group of the bytes of dynamic shared memory.
const DYNAMIC_SHARED: usize = 10;

/// Most bytes of a workgroup's memory that any chip has: CUDA C++ Programming Guide, "Technical Specifications per Compute
/// Capability"; LLVM's `AMDGPU.td`. What the device at hand has is seen when it launches.
const fn most_shared(runtime: Runtime) -> i64 {
    match runtime {
        Runtime::Cuda => 232_448,
        Runtime::Hip | Runtime::OpenMp => 327_680,
    }
}

/// A size of a launch, and the attributes by which kernels state it: those of which each number has to be the same.
struct Size {
    what: &'static str,
    /// Where its operands begin among those of `gpu.launch_func`, whose groups of operands these are: dependencies, the grid, the
    /// block, the cluster, and others.
    groups: [usize; 3],
    attributes: &'static [&'static str],
}

const SIZES: [Size; 3] = [
    Size {
        what: "grid",
        groups: [1, 2, 3],
        attributes: &["known_grid_size", "gpu.known_grid_size"],
    },
    Size {
        what: "block",
        groups: [4, 5, 6],
        attributes: &[
            "known_block_size",
            "gpu.known_block_size",
            "nvvm.reqntid",
            "rocdl.reqd_work_group_size",
        ],
    },
    Size {
        what: "cluster",
        groups: [7, 8, 9],
        attributes: &["known_cluster_size", "gpu.known_cluster_size", "nvvm.cluster_dim"],
    },
];

/// Why a launch can never be right, if its sizes say so. `kernel`: what it launches, where that is there.
pub(super) fn refusal(
    launch: OperationRef<'_, '_>,
    kernel: Option<OperationRef<'_, '_>>,
    runtime: Runtime,
) -> Option<String> {
    SIZES
        .iter()
        .find_map(|size| wrong_size(launch, kernel, size))
        .or_else(|| wrong_clusters(launch))
        .or_else(|| {
            let (bytes, most) = (constant(launch, DYNAMIC_SHARED)?, most_shared(runtime));
            (!(0..=most).contains(&bytes)).then(|| {
                format!("its dynamic shared memory is {bytes} bytes, and no chip has more than {most} for a block, or less than 0")
            })
        })
}

/// What is wrong with clusters that the launch gives.
fn wrong_clusters(launch: OperationRef<'_, '_>) -> Option<String> {
    let [grid, _, cluster] = &SIZES;
    let sizes = cluster.groups.map(|group| constant(launch, group));
    if let [Some(x), Some(y), Some(z)] = sizes
        && x.saturating_mul(y).saturating_mul(z) > MOST_IN_CLUSTER
    {
        return Some(format!(
            "its cluster of {x} x {y} x {z} has more than {MOST_IN_CLUSTER} blocks, the most that are possible"
        ));
    }
    let of_grid = grid.groups.map(|group| constant(launch, group));
    of_grid.iter().zip(&sizes).find_map(|(grid, cluster)| {
        let (grid, cluster) = ((*grid)?, (*cluster)?);
        (grid % cluster != 0)
            .then(|| format!("a size of its grid is {grid}, which is no multiple of its clusters' {cluster}"))
    })
}

fn wrong_size(launch: OperationRef<'_, '_>, kernel: Option<OperationRef<'_, '_>>, size: &Size) -> Option<String> {
    let numbers = size.groups.map(|group| constant(launch, group));
    let what = size.what;
    if let Some(number) = numbers.iter().flatten().find(|number| **number < 1) {
        return Some(format!(
            "a size of its {what} is {number}, and every size is at least 1"
        ));
    }
    if let ("block", [Some(x), Some(y), Some(z)]) = (what, numbers)
        && x.saturating_mul(y).saturating_mul(z) > MOST_ITEMS
    {
        return Some(format!(
            "its block of {x} x {y} x {z} has more than {MOST_ITEMS} work items, the most that are possible"
        ));
    }
    let (attribute, stated) = size.attributes.iter().find_map(|name| {
        let stated = DenseI32ArrayAttribute::try_from(kernel?.attribute(name).ok()?).ok()?;
        Some((*name, stated))
    })?;
    let stated: Vec<i64> = (0..stated.len())
        .filter_map(|index| stated.element(index).ok().map(i64::from))
        .collect();
    let differs = |(number, stated): (&Option<i64>, &i64)| number.is_some_and(|number| number != *stated);
    let by = |numbers: Vec<String>| numbers.join(" x ");
    numbers.iter().zip(&stated).any(differs).then(|| {
        let shown = |number: &Option<i64>| number.map_or_else(|| "?".to_owned(), |number| number.to_string());
        format!(
            "its {what} is {}, and the kernel states {} ({attribute}), which its code is made for",
            by(numbers.iter().map(shown).collect()),
            by(stated.iter().map(i64::to_string).collect())
        )
    })
}
