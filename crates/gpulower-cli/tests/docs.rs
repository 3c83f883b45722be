//! The pages of the documentation, run as `gpulower_testing::pages` says; and whether each block of code of each page is run by a
//! test. Where there is an NVIDIA GPU, and cupy for Python, `GPULOWER_DOCS_GPU` is set.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use std::{
    collections::BTreeSet,
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use gpulower_testing::pages::{self, Session};

/// Pages that are run here, besides the README, the tutorial and those of `docs/howto`. Two tests share them, so that two cores do.
const PAGES: [&[&str]; 2] = [
    &[
        "cache",
        "commands",
        "errors",
        "export",
        "export-check",
        "export-openmp",
        "finishing",
        "fleet",
        "kernel-abi",
    ],
    &[
        "inputs",
        "inspect",
        "linking",
        "options",
        "passes",
        "reliability",
        "report",
        "run",
        "runtime",
        "sessions",
        "targets",
    ],
];

/// Pages, or folders of pages, whose blocks are run elsewhere, and the file that has their names.
const ELSEWHERE: &[(&str, &str)] = &[
    ("docs/c.md", "xtask/src/c_library.rs"),
    ("docs/plugin.md", "xtask/src/plugin.rs"),
    ("docs/python.md", "crates/gpulower-python/tests/test_docs.py"),
    ("docs/farms.md", "crates/gpulower-python/tests/test_docs.py"),
    // What was measured, where and how. That the commands are there is a test of xtask's.
    ("docs/lab/", "xtask/src/docs/commands.rs"),
    ("docs/performance.md", "xtask/src/docs/commands.rs"),
    ("docs/code-quality.md", "xtask/src/docs/commands.rs"),
];

const COMPILED: &str = "needs a GPU to run; compiled in tests/library/pages.rs";
const BAZEL: &str = "needs Bazel: integrations/bazel/check.py runs it";
const MEASURED: &str = "was measured on a GPU";

