//! Values of LLVM IR that its code generators crash on, or take minutes over.

use std::ffi::c_int;

use llvm_sys::prelude::LLVMModuleRef;

use super::{contain::Bytes, llvm::DeviceModule};

/// `GpulowerValueLimits` of `cpp/large_values.cpp`: the most that a value may have.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct ValueLimits {
    /// Elements of a vector.
    pub(crate) elements: u64,
    /// Members of an array or a structure, those of its members counted.
    pub(crate) members: u64,
    /// Bits of an integer.
    pub(crate) bits: u64,
}

/// A value that is too large, or of another processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LargeValue {
    /// A vector with so many elements.
    Vector(u64),
    /// An array or a structure with so many members.
    Aggregate(u64),
    /// An integer of so many bits.
    Integer(u64),
    /// One of a type that no GPU computes with: `x86_fp80`, `ppc_fp128`, `target("...")`.
    Foreign,
}

unsafe extern "C-unwind" {
    fn gpulowerFindLargeValue(
        module: LLVMModuleRef,
        limits: *const ValueLimits,
        function: *mut Bytes,
        count: *mut u64,
    ) -> c_int;
}

/// The first function that has a value beyond the limits, and the value.
pub(crate) fn large_value(module: &DeviceModule<'_>, limits: &ValueLimits) -> Option<(String, LargeValue)> {
    let mut function = Bytes::new(&[]);
    let mut count = 0;
    // SAFETY: the module is alive, and with it the name of a function that is found.
    let (kind, name) = unsafe {
        let module = module.inkwell().as_mut_ptr();
        let kind = gpulowerFindLargeValue(module, limits, &mut function, &mut count);
        (kind, function.to_text())
    };
    let value = match kind {
        1 => LargeValue::Vector(count),
        2 => LargeValue::Aggregate(count),
        3 => LargeValue::Integer(count),
        4 => LargeValue::Foreign,
        _ => return None,
    };
    Some((name, value))
}
