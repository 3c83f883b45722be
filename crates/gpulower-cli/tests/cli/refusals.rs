//! Bad input: an error with stage, place and advice, the right exit status, and no output file.

use super::support::{Run, Workshop, example};

/// Compiles `input` with further arguments; nothing may be left behind.
#[track_caller]
fn refused(work: &Workshop, input: &str, arguments: &[&str]) -> Run {
    let before = work.files("");
    let mut all = vec!["compile", input, "-o", "result.bin"];
    all.extend(arguments);
    let run = work.run(&all).failed(1);
    assert!(run.stdout.is_empty(), "{}", run.output());
    let mut all = vec!["compile", input, "-o", "fresh/"];
    all.extend(arguments);
    work.run(&all).failed(1);
    assert_eq!(work.files(""), before, "nothing is left behind");
    run
}

const SM_90: &[&str] = &["--target", "sm_90"];

/// A kernel around one operation.
fn kernel(operation: &str) -> String {
    format!("gpu.module @m {{\n  gpu.func @k(%p: memref<4xi32>) kernel {{\n    {operation}\n    gpu.return\n  }}\n}}\n")
}

#[test]
fn malformed_mlir() {
    let work = Workshop::new();
    work.write("bad.mlir", "gpu.module @m {\n  gpu.func @k( kernel {\n");
    refused(&work, "bad.mlir", SM_90).says(&["bad.mlir:2:15: error: input: expected"]);
}

#[test]
fn malformed_mlir_from_a_pipe() {
    let work = Workshop::new();
    work.run_with_input(&["compile", "-", "-t", "sm_90", "-o", "k"], b"gpu.module @m {")
        .failed(1)
        .says(&["<stdin>:1:", ": error: input: "]);
    assert!(work.files("").is_empty());
}

#[test]
fn truncated_bitcode() {
    let work = Workshop::new();
    work.run(&[
        "compile",
        &example("saxpy.mlir"),
        "-t",
        "sm_90",
        "-e",
        "bitcode",
        "-o",
        "whole.bc",
    ])
    .quiet();
    let whole = work.read("whole.bc");
    for length in [4, 100, 600, whole.len() / 2, whole.len() - 4] {
        work.write("cut.bc", &whole[..length]);
        refused(&work, "cut.bc", SM_90).says(&[
            "cut.bc: error: input, module cut, target sm_90: ",
            "cut off",
            "textual IR",
        ]);
    }
    work.write("cut.bc", &whole[..3]);
    refused(&work, "cut.bc", SM_90).says(&["cut.bc: error: input: the input is neither text nor MLIR bytecode"]);
}

#[test]
fn malformed_llvm_ir() {
    let work = Workshop::new();
    work.write("k.ll", "define void @k() {\n  what is this\n}\n");
    refused(&work, "k.ll", SM_90).says(&[
        "k.ll: error: input, module k, target sm_90: ",
        ":2:3: error: expected instruction",
    ]);
}

#[test]
fn malformed_ptx() {
    let work = Workshop::new();
    work.write(
        "k.ptx",
        ".version 7.8\n.target sm_90\n.address_size 64\n.visible .entry k() { what; }\n",
    );
    refused(&work, "k.ptx", SM_90).says(&["error: ptx-to-cubin, module k, target sm_90: ", "line 4"]);
}

#[test]
fn a_toolkit_that_does_not_exist() {
    let work = Workshop::new();
    let saxpy = example("saxpy.mlir");
    refused(&work, &saxpy, &["-t", "sm_90", "--cuda", "/nonexistent"]).says(&[
        "error: plan: --cuda /nonexistent: No such file or directory",
        "name the root of a toolkit",
    ]);
    refused(&work, &saxpy, &["-t", "gfx942", "--rocm", "/dev/null"])
        .says(&["error: plan: --rocm /dev/null: not a directory"]);
}

#[test]
fn a_wrong_toolkit() {
    let work = Workshop::new();
    // A directory that is no toolkit at all.
    let no_toolkit = example("");
    let ptx = ["-t", "sm_90", "-e", "ptx", "--cuda", &no_toolkit];
    refused(&work, &example("softmax.mlir"), &ptx).says(&[
        "error: link, module softmax, target sm_90: __nv_expf",
        "needs a library that was not found",
        "nvvm/libdevice/libdevice.10.bc (given): no such",
        "nvidia-nvvm",
    ]);
    refused(
        &work,
        &example("transpose.mlir"),
        &["-t", "sm_90", "--cuda", &no_toolkit],
    )
    .says(&[
        "error: ptx-to-cubin, module transpose, target sm_90: no PTX compiler could be used for sm_90",
        "ptxas: not available",
        "emit PTX",
    ]);
    refused(&work, &example("gelu.mlir"), &["-t", "gfx942", "--rocm", &no_toolkit]).says(&[
        "error: link, module gelu, target gfx942: __ocml_erf_f32",
        "needs a library that was not found",
        "rocm-device-libs",
    ]);
}

