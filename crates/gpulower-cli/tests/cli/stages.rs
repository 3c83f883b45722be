//! `--dump-dir` and `--override-dir`.

use std::process::Command;

use super::support::{Workshop, example};

/// Writes every constant 42 that the kernel sees.
const KERNEL: &str = "
gpu.module @m {
  gpu.func @k(%p: memref<4xi32>) kernel {
    %i = arith.constant 0 : index
    %c = arith.constant 42 : i32
    memref.store %c, %p[%i] : memref<4xi32>
    gpu.return
  }
}
";

fn dumped() -> Workshop {
    let work = Workshop::new();
    work.write("k.mlir", KERNEL);
    work.run(&[
        "compile",
        "k.mlir",
        "-t",
        "sm_90,gfx942",
        "-o",
        "out/",
        "--dump-dir",
        "dump",
    ])
    .quiet();
    work
}

#[test]
fn every_stage_and_the_result_are_written() {
    let work = dumped();
    let stages = ["0-lowered.mlir", "1-initial.ll", "2-linked.ll", "3-optimized.ll"];
    for (target, ends) in [
        ("gfx942", ["4-isa.s", "5-result.hsaco"]),
        ("sm_90", ["4-isa.ptx", "5-result.cubin"]),
    ] {
        let expected: Vec<String> = stages
            .iter()
            .chain(&ends)
            .map(|stage| format!("m.{target}.{stage}"))
            .collect();
        let found: Vec<String> = work
            .files("dump")
            .into_iter()
            .filter(|name| name.contains(target))
            .collect();
        assert_eq!(found, expected);
        let result = format!("m.{target}.{}", ends[1]);
        let written = result.replace("5-result.", "");
        assert!(work.read(&format!("dump/{result}")) == work.read(&format!("out/{written}")));
    }
}

#[test]
fn dumping_changes_nothing() {
    let work = dumped();
    work.run(&["compile", "k.mlir", "-t", "sm_90,gfx942", "-o", "plain/"])
        .quiet();
    for name in work.files("plain") {
        assert!(
            work.read(&format!("plain/{name}")) == work.read(&format!("out/{name}")),
            "{name}"
        );
    }
}

#[test]
fn the_first_lines_are_commands_that_run() {
    let work = Workshop::new();
    // What interleaving marks in the LLVM IR is for our code generation alone.
    let flags = ["--fp-contract=fast", "-O2", "--debug=line-tables", "--interleave=1"];
    let mut arguments = vec![
        "compile",
        "softmax.mlir",
        "-t",
        "sm_90,gfx1100",
        "--dump-dir",
        "dump",
        "-o",
        "out/",
    ];
    arguments.extend(flags);
    work.write(
        "softmax.mlir",
        std::fs::read(example("softmax.mlir")).expect("the example"),
    );
    work.run(&arguments).quiet();
    let mut count = 0;
    for name in work.files("dump").into_iter().filter(|name| !name.contains("5-result")) {
        let text = work.text(&format!("dump/{name}"));
        let line = text.lines().next().expect("a line");
        let command = line
            .strip_prefix("// ")
            .or_else(|| line.strip_prefix("; "))
            .expect("a comment");
        let output = Command::new("bash")
            .args(["-euo", "pipefail", "-c", command])
            .current_dir(work.path("dump"))
            .output()
            .expect("bash runs");
        assert!(
            output.status.success(),
            "{name}: {command}\n{}\n(the packages llvm-22, mlir-22-tools and lld-22 are needed by this test)",
            String::from_utf8_lossy(&output.stderr)
        );
        count += 1;
    }
    assert_eq!(count, 10);
    // The chain of public tools ends in the same code.
    assert!(work.read("dump/again.cubin").starts_with(b"\x7fELF"));
    let ours = work.text("dump/softmax.sm_90.4-isa.ptx");
    let theirs = work.text("dump/again.ptx");
    let instructions = |text: &str| -> Vec<String> {
        let lines = text
            .lines()
            .map(|line| line.split("//").next().unwrap_or_default().trim().to_owned());
        lines.filter(|line| !line.is_empty()).collect()
    };
    assert_eq!(instructions(&ours), instructions(&theirs));
}

