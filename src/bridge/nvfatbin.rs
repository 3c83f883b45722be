//! NVIDIA's writer of fat binaries, nvFatbin, loaded at run time.
//!
//! Declarations follow `nvFatbin.h` of CUDA 13.0. The library exists since CUDA 12.4 and exports plain names.

use std::borrow::Cow;
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::path::Path;
use std::ptr;

use libloading::os::unix::Library;

use super::{
    contain::contained,
    vendor_error::{self, VendorError, c_string},
};

/// `nvFatbinHandle`.
type Handle = *mut c_void;
type AddText = unsafe extern "C-unwind" fn(
    Handle,
    code: *const c_char,
    size: usize,
    arch: *const c_char,
    identifier: *const c_char,
    options: *const c_char,
) -> c_int;
type AddBinary = unsafe extern "C-unwind" fn(
    Handle,
    code: *const c_void,
    size: usize,
    arch: *const c_char,
    identifier: *const c_char,
) -> c_int;
type AddLtoIr = unsafe extern "C-unwind" fn(
    Handle,
    code: *const c_void,
    size: usize,
    arch: *const c_char,
    identifier: *const c_char,
    options: *const c_char,
) -> c_int;

/// `NVFATBIN_SUCCESS`.
const SUCCESS: c_int = 0;

/// What an input is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub(crate) enum InputKind {
    /// PTX text.
    Ptx,
    /// A cubin.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "tests compare our own writer with the library")
    )]
    Cubin,
    /// NVVM LTO-IR.
    LtoIr,
}

/// One input of a fat binary.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Input<'a> {
    /// What the bytes are. Of PTX and LTO-IR the library does not look whether they are that.
    pub(crate) kind: InputKind,
    /// The content. PTX needs no NUL at its end: it is added when absent.
    pub(crate) bytes: &'a [u8],
    /// The architecture by its number and suffix: `90a`.
    pub(crate) arch: &'a str,
    /// The name that tools show; empty for none.
    pub(crate) identifier: &'a str,
    /// Options for the compiler of the driver or of nvJitLink; nothing is done with those of a cubin.
    pub(crate) options: &'a str,
}

/// The name of an `nvFatbinResult`, without its prefix (`nvFatbin.h`, CUDA 13.0).
fn result_name(code: i32) -> &'static str {
    match code {
        0 => "SUCCESS",
        // Also what options it does not know for LTO-IR give, and inputs that are something else.
        1 => "INTERNAL",
        2 => "ELF_ARCH_MISMATCH",
        3 => "ELF_SIZE_MISMATCH",
        4 => "MISSING_PTX_VERSION",
        5 => "NULL_POINTER",
        6 => "COMPRESSION_FAILED",
        7 => "COMPRESSED_SIZE_EXCEEDED",
        8 => "UNRECOGNIZED_OPTION",
        9 => "INVALID_ARCH",
        10 => "INVALID_NVVM",
        11 => "EMPTY_INPUT",
        12 => "MISSING_PTX_ARCH",
        13 => "PTX_ARCH_MISMATCH",
        14 => "MISSING_FATBIN",
        15 => "INVALID_INDEX",
        16 => "IDENTIFIER_REUSE",
        17 => "INTERNAL_PTX_OPTION",
        _ => "unknown result",
    }
}

/// The library, loaded. One value serves any number of threads: every fat binary has its own handle.
#[derive(Debug)]
pub struct NvFatbin {
    create: unsafe extern "C-unwind" fn(*mut Handle, *const *const c_char, usize) -> c_int,
    destroy: unsafe extern "C-unwind" fn(*mut Handle) -> c_int,
    add_ptx: AddText,
    add_cubin: AddBinary,
    add_lto_ir: AddLtoIr,
    size: unsafe extern "C-unwind" fn(Handle, *mut usize) -> c_int,
    get: unsafe extern "C-unwind" fn(Handle, *mut c_void) -> c_int,
    version: unsafe extern "C-unwind" fn(*mut c_uint, *mut c_uint) -> c_int,
}

