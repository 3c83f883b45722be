//! Host code is compiled with clang and linked with a stand-in for the runtime library, `runtime.c`, that writes down
//! every call, and runs kernels that are written in C.

use std::{
    fmt::Write,
    path::{Path, PathBuf},
    process::Command,
};

use super::*;

fn options(runtime: Runtime) -> HostOptions {
    HostOptions::new(
        runtime,
        "x86_64-unknown-linux-gnu".parse().expect("a host"),
        "test.mlir",
    )
}

fn run_tool(command: &mut Command) {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?} cannot be run ({error}): run `cargo xtask setup`"));
    assert!(
        output.status.success(),
        "{command:?}: {}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

fn ir(program: &HostProgram<'_>) -> String {
    let llvm = DeviceContext::new();
    program
        .translate(&llvm)
        .expect("translates")
        .to_text()
        .expect("printed")
}

/// An object file of clang's.
fn object(folder: &Path, name: &str, program: &HostProgram<'_>) -> PathBuf {
    let text = folder.join(format!("{name}.ll"));
    let object = folder.join(format!("{name}.o"));
    std::fs::write(&text, ir(program)).expect("writes");
    let target = format!("--target={}", program.program().triple);
    run_tool(
        Command::new("clang-22")
            .args([&target, "-Werror", "-c", "-O1"])
            .arg(&text)
            .arg("-o")
            .arg(&object),
    );
    object
}

/// What a run of a program did.
#[derive(Debug)]
struct Run {
    status: Option<i32>,
    log: Vec<String>,
    errors: String,
}

/// Programs with kernels in C: for each kernel's name in the source the body of its function.
struct Harness {
    folder: tempfile::TempDir,
    runtime: Runtime,
    objects: Vec<PathBuf>,
    registration: String,
}

impl Harness {
    fn new(runtime: Runtime) -> Self {
        Self {
            folder: tempfile::tempdir().expect("a folder"),
            runtime,
            objects: Vec::new(),
            registration: format!("#define PREFIX {}\n#include \"runtime.c\"\n", runtime.prefix()),
        }
    }

    fn add(&mut self, program: &HostProgram<'_>, kernels: &[(&str, &str)]) {
        let name = format!("part{}", self.objects.len());
        self.objects.push(object(self.folder.path(), &name, program));
        for kernel in &program.program().kernels {
            let body = kernels
                .iter()
                .find(|(name, _)| *name == kernel.source_name)
                .map_or("", |(_, body)| *body);
            let (name, handle) = (&kernel.name, &kernel.handle);
            let _ = writeln!(
                self.registration,
                "extern const char {handle}[] __attribute__((visibility(\"hidden\")));\n\
                 static void body_{name}(dim3 grid, dim3 block, size_t shared, void **arguments) {{ {body} }}\n\
                 __attribute__((constructor)) static void register_{name}(void) {{ \
                 test_register({handle}, \"{}\", body_{name}); }}",
                kernel.source_name
            );
        }
    }

    fn link(&self) -> PathBuf {
        // Not the name of what it includes.
        let source = self.folder.path().join("registration.c");
        let executable = self.folder.path().join("program");
        std::fs::write(&source, &self.registration).expect("writes");
        run_tool(
            Command::new("cc")
                .args(["-Wno-builtin-declaration-mismatch", "-I"])
                .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/offload"))
                .arg(&source)
                .args(&self.objects)
                .args(["-lm", "-o"])
                .arg(&executable),
        );
        executable
    }

    fn run(&self, fail: &str) -> Run {
        let mut command = Command::new(self.link());
        if !fail.is_empty() {
            command.env("FAIL", format!("{}{fail}", self.runtime.prefix()));
        }
        let output = command.output().expect("runs");
        Run {
            status: output.status.code(),
            log: String::from_utf8_lossy(&output.stdout)
                .lines()
                .map(str::to_owned)
                .collect(),
            errors: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

fn lowered<'c>(context: &'c Context, source: &str, options: &HostOptions) -> HostProgram<'c> {
    let module = compiler::parse(context, "test.mlir", source.as_bytes()).expect("parses");
    lower(&module, options).unwrap_or_else(|error| panic!("{error} at {:?}", error.location()))
}

fn refusal(source: &str, options: &HostOptions) -> OffloadError {
    let context = compiler::context();
    let module = compiler::parse(&context, "test.mlir", source.as_bytes()).expect("parses");
    lower(&module, options).expect_err("refused")
}

/// Runs a program whose kernels are given in C.
fn run(source: &str, options: &HostOptions, kernels: &[(&str, &str)], fail: &str) -> Run {
    let context = compiler::context();
    let program = lowered(&context, source, options);
    let mut harness = Harness::new(options.runtime);
    harness.add(&program, kernels);
    harness.run(fail)
}

/// A program with a kernel and a `main` with this body, which has a few constants at hand.
fn program(kernel: &str, body: &str) -> String {
    format!(
        "module attributes {{gpu.container_module}} {{
           gpu.module @m {{ gpu.func @k({kernel}) kernel {{ gpu.return }} }}
           func.func @main() -> i32 {{
             %c1 = arith.constant 1 : index
             %c2 = arith.constant 2 : index
             %c3 = arith.constant 3 : index
             %c64 = arith.constant 64 : index
             %status = arith.constant 0 : i32
             {body}
             return %status : i32
           }}
         }}"
    )
}

const APP_KERNELS: &[(&str, &str)] = &[
    (
        "saxpy",
        "int64_t n = INTEGER(0); float a = *(float *)arguments[1]; float *x = (float *)POINTER(3), *y = (float *)POINTER(8);
         if (INTEGER(4) != 0 || INTEGER(5) != n || INTEGER(6) != 1 || INTEGER(10) != n) abort();
         for (int64_t i = 0; i < n && i < (int64_t)grid.x * block.x; ++i) y[i] = a * x[i] + y[i];",
    ),
    (
        "turn_blocks",
        "int64_t n = INTEGER(0); float *from = (float *)POINTER(2), *to = (float *)POINTER(7);
         if (shared != 4 * block.x) abort();
         for (int64_t i = 0; i < n; ++i) {
           int64_t start = i - i % block.x, count = n - start < block.x ? n - start : block.x;
           to[i] = from[start + count - 1 - (i - start)];
         }",
    ),
];

