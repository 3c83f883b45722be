//! NVIDIA's device code linker, nvJitLink, loaded at run time.
//!
//! Declarations follow `nvJitLink.h` of CUDA 13.0. Releases from 12.4 export plain names (beside one
//! versioned name per minor release), 12.0 only `__nvJitLink<Function>_12_0`.

use std::borrow::Cow;
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::path::Path;
use std::ptr;

use libloading::os::unix::Library;

use gpulower_runtime::vendor_library;

use super::{
    contain::contained,
    vendor_error::{self, VendorError, c_string},
};

/// `nvJitLinkHandle`.
type Handle = *mut c_void;
type OnHandle = unsafe extern "C-unwind" fn(Handle) -> c_int;
type OnHandlePointer = unsafe extern "C-unwind" fn(*mut Handle) -> c_int;
type GetSize = unsafe extern "C-unwind" fn(Handle, *mut usize) -> c_int;
type GetText = unsafe extern "C-unwind" fn(Handle, *mut c_char) -> c_int;

/// `NVJITLINK_SUCCESS`.
const SUCCESS: c_int = 0;

/// Kind of an input, with the values of `nvJitLinkInputType`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub(crate) enum InputKind {
    /// A relocatable cubin.
    Cubin = 1,
    /// PTX text.
    Ptx = 2,
    /// NVVM LTO-IR.
    LtoIr = 3,
    /// A fat binary.
    Fatbin = 4,
}

/// One input of a link.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Input<'a> {
    /// What the bytes are.
    pub(crate) kind: InputKind,
    /// The content. PTX needs no NUL at its end: it is added when absent.
    pub(crate) bytes: &'a [u8],
    /// The name that error messages use.
    pub(crate) name: &'a str,
}

/// What a link gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Linked {
    /// The linked cubin, an ELF file.
    pub(crate) cubin: Vec<u8>,
    /// The information log (resource usage with `-verbose`, warnings); often empty.
    pub(crate) info_log: String,
    /// The error log. The library may report errors there and succeed: it does so for symbols that are defined twice,
    /// of which it keeps one (observed with 13.0.88).
    pub(crate) error_log: String,
}

/// The name of an `nvJitLinkResult`, without its prefix (`nvJitLink.h`, CUDA 13.0).
fn result_name(code: i32) -> &'static str {
    match code {
        0 => "SUCCESS",
        1 => "UNRECOGNIZED_OPTION",
        2 => "MISSING_ARCH",
        3 => "INVALID_INPUT",
        4 => "PTX_COMPILE",
        5 => "NVVM_COMPILE",
        // Also what an undefined reference gives.
        6 => "INTERNAL",
        7 => "THREADPOOL",
        8 => "UNRECOGNIZED_INPUT",
        9 => "FINALIZE",
        10 => "NULL_INPUT",
        11 => "INCOMPATIBLE_OPTIONS",
        12 => "INCORRECT_INPUT_TYPE",
        13 => "ARCH_MISMATCH",
        14 => "OUTDATED_LIBRARY",
        15 => "MISSING_FATBIN",
        16 => "UNRECOGNIZED_ARCH",
        17 => "UNSUPPORTED_ARCH",
        18 => "LTO_NOT_ENABLED",
        _ => "unknown result",
    }
}

/// The library, loaded. One value serves any number of threads: every link has its own handle.
#[derive(Debug)]
pub(crate) struct NvJitLink {
    create: unsafe extern "C-unwind" fn(*mut Handle, u32, *const *const c_char) -> c_int,
    destroy: OnHandlePointer,
    add_data: unsafe extern "C-unwind" fn(Handle, c_int, *const c_void, usize, *const c_char) -> c_int,
    complete: OnHandle,
    cubin_size: GetSize,
    cubin: unsafe extern "C-unwind" fn(Handle, *mut c_void) -> c_int,
    ptx_size: GetSize,
    ptx: GetText,
    error_log_size: GetSize,
    error_log: GetText,
    info_log_size: GetSize,
    info_log: GetText,
    version: Option<unsafe extern "C-unwind" fn(*mut c_uint, *mut c_uint) -> c_int>,
}

/// Destroys the handle on every path.
struct Job<'a> {
    library: &'a NvJitLink,
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

/// Finds a function by its plain name, then by the versioned name of 12.0.
///
/// # Safety
///
/// `T` must be the function pointer type that `nvJitLink.h` declares for `function`.
unsafe fn find<T: Copy>(library: &Library, function: &str) -> Option<T> {
    [
        format!("nvJitLink{function}\0"),
        format!("__nvJitLink{function}_12_0\0"),
    ]
    .iter()
    // SAFETY: the caller vouches for the type.
    .find_map(|name| unsafe { library.get::<T>(name.as_bytes()) }.ok())
    .map(|symbol| *symbol)
}