/// Destroys the handle on every path.
struct Job<'a> {
    library: &'a NvFatbin,
    handle: Handle,
}

impl Drop for Job<'_> {
    fn drop(&mut self) {
        if !self.handle.is_null() {
            // SAFETY: the handle came from this library's create and is destroyed once.
            unsafe { (self.library.destroy)(&raw mut self.handle) };
        }
    }
}

/// Finds `nvFatbin<function>`.
///
/// # Safety
///
/// `T` must be the function pointer type that `nvFatbin.h` declares for `function`.
unsafe fn find<T: Copy>(library: &Library, function: &str) -> Option<T> {
    let name = format!("nvFatbin{function}\0");
    // SAFETY: the caller vouches for the type.
    unsafe { library.get::<T>(name.as_bytes()) }.ok().map(|symbol| *symbol)
}

impl NvFatbin {
    /// Loads `libnvfatbin.so.13` or `.so.12` at `path`. It stays loaded for the life of the process.
    ///
    /// # Errors
    ///
    /// [`VendorError::Load`].
    pub(crate) fn open(path: &Path) -> Result<Self, VendorError> {
        // SAFETY: loading runs the constructors of the library. The caller names NVIDIA's library, whose
        // constructors set up its own static data only (observed with 13.0.85).
        let library = unsafe { vendor_error::open(path) }?;
        macro_rules! required {
            ($function:literal) => {
                // SAFETY: the type of the field is the declaration in nvFatbin.h.
                unsafe { find(&library, $function) }
                    .ok_or_else(|| VendorError::missing(path, concat!("nvFatbin", $function), "it is not nvFatbin"))?
            };
        }
        let loaded = Self {
            create: required!("Create"),
            destroy: required!("Destroy"),
            add_ptx: required!("AddPTX"),
            add_cubin: required!("AddCubin"),
            add_lto_ir: required!("AddLTOIR"),
            size: required!("Size"),
            get: required!("Get"),
            version: required!("Version"),
        };
        // Unloading a library with static state gains nothing; the functions above stay valid.
        std::mem::forget(library);
        Ok(loaded)
    }

    /// The CUDA release the library belongs to, for example (13, 0); `None` if it cannot say.
    #[must_use]
    pub(crate) fn version(&self) -> Option<(u32, u32)> {
        let (mut major, mut minor): (c_uint, c_uint) = (0, 0);
        // SAFETY: both pointers are valid for one write.
        (unsafe { (self.version)(&raw mut major, &raw mut minor) } == SUCCESS).then_some((major, minor))
    }

