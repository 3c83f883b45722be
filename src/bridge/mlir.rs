//! What melior does not offer: target attributes, `#gpu.object`s, captured diagnostics, and contained parsing, printing,
//! verifying and passes.

use std::{
    cell::RefCell,
    collections::{BTreeMap, HashSet},
    ffi::c_void,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    thread::{self, ThreadId},
};

use melior::{
    Context, ContextRef,
    ir::{
        Attribute, AttributeLike, Location, Module, Type, TypeLike,
        operation::{OperationLike, OperationRef},
    },
};
use mlir_sys::{
    MlirAttribute, MlirContext, MlirLocation, MlirModule, mlirAttributeIsAGPUObjectAttr, mlirGPUObjectAttrGetObject,
    mlirGPUObjectAttrGetTarget, mlirGPUObjectAttrGetWithKernels, mlirSymbolTableGetSymbolAttributeName,
};

use super::{
    contain::{Bytes, Collected, LlvmError, Outcome, Uncontained, contained, contained_call},
    exhausted::prepare_for_want,
    watch::watch_mlir,
};
use crate::error::{Location as Place, Position};

#[repr(C)]
struct RawTargetAttribute {
    vendor: std::ffi::c_int,
    optimization: std::ffi::c_int,
    triple: Bytes,
    chip: Bytes,
    features: Bytes,
    abi: Bytes,
    flags: MlirAttribute,
    link: MlirAttribute,
}

unsafe extern "C-unwind" {
    fn gpulowerReadTarget(attribute: MlirAttribute) -> RawTargetAttribute;
    fn gpulowerReadBlob(attribute: MlirAttribute) -> Bytes;
    fn gpulowerEmitDiagnostic(location: MlirLocation, severity: i32, message: Bytes);
    fn gpulowerIsThreaded(context: MlirContext) -> bool;
    fn gpulowerPrintGenerically(
        operation: mlir_sys::MlirOperation,
        in_local_scope: bool,
        with_locations: bool,
        closure: *mut c_void,
        sink: extern "C" fn(*mut c_void, Bytes),
    );
    fn gpulowerParseMlir(context: MlirContext, source: Bytes, name: Bytes, result: *mut MlirModule) -> Outcome;
    fn gpulowerVerify(operation: mlir_sys::MlirOperation) -> Outcome;
    fn gpulowerRunMlirPasses(manager: mlir_sys::MlirPassManager, operation: mlir_sys::MlirOperation) -> Outcome;
    fn gpulowerKeepToCallersThreads(context: MlirContext);
    fn gpulowerFindLargeVector(
        root: mlir_sys::MlirOperation,
        longest: i64,
        most: i64,
        kind: *mut mlir_sys::MlirType,
    ) -> mlir_sys::MlirOperation;
    fn gpulowerFindForeignBuffer(
        root: mlir_sys::MlirOperation,
        kind: *mut mlir_sys::MlirType,
    ) -> mlir_sys::MlirOperation;
    fn gpulowerFindForeignType(root: mlir_sys::MlirOperation, kind: *mut mlir_sys::MlirType)
    -> mlir_sys::MlirOperation;
    fn gpulowerFindMissingDimension(root: mlir_sys::MlirOperation, dimension: *mut i64) -> mlir_sys::MlirOperation;
    fn gpulowerWidenDimensions(root: mlir_sys::MlirOperation);
    fn gpulowerBoundGroupNumbers(root: mlir_sys::MlirOperation);
    fn gpulowerLoadSingleRegisters(root: mlir_sys::MlirOperation);
    fn gpulowerHasPtxText(root: mlir_sys::MlirOperation) -> bool;
    fn gpulowerNameAssertions(root: mlir_sys::MlirOperation);
    fn gpulowerCarryPromises(root: mlir_sys::MlirOperation);
    fn gpulowerGlobalSize(operation: mlir_sys::MlirOperation) -> i64;
}

/// Which dialect a target attribute belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TargetDialect {
    /// `#nvvm.target`
    Nvvm,
    /// `#rocdl.target`
    Rocdl,
}

/// The parameters of a `#nvvm.target` or `#rocdl.target` attribute, defaults filled in as MLIR does.
#[derive(Clone, Debug)]
pub(crate) struct TargetAttribute<'c> {
    /// Whose attribute it is.
    pub(crate) dialect: TargetDialect,
    /// `O`, 0 to 3.
    pub(crate) optimization: i32,
    /// `triple`
    pub(crate) triple: String,
    /// `chip`
    pub(crate) chip: String,
    /// `features`
    pub(crate) features: String,
    /// `abi` (ROCDL only): the code object version times 100.
    pub(crate) abi: Option<String>,
    /// `flags`, a dictionary.
    pub(crate) flags: Option<Attribute<'c>>,
    /// `link`, an array.
    pub(crate) link: Option<Attribute<'c>>,
}