fn app() -> String {
    std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/app.mlir")).expect("the example")
}

#[test]
fn the_example_runs_and_its_calls_are_in_order() {
    for runtime in [Runtime::Cuda, Runtime::Hip] {
        let run = run(&app(), &options(runtime), APP_KERNELS, "");
        assert_eq!(run.errors, "", "{run:?}");
        assert_eq!(
            run.log,
            [
                "stream_create 1 flags 1",
                "malloc 4000012",
                "memcpy 4000012 kind 4 stream 1",
                "stream_create 2 flags 1",
                "malloc 4000012",
                "memcpy 4000012 kind 4 stream 2",
                // The saxpy needs both.
                "event_create 1 flags 2",
                "event_record 1 stream 2",
                "stream_wait_event 1 event 1 flags 0",
                "event_destroy 1",
                "launch saxpy grid 3907 1 1 block 256 1 1 shared 0 stream 1",
                "launch turn_blocks grid 3907 1 1 block 256 1 1 shared 1024 stream 1",
                "memcpy 4000012 kind 4 stream 1",
                "stream_synchronize 1",
                "free",
                "stream_synchronize 1",
                "free",
                "stream_synchronize 1",
            ]
        );
        assert_eq!(run.status, Some(0));
    }
}

#[test]
fn the_examples_kernels_compile_under_their_names() {
    let context = compiler::context();
    let program = lowered(&context, &app(), &options(Runtime::Cuda));
    let targets = crate::Target::parse_list("sm_90,gfx942,gfx1100").expect("targets");
    let compiler = crate::Compiler::builder().build();
    let compilation = compiler
        .compile(program.device(), &targets, crate::Emit::Asm)
        .expect("compiles");
    assert_eq!(compilation.artifacts.len(), 3);
    for artifact in &compilation.artifacts {
        let text = String::from_utf8_lossy(&artifact.bytes);
        for kernel in &program.program().kernels {
            assert!(text.contains(&kernel.name), "{}", kernel.name);
        }
    }
}

/// The check in the example finds a wrong element.
#[test]
fn the_example_fails_when_a_kernel_is_wrong() {
    let run = run(&app(), &options(Runtime::Cuda), &APP_KERNELS[..1], "");
    assert_eq!(run.status, Some(1));
    assert_eq!(run.errors, "");
}

#[test]
fn a_launch_that_fails_says_why_and_ends_the_program() {
    let run = run(&app(), &options(Runtime::Cuda), APP_KERNELS, "LaunchKernel=9");
    assert_eq!(
        run.errors,
        "gpulower: cannot launch saxpy: cudaErrorInvalidConfiguration (invalid configuration argument); grid 3907 x 1 x 1, \
         block 256 x 1 x 1, 0 bytes of dynamic shared memory\n"
    );
    assert_eq!(run.status, Some(1));
}

#[test]
fn every_call_that_fails_says_why_and_ends_the_program() {
    let source = program(
        "%n: index",
        "%u = memref.alloc() : memref<64xf32>
         %r = memref.cast %u : memref<64xf32> to memref<*xf32>
         gpu.set_default_device %status
         gpu.host_register %r : memref<*xf32>
         %s = gpu.alloc host_shared () : memref<64xf32>
         %zero = arith.constant 0.0 : f32
         gpu.memset %s, %zero : memref<64xf32>, f32
         %a = gpu.wait async
         %d, %b = gpu.alloc async [%a] () : memref<64xf32>
         %c = gpu.wait async
         %t = gpu.memcpy async [%b, %c] %d, %u : memref<64xf32>, memref<64xf32>
         gpu.wait [%t]
         gpu.launch_func @m::@k blocks in (%c1, %c1, %c1) threads in (%c64, %c1, %c1) args(%c2 : index)
         gpu.dealloc %d : memref<64xf32>
         gpu.host_unregister %r : memref<*xf32>",
    );
    let context = compiler::context();
    for runtime in [Runtime::Cuda, Runtime::Hip] {
        let program = lowered(&context, &source, &options(runtime));
        let mut harness = Harness::new(runtime);
        harness.add(&program, &[]);
        let prefix = runtime.prefix();
        assert_eq!(harness.run("").status, Some(0));
        for function in [
            "SetDevice",
            "HostRegister",
            "MallocManaged",
            "MemsetAsync",
            "GetDevice",
            "StreamCreateWithFlags",
            "Malloc",
            "EventCreateWithFlags",
            "EventRecord",
            "StreamWaitEvent",
            "EventDestroy",
            "MemcpyAsync",
            "StreamSynchronize",
            "Free",
            "HostUnregister",
        ] {
            let run = harness.run(function);
            assert_eq!(
                run.errors,
                format!("gpulower: {prefix}{function} failed: {prefix}ErrorMemoryAllocation (out of memory)\n")
            );
            assert_eq!(run.status, Some(1), "{function}");
        }
    }
}

#[test]
fn a_kernel_that_fails_is_named() {
    let source = program(
        "%n: index",
        "gpu.launch_func @m::@k blocks in (%c1, %c1, %c1) threads in (%c64, %c1, %c1) args(%c2 : index)",
    );
    let run = run(&source, &options(Runtime::Hip), &[], "StreamSynchronize");
    assert_eq!(
        run.errors,
        "gpulower: kernel k failed: hipErrorMemoryAllocation (out of memory)\n"
    );
    assert_eq!(run.status, Some(1));
}

#[test]
fn sizes_that_do_not_fit_are_not_cut_off() {
    for (size, shown) in [("4294967296", "4294967296"), ("-1", "-1")] {
        let source = program(
            "",
            &format!(
                "%constant = arith.constant {size} : i64
                 %memory = memref.alloca() : memref<i64>
                 memref.store %constant, %memory[] : memref<i64>
                 %large = memref.load %memory[] : memref<i64>
                 %one = arith.constant 1 : i64
                 gpu.launch_func @m::@k blocks in (%one, %large, %one) threads in (%one, %one, %one) : i64"
            ),
        );
        let run = run(&source, &options(Runtime::Cuda), &[], "");
        assert_eq!(
            run.errors,
            format!(
                "gpulower: cannot launch k: out of range (a size is negative or above 4294967295); grid 1 x {shown} x 1, \
                 block 1 x 1 x 1, 0 bytes of dynamic shared memory\n"
            )
        );
        assert_eq!(run.status, Some(1));
    }
}