impl NvJitLink {
    /// Loads `libnvJitLink.so.13` or `.so.12` at `path`. It stays loaded for the life of the process.
    ///
    /// # Errors
    ///
    /// [`VendorError::Load`].
    pub(crate) fn open(path: &Path) -> Result<Self, VendorError> {
        // SAFETY: loading runs the constructors of the library. The caller names NVIDIA's library, whose
        // constructors set up its own static data only (observed with 13.0.88).
        let library = unsafe { vendor_error::open(path) }?;
        macro_rules! required {
            ($function:literal) => {
                // SAFETY: the type of the field is the declaration in nvJitLink.h.
                unsafe { find(&library, $function) }.ok_or_else(|| {
                    let function = concat!("nvJitLink", $function);
                    VendorError::missing(path, function, "not nvJitLink, or a release before 12.0")
                })?
            };
        }
        let loaded = Self {
            create: required!("Create"),
            destroy: required!("Destroy"),
            add_data: required!("AddData"),
            complete: required!("Complete"),
            cubin_size: required!("GetLinkedCubinSize"),
            cubin: required!("GetLinkedCubin"),
            ptx_size: required!("GetLinkedPtxSize"),
            ptx: required!("GetLinkedPtx"),
            error_log_size: required!("GetErrorLogSize"),
            error_log: required!("GetErrorLog"),
            info_log_size: required!("GetInfoLogSize"),
            info_log: required!("GetInfoLog"),
            // SAFETY: as above.
            version: unsafe { find(&library, "Version") },
        };
        // Unloading a linker with static state gains nothing; the functions above stay valid.
        std::mem::forget(library);
        Ok(loaded)
    }

    /// The CUDA release the library belongs to, for example (13, 0); `None` for 12.0, which cannot say.
    #[must_use]
    pub(crate) fn version(&self) -> Option<(u32, u32)> {
        let version = self.version?;
        let (mut major, mut minor): (c_uint, c_uint) = (0, 0);
        // SAFETY: both pointers are valid for one write.
        (unsafe { version(&raw mut major, &raw mut minor) } == SUCCESS).then_some((major, minor))
    }