impl<'c> TargetAttribute<'c> {
    /// Reads an attribute; `None` when it is neither of the two.
    pub(crate) fn read(attribute: Attribute<'c>) -> Option<Self> {
        // SAFETY: the attribute is alive; the strings belong to it and are copied at once; null attributes are handled.
        unsafe {
            let raw = gpulowerReadTarget(attribute.to_raw());
            let dialect = match raw.vendor {
                1 => TargetDialect::Nvvm,
                2 => TargetDialect::Rocdl,
                _ => return None,
            };
            Some(Self {
                dialect,
                optimization: raw.optimization,
                triple: raw.triple.to_text(),
                chip: raw.chip.to_text(),
                features: raw.features.to_text(),
                abi: (dialect == TargetDialect::Rocdl).then(|| raw.abi.to_text()),
                flags: Attribute::from_option_raw(raw.flags),
                link: Attribute::from_option_raw(raw.link),
            })
        }
    }
}

/// The bytes of a library that is given in memory (a `dense_resource` attribute).
pub(crate) fn read_blob(attribute: Attribute<'_>) -> Option<Vec<u8>> {
    // SAFETY: the attribute is alive, and its bytes are copied at once.
    unsafe {
        let bytes = gpulowerReadBlob(attribute.to_raw());
        (!bytes.data.is_null()).then(|| bytes.as_slice().to_vec())
    }
}

/// An operation in the generic form. `in_local_scope`: without aliases, as a piece of a larger text. Where there is no memory for it,
/// a text that is no MLIR, and not the same as any other: it may become a key.
pub(crate) fn generic_text(operation: OperationRef<'_, '_>, in_local_scope: bool, with_locations: bool) -> String {
    let mut collected = Collected::default();
    // SAFETY: the operation is alive, and the sink matches the closure.
    unsafe {
        gpulowerPrintGenerically(
            operation.to_raw(),
            in_local_scope,
            with_locations,
            collected.closure(),
            Collected::sink,
        );
    }
    let text = collected.finish().map(String::from_utf8);
    text.ok().and_then(Result::ok).unwrap_or_else(|| {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let (process, number) = (std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        format!("no memory to print an operation: {process}.{number}")
    })
}

/// Whether operations of this context may be worked on by several threads at once.
pub(crate) fn is_threaded(context: &Context) -> bool {
    // SAFETY: the context is alive.
    unsafe { gpulowerIsThreaded(context.to_raw()) }
}

/// As [`is_threaded`], of the context of a module.
pub(super) fn is_threaded_raw(module: &Module<'_>) -> bool {
    // SAFETY: the module is alive, and with it its context.
    unsafe { gpulowerIsThreaded(mlir_sys::mlirModuleGetContext(module.to_raw())) }
}

/// A context as a plain reference.
///
/// melior's own conversion gives a reference to the `ContextRef` value, not to the context, so that value has to stay
/// where it is: one is kept for each address that a context has ever had, some bytes each.
pub(crate) fn context_of<'c>(context: ContextRef<'c>) -> &'c Context {
    struct Kept(ContextRef<'static>);
    // SAFETY: a raw pointer to a context, which is only read here.
    unsafe impl Send for Kept {}
    // SAFETY: as above.
    unsafe impl Sync for Kept {}
    static KEPT: Mutex<BTreeMap<usize, &'static Kept>> = Mutex::new(BTreeMap::new());

    // SAFETY: used at once, while the `ContextRef` is where it is.
    let raw: MlirContext = unsafe { context.to_ref() }.to_raw();
    let mut kept = KEPT.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let cell: &'static Kept = kept
        .entry(raw.ptr as usize)
        // SAFETY: the kept value is used again only for a context that lives at this address.
        .or_insert_with(|| Box::leak(Box::new(Kept(unsafe { ContextRef::from_raw(raw) }))));
    // SAFETY: the cell lives for ever, the context for 'c.
    unsafe { cell.0.to_ref() }
}

/// The name of the attribute that holds a symbol's name.
pub(crate) fn symbol_attribute_name() -> &'static str {
    // SAFETY: a static string of MLIR.
    unsafe {
        let name = mlirSymbolTableGetSymbolAttributeName();
        std::str::from_utf8(std::slice::from_raw_parts(name.data.cast(), name.length)).unwrap_or("sym_name")
    }
}

/// How bad a diagnostic is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub(crate) enum Severity {
    /// The operation failed.
    Error = 0,
    /// Something deserves attention.
    Warning = 1,
    /// Something is worth knowing.
    Remark = 2,
}

