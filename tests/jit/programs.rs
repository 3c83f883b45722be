//! Programs without a GPU: what runs, and what is said where there is none.
#![allow(unsafe_code, reason = "running the tests' own programs")]

use std::path::PathBuf;

use super::*;
use crate::bridge::program_calls::{CopyCall, FillCall, KernelCall, PinCall};
use gpulower_testing::amd::run as run_tool;

fn build(source: &str, options: &ProgramOptions) -> Result<Program, RunError> {
    Program::build_source(&Compiler::builder().build(), "test.mlir", source.as_bytes(), options)
}

fn run_with(source: &str, options: &ProgramOptions) -> Result<Returned, RunError> {
    // SAFETY: the programs below stay within their own memory.
    unsafe { build(source, options)?.run() }
}

fn run(source: &str) -> Result<Returned, RunError> {
    run_with(source, &ProgramOptions::default())
}

fn message(source: &str) -> String {
    run(source).expect_err("refused").to_string()
}

fn entry(name: &str) -> ProgramOptions {
    ProgramOptions {
        entry: name.to_owned(),
        ..ProgramOptions::default()
    }
}

/// A program with a kernel, whose `main` would end the process with a status of its own if it ran.
const LAUNCHES: &str = "
  func.func private @exit(i32)
  func.func @main() {
    %status = arith.constant 77 : i32
    func.call @exit(%status) : (i32) -> ()
    %one = arith.constant 1 : index
    %m = gpu.alloc () : memref<8xf32>
    gpu.launch blocks(%a, %b, %c) in (%d = %one, %e = %one, %f = %one)
               threads(%x, %y, %z) in (%g = %one, %h = %one, %i = %one) {
      %v = arith.constant 1.0 : f32
      memref.store %v, %m[%x] : memref<8xf32>
      gpu.terminator
    }
    return
  }";

#[test]
fn a_program_returns_its_result() {
    let source = "
      memref.global @calls : memref<1xi32> = dense<40>
      func.func private @next() -> i32 {
        %zero = arith.constant 0 : index
        %one = arith.constant 1 : i32
        %m = memref.get_global @calls : memref<1xi32>
        %old = memref.load %m[%zero] : memref<1xi32>
        %new = arith.addi %old, %one : i32
        memref.store %new, %m[%zero] : memref<1xi32>
        return %new : i32
      }
      func.func @main() -> i32 { %n = func.call @next() : () -> i32 return %n : i32 }
      func.func @nothing() { return }
      func.func @wide() -> i64 { %n = arith.constant 5000000000 : i64 return %n : i64 }
      func.func @double() -> f64 { %n = arith.constant 0.1 : f64 return %n : f64 }
      func.func private @root() -> f32 { %n = arith.constant 8.0 : f32 %r = math.cbrt %n : f32 return %r : f32 }";
    let returned = |name: &str| run_with(source, &entry(name)).expect("runs");
    assert_eq!(returned("nothing"), Returned::Nothing);
    assert_eq!(returned("wide"), Returned::I64(5_000_000_000));
    assert_eq!(returned("double"), Returned::F64(0.1));
    assert_eq!(returned("root"), Returned::F32(2.0), "a function of libm");
    let mut program = build(source, &ProgramOptions::default()).expect("builds");
    // SAFETY: it stays within its variables.
    let runs = [unsafe { program.run() }, unsafe { program.run() }];
    let runs = runs.map(|run| run.expect("runs"));
    assert_eq!(
        runs,
        [Returned::I32(41), Returned::I32(42)],
        "variables stay as they were left"
    );
}

