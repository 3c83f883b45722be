//! Compiles the C++ half of `src/bridge/` against LLVM and MLIR 22 and links lld; tells the crate the hash of what it is made
//! of.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

const BRIDGE: &str = "src/bridge/cpp";

fn main() {
    for variable in ["LLVM_SYS_221_PREFIX", "MLIR_SYS_220_PREFIX"] {
        println!("cargo:rerun-if-env-changed={variable}");
    }
    // Results are kept in caches by what made them (`src/compiler/cached.rs`), and a worker has to be of the same build
    // (`src/compiler/worker/protocol.rs`): all that can change a result counts, and nothing else.
    let mut made_of = vec![PathBuf::from("build.rs")];
    made_of.extend(files_below(Path::new("src")));
    // Beside a package there is none: the version of the dependency, which is exact, says it then.
    let image = Path::new("crates/gpulower-image/src");
    if image.is_dir() {
        made_of.extend(files_below(image));
    }
    made_of.retain(|path| !is_of_tests(path));
    for path in &made_of {
        println!("cargo:rerun-if-changed={}", path.display());
    }
    // A new file of another kind comes with a change of one that is listed.
    println!("cargo:rerun-if-changed={BRIDGE}");
    println!("cargo:rustc-env=GPULOWER_SOURCE_HASH={}", hash_of(&made_of));

    // Documenting takes neither C++ nor lld.
    if env::var_os("DOCS_RS").is_some() {
        return;
    }
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

/// Compiles the C++ files that have changed, or whose headers have: one takes up to a minute, and this program runs for
/// every change of a source file.
fn compile_bridge(prefix: &Path) {
    let folder = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    // Cargo gives each choice of features of our dependencies a folder of its own, `PROFILE/build/NAME-HASH/out`. The objects
    // are the same in all of them.
    let shared = folder.ancestors().nth(3).unwrap_or(&folder).join("gpulower-bridge");
    fs::create_dir_all(&shared).expect("the target directory can be written to");
    println!("cargo:rustc-link-search=native={}", folder.display());
    println!("cargo:rustc-link-lib=static=gpulower_bridge");
    println!("cargo:rustc-link-lib=stdc++");

    let include = llvm_config(prefix, "--includedir");
    let assertions = llvm_config(prefix, "--assertion-mode");
    let mut way = vec![
        include.clone(),
        llvm_config(prefix, "--version"),
        assertions.clone(),
        hash_of(&["build.rs".into()]),
    ];
    for variable in ["CXX", "CXXFLAGS", "TARGET"] {
        println!("cargo:rerun-if-env-changed={variable}");
        way.push(env::var(variable).unwrap_or_default());
    }
    let way = way.join("\n");
    let units: Vec<(PathBuf, PathBuf)> = files_below(Path::new(BRIDGE))
        .into_iter()
        .filter(|path| path.extension().is_some_and(|extension| extension == "cpp"))
        .map(|path| {
            let key = blake3::hash(format!("{way}\n{}", hash_of(&with_headers(&path))).as_bytes()).to_hex();
            let stem = path.file_stem().expect("it has an extension").to_string_lossy();
            let object = shared.join(format!("{stem}-{key}.o"));
            (path, object)
        })
        .collect();
    let stale: Vec<&(PathBuf, PathBuf)> = units.iter().filter(|(_, object)| !object.exists()).collect();
    let objects = || units.iter().map(|(_, object)| object);
    let names: Vec<String> = objects().map(|object| object.display().to_string()).collect();
    let stamp = folder.join("gpulower_bridge.objects");
    let is_made = fs::read_to_string(&stamp).is_ok_and(|made_of| made_of == names.join("\n"));
    if stale.is_empty() && is_made && folder.join("libgpulower_bridge.a").exists() {
        return;
    }
    let mut build = cc::Build::new();
    // LLVM's headers have code in them, whose assertions must be on where LLVM's are, and off where they are off: some hold
    // in a build with assertions alone.
    if assertions == "OFF" {
        build.define("NDEBUG", None);
    }
    build.cargo_metadata(false).cpp(true);
    let made = build
        .clone()
        .std("c++17")
        .files(stale.iter().map(|(path, _)| path))
        .include(include)
        // `contain` catches exceptions: those of allocations that fail.
        .flag("-fno-rtti")
        .define("_GNU_SOURCE", None)
        .warnings(false)
        .opt_level(2)
        .debug(false)
        .compile_intermediates();
    for (made, (_, object)) in made.iter().zip(stale) {
        fs::rename(made, object).expect("the target directory can be written to");
    }
    for path in files_below(&shared) {
        if path.extension().is_some_and(|extension| extension == "o") && objects().all(|object| *object != path) {
            fs::remove_file(path).expect("the target directory can be written to");
        }
    }
    build.objects(objects()).compile("gpulower_bridge");
    fs::write(stamp, names.join("\n")).expect("OUT_DIR can be written to");
}

/// A C++ file and the headers of ours that it includes, and these in turn.
fn with_headers(path: &Path) -> Vec<PathBuf> {
    let mut files = vec![path.to_owned()];
    let mut next = 0;
    while let Some(file) = files.get(next) {
        let text = fs::read_to_string(file).expect("the crate's files can be read");
        for name in text.lines().filter_map(|line| line.strip_prefix("#include \"")) {
            let header = Path::new(BRIDGE).join(name.trim_end().trim_end_matches('"'));
            if header.exists() && !files.contains(&header) {
                files.push(header);
            }
        }
        next += 1;
    }
    files
}

/// Whether a file is for tests alone, by its name (CONTRIBUTING.md).
fn is_of_tests(path: &Path) -> bool {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    stem == "tests" || stem.ends_with("_tests")
}

/// A source without its module of tests, which ends with a brace at the beginning of a line.
fn without_tests(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut lines = text.split_inclusive('\n').peekable();
    while let Some(line) = lines.next() {
        let begins = |next: &&str| next.starts_with("mod ") && next.ends_with("{\n");
        if line == "#[cfg(test)]\n" && lines.peek().is_some_and(begins) {
            lines.by_ref().find(|line| line.trim_end() == "}");
        } else {
            kept.push_str(line);
        }
    }
    kept
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
        let bytes = fs::read(file).expect("the crate's files can be read");
        let hash = match std::str::from_utf8(&bytes) {
            Ok(text) if file.extension().is_some_and(|extension| extension == "rs") => {
                blake3::hash(without_tests(text).as_bytes())
            }
            _ => blake3::hash(&bytes),
        };
        hasher.update(hash.as_bytes());
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
