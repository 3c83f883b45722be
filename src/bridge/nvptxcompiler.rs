//! NVIDIA's PTX compiler library, nvPTXCompiler, loaded at run time from a shared object.
//!
//! NVIDIA ships it only as a static archive; `serialize::nvptxcompiler` makes the shared object.
//! Declarations follow `nvPTXCompiler.h` of CUDA 13.0.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::path::Path;
use std::ptr;

use gpulower_runtime::vendor_library;

use super::{
    contain::contained,
    vendor_error::{self, VendorError, c_string},
};

/// `nvPTXCompilerHandle`.
type Handle = *mut c_void;
type Destroy = unsafe extern "C-unwind" fn(*mut Handle) -> c_int;
type GetSize = unsafe extern "C-unwind" fn(Handle, *mut usize) -> c_int;
type GetText = unsafe extern "C-unwind" fn(Handle, *mut c_char) -> c_int;

/// `NVPTXCOMPILE_SUCCESS`.
const SUCCESS: c_int = 0;

/// Names that [`NvPtxCompiler::open`] requires; an archive without one of them is not this library.
pub(crate) const REQUIRED_SYMBOLS: [&str; 10] = [
    "nvPTXCompilerGetVersion",
    "nvPTXCompilerCreate",
    "nvPTXCompilerDestroy",
    "nvPTXCompilerCompile",
    "nvPTXCompilerGetCompiledProgramSize",
    "nvPTXCompilerGetCompiledProgram",
    "nvPTXCompilerGetErrorLogSize",
    "nvPTXCompilerGetErrorLog",
    "nvPTXCompilerGetInfoLogSize",
    "nvPTXCompilerGetInfoLog",
];

/// Names that older releases lack.
pub(crate) const OPTIONAL_SYMBOLS: [&str; 2] = [
    "nvPTXCompilerGetNumSupportedVersions",
    "nvPTXCompilerGetSupportedVersions",
];

/// The name of an `nvPTXCompileResult`, without its prefix (`nvPTXCompiler.h`, CUDA 13.0).
fn result_name(code: i32) -> &'static str {
    match code {
        0 => "SUCCESS",
        1 => "INVALID_COMPILER_HANDLE",
        2 => "INVALID_INPUT",
        3 => "COMPILATION_FAILURE",
        4 => "INTERNAL",
        5 => "OUT_OF_MEMORY",
        6 => "COMPILER_INVOCATION_INCOMPLETE",
        7 => "UNSUPPORTED_PTX_VERSION",
        8 => "UNSUPPORTED_DEVSIDE_SYNC",
        9 => "CANCELLED",
        _ => "unknown result",
    }
}

/// What a compilation gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Compiled {
    /// The cubin, an ELF file.
    pub(crate) cubin: Vec<u8>,
    /// The information log (resource usage with `-v`, warnings); often empty.
    pub(crate) log: String,
}

/// The library, loaded. One value serves any number of threads: every compilation has its own handle,
/// and the library was seen to scale over threads with identical results.
#[derive(Debug)]
pub(crate) struct NvPtxCompiler {
    get_version: unsafe extern "C-unwind" fn(*mut c_uint, *mut c_uint) -> c_int,
    create: unsafe extern "C-unwind" fn(*mut Handle, usize, *const c_char) -> c_int,
    destroy: Destroy,
    compile: unsafe extern "C-unwind" fn(Handle, c_int, *const *const c_char) -> c_int,
    program_size: GetSize,
    program: unsafe extern "C-unwind" fn(Handle, *mut c_void) -> c_int,
    error_log_size: GetSize,
    error_log: GetText,
    info_log_size: GetSize,
    info_log: GetText,
    version_count: Option<unsafe extern "C-unwind" fn(*mut c_int) -> c_int>,
    versions: Option<unsafe extern "C-unwind" fn(*mut [c_int; 2]) -> c_int>,
}

/// Destroys the handle on every path.
struct Job<'a> {
    library: &'a NvPtxCompiler,
    handle: Handle,
}

impl Drop for Job<'_> {
    fn drop(&mut self) {
        if !self.handle.is_null() {
            // SAFETY: the handle came from a successful create of this library and is destroyed once.
            unsafe { (self.library.destroy)(&raw mut self.handle) };
        }
    }
}