/// Operations without tokens are finished when the next one starts.
#[test]
fn operations_without_tokens_wait() {
    let source = program(
        "%n: index",
        "%u = memref.alloc() : memref<64xf32>
         %d = gpu.alloc () : memref<64xf32>
         gpu.memcpy %d, %u : memref<64xf32>, memref<64xf32>
         gpu.launch_func @m::@k blocks in (%c1, %c2, %c3) threads in (%c64, %c1, %c1) args(%c2 : index)
         %t = gpu.wait async
         gpu.memcpy [%t] %u, %d : memref<64xf32>, memref<64xf32>
         gpu.dealloc %d : memref<64xf32>",
    );
    let run = run(&source, &options(Runtime::Cuda), &[], "");
    assert_eq!(
        run.log,
        [
            "malloc 256",
            "memcpy 256 kind 4 stream 0",
            "stream_synchronize 0",
            "launch k grid 1 2 3 block 64 1 1 shared 0 stream 0",
            "stream_synchronize 0",
            "stream_create 1 flags 1",
            "stream_synchronize 1",
            "memcpy 256 kind 4 stream 0",
            "stream_synchronize 0",
            "stream_synchronize 0",
            "free",
        ]
    );
    assert_eq!(run.status, Some(0));
}

/// Two users of one token run beside each other, and a token may come out of a loop.
#[test]
fn tokens_fork_join_and_go_round() {
    let source = program(
        "%n: index",
        "%t0 = gpu.wait async
         %t1 = gpu.launch_func async [%t0] @m::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%c1 : index)
         %t2 = gpu.launch_func async [%t1] @m::@k blocks in (%c2, %c1, %c1) threads in (%c1, %c1, %c1) args(%c1 : index)
         %t3 = gpu.launch_func async [%t1] @m::@k blocks in (%c3, %c1, %c1) threads in (%c1, %c1, %c1) args(%c1 : index)
         %t4 = gpu.wait async [%t2, %t3]
         %t5 = scf.for %i = %c1 to %c3 step %c1 iter_args(%t = %t4) -> (!gpu.async.token) {
           %next = gpu.launch_func async [%t] @m::@k blocks in (%c64, %c1, %c1) threads in (%c1, %c1, %c1) args(%i : index)
           scf.yield %next : !gpu.async.token
         }
         gpu.wait [%t5]",
    );
    let run = run(
        &source,
        &options(Runtime::Cuda),
        &[("k", "SAY(\"n = %ld\\n\", (long)INTEGER(0));")],
        "",
    );
    assert_eq!(
        run.log,
        [
            "stream_create 1 flags 1",
            "launch k grid 1 1 1 block 1 1 1 shared 0 stream 1",
            "n = 1",
            "stream_create 2 flags 1",
            "event_create 1 flags 2",
            "event_record 1 stream 1",
            "stream_wait_event 2 event 1 flags 0",
            "event_destroy 1",
            "launch k grid 2 1 1 block 1 1 1 shared 0 stream 2",
            "n = 1",
            "stream_create 3 flags 1",
            "event_create 2 flags 2",
            "event_record 2 stream 1",
            "stream_wait_event 3 event 2 flags 0",
            "event_destroy 2",
            "launch k grid 3 1 1 block 1 1 1 shared 0 stream 3",
            "n = 1",
            "event_create 3 flags 2",
            "event_record 3 stream 3",
            "stream_wait_event 2 event 3 flags 0",
            "event_destroy 3",
            "launch k grid 64 1 1 block 1 1 1 shared 0 stream 2",
            "n = 1",
            "launch k grid 64 1 1 block 1 1 1 shared 0 stream 2",
            "n = 2",
            "stream_synchronize 2",
        ]
    );
    assert_eq!(run.status, Some(0));
}

/// A program that starts any number of chains makes 32 streams.
#[test]
fn streams_come_from_a_pool() {
    let source = program(
        "%n: index",
        "%c100 = arith.constant 100 : index
         scf.for %i = %c1 to %c100 step %c1 {
           %t0 = gpu.wait async
           %t1 = gpu.launch_func async [%t0] @m::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%i : index)
           gpu.wait [%t1]
         }",
    );
    let run = run(&source, &options(Runtime::Cuda), &[], "");
    let count = |start: &str| run.log.iter().filter(|line| line.starts_with(start)).count();
    assert_eq!(
        (count("stream_create"), count("launch"), count("stream_destroy")),
        (32, 99, 0)
    );
}

const EVERY_KIND: &str = "%i: i1, %b: i8, %h: f16, %s: i32, %d: f64, %x: index, %v: vector<4xf32>, %z: complex<f32>, \
    %st: memref<4x5xf32, strided<[10, 1], offset: ?>>, %sc: memref<f32>";

