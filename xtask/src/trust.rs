//! What has to hold of the sources for anybody to trust them: `unsafe` where it belongs, nothing of it for others to call, and
//! no shell.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The files that allow `unsafe` code, which the workspace's lints deny, and why.
const ALLOWED: &[(&str, &str)] = &[
    ("crates/gpulower-c/src/bridge/mod.rs", "the interface for C"),
    ("crates/gpulower-checks/src/gpu_checks.rs", "launches kernels"),
    ("crates/gpulower-checks/src/runtime/faults.rs", "launches a kernel"),
    (
        "crates/gpulower-checks/src/runtime/streams.rs",
        "takes a stream of another library",
    ),
    ("crates/gpulower-checks/src/session/features.rs", "runs a program"),
    (
        "crates/gpulower-cli/src/cli/run.rs",
        "runs the program that the user named",
    ),
    (
        "crates/gpulower-cli/src/cli/tune.rs",
        "launches the kernel that the user named",
    ),
    ("crates/gpulower-cli/src/opt.rs", "is `mlir-opt`'s program"),
    ("crates/gpulower-cli/tests/crashes/main.rs", "makes faults"),
    ("crates/gpulower-runtime/src/bridge/mod.rs", "the drivers"),
    ("examples/launch.rs", "launches a kernel"),
    ("examples/session.rs", "launches kernels"),
    ("src/bridge/mod.rs", "LLVM, MLIR, lld and NVIDIA's libraries"),
    (
        "src/jit/mod.rs",
        "whether a program may be run is for the caller to say",
    ),
    ("tests/jit/programs.rs", "runs programs"),
    ("tests/library/pages.rs", "has what the documentation launches"),
    ("integrations/tensor/src/device.rs", "launches the kernels that it made"),
];

