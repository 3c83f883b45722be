//! Programs that are asked for their version.

use super::*;

#[test]
fn the_version_is_read_from_the_line_of_the_release() {
    let text = "ptxas: NVIDIA (R) Ptx optimizing assembler\n\
                Copyright (c) 2005-2025 NVIDIA Corporation\n\
                Built on Wed_Aug_20_01:55:12_PM_PDT_2025\n\
                Cuda compilation tools, release 13.0, V13.0.88\n\
                Build cuda_13.0.r13.0/compiler.36424714_0\n";
    let version = ToolVersion::parse(text).expect("a version");
    assert_eq!(version.release(), (13, 0));
    assert_eq!(version.to_string(), "13.0.88");
}

#[test]
fn anything_else_is_no_version() {
    for text in [
        "",
        "release",
        "release 13.0",
        "release 13, V13.0.88",
        "release 13.x, V13.0.88",
        "release 13.0, Vx",
        "release 99999999999.0, V1",
    ] {
        assert_eq!(ToolVersion::parse(text), None, "{text:?}");
    }
}

#[test]
fn a_program_that_does_not_end_is_stopped() {
    let mut command = Command::new("sleep");
    command.arg("1000");
    let ended = run(command, Duration::from_millis(20)).expect("sleep runs");
    assert_eq!(ended, None);
}

#[test]
fn a_program_that_prints_without_end_is_cut_off() {
    let ended = run(Command::new("yes"), TIME_LIMIT).expect("yes runs");
    let (status, output) = ended.expect("it ends when nobody reads");
    assert!(!status.success());
    assert_eq!(output.len() as u64, OUTPUT_SIZE);
}

#[test]
fn a_program_of_another_kind_is_refused_with_what_it_said() {
    let message = tool_version(Path::new("/bin/sh"))
        .expect_err("no CUDA version")
        .to_string();
    assert!(
        message.starts_with("/bin/sh did not say a version of CUDA when asked with --version ("),
        "{message}"
    );
    let message = tool_version(Path::new("/bin/true"))
        .expect_err("no CUDA version")
        .to_string();
    assert!(message.contains("true"), "{message}");
}

#[test]
fn a_program_that_is_not_there_is_named() {
    let message = tool_version(Path::new("/nowhere/ptxas"))
        .expect_err("no program")
        .to_string();
    assert!(
        message.starts_with("cannot run /nowhere/ptxas to ask for its version: "),
        "{message}"
    );
}
