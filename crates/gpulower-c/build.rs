//! How the shared library is linked.

use std::{env, path::PathBuf};

fn main() {
    println!("cargo:rerun-if-changed=gpulower.map");
    println!("cargo:rerun-if-env-changed=LLVM_SYS_221_PREFIX");
    let folder = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR"));
    let prefix = env::var_os("LLVM_SYS_221_PREFIX").map_or_else(|| PathBuf::from("/usr/lib/llvm-22"), PathBuf::from);
    let mut arguments = vec![
        "-Wl,-soname,libgpulower.so.1".to_owned(),
        // It has threads and signal handlers: it stays when it is closed.
        "-Wl,-z,nodelete".to_owned(),
        // Nothing of the libraries that are linked statically is for others.
        "-Wl,--exclude-libs,ALL".to_owned(),
        // rustc hands the linker a script without versions. lld is the one that takes a second script beside it.
        format!("-B{}", prefix.join("bin").display()),
        "-fuse-ld=lld".to_owned(),
        format!("-Wl,--version-script={}", folder.join("gpulower.map").display()),
        "-Wl,--gc-sections".to_owned(),
    ];
    if env::var("PROFILE").is_ok_and(|profile| profile == "release") {
        arguments.push("-Wl,--icf=safe".to_owned());
    }
    for argument in arguments {
        println!("cargo:rustc-link-arg-cdylib={argument}");
    }
}