/// Emits a diagnostic at a location through MLIR's handlers, which write it to a terminal as it is: characters that would control
/// one are escaped.
pub(crate) fn emit(location: Location<'_>, severity: Severity, message: &str) {
    let mut printable = String::with_capacity(message.len());
    for character in message.chars() {
        match character {
            '\n' | '\t' | '\'' | '"' | '\\' => printable.push(character),
            other => printable.extend(other.escape_debug()),
        }
    }
    let message = printable;
    // SAFETY: location and text are alive during the call.
    unsafe { gpulowerEmitDiagnostic(location.to_raw(), severity as i32, Bytes::new(message.as_bytes())) }
}

/// An MLIR diagnostic as a value.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct MlirDiagnostic {
    /// Whether it is an error; otherwise a warning (remarks are dropped).
    pub is_error: bool,
    /// Where it is.
    pub location: Place,
    /// The message.
    pub message: String,
    /// Attached notes: location and message.
    pub notes: Vec<(Place, String)>,
}

/// What a handler of diagnostics has collected. It is detached when the value is dropped.
struct Collector<'c> {
    context: &'c Context,
    owner: ThreadId,
    found: RefCell<Vec<MlirDiagnostic>>,
}

impl Collector<'_> {
    /// # Safety
    ///
    /// The diagnostic is alive.
    unsafe fn describe(diagnostic: mlir_sys::MlirDiagnostic) -> (Place, String) {
        // SAFETY: the diagnostic is alive, and so is its location.
        let location = unsafe { Location::from_raw(mlir_sys::mlirDiagnosticGetLocation(diagnostic)) };
        (place_of(location), shown(&Message(diagnostic)))
    }

    /// Whether the diagnostic was this one's business.
    ///
    /// # Safety
    ///
    /// The diagnostic is alive.
    unsafe fn take(&self, diagnostic: mlir_sys::MlirDiagnostic) -> bool {
        // Another thread's diagnostic is another handler's business, and what was found is for its own thread alone.
        if thread::current().id() != self.owner {
            return false;
        }
        // SAFETY: the diagnostic is alive, and has the notes that are asked for.
        unsafe {
            let severity = mlir_sys::mlirDiagnosticGetSeverity(diagnostic);
            let is_error = severity == mlir_sys::MlirDiagnosticSeverity_MlirDiagnosticError;
            if !is_error && severity != mlir_sys::MlirDiagnosticSeverity_MlirDiagnosticWarning {
                return true;
            }
            let notes = (0..mlir_sys::mlirDiagnosticGetNumNotes(diagnostic))
                .map(|index| Self::describe(mlir_sys::mlirDiagnosticGetNote(diagnostic, index)))
                .collect();
            let (location, message) = Self::describe(diagnostic);
            if let Ok(mut found) = self.found.try_borrow_mut() {
                found.push(MlirDiagnostic {
                    is_error,
                    location,
                    message,
                    notes,
                });
            }
        }
        true
    }
}

