//! LLVM modules of device code, and the steps of their compilation.
//!
//! Every step that may end in one of LLVM's fatal errors runs contained (`cpp/contain.h`). After a fatal error the
//! context is *abandoned*: neither it nor its modules are used or freed again.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeSet,
    ffi::c_void,
    mem::ManuallyDrop,
    ptr::null_mut,
};

use inkwell::{
    context::Context,
    module::{Linkage, Module},
    values::{AsValueRef, FunctionValue, GlobalValue},
};
use llvm_sys::{
    LLVMDiagnosticSeverity,
    core::{
        LLVMContextSetDiagnosticHandler, LLVMDisposeMessage, LLVMGetDataLayoutStr, LLVMGetDiagInfoDescription,
        LLVMGetDiagInfoSeverity, LLVMGetFirstUse, LLVMGetInstructionCallConv, LLVMGetNextUse, LLVMGetUser,
        LLVMGetValueName2, LLVMIsACallInst,
    },
    prelude::{LLVMContextRef, LLVMDiagnosticInfoRef, LLVMModuleRef},
    target_machine::LLVMTargetMachineRef,
};
use melior::ir::{self as mlir, BlockLike};
use mlir_sys::MlirOperation;

use super::{
    contain::{Bytes, Collected, LlvmError, Outcome, Uncontained, contained_call},
    exhausted::prepare_for_want,
    mlir::{abandon, stand_in},
    other_releases::llvm_text,
    target_machine::TargetMachine,
    watch::watch_llvm,
};

#[repr(C)]
struct FloatingPointFlags {
    fast: bool,
    never_contract: bool,
    approximate_division: bool,
    approximate_square_root: bool,
    flush_denormals: bool,
}

unsafe extern "C-unwind" {
    fn gpulowerTranslate(operation: MlirOperation, context: LLVMContextRef, result: *mut LLVMModuleRef) -> Outcome;
    fn gpulowerParseModule(context: LLVMContextRef, bytes: Bytes, name: Bytes, result: *mut LLVMModuleRef) -> Outcome;
    fn gpulowerSetTarget(module: LLVMModuleRef, machine: LLVMTargetMachineRef) -> Outcome;
    fn gpulowerLinkLibrary(module: LLVMModuleRef, bytes: Bytes, name: Bytes) -> Outcome;
    fn gpulowerJoinModules(module: LLVMModuleRef, source: LLVMModuleRef) -> Outcome;
    fn gpulowerUndefinedSymbols(
        module: LLVMModuleRef,
        closure: *mut c_void,
        report: extern "C" fn(*mut c_void, Bytes, Bytes),
    );
    fn gpulowerInternalize(module: LLVMModuleRef, keep: *const Bytes, count: usize) -> Outcome;
    fn gpulowerReflectsFtz(module: LLVMModuleRef) -> bool;
    fn gpulowerFoldReflect(module: LLVMModuleRef, key: Bytes, value: i32);
    fn gpulowerHonourRounding(module: LLVMModuleRef) -> Outcome;
    fn gpulowerLeaveGenericMemory(module: LLVMModuleRef) -> Outcome;
    fn gpulowerCallMathFunctions(module: LLVMModuleRef, has_tanh: bool) -> Outcome;
    fn gpulowerSimplifyLibraryCalls(module: LLVMModuleRef) -> Outcome;
    fn gpulowerEvaluateCalls(module: LLVMModuleRef) -> Outcome;
    fn gpulowerSetFloatingPoint(module: LLVMModuleRef, options: *const FloatingPointFlags);
    fn gpulowerSetAttribute(module: LLVMModuleRef, key: Bytes, value: Bytes, kernels_only: bool);
    fn gpulowerRemapFiles(module: LLVMModuleRef, pairs: *const Bytes, count: usize);
    fn gpulowerKeepLinesAlone(module: LLVMModuleRef);
    fn gpulowerStripDebugInfo(module: LLVMModuleRef);
    fn gpulowerPrintModule(
        module: LLVMModuleRef,
        closure: *mut c_void,
        sink: extern "C" fn(*mut c_void, Bytes),
    ) -> Outcome;
    fn gpulowerWriteBitcode(
        module: LLVMModuleRef,
        closure: *mut c_void,
        sink: extern "C" fn(*mut c_void, Bytes),
    ) -> Outcome;
    fn gpulowerRunPasses(
        module: LLVMModuleRef,
        machine: LLVMTargetMachineRef,
        pipeline: Bytes,
        closure: *mut c_void,
        report: extern "C" fn(*mut c_void, Bytes, Bytes),
    ) -> Outcome;
    fn gpulowerEmit(
        module: LLVMModuleRef,
        machine: LLVMTargetMachineRef,
        object: bool,
        closure: *mut c_void,
        sink: extern "C" fn(*mut c_void, Bytes),
    ) -> Outcome;
}

