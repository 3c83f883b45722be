//! A program in this process: an object that is linked to what it needs, and its functions called.
//!
//! ORC links it (`LLJIT` with JITLink). Code is generated before, by [`DeviceModule::emit`](super::llvm::DeviceModule::emit),
//! where LLVM's fatal errors are contained.

use std::{
    collections::BTreeMap,
    ffi::{CStr, CString, c_int, c_void},
    path::{Path, PathBuf},
    ptr::null_mut,
    sync::{Arc, Mutex, PoisonError},
};

use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};
use llvm_sys::{
    core::{LLVMCreateMemoryBufferWithMemoryRangeCopy, LLVMDisposeMessage},
    error::{LLVMDisposeErrorMessage, LLVMErrorRef, LLVMGetErrorMessage},
    orc2::{
        LLVMJITEvaluatedSymbol, LLVMJITSymbolFlags, LLVMJITSymbolGenericFlags, LLVMOrcAbsoluteSymbols,
        LLVMOrcCSymbolMapPair, LLVMOrcDisposeMaterializationUnit, LLVMOrcExecutionSessionSetErrorReporter,
        LLVMOrcJITDylibDefine,
        lljit::{
            LLVMOrcCreateLLJIT, LLVMOrcDisposeLLJIT, LLVMOrcLLJITAddObjectFile, LLVMOrcLLJITGetExecutionSession,
            LLVMOrcLLJITGetMainJITDylib, LLVMOrcLLJITLookup, LLVMOrcLLJITMangleAndIntern, LLVMOrcLLJITRef,
        },
    },
    target_machine::{LLVMGetDefaultTargetTriple, LLVMGetHostCPUFeatures, LLVMGetHostCPUName},
};

use super::{
    contain::{LlvmError, Uncontained},
    mgpu::{self, Gpu},
};

unsafe extern "C-unwind" {
    fn gpulowerStartProgram(function: *mut c_void, returns: c_int, result: *mut c_void) -> c_int;
}

/// LLVM's linker refused the object.
pub(crate) fn not_linked(reason: impl std::fmt::Display) -> LlvmError {
    LlvmError::Refused(format!("LLVM's JIT linker refused the program: {reason}"))
}

/// The machine that this process runs on, as LLVM names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HostMachine {
    /// The triple.
    pub(crate) triple: String,
    /// The processor.
    pub(crate) chip: String,
    /// What it can do.
    pub(crate) features: String,
}

impl HostMachine {
    /// Asks LLVM.
    pub(crate) fn detect() -> Self {
        let read = |text: *mut std::ffi::c_char| {
            if text.is_null() {
                return String::new();
            }
            // SAFETY: LLVM gives a NUL-terminated string that the caller owns.
            unsafe {
                let copy = CStr::from_ptr(text).to_string_lossy().into_owned();
                LLVMDisposeMessage(text);
                copy
            }
        };
        // SAFETY: none of the three takes or needs anything.
        unsafe {
            Self {
                triple: read(LLVMGetDefaultTargetTriple()),
                chip: read(LLVMGetHostCPUName()),
                features: read(LLVMGetHostCPUFeatures()),
            }
        }
    }
}

/// Libraries with functions that a program calls. Their constructors run as soon as a program is made ready.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SharedLibraries(Vec<PathBuf>);

impl SharedLibraries {
    /// Names the libraries, in the order in which symbols are looked for.
    ///
    /// # Safety
    ///
    /// The caller vouches for what their constructors do, and their destructors, in this process.
    pub const unsafe fn trusted(paths: Vec<PathBuf>) -> Self {
        Self(paths)
    }
}

/// Where a program's external symbols are found: in shared libraries, in their order, and then in this process with the C
/// library and its mathematical functions.
#[derive(Debug)]
pub(crate) struct Symbols {
    libraries: Vec<Library>,
}

impl Symbols {
    /// Loads the libraries.
    ///
    /// # Errors
    ///
    /// [`LlvmError::Refused`].
    pub(crate) fn load(named: &SharedLibraries) -> Result<Self, LlvmError> {
        let mut libraries = Vec::new();
        for path in &named.0 {
            libraries.push(open(path)?);
        }
        libraries.push(Library::this());
        for name in ["libc.so.6", "libm.so.6"] {
            // Both are loaded already where Rust is linked with glibc; elsewhere the process has their functions itself.
            libraries.extend(open(Path::new(name)).ok());
        }
        Ok(Self { libraries })
    }

