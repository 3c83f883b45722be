//! Kernels that take each of their arguments in eight bytes, as libomptarget hands them over.

use melior::ir::{
    Module, Type,
    operation::{OperationLike, OperationRef},
};
use mlir_sys::{MlirOperation, MlirType};

use super::{
    edit::Exclusive,
    mlir::{place_of, shown},
};
use crate::error::Location;

unsafe extern "C-unwind" {
    fn gpulowerWidenArguments(root: MlirOperation, leading_pointer: bool, found: *mut MlirType) -> MlirOperation;
}

/// Lets every kernel of a module take numbers of fewer than eight bytes in eight; and another pointer before everything else, if
/// that is asked for.
///
/// # Errors
///
/// The first kernel with an argument that is neither a number nor a pointer: the type, and where the kernel is. The module is
/// as it was then.
pub(crate) fn widen_arguments(module: &mut Module<'_>, leading_pointer: bool) -> Result<(), (String, Location)> {
    let exclusive = Exclusive::of(module);
    let mut kind = MlirType {
        ptr: std::ptr::null_mut(),
    };
    // SAFETY: the module is alive, and nobody else has a reference into it. What is found is one of its operations, and the type
    // is set then.
    unsafe {
        let refused = gpulowerWidenArguments(exclusive.get().to_raw(), leading_pointer, &mut kind);
        if refused.ptr.is_null() {
            return Ok(());
        }
        let (kernel, kind) = (OperationRef::from_raw(refused), Type::from_raw(kind));
        Err((shown(&kind), place_of(kernel.location())))
    }
}