/// Runs `work` and keeps the diagnostics that this thread emits meanwhile, instead of handing them to other handlers.
pub(crate) fn capture_diagnostics<R>(context: &Context, work: impl FnOnce() -> R) -> (R, Vec<MlirDiagnostic>) {
    struct Attached<'c>(&'c Collector<'c>, mlir_sys::MlirDiagnosticHandlerID);
    impl Drop for Attached<'_> {
        fn drop(&mut self) {
            // SAFETY: the context is alive, and the handler is attached to it.
            unsafe { mlir_sys::mlirContextDetachDiagnosticHandler(self.0.context.to_raw(), self.1) }
        }
    }
    unsafe extern "C" fn collect(
        diagnostic: mlir_sys::MlirDiagnostic,
        collector: *mut c_void,
    ) -> mlir_sys::MlirLogicalResult {
        let _uncontained = Uncontained::new();
        // SAFETY: the collector is the one below, which is there as long as the handler is attached; the diagnostic is alive.
        let taken = unsafe { (*collector.cast::<Collector<'_>>()).take(diagnostic) };
        mlir_sys::MlirLogicalResult { value: taken.into() }
    }
    let collector = Collector {
        context,
        owner: thread::current().id(),
        found: RefCell::default(),
    };
    let closure = (&raw const collector).cast_mut().cast();
    // SAFETY: the collector stays where it is until the handler is detached, also where the work panics. Other threads may
    // call the handler: they read what does not change.
    let id = unsafe { mlir_sys::mlirContextAttachDiagnosticHandler(context.to_raw(), Some(collect), closure, None) };
    let attached = Attached(&collector, id);
    let result = work();
    drop(attached);
    (result, collector.found.into_inner())
}

/// What MLIR prints of an attribute, a type, an operation or a diagnostic, with replacement characters for what is not UTF-8:
/// strings in MLIR are bytes. Where MLIR crashes in the midst of it, the text ends.
pub(crate) fn shown(value: &impl Printed) -> String {
    unsafe extern "C" fn add(text: mlir_sys::MlirStringRef, bytes: *mut c_void) {
        let _uncontained = Uncontained::new();
        if text.length > 0 {
            // SAFETY: the closure is the vector below, which nothing else touches meanwhile; the text lives during the call.
            unsafe {
                let text = std::slice::from_raw_parts(text.data.cast::<u8>(), text.length);
                (*bytes.cast::<Vec<u8>>()).extend_from_slice(text);
            }
        }
    }
    let mut bytes: Vec<u8> = Vec::new();
    let end: *mut c_void = (&raw mut bytes).cast();
    // SAFETY: `add` matches the closure it is given. The frames that may be left are this closure's and that of `print`, which
    // own nothing; while `add` is at work nothing is left.
    let printed = unsafe { contained(|| value.print(Some(add), end)) };
    let mut text = String::from_utf8_lossy(&bytes).into_owned();
    if let Err(reason) = printed {
        tracing::debug!(reason, "MLIR crashed while it printed");
        text.push_str(" (MLIR crashes when it prints the rest)");
    }
    text
}

/// What [`shown`] is for.
pub(crate) trait Printed {
    /// # Safety
    ///
    /// The function takes the closure. It may be that the call does not return: an implementation owns nothing meanwhile.
    unsafe fn print(&self, add: mlir_sys::MlirStringCallback, closure: *mut c_void);
}

macro_rules! printed {
    ($($kind:ty => $function:path;)*) => {
        $(impl Printed for $kind {
            unsafe fn print(&self, add: mlir_sys::MlirStringCallback, closure: *mut c_void) {
                // SAFETY: the value is alive; function and closure are the caller's.
                unsafe { $function(self.to_raw(), add, closure) }
            }
        })*
    };
}

printed! {
    Attribute<'_> => mlir_sys::mlirAttributePrint;
    OperationRef<'_, '_> => mlir_sys::mlirOperationPrint;
    Type<'_> => mlir_sys::mlirTypePrint;
    Message => mlir_sys::mlirDiagnosticPrint;
}

/// The message of a diagnostic that is alive.
struct Message(mlir_sys::MlirDiagnostic);

impl Message {
    const fn to_raw(&self) -> mlir_sys::MlirDiagnostic {
        self.0
    }
}

/// The value of a string attribute, with replacement characters for what is not UTF-8; `None` for another attribute.
pub(crate) fn string_value(attribute: Attribute<'_>) -> Option<String> {
    // SAFETY: the attribute is alive and, once asked, a string, whose bytes are copied at once.
    unsafe {
        if !mlir_sys::mlirAttributeIsAString(attribute.to_raw()) {
            return None;
        }
        let value = mlir_sys::mlirStringAttrGetValue(attribute.to_raw());
        let bytes = Bytes {
            data: value.data.cast(),
            length: value.length,
        };
        Some(bytes.to_text())
    }
}

/// A location as a value.
pub(crate) fn place_of(location: Location<'_>) -> Place {
    let text = shown(&location.to_attribute());
    let text = text.strip_prefix("loc(").and_then(|text| text.strip_suffix(')'));
    // SAFETY: the location is alive.
    let is_position = unsafe { mlir_sys::mlirLocationIsAFileLineColRange(location.to_raw()) };
    Place::new(text.unwrap_or_default().to_owned(), position(location), !is_position)
}

/// The first position in a file that a location has: of a call that of what was called, where the operation stands.
fn position(location: Location<'_>) -> Option<Position> {
    use mlir_sys::*;
    let mut next = vec![location.to_raw()];
    let mut seen = HashSet::new();
    while let Some(location) = next.pop() {
        if !seen.insert(location.ptr) {
            continue;
        }
        // SAFETY: the location, its parts and its names live as long as the context; each is asked for what it has by its kind.
        unsafe {
            if mlirLocationIsAFileLineColRange(location) {
                let file = mlirIdentifierStr(mlirLocationFileLineColRangeGetFilename(location));
                let file = Bytes {
                    data: file.data.cast(),
                    length: file.length,
                };
                return Some(Position {
                    file: file.to_text(),
                    line: u32::try_from(mlirLocationFileLineColRangeGetStartLine(location)).ok()?,
                    column: u32::try_from(mlirLocationFileLineColRangeGetStartColumn(location)).ok()?,
                });
            }
            if mlirLocationIsAName(location) {
                next.push(mlirLocationNameGetChildLoc(location));
            } else if mlirLocationIsACallSite(location) {
                next.push(mlirLocationCallSiteGetCaller(location));
                next.push(mlirLocationCallSiteGetCallee(location));
            } else if mlirLocationIsAFused(location) {
                let count = mlirLocationFusedGetNumLocations(location) as usize;
                let mut parts = vec![location; count];
                mlirLocationFusedGetLocations(location, parts.as_mut_ptr());
                next.extend(parts.into_iter().rev());
            }
        }
    }
    None
}

/// The location that [`place_of`] described, or the unknown location.
pub(crate) fn location_of<'c>(context: &'c Context, place: &Place) -> Location<'c> {
    let text = place.as_mlir();
    let (attribute, _) = capture_diagnostics(context, || Attribute::parse(context, &format!("loc({text})")));
    match attribute {
        // SAFETY: a location attribute that is alive.
        Some(attribute) if unsafe { mlir_sys::mlirAttributeIsALocation(attribute.to_raw()) } => {
            Location::from_attribute(attribute)
        }
        _ => Location::unknown(context),
    }
}