#[test]
fn ptx_needs_no_toolkit() {
    let work = Workshop::new();
    let kernel = example("transpose.mlir");
    let arguments = ["compile", &kernel, "-t", "sm_90", "-e", "ptx", "-o", "k.ptx"];
    work.run(&[&arguments[..], &["--cuda", &example("")]].concat()).quiet();
    assert!(work.text("k.ptx").contains(".visible .entry transpose"));
}

#[test]
fn an_empty_file_a_directory_and_no_file() {
    let work = Workshop::new();
    for name in ["empty.mlir", "empty.bc", "empty.ptx"] {
        work.write(name, "\n");
        refused(&work, name, SM_90).says(&[&format!("{name}: error: input: the input is empty")]);
    }
    work.write("directory/file", "");
    refused(&work, "directory", SM_90)
        .says(&["error: input: cannot read directory: it is a directory; name a file in it"]);
    refused(&work, "none.mlir", SM_90).says(&[
        "error: input: cannot read none.mlir: No such file or directory",
        "E0101: more with gpulower --explain E0101",
    ]);
}

#[test]
fn nothing_to_compile() {
    let work = Workshop::new();
    work.write("host.mlir", "func.func @main() { return }");
    refused(&work, "host.mlir", SM_90).says(&[
        "error: plan: the input holds no gpu.module",
        "put kernels into a gpu.module",
    ]);
}

#[test]
fn a_kernel_of_the_other_vendor() {
    let work = Workshop::new();
    work.write("amd.mlir", kernel("%x = rocdl.workitem.id.x : i32"));
    refused(&work, "amd.mlir", SM_90).says(&[
        "amd.mlir:3:10: error: lower, module m, target sm_90: rocdl.workitem.id.x cannot be compiled for sm_90",
        "compile it for a chip of that vendor",
    ]);
    work.write("nvidia.mlir", kernel("%x = nvvm.read.ptx.sreg.tid.x : i32"));
    refused(&work, "nvidia.mlir", &["--target", "gfx942"]).says(&[
        "nvidia.mlir:3:10: error: lower, module m, target gfx942: nvvm.read.ptx.sreg.tid.x cannot be compiled for gfx942",
    ]);
}

#[test]
fn one_target_of_two_fails_and_nothing_is_written() {
    let work = Workshop::new();
    let run = work
        .run(&["compile", &example("matmul_mfma.mlir"), "-t", "gfx942,sm_90"])
        .failed(1)
        .says(&["target sm_90"]);
    assert!(!run.stderr.contains("target gfx942"), "{}", run.stderr);
    assert!(work.files("").is_empty());
}

#[test]
fn unknown_options() {
    let work = Workshop::new();
    work.run(&[
        "compile",
        &example("saxpy.mlir"),
        "--target",
        "sm_90",
        "--wave-sise",
        "32",
    ])
    .failed(2)
    .says(&["unexpected argument '--wave-sise'", "'--wave-size'"]);
    work.write(
        "flag.mlir",
        "gpu.module @m [#nvvm.target<flags = {wave_sise = \"3\"}>] {\n  gpu.func @k() kernel { gpu.return }\n}\n",
    );
    refused(&work, "flag.mlir", &[])
        .says(&["flag.mlir:1:1: error: plan, module m: unknown option 'wave_sise' (did you mean wave-size?)"]);
}

#[test]
fn options_that_a_target_cannot_honour() {
    let work = Workshop::new();
    let saxpy = example("saxpy.mlir");
    for (target, flag, text) in [
        (
            "sm_90",
            "--wave-size=32",
            "option 'wave-size' cannot be honoured for sm_90",
        ),
        (
            "sm_90",
            "--code-object-version=5",
            "option 'code-object-version' cannot be honoured for sm_90",
        ),
        ("gfx942", "--ptx=8.0", "option 'ptx' cannot be honoured for gfx942"),
        ("gfx942", "--wave-size=32", "gfx942 cannot run waves of 32 lanes"),
        ("sm_90", "--ptx=6.0", "PTX 6.0 does not support sm_90"),
        ("gfx9-4-generic", "--code-object-version=5", "generic target"),
    ] {
        refused(&work, &saxpy, &["-t", target, flag]).says(&["error: plan, module saxpy, target ", text]);
    }
}

#[test]
fn unknown_chips() {
    let work = Workshop::new();
    let saxpy = example("saxpy.mlir");
    refused(&work, &saxpy, &["-t", "sm_91"]).says(&[
        "error: plan: unknown chip 'sm_91': did you mean sm_90",
        "E0201: more with gpulower --explain E0201",
    ]);
    refused(&work, &saxpy, &["-t", "sm_90,gfx943"])
        .says(&["error: plan: unknown chip 'gfx943': did you mean ", "gfx942"]);
    refused(&work, &saxpy, &["-t", "gfx942:xnak+"]).says(&["error: plan: gfx942 has no target ID feature 'xnak'"]);
}