    /// The address of a symbol.
    pub(crate) fn find(&self, name: &str) -> Option<usize> {
        let name = CString::new(name).ok()?;
        self.libraries.iter().find_map(|library| {
            // SAFETY: only the address is taken; whoever calls it vouches for the type.
            let symbol = unsafe { library.get::<*mut c_void>(name.as_bytes_with_nul()) }.ok()?;
            Some(symbol.into_raw().expose_provenance()).filter(|address| *address != 0)
        })
    }
}

fn open(path: &Path) -> Result<Library, LlvmError> {
    // SAFETY: loading runs constructors, for which whoever made the `SharedLibraries` vouches; those of the C library and its
    // mathematical functions have run. Libraries may need each
    // other's symbols, as those of mlir-runner do.
    unsafe { Library::open(Some(path.as_os_str()), RTLD_NOW | RTLD_GLOBAL) }.map_err(|error| {
        let reason = std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
        let path = path.display();
        LlvmError::Refused(format!("the shared library {path} cannot be loaded: {reason}"))
    })
}

/// What a function returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub(crate) enum Returns {
    /// Nothing.
    Nothing = 0,
    /// `i32`
    I32 = 1,
    /// `i64`
    I64 = 2,
    /// `f32`
    F32 = 3,
    /// `f64`
    F64 = 4,
}

/// What a function returned.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Returned {
    /// Nothing.
    Nothing,
    /// An `i32`.
    I32(i32),
    /// An `i64`.
    I64(i64),
    /// An `f32`.
    F32(f32),
    /// An `f64`.
    F64(f64),
}

/// An object in memory, linked. Its memory is given back when the value is dropped.
#[derive(Debug)]
pub(crate) struct Engine {
    jit: LLVMOrcLLJITRef,
    /// Boxed: LLVM keeps its address.
    reported: Box<Mutex<Vec<String>>>,
    /// Libraries stay loaded as long as code calls them.
    _symbols: Symbols,
}

/// Takes the text of an error, which is freed.
fn text(error: LLVMErrorRef) -> String {
    // SAFETY: a non-null error is consumed by the first call; its message is a NUL-terminated string that is owned here.
    unsafe {
        let message = LLVMGetErrorMessage(error);
        let text = CStr::from_ptr(message).to_string_lossy().trim_end().to_owned();
        LLVMDisposeErrorMessage(message);
        text
    }
}

extern "C" fn report(closure: *mut c_void, error: LLVMErrorRef) {
    let _uncontained = Uncontained::new();
    let text = text(error);
    // SAFETY: the closure is the box of the engine, which outlives the session.
    let reported = unsafe { &*closure.cast::<Mutex<Vec<String>>>() };
    reported.lock().unwrap_or_else(PoisonError::into_inner).push(text);
}

impl Engine {
    /// Links an object of this machine. `defined` are the addresses of all symbols that it needs.
    ///
    /// # Errors
    ///
    /// [`LlvmError::Refused`].
    pub(crate) fn link(object: &[u8], defined: &BTreeMap<String, usize>, symbols: Symbols) -> Result<Self, LlvmError> {
        let mut jit = null_mut();
        // SAFETY: no builder means the defaults: this machine, whose target was registered when the object was made.
        let error = unsafe { LLVMOrcCreateLLJIT(&raw mut jit, null_mut()) };
        if !error.is_null() {
            return Err(not_linked(text(error)));
        }
        let engine = Self {
            jit,
            reported: Box::default(),
            _symbols: symbols,
        };
        let closure = (&raw const *engine.reported).cast_mut().cast();
        // SAFETY: the session is alive, and the box outlives it.
        unsafe { LLVMOrcExecutionSessionSetErrorReporter(LLVMOrcLLJITGetExecutionSession(jit), report, closure) };
        engine.define(defined)?;
        // SAFETY: the bytes are copied; the dylib is the engine's; the buffer is handed over, also where that fails.
        let error = unsafe {
            let buffer =
                LLVMCreateMemoryBufferWithMemoryRangeCopy(object.as_ptr().cast(), object.len(), c"program".as_ptr());
            LLVMOrcLLJITAddObjectFile(jit, LLVMOrcLLJITGetMainJITDylib(jit), buffer)
        };
        engine.check(error)?;
        Ok(engine)
    }