#[test]
fn arguments_are_what_the_kernel_was_compiled_for() {
    let body = "%i = arith.constant true
         %b = arith.constant -3 : i8
         %h = arith.constant 1.5 : f16
         %s = arith.constant 7 : i32
         %d = arith.constant 2.25 : f64
         %v = arith.constant dense<[1.0, 2.0, 3.0, 4.0]> : vector<4xf32>
         %re = arith.constant 5.0 : f32
         %im = arith.constant 6.0 : f32
         %z = complex.create %re, %im : complex<f32>
         %m = memref.alloc() : memref<10x10xf32>
         %st = memref.subview %m[%c2, %c3] [4, 5] [1, 1] : memref<10x10xf32> to memref<4x5xf32, strided<[10, 1], offset: ?>>
         %sc = memref.alloc() : memref<f32>
         gpu.launch_func @m::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%i : i1, %b : i8, %h : f16, %s : i32, %d : f64, %c3 : index, %v : vector<4xf32>, %z : complex<f32>, %st : memref<4x5xf32, strided<[10, 1], offset: ?>>, %sc : memref<f32>)";
    let kernel = "float *v = arguments[6], *z = arguments[7];
        SAY(\"%d %d %x %d %g %ld\\n\", *(char *)arguments[0] & 1, *(signed char *)arguments[1],
            *(unsigned short *)arguments[2], *(int *)arguments[3], *(double *)arguments[4], (long)INTEGER(5));
        SAY(\"%g %g %g %g, %g %g\\n\", v[0], v[1], v[2], v[3], z[0], z[1]);
        SAY(\"%d %ld: %ld %ld, %ld %ld\\n\", POINTER(8) == POINTER(9), (long)INTEGER(10), (long)INTEGER(11),
            (long)INTEGER(12), (long)INTEGER(13), (long)INTEGER(14));
        SAY(\"%d %ld\\n\", POINTER(15) == POINTER(16), (long)INTEGER(17));";
    let run = run(&program(EVERY_KIND, body), &options(Runtime::Hip), &[("k", kernel)], "");
    assert_eq!(
        run.log[1..5],
        ["1 -3 3e00 7 2.25 3", "1 2 3 4, 5 6", "1 23: 4 5, 10 1", "1 0"],
        "{run:?}"
    );
    assert_eq!(run.status, Some(0));
}

/// The parameters of a kernel's PTX.
fn ptx_parameters(program: &HostProgram<'_>, compile: crate::Options) -> Vec<String> {
    let compiler = crate::Compiler::builder().options(compile).build();
    let targets = crate::Target::parse_list("sm_90").expect("a target");
    let compilation = compiler
        .compile(program.device(), &targets, crate::Emit::Ptx)
        .expect("compiles");
    let text = String::from_utf8_lossy(&compilation.artifacts[0].bytes).into_owned();
    let name = &program.program().kernels[0].name;
    let (_, rest) = text
        .split_once(&format!(".entry {name}("))
        .expect("the kernel under its new name");
    let (list, _) = rest.split_once(')').expect("its parameters");
    list.split(',')
        .map(|parameter| parameter.trim().to_owned())
        .filter(|parameter| !parameter.is_empty())
        .collect()
}

/// The arguments of a kernel's stub after the launch's own nine.
fn stub_arguments(program: &HostProgram<'_>) -> Vec<String> {
    let text = ir(program);
    let stub = &program.program().kernels[0].stub;
    let (_, rest) = text
        .split_once(&format!("define hidden void @{stub}("))
        .expect("a stub");
    let (list, _) = rest.split_once(") {").expect("its arguments");
    let mut depth = 0_i32;
    let arguments = list.split(|character| {
        depth += match character {
            '<' | '{' => 1,
            '>' | '}' => -1,
            _ => 0,
        };
        character == ',' && depth == 0
    });
    let kind = |argument: &str| argument.trim().rsplit_once(' ').map_or("", |(kind, _)| kind).to_owned();
    arguments.map(kind).skip(9).collect()
}

/// Host and device code are lowered apart, and have to agree on what a kernel takes.
#[test]
fn stubs_pass_what_kernels_take() {
    let cases = [
        (EVERY_KIND.to_owned(), &[][..]),
        (
            "%m: memref<4x5xf32>, %x: index".to_owned(),
            &[("bare-pointers", "true")],
        ),
        (
            "%m: memref<4x5xf32>, %x: index, %i: i64".to_owned(),
            &[("index-bitwidth", "32")],
        ),
    ];
    let context = compiler::context();
    for (parameters, flags) in cases {
        let outer = "func.func @main(PARAMETERS) {
            %c1 = arith.constant 1 : index
            gpu.launch_func @m::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(ARGUMENTS)
            return
          }"
        .replace("PARAMETERS", &parameters)
        .replace("ARGUMENTS", &parameters.replace(": ", " : "));
        let source = format!(
            "module attributes {{gpu.container_module}} {{
               gpu.module @m {{ gpu.func @k({parameters}) kernel {{ gpu.return }} }} {outer} }}"
        );
        let mut compile = crate::Options::default();
        let mut host = options(Runtime::Cuda);
        for (name, value) in flags {
            compile.set(name, value).expect("an option");
            match *name {
                "bare-pointers" => host.bare_pointers = true,
                _ => host.index_bitwidth = 32,
            }
        }
        let program = lowered(&context, &source, &host);
        let taken = ptx_parameters(&program, compile);
        let passed = stub_arguments(&program);
        assert_eq!(taken.len(), passed.len(), "{taken:?} {passed:?}");
        for (taken, passed) in taken.iter().zip(&passed) {
            let bytes = match passed.as_str() {
                "i1" | "i8" => ".u8 ",
                "i32" => ".u32 ",
                "i64" => ".u64 ",
                "ptr" => ".u64 .ptr ",
                "double" => ".f64 ",
                "half" | "<4 x float>" | "{ float, float }" => ".b8 ",
                other => panic!("{other} in {passed:?}"),
            };
            assert!(taken.contains(bytes), "{passed} is passed for {taken}");
        }
    }
}

#[test]
fn bare_pointers_and_narrow_indices() {
    let body = "%m = memref.alloc() : memref<4x5xf32>
         gpu.launch_func @m::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%m : memref<4x5xf32>, %c3 : index)";
    let source = program("%m: memref<4x5xf32>, %x: index", body);
    let mut bare = options(Runtime::Cuda);
    bare.bare_pointers = true;
    let kernel = "SAY(\"%d %ld\\n\", POINTER(0) != 0, (long)INTEGER(1));";
    assert_eq!(run(&source, &bare, &[("k", kernel)], "").log[1], "1 3");

    let mut narrow = options(Runtime::Cuda);
    narrow.index_bitwidth = 32;
    let context = compiler::context();
    let kinds = stub_arguments(&lowered(&context, &source, &narrow));
    assert_eq!(kinds, ["ptr", "ptr", "i32", "i32", "i32", "i32", "i32", "i32"]);

    let dynamic = program(
        "%m: memref<?xf32>",
        "%m = memref.alloc(%c3) : memref<?xf32>
         gpu.launch_func @m::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%m : memref<?xf32>)",
    );
    let error = refusal(&dynamic, &bare);
    assert!(
        error
            .to_string()
            .contains("cannot pass 'memref<?xf32>' as a bare pointer: only memrefs of static shape"),
        "{error}"
    );
    assert!(
        error.location().is_some_and(|place| place.file() == Some("test.mlir")),
        "{error:?}"
    );

    let unranked = dynamic
        .replace("%m: memref<?xf32>", "%m: memref<*xf32>")
        .replace("args(%m : memref<?xf32>)", "args(%u : memref<*xf32>)")
        .replace(
            "gpu.launch_func",
            "%u = memref.cast %m : memref<?xf32> to memref<*xf32>\n gpu.launch_func",
        );
    let error = refusal(&unranked, &options(Runtime::Cuda));
    assert!(
        error
            .to_string()
            .contains("cannot pass 'memref<*xf32>' to a kernel, for which the descriptor is out of reach"),
        "{error}"
    );
}

