//! What kernels state of their launches and ask of the chip: refused where no launch could fit it.

use inkwell::attributes::AttributeLoc;
use melior::ir::{
    Module,
    attribute::DenseI32ArrayAttribute,
    operation::{OperationLike, OperationRef},
};

use super::{DeviceError, Refusal, lower::name_of, symbols::symbol_of};
use crate::{
    bridge::{
        kernel_sizes::kernel_sizes,
        llvm::DeviceModule,
        mlir::{operations, place_of},
    },
    options::{Resolved, ResolvedVendor},
    target::Target,
};

/// Most work items of a workgroup, for both vendors (CUDA C++ Programming Guide, "Compute Capabilities"; LLVM's AMDGPUUsage,
/// `.max_flat_workgroup_size`).
const MOST_ITEMS: i64 = 1024;

/// Most workgroups of a cluster. More than 8 need the launch's consent (CUDA C++ Programming Guide, "Thread Block Clusters").
const MOST_IN_CLUSTER: i64 = 16;

/// A size that a kernel states of its launches.
struct Stated {
    what: &'static str,
    /// The attributes that say it: of `gpu.func`, and of lowered functions.
    attributes: &'static [&'static str],
}

const BLOCK: Stated = Stated {
    what: "block",
    attributes: &[
        "known_block_size",
        "gpu.known_block_size",
        "nvvm.reqntid",
        "nvvm.maxntid",
        "rocdl.reqd_work_group_size",
    ],
};
const GRID: Stated = Stated {
    what: "grid",
    attributes: &["known_grid_size", "gpu.known_grid_size"],
};
const CLUSTER: Stated = Stated {
    what: "cluster",
    attributes: &["known_cluster_size", "gpu.known_cluster_size", "nvvm.cluster_dim"],
};

/// Refuses sizes of blocks, grids and clusters that no launch can have.
pub(super) fn check_stated_sizes(module: &Module<'_>, target: &Target) -> Result<(), DeviceError> {
    for function in operations(module) {
        if !matches!(name_of(&function).as_str(), "gpu.func" | "llvm.func") {
            continue;
        }
        if let Some(reason) = wrong_size(function, target) {
            let kernel = symbol_of(&function).unwrap_or_default();
            let refusal = Refusal::contract(&kernel, target, &reason);
            return Err(refusal.at(place_of(function.location())).into());
        }
    }
    Ok(())
}

fn wrong_size(function: OperationRef<'_, '_>, target: &Target) -> Option<String> {
    // CUDA C++ Programming Guide, "Technical Specifications per Compute Capability".
    let (block_limits, grid_limits) = match target {
        Target::Nvidia(_) => ([1024, 1024, 64], [i64::from(i32::MAX), 65535, 65535]),
        Target::Amd(_) => ([MOST_ITEMS; 3], [i64::from(i32::MAX); 3]),
    };
    let clusters = target.as_nvidia().is_some_and(|chip| chip.has_cluster());
    let most_in_cluster = if clusters { MOST_IN_CLUSTER } else { 1 };
    let check = |stated: &Stated, limits: [i64; 3], most: i64| {
        let sizes = sizes_of(function, stated)?;
        too_large(stated.what, &sizes, limits, most)
    };
    check(&BLOCK, block_limits, MOST_ITEMS)
        .or_else(|| check(&GRID, grid_limits, i64::MAX))
        .or_else(|| {
            let reason = check(&CLUSTER, [most_in_cluster; 3], most_in_cluster)?;
            Some(match clusters {
                true => reason,
                false => "it states the size of its clusters, which the chip does not have".to_owned(),
            })
        })
        .or_else(|| {
            let (grid, cluster) = (sizes_of(function, &GRID)?, sizes_of(function, &CLUSTER)?);
            let divides = grid.iter().zip(&cluster).all(|(grid, cluster)| grid % cluster == 0);
            (!divides).then(|| {
                format!(
                    "its grid of {} is not made of whole clusters of {}",
                    by(&grid),
                    by(&cluster)
                )
            })
        })
}

