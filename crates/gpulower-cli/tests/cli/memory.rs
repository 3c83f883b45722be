//! Memory and files that end: a typed error, whatever was being done; or, with a worker, an error that says memory.

use std::{
    env,
    fmt::Write,
    os::unix::process::ExitStatusExt,
    path::PathBuf,
    process::{Command, Output},
    time::{Duration, Instant},
};

use super::support::{Workshop, example};

/// Runs the program under a limit of the shell's.
fn limited(work: &Workshop, limit: &str, arguments: &[&str]) -> Output {
    let program = work.command(&[]);
    // Longer than any of them takes, by far: what hangs is to be told from what fails.
    let mut command = Command::new("timeout");
    command
        .args(["--kill-after=5", "300", "/bin/sh"])
        .args(["-c", &format!("ulimit -c 0; {limit}; exec \"$@\""), "sh"])
        .arg(program.get_program())
        .args(arguments)
        .current_dir(work.path(""));
    for (name, value) in program.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.output().expect("the shell runs")
}

/// What others say before they end the process, and ask nobody: the C library, where it has no memory for a destructor of
/// thread-local storage; NVIDIA's library, with `exit`. docs/reliability.md lists them among what is not contained.
fn is_ended_by_others(output: &Output) -> bool {
    let stderr = String::from_utf8_lossy(&output.stderr);
    let says = |words| stderr.contains(words);
    let is_aborted = output.status.signal() == Some(6) || output.status.code() == Some(128 + 6);
    (is_aborted && says("Fatal glibc error: failed to register TLS destructor: out of memory"))
        || (output.status.code() == Some(1)
            && (says("fatal   : Memory allocation failure") || says("out of dynamic memory in ptx_scan")))
}

/// What is wrong with how a run ended; empty if nothing is.
fn complaint(output: &Output) -> String {
    if is_ended_by_others(output) {
        return String::new();
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    let mut complaint = String::new();
    let is_told = match output.status.code() {
        Some(0) => true,
        Some(1) => stderr.contains("error: ") && !stderr.contains("panicked"),
        _ => false,
    };
    let is_without_words = ["fatal error: \n", "crashed: \n", "error: \n"]
        .iter()
        .any(|text| stderr.contains(text));
    // The words of runtimes that know nothing of memory.
    let is_foreign = ["foreign exceptions", "terminate called"]
        .iter()
        .any(|text| stderr.contains(text));
    if !is_told || is_without_words || is_foreign {
        let _ = write!(complaint, "{}: {stderr}", output.status);
    }
    complaint
}

#[test]
fn too_little_address_space_is_an_error() {
    let work = Workshop::new();
    let mut failed = 0;
    for (index, mebibytes) in (200..=400).step_by(6).enumerate() {
        let (example, target) = [("gelu.mlir", "sm_90"), ("saxpy.mlir", "gfx942")][index % 2];
        let isolation = ["--isolation=in-process", "--isolation=worker"][index / 2 % 2];
        let arguments = [
            "compile",
            &self::example(example),
            "-t",
            target,
            "-e",
            "asm",
            "-o",
            "k",
            isolation,
        ];
        let output = limited(&work, &format!("ulimit -v {}", mebibytes << 10), &arguments);
        assert_eq!(complaint(&output), "", "{mebibytes} MiB, {arguments:?}");
        assert_eq!(output.status.success(), work.path("k").exists());
        let _ = std::fs::remove_file(work.path("k"));
        failed += usize::from(!output.status.success());
    }
    assert!(failed > 0, "200 MiB are not enough");
}

/// SIGXFSZ, which ends a program that does not expect it.
#[test]
fn a_file_that_may_not_grow_is_a_failed_write() {
    let work = Workshop::new();
    let saxpy = example("saxpy.mlir");
    let arguments = ["compile", &saxpy, "-t", "sm_90", "-e", "ptx", "-o", "k"];
    let output = limited(&work, "ulimit -f 0", &arguments);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("File too large"),
        "{output:?}"
    );
    assert_eq!(work.files(""), Vec::<String>::new());
}