impl NvPtxCompiler {
    /// Loads the shared object at `path`. It stays loaded for the life of the process.
    ///
    /// # Errors
    ///
    /// [`VendorError::Load`].
    pub(crate) fn open(path: &Path) -> Result<Self, VendorError> {
        // SAFETY: loading runs the constructors of the library. The caller names NVIDIA's library, whose
        // constructors set up its own static data only (observed with 13.0.88).
        let library = unsafe { vendor_error::open(path) }?;
        let missing = |symbol: &str| VendorError::missing(path, symbol, "not nvPTXCompiler");
        macro_rules! required {
            ($name:literal) => {
                // SAFETY: the type of the field is the declaration in nvPTXCompiler.h.
                *unsafe { library.get($name) }.map_err(|_| missing($name))?
            };
        }
        macro_rules! optional {
            ($name:literal) => {
                // SAFETY: the type of the field is the declaration in nvPTXCompiler.h.
                unsafe { library.get($name) }.ok().map(|symbol| *symbol)
            };
        }
        let loaded = Self {
            get_version: required!("nvPTXCompilerGetVersion"),
            create: required!("nvPTXCompilerCreate"),
            destroy: required!("nvPTXCompilerDestroy"),
            compile: required!("nvPTXCompilerCompile"),
            program_size: required!("nvPTXCompilerGetCompiledProgramSize"),
            program: required!("nvPTXCompilerGetCompiledProgram"),
            error_log_size: required!("nvPTXCompilerGetErrorLogSize"),
            error_log: required!("nvPTXCompilerGetErrorLog"),
            info_log_size: required!("nvPTXCompilerGetInfoLogSize"),
            info_log: required!("nvPTXCompilerGetInfoLog"),
            version_count: optional!("nvPTXCompilerGetNumSupportedVersions"),
            versions: optional!("nvPTXCompilerGetSupportedVersions"),
        };
        // Unloading a compiler with static state gains nothing; the functions above stay valid.
        std::mem::forget(library);
        Ok(loaded)
    }

    /// The CUDA release the library belongs to, for example (13, 0).
    ///
    /// # Errors
    ///
    /// [`VendorError::Failed`] when the library refuses.
    pub(crate) fn version(&self) -> Result<(u32, u32), VendorError> {
        let (mut major, mut minor): (c_uint, c_uint) = (0, 0);
        // SAFETY: both pointers are valid for one write.
        let code = unsafe { (self.get_version)(&raw mut major, &raw mut minor) };
        check("nvPTXCompilerGetVersion", code, String::new)?;
        Ok((major, minor))
    }