#[test]
fn clusters_and_much_shared_memory_are_asked_for() {
    let source = program(
        "%n: index",
        "%shared = arith.constant 100000 : i32
         %c16 = arith.constant 16 : index
         gpu.launch_func @m::@k clusters in (%c2, %c1, %c3) blocks in (%c64, %c1, %c3) threads in (%c64, %c2, %c1) dynamic_shared_memory_size %shared args(%c2 : index)
         gpu.launch_func @m::@k clusters in (%c16, %c1, %c1) blocks in (%c64, %c1, %c1) threads in (%c64, %c1, %c1) args(%c3 : index)
         gpu.launch_func @m::@k blocks in (%c1, %c1, %c1) threads in (%c64, %c1, %c1) args(%c1 : index)",
    );
    let kernel = &[("k", "SAY(\"n = %ld\\n\", (long)INTEGER(0));")];
    let run = run(&source, &options(Runtime::Cuda), kernel, "");
    assert_eq!(
        run.log,
        [
            "func_set_attribute 8 = 100000",
            "attribute 4: 2 1 3",
            "launch k grid 64 1 3 block 64 2 1 shared 100000 stream 0",
            "n = 2",
            "stream_synchronize 0",
            "func_set_attribute 14 = 1",
            "attribute 4: 16 1 1",
            "launch k grid 64 1 1 block 64 1 1 shared 0 stream 0",
            "n = 3",
            "stream_synchronize 0",
            "launch k grid 1 1 1 block 64 1 1 shared 0 stream 0",
            "n = 1",
            "stream_synchronize 0",
        ]
    );
    let error = refusal(&source, &options(Runtime::Hip));
    assert_eq!(
        error.to_string(),
        "the kernel k is launched with clusters of blocks, which AMD's GPUs do not have"
    );
    assert!(
        error.location().is_some_and(|place| place.file() == Some("test.mlir")),
        "{error:?}"
    );
}

#[test]
fn every_width_can_be_set() {
    let set = |kind: &str, value: &str, index: usize| {
        format!(
            "%v{index} = arith.constant {value} : {kind}
             %d{index} = gpu.alloc () : memref<5x{kind}>
             gpu.memset %d{index}, %v{index} : memref<5x{kind}>, {kind}
             gpu.launch_func @m::@k{index} blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%d{index} : memref<5x{kind}>)\n"
        )
    };
    let kinds = [
        ("i8", "-1"),
        ("i16", "258"),
        ("f32", "1.0"),
        ("f64", "2.5"),
        ("i64", "0"),
        ("i32", "16843009"),
        ("bf16", "1.0"),
    ];
    let mut body = String::new();
    let mut functions = String::new();
    let mut kernels = Vec::new();
    for (index, (kind, value)) in kinds.into_iter().enumerate() {
        body += &set(kind, value, index);
        let _ = write!(
            functions,
            "gpu.func @k{index}(%m: memref<5x{kind}>) kernel {{ gpu.return }} "
        );
        let bytes = match kind {
            "i8" => 1,
            "i16" | "bf16" => 2,
            "i64" | "f64" => 8,
            _ => 4,
        };
        let print = format!(
            "for (int i = 0; i < {}; ++i) printf(\"%02x\", (unsigned char)POINTER(1)[i]); SAY(\"\\n\");",
            5 * bytes
        );
        kernels.push((format!("k{index}"), print));
    }
    let source = program("", &body).replace("gpu.func @k() kernel { gpu.return }", &functions);
    let kernels: Vec<(&str, &str)> = kernels
        .iter()
        .map(|(name, body)| (name.as_str(), body.as_str()))
        .collect();
    let run = run(&source, &options(Runtime::Cuda), &kernels, "");
    let bytes: Vec<&str> = run
        .log
        .iter()
        .filter(|line| line.bytes().all(|byte| byte.is_ascii_hexdigit()) && line.len() >= 10)
        .map(String::as_str)
        .collect();
    assert_eq!(
        bytes,
        [
            "ff".repeat(5),
            "0201".repeat(5),
            "0000803f".repeat(5),
            "0000000000000440".repeat(5),
            "00".repeat(40),
            "01".repeat(20),
            "803f".repeat(5),
        ],
        "{run:?}"
    );
    // Equal bytes are one call.
    assert!(run.log.contains(&"memset 1 20 stream 0".to_owned()), "{run:?}");
}

#[test]
fn host_memory_is_registered_with_its_size() {
    let source = program(
        "%n: index",
        "%m = memref.alloc() : memref<10x10xf32>
         %rows = memref.subview %m[%c2, 0] [3, 10] [1, 1] : memref<10x10xf32> to memref<3x10xf32, strided<[10, 1], offset: ?>>
         %r = memref.cast %rows : memref<3x10xf32, strided<[10, 1], offset: ?>> to memref<*xf32>
         gpu.host_register %r : memref<*xf32>
         gpu.host_unregister %r : memref<*xf32>
         gpu.launch_func @m::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%c1 : index)
         %part = memref.subview %m[%c2, 0] [3, 5] [1, 1] : memref<10x10xf32> to memref<3x5xf32, strided<[10, 1], offset: ?>>
         %p = memref.cast %part : memref<3x5xf32, strided<[10, 1], offset: ?>> to memref<*xf32>
         gpu.host_register %p : memref<*xf32>",
    );
    let run = run(&source, &options(Runtime::Cuda), &[], "");
    assert_eq!(run.log[..2], ["host_register 120 flags 0", "host_unregister"]);
    assert_eq!(
        run.errors,
        "gpulower: cannot register host memory: the elements of the memref do not follow each other\n"
    );
    assert_eq!(run.status, Some(1));
}