/// One diagnostic that LLVM reported through its context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LlvmDiagnostic {
    /// Whether it is an error (otherwise a warning or remark).
    pub(crate) is_error: bool,
    /// LLVM's words.
    pub(crate) message: String,
}

/// An `LLVMContext` for one device module, owned by one thread at a time.
#[derive(Debug)]
pub(crate) struct DeviceContext {
    context: ManuallyDrop<Context>,
    abandoned: Cell<bool>,
    /// Boxed: LLVM keeps its address.
    diagnostics: Box<RefCell<Vec<LlvmDiagnostic>>>,
}

extern "C" fn collect_diagnostic(info: LLVMDiagnosticInfoRef, closure: *mut c_void) {
    let _uncontained = Uncontained::new();
    // SAFETY: LLVM calls with the info it is reporting and the closure given to `LLVMContextSetDiagnosticHandler`,
    // which lives as long as the context.
    unsafe {
        let severity = LLVMGetDiagInfoSeverity(info);
        let is_error = severity == LLVMDiagnosticSeverity::LLVMDSError;
        let is_warning = severity == LLVMDiagnosticSeverity::LLVMDSWarning;
        if !is_error && !is_warning {
            return;
        }
        let text = LLVMGetDiagInfoDescription(info);
        let message = std::ffi::CStr::from_ptr(text).to_string_lossy().into_owned();
        LLVMDisposeMessage(text);
        let diagnostics = &*closure.cast::<RefCell<Vec<LlvmDiagnostic>>>();
        if let Ok(mut diagnostics) = diagnostics.try_borrow_mut() {
            diagnostics.push(LlvmDiagnostic { is_error, message });
        }
    }
}

impl DeviceContext {
    /// Makes a context whose diagnostics are kept; LLVM's own handler would print them and exit on an error.
    pub(crate) fn new() -> Self {
        prepare_for_want();
        let this = Self {
            context: ManuallyDrop::new(Context::create()),
            abandoned: Cell::new(false),
            diagnostics: Box::default(),
        };
        // SAFETY: the context is alive; the handler's closure is a box that is dropped after it.
        unsafe {
            watch_llvm(this.context.raw());
            LLVMContextSetDiagnosticHandler(
                this.context.raw(),
                Some(collect_diagnostic),
                (&raw const *this.diagnostics).cast_mut().cast(),
            );
        }
        this
    }

    /// Takes the diagnostics that LLVM has reported since the last call.
    pub(crate) fn take_diagnostics(&self) -> Vec<LlvmDiagnostic> {
        self.diagnostics.take()
    }