/// What other crates see of the two modules with `unsafe` code. Their lint `unreachable_pub` sees to it that nothing else in
/// them is `pub`.
const SEEN: &[&str] = &[
    "gpulower-runtime: Context",
    "gpulower-runtime: Device",
    "gpulower-runtime: DeviceBuffer",
    "gpulower-runtime: DeviceLimits",
    "gpulower-runtime: DeviceSlice",
    "gpulower-runtime: Driver",
    "gpulower-runtime: DriverError",
    "gpulower-runtime: DriverLoadError",
    "gpulower-runtime: Event",
    "gpulower-runtime: Fault",
    "gpulower-runtime: FunctionAttributes",
    "gpulower-runtime: JitLog",
    "gpulower-runtime: JitOptions",
    "gpulower-runtime: Launch",
    "gpulower-runtime: LaunchShape",
    "gpulower-runtime: PinnedBuffer",
    "gpulower-runtime: Registration",
    "gpulower-runtime: Status",
    "gpulower-runtime: Stream",
    "gpulower-runtime: TensorShape",
    "gpulower-runtime: Transfer",
    "gpulower-runtime: vendor_library",
    "gpulower: LlvmError",
    "gpulower: ReservingAllocator",
    "gpulower: Returned",
    "gpulower: SharedLibraries",
    "gpulower: contain_crashes",
    "gpulower: fail_in_words",
    "gpulower: is_llvm_option",
    "gpulower: opt_main",
    "gpulower: output_was_closed",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The Rust files below a folder, by their names from the root.
fn rust_files(folder: &str) -> Vec<(String, String)> {
    fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if path.is_dir() && !name.starts_with('.') && name != "target" {
                walk(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    walk(&root().join(folder), &mut found);
    found.sort();
    let read = |path: PathBuf| {
        let name = path.strip_prefix(root()).unwrap().display().to_string();
        (name, fs::read_to_string(path).unwrap())
    };
    found.into_iter().map(read).collect()
}

#[test]
fn the_lints_deny_unsafe_code_in_every_crate() {
    let manifest = |name: &str| fs::read_to_string(root().join(name)).unwrap();
    assert!(manifest("Cargo.toml").contains("\nunsafe_code = \"deny\"\n"));
    assert!(manifest("xtask/Cargo.toml").contains("\nunsafe_code = \"forbid\"\n"));
    let mut crates = vec!["Cargo.toml".to_owned(), "integrations/tensor/Cargo.toml".to_owned()];
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        let name = entry.unwrap().file_name().to_string_lossy().into_owned();
        crates.push(format!("crates/{name}/Cargo.toml"));
    }
    for name in crates {
        assert!(manifest(&name).contains("[lints]\nworkspace = true"), "{name}");
    }
}

#[test]
fn unsafe_code_is_allowed_where_it_belongs() {
    let mut files = Vec::new();
    for folder in ["src", "crates", "examples", "benches", "integrations", "tests"] {
        files.extend(rust_files(folder));
    }
    assert!(files.len() > 200, "{}", files.len());
    let allows = |text: &str| {
        let text: String = text.split_whitespace().collect();
        text.contains("allow(unsafe_code") || text.contains("expect(unsafe_code")
    };
    let allowing: BTreeSet<&str> = files
        .iter()
        .filter(|(_, text)| allows(text))
        .map(|(name, _)| name.as_str())
        .collect();
    let expected: BTreeSet<&str> = ALLOWED.iter().map(|(name, _)| *name).collect();
    let new: Vec<_> = allowing.difference(&expected).collect();
    assert!(new.is_empty(), "`unsafe` code is allowed in {new:?}");
    let gone: Vec<_> = expected.difference(&allowing).collect();
    assert!(gone.is_empty(), "exceptions that are none: {gone:?}");
}

/// The names in `pub use` of something in `bridge`.
fn seen(text: &str) -> Vec<String> {
    let uses = text.split("pub use ").skip(1).filter_map(|rest| rest.split_once(';'));
    let uses = uses.map(|(list, _)| list.split_whitespace().collect::<String>());
    let mut names = Vec::new();
    for list in uses {
        // `crate::{bridge::{...}, other::...}` or `crate::bridge::...`.
        for part in list.split("bridge::").skip(1) {
            let mut depth = 0;
            let end = part.find(|next: char| {
                depth += i32::from(next == '{') - i32::from(next == '}');
                depth < 0 || (depth == 0 && matches!(next, ',' | '}'))
            });
            let inside = &part[..end.unwrap_or(part.len())];
            let leaves = inside.split(['{', '}', ',']).filter(|leaf| !leaf.is_empty());
            let leaves = leaves.filter(|leaf| !leaf.ends_with("::"));
            names.extend(leaves.map(|leaf| leaf.rsplit("::").next().unwrap_or(leaf).to_owned()));
        }
    }
    names
}

#[test]
fn other_crates_see_of_the_bridges_what_is_listed() {
    let mut found = BTreeSet::new();
    for (package, folder) in [("gpulower", "src"), ("gpulower-runtime", "crates/gpulower-runtime/src")] {
        let bridge = format!("{folder}/bridge/");
        let inside = fs::read_to_string(root().join(&bridge).join("mod.rs")).unwrap();
        assert!(inside.contains("#![warn(unreachable_pub)]"), "{bridge}");
        let top = fs::read_to_string(root().join(folder).join("lib.rs")).unwrap();
        assert!(top.contains("\nmod bridge;\n"), "{bridge} is private");
        for (name, text) in rust_files(folder) {
            if !name.starts_with(&bridge) {
                found.extend(seen(&text).into_iter().map(|name| format!("{package}: {name}")));
            }
        }
    }
    assert_eq!(found.iter().map(String::as_str).collect::<Vec<_>>(), SEEN);
}

/// LLVM is left by a jump where it ends in a fatal error: not over a function of ours that it calls.
#[test]
fn what_foreign_code_calls_cannot_be_jumped_over() {
    let mut looked_at = 0;
    for (name, text) in rust_files("src/bridge") {
        for function in text.split("extern \"C\" fn ").skip(1) {
            let Some((signature, body)) = function.split_once('{') else {
                continue;
            };
            // A type of functions, not one of them; one that calls nothing; one that hands on.
            if signature.contains(';') || signature.starts_with("no_symbol(") || signature.starts_with("sink(text") {
                continue;
            }
            looked_at += 1;
            let first = body.trim_start();
            // Those of programs are entered from code of theirs, not LLVM's.
            assert!(
                first.starts_with("let _uncontained = Uncontained::new();") || first.starts_with("finish("),
                "{name}: {signature}"
            );
        }
    }
    assert!(looked_at > 15, "{looked_at}");
}

#[test]
fn names_are_found_in_any_form_of_use() {
    assert_eq!(seen("pub use crate::bridge::a::B;"), ["B"]);
    assert_eq!(
        seen("pub use crate::{\n    bridge::{A, b::{C, d}, e::f},\n    other::G,\n};"),
        ["A", "C", "d", "f"]
    );
    assert!(seen("use crate::bridge::A; pub use other::B;").is_empty());
}

/// Whatever is not read by the program is on the command line of a person: a shell is not started.
#[test]
fn no_shell_is_started() {
    for (name, text) in rust_files("src").into_iter().chain(rust_files("crates")) {
        // Tests may: they stand in files of their own, or at the end.
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        if name.contains("test") {
            continue;
        }
        for shell in [
            "Command::new(\"sh\")",
            "Command::new(\"/bin/sh\")",
            "Command::new(\"bash\")",
        ] {
            assert!(!code.contains(shell), "{name}: {shell}");
        }
    }
}