/// Part of a memref is copied from where it starts.
#[test]
fn copies_start_at_the_offset() {
    let source = program(
        "%n: memref<3x10xi32>",
        "%m = memref.alloc() : memref<10x10xi32>
         %nine = arith.constant 9 : i32
         memref.store %nine, %m[%c2, %c3] : memref<10x10xi32>
         %rows = memref.subview %m[%c2, 0] [3, 10] [1, 1] : memref<10x10xi32> to memref<3x10xi32, strided<[10, 1], offset: ?>>
         %d = gpu.alloc () : memref<3x10xi32>
         gpu.memcpy %d, %rows : memref<3x10xi32>, memref<3x10xi32, strided<[10, 1], offset: ?>>
         gpu.launch_func @m::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%d : memref<3x10xi32>)",
    );
    let run = run(
        &source,
        &options(Runtime::Cuda),
        &[("k", "SAY(\"%d\\n\", ((int *)POINTER(1))[3]);")],
        "",
    );
    assert!(run.log.contains(&"9".to_owned()), "{run:?}");

    let part = source
        .replace("[3, 10] [1, 1]", "[3, 5] [1, 1]")
        .replace("memref<3x10xi32, strided", "memref<3x5xi32, strided")
        .replace("memref<3x10xi32>", "memref<3x5xi32>");
    let error = refusal(&part, &options(Runtime::Cuda));
    assert!(
        error
            .to_string()
            .contains("whose elements do not follow each other; copy it to a contiguous memref before"),
        "{error}"
    );
}

#[test]
fn gpu_launch_is_outlined_and_its_kernel_named() {
    let source = "func.func @main() -> i32 {
        %c1 = arith.constant 1 : index
        %c8 = arith.constant 8 : index
        %d = gpu.alloc () : memref<8xi32>
        gpu.launch blocks(%a, %b, %c) in (%ga = %c1, %gb = %c1, %gc = %c1)
                   threads(%x, %y, %z) in (%tx = %c8, %ty = %c1, %tz = %c1) {
          %v = arith.index_cast %x : index to i32
          memref.store %v, %d[%x] : memref<8xi32>
          gpu.terminator
        }
        %status = arith.constant 0 : i32
        return %status : i32
      }";
    let context = compiler::context();
    let program = lowered(&context, source, &options(Runtime::Cuda));
    let kernels = &program.program().kernels;
    assert_eq!(kernels.len(), 1);
    assert_eq!(kernels[0].source_name, "main_kernel");
    assert!(
        kernels[0].name.starts_with("main_kernel__") && kernels[0].name.len() == 25,
        "{kernels:?}"
    );
    let device = program.device().as_operation().to_string();
    assert!(device.contains(&format!("gpu.func @{}(", kernels[0].name)), "{device}");
    let mut harness = Harness::new(Runtime::Cuda);
    harness.add(&program, &[]);
    let run = harness.run("");
    assert_eq!(
        run.log[1],
        "launch main_kernel grid 1 1 1 block 8 1 1 shared 0 stream 0"
    );
}

const TWO_MODULES: &str = "module attributes {gpu.container_module} {
  gpu.module @a { gpu.func @k(%x: i32) kernel { gpu.return } gpu.func @unused() kernel { gpu.return } }
  gpu.module @b { gpu.func @k(%x: i64) kernel { gpu.return } memref.global @state : memref<3xi16> = uninitialized }
  gpu.module @c { gpu.func @k(%x: i32) kernel { gpu.return } gpu.func @unused() kernel { gpu.return } }
  gpu.module @d { gpu.func @k(%x: i64) kernel { gpu.return } memref.global @state : memref<3xi16> = uninitialized
                  memref.global \"private\" @own : memref<3xi16> = uninitialized
                  memref.global @tile : memref<3xi16, #gpu.address_space<workgroup>> = uninitialized
                  llvm.mlir.global external constant @table(7 : i32) {addr_space = 4 : i32} : i32
                  llvm.mlir.global external @elsewhere() {addr_space = 1 : i32} : i32 }
  func.func private @helper() { return }
  func.func @FUNCTION() -> i32 {
    %c1 = arith.constant 1 : index
    %s = arith.constant 0 : i32
    %l = arith.constant 0 : i64
    func.call @helper() : () -> ()
    gpu.launch_func @a::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%s : i32)
    gpu.launch_func @b::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%l : i64)
    gpu.launch_func @c::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%s : i32)
    gpu.launch_func @d::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%l : i64)
    return %s : i32
  }
}";

#[test]
fn names_are_unique_and_identical_modules_one() {
    let context = compiler::context();
    let source = TWO_MODULES.replace("FUNCTION", "main");
    let first = lowered(&context, &source, &options(Runtime::Cuda));
    let program = first.program();
    let modules: Vec<(&str, &[String])> = program
        .modules
        .iter()
        .map(|module| (module.symbol.as_str(), module.aliases.as_slice()))
        .collect();
    // b and d have state of their own.
    assert_eq!(modules, [("a", &["c".to_owned()][..]), ("b", &[]), ("d", &[])]);
    let names: Vec<&str> = program.kernels.iter().map(|kernel| kernel.name.as_str()).collect();
    assert_eq!(names.len(), 3);
    let mut distinct = names.clone();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(distinct.len(), 3, "{names:?}");
    let variables: Vec<(usize, &str, u64, bool)> = program
        .variables
        .iter()
        .map(|variable| {
            (
                variable.module,
                variable.source_name.as_str(),
                variable.size,
                variable.constant,
            )
        })
        .collect();
    assert_eq!(
        variables,
        [(1, "state", 6, false), (2, "state", 6, false), (2, "table", 4, true)]
    );
    // A kernel that is not launched is renamed too: the link sees it.
    let device = first.device().as_operation().to_string();
    assert!(
        device.contains("gpu.func @unused__") && !device.contains("@unused("),
        "{device}"
    );
    let text = ir(&first);
    for variable in &program.variables {
        assert!(
            text.contains(&format!(
                "@{} = hidden global [{} x i8] zeroinitializer, align 16",
                variable.shadow, variable.size
            )),
            "{text}"
        );
    }

    // The same source again gives the same names, another unit other ones.
    assert_eq!(program, lowered(&context, &source, &options(Runtime::Cuda)).program());
    let mut other = options(Runtime::Cuda);
    other.unit = "other.mlir".to_owned();
    assert_ne!(
        program.kernels[0].name,
        lowered(&context, &source, &other).program().kernels[0].name
    );
}

