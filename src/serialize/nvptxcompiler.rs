//! Turns NVIDIA's static nvPTXCompiler archive into a shared object, once, and loads it.
//!
//! NVIDIA ships the library only as `libnvptxcompiler_static.a` (89 MB), and it may not be passed on, so
//! the conversion happens on the user's machine, with the linker inside this process: 0.2 s. The result is
//! kept in a cache directory under a name made of the archive's hash and the version of the recipe.

use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::bridge::assemble::assemble;
use crate::bridge::lld;
use crate::bridge::nvptxcompiler::{NvPtxCompiler, OPTIONAL_SYMBOLS, REQUIRED_SYMBOLS};
use crate::toolkit::digest;

/// To be raised with every change to the scripts or to the link line below.
const RECIPE_VERSION: u32 = 3;

/// GNU ld folds `.ctors` into `.init_array` by itself; lld does not, and a library linked without this
/// crashes in its first compilation (observed with 13.0.88).
const LINKER_SCRIPT: &str = "SECTIONS { .init_array : { \
    KEEP(*(SORT_BY_INIT_PRIORITY(.init_array.*) SORT_BY_INIT_PRIORITY(.ctors.*))) \
    KEEP(*(.init_array .ctors)) } } INSERT BEFORE .data;\n";

/// Exports the interface alone: the archive defines 55,000 further names.
const VERSION_SCRIPT: &str = "{ global: nvPTXCompiler*; local: *; };\n";

/// `atexit` is in no shared library: programs have it from `libc_nonshared.a`, which belongs to a compiler. CUDA 13.5's archive
/// calls it. As nothing unloads the library, it means the end of the process, as in a program.
const AT_EXIT: &str = if cfg!(target_arch = "aarch64") {
    "\t.text\n\t.globl atexit\n\t.hidden atexit\natexit:\n\tmov x1, xzr\n\tmov x2, xzr\n\tb __cxa_atexit\n"
} else {
    "\t.text\n\t.globl atexit\n\t.hidden atexit\natexit:\n\txorl %esi, %esi\n\txorl %edx, %edx\n\tjmp __cxa_atexit@PLT\n"
};

/// Where the C library and the compiler's support library are looked for, when this process has not
/// loaded them itself: the default directories of the dynamic loader.
const LIBRARY_DIRECTORIES: [&str; 6] = if cfg!(target_arch = "aarch64") {
    // Libraries of other processors may lie beside them.
    [
        "/lib/aarch64-linux-gnu",
        "/usr/lib/aarch64-linux-gnu",
        "/lib64",
        "/usr/lib64",
        "/lib",
        "/usr/lib",
    ]
} else {
    [
        "/lib/x86_64-linux-gnu",
        "/usr/lib/x86_64-linux-gnu",
        "/lib64",
        "/usr/lib64",
        "/lib",
        "/usr/lib",
    ]
};

/// The dynamic loader, which is a library too.
const LOADER: &str = if cfg!(target_arch = "aarch64") {
    "ld-linux-aarch64.so.1"
} else {
    "ld-linux-x86-64.so.2"
};

/// An error of the system's, in words.
fn io(action: &str, path: &Path) -> impl Fn(io::Error) -> String + use<> {
    let text = format!("{action} {}", path.display());
    move |error| format!("{text}: {error}")
}

/// Loads nvPTXCompiler from its static archive, converting it first if `cache` does not hold the result of
/// an earlier conversion. `cache` is created with mode 0700 if it does not exist. Without one, or where nothing can be kept in
/// it, the result is kept as long as this process: which compiler is used, and with it the bytes of a cubin, does not depend on
/// what can be written.
///
/// # Errors
///
/// Why not, in words.
pub fn load(archive: &Path, cache: Option<&Path>) -> Result<NvPtxCompiler, String> {
    let open = |path: PathBuf| NvPtxCompiler::open(&path).map_err(|error| error.to_string());
    if let Some(cache) = cache {
        match shared_object(archive, cache).and_then(open) {
            Ok(library) => return Ok(library),
            Err(reason) => tracing::debug!(reason, "nvPTXCompiler cannot be kept"),
        }
    }
    // What is mapped stays when the file is gone.
    let folder = tempfile::Builder::new().prefix("gpulower-").tempdir();
    let folder = folder.map_err(io("creating a directory in", &std::env::temp_dir()))?;
    open(shared_object(archive, folder.path())?)
}

