//! LLVM's code generators, which are used again for other modules.
//!
//! To make one costs little, but what it learns of its chip while it works does not: for AMD the registers that overlap each
//! of some ten thousand others.

use std::{
    cell::Cell,
    collections::BTreeMap,
    ffi::{CStr, c_int, c_void},
    ptr::null_mut,
    sync::{Mutex, MutexGuard, PoisonError},
    thread::panicking,
};

use llvm_sys::{
    core::LLVMDisposeMessage,
    target::{LLVMCopyStringRepOfTargetData, LLVMDisposeTargetData},
    target_machine::{LLVMCreateTargetDataLayout, LLVMDisposeTargetMachine, LLVMTargetMachineRef},
};

use super::contain::{Bytes, LlvmError, Outcome, Uncontained};

/// Times that a machine is taken: it keeps a description of the chip for every set of features that a function asks for.
const MOST_USES: u32 = 64;

/// Machines that wait for their next use. One for AMD holds 1.7 MiB.
const MOST_IDLE: usize = 16;

/// Machines that nobody is using. The one that was used last is taken first.
static IDLE: Mutex<Vec<Owned>> = Mutex::new(Vec::new());

fn idle() -> MutexGuard<'static, Vec<Owned>> {
    IDLE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[repr(C)]
struct MachineOptions {
    triple: Bytes,
    chip: Bytes,
    features: Bytes,
    optimization: c_int,
    contract_everywhere: bool,
    short_pointers: bool,
}

unsafe extern "C-unwind" {
    fn gpulowerCreateTargetMachine(options: *const MachineOptions, result: *mut LLVMTargetMachineRef) -> Outcome;
    fn gpulowerChipFeatures(
        machine: LLVMTargetMachineRef,
        closure: *mut c_void,
        report: extern "C" fn(*mut c_void, Bytes, bool, bool),
    );
}

/// What a machine is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Description {
    triple: String,
    chip: String,
    features: String,
    optimization: u8,
    contract_everywhere: bool,
    short_pointers: bool,
}

/// A machine of LLVM's, which is disposed of with this.
#[derive(Debug)]
struct Owned {
    raw: LLVMTargetMachineRef,
    description: Description,
    uses: u32,
}

// SAFETY: a machine may be used by any thread, by one at a time: it refers to nothing of the thread that made it, and to no
// module or context between two uses.
unsafe impl Send for Owned {}

impl Owned {
    fn new(description: Description) -> Result<Self, LlvmError> {
        let options = MachineOptions {
            triple: Bytes::new(description.triple.as_bytes()),
            chip: Bytes::new(description.chip.as_bytes()),
            features: Bytes::new(description.features.as_bytes()),
            optimization: c_int::from(description.optimization),
            contract_everywhere: description.contract_everywhere,
            short_pointers: description.short_pointers,
        };
        let mut raw = null_mut();
        // SAFETY: the strings are alive during the call.
        unsafe { gpulowerCreateTargetMachine(&options, &mut raw) }.into_result()?;
        Ok(Self {
            raw,
            description,
            uses: 0,
        })
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: made by `new`, disposed of once.
        unsafe { LLVMDisposeTargetMachine(self.raw) }
    }
}

/// LLVM's code generator for one chip, for one module at a time.
#[derive(Debug)]
pub(crate) struct TargetMachine {
    /// `None` only while it is dropped.
    owned: Option<Owned>,
    is_reusable: Cell<bool>,
}

impl TargetMachine {
    /// Takes a machine that nobody uses, or makes one. Chip and features have to be valid: LLVM would print a warning and go on.
    ///
    /// `optimization` is 0 to 3. With `contract_everywhere`, multiplications and additions are fused whatever the IR says.
    pub(crate) fn new(
        triple: &str,
        chip: &str,
        features: &str,
        optimization: u8,
        contract_everywhere: bool,
    ) -> Result<Self, LlvmError> {
        Self::with_pointers(triple, chip, features, optimization, contract_everywhere, false)
    }

    /// The same, with pointers of 32 bits into NVIDIA's constant, workgroup and private memory where they are to be short.
    pub(crate) fn with_pointers(
        triple: &str,
        chip: &str,
        features: &str,
        optimization: u8,
        contract_everywhere: bool,
        short_pointers: bool,
    ) -> Result<Self, LlvmError> {
        let description = Description {
            triple: triple.to_owned(),
            chip: chip.to_owned(),
            features: features.to_owned(),
            optimization: optimization.min(3),
            contract_everywhere,
            short_pointers,
        };
        let mut waiting = idle();
        let place = waiting.iter().rposition(|machine| machine.description == description);
        let known = place.map(|place| waiting.remove(place));
        drop(waiting);
        let mut owned = match known {
            Some(owned) => owned,
            None => Owned::new(description)?,
        };
        owned.uses += 1;
        Ok(Self {
            owned: Some(owned),
            is_reusable: Cell::new(true),
        })
    }