/// Blocks that are not run: the page, their first line, and the reason.
const NOT_RUN: &[(&str, &str, &str)] = &[
    ("README.md", "$ cargo xtask demo", "builds all, and runs this test"),
    (
        "README.md",
        "use gpulower::{Compiler, Emit, Target};",
        "compiled in tests/library/pages.rs",
    ),
    (
        "README.md",
        "artifact = gpulower.compile(",
        "needs a GPU; docs/python.md has the same, which is run",
    ),
    (
        "README.md",
        "gpulower_request_add_input(",
        "docs/c.md has the whole program, which is run",
    ),
    (
        "docs/cache.md",
        "use gpulower::{Compiler, cache::Cache};",
        "compiled in tests/library/pages.rs",
    ),
    ("docs/commands.md", "gpulower tune reduction.mlir", MEASURED),
    (
        "docs/finishing.md",
        "clang-19 --version",
        "is for the cluster that finishes a program; tests/offload does the same",
    ),
    ("docs/finishing.md", "mkdir -p gpulower-path", "is for CUDA 11.8"),
    (
        "docs/finishing.md",
        "find_package(CUDAToolkit REQUIRED)",
        "needs CUDA's headers and libraries in CMake's form",
    ),
    (
        "docs/fleet.md",
        "$ export GPULOWER_CACHE_REMOTE=",
        "needs a server of that name; crates/gpulower-remote has real ones",
    ),
    ("docs/howto/bazel.md", "local_repository(", BAZEL),
    ("docs/howto/bazel.md", "load(\"@gpulower_rules", BAZEL),
    ("docs/howto/bazel.md", "$ bazel build //:kernels", BAZEL),
    (
        "docs/howto/bazel.md",
        "$ bazel build //:kernels --remote_executor",
        "needs a farm; integrations/bazel/check.py has one",
    ),
    ("docs/howto/ci.md", "$ python3 -m venv tools", "needs the network"),
    (
        "docs/howto/cmake.md",
        "gpulower_add_kernels(NAME",
        "is no command, but what one takes",
    ),
    (
        "docs/howto/llvm-ir.md",
        "import triton",
        "needs Triton: integrations/triton/test_triton.py runs it",
    ),
    (
        "docs/howto/llvm-ir.md",
        "#![feature(no_core",
        "is for one release of rustc: it has no stable way to this target",
    ),
    (
        "docs/howto/llvm-ir.md",
        "$ RUSTC_BOOTSTRAP=1 rustc",
        "is for one release of rustc: it has no stable way to this target",
    ),
    ("docs/howto/old-clang.md", "$ ssh cluster", "needs a cluster"),
    (
        "docs/howto/old-clang.md",
        "$ PATH=\"/usr/local/cuda/bin",
        "needs a cluster, and its GPU",
    ),
    (
        "docs/howto/without-a-gpu.md",
        "$ cargo xtask amd",
        "runs in a checkout; `cargo xtask test amd` has many such",
    ),
    (
        "docs/inputs.md",
        "k.mlir:2:3: error: input",
        "tests/lit has this refusal",
    ),
    ("docs/kernel-abi.md", "                    pointer", "is a drawing"),
    (
        "docs/options.md",
        "speed=best, kernel scale",
        "is a part of a report that docs/lab has",
    ),
    (
        "docs/passes.md",
        "mkdir -p /opt/gpulower-as-llvm/bin",
        "needs FlyDSL; integrations/flydsl does the same",
    ),
    ("docs/reliability.md", "let options = Options {", COMPILED),
    ("docs/run.md", "let mut program = ", COMPILED),
    ("docs/run.md", "python3 scripts/gpu/run.py", "needs a GPU"),
    ("docs/runtime.md", "gpulower-runtime = ", "is for a Cargo.toml"),
    ("docs/runtime.md", "let module = ", COMPILED),
    ("docs/runtime.md", "nothing in k.cubin loads", "needs a GPU"),
    ("docs/runtime.md", "let mut arguments = ", COMPILED),
    ("docs/runtime.md", "match stream.synchronize() {", COMPILED),
    (
        "docs/runtime.md",
        "cargo xtask gpu make DIRECTORY runtime",
        "needs a GPU",
    ),
    ("docs/runtime.md", "GPULOWER_HIP_INCLUDE", "needs HIP's headers"),
    ("docs/sessions.md", "let session = ", COMPILED),
    ("docs/sessions.md", "let context = ", COMPILED),
    (
        "docs/sessions.md",
        "cargo xtask gpu make DIRECTORY session",
        "needs a GPU",
    ),
    ("docs/targets.md", "\"decisions\": [", "is a part of a report"),
];

#[test]
fn readme() {
    run_pages(&[root().join("README.md")]);
}

#[test]
fn tutorial() {
    run_pages(&[root().join("docs/tutorial.md")]);
}

#[test]
fn how_to_pages() {
    run_pages(&markdown("docs/howto"));
}

#[test]
fn other_pages() {
    run_pages(&named(PAGES[0]));
}

#[test]
fn more_pages() {
    run_pages(&named(PAGES[1]));
}