/// The path of the shared object made from `archive`, converting it if need be.
///
/// # Errors
///
/// Why not, in words.
pub fn shared_object(archive: &Path, cache: &Path) -> Result<PathBuf, String> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(cache)
        .map_err(io("creating", cache))?;
    check_private(cache)?;
    let key = digest::noted(archive, cache).map_err(io("reading", archive))?;

    let path = cache.join(format!("nvptxcompiler-{key}-r{RECIPE_VERSION}.so"));
    let digest_path = path.with_extension("blake3");
    if digest::is_intact(&path, &digest_path, cache) {
        check_private(&path)?;
        tracing::debug!(path = %path.display(), "nvPTXCompiler from the cache");
        return Ok(path);
    }

    // Everything happens in a directory of its own beside the result, so that the last step is a rename.
    let work = tempfile::Builder::new()
        .prefix(".nvptxcompiler-")
        .tempdir_in(cache)
        .map_err(io("creating a directory in", cache))?;
    let made = work.path().join("library.so");
    convert(archive, work.path(), &made)?;
    // Whatever the umask is, other users may not write to what code is loaded from.
    fs::set_permissions(&made, Permissions::from_mode(0o700)).map_err(io("protecting", &made))?;
    // Only what loads and has the interface is kept. The loader knows the file again after the rename.
    NvPtxCompiler::open(&made).map_err(|error| error.to_string())?;
    let made_digest = work.path().join("digest");
    digest::of_file(&made)
        .and_then(|digest| fs::write(&made_digest, digest))
        .map_err(io("writing", &made_digest))?;
    File::open(&made)
        .and_then(|file| file.sync_all())
        .map_err(io("writing", &made))?;
    // Two processes may do this at once: both write the same bytes.
    fs::rename(&made, &path).map_err(io("renaming to", &path))?;
    fs::rename(&made_digest, &digest_path).map_err(io("renaming to", &digest_path))?;
    check_private(&path)?;
    tracing::debug!(path = %path.display(), "nvPTXCompiler converted");
    Ok(path)
}

/// Refuses what another user could have written.
fn check_private(path: &Path) -> Result<(), String> {
    let metadata = fs::metadata(path).map_err(io("examining", path))?;
    let user = rustix::process::geteuid().as_raw();
    let reason = if metadata.uid() != user {
        format!("it belongs to user {}, not to {user}", metadata.uid())
    } else if metadata.mode() & 0o022 != 0 {
        format!("its mode {:04o} lets other users write to it", metadata.mode() & 0o7777)
    } else {
        return Ok(());
    };
    Err(format!(
        "{} is not safe to load code from: {reason}. Choose a cache directory of your own, or correct its owner and mode (0700)",
        path.display()
    ))
}

