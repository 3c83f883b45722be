//! lld in this process, beside a spawned one.

use super::*;
use std::path::Path;
use std::process::{Command, Stdio};

/// An AMDGPU object made by LLVM's own `llc`, which the build prefix provides.
fn object(directory: &Path) -> std::path::PathBuf {
    let source = directory.join("k.ll");
    std::fs::write(
        &source,
        "target triple = \"amdgcn-amd-amdhsa\"\n\
         define amdgpu_kernel void @k(ptr addrspace(1) %p) {\n  store i32 1, ptr addrspace(1) %p\n  ret void\n}\n",
    )
    .unwrap();
    let object = directory.join("k.o");
    let status = Command::new("/usr/lib/llvm-22/bin/llc")
        .args(["-mcpu=gfx942", "-filetype=obj", "-o"])
        .arg(&object)
        .arg(&source)
        .stdin(Stdio::null())
        .status()
        .expect("llc of LLVM 22 (package llvm-22) is needed by this test");
    assert!(status.success());
    object
}

#[test]
fn link_equals_ld_lld_and_survives_fatal_errors() {
    let directory = tempfile::tempdir().unwrap();
    let object = object(directory.path());
    let damaged = directory.path().join("damaged.o");
    let bytes = std::fs::read(&object).unwrap();
    std::fs::write(&damaged, &bytes[..bytes.len() / 2]).unwrap();
    let spawned = directory.path().join("spawned");
    let status = Command::new("/usr/lib/llvm-22/bin/ld.lld")
        .args(["-shared", "-o"])
        .args([&spawned, &object])
        .status()
        .expect("ld.lld of LLVM 22 (package lld-22) is needed by this test");
    assert!(status.success());
    let expected = std::fs::read(&spawned).unwrap();

    for round in 0..3 {
        let out = directory.path().join(format!("out{round}"));
        let good = link(&[
            OsStr::new("--threads=1"),
            OsStr::new("-shared"),
            OsStr::new("-o"),
            out.as_os_str(),
            object.as_os_str(),
        ]);
        assert_eq!(good, Ok(String::new()));
        assert_eq!(std::fs::read(&out).unwrap(), expected);

        let fatal = link(&[
            OsStr::new("--threads=1"),
            OsStr::new("-shared"),
            OsStr::new("-o"),
            out.as_os_str(),
            damaged.as_os_str(),
        ])
        .unwrap_err();
        assert!(fatal.is_fatal());
    }
}

#[test]
fn ordinary_errors_carry_the_text() {
    let error = link(&["--threads=1", "-shared", "/nowhere/at/all.o"]).unwrap_err();
    assert!(!error.is_fatal());
    assert!(error.to_string().contains("/nowhere/at/all.o"), "{error}");
    let error = link(&["a\0b"]).unwrap_err();
    assert!(error.to_string().contains("NUL"), "{error}");
}

/// lld leaves a half-made object in thread-local storage when it stops at a fatal error.
#[test]
fn a_thread_may_end_after_a_fatal_error() {
    let directory = tempfile::tempdir().expect("a directory");
    let whole = std::fs::read(object(directory.path())).expect("an object");
    let damaged = directory.path().join("damaged.o");
    std::fs::write(&damaged, &whole[..whole.len() / 2]).expect("written");
    for _ in 0..20 {
        let damaged = damaged.clone();
        let linked = std::thread::spawn(move || {
            link(&[
                "-shared".as_ref(),
                "--threads=1".as_ref(),
                damaged.as_os_str(),
                "-o".as_ref(),
                "/dev/null".as_ref(),
            ])
        });
        linked.join().expect("no panic").expect_err("damaged");
    }
}

#[test]
fn four_threads_link_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let object = object(directory.path());
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (directory, object) = (directory.path(), &object);
            scope.spawn(move || {
                for round in 0..5 {
                    let out = directory.join(format!("{thread}-{round}"));
                    link(&[
                        OsStr::new("--threads=1"),
                        OsStr::new("-shared"),
                        OsStr::new("-o"),
                        out.as_os_str(),
                        object.as_os_str(),
                    ])
                    .unwrap();
                }
            });
        }
    });
    let first = std::fs::read(directory.path().join("0-0")).unwrap();
    let last = std::fs::read(directory.path().join("3-4")).unwrap();
    assert_eq!(first, last);
}