/// Kinds of `#gpu.object` (`CompilationTarget` in `mlir/Dialect/GPU/IR/CompilationAttrs.td`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum ObjectFormat {
    /// `offload`: LLVM bitcode.
    Offload = 1,
    /// `assembly`: PTX or AMDGPU assembly.
    Assembly = 2,
    /// `bin`: a cubin or hsaco.
    Binary = 3,
    /// `fatbin`, the default.
    Fatbin = 4,
}

/// Makes a `#gpu.object`. `properties` is a dictionary, `kernels` a `#gpu.kernel_table`.
pub(crate) fn gpu_object<'c>(
    context: &'c Context,
    target: Attribute<'c>,
    format: ObjectFormat,
    bytes: &[u8],
    properties: Option<Attribute<'c>>,
    kernels: Option<Attribute<'c>>,
) -> Attribute<'c> {
    let null = MlirAttribute {
        ptr: std::ptr::null_mut(),
    };
    // SAFETY: attributes are alive and of the documented kinds; the bytes are copied; null stands for an absent one.
    unsafe {
        Attribute::from_raw(mlirGPUObjectAttrGetWithKernels(
            context.to_raw(),
            target.to_raw(),
            format as u32,
            mlir_sys::MlirStringRef {
                data: bytes.as_ptr().cast(),
                length: bytes.len(),
            },
            properties.map_or(null, |attribute| attribute.to_raw()),
            kernels.map_or(null, |attribute| attribute.to_raw()),
        ))
    }
}

/// The target and the bytes of a `#gpu.object`; `None` for any other attribute.
pub(crate) fn read_gpu_object(attribute: Attribute<'_>) -> Option<(Attribute<'_>, Vec<u8>)> {
    // SAFETY: the attribute is alive and, once asked, of the kind that the two functions expect; the bytes belong to it
    // and are copied at once.
    unsafe {
        let raw = attribute.to_raw();
        if !mlirAttributeIsAGPUObjectAttr(raw) {
            return None;
        }
        let object = mlirGPUObjectAttrGetObject(raw);
        let bytes = match object.length {
            0 => Vec::new(),
            length => std::slice::from_raw_parts(object.data.cast::<u8>(), length).to_vec(),
        };
        Some((Attribute::from_raw(mlirGPUObjectAttrGetTarget(raw)), bytes))
    }
}

/// Gives a symbol another name, in its definition and wherever operations inside of `scope` refer to it. Whether all of
/// them could be found.
pub(crate) fn rename_symbol(definition: OperationRef<'_, '_>, scope: OperationRef<'_, '_>, name: &str) -> bool {
    let string = |text: &str| mlir_sys::MlirStringRef {
        data: text.as_ptr().cast(),
        length: text.len(),
    };
    let attribute = symbol_attribute_name();
    let Some(old) = definition.attribute(attribute).ok().and_then(string_value) else {
        return false;
    };
    // SAFETY: both operations are alive, the names during the call.
    unsafe {
        let result = mlir_sys::mlirSymbolTableReplaceAllSymbolUses(string(&old), string(name), scope.to_raw());
        mlir_sys::mlirOperationSetAttributeByName(
            definition.to_raw(),
            string(attribute),
            mlir_sys::mlirStringAttrGet(mlir_sys::mlirOperationGetContext(definition.to_raw()), string(name)),
        );
        result.value != 0
    }
}

