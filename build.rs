//! Compiles the C++ half of `src/bridge/` against LLVM and MLIR 22 and links lld; tells the crate the hash of its sources.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

fn main() {
    for variable in ["LLVM_SYS_221_PREFIX", "MLIR_SYS_220_PREFIX"] {
        println!("cargo:rerun-if-env-changed={variable}");
    }
    println!("cargo:rerun-if-changed=src");
    // Results are kept in caches by what made them: see `src/compiler/cached.rs`.
    println!(
        "cargo:rustc-env=GPULOWER_SOURCE_HASH={}",
        hash_of(&files_below(Path::new("src")))
    );

    let prefix = llvm_prefix();
    compile_bridge(&prefix);
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

/// Compiles the C++ files, unless that was done from the same files in the same way: they take minutes, and this program
/// runs for every change of a source file.
fn compile_bridge(prefix: &Path) {
    let folder = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    println!("cargo:rustc-link-search=native={}", folder.display());
    println!("cargo:rustc-link-lib=static=gpulower_bridge");
    println!("cargo:rustc-link-lib=stdc++");

    let files = files_below(Path::new("src/bridge/cpp"));
    let assertions = llvm_config(prefix, "--assertion-mode");
    let mut made_of = vec![
        hash_of(&files),
        llvm_config(prefix, "--includedir"),
        llvm_config(prefix, "--version"),
        assertions.clone(),
    ];
    for variable in ["CXX", "CXXFLAGS", "TARGET"] {
        println!("cargo:rerun-if-env-changed={variable}");
        made_of.push(env::var(variable).unwrap_or_default());
    }
    let made_of = made_of.join("\n");
    let stamp = folder.join("gpulower_bridge.stamp");
    if folder.join("libgpulower_bridge.a").exists() && fs::read_to_string(&stamp).is_ok_and(|text| text == made_of) {
        return;
    }
    let mut build = cc::Build::new();
    // LLVM's headers have code in them, whose assertions must be on where LLVM's are, and off where they are off: some hold
    // in a build with assertions alone.
    if assertions == "OFF" {
        build.define("NDEBUG", None);
    }
    build
        .cargo_metadata(false)
        .cpp(true)
        .std("c++17")
        .files(
            files
                .iter()
                .filter(|path| path.extension().is_some_and(|extension| extension == "cpp")),
        )
        .include(llvm_config(prefix, "--includedir"))
        // `contain` catches exceptions: those of allocations that fail.
        .flag("-fno-rtti")
        .define("_GNU_SOURCE", None)
        .warnings(false)
        .opt_level(2)
        .debug(false)
        .compile("gpulower_bridge");
    fs::write(&stamp, made_of).expect("OUT_DIR can be written to");
}

/// Every file below a folder of the crate, in order.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).expect("the crate's folders can be read") {
        let path = entry.expect("the crate's folders can be read").path();
        if path.is_dir() {
            files.extend(files_below(&path));
        } else {
            files.push(path);
        }
    }
    files.sort();
    files
}

fn hash_of(files: &[PathBuf]) -> String {
    let mut hasher = blake3::Hasher::new();
    for file in files {
        hasher.update(file.as_os_str().as_encoded_bytes());
        hasher.update(blake3::hash(&fs::read(file).expect("the crate's files can be read")).as_bytes());
    }
    hasher.finalize().to_hex().to_string()
}

/// The LLVM installation that melior and inkwell are told to use: one LLVM for everything, or option registries collide.
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
