//! Turns NVIDIA's static nvPTXCompiler archive into a shared object, once, and loads it.
//!
//! NVIDIA ships the library only as `libnvptxcompiler_static.a` (89 MB), and it may not be passed on, so
//! the conversion happens on the user's machine, with the linker inside this process: 0.2 s. The result is
//! kept in a cache directory under a name made of the archive's hash and the version of the recipe.

use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File};
use std::io::{self, BufRead};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::bridge::lld::{self, LldError};
use crate::bridge::nvptxcompiler::{
    NvPtxCompiler, NvPtxCompilerError, OPTIONAL_SYMBOLS, REQUIRED_SYMBOLS,
};

/// To be raised with every change to the scripts or to the link line below.
const RECIPE_VERSION: u32 = 1;

/// GNU ld folds `.ctors` into `.init_array` by itself; lld does not, and a library linked without this
/// crashes in its first compilation (observed with 13.0.88).
const LINKER_SCRIPT: &str = "SECTIONS { .init_array : { \
    KEEP(*(SORT_BY_INIT_PRIORITY(.init_array.*) SORT_BY_INIT_PRIORITY(.ctors.*))) \
    KEEP(*(.init_array .ctors)) } } INSERT BEFORE .data;\n";

/// Exports the interface alone: the archive defines 55,000 further names.
const VERSION_SCRIPT: &str = "{ global: nvPTXCompiler*; local: *; };\n";

/// Where the C library and the compiler's support library are looked for, when this process has not
/// loaded them itself: the default directories of the dynamic loader.
const LIBRARY_DIRECTORIES: [&str; 8] = [
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/lib/aarch64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/lib64",
    "/usr/lib64",
    "/lib",
    "/usr/lib",
];

/// Why the archive could not be made into a library and loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConversionError {
    /// A file or directory could not be read or written.
    #[error("{action} {}: {source}", .path.display())]
    Io {
        /// What was being done.
        action: &'static str,
        /// On which file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A library that the shared object has to be linked with is not on this machine.
    #[error(
        "{name} was not found, which the conversion of nvPTXCompiler needs; looked among the libraries of this \
         process and in {looked}. Use ptxas instead, or install the package that holds it (libgcc-s1 on Debian)"
    )]
    MissingLibrary {
        /// File name of the library.
        name: &'static str,
        /// The places, separated by commas.
        looked: String,
    },
    /// The cache directory, or a file in it, could be changed by other users. Code is loaded from it.
    #[error(
        "{} is not safe to load code from: {reason}. Choose a cache directory of your own, or correct its owner \
         and mode (0700)", .path.display()
    )]
    Unsafe {
        /// The directory or file.
        path: PathBuf,
        /// Its owner or mode.
        reason: String,
    },
    /// lld could not link the archive: damaged, or not nvPTXCompiler.
    #[error("{} could not be converted to a shared object: {source}", .archive.display())]
    Link {
        /// The static archive.
        archive: PathBuf,
        /// lld's text.
        source: LldError,
    },
    /// The library could not be loaded.
    #[error(transparent)]
    Load(#[from] NvPtxCompilerError),
}

/// Loads nvPTXCompiler from its static archive, converting it first if `cache` does not hold the result of
/// an earlier conversion. `cache` is created with mode 0700 if it does not exist.
///
/// # Errors
///
/// [`ConversionError`].
pub fn load(archive: &Path, cache: &Path) -> Result<NvPtxCompiler, ConversionError> {
    let shared_object = shared_object(archive, cache)?;
    Ok(NvPtxCompiler::open(&shared_object)?)
}