/// The names in a symbol reference, outermost first; `None` for another attribute.
pub(crate) fn symbol_path(attribute: Attribute<'_>) -> Option<Vec<String>> {
    // SAFETY: the attribute is alive and, where that is asked for, a symbol reference; the strings belong to the context
    // and are copied at once.
    unsafe {
        let raw = attribute.to_raw();
        if !mlir_sys::mlirAttributeIsASymbolRef(raw) {
            return None;
        }
        let text = |name: mlir_sys::MlirStringRef| {
            let bytes = Bytes {
                data: name.data.cast(),
                length: name.length,
            };
            bytes.to_text()
        };
        let mut path = vec![text(mlir_sys::mlirSymbolRefAttrGetRootReference(raw))];
        for index in 0..mlir_sys::mlirSymbolRefAttrGetNumNestedReferences(raw) {
            let nested = mlir_sys::mlirSymbolRefAttrGetNestedReference(raw, index);
            path.push(text(mlir_sys::mlirFlatSymbolRefAttrGetValue(nested)));
        }
        Some(path)
    }
}

/// The types of the arguments of a function type of the LLVM dialect; `None` for another type.
pub(crate) fn function_inputs(kind: melior::ir::Type<'_>) -> Option<Vec<melior::ir::Type<'_>>> {
    // The C API has no better question.
    if !shown(&kind).starts_with("!llvm.func<") {
        return None;
    }
    // SAFETY: the type is alive, and a function type.
    unsafe {
        let raw = kind.to_raw();
        Some(
            (0..mlir_sys::mlirLLVMFunctionTypeGetNumInputs(raw))
                .map(|index| melior::ir::Type::from_raw(mlir_sys::mlirLLVMFunctionTypeGetInput(raw, index)))
                .collect(),
        )
    }
}

/// The bytes that a `memref.global` or `llvm.mlir.global` takes, where that is known.
pub(crate) fn global_size(global: OperationRef<'_, '_>) -> Option<u64> {
    // SAFETY: the operation is alive.
    u64::try_from(unsafe { gpulowerGlobalSize(global.to_raw()) }).ok()
}

/// What a search in a module finds: a type, as MLIR prints it, and where it is. The search gives a null operation, or one of the
/// module and the type.
fn find_type(
    module: &Module<'_>,
    search: impl FnOnce(mlir_sys::MlirOperation, &mut mlir_sys::MlirType) -> mlir_sys::MlirOperation,
) -> Option<(String, Place)> {
    let mut kind = mlir_sys::MlirType {
        ptr: std::ptr::null_mut(),
    };
    let operation = search(module.as_operation().to_raw(), &mut kind);
    if operation.ptr.is_null() {
        return None;
    }
    // SAFETY: the operation is one of the module's, which is alive, and the type is set then.
    let (operation, kind) = unsafe { (OperationRef::from_raw(operation), Type::from_raw(kind)) };
    Some((shown(&kind), place_of(operation.location())))
}

/// The first vector that is longer in its last dimension than `longest` or has more elements than `most`, and where it is.
pub(crate) fn large_vector(module: &Module<'_>, longest: u32, most: u32) -> Option<(String, Place)> {
    // SAFETY: the module is alive.
    find_type(module, |root, kind| unsafe {
        gpulowerFindLargeVector(root, longest.into(), most.into(), kind)
    })
}

/// The first workgroup or private buffer of floats that LLVM has no type for: its type, and where its function is.
pub(crate) fn foreign_buffer(module: &Module<'_>) -> Option<(String, Place)> {
    // SAFETY: the module is alive.
    find_type(module, |root, kind| unsafe { gpulowerFindForeignBuffer(root, kind) })
}

/// The first value of a type that LLVM does not have, in a module that has been lowered: the type, and where it is.
pub(crate) fn foreign_type(module: &Module<'_>) -> Option<(String, Place)> {
    // SAFETY: the module is alive.
    find_type(module, |root, kind| unsafe { gpulowerFindForeignType(root, kind) })
}

/// The first `memref.dim` of a dimension that its memref does not have: the dimension, and where it is.
pub(crate) fn missing_dimension(module: &Module<'_>) -> Option<(i64, Place)> {
    let mut dimension = 0;
    // SAFETY: the module is alive; an operation that is found is one of it.
    unsafe {
        let operation = gpulowerFindMissingDimension(module.as_operation().to_raw(), &mut dimension);
        if operation.ptr.is_null() {
            return None;
        }
        Some((dimension, place_of(OperationRef::from_raw(operation).location())))
    }
}

/// Gives `rocdl.workgroup.dim` and `rocdl.grid.dim` the 64 bits that MLIR translates them to, where that matters.
pub(crate) fn widen_dimensions(module: &mut Module<'_>) {
    // SAFETY: the module is alive and borrowed exclusively.
    unsafe { gpulowerWidenDimensions(module.as_operation().to_raw()) }
}

/// Says that `rocdl.workgroup.id` operations are not negative.
pub(crate) fn bound_group_numbers(module: &mut Module<'_>) {
    // SAFETY: the module is alive and edited by nobody else; only attributes change.
    unsafe { gpulowerBoundGroupNumbers(module.as_operation().to_raw()) }
}

/// Calls LLVM's intrinsic by name where `nvvm.wmma.load` loads a single register, which MLIR does not translate.
pub(crate) fn load_single_registers(module: &mut Module<'_>) {
    // SAFETY: the module is alive and borrowed exclusively.
    unsafe { gpulowerLoadSingleRegisters(module.as_operation().to_raw()) }
}

/// Whether there are operations of `nvvm` that MLIR does not translate: they have to be written as PTX before.
pub(crate) fn has_ptx_text(module: &Module<'_>) -> bool {
    // SAFETY: the module is alive, and is not changed.
    unsafe { gpulowerHasPtxText(module.as_operation().to_raw()) }
}

/// Puts the name of the function into assertions that MLIR has converted without it.
pub(crate) fn name_assertions(module: &mut Module<'_>) {
    // SAFETY: the module is alive and borrowed exclusively.
    unsafe { gpulowerNameAssertions(module.as_operation().to_raw()) }
}

/// Keeps what kernels promise of their memrefs (`llvm.noalias`) past MLIR's conversion: called before it and after it.
pub(crate) fn carry_promises(module: &mut Module<'_>) {
    // SAFETY: the module is alive and borrowed exclusively.
    unsafe { gpulowerCarryPromises(module.as_operation().to_raw()) }
}

/// All operations of a module, in order, outermost first.
pub(crate) fn operations<'c, 'a>(module: &'a Module<'c>) -> Vec<OperationRef<'c, 'a>> {
    operations_below(module.as_operation())
}

/// An operation and all operations inside it, in order, outermost first.
pub(crate) fn operations_below<'c, 'a>(root: OperationRef<'c, 'a>) -> Vec<OperationRef<'c, 'a>> {
    let mut raw = Vec::new();
    root.walk(melior::ir::operation::WalkOrder::PreOrder, |operation| {
        raw.push(operation.to_raw());
        melior::ir::operation::WalkResult::Advance
    });
    raw.into_iter()
        // SAFETY: operations inside of one that is borrowed for 'a.
        .map(|raw| unsafe { OperationRef::from_raw(raw) })
        .collect()
}

/// Whether an operation is of this kind, dialect included.
pub(crate) fn is_called<'c: 'a, 'a>(operation: &impl OperationLike<'c, 'a>, name: &str) -> bool {
    operation.name().as_string_ref().as_str() == Ok(name)
}