#[test]
fn a_chip_that_cuda_13_has_dropped() {
    let work = Workshop::new();
    // Before the memrefs of unknown sizes, which `--bare-pointers` is refused for, and wherever it is compiled.
    for isolation in ["in-process", "worker"] {
        let options = ["-t", "sm_70", "--bare-pointers", "--isolation", isolation];
        refused(&work, &example("transpose.mlir"), &options).says(&[
            "error: ptx-to-cubin, module transpose, target sm_70: no PTX compiler at hand knows sm_70",
            "use a CUDA 12 toolkit, or emit PTX",
        ]);
    }
    work.run(&[
        "compile",
        &example("transpose.mlir"),
        "-t",
        "sm_70",
        "-e",
        "ptx",
        "-o",
        "k.ptx",
    ])
    .quiet();
}

#[test]
fn formats_that_a_target_does_not_have() {
    let work = Workshop::new();
    let saxpy = example("saxpy.mlir");
    for (target, format, advice) in [
        ("gfx942", "ptx", "ask for asm"),
        ("gfx942", "cubin", "ask for hsaco"),
        ("sm_90", "hsaco", "ask for cubin"),
        ("compute_90", "cubin", "ask for ptx"),
    ] {
        refused(&work, &saxpy, &["-t", target, "-e", format]).says(&["error: plan, module saxpy, target ", advice]);
    }
}

#[test]
fn no_target() {
    let work = Workshop::new();
    refused(&work, &example("saxpy.mlir"), &[]).says(&[
        "saxpy.mlir:",
        ": error: plan, module saxpy: no target",
        "--target sm_90",
    ]);
}

#[test]
fn unresolved_symbols() {
    let work = Workshop::new();
    refused(&work, &example("user_library.mlir"), SM_90).says(&[
        "user_library.mlir:",
        ": error: link, module user_library, target sm_90: unresolved symbol",
        "scale_and_shift (needed by kernel user_library)",
        "-l FILE",
    ]);
    refused(&work, &example("user_library.mlir"), &["-t", "sm_90", "-l", "none.bc"])
        .says(&["error: link, module user_library, target sm_90: cannot read none.bc"]);
}

#[test]
fn a_place_that_cannot_be_written() {
    let work = Workshop::new();
    work.run(&[
        "compile",
        &example("saxpy.mlir"),
        "-t",
        "sm_90",
        "-e",
        "ptx",
        "-o",
        "none/k.ptx",
    ])
    .failed(1)
    .says(&["error: output: cannot write none/k.ptx: No such file or directory"]);
    work.write("file", "");
    work.run(&[
        "compile",
        &example("saxpy.mlir"),
        "-t",
        "sm_90",
        "-e",
        "ptx",
        "-o",
        "file/",
    ])
    .failed(1)
    .says(&["error: output: cannot write file/: "]);
    assert_eq!(work.files(""), ["file"]);
}

#[test]
fn usage_errors() {
    let work = Workshop::new();
    let saxpy = example("saxpy.mlir");
    for (arguments, text) in [
        (&[][..], "Usage: gpulower [OPTIONS] [COMMAND]"),
        (&["compil"], "unrecognized subcommand 'compil'"),
        (&["compile"], "<INPUT>"),
        (
            &["compile", &saxpy, "--emit", "elf"],
            "invalid value 'elf' for '--emit <FORMAT>'",
        ),
        (
            &["compile", &saxpy, "--wave-size", "33"],
            "error: option 'wave-size' cannot be '33': expected 32|64",
        ),
        (
            &["compile", &saxpy, "-O4"],
            "error: option 'O' cannot be '4': expected 0|1|2|3",
        ),
        (&["compile", &saxpy, "-j", "0"], "'0'"),
        (
            &["compile", &saxpy, "-t", "sm_90", "-o", "-", "--report=json"],
            "name a file with --report-file",
        ),
        (&["compile", &saxpy, "--report=xml"], "xml"),
        (&["targets", "--vendor", "intel"], "intel"),
    ] {
        let run = work.run(arguments).failed(2).says(&[text]);
        assert!(run.stdout.is_empty());
    }
    assert!(work.files("").is_empty());
}

#[test]
fn help_and_version_are_results() {
    let work = Workshop::new();
    let help = work.run(&["compile", "--help"]).quiet().output();
    for flag in [
        "-O, --optimization",
        "--ftz[=<true|false>]",
        "--daz",
        "--code-object-version <4|5|6>",
        "-l, --link",
        "--dump-dir",
    ] {
        assert!(help.contains(flag), "no {flag} in:\n{help}");
    }
    assert!(work.run(&["--version"]).quiet().output().starts_with("gpulower "));
}