/// The path of the shared object made from `archive`, converting it if need be.
///
/// # Errors
///
/// [`ConversionError`].
pub fn shared_object(archive: &Path, cache: &Path) -> Result<PathBuf, ConversionError> {
    let io = |action, path: &Path| {
        let path = path.to_owned();
        move |source| ConversionError::Io {
            action,
            path,
            source,
        }
    };
    let key = digest(archive).map_err(io("reading", archive))?;
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(cache)
        .map_err(io("creating", cache))?;
    check_private(cache)?;

    let path = cache.join(format!("nvptxcompiler-{key}-r{RECIPE_VERSION}.so"));
    let digest_path = path.with_extension("blake3");
    if is_intact(&path, &digest_path) {
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
    // Only what loads and has the interface is kept. The loader knows the file again after the rename.
    NvPtxCompiler::open(&made)?;
    let made_digest = work.path().join("digest");
    digest(&made)
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

/// Whether the file has the content that was written. A cache that lost bytes is a miss, not an error: the
/// dynamic loader would end the process on a truncated file.
fn is_intact(path: &Path, digest_path: &Path) -> bool {
    match (digest(path), fs::read_to_string(digest_path)) {
        (Ok(actual), Ok(expected)) => actual == expected,
        _ => false,
    }
}

/// BLAKE3 of a file's content, in hexadecimal.
fn digest(path: &Path) -> io::Result<String> {
    let mut hasher = blake3::Hasher::new();
    let file = File::open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("not a file"));
    }
    let mut reader = io::BufReader::with_capacity(1 << 20, file);
    loop {
        let bytes = reader.fill_buf()?;
        if bytes.is_empty() {
            return Ok(hasher.finalize().to_hex().to_string());
        }
        let length = bytes.len();
        hasher.update(bytes);
        reader.consume(length);
    }
}

/// Refuses what another user could have written.
fn check_private(path: &Path) -> Result<(), ConversionError> {
    let metadata = fs::metadata(path).map_err(|source| ConversionError::Io {
        action: "examining",
        path: path.to_owned(),
        source,
    })?;
    let user = rustix::process::geteuid().as_raw();
    let reason = if metadata.uid() != user {
        format!("it belongs to user {}, not to {user}", metadata.uid())
    } else if metadata.mode() & 0o022 != 0 {
        format!(
            "its mode {:04o} lets other users write to it",
            metadata.mode() & 0o7777
        )
    } else {
        return Ok(());
    };
    Err(ConversionError::Unsafe {
        path: path.to_owned(),
        reason,
    })
}

/// Links the archive into `output`; the scripts go to `directory`.
fn convert(archive: &Path, directory: &Path, output: &Path) -> Result<(), ConversionError> {
    let write = |name: &str, text: &str| {
        let path = directory.join(name);
        match fs::write(&path, text) {
            Ok(()) => Ok(path),
            Err(source) => Err(ConversionError::Io {
                action: "writing",
                path,
                source,
            }),
        }
    };
    let linker_script = write("sections.ld", LINKER_SCRIPT)?;
    let version_script = write("exports.map", VERSION_SCRIPT)?;

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
    // The system libraries bind the versions of their symbols; without them the loader would choose.
    for library in system_libraries()? {
        arguments.push(library.into());
    }
    match lld::link(&arguments) {
        Ok(text) if text.is_empty() => Ok(()),
        Ok(text) => {
            tracing::debug!(text, "lld on nvPTXCompiler");
            Ok(())
        }
        Err(source) => Err(ConversionError::Link {
            archive: archive.to_owned(),
            source,
        }),
    }
}

fn joined(option: &str, path: &Path) -> OsString {
    let mut text = OsString::from(option);
    text.push(path);
    text
}