#[test]
fn constructors_run_before_and_destructors_after() {
    let source = "
      llvm.mlir.global internal @order(0 : i32) : i32
      llvm.func internal @push(%n: i32) {
        %p = llvm.mlir.addressof @order : !llvm.ptr
        %old = llvm.load %p : !llvm.ptr -> i32
        %ten = llvm.mlir.constant(10 : i32) : i32
        %a = llvm.mul %old, %ten : i32
        %b = llvm.add %a, %n : i32
        llvm.store %b, %p : i32, !llvm.ptr
        llvm.return
      }
      llvm.func internal @one() { %n = llvm.mlir.constant(1 : i32) : i32 llvm.call @push(%n) : (i32) -> () llvm.return }
      llvm.func internal @two() { %n = llvm.mlir.constant(2 : i32) : i32 llvm.call @push(%n) : (i32) -> () llvm.return }
      llvm.func internal @four() { %n = llvm.mlir.constant(4 : i32) : i32 llvm.call @push(%n) : (i32) -> () llvm.return }
      llvm.mlir.global_ctors ctors = [@two, @one], priorities = [200 : i32, 100 : i32], data = [#llvm.zero, #llvm.zero]
      llvm.mlir.global_dtors dtors = [@four], priorities = [100 : i32], data = [#llvm.zero]
      llvm.func @main() -> i32 {
        %p = llvm.mlir.addressof @order : !llvm.ptr
        %n = llvm.load %p : !llvm.ptr -> i32
        llvm.return %n : i32
      }";
    let mut program = build(source, &ProgramOptions::default()).expect("builds");
    // SAFETY: it stays within its variable.
    let mut returned = || unsafe { program.run() }.expect("runs");
    assert_eq!(returned(), Returned::I32(12));
    assert_eq!(returned(), Returned::I32(12412));
}

#[test]
fn an_entry_has_to_be_there_and_take_nothing() {
    let source = "func.func @f(%n: i32) -> i32 { return %n : i32 }
                  func.func @g() -> i1 { %t = arith.constant true return %t : i1 }";
    assert_eq!(
        message(source),
        "the program defines no function main (it defines f, g); name the one to call with --entry"
    );
    let message = |name: &str| run_with(source, &entry(name)).expect_err("refused").to_string();
    assert_eq!(
        message("f"),
        "f has the type i32 (i32): the function that is called has to take nothing, and to return nothing, i32, i64, f32 or f64"
    );
    assert!(message("g").starts_with("g has the type i1 (): "), "{}", message("g"));
}

#[test]
fn what_nobody_defines_is_named_before_anything_runs() {
    let call = |name: &str| {
        format!(
            "func.func private @exit(i32)
             func.func private @{name}()
             func.func @main() {{ %s = arith.constant 77 : i32 func.call @exit(%s) : (i32) -> () func.call @{name}() : () -> () return }}"
        )
    };
    assert_eq!(
        message(&call("nobody_has_this")),
        "nothing defines nobody_has_this: neither the program, nor a shared library, nor the C library; name the library that \
         does with --shared-libs"
    );
    assert!(message(&call("mgpuSpMV")).ends_with(
        "; the mgpu functions for sparse matrices are not part of gpulower: name a library that has them with --shared-libs"
    ));
}

#[test]
fn functions_of_shared_libraries_are_called() {
    let folder = tempfile::tempdir().expect("a folder");
    let library = folder.path().join("libhelper.so");
    let output = format!("-o{}", library.display());
    // This program may run under an emulator: clang may be of another processor.
    let target = format!("--target={}-linux-gnu", std::env::consts::ARCH);
    run_tool(
        "clang",
        &[&target, "-shared", "-fPIC", "-xc", "-", &output],
        b"int helper(int a) { return a + 5; }",
    );
    let source = "func.func private @helper(i32) -> i32
        func.func @main() -> i32 { %a = arith.constant 2 : i32 %b = func.call @helper(%a) : (i32) -> i32 return %b : i32 }";
    let with = |path: PathBuf| ProgramOptions {
        // SAFETY: it has no constructors.
        shared_libraries: unsafe { SharedLibraries::trusted(vec![path]) },
        ..ProgramOptions::default()
    };
    assert_eq!(run_with(source, &with(library)).expect("runs"), Returned::I32(7));
    let message = run_with(source, &with("/nowhere/libx.so".into()))
        .expect_err("refused")
        .to_string();
    assert!(
        message.starts_with("the shared library /nowhere/libx.so cannot be loaded: ")
            && message.contains("No such file"),
        "{message}"
    );
}

#[test]
fn what_is_no_program_is_refused_with_its_place() {
    let error = run("func.func @main() { %x = arith.constant }")
        .expect_err("refused")
        .to_string();
    assert!(error.starts_with("test.mlir:1:"), "{error}");
    let compiler = Compiler::builder().build();
    let llvm = Program::build_source(
        &compiler,
        "test.ll",
        b"define void @main() { ret void }",
        &ProgramOptions::default(),
    );
    assert_eq!(
        llvm.expect_err("refused").to_string(),
        "only MLIR can be run: a module with the host code, and with the kernels that it launches"
    );
    let error = message(
        "func.func @main() -> f32 { %z = arith.constant 0 : index %t = tensor.empty() : tensor<4xf32>
        %e = tensor.extract %t[%z] : tensor<4xf32> return %e : f32 }",
    );
    assert!(
        error.contains("cannot lower tensor.empty, tensor.extract in host code"),
        "{error}"
    );
}

/// Whether this machine has a GPU: what follows is about machines without one.
fn has_gpu() -> bool {
    gpu::driver(None).is_ok()
}

#[test]
fn a_program_with_kernels_needs_a_driver_and_the_process_goes_on() {
    assert!(
        !has_gpu(),
        "this test is for machines without a GPU; scripts/gpu/run.py is for others"
    );
    for target in [None, Some("sm_90"), Some("gfx942")] {
        let options = ProgramOptions {
            target: target.map(|target| target.parse().expect("a target")),
            ..ProgramOptions::default()
        };
        let error = run_with(LAUNCHES, &options).expect_err("there is no driver");
        assert!(matches!(error, RunError::DriverLoad(_)), "{error}");
        let wanted = match target {
            Some("gfx942") => "no HIP driver: libamdhip64.so could not be loaded",
            _ => "no CUDA driver: libcuda.so.1 could not be loaded",
        };
        assert!(error.to_string().starts_with(wanted), "{error}");
    }
    assert_eq!(
        run("func.func @main() -> i32 { %n = arith.constant 3 : i32 return %n : i32 }").expect("runs"),
        Returned::I32(3)
    );
}

/// Lowered by MLIR's own pipeline, with the module loaded by a constructor.
#[test]
fn a_module_that_mlirs_passes_lowered_needs_a_driver_too() {
    assert!(
        !has_gpu(),
        "this test is for machines without a GPU; scripts/gpu/run.py is for others"
    );
    let source = "module attributes {gpu.container_module} {
      gpu.module @k { gpu.func @f(%p: memref<?xf32>, %v: f32) kernel {
        %i = gpu.thread_id x
        memref.store %v, %p[%i] : memref<?xf32>
        gpu.return } }
      func.func @main() {
        %one = arith.constant 1 : index
        %v = arith.constant 2.0 : f32
        %m = memref.alloc(%one) : memref<?xf32>
        gpu.launch_func @k::@f blocks in (%one, %one, %one) threads in (%one, %one, %one) args(%m : memref<?xf32>, %v : f32)
        return
      } }";
    let pipeline = "--gpu-lower-to-nvvm-pipeline=cubin-chip=sm_90 cubin-features=+ptx80 cubin-format=isa";
    let lowered = run_tool("mlir-opt", &[pipeline], source.as_bytes());
    let lowered = String::from_utf8(lowered).expect("text");
    assert!(lowered.contains("gpu.binary"));
    let error = run(&lowered).expect_err("there is no driver");
    assert!(matches!(error, RunError::DriverLoad(_)), "{error}");
    assert!(error.to_string().contains("It comes with NVIDIA's driver"), "{error}");
}