    /// LLVM's pointer, which is valid as long as this is.
    pub(super) fn raw(&self) -> LLVMTargetMachineRef {
        self.owned.as_ref().map_or(null_mut(), |owned| owned.raw)
    }

    /// A machine for a text of assembly, which has never generated code and never will again: in texts, machines number
    /// sections, and what calls through pointers, from module to module.
    pub(super) fn for_assembly(&self) -> Result<Self, LlvmError> {
        let owned = self.owned.as_ref().map(|owned| Owned::new(owned.description.clone()));
        Ok(Self {
            owned: owned.transpose()?,
            is_reusable: Cell::new(false),
        })
    }

    /// Gives on how a step with the machine ended: after one that failed, whatever state it was in, the machine serves nobody else.
    pub(super) fn is_reusable_after<T>(&self, result: Result<T, LlvmError>) -> Result<T, LlvmError> {
        if result.is_err() {
            self.is_reusable.set(false);
        }
        result
    }

    /// Every feature that LLVM knows of chips of this vendor, and whether the machine's chip has it; `None` for what is no chip's,
    /// but a setting.
    pub(crate) fn chip_features(&self) -> BTreeMap<String, Option<bool>> {
        extern "C" fn report(closure: *mut c_void, name: Bytes, has: bool, is_setting: bool) {
            let _uncontained = Uncontained::new();
            let features = closure.cast::<BTreeMap<String, Option<bool>>>();
            // SAFETY: the closure is the map below, the name lives during the call.
            unsafe { (*features).insert(name.to_text(), (!is_setting).then_some(has)) };
        }
        let mut features = BTreeMap::new();
        // SAFETY: the machine is alive, and `report` matches the closure.
        unsafe { gpulowerChipFeatures(self.raw(), (&raw mut features).cast(), report) };
        features
    }

    /// The data layout of its modules, in LLVM's syntax.
    pub(crate) fn data_layout(&self) -> String {
        // SAFETY: the machine is alive; layout and text are owned here, and disposed of once.
        unsafe {
            let layout = LLVMCreateTargetDataLayout(self.raw());
            let text = LLVMCopyStringRepOfTargetData(layout);
            let result = CStr::from_ptr(text).to_string_lossy().into_owned();
            LLVMDisposeMessage(text);
            LLVMDisposeTargetData(layout);
            result
        }
    }
}

impl Drop for TargetMachine {
    fn drop(&mut self) {
        let Some(owned) = self.owned.take() else { return };
        if !self.is_reusable.get() || panicking() || owned.uses >= MOST_USES {
            return;
        }
        let mut waiting = idle();
        let oldest = (waiting.len() >= MOST_IDLE).then(|| waiting.remove(0));
        waiting.push(owned);
        drop(waiting);
        drop(oldest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A chip that no other test asks for.
    fn machine(features: &str) -> TargetMachine {
        TargetMachine::new("amdgcn-amd-amdhsa", "gfx1036", features, 3, false).expect("a machine")
    }

    #[test]
    fn a_machine_serves_one_module_after_the_other() {
        let first = machine("");
        let raw = first.raw();
        assert_ne!(machine("").raw(), raw, "two at once");
        drop(first);
        assert_eq!(machine("").raw(), raw);
        assert_ne!(machine("+cumode").raw(), raw, "of other features");
    }

    #[test]
    fn a_machine_serves_nobody_after_a_failure_or_many_uses() {
        let waiting = |features: &str| {
            idle()
                .iter()
                .filter(|machine| machine.description.features == features)
                .count()
        };
        let failed = machine("+wavefrontsize64");
        let error = failed.is_reusable_after::<()>(Err(LlvmError::Refused("no".to_owned())));
        assert!(error.is_err());
        drop(failed);
        assert_eq!(waiting("+wavefrontsize64"), 0);
        for used in 1..=MOST_USES {
            drop(machine("-xnack"));
            assert_eq!(waiting("-xnack"), usize::from(used < MOST_USES), "{used}");
        }
    }
}