    /// Translates a module of the LLVM dialect (with NVVM, ROCDL) to LLVM IR. This changes the module. After
    /// [`LlvmError::is_fatal`] it is empty.
    pub(crate) fn translate(&self, module: &mut mlir::Module<'_>) -> Result<DeviceModule<'_>, LlvmError> {
        let operation = module.as_operation().to_raw();
        // SAFETY: it is the operation of the module.
        unsafe { self.translate_operation(module, operation) }
    }

    /// As [`Self::translate`], of the first operation in the module: a `gpu.module`.
    pub(crate) fn translate_first(&self, module: &mut mlir::Module<'_>) -> Result<DeviceModule<'_>, LlvmError> {
        let first = module.body().first_operation().map(|first| first.to_raw());
        let first = first.ok_or_else(|| LlvmError::Refused("the module to translate is empty".to_owned()))?;
        // SAFETY: it is an operation of the module.
        unsafe { self.translate_operation(module, first) }
    }

    /// # Safety
    ///
    /// The operation is one of the module's.
    unsafe fn translate_operation(
        &self,
        module: &mut mlir::Module<'_>,
        operation: MlirOperation,
    ) -> Result<DeviceModule<'_>, LlvmError> {
        let empty = stand_in(module)?;
        let mut raw = null_mut();
        // SAFETY: operation and context are alive, and the module is borrowed exclusively.
        let outcome = unsafe { gpulowerTranslate(operation, self.raw(), &mut raw) };
        let result = self.finish(outcome);
        if result.as_ref().is_err_and(LlvmError::is_fatal) {
            abandon(module, empty);
        }
        result?;
        // SAFETY: success means a module of this context, owned by the caller.
        Ok(unsafe { DeviceModule::from_raw(raw, self) })
    }

    /// Parses bitcode or textual LLVM IR and verifies it. Text that is refused is read once more as what LLVM 23 writes.
    pub(crate) fn parse(&self, bytes: &[u8], name: &str) -> Result<DeviceModule<'_>, LlvmError> {
        let text = std::str::from_utf8(bytes).unwrap_or_default();
        let refusal = match self.parse_as_it_is(bytes, name) {
            Err(LlvmError::Refused(refusal)) => refusal,
            other => return other,
        };
        if bytes.starts_with(b"BC") {
            return Err(LlvmError::Refused(format!(
                "{refusal}; the bitcode is damaged, cut off, or from an LLVM newer than 22: write it again, or give \
                 textual IR"
            )));
        }
        // What is wrong with it in either spelling is what is said of the second.
        let refusal = match llvm_text::bring_over(text).map(|text| self.parse_as_it_is(text.as_bytes(), name)) {
            None => refusal,
            Some(Err(LlvmError::Refused(refusal))) => refusal,
            Some(other) => return other,
        };
        Err(LlvmError::Refused(match llvm_text::is_older(text) {
            true => format!(
                "{refusal}; the text has typed pointers, so it is of LLVM 16 or older, and text is not upgraded: give bitcode, \
                 which is (llvm-as of the release that wrote the text)"
            ),
            false => refusal,
        }))
    }