/// Each block of each page is run, or there is a reason.
#[test]
fn every_block_is_run_or_has_a_reason() {
    let mut run_here: Vec<PathBuf> = ["README.md", "docs/tutorial.md"].map(|page| root().join(page)).into();
    run_here.extend(markdown("docs/howto"));
    run_here.extend(PAGES.iter().flat_map(|names| named(names)));
    for (page, file) in ELSEWHERE {
        let name = page.rsplit('/').find(|part| !part.is_empty()).expect("a name");
        let text = fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        assert!(text.contains(name), "{file} does not run {page}");
    }
    let all = [
        vec![root().join("README.md")],
        markdown("docs"),
        markdown("docs/howto"),
        markdown("docs/lab"),
    ]
    .concat();
    let mut wrong = Vec::new();
    let mut reasons: BTreeSet<(&str, &str)> = NOT_RUN.iter().map(|(page, line, _)| (*page, *line)).collect();
    for path in all {
        let page = path
            .strip_prefix(root())
            .expect("a page of this checkout")
            .display()
            .to_string();
        if ELSEWHERE.iter().any(|(elsewhere, _)| page.starts_with(elsewhere)) {
            continue;
        }
        let text = fs::read_to_string(&path).expect("a page");
        let lines: Vec<&str> = text.lines().collect();
        for block in pages::blocks(&lines) {
            let place = format!("{page}:{}", block.line + 1);
            if !run_here.contains(&path) {
                wrong.push(format!("{place}: no test runs this page"));
            } else if block.has("no_run") && block.file().is_none() {
                let first = lines[block.inside.start];
                // The longest that fits: one block may begin as another does, and go on.
                let reason = reasons
                    .iter()
                    .filter(|(of, line)| *of == page && first.starts_with(line));
                match reason.max_by_key(|(_, line)| line.len()).copied() {
                    Some(reason) => drop(reasons.remove(&reason)),
                    None => wrong.push(format!(
                        "{place}: no test runs this block, and there is no reason for that"
                    )),
                }
            }
        }
    }
    wrong.extend(
        reasons
            .iter()
            .map(|(page, line)| format!("{page} has no block `{line}` any more that is not run")),
    );
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The pages in a folder.
fn markdown(folder: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join(folder)).unwrap_or_else(|error| panic!("{folder}: {error}"));
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let mut pages: Vec<PathBuf> = paths
        .filter(|path| path.extension().is_some_and(|ext| ext == "md"))
        .collect();
    pages.sort();
    assert!(!pages.is_empty(), "{folder} has no pages");
    pages
}

fn named(names: &[&str]) -> Vec<PathBuf> {
    names
        .iter()
        .map(|name| root().join(format!("docs/{name}.md")))
        .collect()
}

/// Runs all of the pages, and fails with what is wrong in any.
fn run_pages(pages: &[PathBuf]) {
    let wrong: Vec<String> = pages.iter().flat_map(|page| run_page(page)).collect();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n\n"));
}

fn run_page(page: &Path) -> Vec<String> {
    let folder = tempfile::tempdir().expect("a folder");
    let text = fs::read_to_string(page).unwrap_or_else(|error| panic!("{}: {error}", page.display()));
    // A page that speaks of `examples/` finds that folder.
    if text.contains(" examples/") {
        let examples = fs::canonicalize(root().join("examples")).expect("examples");
        std::os::unix::fs::symlink(examples, folder.path().join("examples")).expect("a link");
    }
    let shell = |script: &str| Ok(shell(folder.path(), script));
    let has_gpu = env::var_os("GPULOWER_DOCS_GPU").is_some();
    let session = Session {
        folder: folder.path(),
        shell: &shell,
        has_gpu,
    };
    pages::run_page(page, &session).wrong
}

/// A script of bash, with the programs of this build in its PATH.
fn shell(folder: &Path, script: &str) -> Command {
    let program = Path::new(env!("CARGO_BIN_EXE_gpulower"));
    let mut path = vec![program.parent().expect("a parent").to_path_buf()];
    path.extend(env::split_paths(&env::var_os("PATH").unwrap_or_default()));
    // A page may wait for what does not come.
    let mut command = Command::new("timeout");
    command
        .args(["600", "bash", "-o", "pipefail", "-c", script])
        .current_dir(folder)
        .env("PATH", env::join_paths(path).expect("paths"))
        .env("CUDA_HOME", cuda())
        // find_package(gpulower), though nothing is installed.
        .env(
            "gpulower_DIR",
            concat!(env!("CARGO_MANIFEST_DIR"), "/../gpulower-c/package"),
        )
        .env("HOME", folder)
        .env("XDG_CACHE_HOME", folder.join(".cache"))
        .env_remove("GPULOWER_LOG")
        .env_remove("GPULOWER_CACHE");
    command
}

/// The CUDA toolkit of the tests.
fn cuda() -> PathBuf {
    let path = env::var_os("GPULOWER_CUDA").map_or_else(|| root().join(".toolkit/cuda"), PathBuf::from);
    fs::canonicalize(&path).unwrap_or_else(|error| {
        panic!(
            "{}: {error}: run `cargo xtask setup`, or set GPULOWER_CUDA",
            path.display()
        )
    })
}
