//! Barriers in front of reductions of workgroups that may run again.

use std::collections::HashSet;

use melior::ir::{
    BlockLike, BlockRef, Module,
    operation::{OperationBuilder, OperationLike, OperationRef},
};

use super::lower::name_of;
use crate::bridge::mlir::operations;

/// Operations whose regions run once at most each time that they are reached themselves.
const ONCE: &[&str] = &[
    "affine.if",
    "gpu.warp_execute_on_lane_0",
    "memref.alloca_scope",
    "scf.execute_region",
    "scf.if",
    "scf.index_switch",
];

/// `gpu.all_reduce` becomes writes and reads of a shared buffer with no barrier behind the last read: repeated,
/// one thread's next write may overtake another's read. A barrier in front of every reduction that may run again
/// closes the gap.
pub(super) fn synchronize_repeated_reductions(module: &Module<'_>) {
    for reduction in operations(module)
        .into_iter()
        .filter(|operation| name_of(operation) == "gpu.all_reduce")
    {
        let Some(block) = reduction.block() else { continue };
        if may_repeat(reduction)
            && let Ok(barrier) = OperationBuilder::new("gpu.barrier", reduction.location()).build()
        {
            block.insert_operation_before(reduction, barrier);
        }
    }
}

/// Whether an operation may run more than once in a launch of a kernel: anything but a kernel's own control flow without a
/// way back.
fn may_repeat(operation: OperationRef<'_, '_>) -> bool {
    let mut inner = operation;
    loop {
        if inner.block().is_none_or(|block| is_in_a_cycle(block)) {
            return true;
        }
        let Some(parent) = inner.parent_operation() else {
            return true;
        };
        let name = name_of(&parent);
        if name == "gpu.func" {
            // What is no kernel may be called from anywhere.
            return !parent.has_attribute("kernel") && !parent.has_attribute("gpu.kernel");
        }
        if !ONCE.contains(&name.as_str()) {
            return true;
        }
        inner = parent;
    }
}

/// Whether control can get from the end of a block to its beginning.
fn is_in_a_cycle(block: BlockRef<'_, '_>) -> bool {
    let mut seen = HashSet::new();
    let mut open = vec![block];
    while let Some(next) = open.pop() {
        let Some(last) = next.terminator() else { continue };
        for successor in (0..last.successor_count()).filter_map(|index| last.successor(index).ok()) {
            if successor == block {
                return true;
            }
            if seen.insert(successor.to_raw().ptr) {
                open.push(successor);
            }
        }
    }
    false
}