#[test]
fn several_files_become_one_program() {
    let context = compiler::context();
    let main = lowered(
        &context,
        &TWO_MODULES.replace("FUNCTION", "main"),
        &options(Runtime::Hip),
    );
    let library = lowered(
        &context,
        &TWO_MODULES.replace("FUNCTION", "library"),
        &options(Runtime::Hip),
    );
    let mut harness = Harness::new(Runtime::Hip);
    harness.add(&main, &[]);
    harness.add(&library, &[]);
    let run = harness.run("");
    assert_eq!(
        run.log.iter().filter(|line| line.starts_with("launch k ")).count(),
        4,
        "{run:?}"
    );
}

/// LLVM's `two-modules.mlir`, compiled before it is run: both kernels have one name.
#[test]
fn whoever_runs_a_program_tells_compiled_kernels_of_one_name_apart() {
    const TWO: &str = r#"module attributes {gpu.container_module} {
  gpu.binary @a [#gpu.object<#nvvm.target<chip = "sm_90">, "a">]
  gpu.binary @b [#gpu.object<#nvvm.target<chip = "sm_90">, "b">]
  func.func @main() {
    %c1 = arith.constant 1 : index
    gpu.launch_func @a::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
    gpu.launch_func @b::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
    return
  }
}"#;
    let context = compiler::context();
    let mut run = options(Runtime::Cuda);
    run.support = Support::External;
    run.modules_apart = true;
    let program = lowered(&context, TWO, &run);
    let kernels = &program.program().kernels;
    assert_eq!(
        kernels.iter().map(|kernel| kernel.name.as_str()).collect::<Vec<_>>(),
        ["k", "k"]
    );
    assert_ne!(kernels[0].handle, kernels[1].handle);
    let text = ir(&program);
    for kernel in kernels {
        assert!(text.contains(&format!("call void @{}(", kernel.stub)), "{text}");
        assert!(
            text.contains(&format!("define hidden void @{}(", kernel.stub)),
            "{text}"
        );
    }
    // Linked, both would be found by that name.
    assert!(
        refusal(TWO, &options(Runtime::Cuda))
            .to_string()
            .contains("k is defined by the device modules a and b")
    );
}

#[test]
fn names_can_be_kept_where_they_are_unique() {
    let context = compiler::context();
    let mut keep = options(Runtime::Hip);
    keep.names = Names::Keep;
    let one = lowered(&context, &app(), &keep);
    let kernel = &one.program().kernels[0];
    assert_eq!(
        (kernel.name.as_str(), kernel.handle.as_str(), kernel.stub.as_str()),
        ("saxpy", "saxpy", "__device_stub__saxpy")
    );
    let text = ir(&one);
    assert!(
        text.contains("@saxpy = hidden constant ptr @__device_stub__saxpy, align 8"),
        "{text}"
    );

    let error = refusal(&TWO_MODULES.replace("FUNCTION", "main"), &keep);
    assert_eq!(
        error.to_string(),
        "k is defined by the device modules a and b, which are linked into one program; rename one of them, do not ask for \
         the names to be kept, or, where they were compiled before, keep them as gpu.modules or export a program that \
         registers itself"
    );
    let error = refusal(&app().replace("@main()", "@saxpy()"), &keep);
    assert_eq!(
        error.to_string(),
        "the host code defines saxpy, which has to stand for the kernel saxpy; rename it"
    );
    assert!(
        error.location().is_some_and(|place| place.file() == Some("test.mlir")),
        "{error:?}"
    );
}

/// Code that MLIR's own gpu-to-llvm has lowered, with kernels that are compiled.
#[test]
fn lowered_code_is_taken_as_it_is() {
    let source = "module attributes {gpu.container_module} {
        gpu.binary @m [#gpu.object<#nvvm.target, bin = \"image\">]
        llvm.func @mgpuStreamCreate() -> !llvm.ptr
        llvm.func @mgpuStreamSynchronize(!llvm.ptr)
        llvm.func @mgpuStreamDestroy(!llvm.ptr)
        llvm.func @main() -> i32 {
          %one = llvm.mlir.constant(1 : index) : i64
          %zero = llvm.mlir.constant(0 : i32) : i32
          %s = llvm.call @mgpuStreamCreate() : () -> !llvm.ptr
          gpu.launch_func <%s : !llvm.ptr> @m::@k blocks in (%one, %one, %one) threads in (%one, %one, %one) : i64 args(%one : i64)
          llvm.call @mgpuStreamSynchronize(%s) : (!llvm.ptr) -> ()
          llvm.call @mgpuStreamDestroy(%s) : (!llvm.ptr) -> ()
          llvm.return %zero : i32
        }
      }";
    let context = compiler::context();
    let program = lowered(&context, source, &options(Runtime::Cuda));
    let kernel = &program.program().kernels[0];
    assert_eq!((kernel.name.as_str(), kernel.stub.as_str()), ("k", "__device_stub__k"));
    assert!(program.program().modules[0].compiled);
    assert!(program.device().as_operation().to_string().contains("bin = \"image\""));
    let mut harness = Harness::new(Runtime::Cuda);
    harness.add(&program, &[]);
    let run = harness.run("");
    assert_eq!(
        run.log,
        [
            "stream_create 1 flags 1",
            "launch k grid 1 1 1 block 1 1 1 shared 0 stream 1",
            "stream_synchronize 1"
        ]
    );
}

#[test]
fn both_hosts_are_compiled_for() {
    let context = compiler::context();
    let mut arm = options(Runtime::Cuda);
    arm.triple = "aarch64-unknown-linux-gnu".parse().expect("a host");
    let text = ir(&lowered(&context, &app(), &arm));
    assert!(text.contains("target triple = \"aarch64-unknown-linux-gnu\""), "{text}");
    assert!(text.contains("target datalayout = \"e-m:e-"), "{text}");
    assert!(
        text.contains("declare i32 @cudaLaunchKernel(ptr, i64, i64, i64, i64, ptr, i64, ptr)"),
        "{text}"
    );
    let folder = tempfile::tempdir().expect("a folder");
    object(folder.path(), "arm", &lowered(&context, &app(), &arm));

    let text = ir(&lowered(&context, &app(), &options(Runtime::Cuda)));
    assert!(
        text.contains("declare i32 @cudaLaunchKernel(ptr, i64, i32, i64, i32, ptr, i64, ptr)"),
        "{text}"
    );
    assert!(text.contains("i128:128"), "the data layout of LLVM 22: {text}");
}

/// Host code needs no runtime library of MLIR's.
#[test]
fn host_operations_of_many_dialects_are_lowered() {
    let source = program(
        "%n: index",
        "%x = func.call @report() : () -> index
         %up = arith.ceildivui %x, %c3 : index
         %m = memref.alloc(%x) : memref<?x8xf32>
         %half = memref.subview %m[0, 0] [%up, 4] [1, 2] : memref<?x8xf32> to memref<?x4xf32, strided<[8, 2]>>
         %t = memref.alloc(%up) : memref<?x4xf32>
         memref.copy %half, %t : memref<?x4xf32, strided<[8, 2]>> to memref<?x4xf32>
         %z = arith.constant 0.0 : f32
         affine.for %i = 0 to 4 { affine.store %z, %t[%i, %i] : memref<?x4xf32> }
         scf.parallel (%i) = (%c1) to (%up) step (%c1) { memref.store %z, %t[%i, %c1] : memref<?x4xf32> }
         %v = vector.transfer_read %t[%c1, %c1], %z : memref<?x4xf32>, vector<4xf32>
         %sum = vector.reduction <add>, %v : vector<4xf32> into f32
         %c = complex.create %sum, %z : complex<f32>
         %abs = complex.abs %c : complex<f32>
         %idx = index.ceildivs %up, %c2
         cf.assert %true, \"never\"
         %far = gpu.alloc (%x) : memref<?x4xf32, 1>
         %near = memref.memory_space_cast %far : memref<?x4xf32, 1> to memref<?x4xf32>
         gpu.memcpy %near, %t : memref<?x4xf32>, memref<?x4xf32>
         memref.store %abs, %t[%idx, %c1] : memref<?x4xf32>
         gpu.memcpy %t, %t : memref<?x4xf32>, memref<?x4xf32>
         gpu.launch_func @m::@k blocks in (%up, %c1, %c1) threads in (%c1, %c1, %c1) args(%idx : index)",
    )
    .replace(
        "func.func @main() -> i32 {",
        "func.func private @report() -> index\n func.func @main() -> i32 {\n %true = arith.constant true",
    );
    let context = compiler::context();
    let program = lowered(&context, &source, &options(Runtime::Cuda));
    assert_eq!(
        program.program().external_functions,
        ["dprintf", "exit", "malloc", "report"]
    );
}

#[test]
fn host_math_and_outside_functions_are_listed() {
    let context = compiler::context();
    let source = program(
        "%n: index",
        "%x = func.call @report() : () -> f32
         %e = math.erf %x : f32
         %m = memref.alloc() : memref<f32>
         memref.store %e, %m[] : memref<f32>
         gpu.memcpy %m, %m : memref<f32>, memref<f32>
         gpu.launch_func @m::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%c1 : index)",
    )
    .replace(
        "func.func @main",
        "func.func private @report() -> f32\n func.func @main",
    );
    let program = lowered(&context, &source, &options(Runtime::Cuda));
    assert_eq!(
        program.program().external_functions,
        ["dprintf", "erff", "exit", "malloc", "report"]
    );
}

