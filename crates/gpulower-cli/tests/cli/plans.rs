//! `--print-phases`, `--print-bindings` and `--dry-run`.

use super::support::{Workshop, example};

#[test]
fn the_phases_are_a_tree() {
    let work = Workshop::new();
    work.write("k.mlir", std::fs::read(example("saxpy.mlir")).expect("the example"));
    let text = work
        .run(&[
            "compile",
            "k.mlir",
            "--target",
            "sm_80,sm_90,gfx942",
            "--emit",
            "fatbin",
            "-o",
            "out/",
            "--print-phases",
        ])
        .quiet()
        .output();
    let expected = "\
                  +- 0: input, \"k.mlir\", MLIR
               +- 1: lower, {0}, MLIR, (saxpy, sm_80)
            +- 2: translate, {1}, LLVM IR, (saxpy, sm_80)
         +- 3: link, {2}, LLVM IR, (saxpy, sm_80)
";
    let squeezed = |text: &str| -> Vec<String> { text.lines().map(|line| line.trim_start().to_owned()).collect() };
    assert_eq!(squeezed(&text)[..4], squeezed(expected)[..], "{text}");
    for line in [
        "ptx-to-cubin, {5}, cubin, (saxpy, sm_80)",
        "container, {6, 5, 12}, fat binary, (saxpy, sm_80, compute_80, sm_90)",
        "output, {13}, \"out/saxpy.fatbin\"",
        "link-object, {19}, hsaco, (saxpy, gfx942)",
        "output, {20}, \"out/saxpy.gfx942.hsaco\"",
    ] {
        assert!(text.contains(line), "no {line:?} in\n{text}");
    }
    assert_eq!(work.files(""), ["k.mlir"], "nothing was made");
}

#[test]
fn the_bindings_name_tools_and_files() {
    let work = Workshop::new();
    work.write("lib.ll", "define float @f(float %x) { ret float %x }");
    let text = work
        .run(&[
            "compile",
            &example("saxpy.mlir"),
            "--target",
            "sm_90",
            "--ptx-compiler=ptxas",
            "--link",
            "lib.ll",
            "-o",
            "k.cubin",
            "--print-bindings",
        ])
        .quiet()
        .output();
    for part in [
        "\"sm_90\" - \"MLIR 22.",
        "bin/ptxas)\", ptx-to-cubin",
        "\"lib.ll\"",
        "output: \"k.cubin\"",
    ] {
        assert!(text.contains(part), "no {part:?} in\n{text}");
    }
    assert_eq!(work.files(""), ["lib.ll"]);
}

#[test]
fn a_dry_run_refuses_what_the_run_would_refuse() {
    let work = Workshop::new();
    let saxpy = example("saxpy.mlir");
    work.run(&["compile", &saxpy, "--target", "sm_90", "--emit", "hsaco", "--dry-run"])
        .failed(1)
        .says(&["hsaco does not exist for sm_90"]);
    work.run(&["compile", &saxpy, "--target", "sm_90", "--wave-size=64", "--dry-run"])
        .failed(1)
        .says(&["wave-size"]);
    let text = work
        .run(&[
            "compile",
            &saxpy,
            "--target",
            "sm_90,gfx942",
            "--emit",
            "offload",
            "-o",
            "k.offload",
            "--dry-run",
        ])
        .quiet()
        .output();
    assert!(
        text.contains("offload binary") && text.contains("\"k.offload\""),
        "{text}"
    );
    assert!(work.files("").is_empty());
}

/// The stages that were timed are those that were planned, in their order.
#[test]
fn what_was_planned_is_what_runs() {
    let work = Workshop::new();
    work.write(
        "k.ll",
        "define ptx_kernel void @k(ptr %p) { store i32 1, ptr %p ret void }",
    );
    work.write(
        "k.ptx",
        ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p) { ret; }\n",
    );
    let saxpy = example("saxpy.mlir");
    for (input, target, emit) in [
        (saxpy.as_str(), "sm_90", "mlir"),
        (&saxpy, "sm_90", "llvm"),
        (&saxpy, "sm_90", "ptx"),
        (&saxpy, "sm_90", "cubin"),
        (&saxpy, "sm_90", "object"),
        (&saxpy, "sm_80,sm_90", "fatbin"),
        (&saxpy, "sm_90,gfx942", "offload"),
        (&saxpy, "gfx942", "asm"),
        (&saxpy, "gfx942", "object"),
        (&saxpy, "gfx942", "hsaco"),
        (&saxpy, "gfx90a,gfx942", "bundle"),
        ("k.ll", "sm_80", "cubin"),
        ("k.ll", "sm_80", "ptx"),
        ("k.ptx", "sm_80", "cubin"),
        ("k.ptx", "sm_80", "fatbin"),
    ] {
        let arguments = ["compile", input, "--target", target, "--emit", emit, "-o", "out/"];
        let with = |flag: &'static str| -> Vec<&str> { arguments.iter().copied().chain([flag]).collect() };
        let planned = work.run(&with("--print-bindings")).quiet().output();
        // # 3: "sm_90" - "LLVM 22.1.8", link, inputs: ...
        let mut planned: Vec<String> = planned
            .lines()
            .filter_map(|line| line.split("\", ").nth(1)?.split(',').next().map(str::to_owned))
            .filter(|part| !part.starts_with("inputs"))
            .collect();
        // The whole input is read before there is an artifact to report on.
        planned.remove(0);
        let mut expected: Vec<String> = Vec::new();
        for stage in planned {
            if !expected.contains(&stage) {
                expected.push(stage);
            }
        }
        let report = work.run(&with("--report=json")).quiet().json();
        let mut stages: Vec<String> = Vec::new();
        for artifact in report["artifacts"].as_array().expect("artifacts") {
            for stage in artifact["stages"].as_array().expect("stages") {
                let stage = stage["stage"].as_str().expect("a name").to_owned();
                if !stages.contains(&stage) {
                    stages.push(stage);
                }
            }
        }
        assert_eq!(stages, expected, "{input} for {target} as {emit}");
    }
}
