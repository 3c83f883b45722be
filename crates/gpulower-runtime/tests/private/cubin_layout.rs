//! Cubins of ptxas, as they are and with wrong bytes in their tables.

use super::*;
use gpulower_testing::nvidia;

/// What ptxas makes of the kernels of the GPU check, for a chip.
fn cubin(options: &[&str]) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("plain.cubin");
    let source = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../gpulower-checks/src/runtime/plain.ptx");
    let status = std::process::Command::new(nvidia::part("bin/ptxas"))
        .args(options)
        .arg(source)
        .arg("-o")
        .arg(&output)
        .output()
        .unwrap()
        .status;
    assert!(status.success(), "{options:?}");
    std::fs::read(output).unwrap()
}

#[test]
fn what_ptxas_makes_is_sound() {
    for arch in ["sm_75", "sm_80", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_120"] {
        for more in [&[][..], &["-lineinfo"], &["-c"], &["-g", "-O0"]] {
            let options = [&["-arch", arch], more].concat();
            check(&cubin(&options)).unwrap_or_else(|problem| panic!("{options:?}: {problem}"));
        }
    }
}

#[test]
fn wrong_tables_are_found() {
    let whole = cubin(&["-arch", "sm_90"]);
    let file = File(&whole);
    let start = file.number::<8>(40).unwrap() as usize;
    let mut missed = Vec::new();
    for index in (0..64).chain(start..whole.len()) {
        let mut wrong = whole.clone();
        wrong[index] ^= 0xff;
        if check(&wrong).is_ok() {
            missed.push(index);
        }
    }
    // Identification, machine, and flags are the reader's to judge; and a few numbers are others that might be.
    let in_tables = missed.iter().filter(|&&index| index >= 64).count();
    assert!(
        in_tables * 50 < whole.len() - start,
        "{in_tables} of {}: {missed:?}",
        whole.len() - start
    );
}

#[test]
fn a_problem_is_named() {
    let mut wrong = cubin(&["-arch", "sm_90"]);
    let sections = File(&wrong).number::<8>(40).unwrap() as usize;
    // The size of the third section.
    wrong[sections + 3 * 64 + 32 + 7] = 0x7f;
    let problem = check(&wrong).unwrap_err();
    assert!(
        problem.starts_with("section 3, \".") && problem.contains("behind the end of the file"),
        "{problem}"
    );
    assert!(check(&[]).unwrap_err().contains("the file ends before 0x9"));
}