#[test]
fn what_cannot_be_exported_is_refused() {
    let cuda = options(Runtime::Cuda);
    assert_eq!(
        refusal("func.func @main() { return }", &cuda).to_string(),
        "the module has no host code that launches a kernel: expected gpu.launch or gpu.launch_func in a func.func (kernels \
         alone are compiled with `gpulower compile`)"
    );
    let launch = "gpu.launch_func @m::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%c1 : index)";
    let holding = |inner: &str| {
        program("%n: index", launch).replacen("gpu.module @m", &format!("module {{ {inner} }} gpu.module @m"), 1)
    };
    // One that holds nothing, or nothing but such ones, is what passes leave behind.
    lowered(&compiler::context(), &holding("module { }"), &cuda);
    let nested = holding("func.func private @inner()");
    assert!(
        refusal(&nested, &cuda)
            .to_string()
            .starts_with("a module inside of the host's module cannot be exported")
    );
    let error = refusal(
        &program(
            "%n: index",
            &format!("%id = gpu.thread_id x\n func.call @use(%id) : (index) -> ()\n {launch}"),
        )
        .replace("func.func @main", "func.func private @use(index)\n func.func @main"),
        &cuda,
    );
    assert_eq!(
        error.to_string(),
        "cannot lower gpu.thread_id in host code: the first has the types () -> (index); on the host the gpu dialect's \
         launches, allocations, copies, waits and host registrations are known"
    );
    assert!(
        error.location().is_some_and(|place| place.file() == Some("test.mlir")),
        "{error:?}"
    );
    let error = refusal(
        &program(
            "%n: index",
            &format!(
                "%d = gpu.alloc () : memref<4xi4>\n %v = arith.constant 1 : i4\n gpu.memset %d, %v : memref<4xi4>, i4\n {launch}"
            ),
        ),
        &cuda,
    );
    assert!(
        error
            .to_string()
            .contains("cannot set elements of type 'i4': only numbers of 8, 16, 32 or 64 bits can be set"),
        "{error}"
    );
}

/// MLIR refuses such a launch when it reads it, so it has to be made.
#[test]
fn launches_of_nothing_are_refused() {
    let context = compiler::context();
    for (reference, message) in [
        (
            "@other::@k",
            "@other::@k is launched, and there is no gpu.module or gpu.binary of that name; there is @m",
        ),
        (
            "@m::@other",
            "@m::@other is launched, and its gpu.module has no kernel of that name; there is k",
        ),
    ] {
        let source = program(
            "%n: index",
            "gpu.launch_func @m::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%c1 : index)",
        );
        let module = compiler::parse(&context, "test.mlir", source.as_bytes()).expect("parses");
        for operation in operations(&module) {
            if name_of(&operation) == "gpu.launch_func" {
                let attribute = Attribute::parse(&context, reference).expect("a reference");
                set_attribute(operation, "kernel", attribute);
            }
        }
        let error = lower(&module, &options(Runtime::Cuda)).expect_err("refused");
        assert_eq!(error.to_string(), message);
        assert!(
            error.location().is_some_and(|place| place.file() == Some("test.mlir")),
            "{error:?}"
        );
    }
}