/// Whether an operation is of this kind, or has one inside of it.
pub(crate) fn has_operation(root: OperationRef<'_, '_>, name: &str) -> bool {
    use melior::ir::operation::{WalkOrder, WalkResult};
    let mut is_found = false;
    root.walk(WalkOrder::PreOrder, |operation| {
        is_found |= is_called(&operation, name);
        if is_found {
            WalkResult::Interrupt
        } else {
            WalkResult::Advance
        }
    });
    is_found
}

/// The operations of this kind, in order, but not those inside of others: the operation itself, or inside of it.
pub(crate) fn outermost_operations<'c, 'a>(root: OperationRef<'c, 'a>, name: &str) -> Vec<OperationRef<'c, 'a>> {
    use melior::ir::operation::{WalkOrder, WalkResult};
    let mut raw = Vec::new();
    root.walk(WalkOrder::PreOrder, |operation| {
        if is_called(&operation, name) {
            raw.push(operation.to_raw());
            WalkResult::Skip
        } else {
            WalkResult::Advance
        }
    });
    raw.into_iter()
        // SAFETY: operations inside of one that is borrowed for 'a.
        .map(|raw| unsafe { OperationRef::from_raw(raw) })
        .collect()
}

/// Sets an attribute of an operation. Attributes are values of the context: nothing that was read before is lost.
pub(crate) fn set_attribute<'c>(operation: OperationRef<'c, '_>, name: &str, attribute: Attribute<'c>) {
    // SAFETY: the operation is alive, and nothing of it is moved or destroyed. (melior gives out such references, too.)
    let mut operation = unsafe { melior::ir::operation::OperationRefMut::from_raw(operation.to_raw()) };
    melior::ir::operation::OperationMutLike::set_attribute(&mut operation, name, attribute);
}

/// A context with these dialects that several threads may use, and that starts none of its own.
pub(crate) fn context_without_threads(registry: &melior::dialect::DialectRegistry) -> Context {
    prepare_for_want();
    let context = Context::new_with_registry(registry, false);
    // SAFETY: the context is alive, and was made without threads.
    unsafe {
        gpulowerKeepToCallersThreads(context.to_raw());
        watch_mlir(context.to_raw());
    }
    context
}

/// MLIR's own checks. What [`LlvmError::Refused`] refuses is in the diagnostics.
pub(crate) fn verify(operation: OperationRef<'_, '_>) -> Result<(), LlvmError> {
    // SAFETY: the operation is alive.
    unsafe { gpulowerVerify(operation.to_raw()) }.into_result()
}