    fn define(&self, defined: &BTreeMap<String, usize>) -> Result<(), LlvmError> {
        let mut pairs = Vec::with_capacity(defined.len());
        for (name, address) in defined {
            let Ok(name) = CString::new(name.as_str()) else {
                continue;
            };
            pairs.push(LLVMOrcCSymbolMapPair {
                // SAFETY: the engine is alive; the pair takes over the reference.
                Name: unsafe { LLVMOrcLLJITMangleAndIntern(self.jit, name.as_ptr()) },
                Sym: LLVMJITEvaluatedSymbol {
                    Address: *address as u64,
                    Flags: LLVMJITSymbolFlags {
                        GenericFlags: LLVMJITSymbolGenericFlags::LLVMJITSymbolGenericFlagsExported as u8,
                        TargetFlags: 0,
                    },
                },
            });
        }
        // SAFETY: the pairs are read within the call; the unit is handed over unless defining it fails.
        unsafe {
            let unit = LLVMOrcAbsoluteSymbols(pairs.as_mut_ptr(), pairs.len());
            let error = LLVMOrcJITDylibDefine(LLVMOrcLLJITGetMainJITDylib(self.jit), unit);
            if !error.is_null() {
                LLVMOrcDisposeMaterializationUnit(unit);
            }
            self.check(error)
        }
    }

    /// An error of LLVM's, with what the session reported beside it.
    fn check(&self, error: LLVMErrorRef) -> Result<(), LlvmError> {
        if error.is_null() {
            return Ok(());
        }
        let last = text(error);
        let mut lines = std::mem::take(&mut *self.reported.lock().unwrap_or_else(PoisonError::into_inner));
        lines.push(last);
        lines.dedup();
        Err(not_linked(lines.join("; ")))
    }

    /// The address of a function or variable of the object. The first call links it.
    ///
    /// # Errors
    ///
    /// [`LlvmError::Refused`].
    pub(crate) fn address(&self, name: &str) -> Result<usize, LlvmError> {
        let name = CString::new(name).map_err(|_| not_linked(format!("the name {name:?} has a NUL in it")))?;
        let mut address = 0;
        // SAFETY: the engine is alive, the name ends in a NUL, the pointer is valid for one write.
        let error = unsafe { LLVMOrcLLJITLookup(self.jit, &raw mut address, name.as_ptr()) };
        self.check(error)?;
        usize::try_from(address).map_err(|_| not_linked(format!("the address {address:#x} is too large")))
    }

    /// Calls a function without arguments. `None` if the program was left because a call for the GPU failed; `gpu` knows why.
    ///
    /// # Safety
    ///
    /// The address is that of a function of this engine which takes nothing and returns what is said, and the code may be run:
    /// what it does to memory the caller vouches for.
    pub(crate) unsafe fn call(&self, address: usize, returns: Returns, gpu: &Arc<dyn Gpu>) -> Option<Returned> {
        let _running = mgpu::enter(gpu);
        let function = std::ptr::with_exposed_provenance_mut::<c_void>(address);
        let mut result = 0u64;
        // SAFETY: the caller vouches for address and type; the result has room for any of them, and is aligned for them.
        match unsafe { gpulowerStartProgram(function, returns as c_int, (&raw mut result).cast()) } {
            1 => {}
            2 => {
                gpu.stop(
                    "the program",
                    "an exception of C++ left it, which nothing in it caught".into(),
                );
                return None;
            }
            _ => return None,
        }
        let bytes = result.to_ne_bytes();
        let [a, b, c, d, ..] = bytes;
        Some(match returns {
            Returns::Nothing => Returned::Nothing,
            Returns::I32 => Returned::I32(i32::from_ne_bytes([a, b, c, d])),
            Returns::I64 => Returned::I64(i64::from_ne_bytes(bytes)),
            Returns::F32 => Returned::F32(f32::from_ne_bytes([a, b, c, d])),
            Returns::F64 => Returned::F64(f64::from_ne_bytes(bytes)),
        })
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // SAFETY: made by `link`, disposed of once, and no function of it is running: `call` borrows the engine.
        let error = unsafe { LLVMOrcDisposeLLJIT(self.jit) };
        if !error.is_null() {
            tracing::warn!("the program's memory was not given back: {}", text(error));
        }
    }
}