#[test]
fn an_edited_stage_is_taken_back() {
    let work = dumped();
    for (stage, from, to) in [
        ("m.sm_90.0-lowered.mlir", "(42 : i32)", "(43 : i32)"),
        ("m.sm_90.1-initial.ll", "store i32 42", "store i32 43"),
        ("m.sm_90.2-linked.ll", "store i32 42", "store i32 43"),
        ("m.sm_90.3-optimized.ll", "store i32 42", "store i32 43"),
        ("m.sm_90.4-isa.ptx", ", 42;", ", 43;"),
        ("m.gfx942.0-lowered.mlir", "(42 : i32)", "(43 : i32)"),
        ("m.gfx942.3-optimized.ll", "store i32 42", "store i32 43"),
        ("m.gfx942.4-isa.s", ", 42", ", 43"),
    ] {
        let text = work.text(&format!("dump/{stage}"));
        assert!(text.contains(from), "no {from:?} in {stage}:\n{text}");
        let folder = format!("edit-{stage}");
        work.write(&format!("{folder}/{stage}"), text.replace(from, to));
        let target = stage.split('.').nth(1).expect("a target");
        let again = format!("again-{stage}");
        work.run(&[
            "compile",
            "k.mlir",
            "-t",
            target,
            "-o",
            &format!("{folder}-out/"),
            "--override-dir",
            &folder,
            "--dump-dir",
            &again,
        ])
        .quiet();
        // The dump shows what the compilation went on with, down to the code.
        let isa = if target == "sm_90" { "4-isa.ptx" } else { "4-isa.s" };
        let code = work.text(&format!("{again}/m.{target}.{isa}"));
        assert!(code.contains(", 43") && !code.contains(", 42"), "{stage}:\n{code}");
        let extension = if target == "sm_90" { "cubin" } else { "hsaco" };
        let result = format!("m.{target}.{extension}");
        assert!(
            work.read(&format!("{folder}-out/{result}")) != work.read(&format!("out/{result}")),
            "{stage}"
        );
    }
}

#[test]
fn edits_that_do_nothing_are_named() {
    let work = dumped();
    work.write("edit/m.sm_80.4-isa.ptx", "");
    work.write("edit/m.sm_90.3-optimized.ll", work.read("dump/m.sm_90.3-optimized.ll"));
    work.write("edit/m.sm_90.4-isa.ptx", work.read("dump/m.sm_90.4-isa.ptx"));
    work.run(&[
        "compile",
        "k.mlir",
        "-t",
        "sm_90",
        "-o",
        "k.cubin",
        "--override-dir",
        "edit",
    ])
    .failed(0)
    .says(&[
        "warning: edit/m.sm_80.4-isa.ptx replaced nothing: no stage of this compilation has its name",
        "warning: edit/m.sm_90.3-optimized.ll has no effect on the result: m.sm_90.4-isa.ptx replaces a later stage",
    ]);
}

#[test]
fn a_broken_edit_is_refused_with_its_stage() {
    let work = dumped();
    for (stage, target, text) in [
        (
            "m.sm_90.0-lowered.mlir",
            "sm_90",
            "error: lower, module m, target sm_90: a listener refused the lowered stage",
        ),
        (
            "m.sm_90.2-linked.ll",
            "sm_90",
            "error: link, module m, target sm_90: a listener refused the linked stage",
        ),
        (
            "m.sm_90.4-isa.ptx",
            "sm_90",
            "error: ptx-to-cubin, module m, target sm_90: ",
        ),
        (
            "m.gfx942.4-isa.s",
            "gfx942",
            "error: code-gen, module m, target gfx942: ",
        ),
    ] {
        let folder = format!("edit-{stage}");
        work.write(&format!("{folder}/{stage}"), "this is nothing\n");
        work.run(&[
            "compile",
            "k.mlir",
            "-t",
            target,
            "-o",
            "k.bin",
            "--override-dir",
            &folder,
        ])
        .failed(1)
        .says(&[text]);
        assert!(!work.path("k.bin").exists());
    }
    work.run(&[
        "compile",
        "k.mlir",
        "-t",
        "sm_90",
        "-o",
        "k.bin",
        "--override-dir",
        "none",
    ])
    .failed(1)
    .says(&["error: plan: cannot read the directory none of --override-dir"]);
}