    /// Links `inputs` into one cubin. `options` needs `-arch=sm_NN`.
    ///
    /// # Errors
    ///
    /// [`VendorError::Argument`] before anything is called, such as for a cubin that is linked already;
    /// [`VendorError::Failed`] with the error log.
    pub(crate) fn link(&self, inputs: &[Input<'_>], options: &[String]) -> Result<Linked, VendorError> {
        self.complete(inputs, options, |job| job.linked())
    }

    /// Compiles LTO-IR `inputs` to PTX, without linking other code to it. Functions that no kernel of theirs needs are
    /// not in it. `options` needs `-arch=sm_NN`; `-lto` and `-ptx` are added.
    ///
    /// # Errors
    ///
    /// As [`NvJitLink::link`].
    pub(crate) fn lto_to_ptx(&self, inputs: &[Input<'_>], options: &[String]) -> Result<String, VendorError> {
        let options = [options, &["-lto".to_owned(), "-ptx".to_owned()]].concat();
        self.complete(inputs, &options, |job| job.linked_ptx())
    }

    /// Runs a link to its end, and takes the result from it.
    fn complete<R>(
        &self,
        inputs: &[Input<'_>],
        options: &[String],
        take: impl FnOnce(&Job<'_>) -> Result<R, VendorError>,
    ) -> Result<R, VendorError> {
        for input in inputs {
            refuse_executable(input)?;
        }
        let options = options
            .iter()
            .map(|option| c_string(format_args!("{option:?}"), option))
            .collect::<Result<Vec<_>, _>>()?;
        let arguments: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
        let count =
            u32::try_from(arguments.len()).map_err(|_| VendorError::Argument("the options are too many".to_owned()))?;

        // What is handed over lives until the handle is destroyed: the header does not say what is copied.
        let mut contents = Vec::with_capacity(inputs.len());
        for input in inputs {
            let bytes = if input.kind == InputKind::Ptx && input.bytes.last() != Some(&0) {
                Cow::Owned([input.bytes, &[0]].concat())
            } else {
                Cow::Borrowed(input.bytes)
            };
            contents.push((input, bytes, c_string(format_args!("{:?}", input.name), input.name)?));
        }

        let mut job = Job {
            library: self,
            handle: ptr::null_mut(),
        };
        let (create, handle, arguments) = (self.create, &raw mut job.handle, arguments.as_ptr());
        // SAFETY: the handle is valid for one write; the array holds `count` NUL-terminated strings. The closure owns
        // nothing. When this fails on an option the handle is not null, and still has to be destroyed.
        let code = unsafe { contained(|| create(handle, count, arguments)) };
        job.finish("nvJitLinkCreate", code)?;
        for (input, bytes, name) in &contents {
            let (add_data, handle, kind) = (self.add_data, job.handle, input.kind as c_int);
            let (data, size, name) = (bytes.as_ptr().cast(), bytes.len(), name.as_ptr());
            // SAFETY: the handle is live; the bytes and the name outlive it. The closure owns nothing.
            let code = unsafe { contained(|| add_data(handle, kind, data, size, name)) };
            job.finish(&format!("nvJitLinkAddData({:?})", input.name), code)?;
        }
        // SAFETY: the handle is live.
        unsafe { job.complete() }?;

        take(&job)
    }
}

#[cfg(test)]
impl NvJitLink {
    /// Has the library work on a handle that is none.
    pub(crate) fn crash(&self) -> Result<(), VendorError> {
        let mut job = Job {
            library: self,
            handle: ptr::without_provenance_mut(0x10),
        };
        // SAFETY: it is not: the library reads what is not there, and the crash is contained.
        let result = unsafe { job.complete() };
        job.handle = ptr::null_mut();
        result
    }
}

impl Job<'_> {
    /// The cubin of a link that is complete.
    fn linked(&self) -> Result<Linked, VendorError> {
        let mut size = 0usize;
        // SAFETY: the handle is live and the pointer is valid for one write.
        let code = unsafe { (self.library.cubin_size)(self.handle, &raw mut size) };
        self.check("nvJitLinkGetLinkedCubinSize", code)?;
        let mut cubin = vec![0u8; size];
        // SAFETY: the buffer has the size the library asked for.
        let code = unsafe { (self.library.cubin)(self.handle, cubin.as_mut_ptr().cast()) };
        self.check("nvJitLinkGetLinkedCubin", code)?;
        Ok(Linked {
            cubin,
            info_log: self.text(self.library.info_log_size, self.library.info_log),
            error_log: self.text(self.library.error_log_size, self.library.error_log),
        })
    }

    /// The PTX of a link with `-ptx` that is complete.
    fn linked_ptx(&self) -> Result<String, VendorError> {
        let mut size = 0usize;
        // SAFETY: the handle is live and the pointer is valid for one write.
        let code = unsafe { (self.library.ptx_size)(self.handle, &raw mut size) };
        self.check("nvJitLinkGetLinkedPtxSize", code)?;
        let mut ptx = vec![0u8; size];
        // SAFETY: the buffer has the size the library asked for.
        let code = unsafe { (self.library.ptx)(self.handle, ptx.as_mut_ptr().cast()) };
        self.check("nvJitLinkGetLinkedPtx", code)?;
        let end = ptx.iter().position(|&byte| byte == 0).unwrap_or(size);
        ptx.truncate(end);
        Ok(String::from_utf8_lossy(&ptx).into_owned())
    }

    /// One of the two logs; empty when the library has none to give.
    fn text(&self, get_size: GetSize, get: GetText) -> String {
        if self.handle.is_null() {
            return String::new();
        }
        vendor_library::sized_text(
            // SAFETY: the handle is live and the pointer is valid for one write.
            |size| unsafe { get_size(self.handle, size) },
            // SAFETY: the handle is live and `sized_text` gives a buffer of the size asked for, plus one.
            |text| unsafe { get(self.handle, text) },
        )
    }

    /// # Safety
    ///
    /// The handle is one of the library's.
    unsafe fn complete(&mut self) -> Result<(), VendorError> {
        let (complete, handle) = (self.library.complete, self.handle);
        // SAFETY: the caller vouches for the handle. The closure owns nothing.
        let code = unsafe { contained(|| complete(handle)) };
        self.finish("nvJitLinkComplete", code)
    }

    /// After a crash the handle is not used again, not even destroyed.
    fn finish(&mut self, call: &str, outcome: Result<c_int, String>) -> Result<(), VendorError> {
        let code = outcome.map_err(|reason| {
            self.handle = ptr::null_mut();
            VendorError::Crashed {
                call: call.to_owned(),
                reason,
            }
        })?;
        self.check(call, code)
    }

    fn check(&self, call: &str, code: c_int) -> Result<(), VendorError> {
        if code == SUCCESS {
            return Ok(());
        }
        Err(VendorError::Failed {
            call: call.to_owned(),
            code,
            name: result_name(code),
            log: self.text(self.library.error_log_size, self.library.error_log),
        })
    }
}

/// Refuses an ELF file that is not relocatable where a relocatable cubin is expected: nvJitLink accepts it and silently leaves
/// its kernels out (observed with 13.0.88).
fn refuse_executable(input: &Input<'_>) -> Result<(), VendorError> {
    // e_type, at offset 16 of an ELF header: 1 is ET_REL. What is no ELF file is the library's to refuse.
    if let (InputKind::Cubin, [0x7f, b'E', b'L', b'F', _, ..]) = (input.kind, input.bytes)
        && let Some(&[low, high]) = input.bytes.get(16..18)
    {
        let elf_type = u16::from_le_bytes([low, high]);
        if elf_type != 1 {
            return Err(VendorError::Argument(format!(
                "input {:?} is an executable cubin (ELF type {elf_type}), and nvJitLink would silently drop its kernels: compile \
                 it as relocatable device code (`ptxas -c`, `nvcc -rdc=true`)",
                input.name
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_library_is_refused() {
        let error = NvJitLink::open(Path::new("libm.so.6")).unwrap_err();
        assert!(error.to_string().contains("has no function nvJitLinkCreate"), "{error}");
    }
}
