//! Names and words of others that would control a terminal are shown escaped, wherever they come from.

use std::process::{Command, Stdio};

use super::support::{Run, Workshop};

/// ESC, C1's CSI, BEL, backspace, a mark that turns the direction of text around, and a return to the start of the line.
const EVIL: &str = "e\u{1b}[31m\u{9b}1m\u{7}\u{8}\u{202e}\rx";

/// The same in MLIR and LLVM IR.
const EVIL_IR: &str = "e\\1B[31m\\C2\\9B1m\\07\\08\\E2\\80\\AE\\0Dx";

#[track_caller]
fn harmless(run: &Run) {
    let output = String::from_utf8_lossy(&run.stdout).into_owned();
    for text in [&run.stderr, &output] {
        let found = text
            .chars()
            .find(|&c| (c.is_control() && c != '\n' && c != '\t') || ('\u{202a}'..='\u{202e}').contains(&c));
        assert_eq!(found, None, "{text:?}");
    }
    assert!(
        // clap leaves colours out itself, and tables cut long names.
        [&run.stderr, &output]
            .iter()
            .any(|text| text.contains("\\u{") || text.contains("\\u0") || text.contains("\\u2")),
        "the name is shown nowhere:\n{}{output}",
        run.stderr
    );
}

#[test]
fn what_the_command_line_says() {
    let work = Workshop::new();
    let file = format!("{EVIL}.mlir");
    work.write("k.mlir", "gpu.module @m { gpu.func @k() kernel { gpu.return } }");
    for arguments in [
        &["compile", &file, "-t", "sm_90", "-e", "ptx", "-o", "k"][..],
        &["compile", "k.mlir", "-t", EVIL],
        &["compile", "k.mlir", "-t", "sm_90", "-e", EVIL],
        &[
            "compile",
            "k.mlir",
            "-t",
            "sm_90",
            "--ptxas-options",
            EVIL,
            "-e",
            "cubin",
            "-o",
            "k",
        ],
        &[
            "compile", "k.mlir", "-t", "sm_90", "-e", "ptx", "-o", "k", "--link", EVIL,
        ],
        &["inspect", EVIL],
        &["pack", &file, "-e", "fatbin", "-o", "k"],
        &["link", EVIL, "-t", "sm_90", "-o", "k"],
        &["run", EVIL],
        &["export", EVIL, "-t", "sm_90", "--emit", "self", "-o", "k"],
        &["targets", EVIL],
        &[
            "compile", "k.mlir", "-t", "sm_90", "-o", "k", "--cuda", EVIL, "-e", "cubin",
        ],
        &[EVIL],
    ] {
        let run = work.run(arguments);
        assert_ne!(run.status, 0, "{arguments:?}");
        harmless(&run);
    }
}

#[test]
fn what_an_input_says() {
    let work = Workshop::new();
    let named = format!("gpu.module @\"{EVIL_IR}\" {{ gpu.func @\"{EVIL_IR}\"() kernel {{ gpu.return }} }}");
    for (name, text, target, emit) in [
        (
            "unknown.mlir",
            format!("gpu.module @m {{ \"{EVIL_IR}.x\"() : () -> () }}"),
            "sm_90",
            "ptx",
        ),
        ("raw.mlir", format!("gpu.module @m {{ {EVIL} }}"), "sm_90", "ptx"),
        (
            "attribute.mlir",
            format!(
                "gpu.module @m {{ func.func private @\"{EVIL_IR}\"()\ngpu.func @k() kernel {{ func.call @\"{EVIL_IR}\"() : () -> () gpu.return }} }}"
            ),
            "gfx942",
            "hsaco",
        ),
        ("ptx-name.mlir", named.clone(), "sm_90", "ptx"),
        (
            "undefined.ll",
            format!(
                "declare void @\"{EVIL_IR}\"()\ndefine amdgpu_kernel void @k() {{ call void @\"{EVIL_IR}\"() ret void }}"
            ),
            "gfx942",
            "hsaco",
        ),
        ("parse.ll", format!("define void @k() {{ {EVIL} }}"), "sm_90", "ptx"),
        (
            "vendor.ptx",
            format!(".version 7.8\n.target sm_90\n.address_size 64\n.visible .entry k() {{ {EVIL}; ret; }}"),
            "sm_90",
            "cubin",
        ),
    ] {
        work.write(name, text);
        let run = work
            .run(&["compile", name, "-t", target, "-e", emit, "-o", "k"])
            .failed(1);
        let found = run.stderr.chars().find(|&c| c.is_control() && c != '\n' && c != '\t');
        assert_eq!(found, None, "{name}: {:?}", run.stderr);
    }
    // What AMD's symbols may be called, reports show.
    work.write("amd.mlir", named);
    for format in ["--report=table", "--report=json"] {
        let run = work.run(&[
            "compile", "amd.mlir", "-t", "gfx942", "-e", "hsaco", "-o", "k.hsaco", format,
        ]);
        assert_eq!(run.status, 0, "{}", run.stderr);
        harmless(&run);
    }
    for arguments in [&["inspect", "k.hsaco"][..], &["inspect", "k.hsaco", "--json"]] {
        harmless(&work.run(arguments));
    }
}