    fn parse_as_it_is(&self, bytes: &[u8], name: &str) -> Result<DeviceModule<'_>, LlvmError> {
        let mut raw = null_mut();
        // SAFETY: the bytes are copied before the call returns.
        let outcome =
            unsafe { gpulowerParseModule(self.raw(), Bytes::new(bytes), Bytes::new(name.as_bytes()), &mut raw) };
        self.finish(outcome)?;
        // SAFETY: success means a module of this context, owned by the caller.
        Ok(unsafe { DeviceModule::from_raw(raw, self) })
    }

    /// Reports diagnostics of another context in which a part of the work was done.
    pub(crate) fn add_diagnostics(&self, diagnostics: Vec<LlvmDiagnostic>) {
        self.diagnostics.borrow_mut().extend(diagnostics);
    }

    /// The context, unless it was abandoned.
    pub(super) fn raw(&self) -> LLVMContextRef {
        self.assert_usable();
        self.context.raw()
    }

    /// A step of C++ alone. Like a fatal error of another step, one of this abandons the context.
    ///
    /// # Safety
    ///
    /// As for [`contained_call`].
    unsafe fn contain(&self, step: impl Fn() + Copy) -> Result<(), LlvmError> {
        // SAFETY: the caller's contract.
        self.settle(unsafe { contained_call(step) })
    }

    /// Whoever meets a fatal error has an error in hand, and goes no further: to go on would be a bug, which must not become a
    /// use of what is in no state to be used.
    fn assert_usable(&self) {
        assert!(!self.abandoned.get(), "an LLVM context is used after a fatal error");
    }

    /// Turns an outcome into a result: a fatal error abandons the context, and errors that LLVM had reported to the
    /// context's handler become part of the text.
    pub(super) fn finish(&self, outcome: Outcome) -> Result<(), LlvmError> {
        self.settle(outcome.into_result())
    }

    fn settle(&self, mut result: Result<(), LlvmError>) -> Result<(), LlvmError> {
        if result.as_ref().is_err_and(LlvmError::is_fatal) {
            self.abandoned.set(true);
        }
        let mut errors: Vec<String> = {
            let mut diagnostics = self.diagnostics.borrow_mut();
            diagnostics
                .extract_if(.., |diagnostic| diagnostic.is_error)
                .map(|diagnostic| diagnostic.message.replace("<unknown>:0:0: ", ""))
                .collect()
        };
        errors.dedup();
        if !errors.is_empty() {
            // Of AtomicExpandPass, which says neither where nor why.
            let is_of_atomics = |error: &String| {
                ["unsupported cmpxchg", "unsupported atomic"]
                    .iter()
                    .any(|text| error.starts_with(text))
            };
            if errors.iter().any(is_of_atomics) {
                errors.push(
                    "an atomic operation has 1, 2, 4 or 8 bytes, at an address that is known to be a multiple of them"
                        .to_owned(),
                );
            }
            let reported = errors.join("; ");
            result = match result {
                Ok(()) => Err(LlvmError::Refused(reported)),
                Err(LlvmError::Refused(text)) => Err(LlvmError::Refused(format!("{text}: {reported}"))),
                Err(LlvmError::Fatal(text)) => Err(LlvmError::Fatal(format!("{text}: {reported}"))),
                Err(LlvmError::Crashed(text)) => Err(LlvmError::Crashed(format!("{text}: {reported}"))),
            };
        }
        result
    }
}

impl Default for DeviceContext {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for DeviceContext {
    fn drop(&mut self) {
        if self.abandoned.get() {
            // LLVM may still point to the diagnostics' box from within the leaked context.
            std::mem::forget(std::mem::take(&mut self.diagnostics));
        } else {
            // SAFETY: dropped once, here; modules borrow `self` and are gone.
            unsafe { ManuallyDrop::drop(&mut self.context) }
        }
    }
}

/// A device module as LLVM IR.
#[derive(Debug)]
pub(crate) struct DeviceModule<'c> {
    module: ManuallyDrop<Module<'c>>,
    context: &'c DeviceContext,
    /// Whether it has names and arguments of other releases of LLVM.
    is_foreign: Cell<bool>,
}

impl Drop for DeviceModule<'_> {
    fn drop(&mut self) {
        if !self.context.abandoned.get() {
            // SAFETY: dropped once, here, while the context is alive.
            unsafe { ManuallyDrop::drop(&mut self.module) }
        }
    }
}

/// A function or variable.
pub(crate) struct Symbol<'c> {
    /// Its name, which may be any bytes.
    pub(crate) name: Vec<u8>,
    /// Whether it is its module's own.
    pub(crate) is_internal: bool,
    value: GlobalValue<'c>,
}

impl Symbol<'_> {
    /// Gives it another name, with a number behind it where that is taken.
    pub(crate) fn rename(&self, name: &str) {
        self.value.set_name(name);
    }
}

/// A symbol that is used and not defined.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct UndefinedSymbol {
    /// The symbol as LLVM IR names it.
    pub(crate) name: String,
    /// The kernels that reach it, in the order of the module; empty when only unreachable code uses it.
    pub(crate) kernels: Vec<String>,
}

