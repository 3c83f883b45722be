//! Words that misled somebody once.

use std::process::Stdio;

use super::support::{Run, Workshop, example};

#[test]
fn who_made_an_hsaco_is_not_who_made_amds_libraries() {
    let work = Workshop::new();
    work.run(&["compile", &example("gelu.mlir"), "-t", "gfx942", "-o", "k.hsaco"])
        .quiet();
    let text = work.run(&["inspect", "k.hsaco"]).quiet().output();
    assert!(text.contains("LLD 22") && !text.contains("clang version"), "{text}");
}

#[test]
fn a_result_from_the_cache_has_no_times() {
    let work = Workshop::new();
    let saxpy = example("saxpy.mlir");
    let arguments = [
        "compile",
        &saxpy,
        "-t",
        "sm_90",
        "-o",
        "k.cubin",
        "--report=table",
        "--cache-dir=cache",
    ];
    let run = || {
        let output = work
            .command(&arguments)
            .env_remove("GPULOWER_CACHE")
            .stdin(Stdio::null())
            .output();
        Run::of(output.expect("the program runs")).quiet().output()
    };
    assert!(run().contains("\n  ms: "));
    let text = run();
    assert!(text.contains("\n  from the cache\n") && !text.contains("ms:"), "{text}");
}

#[test]
fn advice_about_spills_names_a_limit_that_was_set() {
    let work = Workshop::new();
    let softmax = example("softmax.mlir");
    let limited = [
        "compile",
        &softmax,
        "-t",
        "sm_90",
        "-o",
        "k.cubin",
        "--max-registers=24",
    ];
    work.run(&limited)
        .failed(0)
        .says(&["raise max-registers (24), use a smaller block"]);
    // 300 values at once are too many for any limit.
    let values = |text: &dyn Fn(usize) -> String| (0..300).map(text).collect::<String>();
    let loads =
        values(&|i| format!("%i{i} = arith.constant {i} : index\n%v{i} = memref.load %p[%i{i}] : memref<300xf32>\n"));
    let stores = values(&|i| format!("memref.store %v{i}, %p[%i{}] : memref<300xf32>\n", 299 - i));
    work.write(
        "k.mlir",
        format!(
            "gpu.module @m {{ gpu.func @k(%p: memref<300xf32>) kernel {{\n{loads}gpu.barrier\n{stores}gpu.return\n}} }}"
        ),
    );
    let run = work
        .run(&["compile", "k.mlir", "-t", "sm_90", "-o", "k.cubin"])
        .failed(0);
    assert!(
        run.stderr.contains("spills") && !run.stderr.contains("max-registers"),
        "{}",
        run.stderr
    );
}

#[test]
fn who_finishes_a_program_is_who_registers_its_kernels() {
    let work = Workshop::new();
    let app = example("app.mlir");
    let export = [
        "export",
        &app,
        "-t",
        "sm_90",
        "--finish-with",
        "clang-16,cuda-12.4",
        "-o",
        "app.o",
    ];
    let commands = work.run(&export).quiet().output();
    assert!(
        commands.starts_with("# Finished by clang 16 to 19, with:\n"),
        "{commands}"
    );
    work.run(&["export", "--check", "app.o", "--with", "clang-16..19"])
        .quiet();
    work.run(&["export", "--check", "app.o", "--with", "clang-15"])
        .failed(1);
}

#[test]
fn a_main_that_takes_memrefs_is_no_program() {
    let work = Workshop::new();
    let kernel = "gpu.module @g { gpu.func @k() kernel { gpu.return } }";
    let main = |arguments: &str| {
        format!(
            "module attributes {{gpu.container_module}} {{ {kernel}\nfunc.func @main({arguments}) -> i32 {{\n%c = arith.constant 1 : index\n\
             gpu.launch_func @g::@k blocks in (%c, %c, %c) threads in (%c, %c, %c)\n%z = arith.constant 0 : i32\nreturn %z : i32 }} }}"
        )
    };
    let export = ["export", "app.mlir", "-t", "sm_90", "--emit", "self", "-o", "app.o"];
    work.write("app.mlir", main("%a: memref<4xf32>"));
    work.run(&export).failed(1).says(&[
        "app.mlir:2:1: error: export: main has the type (memref<4xf32>) -> i32: the C library calls a program's main with nothing",
    ]);
    for arguments in ["", "%count: i32, %words: !llvm.ptr"] {
        work.write("app.mlir", main(arguments));
        work.run(&export).quiet();
    }
}