/// MLIR's own messages, with names, places and lines of the input.
#[test]
fn what_gpulower_opt_says() {
    let work = Workshop::new();
    let file = format!("{EVIL}.mlir");
    let twice = format!("func.func private @\"{EVIL_IR}\"()\n").repeat(2);
    let warned = format!("func.func @f() attributes {{\"{EVIL_IR}\"}} {{ return }}");
    for (name, text, flags) in [
        ("symbol.mlir", twice.clone(), &[][..]),
        ("operation.mlir", format!("\"{EVIL_IR}.x\"() : () -> ()"), &[]),
        (
            "attribute.mlir",
            format!("func.func @f() attributes {{a = \"{EVIL_IR}\", a = 1}} {{ return }}"),
            &[],
        ),
        (
            "location.mlir",
            format!("\"x.y\"() : () -> () loc(\"{EVIL_IR}\":1:2)"),
            &[],
        ),
        (
            "type.mlir",
            format!("func.func private @f() -> !evil<\"{EVIL_IR}\">"),
            &[],
        ),
        ("line.mlir", format!("func.func @f() {{ oops }} // {EVIL}"), &[]),
        (&*file, "func.func @f() { oops }".to_owned(), &[]),
        (
            "pipeline.mlir",
            String::new(),
            &["--pass-pipeline=builtin.module(e\u{1b}[31mx)"],
        ),
        ("flag.mlir", String::new(), &["--e\u{1b}[31mx"]),
        ("output.mlir", String::new(), &["-o", "nowhere/e\u{1b}[31mx"]),
        (
            "refused.mlir",
            format!("gpu.module @\"{EVIL_IR}\" {{ gpu.func @k() kernel {{ \"x.y\"() : () -> () gpu.return }} }}"),
            &["--allow-unregistered-dialect", "--gpulower-to-binary=targets=sm_90"],
        ),
        (
            "trace.mlir",
            warned,
            &["--mlir-print-ir-after-all", "--canonicalize", "--mlir-print-debuginfo"],
        ),
    ] {
        work.write(name, text);
        let mut command = Command::new(env!("CARGO_BIN_EXE_gpulower-opt"));
        command.arg(name).args(flags).current_dir(work.path(""));
        let run = Run::of(
            command
                .env("GPULOWER_CACHE", "off")
                .stdin(Stdio::null())
                .output()
                .expect("it runs"),
        );
        assert_eq!(run.status != 0, name != "trace.mlir", "{name}: {}", run.stderr);
        let found = run
            .stderr
            .chars()
            .find(|&c| (c.is_control() && c != '\n' && c != '\t') || ('\u{202a}'..='\u{202e}').contains(&c));
        assert_eq!(found, None, "{name}: {:?}", run.stderr);
        assert!(
            ["\\u{1b}", "\\1B"].iter().any(|shown| run.stderr.contains(shown)),
            "{name}: not shown: {}",
            run.stderr
        );
    }
    // LLVM's colours are no names of anybody's.
    work.write("k.mlir", twice);
    let mut command = Command::new(env!("CARGO_BIN_EXE_gpulower-opt"));
    command
        .args(["k.mlir", "--color"])
        .current_dir(work.path(""))
        .env("TERM", "xterm");
    let run = Run::of(command.stdin(Stdio::null()).output().expect("it runs")).failed(1);
    assert!(
        run.stderr.contains("\u{1b}[") && run.stderr.contains("e\\u{1b}[31m"),
        "{:?}",
        run.stderr
    );
}

/// A symbol with a line break in it does not look like another message.
#[test]
fn lines_of_others_are_indented() {
    let work = Workshop::new();
    let name = "x\\0Aerror: all is lost";
    work.write(
        "k.ll",
        format!("declare void @\"{name}\"()\ndefine amdgpu_kernel void @k() {{ call void @\"{name}\"() ret void }}"),
    );
    let run = work
        .run(&["compile", "k.ll", "-t", "gfx942", "-e", "hsaco", "-o", "k"])
        .failed(1);
    assert!(
        !run.stderr.lines().any(|line| line.starts_with("error: all is lost")),
        "{}",
        run.stderr
    );
}