/// libc, libm and the compiler's support functions (`__popcountdi2`).
fn system_libraries() -> Result<[PathBuf; 3], ConversionError> {
    let loaded = loaded_libraries();
    let find = |name: &'static str| {
        loaded
            .iter()
            .find(|path| path.file_name() == Some(OsStr::new(name)))
            .cloned()
            .or_else(|| {
                LIBRARY_DIRECTORIES
                    .iter()
                    .map(|directory| Path::new(directory).join(name))
                    .find(|path| path.is_file())
            })
            .ok_or_else(|| ConversionError::MissingLibrary {
                name,
                looked: LIBRARY_DIRECTORIES.join(", "),
            })
    };
    let support = match find("libgcc_s.so.1") {
        Ok(path) => path,
        Err(error) => static_support_library().ok_or(error)?,
    };
    Ok([find("libc.so.6")?, find("libm.so.6")?, support])
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serialize::nvidia_testing::{part, store_kernel};
    use std::os::unix::fs::PermissionsExt;
    use std::time::Instant;

    const ARCHIVE: &str = "lib/libnvptxcompiler_static.a";

    fn options(chip: &str) -> Vec<String> {
        vec![format!("--gpu-name={chip}"), "-v".to_owned()]
    }

    #[test]
    fn one_conversion_serves_many_threads() {
        let cache = tempfile::tempdir().unwrap();
        let cache = cache.path().join("made/on/first/use");
        let compiler = load(&part(ARCHIVE), &cache).unwrap();
        assert_eq!(fs::metadata(&cache).unwrap().mode() & 0o777, 0o700);
        let entries = || {
            let mut names: Vec<_> = fs::read_dir(&cache)
                .unwrap()
                .map(|entry| entry.unwrap().file_name())
                .collect();
            names.sort();
            names
        };
        let first = entries();
        assert_eq!(first.len(), 2, "the library and its digest, nothing left behind: {first:?}");
        let again = shared_object(&part(ARCHIVE), &cache).unwrap();
        assert_eq!(entries(), first);
        assert_eq!(again.extension(), Some(OsStr::new("so")));

        let (major, minor) = compiler.version().unwrap();
        assert!(major >= 12, "{major}.{minor}");
        assert!(compiler.supported_ptx_versions().is_none_or(|list| list.contains(&(8, 0))));
        let ptx = store_kernel("7.8", "sm_90");
        let one = compiler.compile(&ptx, &options("sm_90"), None).unwrap();
        assert!(one.log.contains("Used 8 registers"), "{}", one.log);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..5 {
                        let again = compiler.compile(&ptx, &options("sm_90"), None).unwrap();
                        assert_eq!(again.cubin, one.cubin);
                    }
                });
            }
        });
    }

    #[test]
    fn errors_carry_log_and_code() {
        let cache = tempfile::tempdir().unwrap();
        let compiler = load(&part(ARCHIVE), cache.path()).unwrap();
        let failed = |ptx: &str, chip: &str| match compiler.compile(ptx, &options(chip), None) {
            Err(NvPtxCompilerError::Failed { code, log, .. }) => (code, log),
            other => panic!("{other:?}"),
        };
        let bad = store_kernel("7.8", "sm_90").replace("mov.u32", "mow.u32");
        let (code, log) = failed(&bad, "sm_90");
        assert_eq!(code, 3);
        assert!(log.contains("line 9") && log.contains("mow"), "{log}");
        assert_eq!(failed(&store_kernel("9.9", "sm_90"), "sm_90").0, 7);
        assert_eq!(failed("", "sm_90").0, 2);
        let error = compiler.compile("a\0b", &[], None).unwrap_err();
        assert_eq!(error.to_string(), "the PTX contains a NUL byte at offset 1");
        // A deadline in the past cancels.
        let error = compiler
            .compile(&store_kernel("7.8", "sm_90"), &options("sm_90"), Some(Instant::now()))
            .unwrap_err();
        assert!(error.to_string().contains("(CANCELLED)"), "{error}");
    }

    #[test]
    fn a_damaged_cache_entry_is_made_anew() {
        let cache = tempfile::tempdir().unwrap();
        let path = shared_object(&part(ARCHIVE), cache.path()).unwrap();
        let good = fs::read(&path).unwrap();
        // A new file, as the old one is loaded in this process.
        let damaged = cache.path().join("damaged");
        fs::write(&damaged, &good[..good.len() / 3]).unwrap();
        fs::rename(&damaged, &path).unwrap();
        assert_eq!(shared_object(&part(ARCHIVE), cache.path()).unwrap(), path);
        assert!(fs::read(&path).unwrap() == good, "same input, same bytes");
    }

    #[test]
    fn a_cache_open_to_others_is_refused() {
        let cache = tempfile::tempdir().unwrap();
        fs::set_permissions(cache.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let error = load(&part(ARCHIVE), cache.path()).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("mode 0777 lets other users write"), "{text}");
        assert!(text.contains("0700"), "{text}");
    }

    #[test]
    fn what_is_no_archive_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let archive = directory.path().join("libnvptxcompiler_static.a");
        fs::write(&archive, "!<arch>\n").unwrap();
        let error = load(&archive, &directory.path().join("cache")).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("could not be converted") && text.contains("lld failed"), "{text}");
        assert_eq!(fs::read_dir(directory.path().join("cache")).unwrap().count(), 0);
        let error = load(Path::new("/nowhere/x.a"), directory.path()).unwrap_err();
        assert!(error.to_string().starts_with("reading /nowhere/x.a: "), "{error}");
    }
}