    /// Puts `inputs` into one fat binary, in this order. `options` are those of `nvFatbinCreate`, such as
    /// `-compress=false`.
    ///
    /// # Errors
    ///
    /// [`VendorError`].
    pub(crate) fn create(&self, inputs: &[Input<'_>], options: &[&str]) -> Result<Vec<u8>, VendorError> {
        let options = options
            .iter()
            .map(|option| c_string(format_args!("{option:?}"), option))
            .collect::<Result<Vec<_>, _>>()?;
        let arguments: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
        // What is handed over lives until the handle is destroyed: the header does not say what is copied.
        let named = |text: &str| c_string(format_args!("{text:?}"), text);
        let mut contents = Vec::with_capacity(inputs.len());
        for input in inputs {
            let bytes = if input.kind == InputKind::Ptx && input.bytes.last() != Some(&0) {
                Cow::Owned([input.bytes, &[0]].concat())
            } else {
                Cow::Borrowed(input.bytes)
            };
            let texts = (named(input.arch)?, named(input.identifier)?, named(input.options)?);
            contents.push((input.kind, bytes, texts));
        }

        let mut job = Job {
            library: self,
            handle: ptr::null_mut(),
        };
        let (create, handle) = (self.create, &raw mut job.handle);
        let (options, count) = (arguments.as_ptr(), arguments.len());
        // SAFETY: the handle is valid for one write; the array holds as many NUL-terminated strings as is stated. The closure
        // owns nothing.
        let code = unsafe { contained(|| create(handle, options, count)) };
        job.finish("nvFatbinCreate", code)?;
        for (kind, bytes, (arch, identifier, options)) in &contents {
            let (name, identifier, options) = (arch.as_ptr(), identifier.as_ptr(), options.as_ptr());
            let (handle, data, length) = (job.handle, bytes.as_ptr(), bytes.len());
            let (call, code) = match kind {
                InputKind::Ptx => ("nvFatbinAddPTX", {
                    let add = self.add_ptx;
                    // SAFETY: the handle is live; the text ends with a NUL that its size counts; all outlive the handle. The
                    // closure owns nothing.
                    unsafe { contained(|| add(handle, data.cast(), length, name, identifier, options)) }
                }),
                InputKind::Cubin => ("nvFatbinAddCubin", {
                    let add = self.add_cubin;
                    // SAFETY: the handle is live; the bytes and the texts outlive it. The closure owns nothing.
                    unsafe { contained(|| add(handle, data.cast(), length, name, identifier)) }
                }),
                InputKind::LtoIr => ("nvFatbinAddLTOIR", {
                    let add = self.add_lto_ir;
                    // SAFETY: the handle is live; the bytes and the texts outlive it. The closure owns nothing.
                    unsafe { contained(|| add(handle, data.cast(), length, name, identifier, options)) }
                }),
            };
            job.finish(&format!("{call} for {}", arch.to_string_lossy()), code)?;
        }
        // SAFETY: the handle is live.
        unsafe { job.fat_binary() }
    }
}

#[cfg(test)]
impl NvFatbin {
    /// Has the library work on a handle that is none.
    pub(crate) fn crash(&self) -> Result<Vec<u8>, VendorError> {
        let mut job = Job {
            library: self,
            handle: ptr::without_provenance_mut(0x10),
        };
        // SAFETY: it is not: the library reads what is not there, and the crash is contained.
        let result = unsafe { job.fat_binary() };
        job.handle = ptr::null_mut();
        result
    }
}

impl Job<'_> {
    /// The fat binary of what was added.
    ///
    /// # Safety
    ///
    /// The handle is one of the library's.
    unsafe fn fat_binary(&mut self) -> Result<Vec<u8>, VendorError> {
        let (get_size, get, handle) = (self.library.size, self.library.get, self.handle);
        let mut size = 0usize;
        let end = &raw mut size;
        // SAFETY: the caller vouches for the handle; the pointer is valid for one write. The closure owns nothing.
        let code = unsafe { contained(|| get_size(handle, end)) };
        self.finish("nvFatbinSize", code)?;
        let mut fatbin = vec![0u8; size];
        let buffer = fatbin.as_mut_ptr();
        // SAFETY: the buffer has the size the library asked for. The closure owns nothing.
        let code = unsafe { contained(|| get(handle, buffer.cast())) };
        self.finish("nvFatbinGet", code)?;
        Ok(fatbin)
    }

    /// After a crash the handle is not used again, not even destroyed.
    fn finish(&mut self, call: &str, outcome: Result<c_int, String>) -> Result<(), VendorError> {
        let call = call.to_owned();
        match outcome {
            Ok(SUCCESS) => Ok(()),
            Ok(code) => Err(VendorError::Failed {
                call,
                code,
                name: result_name(code),
                log: String::new(),
            }),
            Err(reason) => {
                self.handle = ptr::null_mut();
                Err(VendorError::Crashed { call, reason })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_the_library_is_refused() {
        let error = NvFatbin::open(Path::new("libm.so.6")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "libm.so.6 has no function nvFatbinCreate: it is not nvFatbin"
        );
        let error = NvFatbin::open(Path::new("/nowhere/libnvfatbin.so.13")).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("/nowhere/libnvfatbin.so.13 could not be loaded: "),
            "{error}"
        );
    }
}
