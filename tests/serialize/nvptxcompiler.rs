//! The conversion of nvPTXCompiler, with the real archive.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::nvptxcompiler::{load, shared_object};
use crate::bridge::nvptxcompiler::REQUIRED_SYMBOLS;
use crate::bridge::vendor_error::VendorError;
use gpulower_testing::nvidia::{part, store_kernel};

const ARCHIVE: &str = "lib/libnvptxcompiler_static.a";

fn options(chip: &str) -> Vec<String> {
    vec![format!("--gpu-name={chip}"), "-v".to_owned()]
}

/// As the archive of CUDA 13.5 does.
#[test]
fn an_archive_that_calls_atexit_is_converted() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    let functions = REQUIRED_SYMBOLS.map(|name| format!("int {name}(void) {{ return atexit(done); }}\n"));
    // Data and a constructor are what the linker script puts in their order.
    let source = "int atexit(void (*)(void)); static int calls = 1; static void done(void) { calls++; }
        __attribute__((constructor)) static void begin(void) { calls++; }\n";
    fs::write(file("some.c"), format!("{source}{}", functions.concat())).unwrap();
    // This program may run under an emulator: clang may be of another processor.
    let target = format!("--target={}-linux-gnu", std::env::consts::ARCH);
    let run = |program: &str, arguments: &[&Path]| {
        let status = Command::new(program).args(arguments).status();
        assert!(
            status.is_ok_and(|status| status.success()),
            "{program}, of LLVM 22's packages"
        );
    };
    let object = file("some.o");
    run(
        "clang-22",
        &[
            Path::new(&target),
            Path::new("-fPIC"),
            Path::new("-c"),
            &file("some.c"),
            &joined("-o", &object),
        ],
    );
    let archive = file("libsome.a");
    run("llvm-ar-22", &[Path::new("rcs"), &archive, &object, &object]);
    shared_object(&archive, &file("cache")).unwrap();
}

fn joined(option: &str, path: &Path) -> PathBuf {
    format!("{option}{}", path.display()).into()
}

#[test]
fn one_conversion_serves_many_threads() {
    let cache = tempfile::tempdir().unwrap();
    let cache = cache.path().join("made/on/first/use");
    let compiler = load(&part(ARCHIVE), Some(&cache)).unwrap();
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
    assert!(
        first.iter().all(|name| !name.to_string_lossy().starts_with('.')),
        "nothing is left behind: {first:?}"
    );
    let again = shared_object(&part(ARCHIVE), &cache).unwrap();
    assert_eq!(entries(), first);
    assert_eq!(again.extension(), Some(OsStr::new("so")));
    assert_eq!(fs::metadata(&again).unwrap().mode() & 0o777, 0o700);

    let (major, minor) = compiler.version().unwrap();
    assert!(major >= 12, "{major}.{minor}");
    assert!(
        compiler
            .supported_ptx_versions()
            .is_none_or(|list| list.contains(&(8, 0)))
    );
    let ptx = store_kernel("7.8", "sm_90");
    let one = compiler.compile(&ptx, &options("sm_90")).unwrap();
    assert!(one.log.contains("Used 8 registers"), "{}", one.log);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..5 {
                    let again = compiler.compile(&ptx, &options("sm_90")).unwrap();
                    assert_eq!(again.cubin, one.cubin);
                }
            });
        }
    });
}

#[test]
fn errors_carry_log_and_code() {
    let cache = tempfile::tempdir().unwrap();
    let compiler = load(&part(ARCHIVE), Some(cache.path())).unwrap();
    let failed = |ptx: &str, chip: &str| match compiler.compile(ptx, &options(chip)) {
        Err(VendorError::Failed { code, log, .. }) => (code, log),
        other => panic!("{other:?}"),
    };
    let bad = store_kernel("7.8", "sm_90").replace("mov.u32", "mow.u32");
    let (code, log) = failed(&bad, "sm_90");
    assert_eq!(code, 3);
    assert!(log.contains("line 9") && log.contains("mow"), "{log}");
    assert_eq!(failed(&store_kernel("9.9", "sm_90"), "sm_90").0, 7);
    assert_eq!(failed("", "sm_90").0, 2);
    let error = compiler.compile("a\0b", &[]).unwrap_err();
    assert_eq!(error.to_string(), "the PTX contains a NUL byte at offset 1");
}

#[test]
fn a_crash_of_the_compiler_is_an_error_and_the_next_call_works() {
    let cache = tempfile::tempdir().unwrap();
    let compiler = load(&part(ARCHIVE), Some(cache.path())).unwrap();
    let compile = || compiler.compile(&store_kernel("7.8", "sm_90"), &options("sm_90"));
    let before = compile().unwrap();
    for _ in 0..3 {
        let text = compiler.crash().unwrap_err().to_string();
        let expected = "nvPTXCompilerCompile crashed: invalid access to memory at 0x10 (SIGSEGV); ";
        assert!(text.starts_with(expected), "{text}");
        assert_eq!(compile().unwrap().cubin, before.cubin);
    }
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
fn a_cache_open_to_others_is_not_used() {
    let cache = tempfile::tempdir().unwrap();
    fs::set_permissions(cache.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let error = shared_object(&part(ARCHIVE), cache.path()).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("mode 0777 lets other users write"), "{text}");
    assert!(text.contains("0700"), "{text}");
    // It is made for this process alone.
    load(&part(ARCHIVE), Some(cache.path())).unwrap();
    assert_eq!(fs::read_dir(cache.path()).unwrap().count(), 0);
}

#[test]
fn what_is_no_archive_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let archive = directory.path().join("libnvptxcompiler_static.a");
    fs::write(&archive, "!<arch>\n").unwrap();
    let error = load(&archive, Some(&directory.path().join("cache"))).unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("could not be converted") && text.contains("lld failed"),
        "{text}"
    );
    assert_eq!(fs::read_dir(directory.path().join("cache")).unwrap().count(), 0);
    let error = load(Path::new("/nowhere/x.a"), Some(directory.path())).unwrap_err();
    assert!(error.to_string().starts_with("reading /nowhere/x.a: "), "{error}");
}
