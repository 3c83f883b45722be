//! Atomic operations: scopes, and those of the `memref` dialect.
//!
//! `memref.atomic_rmw` and `memref.generic_atomic_rmw` promise to be free from data races, and name neither an ordering nor a
//! scope. MLIR's conversion makes `acq_rel` of the whole system out of it, which LLVM ignores for NVIDIA, and of which it makes
//! loops for AMD. Here they are of the device, which is what can run into them, or of the workgroup in its memory; `acq_rel`
//! where the old value is used, so that a block that learns from it that it is the last one sees what the others wrote; and
//! relaxed where nobody looks, as in a histogram, or where it is only the place that something is stored to, as in a compaction.
//!
//! AMD's gfx11 and gfx90a add floats in memory that the host sees at the same time without effect ("Memory Model" and
//! "amdgpu.no.fine.grained.memory" in LLVM's AMDGPUUsage): the instruction is for those who say that there is none.

use melior::{
    Context,
    ir::{
        Attribute, Module, Type, ValueLike,
        attribute::{IntegerAttribute, StringAttribute},
        operation::{OperationLike, OperationRef},
        r#type::IntegerType,
    },
};

use super::{
    DeviceError,
    lower::{name_of, refused},
};
use crate::{
    bridge::mlir::{operations, remove_attribute, set_attribute, shown, string_value, uses},
    options::{Resolved, ResolvedVendor},
    target::Target,
};

/// Marks what was there before.
const STATED: &str = "gpulower.stated";

/// `llvm::AtomicOrdering::Monotonic` (llvm/include/llvm/Support/AtomicOrdering.h).
const MONOTONIC: i64 = 2;

fn atomics<'c, 'a>(module: &'a Module<'c>) -> impl Iterator<Item = OperationRef<'c, 'a>> {
    let is_atomic =
        |operation: &OperationRef<'_, '_>| ["llvm.atomicrmw", "llvm.cmpxchg"].contains(&name_of(operation).as_str());
    operations(module).into_iter().filter(is_atomic)
}

/// Refuses scopes of the other vendor, on which LLVM would end in a fatal error without a place.
pub(super) fn check_scopes(module: &Module<'_>, target: &Target) -> Result<(), DeviceError> {
    let (vendor, scopes) = match target {
        Target::Nvidia(_) => ("NVIDIA", &["singlethread", "block", "cluster", "device"][..]),
        Target::Amd(_) => (
            "AMD",
            &["singlethread", "wavefront", "workgroup", "cluster", "agent"][..],
        ),
    };
    for operation in operations(module) {
        let scope = operation.attribute("syncscope").ok().and_then(string_value);
        let Some(scope) = scope.filter(|scope| !scope.is_empty()) else {
            continue;
        };
        // AMD: of one address space alone.
        let plain = scope
            .strip_suffix("-one-as")
            .filter(|_| matches!(target, Target::Amd(_)));
        if scope != "one-as" && !scopes.contains(&plain.unwrap_or(&scope)) {
            let (name, known) = (name_of(&operation), scopes.join(", "));
            let message = format!(
                "{name} has the scope {scope:?}, which is none of {vendor}'s: {known}, or no scope for the whole system"
            );
            return Err(refused(message, operation));
        }
    }
    Ok(())
}

/// Marks the operations that state their ordering and scope themselves.
pub(super) fn mark_stated(context: &Context, module: &Module<'_>) {
    for operation in atomics(module) {
        set_attribute(operation, STATED, Attribute::unit(context));
    }
}

/// Gives the others theirs, and removes the marks.
pub(super) fn order_the_others(context: &Context, module: &Module<'_>, resolved: &Resolved) {
    let coarse_grained = matches!(
        resolved.vendor,
        ResolvedVendor::Amd {
            coarse_grained_memory: true,
            ..
        }
    );
    for operation in atomics(module) {
        // What memory there is does not depend on who ordered the accesses to it.
        if coarse_grained && name_of(&operation) == "llvm.atomicrmw" {
            for name in ["rocdl.no_fine_grained_memory", "rocdl.no_remote_memory"] {
                set_attribute(operation, name, Attribute::unit(context));
            }
        }
        if operation.has_attribute(STATED) {
            remove_attribute(operation, STATED);
            continue;
        }
        let scope = scope_of(operation, &resolved.target);
        set_attribute(operation, "syncscope", StringAttribute::new(context, scope).into());
        if name_of(&operation) == "llvm.atomicrmw" && is_only_a_place(operation) {
            let number: Type<'_> = IntegerType::new(context, 64).into();
            set_attribute(operation, "ordering", IntegerAttribute::new(number, MONOTONIC).into());
        }
    }
}

/// Whether a value has no use but in the addresses of stores: no thread decides anything by it, and none reads what it points to.
fn is_only_a_place(operation: OperationRef<'_, '_>) -> bool {
    const ARITHMETIC: [&str; 9] = [
        "llvm.add",
        "llvm.and",
        "llvm.getelementptr",
        "llvm.mul",
        "llvm.or",
        "llvm.sext",
        "llvm.shl",
        "llvm.sub",
        "llvm.zext",
    ];
    /// The second operand, after what is stored.
    const ADDRESS: usize = 1;
    /// What is more is no index that anybody wrote.
    const MOST_STEPS: usize = 64;
    let mut values = vec![operation];
    let mut steps = 0;
    while let Some(value) = values.pop() {
        steps += 1;
        if steps > MOST_STEPS {
            return false;
        }
        for (user, operand) in uses(value) {
            match name_of(&user).as_str() {
                "llvm.store" if operand == ADDRESS => {}
                name if ARITHMETIC.contains(&name) => values.push(user),
                _ => return false,
            }
        }
    }
    true
}

/// The scope of who can run into it.
fn scope_of(operation: OperationRef<'_, '_>, target: &Target) -> &'static str {
    let is_shared = || {
        operation
            .operand(0)
            .is_ok_and(|pointer| shown(&pointer.r#type()) == "!llvm.ptr<3>")
    };
    match target {
        // LLVM knows that a block alone sees its memory.
        Target::Nvidia(_) => "device",
        Target::Amd(_) if is_shared() => "workgroup",
        Target::Amd(_) => "agent",
    }
}
