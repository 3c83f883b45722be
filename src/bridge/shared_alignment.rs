//! Variables in workgroups' memory, aligned as the instructions that use them want it.

use std::ffi::c_void;

use llvm_sys::prelude::LLVMModuleRef;

use super::{
    LlvmError,
    contain::{Bytes, Outcome, Uncontained},
    llvm::DeviceModule,
};
use crate::error::Location;

/// A variable whose alignment was raised, or an address that cannot be aligned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SharedAlignment {
    /// The variable.
    pub(crate) variable: String,
    /// The instruction: the name of an intrinsic, or a word of inline assembly.
    pub(crate) instruction: String,
    /// The function that it is in.
    pub(crate) function: String,
    /// Where debug info says that it is.
    pub(crate) location: Option<Location>,
    /// The bytes between the start of the variable and an address that cannot be aligned.
    pub(crate) misfit: Option<u64>,
    /// What the variable was aligned to, in bytes.
    pub(crate) from: u64,
    /// What is wanted.
    pub(crate) to: u64,
}

/// `GpulowerSharedAlignment` of `cpp/shared_alignment.cpp`.
#[repr(C)]
struct Entry {
    variable: Bytes,
    instruction: Bytes,
    function: Bytes,
    directory: Bytes,
    file: Bytes,
    line: u32,
    column: u32,
    misfit: bool,
    offset: u64,
    from: u64,
    to: u64,
}

unsafe extern "C-unwind" {
    fn gpulowerAlignShared(
        module: LLVMModuleRef,
        closure: *mut c_void,
        report: extern "C" fn(*mut c_void, *const Entry),
    ) -> Outcome;
}

/// Raises alignments, orders the variables by them, and returns what was raised and what cannot be.
pub(crate) fn align_shared(module: &DeviceModule<'_>) -> Result<Vec<SharedAlignment>, LlvmError> {
    extern "C" fn report(closure: *mut c_void, entry: *const Entry) {
        let _uncontained = Uncontained::new();
        // SAFETY: the closure is the vector below; entry and texts live during the call.
        unsafe {
            let entry = &*entry;
            let file = match (entry.directory.to_text(), entry.file.to_text()) {
                (directory, file) if directory.is_empty() || file.starts_with('/') => file,
                (directory, file) => format!("{directory}/{file}"),
            };
            let location = (entry.line > 0).then(|| Location::in_file(&file, entry.line, entry.column));
            (*closure.cast::<Vec<SharedAlignment>>()).push(SharedAlignment {
                variable: entry.variable.to_text(),
                instruction: entry.instruction.to_text(),
                function: entry.function.to_text(),
                location,
                misfit: entry.misfit.then_some(entry.offset),
                from: entry.from,
                to: entry.to,
            });
        }
    }
    let mut entries: Vec<SharedAlignment> = Vec::new();
    // SAFETY: the module is alive, and `report` matches the closure it is given.
    module.finish(unsafe { gpulowerAlignShared(module.inkwell().as_mut_ptr(), (&raw mut entries).cast(), report) })?;
    Ok(entries)
}
