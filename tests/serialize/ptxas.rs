//! Programs that are waited for, and stopped.

use super::*;
use gpulower_testing::nvidia::{part, store_kernel};

const LONG: Duration = Duration::from_secs(120);

fn options(chip: &str) -> Vec<String> {
    vec![format!("--gpu-name={chip}"), "-v".to_owned()]
}

#[test]
fn same_bytes_from_four_threads_at_once() {
    let program = part("bin/ptxas");
    let ptx = store_kernel("7.8", "sm_90");
    let first = assemble(&program, &ptx, &options("sm_90"), LONG).unwrap();
    assert!(first.log.contains("Used 8 registers"), "{}", first.log);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..5 {
                    let again = assemble(&program, &ptx, &options("sm_90"), LONG).unwrap();
                    assert_eq!(again.cubin, first.cubin);
                }
            });
        }
    });
}

#[test]
fn failures_carry_the_log() {
    let program = part("bin/ptxas");
    let bad = store_kernel("7.8", "sm_90").replace("mov.u32", "mow.u32");
    let error = assemble(&program, &bad, &options("sm_90"), LONG).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("line 9") && text.contains("'mow'"), "{text}");
    let error = assemble(&program, "", &options("sm_90"), LONG).unwrap_err();
    assert!(error.to_string().contains("Missing .version"), "{error}");
}

#[test]
fn the_version_is_read() {
    let version = version(&part("bin/ptxas"), LONG).unwrap();
    assert_eq!(version.split('.').count(), 3, "{version}");
    let error = super::version(Path::new("/bin/true"), LONG).unwrap_err();
    assert!(error.to_string().contains("is it NVIDIA's ptxas?"), "{error}");
}

#[test]
fn a_program_that_hangs_is_killed_and_reaped() {
    let before = children();
    let mut command = Command::new("/bin/sleep");
    command.arg("1000");
    let error = run(
        command,
        Path::new("/bin/sleep"),
        b"",
        &Interrupt::after(Duration::from_millis(50)),
    );
    assert!(matches!(error, Err(VendorError::Interrupted { .. })));
    assert!(
        children().iter().filter(|name| *name == "sleep").count()
            <= before.iter().filter(|name| *name == "sleep").count()
    );
}

#[test]
fn cancelling_kills_and_reaps() {
    let token = crate::CancellationToken::new();
    let interrupt = Interrupt::new(&token, None);
    let mut command = Command::new("/bin/sleep");
    command.arg("1000");
    std::thread::scope(|scope| {
        let runs = scope.spawn(|| run(command, Path::new("/bin/sleep"), b"", &interrupt));
        token.cancel();
        let error = runs.join().unwrap().err().unwrap();
        assert_eq!(
            error.to_string(),
            "/bin/sleep was stopped: cancelled before it was done"
        );
    });
}

/// Names of this process's children, dead and unreaped ones too.
fn children() -> Vec<String> {
    let own = std::process::id().to_string();
    let mut names = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(stat) = std::fs::read_to_string(entry.path().join("stat")) else {
            continue;
        };
        let Some((head, tail)) = stat.rsplit_once(") ") else {
            continue;
        };
        if tail.split(' ').nth(1) == Some(own.as_str()) {
            names.push(head.split_once('(').unwrap().1.to_owned());
        }
    }
    names
}

#[test]
fn what_cannot_be_started_comes_with_advice() {
    let ptx = store_kernel("7.8", "sm_90");
    let start = |program: &Path| {
        assemble(program, &ptx, &options("sm_90"), LONG)
            .unwrap_err()
            .to_string()
    };
    let text = start(Path::new("/nowhere/ptxas"));
    assert!(text.contains("install a CUDA toolkit"), "{text}");
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("ptxas");
    std::fs::write(&program, "not executable").unwrap();
    let text = start(&program);
    assert!(text.contains("make it executable"), "{text}");
    let text = start(Path::new("/bin/true"));
    assert!(text.contains("wrote 0 bytes that are no ELF file"), "{text}");
}