/// A GPU that refuses, to see how the program is left.
#[derive(Default)]
struct Refusing(std::sync::Mutex<Option<&'static str>>, tasks::Tasks);

macro_rules! refuse {
    ($($name:ident($($kind:ty),*) -> $result:ty;)*) => {
        $(fn $name(&self, $(_: $kind),*) -> Result<$result, mgpu::CallError> { Err("refused".into()) })*
    };
}

impl Gpu for Refusing {
    fn stop(&self, call: &'static str, _: mgpu::CallError) {
        self.0.lock().expect("a lock").get_or_insert(call);
    }
    fn is_stopped(&self) -> bool {
        self.0.lock().expect("a lock").is_some()
    }
    fn tasks(&self) -> &tasks::Tasks {
        &self.1
    }
    fn stream(&self) -> Result<usize, mgpu::CallError> {
        panic!("on purpose: it must not reach the program")
    }
    refuse! {
        load(&[u8]) -> usize; compile(&[u8], i32) -> usize; unload(usize) -> (); function(usize, &str) -> usize;
        launch(KernelCall<'_>) -> (); end_stream(usize) -> (); wait(usize) -> (); stream_waits(usize, usize) -> ();
        event() -> usize; end_event(usize) -> (); wait_event(usize) -> (); record(usize, usize) -> ();
        allocate(i64, bool) -> usize; free(usize, usize) -> ();
        copy(CopyCall<'_>) -> (); fill(FillCall<'_>) -> (); register(PinCall<'_>) -> (); unregister(usize) -> ();
        device_address(usize) -> usize; set_device(i32) -> ();
        tensor_map(&mgpu::TensorMap) -> [u64; 16];
        tensor_map_on_device(&mgpu::TensorMap) -> usize;
    }
}

#[test]
fn a_call_that_fails_leaves_the_program_there() {
    let source = |call: &str| {
        format!(
            "llvm.func @exit(i32)
             llvm.func @mgpuMemAlloc(i64, !llvm.ptr, i8) -> !llvm.ptr
             llvm.func @mgpuStreamCreate() -> !llvm.ptr
             llvm.func @main() {{
               %zero = llvm.mlir.zero : !llvm.ptr
               %size = llvm.mlir.constant(-8 : i64) : i64
               %none = llvm.mlir.constant(0 : i8) : i8
               %p = {call} -> !llvm.ptr
               %status = llvm.mlir.constant(77 : i32) : i32
               llvm.call @exit(%status) : (i32) -> ()
               llvm.return
             }}"
        )
    };
    for (call, name) in [
        (
            "llvm.call @mgpuMemAlloc(%size, %zero, %none) : (i64, !llvm.ptr, i8)",
            "mgpuMemAlloc",
        ),
        ("llvm.call @mgpuStreamCreate() : ()", "mgpuStreamCreate"),
    ] {
        let program = build(&source(call), &ProgramOptions::default()).expect("builds");
        assert!(program.needs_gpu);
        for _ in 0..3 {
            let refusing = Arc::new(Refusing::default());
            let gpu: Arc<dyn Gpu> = refusing.clone();
            // SAFETY: the program ends with its first call.
            let left = unsafe { program.engine.call(program.entry, program.returns, &gpu) };
            assert_eq!(left, None);
            assert_eq!(*refusing.0.lock().expect("a lock"), Some(name));
        }
    }
}

/// Nothing may unwind into Rust.
#[test]
fn an_exception_that_leaves_the_program_is_an_error() {
    let error = run("llvm.func @__cxa_allocate_exception(i64) -> !llvm.ptr
        llvm.func @__cxa_throw(!llvm.ptr, !llvm.ptr, !llvm.ptr)
        llvm.mlir.global external constant @_ZTIi() : !llvm.ptr
        llvm.func @main() {
          %size = llvm.mlir.constant(4 : i64) : i64
          %zero = llvm.mlir.zero : !llvm.ptr
          %kind = llvm.mlir.addressof @_ZTIi : !llvm.ptr
          %thrown = llvm.call @__cxa_allocate_exception(%size) : (i64) -> !llvm.ptr
          llvm.call @__cxa_throw(%thrown, %kind, %zero) : (!llvm.ptr, !llvm.ptr, !llvm.ptr) -> ()
          llvm.return
        }")
    .expect_err("an exception");
    assert!(error.to_string().contains("an exception of C++ left it"), "{error}");
}

/// Two modules with a kernel of one name, and a host function of that name too.
#[test]
fn names_of_kernels_need_not_be_unique() {
    let source = "module attributes {gpu.container_module} {
      gpu.module @a { gpu.func @k(%p: memref<?xi32>) kernel {
        %i = gpu.thread_id x
        %v = arith.constant 1 : i32
        memref.store %v, %p[%i] : memref<?xi32>
        gpu.return } }
      gpu.module @b { gpu.func @k(%p: memref<?xi32>) kernel {
        %i = gpu.thread_id x
        %v = arith.constant 2 : i32
        memref.store %v, %p[%i] : memref<?xi32>
        gpu.return } }
      func.func @k() -> i32 { %n = arith.constant 5 : i32 return %n : i32 }
      func.func @main() -> i32 {
        %one = arith.constant 1 : index
        %m = gpu.alloc (%one) : memref<?xi32>
        gpu.launch_func @a::@k blocks in (%one, %one, %one) threads in (%one, %one, %one) args(%m : memref<?xi32>)
        gpu.launch_func @b::@k blocks in (%one, %one, %one) threads in (%one, %one, %one) args(%m : memref<?xi32>)
        %n = func.call @k() : () -> i32
        return %n : i32
      } }";
    for target in ["sm_90", "gfx942"] {
        let options = ProgramOptions {
            target: Some(target.parse().expect("a target")),
            ..ProgramOptions::default()
        };
        let program = build(source, &options).unwrap_or_else(|error| panic!("{target}: {error}"));
        assert!(program.needs_gpu);
    }
}

/// Tasks whose values others take, a group of a thousand, and a function that waits within a task.
#[test]
fn tasks_of_the_async_dialect_are_carried_out() {
    let source = "
      func.func private @doubled(%n: i32) -> i32 {
        %t, %f = async.execute () -> !async.value<i32> {
          %d = arith.addi %n, %n : i32
          async.yield %d : i32
        }
        %r = async.await %f : !async.value<i32>
        return %r : i32
      }
      func.func @main() -> i32 {
        %zero = arith.constant 0 : index
        %n = arith.constant 5 : i32
        %m = memref.alloc() : memref<2xi32>
        %t0, %f0 = async.execute () -> !async.value<memref<2xi32>> {
          memref.store %n, %m[%zero] : memref<2xi32>
          async.yield %m : memref<2xi32>
        }
        %t1, %f1 = async.execute [%t0] (%f0 as %b: !async.value<memref<2xi32>>) -> !async.value<i32> {
          %x = memref.load %b[%zero] : memref<2xi32>
          %y = func.call @doubled(%x) : (i32) -> i32
          async.yield %y : i32
        }
        %t2 = async.execute [%t1] (%f1 as %y: !async.value<i32>) {
          %z = func.call @doubled(%y) : (i32) -> i32
          memref.store %z, %m[%zero] : memref<2xi32>
          async.yield
        }
        async.await %t2 : !async.token
        %r = memref.load %m[%zero] : memref<2xi32>
        memref.dealloc %m : memref<2xi32>
        return %r : i32
      }
      func.func @group() -> i32 {
        %zero = arith.constant 0 : index
        %one = arith.constant 1 : index
        %n = arith.constant 1000 : index
        %m = memref.alloc(%n) : memref<?xi32>
        %g = async.create_group %n : !async.group
        scf.for %i = %zero to %n step %one {
          %t = async.execute {
            %v = arith.index_cast %i : index to i32
            %d = func.call @doubled(%v) : (i32) -> i32
            memref.store %d, %m[%i] : memref<?xi32>
            async.yield
          }
          %rank = async.add_to_group %t, %g : !async.token
        }
        async.await_all %g
        %start = arith.constant 0 : i32
        %sum = scf.for %i = %zero to %n step %one iter_args(%s = %start) -> i32 {
          %v = memref.load %m[%i] : memref<?xi32>
          %next = arith.addi %s, %v : i32
          scf.yield %next : i32
        }
        return %sum : i32
      }
      async.func @later(%v: vector<64xf32>) -> !async.value<vector<64xf32>> {
        %t, %f = async.execute () -> !async.value<vector<64xf32>> {
          %w = arith.addf %v, %v : vector<64xf32>
          async.yield %w : vector<64xf32>
        }
        %w = async.await %f : !async.value<vector<64xf32>>
        return %w : vector<64xf32>
      }
      func.func @vectors() -> f32 {
        %v = arith.constant dense<1.5> : vector<64xf32>
        %f = async.call @later(%v) : (vector<64xf32>) -> !async.value<vector<64xf32>>
        %w = async.await %f : !async.value<vector<64xf32>>
        %s = vector.reduction <add>, %w : vector<64xf32> into f32
        return %s : f32
      }";
    for level in ["0", "2"] {
        let mut options = crate::Options::default();
        options.set("O", level).expect("an option");
        let compiler = Compiler::builder().options(options).build();
        let run = |name: &str| {
            let program = Program::build_source(&compiler, "test.mlir", source.as_bytes(), &entry(name));
            let mut program = program.unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(!program.needs_gpu);
            // SAFETY: the programs stay within their memory.
            [unsafe { program.run() }, unsafe { program.run() }].map(|run| run.expect("runs"))
        };
        assert_eq!(run("main"), [Returned::I32(20); 2]);
        assert_eq!(run("group"), [Returned::I32(999_000); 2]);
        assert_eq!(run("vectors"), [Returned::F32(192.0); 2]);
    }
}

/// What a task does for the GPU fails: the program is left, whatever its first thread waits for.
#[test]
fn a_call_that_fails_in_a_task_leaves_the_program() {
    let source = "
      func.func private @exit(i32)
      func.func @main() {
        %t, %f = async.execute () -> !async.value<memref<8xf32>> {
          %m = gpu.alloc () : memref<8xf32>
          async.yield %m : memref<8xf32>
        }
        %m = async.await %f : !async.value<memref<8xf32>>
        %status = arith.constant 77 : i32
        func.call @exit(%status) : (i32) -> ()
        return
      }";
    let program = build(source, &ProgramOptions::default()).expect("builds");
    for _ in 0..20 {
        let refusing = Arc::new(Refusing::default());
        let gpu: Arc<dyn Gpu> = refusing.clone();
        // SAFETY: the program ends when its task has failed.
        let left = unsafe { program.engine.call(program.entry, program.returns, &gpu) };
        refusing.1.settle();
        assert_eq!(left, None);
        assert_eq!(*refusing.0.lock().expect("a lock"), Some("mgpuMemAlloc"));
    }
}

/// Of two kinds of floats, which MLIR's check of what is inside of linalg's operations does not know once that is lowered.
#[test]
fn linalg_on_buffers_becomes_loops_and_on_tensors_is_refused() {
    let source = "func.func @main() -> f32 {
      %one = arith.constant 1 : index
      %a = memref.alloc() : memref<4x8xf16>
      %b = memref.alloc() : memref<8x4xf16>
      %c = memref.alloc() : memref<4x4xf32>
      %half = arith.constant 0.5 : f16
      %zero = arith.constant 0.0 : f32
      linalg.fill ins(%half : f16) outs(%a : memref<4x8xf16>)
      linalg.fill ins(%half : f16) outs(%b : memref<8x4xf16>)
      linalg.fill ins(%zero : f32) outs(%c : memref<4x4xf32>)
      linalg.matmul ins(%a, %b : memref<4x8xf16>, memref<8x4xf16>) outs(%c : memref<4x4xf32>)
      %r = memref.load %c[%one, %one] : memref<4x4xf32>
      return %r : f32
    }";
    assert_eq!(run(source).expect("runs"), Returned::F32(2.0));
    let error = message(
        "func.func @main() -> f32 {
      %one = arith.constant 1 : index
      %a = tensor.empty() : tensor<4x4xf32>
      %c = linalg.matmul ins(%a, %a : tensor<4x4xf32>, tensor<4x4xf32>) outs(%a : tensor<4x4xf32>) -> tensor<4x4xf32>
      %r = tensor.extract %c[%one, %one] : tensor<4x4xf32>
      return %r : f32
    }",
    );
    assert!(
        error.contains("cannot lower linalg.matmul in host code: the first has the types (tensor<4x4xf32>, ")
            && error.contains("one-shot-bufferize"),
        "{error}"
    );
}
