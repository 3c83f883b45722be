//! What a device module is taken apart by, and taking a part of it into an LLVM context of its own (`cpp/split.cpp`).

use std::{ffi::c_void, ptr::null_mut, slice};

use llvm_sys::prelude::{LLVMContextRef, LLVMModuleRef};

use super::{
    contain::{Bytes, Collected, LlvmError, Outcome, Uncontained},
    llvm::{DeviceContext, DeviceModule},
};

/// `GpulowerGlobal` of `cpp/split.cpp`.
#[repr(C)]
struct RawGlobal {
    name: Bytes,
    is_function: bool,
    is_definition: bool,
    is_shareable: bool,
    is_mergeable: bool,
    initializer: usize,
    instructions: usize,
    references: *const usize,
    reference_count: usize,
}

unsafe extern "C-unwind" {
    fn gpulowerCountInstructions(module: LLVMModuleRef) -> usize;
    fn gpulowerGlobals(
        module: LLVMModuleRef,
        closure: *mut c_void,
        report: extern "C" fn(*mut c_void, *const RawGlobal),
    ) -> Outcome;
    fn gpulowerShare(module: LLVMModuleRef, names: *const Bytes, count: usize, was_private: *mut bool);
    fn gpulowerUnshare(module: LLVMModuleRef, names: *const Bytes, count: usize, was_private: *const bool);
    fn gpulowerWriteExactly(
        module: LLVMModuleRef,
        closure: *mut c_void,
        sink: extern "C" fn(*mut c_void, Bytes),
    ) -> Outcome;
    fn gpulowerTakePart(
        context: LLVMContextRef,
        bitcode: Bytes,
        name: Bytes,
        kept: *const bool,
        count: usize,
        result: *mut LLVMModuleRef,
    ) -> Outcome;
}

/// A function or variable of a module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Global {
    /// Its name in LLVM IR.
    pub(crate) name: String,
    /// Otherwise it is a variable.
    pub(crate) is_function: bool,
    /// Otherwise it is a declaration.
    pub(crate) is_definition: bool,
    /// Whether several parts may have it: a function that is inlined wherever it is called, or a variable that is never
    /// written.
    pub(crate) is_shareable: bool,
    /// Whether LLVM may merge it with a variable of the same initial value.
    pub(crate) is_mergeable: bool,
    /// Variables of the same initial value that is never written have the same number.
    pub(crate) initializer: Option<usize>,
    /// The size of a function.
    pub(crate) instructions: usize,
    /// The positions of what it refers to.
    pub(crate) references: Vec<usize>,
}

/// Definitions that were given another linkage for the time of optimisation.
#[derive(Debug)]
pub(crate) struct Shared {
    names: Vec<String>,
    was_private: Vec<bool>,
}

impl DeviceModule<'_> {
    /// The number of instructions.
    pub(crate) fn count_instructions(&self) -> usize {
        // SAFETY: the module is alive.
        unsafe { gpulowerCountInstructions(self.inkwell().as_mut_ptr()) }
    }

    /// Every function in the order of the module, and then every variable.
    ///
    /// # Errors
    ///
    /// Why the module cannot be taken apart.
    pub(crate) fn globals(&self) -> Result<Vec<Global>, LlvmError> {
        extern "C" fn report(closure: *mut c_void, global: *const RawGlobal) {
            let _uncontained = Uncontained::new();
            // SAFETY: the closure is the vector below; name and references live during the call.
            unsafe {
                let globals = &mut *closure.cast::<Vec<Global>>();
                let global = &*global;
                globals.push(Global {
                    name: global.name.to_text(),
                    is_function: global.is_function,
                    is_definition: global.is_definition,
                    is_shareable: global.is_shareable,
                    is_mergeable: global.is_mergeable,
                    initializer: (global.initializer != 0).then_some(global.initializer),
                    instructions: global.instructions,
                    references: if global.reference_count == 0 {
                        Vec::new()
                    } else {
                        slice::from_raw_parts(global.references, global.reference_count).to_vec()
                    },
                });
            }
        }
        let mut globals: Vec<Global> = Vec::new();
        // SAFETY: the module is alive; `report` matches the closure it is given.
        self.finish(unsafe { gpulowerGlobals(self.inkwell().as_mut_ptr(), (&raw mut globals).cast(), report) })?;
        Ok(globals)
    }

    /// Gives definitions a linkage with which passes draw no conclusions from who uses them, until [`Self::unshare`].
    pub(crate) fn share(&self, names: Vec<String>) -> Shared {
        let mut was_private = vec![false; names.len()];
        let raw = to_bytes(&names);
        // SAFETY: the module and the names are alive, and there is room for an answer for each.
        unsafe {
            gpulowerShare(
                self.inkwell().as_mut_ptr(),
                raw.as_ptr(),
                raw.len(),
                was_private.as_mut_ptr(),
            );
        }
        Shared { names, was_private }
    }

    /// Makes definitions again what they were, as far as they are still there.
    pub(crate) fn unshare(&self, shared: &Shared) {
        let raw = to_bytes(&shared.names);
        // SAFETY: the module and the names are alive; there is an answer for each name.
        unsafe {
            gpulowerUnshare(
                self.inkwell().as_mut_ptr(),
                raw.as_ptr(),
                raw.len(),
                shared.was_private.as_ptr(),
            );
        }
    }

    /// The module as bitcode from which the same module comes, the order of uses included.
    pub(crate) fn to_exact_bitcode(&self) -> Result<Vec<u8>, LlvmError> {
        self.written(|module, closure| {
            // SAFETY: the module is alive, and the sink matches the closure.
            unsafe { gpulowerWriteExactly(module, closure, Collected::sink) }
        })
    }
}

impl DeviceContext {
    /// Reads those functions and variables of bitcode for which `kept` is set, by their position in
    /// [`DeviceModule::globals`].
    pub(crate) fn take_part(&self, bitcode: &[u8], name: &str, kept: &[bool]) -> Result<DeviceModule<'_>, LlvmError> {
        let mut raw = null_mut();
        // SAFETY: the bytes are read within the call; what is kept has been materialised.
        let outcome = unsafe {
            gpulowerTakePart(
                self.raw(),
                Bytes::new(bitcode),
                Bytes::new(name.as_bytes()),
                kept.as_ptr(),
                kept.len(),
                &mut raw,
            )
        };
        self.finish(outcome)?;
        // SAFETY: success means a module of this context, owned by the caller.
        Ok(unsafe { DeviceModule::from_raw(raw, self) })
    }
}

fn to_bytes(names: &[String]) -> Vec<Bytes> {
    names.iter().map(|name| Bytes::new(name.as_bytes())).collect()
}
