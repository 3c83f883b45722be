//! `gpulower run`, without a GPU.

use crate::support::{Workshop, example};

const PROGRAM: &str = r#"
  llvm.mlir.global internal constant @text("%d and %.3f\0A\00")
  llvm.func @printf(!llvm.ptr, ...) -> i32
  llvm.func @cbrt(f64) -> f64
  llvm.func @main() -> i32 {
    %text = llvm.mlir.addressof @text : !llvm.ptr
    %n = llvm.mlir.constant(42 : i32) : i32
    %x = llvm.mlir.constant(27.0 : f64) : f64
    %root = llvm.call @cbrt(%x) : (f64) -> f64
    %0 = llvm.call @printf(%text, %n, %root) vararg(!llvm.func<i32 (ptr, ...)>) : (!llvm.ptr, i32, f64) -> i32
    llvm.return %n : i32
  }
  llvm.func @wide() -> i64 { %n = llvm.mlir.constant(5000000000 : i64) : i64 llvm.return %n : i64 }
  llvm.func @nothing() { llvm.return }
"#;

#[test]
fn the_status_is_that_of_the_program() {
    let directory = Workshop::new();
    directory.write("p.mlir", PROGRAM);
    let run = directory.run(&["run", "p.mlir"]).failed(42);
    assert_eq!(run.output(), "42 and 3.000\n");
    let run = directory.run(&["run", "p.mlir", "--entry", "wide"]).quiet();
    assert_eq!(run.output(), "5000000000\n");
    directory.run(&["run", "p.mlir", "--entry", "nothing", "-v"]).quiet();
    let run = directory.run_with_input(&["run", "-"], PROGRAM.as_bytes()).failed(42);
    assert_eq!(run.output(), "42 and 3.000\n");
}

#[test]
fn what_cannot_run_is_an_error() {
    let directory = Workshop::new();
    directory.write("p.mlir", PROGRAM);
    directory
        .run(&["run", "p.mlir", "--entry", "min"])
        .failed(1)
        .says(&["error: run: the program defines no function min (it defines main, wide, nothing)"]);
    directory
        .run(&["run", "p.mlir", "--shared-libs", "/nowhere/libx.so"])
        .failed(1)
        .says(&["error: run: the shared library /nowhere/libx.so cannot be loaded"]);
    directory
        .run(&["run", "absent.mlir"])
        .failed(1)
        .says(&["error: input: cannot read absent.mlir"]);
    directory
        .run(&["run", "p.mlir", "--target", "sm_999"])
        .failed(1)
        .says(&["sm_999"]);
    directory.write("bad.mlir", "func.func @main() { return 1 }");
    directory
        .run(&["run", "bad.mlir"])
        .failed(1)
        .says(&["bad.mlir:1:", "error: input: "]);
}

#[test]
fn the_example_needs_a_driver() {
    let directory = Workshop::new();
    directory
        .run(&["run", &example("app.mlir"), "--target", "gfx90a"])
        .failed(1)
        .says(&[
            "error: run: no HIP driver: libamdhip64.so could not be loaded",
            "It comes with ROCm",
        ]);
}