    /// The PTX ISA versions the library reads, as (major, minor); `None` when it cannot say.
    #[must_use]
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "a test compares the table of releases with the library")
    )]
    pub(crate) fn supported_ptx_versions(&self) -> Option<Vec<(u32, u32)>> {
        let (count, versions) = (self.version_count?, self.versions?);
        let mut rows: c_int = 0;
        // SAFETY: the pointer is valid for one write.
        if unsafe { count(&raw mut rows) } != SUCCESS {
            return None;
        }
        // The bound only guards against a wild answer: 13.0 knows fewer than 60 versions.
        let rows = usize::try_from(rows).ok().filter(|&rows| rows <= 4096)?;
        let mut table: Vec<[c_int; 2]> = vec![[0, 0]; rows];
        // SAFETY: the table has as many rows as the library said it writes.
        if unsafe { versions(table.as_mut_ptr()) } != SUCCESS {
            return None;
        }
        table
            .into_iter()
            .map(|[major, minor]| Some((major.try_into().ok()?, minor.try_into().ok()?)))
            .collect()
    }

    /// Compiles one PTX module. `options` are the long options of ptxas; `--gpu-name=` is required.
    ///
    /// It goes on to its end, whatever time that takes: it has a way to be stopped (`nvPTXCompilerSetFlowCallback`), but 13.0
    /// then frees what it did not allocate, and the C library ends the process (a chain of 20,000 multiplications).
    ///
    /// # Errors
    ///
    /// [`VendorError::Failed`] with the error log; [`VendorError::Argument`].
    pub(crate) fn compile(&self, ptx: &str, options: &[String]) -> Result<Compiled, VendorError> {
        let ptx = c_string("the PTX", ptx)?;
        let options = options
            .iter()
            .map(|option| c_string(format_args!("the option {option:?}"), option))
            .collect::<Result<Vec<_>, _>>()?;
        let arguments: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
        let count = c_int::try_from(arguments.len())
            .map_err(|_| VendorError::Argument("the options are too many".to_owned()))?;

        let mut job = Job {
            library: self,
            handle: ptr::null_mut(),
        };
        let (create, handle, text) = (self.create, &raw mut job.handle, ptx.as_bytes());
        // SAFETY: the handle is valid for one write; the text has the given length and a NUL after it,
        // and outlives the job. The closure owns nothing.
        let code = unsafe { contained(|| create(handle, text.len(), text.as_ptr().cast())) }
            .map_err(|reason| job.crashed("nvPTXCompilerCreate", reason))?;
        if code != SUCCESS {
            // A handle is not defined after a failed create.
            job.handle = ptr::null_mut();
        }
        check("nvPTXCompilerCreate", code, String::new)?;

        // SAFETY: the handle is live; the array holds `count` pointers to NUL-terminated strings.
        unsafe { job.compile(count, arguments.as_ptr()) }?;

        let mut size = 0usize;
        // SAFETY: the handle is live and the pointer is valid for one write.
        let code = unsafe { (self.program_size)(job.handle, &raw mut size) };
        check("nvPTXCompilerGetCompiledProgramSize", code, String::new)?;
        let mut cubin = vec![0u8; size];
        // SAFETY: the buffer has the size the library asked for.
        let code = unsafe { (self.program)(job.handle, cubin.as_mut_ptr().cast()) };
        check("nvPTXCompilerGetCompiledProgram", code, String::new)?;
        let log = job.text(self.info_log_size, self.info_log);
        Ok(Compiled { cubin, log })
    }
}

#[cfg(test)]
impl NvPtxCompiler {
    /// Has the library work on a handle that is none.
    pub(crate) fn crash(&self) -> Result<(), VendorError> {
        let mut job = Job {
            library: self,
            handle: ptr::without_provenance_mut(0x10),
        };
        // SAFETY: it is not: the library reads what is not there, and the crash is contained.
        let result = unsafe { job.compile(0, ptr::null()) };
        job.handle = ptr::null_mut();
        result
    }
}

impl Job<'_> {
    /// # Safety
    ///
    /// The handle is one of the library's; there are so many options, each with a NUL at its end.
    unsafe fn compile(&mut self, count: c_int, options: *const *const c_char) -> Result<(), VendorError> {
        const CALL: &str = "nvPTXCompilerCompile";
        let (compile, handle) = (self.library.compile, self.handle);
        // SAFETY: the caller vouches for what is passed. The closure owns nothing.
        let code =
            unsafe { contained(|| compile(handle, count, options)) }.map_err(|reason| self.crashed(CALL, reason))?;
        check(CALL, code, || {
            self.text(self.library.error_log_size, self.library.error_log)
        })
    }

    /// The handle is not used again, not even destroyed.
    fn crashed(&mut self, call: &'static str, reason: String) -> VendorError {
        self.handle = ptr::null_mut();
        VendorError::Crashed {
            call: call.to_owned(),
            reason,
        }
    }

    /// One of the two logs; empty when the library has none to give.
    fn text(&self, get_size: GetSize, get: GetText) -> String {
        vendor_library::sized_text(
            // SAFETY: the handle is live and the pointer is valid for one write.
            |size| unsafe { get_size(self.handle, size) },
            // SAFETY: the handle is live and `sized_text` gives a buffer of the size asked for, plus one.
            |text| unsafe { get(self.handle, text) },
        )
    }
}

fn check(call: &'static str, code: c_int, log: impl FnOnce() -> String) -> Result<(), VendorError> {
    if code == SUCCESS {
        return Ok(());
    }
    Err(VendorError::Failed {
        call: call.to_owned(),
        code,
        name: result_name(code),
        log: log(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_library_is_refused() {
        let error = NvPtxCompiler::open(Path::new("libm.so.6")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "libm.so.6 has no function nvPTXCompilerGetVersion: not nvPTXCompiler"
        );
        let error = NvPtxCompiler::open(Path::new("/nowhere/libx.so")).unwrap_err();
        assert!(error.to_string().contains("No such file"), "{error}");
    }
}