/// Links the archive into `output`; the scripts go to `directory`.
fn convert(archive: &Path, directory: &Path, output: &Path) -> Result<(), String> {
    let write = |name: &str, bytes: &[u8]| {
        let path = directory.join(name);
        match fs::write(&path, bytes) {
            Ok(()) => Ok(path),
            Err(error) => Err(io("writing", &path)(error)),
        }
    };
    let linker_script = write("sections.ld", LINKER_SCRIPT.as_bytes())?;
    let version_script = write("exports.map", VERSION_SCRIPT.as_bytes())?;
    let triple = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let at_exit = assemble(&triple, "", "", "atexit.s", AT_EXIT).map_err(|error| error.to_string())?;
    let at_exit = write("atexit.o", &at_exit)?;

    // One thread: see `lld::link`.
    let mut arguments: Vec<OsString> = ["--threads=1", "-shared", "--gc-sections", "--strip-all"]
        .map(OsString::from)
        .to_vec();
    arguments.extend(["-z", "defs", "-z", "relro", "-z", "now", "--build-id=none"].map(OsString::from));
    for symbol in REQUIRED_SYMBOLS.iter().chain(&OPTIONAL_SYMBOLS) {
        arguments.push(format!("--undefined={symbol}").into());
    }
    arguments.push("-T".into());
    arguments.push(linker_script.into());
    arguments.push(joined("--version-script=", &version_script));
    arguments.push("-o".into());
    arguments.push(output.into());
    arguments.push(archive.into());
    // Taken where it is wanted.
    arguments.extend(["--start-lib".into(), at_exit.into(), "--end-lib".into()]);
    // The system libraries bind the versions of their symbols; without them the loader would choose.
    for library in system_libraries()? {
        arguments.push(library.into());
    }
    // CUDA 13.5's wants the C++ library, 13.0's does not. On AArch64 the dynamic loader has the guard of stacks.
    arguments.push("--as-needed".into());
    let loaded = loaded_libraries();
    let others = ["libstdc++.so.6", LOADER].into_iter();
    arguments.extend(
        others
            .filter_map(|name| system_library(name, &loaded))
            .map(OsString::from),
    );
    match lld::link(&arguments) {
        Ok(text) if text.is_empty() => Ok(()),
        Ok(text) => {
            tracing::debug!(text, "lld on nvPTXCompiler");
            Ok(())
        }
        Err(error) => {
            let (archive, fatal) = (archive.display(), if error.is_fatal() { " (fatal error)" } else { "" });
            let text = error.into_text();
            Err(format!(
                "{archive} could not be converted to a shared object: lld failed{fatal}: {}",
                text.trim_end()
            ))
        }
    }
}

fn joined(option: &str, path: &Path) -> OsString {
    let mut text = OsString::from(option);
    text.push(path);
    text
}

/// libc, libm and the compiler's support functions (`__popcountdi2`).
fn system_libraries() -> Result<[PathBuf; 3], String> {
    let loaded = loaded_libraries();
    let find = |name: &'static str| {
        system_library(name, &loaded).ok_or_else(|| {
            format!(
                "{name} was not found, which the conversion of nvPTXCompiler needs; looked among the libraries of this process \
                 and in {}. Use ptxas instead, or install the package that holds it (libgcc-s1 on Debian)",
                LIBRARY_DIRECTORIES.join(", ")
            )
        })
    };
    let support = match find("libgcc_s.so.1") {
        Ok(path) => path,
        Err(error) => static_support_library().ok_or(error)?,
    };
    Ok([find("libc.so.6")?, find("libm.so.6")?, support])
}

/// A library of the system: that of this process, or where it usually is.
fn system_library(name: &str, loaded: &[PathBuf]) -> Option<PathBuf> {
    let of_this_process = loaded.iter().find(|path| path.file_name() == Some(OsStr::new(name)));
    of_this_process.cloned().or_else(|| {
        let mut places = LIBRARY_DIRECTORIES
            .iter()
            .map(|directory| Path::new(directory).join(name));
        places.find(|path| path.is_file())
    })
}

/// The shared libraries of this process, which are the ones the result will run with.
fn loaded_libraries() -> Vec<PathBuf> {
    let Ok(maps) = fs::read_to_string("/proc/self/maps") else {
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = maps
        .lines()
        .filter_map(|line| line.find('/').and_then(|start| line.get(start..)))
        .filter(|path| path.contains(".so"))
        .map(PathBuf::from)
        .collect();
    paths.dedup();
    paths
}

/// `libgcc.a` of any GCC on this machine: `/usr/lib/gcc/TRIPLE/VERSION/libgcc.a`.
fn static_support_library() -> Option<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    for triple in fs::read_dir("/usr/lib/gcc").ok()?.flatten() {
        for version in fs::read_dir(triple.path()).ok()?.flatten() {
            let path = version.path().join("libgcc.a");
            if path.is_file() {
                found.push(path);
            }
        }
    }
    found.sort();
    found.pop()
}