impl<'c> DeviceModule<'c> {
    /// # Safety
    ///
    /// `raw` is a module in `context` that nobody else owns.
    pub(super) unsafe fn from_raw(raw: LLVMModuleRef, context: &'c DeviceContext) -> Self {
        Self {
            // SAFETY: forwarded to the caller.
            module: ManuallyDrop::new(unsafe { Module::new(raw) }),
            context,
            is_foreign: Cell::new(false),
        }
    }

    /// What became of a call into LLVM on this module.
    pub(super) fn finish(&self, outcome: Outcome) -> Result<(), LlvmError> {
        self.context.finish(outcome)
    }

    /// The module, for inspection and changes through inkwell.
    pub(crate) fn inkwell(&self) -> &Module<'c> {
        self.context.assert_usable();
        &self.module
    }

    pub(super) fn raw(&self) -> LLVMModuleRef {
        self.inkwell().as_mut_ptr()
    }

    /// The data layout, in LLVM's syntax. (inkwell reads a module's once, and that is freed where the module gets another.)
    pub(crate) fn data_layout(&self) -> String {
        // SAFETY: the module is alive, and the text is its own until its layout is set, for which it is borrowed.
        unsafe { std::ffi::CStr::from_ptr(LLVMGetDataLayoutStr(self.raw())) }
            .to_string_lossy()
            .into_owned()
    }

    /// From here on the module can only be written: [`DeviceModule::downgrade`].
    pub(super) fn set_foreign(&self) {
        self.is_foreign.set(true);
    }

    /// What LLVM 22 may work on.
    fn of_this_llvm(&self) -> Result<LLVMModuleRef, LlvmError> {
        if self.is_foreign.get() {
            return Err(LlvmError::Refused(
                "the module is one of an older LLVM already".to_owned(),
            ));
        }
        Ok(self.raw())
    }

    /// The module as textual LLVM IR.
    pub(crate) fn to_text(&self) -> Result<String, LlvmError> {
        self.written(|module, closure| {
            // SAFETY: the module is alive, and the sink matches the closure.
            unsafe { gpulowerPrintModule(module, closure, Collected::sink) }
        })
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The module as bitcode.
    pub(crate) fn to_bitcode(&self) -> Result<Vec<u8>, LlvmError> {
        self.written(|module, closure| {
            // SAFETY: the module is alive, and the sink matches the closure.
            unsafe { gpulowerWriteBitcode(module, closure, Collected::sink) }
        })
    }

    /// What a function of C++ hands to [`Collected::sink`].
    pub(super) fn written(
        &self,
        write: impl FnOnce(LLVMModuleRef, *mut c_void) -> Outcome,
    ) -> Result<Vec<u8>, LlvmError> {
        let mut bytes = Collected::default();
        let outcome = write(self.raw(), bytes.closure());
        self.context.finish(outcome)?;
        bytes.finish()
    }

    /// Gives the module the triple and data layout of `machine`.
    pub(crate) fn set_target(&self, machine: &TargetMachine) -> Result<(), LlvmError> {
        // SAFETY: module and machine are alive.
        self.context
            .finish(unsafe { gpulowerSetTarget(self.raw(), machine.raw()) })
    }

    /// Links what the module lacks from a library, bitcode or textual IR; definitions it does not need stay behind.
    pub(crate) fn link_library(&self, bytes: &[u8], name: &str) -> Result<(), LlvmError> {
        let module = self.of_this_llvm()?;
        // SAFETY: the library is read within the call; what was linked has been materialised.
        self.context
            .finish(unsafe { gpulowerLinkLibrary(module, Bytes::new(bytes), Bytes::new(name.as_bytes())) })
    }

    /// Links all of another module of the same context into this one.
    pub(crate) fn join(&self, other: DeviceModule<'c>) -> Result<(), LlvmError> {
        if !std::ptr::eq(self.context, other.context) {
            return Err(LlvmError::Refused(
                "modules of two LLVM contexts cannot be joined".to_owned(),
            ));
        }
        let (target, source) = (self.of_this_llvm()?, other.of_this_llvm()?);
        // The linker takes it over, and frees it.
        std::mem::forget(other);
        // SAFETY: both modules are alive and in one context; nobody else owns `source` any more.
        self.context.finish(unsafe { gpulowerJoinModules(target, source) })
    }

    /// Symbols that are used and not defined (intrinsics, `__nvvm_reflect` and dynamic shared memory apart).
    pub(crate) fn undefined_symbols(&self) -> Result<Vec<UndefinedSymbol>, LlvmError> {
        extern "C" fn report(closure: *mut c_void, symbol: Bytes, kernel: Bytes) {
            let _uncontained = Uncontained::new();
            // SAFETY: the closure is the vector below, the strings live during the call.
            let (symbols, symbol, kernel) = unsafe {
                (
                    &mut *closure.cast::<Vec<UndefinedSymbol>>(),
                    symbol.to_text(),
                    (!kernel.data.is_null()).then(|| kernel.to_text()),
                )
            };
            match symbols.last_mut() {
                Some(last) if last.name == symbol => last.kernels.extend(kernel),
                _ => symbols.push(UndefinedSymbol {
                    name: symbol,
                    kernels: kernel.into_iter().collect(),
                }),
            }
        }
        let mut symbols: Vec<UndefinedSymbol> = Vec::new();
        let (module, closure) = (self.raw(), (&raw mut symbols).cast());
        // SAFETY: the module is alive, and `report` matches the closure it is given; what may be left owns nothing.
        unsafe {
            self.context
                .contain(|| gpulowerUndefinedSymbols(module, closure, report))?;
        }
        Ok(symbols)
    }

    /// Makes every weak reference null that `defined` does not define, as linkers do.
    pub(crate) fn resolve_weak(&self, defined: &BTreeSet<String>) {
        for Symbol { name, value, .. } in self.symbols() {
            let weak = value.get_linkage() == Linkage::ExternalWeak;
            if weak && !defined.contains(String::from_utf8_lossy(&name).as_ref()) {
                let pointer = value.as_pointer_value();
                pointer.replace_all_uses_with(pointer.get_type().const_null());
            }
        }
    }

    /// The functions and variables.
    pub(crate) fn symbols(&self) -> Vec<Symbol<'c>> {
        let functions = self
            .inkwell()
            .get_functions()
            .map(|function| function.as_global_value());
        let values: Vec<GlobalValue<'c>> = functions.chain(self.inkwell().get_globals()).collect();
        let symbol = |value: GlobalValue<'c>| Symbol {
            name: {
                let mut length = 0;
                // SAFETY: the value is one of this module, which is alive; the name is copied before anything changes it.
                unsafe {
                    let name = LLVMGetValueName2(value.as_value_ref(), &raw mut length);
                    Bytes {
                        data: name.cast(),
                        length,
                    }
                    .as_slice()
                    .to_vec()
                }
            },
            is_internal: matches!(value.get_linkage(), Linkage::Internal | Linkage::Private),
            value,
        };
        values.into_iter().map(symbol).collect()
    }

    /// Makes everything internal that is neither a kernel nor in `keep`, and removes what is not needed.
    pub(crate) fn internalize(&self, keep: &[String]) -> Result<(), LlvmError> {
        let keep: Vec<Bytes> = keep.iter().map(|name| Bytes::new(name.as_bytes())).collect();
        // SAFETY: the names are alive during the call.
        self.context
            .finish(unsafe { gpulowerInternalize(self.raw(), keep.as_ptr(), keep.len()) })
    }

    /// Whether the module says that `__nvvm_reflect("__CUDA_FTZ")` is to give 1.
    pub(crate) fn reflects_ftz(&self) -> bool {
        // SAFETY: the module is alive, and nothing in the function can fail.
        unsafe { gpulowerReflectsFtz(self.raw()) }
    }

    /// Replaces calls of `__nvvm_reflect(key)` by a constant.
    pub(crate) fn fold_reflect(&self, key: &str, value: i32) -> Result<(), LlvmError> {
        let (module, key) = (self.raw(), Bytes::new(key.as_bytes()));
        // SAFETY: the module is alive, and the key during the call; what may be left owns nothing.
        unsafe { self.context.contain(|| gpulowerFoldReflect(module, key, value)) }
    }

    /// Replaces operations that name their rounding mode by what computes it, or refuses them.
    pub(crate) fn honour_rounding(&self) -> Result<(), LlvmError> {
        // SAFETY: the module is alive.
        self.context.finish(unsafe { gpulowerHonourRounding(self.raw()) })
    }

    /// Moves what a module for AMD has in address space 0 to the memory that it is in.
    pub(crate) fn leave_generic_memory(&self) -> Result<(), LlvmError> {
        // SAFETY: the module is alive.
        self.context.finish(unsafe { gpulowerLeaveGenericMemory(self.raw()) })
    }

    /// Calls the vendor's device library for mathematical operations that the code generator does not know. `has_tanh` is
    /// whether the chip has an instruction for the hyperbolic tangent.
    pub(crate) fn call_math_functions(&self, has_tanh: bool) -> Result<(), LlvmError> {
        // SAFETY: the module is alive.
        self.context
            .finish(unsafe { gpulowerCallMathFunctions(self.raw(), has_tanh) })
    }

    /// Replaces calls of functions that a vendor's device library will define by what is known of their results, or by
    /// something simpler.
    pub(crate) fn simplify_library_calls(&self) -> Result<(), LlvmError> {
        // SAFETY: the module is alive.
        self.context.finish(unsafe { gpulowerSimplifyLibraryCalls(self.raw()) })
    }

    /// Evaluates calls with known numbers, and what follows from them, where libraries are linked.
    pub(crate) fn evaluate_calls(&self) -> Result<(), LlvmError> {
        // SAFETY: the module is alive.
        self.context.finish(unsafe { gpulowerEvaluateCalls(self.raw()) })
    }

    /// Applies floating-point permissions to the instructions of every function.
    pub(crate) fn set_floating_point(&self, permissions: FloatingPoint) -> Result<(), LlvmError> {
        let flags = FloatingPointFlags {
            fast: permissions.fast,
            never_contract: permissions.never_contract,
            approximate_division: permissions.approximate_division,
            approximate_square_root: permissions.approximate_square_root,
            flush_denormals: permissions.flush_denormals,
        };
        let (module, flags) = (self.raw(), &raw const flags);
        // SAFETY: the module is alive, and the flags during the call; what may be left owns nothing.
        unsafe { self.context.contain(|| gpulowerSetFloatingPoint(module, flags)) }
    }

    /// Sets a string attribute on every function with a body, or on kernels alone.
    pub(crate) fn set_attribute(&self, key: &str, value: &str, kernels_only: bool) -> Result<(), LlvmError> {
        let module = self.raw();
        let (key, value) = (Bytes::new(key.as_bytes()), Bytes::new(value.as_bytes()));
        // SAFETY: the module is alive, and the strings during the call; what may be left owns nothing.
        unsafe {
            self.context
                .contain(|| gpulowerSetAttribute(module, key, value, kernels_only))
        }
    }

    /// Replaces the beginnings of paths in debug info, old by new; the last pair that fits a path counts.
    pub(crate) fn remap_files(&self, map: &[(String, String)]) -> Result<(), LlvmError> {
        let pairs: Vec<Bytes> = map
            .iter()
            .flat_map(|(old, new)| [Bytes::new(old.as_bytes()), Bytes::new(new.as_bytes())])
            .collect();
        let (module, pairs) = (self.raw(), pairs.as_slice());
        // SAFETY: the module is alive, and the strings are during the call; what may be left owns nothing.
        unsafe {
            self.context
                .contain(|| gpulowerRemapFiles(module, pairs.as_ptr(), map.len()))
        }
    }

    /// Reduces debug info to lines that NVIDIA's compilers take in optimised code.
    pub(crate) fn keep_lines_alone(&self) -> Result<(), LlvmError> {
        let module = self.raw();
        // SAFETY: the module is alive; what may be left owns nothing of Rust's.
        unsafe { self.context.contain(|| gpulowerKeepLinesAlone(module)) }
    }

    /// Removes debug info.
    pub(crate) fn strip_debug_info(&self) -> Result<(), LlvmError> {
        let module = self.raw();
        // SAFETY: the module is alive; what may be left owns nothing.
        unsafe { self.context.contain(|| gpulowerStripDebugInfo(module)) }
    }

    /// Runs a textual LLVM pass pipeline such as `default<O3>`, and verifies the result. Gives the passes that large functions
    /// did without: the pass and the function.
    pub(crate) fn run_passes(
        &self,
        machine: &TargetMachine,
        pipeline: &str,
    ) -> Result<BTreeSet<(String, String)>, LlvmError> {
        extern "C" fn report(closure: *mut c_void, pass: Bytes, function: Bytes) {
            let _uncontained = Uncontained::new();
            // SAFETY: the closure is the set below, the strings live during the call.
            unsafe {
                let left_out = &mut *closure.cast::<BTreeSet<(String, String)>>();
                left_out.insert((pass.to_text(), function.to_text()));
            }
        }
        let mut left_out = BTreeSet::new();
        let module = self.of_this_llvm()?;
        let pipeline = Bytes::new(pipeline.as_bytes());
        // SAFETY: module and machine are alive, and `report` matches the closure.
        let outcome = unsafe { gpulowerRunPasses(module, machine.raw(), pipeline, (&raw mut left_out).cast(), report) };
        machine.is_reusable_after(self.context.finish(outcome))?;
        Ok(left_out)
    }

    /// Emits assembly text or an object file. Code generation changes the module: it is of no further use.
    pub(crate) fn emit(&self, machine: &TargetMachine, kind: EmitKind) -> Result<Vec<u8>, LlvmError> {
        self.of_this_llvm()?;
        let own;
        let machine = match kind {
            EmitKind::Assembly => {
                own = machine.for_assembly()?;
                &own
            }
            EmitKind::Object => machine,
        };
        machine.is_reusable_after(self.written(|module, closure| {
            // SAFETY: module and machine are alive, and the sink matches the closure.
            unsafe {
                gpulowerEmit(
                    module,
                    machine.raw(),
                    kind == EmitKind::Object,
                    closure,
                    Collected::sink,
                )
            }
        }))
    }
}