/// Runs passes on a module. What [`LlvmError::Refused`] refuses is in the diagnostics. After [`LlvmError::is_fatal`] the
/// module is empty: what it held is in no state to be looked at or freed, and is leaked together with the passes.
pub(crate) fn run_passes<'c>(manager: melior::pass::PassManager<'c>, module: &mut Module<'c>) -> Result<(), LlvmError> {
    let empty = stand_in(module)?;
    // SAFETY: both are alive, and the module is borrowed exclusively.
    let result = unsafe { gpulowerRunMlirPasses(manager.to_raw(), module.as_operation().to_raw()) }.into_result();
    if result.as_ref().is_err_and(LlvmError::is_fatal) {
        abandon(module, empty);
        std::mem::forget(manager);
    }
    result
}

/// An empty module for [`abandon`]. It is made beforehand: afterwards there may be no memory for it, and the context's locks may
/// be held by what was left.
pub(super) fn stand_in<'c>(module: &Module<'c>) -> Result<Module<'c>, LlvmError> {
    let location = module.as_operation().location().to_raw();
    // SAFETY: the location is alive, and the closure owns nothing; the module is owned by the value made here.
    unsafe {
        Ok(Module::from_raw(contained_call(|| {
            mlir_sys::mlirModuleCreateEmpty(location)
        })?))
    }
}

/// Leaves an empty module in the place of one that is in no state to be looked at or freed.
pub(super) fn abandon<'c>(module: &mut Module<'c>, empty: Module<'c>) {
    std::mem::forget(std::mem::replace(module, empty));
}

/// Parses a module, text or bytecode; locations carry `name`. Operations outside of a `module` are put into one. What
/// [`LlvmError::Refused`] refuses is in the diagnostics.
pub(crate) fn parse_module<'c>(context: &'c Context, name: &str, bytes: &[u8]) -> Result<Module<'c>, LlvmError> {
    // The parser wants a terminated buffer.
    let mut source = Collected::default();
    source.append(bytes);
    source.append(&[0]);
    let source = source.finish()?;
    // SAFETY: both strings outlive the call; the length excludes the terminator that follows. Success means a
    // module that the caller owns.
    unsafe {
        let mut module = MlirModule {
            ptr: std::ptr::null_mut(),
        };
        gpulowerParseMlir(
            context.to_raw(),
            Bytes::new(&source[..bytes.len()]),
            Bytes::new(name.as_bytes()),
            &mut module,
        )
        .into_result()?;
        Ok(Module::from_raw(module))
    }
}

/// A module as MLIR bytecode, locations included.
pub(crate) fn bytecode(module: &Module<'_>) -> Result<Vec<u8>, LlvmError> {
    unsafe extern "C" fn sink(text: mlir_sys::MlirStringRef, closure: *mut c_void) {
        let bytes = Bytes {
            data: text.data.cast(),
            length: text.length,
        };
        Collected::sink(closure, bytes);
    }
    let mut bytes = Collected::default();
    let (operation, closure) = (module.as_operation().to_raw(), bytes.closure());
    // SAFETY: the operation is alive; `sink` matches the closure it is given; the closure that may be left owns nothing.
    unsafe { contained_call(|| mlir_sys::mlirOperationWriteBytecode(operation, Some(sink), closure)) }?;
    bytes.finish()
}

/// The operations that use the first result of an operation, each with the number of the operand.
pub(crate) fn uses<'c, 'a>(operation: OperationRef<'c, 'a>) -> Vec<(OperationRef<'c, 'a>, usize)> {
    use melior::ir::ValueLike;
    let mut found = Vec::new();
    let Ok(result) = operation.result(0) else { return found };
    // SAFETY: the result is alive, and so is what uses it, in the same module; nothing is changed meanwhile.
    unsafe {
        let mut operand = mlir_sys::mlirValueGetFirstUse(result.to_raw());
        while !operand.ptr.is_null() {
            let owner = OperationRef::from_raw(mlir_sys::mlirOpOperandGetOwner(operand));
            found.push((owner, mlir_sys::mlirOpOperandGetOperandNumber(operand) as usize));
            operand = mlir_sys::mlirOpOperandGetNextUse(operand);
        }
    }
    found
}

/// Removes an attribute, if it is there.
pub(crate) fn remove_attribute(operation: OperationRef<'_, '_>, name: &str) {
    // SAFETY: the operation is alive.
    let mut operation = unsafe { melior::ir::operation::OperationRefMut::from_raw(operation.to_raw()) };
    let _ = melior::ir::operation::OperationMutLike::remove_attribute(&mut operation, name);
}