#[test]
fn a_program_without_main_is_refused_before_a_driver_is_asked_for() {
    let work = Workshop::new();
    work.run(&["run", &example("saxpy.mlir")])
        .failed(1)
        .says(&["error: run: the program defines no function main (it defines none at all)"]);
}

#[test]
fn source_is_not_inspected() {
    let work = Workshop::new();
    let hint = "MLIR or LLVM IR, which holds no images: compile it first, with `gpulower compile`";
    work.run(&["inspect", &example("saxpy.mlir")]).failed(1).says(&[hint]);
    work.run(&["inspect", &example("lib/scale_and_shift.ll")])
        .failed(1)
        .says(&[hint]);
}

#[test]
fn a_column_that_nothing_has_is_left_out() {
    let work = Workshop::new();
    let saxpy = example("saxpy.mlir");
    for (emit, has_kinds) in [("cubin", false), ("ptx", true)] {
        work.run(&["compile", &saxpy, "-t", "sm_90", "-e", emit, "-o", "k"])
            .quiet();
        let text = work.run(&["inspect", "k", "--parameters"]).quiet().output();
        let head = text
            .lines()
            .find(|line| line.trim_start().starts_with("parameter "))
            .expect("a table");
        assert_eq!(head.contains("kind"), has_kinds, "{text}");
    }
}

#[test]
fn clear_removes_what_the_toolkit_was_made_into() {
    let work = Workshop::new();
    let saxpy = example("saxpy.mlir");
    let arguments = ["compile", &saxpy, "-t", "sm_90", "-o", "k.cubin", "--cache-dir=cache"];
    work.run(&arguments).quiet();
    let cache = |action| work.run(&["cache", action, "--cache-dir=cache"]).quiet().output();
    assert!(cache("show").contains("iB that are made once for each toolkit\n"));
    assert!(cache("clear").contains("cache held "));
    assert_eq!(cache("show"), "cache/results holds 0 results in 0 bytes\n");
    let left = work.files("cache");
    assert!(left.iter().all(|name| name == "results"), "{left:?}");
    work.run(&arguments).quiet();
}

#[test]
fn no_advice_that_nobody_can_use() {
    let work = Workshop::new();
    let run = work.run(&["compile", "k.mlir", "--wave-sise=32"]).failed(2);
    assert!(
        !run.stderr.contains("-- -") && run.stderr.contains("'--wave-size'"),
        "{}",
        run.stderr
    );
    let run = work
        .run(&["inspect", "k.cubin", "-v"])
        .failed(2)
        .says(&["unexpected argument '-v'"]);
    assert!(!run.stderr.contains("-- -v"), "{}", run.stderr);
    // The word as it was written, and not its first letter.
    for word in ["-std=c++17", "-Wall"] {
        let run = work.run(&["compile", "k.mlir", word]).failed(2);
        assert!(run.stderr.contains(word), "{word}: {}", run.stderr);
    }
}

/// The name of the pass that was asked for is in its messages.
#[test]
fn passes_name_themselves() {
    let work = Workshop::new();
    work.write("k.mlir", "gpu.module @m { gpu.func @k() kernel { gpu.return } }");
    let program = env!("CARGO_BIN_EXE_gpulower-opt");
    let mut command = std::process::Command::new(program);
    command.args([
        "k.mlir",
        "--pass-pipeline=builtin.module(gpu.module(gpulower-to-binary{targets=sm_90}))",
    ]);
    let output = command.current_dir(work.path("")).output().expect("gpulower-opt");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(
        text.contains("error: gpulower-to-binary cannot replace the operation it runs on"),
        "{text}"
    );
}

#[test]
fn a_library_that_was_not_found_is_no_question_of_spelling() {
    let work = Workshop::new();
    let softmax = example("softmax.mlir");
    let run = work.run(&[
        "compile",
        &softmax,
        "-t",
        "sm_90",
        "-e",
        "ptx",
        "-o",
        "k",
        "--cuda",
        &example(""),
        "--report=json",
    ]);
    let run = run.failed(1).says(&["needs a library that was not found"]);
    assert!(
        !run.stderr.contains("spelling") && !run.output().contains("spelling"),
        "{}",
        run.output()
    );
}