/// Permissions for floating-point instructions; all false means what the IR says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FloatingPoint {
    /// Sets every fast-math flag.
    pub(crate) fast: bool,
    /// Clears `contract` everywhere.
    pub(crate) never_contract: bool,
    /// f32 division need not be correctly rounded.
    pub(crate) approximate_division: bool,
    /// f32 square roots need not be correctly rounded.
    pub(crate) approximate_square_root: bool,
    /// f32 denormals become zero: which of an approximate operation's forms is meant.
    pub(crate) flush_denormals: bool,
}

/// What [`DeviceModule::emit`] writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EmitKind {
    /// Assembly text: PTX, or AMDGPU assembly.
    Assembly,
    /// A relocatable object (AMDGPU).
    Object,
}

/// Whether everything that has a function calls it by C's convention. inkwell would panic over calls whose results have a type that
/// it does not know.
pub(crate) fn is_called_as_in_c(function: FunctionValue<'_>) -> bool {
    // SAFETY: the function is alive, and nothing changes its uses meanwhile.
    unsafe {
        let mut next = LLVMGetFirstUse(function.as_value_ref());
        while !next.is_null() {
            let user = LLVMGetUser(next);
            if LLVMIsACallInst(user).is_null() || LLVMGetInstructionCallConv(user) != 0 {
                return false;
            }
            next = LLVMGetNextUse(next);
        }
    }
    true
}
