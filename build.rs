//! Compiles the C++ half of `src/bridge/` against LLVM and MLIR 22 and links lld.

#[cfg(feature = "compile")]
use std::{env, path::PathBuf, process::Command};

/// Without the compiler there is nothing foreign to build.
#[cfg(not(feature = "compile"))]
fn main() {}

#[cfg(feature = "compile")]
fn main() {
    for variable in ["LLVM_SYS_221_PREFIX", "MLIR_SYS_220_PREFIX"] {
        println!("cargo:rerun-if-env-changed={variable}");
    }
    println!("cargo:rerun-if-changed=src/bridge/cpp");

    let prefix = llvm_prefix();
    let mut sources: Vec<PathBuf> = std::fs::read_dir("src/bridge/cpp")
        .expect("src/bridge/cpp is part of the crate")
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "cpp"))
        .collect();
    sources.sort();

    cc::Build::new()
        .cpp(true)
        .std("c++17")
        .files(sources)
        .include(llvm_config(&prefix, "--includedir"))
        .flag("-fno-exceptions")
        .flag("-fno-rtti")
        .define("_GNU_SOURCE", None)
        .warnings(false)
        .opt_level(2)
        .debug(false)
        .compile("gpulower_bridge");

    println!("cargo:rustc-link-search=native={}", llvm_config(&prefix, "--libdir"));
    // lld's code generator for link-time optimisation refers to LLVMDTLTO, which llvm-config does not list for it.
    for library in ["lldELF", "lldCommon", "LLVMDTLTO"] {
        println!("cargo:rustc-link-lib=static={library}");
    }
    // liblldELF uses both directly.
    for library in ["z", "zstd"] {
        println!("cargo:rustc-link-lib={library}");
    }
}

/// The LLVM installation that melior and inkwell are told to use: one LLVM for everything, or option registries collide.
#[cfg(feature = "compile")]
fn llvm_prefix() -> PathBuf {
    let mlir = env::var_os("MLIR_SYS_220_PREFIX").map(PathBuf::from);
    let llvm = env::var_os("LLVM_SYS_221_PREFIX").map(PathBuf::from);
    if let (Some(mlir), Some(llvm)) = (&mlir, &llvm) {
        assert_eq!(
            mlir, llvm,
            "MLIR_SYS_220_PREFIX and LLVM_SYS_221_PREFIX name different LLVM installations; set both to the same one"
        );
    }
    llvm.or(mlir).unwrap_or_else(|| {
        panic!(
            "set MLIR_SYS_220_PREFIX, LLVM_SYS_221_PREFIX and TABLEGEN_220_PREFIX to an LLVM 22 installation \
             (on Debian: /usr/lib/llvm-22 from the packages that `cargo xtask setup` installs)"
        )
    })
}

#[cfg(feature = "compile")]
fn llvm_config(prefix: &std::path::Path, question: &str) -> String {
    let program = prefix.join("bin/llvm-config");
    let output = Command::new(&program)
        .arg(question)
        .output()
        .unwrap_or_else(|error| panic!("cannot run {}: {error}", program.display()));
    assert!(
        output.status.success(),
        "{} {question} failed: {}",
        program.display(),
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}