fn sizes_of(function: OperationRef<'_, '_>, stated: &Stated) -> Option<Vec<i64>> {
    let attribute = stated
        .attributes
        .iter()
        .find_map(|name| function.attribute(name).ok())?;
    let sizes = DenseI32ArrayAttribute::try_from(attribute).ok()?;
    (0..sizes.len())
        .map(|index| sizes.element(index).ok().map(i64::from))
        .collect()
}

fn too_large(what: &str, sizes: &[i64], limits: [i64; 3], most: i64) -> Option<String> {
    let shown = by(sizes);
    if sizes.len() > limits.len() {
        return Some(format!("it states a {what} of {shown}, and there are three dimensions"));
    }
    for ((&size, limit), dimension) in sizes.iter().zip(limits).zip(["x", "y", "z"]) {
        if size < 1 {
            return Some(format!("it states a {what} of {shown}: every size is at least 1"));
        }
        if size > limit {
            return Some(format!(
                "it states a {what} of {shown}, and at most {limit} are possible in {dimension}"
            ));
        }
    }
    let all = sizes.iter().try_fold(1i64, |product, &size| product.checked_mul(size));
    let unit = if what == "block" { "work items" } else { "blocks" };
    (most < i64::MAX && all.is_none_or(|all| all > most))
        .then(|| format!("it states a {what} of {shown}, and at most {most} {unit} are possible"))
}

fn by(sizes: &[i64]) -> String {
    let sizes: Vec<String> = sizes.iter().map(i64::to_string).collect();
    sizes.join(" x ")
}

/// Refuses bounds of launches that LLVM IR states and no launch can keep to, which LLVM, NVIDIA's compiler and the driver leave
/// out in silence, or report without a name.
pub(super) fn check_launch_bounds(module: &DeviceModule<'_>, target: &Target) -> Result<(), DeviceError> {
    for function in module.inkwell().get_functions() {
        let value_of = |name: &str| {
            let attribute = function.get_string_attribute(AttributeLoc::Function, name)?;
            Some(attribute.get_string_value().to_string_lossy().into_owned())
        };
        let bounds = match target {
            Target::Nvidia(_) => BOUNDS_OF_NVIDIA,
            Target::Amd(_) => BOUNDS_OF_AMD,
        };
        for bound in bounds {
            if let Some(value) = value_of(bound.attribute)
                && !(bound.is_possible)(&numbers(&value))
            {
                let kernel = function.get_name().to_string_lossy();
                let reason = format!("its {} is {value}, and has to be {}", bound.attribute, bound.wanted);
                return Err(Refusal::contract(&kernel, target, &reason).about_kernel(&kernel).into());
            }
        }
    }
    Ok(())
}

/// An attribute of functions in LLVM IR.
struct Bound {
    attribute: &'static str,
    is_possible: fn(&[i64]) -> bool,
    wanted: &'static str,
}

/// PTX ISA, "Performance-Tuning Directives" and "Cluster Dimension Directives".
const BOUNDS_OF_NVIDIA: &[Bound] = &[
    Bound {
        attribute: "nvvm.reqntid",
        is_possible: is_block,
        wanted: A_BLOCK,
    },
    Bound {
        attribute: "nvvm.maxntid",
        is_possible: is_block,
        wanted: A_BLOCK,
    },
    Bound {
        attribute: "nvvm.maxnreg",
        is_possible: |value| matches!(value, [1..=0x7fff_ffff]),
        wanted: "a number above 0",
    },
    Bound {
        attribute: "nvvm.minctasm",
        is_possible: |value| matches!(value, [0..=0x7fff_ffff]),
        wanted: "a number",
    },
    Bound {
        attribute: "nvvm.maxclusterrank",
        is_possible: |value| matches!(value, [1..=MOST_IN_CLUSTER]),
        wanted: "1 to 16",
    },
    Bound {
        attribute: "nvvm.cluster_dim",
        // Nothing but zeros: clusters of the size that the launch gives.
        is_possible: |value| {
            let all = value.iter().try_fold(1i64, |all, &size| all.checked_mul(size));
            value.len() <= 3
                && !value.is_empty()
                && (value.iter().all(|&size| size == 0)
                    || value.iter().all(|&size| size > 0) && all.is_some_and(|all| all <= MOST_IN_CLUSTER))
        },
        wanted: "one to three sizes whose product is 1 to 16",
    },
];