/// The allocator of `failing_malloc.c`.
fn failing_malloc(work: &Workshop) -> PathBuf {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/failing_malloc.c");
    let library = work.path("failing_malloc.so");
    let status = Command::new("cc")
        .args(["-shared", "-fPIC", "-O2", "-o"])
        .args([&library, &PathBuf::from(source)])
        .arg("-ldl")
        .status()
        .expect("a C compiler, which building needs, too");
    assert!(status.success());
    library
}

const CASES: &[(&str, &str, &str)] = &[
    ("saxpy.mlir", "sm_90", "ptx"),
    ("saxpy.mlir", "gfx942", "hsaco"),
    ("softmax.mlir", "sm_90", "cubin"),
    ("histogram.mlir", "gfx1100", "llvm"),
    ("matmul_tiled.mlir", "sm_80,gfx942", "asm"),
    ("transpose.mlir", "sm_90", "mlir"),
];

/// The file that the allocator makes when an allocation fails.
const TOLD: &str = "told";

/// One run in which some allocations fail.
fn with_failures(work: &Workshop, library: &std::path::Path, seed: u64) -> Output {
    let (example, target, emit) = CASES[seed as usize % CASES.len()];
    // Once in so many times; or so many in a row, from anywhere among the first 262,144.
    let failures = if (seed / 6).is_multiple_of(2) {
        let rate = [1_000, 5_000, 25_000, 125_000][(seed / 7) as usize % 4];
        format!("GPULOWER_FAIL_SEED={seed} GPULOWER_FAIL_RATE={rate}")
    } else {
        let number = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let scale = 1 << (number % 18);
        let run = [1, 10, 100, 1_000][(seed / 12) as usize % 4];
        format!(
            "GPULOWER_FAIL_AT={} GPULOWER_FAIL_RUN={run}",
            scale + (number >> 8) % scale
        )
    };
    let example = self::example(example);
    let mut arguments = vec!["compile", &example, "-t", target, "-e", emit, "-j", "2"];
    arguments.extend(if target.contains(',') {
        ["-o", "out/"]
    } else {
        ["-o", "k"]
    });
    if seed.is_multiple_of(5) {
        arguments.push("--isolation=worker");
    }
    let limit = format!(
        "ulimit -t 120; export LD_PRELOAD={} GPULOWER_FAIL_TOLD={TOLD} {failures}",
        library.display()
    );
    limited(work, &limit, &arguments)
}

#[test]
fn allocations_that_fail_are_errors() {
    let work = Workshop::new();
    let library = failing_malloc(&work);
    let (mut met, mut bad) = (0, Vec::new());
    for seed in 0..48 {
        let output = with_failures(&work, &library, seed);
        let complaint = complaint(&output);
        if !complaint.is_empty() {
            bad.push(format!("seed {seed}: {complaint}"));
        }
        met += usize::from(std::fs::remove_file(work.path(TOLD)).is_ok());
    }
    assert!(met >= 24, "only {met} of 48 met a failure");
    // Threads make each run another: what is bad once in hundreds of runs is met some day. The soak below finds those.
    assert!(bad.len() <= 2, "{bad:#?}");
}

/// The same for as long as is told: `GPULOWER_SECONDS=3600 GPULOWER_SEED=1000 cargo test -p gpulower-cli --test cli
/// memory::soak -- --ignored --nocapture`.
#[test]
#[ignore = "it takes as long as GPULOWER_SECONDS says"]
fn soak() {
    let number = |name: &str, default| {
        env::var(name)
            .ok()
            .and_then(|text| text.parse().ok())
            .unwrap_or(default)
    };
    let work = Workshop::new();
    let library = failing_malloc(&work);
    let limit = Duration::from_secs(number("GPULOWER_SECONDS", 60));
    let (start, first) = (Instant::now(), number("GPULOWER_SEED", 1000));
    let (mut seed, mut failed, mut bad) = (first, 0, Vec::new());
    while start.elapsed() < limit {
        let output = with_failures(&work, &library, seed);
        let complaint = complaint(&output);
        if !complaint.is_empty() {
            println!("seed {seed}, signal {:?}: {complaint}", output.status.signal());
            bad.push(seed);
        }
        failed += usize::from(!output.status.success());
        seed += 1;
    }
    println!(
        "{} runs, {failed} failed, {} not as they should: {bad:?}",
        seed - first,
        bad.len()
    );
    assert!(bad.is_empty());
}
