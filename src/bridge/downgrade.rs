//! Changes modules until older releases of LLVM can read them (`cpp/downgrade.h`).

use std::ffi::{c_int, c_void};

use llvm_sys::prelude::LLVMModuleRef;

use super::{
    contain::{Bytes, LlvmError, Outcome, Uncontained},
    llvm::DeviceModule,
};

/// What a name is of; `GpulowerKind` of `cpp/downgrade.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(i32)]
pub(crate) enum Kind {
    /// An address space, by number.
    AddressSpace = 0,
    /// An operation of `atomicrmw`.
    AtomicOperation = 1,
    /// An attribute of a function, parameter, result, call or global.
    Attribute = 2,
    /// A tag of operand bundles.
    Bundle = 3,
    /// A calling convention, by number.
    CallingConvention = 4,
    /// Anything else, in words.
    Construct = 5,
    /// An instruction or constant expression, by its opcode.
    Instruction = 6,
    /// An intrinsic, by its full name or the part of it that is the same for every type.
    Intrinsic = 7,
    /// A kind of metadata.
    Metadata = 8,
}

impl Kind {
    const ALL: [Self; 9] = [
        Self::AddressSpace,
        Self::AtomicOperation,
        Self::Attribute,
        Self::Bundle,
        Self::CallingConvention,
        Self::Construct,
        Self::Instruction,
        Self::Intrinsic,
        Self::Metadata,
    ];

    fn from_raw(raw: c_int) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as c_int == raw)
    }
}

/// Something in a module that its readers do not know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    /// What it is.
    pub(crate) kind: Kind,
    /// Its name.
    pub(crate) name: String,
    /// The function or global that has it; empty for the module as a whole.
    pub(crate) place: String,
    /// Whether it is still there, because nothing else means the same. Otherwise it was left out, and somebody may miss it.
    pub(crate) refused: bool,
}

#[repr(C)]
struct Reader {
    closure: *mut c_void,
    knows: extern "C" fn(*mut c_void, c_int, Bytes) -> bool,
    report: extern "C" fn(*mut c_void, bool, c_int, Bytes, Bytes),
}

unsafe extern "C-unwind" {
    fn gpulowerDowngrade(module: LLVMModuleRef, reader: *const Reader) -> Outcome;
}

struct Closure<'a> {
    knows: &'a dyn Fn(Kind, &str) -> bool,
    findings: Vec<Finding>,
}

extern "C" fn knows(closure: *mut c_void, kind: c_int, name: Bytes) -> bool {
    let _uncontained = Uncontained::new();
    // SAFETY: the closure is the one of `DeviceModule::downgrade`, the name lives during the call.
    let (closure, name) = unsafe { (&*closure.cast::<Closure<'_>>(), name.to_text()) };
    Kind::from_raw(kind).is_some_and(|kind| (closure.knows)(kind, &name))
}

extern "C" fn report(closure: *mut c_void, refused: bool, kind: c_int, name: Bytes, place: Bytes) {
    let _uncontained = Uncontained::new();
    // SAFETY: the closure is the one of `DeviceModule::downgrade`, the names live during the call.
    let (closure, name, place) = unsafe { (&mut *closure.cast::<Closure<'_>>(), name.to_text(), place.to_text()) };
    if let Some(kind) = Kind::from_raw(kind) {
        closure.findings.push(Finding {
            kind,
            name,
            place,
            refused,
        });
    }
}

impl DeviceModule<'_> {
    /// Changes the module until readers that know what `knows` says can read it, and reports what may be missed or cannot
    /// be said to them. Afterwards the module can only be written: intrinsics have names and arguments of other releases.
    pub(crate) fn downgrade(&self, knows_name: &dyn Fn(Kind, &str) -> bool) -> Result<Vec<Finding>, LlvmError> {
        let mut closure = Closure {
            knows: knows_name,
            findings: Vec::new(),
        };
        let reader = Reader {
            closure: (&raw mut closure).cast(),
            knows,
            report,
        };
        self.set_foreign();
        // SAFETY: the module is alive; the functions match the closure that they are given, which outlives the call.
        self.finish(unsafe { gpulowerDowngrade(self.inkwell().as_mut_ptr(), &reader) })?;
        Ok(closure.findings)
    }
}
