//! What kernels ask of the chip, as far as their module says it.

use std::ffi::c_void;

use llvm_sys::prelude::LLVMModuleRef;

use super::{
    LlvmError,
    contain::{Bytes, Outcome, Uncontained},
    llvm::DeviceModule,
};

/// A kernel's sizes in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KernelSizes {
    /// The kernel.
    pub(crate) name: String,
    /// Of the variables in the memory of its workgroup.
    pub(crate) shared: u64,
    /// Of its parameters.
    pub(crate) parameters: u64,
}

unsafe extern "C-unwind" {
    fn gpulowerKernelSizes(
        module: LLVMModuleRef,
        closure: *mut c_void,
        report: extern "C" fn(*mut c_void, Bytes, u64, u64),
    ) -> Outcome;
}

/// The sizes of all kernels of a module.
pub(crate) fn kernel_sizes(module: &DeviceModule<'_>) -> Result<Vec<KernelSizes>, LlvmError> {
    extern "C" fn report(closure: *mut c_void, name: Bytes, shared: u64, parameters: u64) {
        let _uncontained = Uncontained::new();
        // SAFETY: the closure is the vector below; the name lives during the call.
        unsafe {
            (*closure.cast::<Vec<KernelSizes>>()).push(KernelSizes {
                name: name.to_text(),
                shared,
                parameters,
            });
        }
    }
    let mut sizes: Vec<KernelSizes> = Vec::new();
    // SAFETY: the module is alive, and `report` matches the closure it is given.
    module.finish(unsafe { gpulowerKernelSizes(module.inkwell().as_mut_ptr(), (&raw mut sizes).cast(), report) })?;
    Ok(sizes)
}