/// LLVM's AMDGPUUsage, "LLVM IR Attributes".
const BOUNDS_OF_AMD: &[Bound] = &[
    Bound {
        attribute: "amdgpu-flat-work-group-size",
        is_possible: |value| matches!(value, &[least, most] if 1 <= least && least <= most && most <= MOST_ITEMS),
        wanted: "two numbers from 1 to 1024, the first at most the second",
    },
    Bound {
        attribute: "amdgpu-waves-per-eu",
        is_possible: |value| matches!(value, [0..=0x7fff_ffff] | [0..=0x7fff_ffff, 0..=0x7fff_ffff]),
        wanted: "one or two numbers",
    },
];

const A_BLOCK: &str = "one to three sizes of at least 1, of at most 1024 threads, 64 in z";

fn is_block(sizes: &[i64]) -> bool {
    let all = sizes.iter().try_fold(1i64, |all, &size| all.checked_mul(size));
    (1..=3).contains(&sizes.len())
        && sizes.iter().all(|&size| size >= 1)
        && all.is_some_and(|all| all <= MOST_ITEMS)
        && sizes.get(2).is_none_or(|&z| z <= 64)
}

/// Empty where something is no number.
fn numbers(list: &str) -> Vec<i64> {
    let numbers: Option<Vec<i64>> = list.split(',').map(|number| number.trim().parse().ok()).collect();
    numbers.unwrap_or_default()
}

/// Refuses kernels with more variables in their workgroup's memory, or more parameters, than the chip has room for.
pub(super) fn check_kernel_sizes(module: &DeviceModule<'_>, resolved: &Resolved) -> Result<(), DeviceError> {
    for sizes in kernel_sizes(module)? {
        let too_much = |what: &str, bytes: u64, most: u64, advice: &str| {
            let (kernel, target) = (&sizes.name, &resolved.target);
            let message =
                format!("the kernel {kernel} has {bytes} bytes of {what}, and {target} has room for {most}: {advice}");
            DeviceError::from(Refusal::lowering(message).about_kernel(kernel))
        };
        let most = most_shared(&resolved.target);
        if sizes.shared > most {
            let advice = match resolved.target {
                Target::Nvidia(_) => "take more from gpu.dynamic_shared_memory, whose size the launch gives",
                Target::Amd(_) => "work on smaller tiles",
            };
            return Err(too_much("variables in workgroup memory", sizes.shared, most, advice));
        }
        if let Some(most) = most_parameters(resolved)
            && sizes.parameters > most
        {
            let advice = "pass a pointer to them";
            return Err(too_much("parameters", sizes.parameters, most, advice));
        }
    }
    Ok(())
}

/// Bytes that variables of a workgroup may have: the limit of ptxas ("0xc000 max"), and LLVM's for AMD's chips (`AMDGPU.td`,
/// `FeatureAddressableLocalMemorySize...`; the oldest have 32768, which LLVM says itself).
fn most_shared(target: &Target) -> u64 {
    match target {
        Target::Nvidia(_) => 49152,
        Target::Amd(chip) => match (chip.isa_version().major, chip.isa_version().minor) {
            (9, 5) => 163_840,
            (12, 5) => 327_680,
            _ => 65536,
        },
    }
}

/// PTX ISA, "Kernel Function Parameters": 32,764 bytes since PTX ISA 8.1 for sm_70 and later, 4,096 before. AMD's runtimes take
/// what the code object says.
fn most_parameters(resolved: &Resolved) -> Option<u64> {
    let chip = resolved.target.as_nvidia()?;
    let ResolvedVendor::Nvidia { ptx, ptx_is_fixed } = &resolved.vendor else {
        return None;
    };
    // Where none is asked for, ptxas says that a newer one is needed, and gets it.
    let large = chip.number() >= 70 && (ptx.number() >= 81 || !ptx_is_fixed);
    Some(if large { 32764 } else { 4096 })
}
