//! Worker processes: the same results as in process, and crashes, limits and cancellation as errors of their own request.

use std::{
    fmt::Write,
    fs,
    path::Path,
    process::Command,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use gpulower::{
    Artifact, CancellationToken, Checkpoint, Compilation, Compiler, CompilerBuilder, Emit, ErrorKind, Failure,
    Isolation, Library, Options, Search, Stage, StageListener, Target, Toolkit, Worker,
    jit::{Program, ProgramOptions},
    offload::{ExportForm, ExportOptions, export_source},
    session::JitSession,
};

use super::support::{Workshop, cuda, example, llvm_program};

const SAXPY: &str = "gpu.module @saxpy { gpu.func @saxpy(%p: memref<?xf32>, %a: f32) kernel {
      %i = gpu.global_id x
      %x = memref.load %p[%i] : memref<?xf32>
      %y = arith.mulf %x, %a : f32
      memref.store %y, %p[%i] : memref<?xf32>
      gpu.return } }";

fn program() -> Worker {
    Worker::program(env!("CARGO_BIN_EXE_gpulower")).expect("an absolute path")
}

fn toolkit() -> Toolkit {
    Toolkit::discover(&Search::default().with_cuda(cuda()))
}

fn isolated() -> Options {
    Options {
        isolation: Isolation::Worker,
        ..Options::default()
    }
}

fn builder(options: Options) -> CompilerBuilder {
    Compiler::builder()
        .options(options)
        .toolkit(toolkit())
        .worker(program())
        .threads(2)
}

fn compile(compiler: &Compiler, source: &str, targets: &str, emit: Emit) -> Result<Compilation, Failure> {
    let targets = match targets {
        "" => Vec::new(),
        targets => Target::parse_list(targets).expect("targets"),
    };
    compiler.compile_source("k.mlir", source.as_bytes(), &targets, emit)
}

fn saxpy(compiler: &Compiler) -> Vec<u8> {
    compile(compiler, SAXPY, "sm_90", Emit::Ptx)
        .expect("compiles")
        .artifacts
        .remove(0)
        .bytes
}

/// One kernel with so many operations that LLVM is busy for a good while.
fn large(operations: u32) -> String {
    let mut text = String::from(
        "gpu.module @large { gpu.func @large(%p: memref<?xf32>) kernel {\n%i = gpu.global_id x\n\
         %v0 = memref.load %p[%i] : memref<?xf32>\n",
    );
    for index in 0..operations {
        let _ = writeln!(
            text,
            "%i{index} = arith.constant {index} : index\n%l{index} = memref.load %p[%i{index}] : memref<?xf32>\n\
             %m{index} = arith.mulf %v{index}, %l{index} : f32\n%v{next} = math.sin %m{index} : f32\n\
             memref.store %v{next}, %p[%i{index}] : memref<?xf32>",
            next = index + 1
        );
    }
    let _ = writeln!(
        text,
        "memref.store %v{operations}, %p[%i] : memref<?xf32>\ngpu.return }} }}"
    );
    text
}

/// Whether a worker carries out a request: a thread of this name does.
fn busy(worker: u32) -> bool {
    let tasks = fs::read_dir(format!("/proc/{worker}/task"));
    tasks.into_iter().flatten().flatten().any(|task| {
        let name = fs::read_to_string(task.path().join("comm")).unwrap_or_default();
        // The kernel keeps 15 characters.
        name.trim() == "gpulower-reques"
    })
}

/// Waits until a worker has begun, and gives its process id.
fn busy_worker(compiler: &Compiler) -> u32 {
    loop {
        if let Some(id) = compiler.worker_ids().into_iter().find(|id| busy(*id)) {
            return id;
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// Waits until no worker is busy: the thread of a request lives a little longer than its answer needs.
fn wait_until_idle(compiler: &Compiler) {
    let started = Instant::now();
    while compiler.worker_ids().into_iter().any(busy) {
        assert!(started.elapsed() < Duration::from_secs(60), "the worker has answered");
        thread::sleep(Duration::from_millis(1));
    }
}

fn send_signal(signal: &str, process: u32) {
    let kill = std::process::Command::new("kill")
        .args([&format!("-{signal}"), &process.to_string()])
        .output();
    kill.expect("kill runs");
}

fn gone(process: u32) -> bool {
    !Path::new(&format!("/proc/{process}")).exists()
}

fn same(one: &[Artifact], other: &[Artifact]) {
    assert_eq!(one.len(), other.len());
    for (one, other) in one.iter().zip(other) {
        let name = format!("{} for {}", one.module, one.target_names());
        assert_eq!((&one.module, one.format), (&other.module, other.format));
        assert!(one.bytes == other.bytes, "{name} differs");
        assert_eq!(one.warnings, other.warnings, "{name}");
        assert_eq!(one.decisions, other.decisions, "{name}");
        assert_eq!(one.signatures, other.signatures, "{name}");
        let resources = |artifact: &Artifact| format!("{:?}", artifact.images);
        assert_eq!(resources(one), resources(other), "{name}");
    }
}

#[test]
fn every_example_gives_the_same_bytes_as_in_process() {
    let here = builder(Options::default()).build();
    let there = builder(isolated()).build();
    let mut compared = 0;
    for entry in fs::read_dir(example("")).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|extension| extension != "mlir") {
            continue;
        }
        let source = fs::read_to_string(&path).expect("read");
        let targets = source
            .lines()
            .find_map(|line| line.trim().strip_prefix("// gpulower-targets:"))
            .map_or("sm_90,gfx942", str::trim)
            .split([',', ' '])
            .filter(|target| !target.is_empty())
            .collect::<Vec<_>>()
            .join(",");
        let mut options = Options::default();
        for line in source.lines() {
            if let Some(library) = line.trim().strip_prefix("// gpulower-link:") {
                options.libraries.push(Library::File(example(library.trim()).into()));
            }
        }
        let with = |compiler: &Compiler, isolation| {
            let options = Options {
                isolation,
                ..options.clone()
            };
            let name = path.display().to_string();
            let targets = Target::parse_list(&targets).expect("targets");
            let compiler = if options.libraries.is_empty() {
                compiler.with_cancellation(&CancellationToken::new())
            } else {
                compiler.to_builder().options(options).build()
            };
            compiler.compile_source(&name, source.as_bytes(), &targets, Emit::Binary)
        };
        let (one, other) = (with(&here, Isolation::InProcess), with(&there, Isolation::Worker));
        match (one, other) {
            (Ok(one), Ok(other)) => same(&one.artifacts, &other.artifacts),
            (Err(one), Err(other)) => assert_eq!(one.to_string(), other.to_string()),
            (one, other) => panic!("{}: {}, {}", path.display(), one.is_ok(), other.is_ok()),
        }
        compared += 1;
    }
    assert!(compared > 8, "{compared} examples");
    assert!(!there.worker_ids().is_empty() && there.worker_ids().len() <= 2);
}

#[test]
fn every_kind_of_input_and_format_is_the_same() {
    let here = builder(Options::default()).build();
    let there = builder(isolated()).build();
    let llvm = compile(&here, SAXPY, "sm_90", Emit::Llvm)
        .expect("compiles")
        .artifacts
        .remove(0)
        .bytes;
    let ptx = saxpy(&here);
    let both = |name: &str, bytes: &[u8], targets: &str, emit: Emit| {
        let targets = Target::parse_list(targets).expect("targets");
        let one = here.compile_source(name, bytes, &targets, emit).expect("compiles");
        let other = there.compile_source(name, bytes, &targets, emit).expect("compiles");
        same(&one.artifacts, &other.artifacts);
    };
    both("k.ll", &llvm, "sm_90", Emit::Cubin);
    both("k.ptx", &ptx, "sm_90", Emit::Cubin);
    for emit in [Emit::Mlir, Emit::Bitcode, Emit::Asm, Emit::Object, Emit::Fatbin] {
        both("k.mlir", SAXPY.as_bytes(), "sm_80,gfx1100", emit);
    }
}

/// The process that asks does not read bytecode that came from outside: a worker writes it anew.
#[test]
fn bytecode_gives_the_same_and_is_refused_in_the_same_words() {
    let (here, there) = (builder(Options::default()).build(), builder(isolated()).build());
    let bytecode = Command::new(llvm_program("mlir-opt"))
        .args(["--emit-bytecode", "-o", "-"])
        .arg(example("gelu.mlir"))
        .output();
    let bytecode = bytecode.expect("mlir-opt runs").stdout;
    let targets = Target::parse_list("sm_90,gfx942").expect("targets");
    for debug in ["none", "full"] {
        let compile = |compiler: &Compiler| {
            let mut options = compiler.options().clone();
            options.set("debug", debug).expect("an option");
            let compiler = compiler.to_builder().options(options).build();
            compiler
                .compile_source("k.mlirbc", &bytecode, &targets, Emit::Asm)
                .expect("compiles")
        };
        same(&compile(&here).artifacts, &compile(&there).artifacts);
    }
    for cut in [20, bytecode.len() / 2, bytecode.len() - 1] {
        let refusal = |compiler: &Compiler| {
            let failure = compiler.compile_source("k.mlirbc", &bytecode[..cut], &targets, Emit::Asm);
            failure.map(drop).expect_err("cut off").to_string()
        };
        let text = refusal(&there);
        assert!(text.contains("input: "), "{text}");
        assert_eq!(text, refusal(&here));
    }
}

/// MLIR's verification crashes on it.
const CRASHES: &str = "gpu.module @m { gpu.func @k(%a: !amdgpu.tdm_gather_base<index, i32>) kernel { gpu.return } }";

#[test]
fn a_crash_ends_a_worker_and_nothing_else() {
    let compiler = builder(isolated()).threads(1).build();
    let before = saxpy(&compiler);
    let targets = Target::parse_list("gfx942").expect("a target");
    let failure = compiler
        .compile_source("crash.mlir", CRASHES.as_bytes(), &targets, Emit::Asm)
        .map(drop)
        .expect_err("crashes");
    let error = &failure.errors[0];
    assert!(error.kind == ErrorKind::Crash, "{error}");
    assert_eq!(error.stage, Stage::Input, "{error}");
    assert_eq!(saxpy(&compiler), before, "the next one works");
}

/// As above: MLIR's reader crashes on it, whoever calls it.
const CRASHES_READING: &[u8] = include_bytes!("crashes_reading.mlirbc");

#[test]
fn no_door_reads_bytecode_before_a_worker_has() {
    let compiler = Arc::new(builder(isolated()).threads(1).build());
    let before = saxpy(&compiler);
    let target: Target = "sm_90".parse().expect("a target");
    let session = JitSession::builder(Arc::clone(&compiler))
        .target(target)
        .emit(Emit::Ptx)
        .build()
        .expect("a session");
    let triple = "x86_64-unknown-linux-gnu".parse().expect("a triple");
    let form = ExportForm::Object("clang-19,cuda-12.4".parse().expect("a release"));
    let options = ExportOptions::new(form, "k", triple);
    let name = "damaged.mlirbc";
    let refusals = [
        compiler
            .compile_source(name, CRASHES_READING, &[target], Emit::Ptx)
            .map(drop)
            .map_err(|failure| failure.to_string()),
        compiler
            .plan_sources(&[(name, CRASHES_READING)], &[target], Emit::Ptx)
            .map(drop)
            .map_err(|failure| failure.to_string()),
        session
            .add(name, CRASHES_READING)
            .map(drop)
            .map_err(|error| error.to_string()),
        export_source(&compiler, name, CRASHES_READING, &[target], &options)
            .map(drop)
            .map_err(|failure| failure.to_string()),
        Program::build_source(&compiler, name, CRASHES_READING, &ProgramOptions::default())
            .map(drop)
            .map_err(|error| error.to_string()),
    ];
    for refusal in refusals {
        let text = refusal.expect_err("crashes");
        let expected = "input, module damaged.mlirbc: the worker process ended unexpectedly";
        assert!(text.starts_with(expected), "{text}");
        assert_eq!(saxpy(&compiler), before, "the next one works");
    }
    assert!(session.add("k", SAXPY).is_ok());
}

/// Limits say whether something comes out, and not what.
#[test]
fn limits_leave_no_trace_in_what_comes_out() {
    let limited = Options {
        time_limit: Some(Duration::from_secs(600)),
        memory_limit: Some(2 << 30),
        ..isolated()
    };
    for emit in [Emit::Mlir, Emit::Llvm, Emit::Ptx] {
        let one = compile(&builder(Options::default()).build(), SAXPY, "sm_90", emit).expect("compiles");
        let other = compile(&builder(limited.clone()).build(), SAXPY, "sm_90", emit).expect("compiles");
        same(&one.artifacts, &other.artifacts);
    }
}

#[test]
fn errors_read_as_they_do_in_process() {
    let here = builder(Options::default()).build();
    let there = builder(isolated()).build();
    let in_kernel = |operation: &str| {
        format!("gpu.module @m {{\n gpu.func @k(%p: memref<4xi32>) kernel {{\n  {operation}\n  gpu.return\n }}\n}}\n")
    };
    let long = |text: &str| text.to_owned();
    let inputs = [
        ("k.mlir", long("gpu.module @m {\n  gpu.func @k( kernel {\n")),
        ("k.mlir", long("module {}")),
        ("k.mlir", in_kernel("func.call @nothing() : () -> ()")),
        ("k.mlir", in_kernel("%0 = nvvm.read.ptx.sreg.clock : i32")),
        ("k.ll", long("define void @k() {\n  what is this\n}\n")),
        ("k.ll", long("define void @k() { ret void }")),
        (
            "k.ll",
            long("declare void @missing()\ndefine ptx_kernel void @k() { call void @missing() ret void }"),
        ),
        (
            "k.ll",
            long(
                "declare i32 @llvm.nvvm.redux.sync.add(i32, i32)\ndefine ptx_kernel void @k(ptr %p) {
              %v = call i32 @llvm.nvvm.redux.sync.add(i32 1, i32 -1)\nstore i32 %v, ptr %p ret void }",
            ),
        ),
        (
            "k.ptx",
            long(".version 8.0\n.target sm_90\n.address_size 64\nnonsense\n"),
        ),
    ];
    for (name, source) in inputs {
        for targets in ["sm_75", "gfx942"] {
            let targets = Target::parse_list(targets).expect("targets");
            let compile =
                |compiler: &Compiler| compiler.compile_source(name, source.as_bytes(), &targets, Emit::Binary);
            match (compile(&here), compile(&there)) {
                (Ok(one), Ok(other)) => same(&one.artifacts, &other.artifacts),
                (Err(one), Err(other)) => {
                    assert_eq!(one.to_string(), other.to_string());
                    for (one, other) in one.errors.iter().zip(&other.errors) {
                        assert_eq!(one.place(), other.place());
                        assert_eq!(one.kernels, other.kernels);
                        assert_eq!(
                            (one.stage, &one.module, one.target),
                            (other.stage, &other.module, other.target)
                        );
                    }
                }
                (one, other) => panic!("{source}: {}, {}", one.is_ok(), other.is_ok()),
            }
        }
    }
}

#[test]
fn a_killed_worker_costs_its_own_request_alone() {
    let compiler = builder(isolated()).threads(1).build();
    let before = saxpy(&compiler);
    let source = large(3000);
    for (signal, name) in [("SEGV", "SIGSEGV"), ("ABRT", "SIGABRT"), ("KILL", "SIGKILL")] {
        // A worker that dies while it still looks busy with the request before is replaced in silence.
        wait_until_idle(&compiler);
        let failure = thread::scope(|scope| {
            let compiles = scope.spawn(|| compile(&compiler, &source, "sm_90", Emit::Ptx));
            let worker = busy_worker(&compiler);
            // Rust's handler takes a first SIGSEGV for a fault, which would happen again.
            while !compiles.is_finished() {
                send_signal(signal, worker);
                thread::sleep(Duration::from_millis(20));
            }
            let failure = compiles.join().expect("no panic").map(drop).expect_err("killed");
            assert!(gone(worker), "no zombie");
            failure
        });
        let error = &failure.errors[0];
        let text = error.to_string();
        assert!(
            text.contains("the worker process ended unexpectedly") && text.contains(name),
            "{text}"
        );
        assert!(error.kind == ErrorKind::Crash);
        assert!(
            text.contains("module k.mlir") || text.contains("module large"),
            "{text}"
        );
        assert_eq!(saxpy(&compiler), before, "the next one works");
    }
    assert_eq!(before, saxpy(&builder(Options::default()).build()));
}

#[test]
fn a_worker_that_dies_while_idle_is_replaced_in_silence() {
    let compiler = builder(isolated()).build();
    let before = saxpy(&compiler);
    for id in compiler.worker_ids() {
        send_signal("KILL", id);
    }
    assert_eq!(saxpy(&compiler), before);
}

/// What would overflow the stack of MLIR's or LLVM's parser is refused before it gets there, in either case.
#[test]
fn what_nests_too_deeply_is_refused_in_the_same_words() {
    let (here, there) = (builder(Options::default()).build(), builder(isolated()).build());
    let before = saxpy(&there);
    let depth = 400_000;
    let nested = format!(
        "module attributes {{a = {}1{}}} {{ }}",
        "[".repeat(depth),
        "]".repeat(depth)
    );
    let constant = format!(
        "define ptx_kernel void @k(ptr %p) {{ store ptr {}null{}, ptr %p ret void }}",
        "getelementptr (i8, ptr ".repeat(depth),
        ", i64 1)".repeat(depth)
    );
    let targets = Target::parse_list("sm_90").expect("a target");
    for (name, source) in [("deep.mlir", nested), ("deep.ll", constant)] {
        let refusal = |compiler: &Compiler| {
            let failure = compiler.compile_source(name, source.as_bytes(), &targets, Emit::Ptx);
            failure.map(drop).expect_err("too deep").to_string()
        };
        let text = refusal(&there);
        assert!(text.contains("nests more than 1000 levels deep"), "{text}");
        assert_eq!(text, refusal(&here));
    }
    assert_eq!(saxpy(&there), before, "the next one works");
}

#[test]
fn memory_is_limited() {
    let options = Options {
        memory_limit: Some(320 << 20),
        ..isolated()
    };
    let compiler = builder(options).build();
    let before = saxpy(&compiler);
    let failure = compile(&compiler, &large(60_000), "sm_90", Emit::Ptx)
        .map(drop)
        .expect_err("too large");
    let error = &failure.errors[0];
    assert!(error.kind == ErrorKind::Memory, "{error}");
    assert!(error.to_string().contains("limited to 320 MiB"), "{error}");
    assert_eq!(saxpy(&compiler), before);

    let failure = compile(
        &builder(Options {
            memory_limit: Some(1),
            ..Options::default()
        })
        .build(),
        SAXPY,
        "sm_90",
        Emit::Ptx,
    );
    let text = failure.map(drop).expect_err("refused").to_string();
    assert!(
        text.contains("option 'memory-limit' cannot be honoured for sm_90: it limits worker processes"),
        "{text}"
    );
}

#[test]
fn time_is_limited_in_both_modes() {
    let limit = Some(Duration::from_millis(300));
    let source = large(600);
    for isolation in [Isolation::InProcess, Isolation::Worker] {
        let options = Options {
            time_limit: limit,
            isolation,
            ..Options::default()
        };
        let compiler = builder(options).build();
        let failure = compile(&compiler, &source, "sm_90,gfx942", Emit::Binary)
            .map(drop)
            .expect_err("too slow");
        for error in &failure.errors {
            assert!(error.kind == ErrorKind::TimeLimit, "{error}");
            assert!(
                error
                    .to_string()
                    .contains("not done within the time limit of 300ms; raise the limit"),
                "{error}"
            );
        }
        assert!(compiler.worker_ids().iter().all(|id| !gone(*id)), "no zombie is kept");
        let patient = compiler
            .to_builder()
            .options(Options {
                isolation,
                ..Options::default()
            })
            .build();
        assert_eq!(saxpy(&patient), saxpy(&builder(Options::default()).build()));
    }
}

#[test]
fn cancelling_ends_what_runs_and_what_waits() {
    let source = large(600);
    for isolation in [Isolation::InProcess, Isolation::Worker] {
        let compiler = builder(Options {
            isolation,
            ..Options::default()
        })
        .threads(1)
        .build();
        let token = CancellationToken::new();
        let cancellable = compiler.with_cancellation(&token);
        let targets = "sm_80,sm_90,gfx90a,gfx942,gfx1100";
        let failure = thread::scope(|scope| {
            let compiles = scope.spawn(|| compile(&cancellable, &source, targets, Emit::Binary));
            if isolation == Isolation::Worker {
                busy_worker(&compiler);
            }
            token.cancel();
            compiles.join().expect("no panic").map(drop).expect_err("cancelled")
        });
        assert!(!failure.errors.is_empty());
        for error in &failure.errors {
            assert!(error.kind == ErrorKind::Cancelled, "{error}");
        }
        assert_eq!(
            saxpy(&compiler),
            saxpy(&builder(Options::default()).build()),
            "the others go on"
        );
    }
}

/// PTX that keeps ptxas busy for a good while.
fn slow_ptx() -> String {
    let mut text = String::from(
        ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry slow(.param .u64 p) {\n.reg .b64 %rd<2>;\n\
         .reg .f32 %f<40001>;\nld.param.u64 %rd1, [p];\nld.global.f32 %f0, [%rd1];\n",
    );
    for index in 0..40_000 {
        let _ = writeln!(
            text,
            "fma.rn.f32 %f{}, %f{index}, %f{}, %f{index};",
            index + 1,
            index / 2
        );
    }
    text.push_str("st.global.f32 [%rd1], %f40000;\nret;\n}\n");
    text
}

/// The processes that another one started, and those that these did.
fn descendants(process: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{process}/task"))
        .into_iter()
        .flatten()
        .flatten();
    let children: Vec<u32> = tasks
        .filter_map(|task| fs::read_to_string(task.path().join("children")).ok())
        .flat_map(|text| {
            text.split_whitespace()
                .filter_map(|id| id.parse().ok())
                .collect::<Vec<u32>>()
        })
        .collect();
    children
        .into_iter()
        .flat_map(|id| [vec![id], descendants(id)].concat())
        .collect()
}

/// The `ptxas` that compiles below a process. ptxas says its version in another process before.
fn ptxas_below(process: u32) -> Option<u32> {
    descendants(process).into_iter().find(|id| {
        let command = fs::read_to_string(format!("/proc/{id}/cmdline")).unwrap_or_default();
        command.contains("ptxas") && command.contains("--gpu-name")
    })
}

#[test]
fn ptxas_is_stopped_in_both_modes() {
    let work = Workshop::new();
    work.write("slow.ptx", slow_ptx());
    for isolation in ["--isolation=in-process", "--isolation=worker"] {
        work.run(&[
            "compile",
            "slow.ptx",
            "-t",
            "sm_90",
            "--ptx-compiler=ptxas",
            "--time-limit=0.5",
            isolation,
            "-o",
            "k",
        ])
        .failed(1)
        .says(&["ptx-to-cubin, module slow, target sm_90: not done within the time limit of 500ms; raise the limit"]);

        let options = Options {
            isolation: if isolation.ends_with("worker") {
                Isolation::Worker
            } else {
                Isolation::InProcess
            },
            ptx_compiler: Some(gpulower::options::PtxCompiler::Ptxas),
            ..Options::default()
        };
        let compiler = builder(options).build();
        let token = CancellationToken::new();
        let targets = Target::parse_list("sm_90").expect("a target");
        let source = slow_ptx();
        let (failure, ptxas) = thread::scope(|scope| {
            let compiles = scope.spawn(|| {
                compiler
                    .with_cancellation(&token)
                    .compile_source("slow.ptx", source.as_bytes(), &targets, Emit::Cubin)
            });
            let mut found = None;
            while found.is_none() && !compiles.is_finished() {
                let from = match compiler.options().isolation {
                    Isolation::Worker => compiler.worker_ids().first().copied(),
                    Isolation::InProcess => Some(std::process::id()),
                };
                found = from.and_then(ptxas_below);
                thread::sleep(Duration::from_millis(1));
            }
            token.cancel();
            (
                compiles.join().expect("no panic").map(drop).expect_err("cancelled"),
                found,
            )
        });
        let error = &failure.errors[0];
        assert!(error.kind == ErrorKind::Cancelled, "{error}");
        // In this process the ptxas that was seen may be that of another test.
        if isolation.ends_with("worker") {
            assert_eq!(error.stage, Stage::PtxToCubin, "{error}");
            let ptxas = ptxas.expect("seen");
            wait_until_gone(ptxas);
        }
    }
}

/// Whoever is killed is gone soon; a machine under load may need a moment.
fn wait_until_gone(process: u32) {
    for _ in 0..60_000 {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        // A zombie is for its parent to wait for, here whoever adopted it.
        if stat.is_empty() || stat.rsplit_once(") ").is_some_and(|(_, state)| state.starts_with('Z')) {
            return;
        }
        thread::sleep(Duration::from_millis(1));
    }
    panic!("process {process} is still there");
}

#[test]
fn a_worker_does_not_outlive_who_started_it() {
    let work = Workshop::new();
    work.write("large.mlir", large(1000));
    let mut child = work
        .command(&[
            "compile",
            "large.mlir",
            "-t",
            "sm_90",
            "-e",
            "ptx",
            "--isolation=worker",
            "-o",
            "k",
        ])
        .spawn()
        .expect("the program runs");
    let worker = loop {
        if let Some(worker) = descendants(child.id()).first() {
            break *worker;
        }
        assert!(child.try_wait().expect("a status").is_none(), "it ended early");
    };
    child.kill().expect("killed");
    child.wait().expect("reaped");
    wait_until_gone(worker);
}

#[test]
fn workers_are_few_reused_and_replaced() {
    let compiler = builder(isolated()).threads(1).build();
    let first = saxpy(&compiler);
    let worker = compiler.worker_ids();
    assert_eq!(worker.len(), 1);
    assert_eq!(saxpy(&compiler), first);
    assert_eq!(compiler.worker_ids(), worker, "the same one");
    let short = compiler.to_builder().worker(program().requests(1)).build();
    assert_eq!(saxpy(&short), first);
    assert!(short.worker_ids().is_empty(), "replaced after one request");
    let small = compiler.to_builder().worker(program().resident(1)).build();
    assert_eq!(saxpy(&small), first);
    assert!(small.worker_ids().is_empty(), "replaced because it is larger than that");
    drop(compiler);
    assert!(gone(worker[0]), "a compiler takes its workers along");
}

#[test]
fn what_is_no_worker_is_refused() {
    let relative = Worker::program("gpulower").expect_err("relative").to_string();
    assert!(
        relative.starts_with("the worker program gpulower is named by a relative path; give an absolute one"),
        "{relative}"
    );
    let message = |builder: CompilerBuilder| {
        compile(&builder.options(isolated()).build(), SAXPY, "sm_90", Emit::Ptx)
            .map(drop)
            .expect_err("refused")
            .to_string()
    };
    let text = message(Compiler::builder());
    assert!(
        text.starts_with("plan: isolation=worker needs a program that does the work; name one with"),
        "{text}"
    );
    let with = |program: &str, arguments: &[&str]| {
        let worker = Worker::program(program)
            .expect("absolute")
            .arguments(arguments.iter().copied());
        message(Compiler::builder().worker(worker))
    };
    let text = with("/nowhere/gpulower", &[]);
    assert!(
        text.contains("the worker /nowhere/gpulower could not be started: No such file"),
        "{text}"
    );
    let text = with("/bin/echo", &["hello there"]);
    assert!(
        text.contains("/bin/echo did not answer as a worker of gpulower does (it ended: exit status 0)"),
        "{text}"
    );
    assert!(text.contains("it printed:\n  hello there"), "{text}");
    let text = with("/bin/sh", &["-c", "printf 'much too long a length' >&0; sleep 10"]);
    assert!(text.contains("a message claims to be"), "{text}");
    // A frame of 3 + 17 bytes: the magic word and another build.
    let text = with(
        "/bin/sh",
        &[
            "-c",
            "printf '\\024\\000\\000\\000\\017gpulower worker\\003abc' >&0; sleep 10",
        ],
    );
    assert!(
        text.contains("the worker /bin/sh is of another build (abc) than this program (gpulower "),
        "{text}"
    );
}

#[test]
fn listeners_are_refused() {
    struct Watcher;
    impl StageListener for Watcher {
        fn checkpoints(&self) -> &[Checkpoint] {
            &[Checkpoint::Lowered]
        }
    }
    let compiler = builder(isolated()).listener(Arc::new(Watcher)).build();
    let text = compile(&compiler, SAXPY, "sm_90", Emit::Ptx)
        .map(drop)
        .expect_err("refused")
        .to_string();
    assert!(
        text.contains("option 'isolation' cannot be honoured for a compiler with stage listeners"),
        "{text}"
    );
}

#[test]
fn a_module_does_not_say_how_far_it_is_trusted() {
    for (flag, name) in [
        ("isolation = \"in-process\"", "isolation"),
        ("\"memory-limit\" = \"9\"", "memory-limit"),
    ] {
        let source = SAXPY.replace(
            "gpu.module @saxpy {",
            &format!("gpu.module @saxpy [#nvvm.target<chip = \"sm_90\", flags = {{{flag}}}>] {{"),
        );
        let text = compile(&builder(Options::default()).build(), &source, "", Emit::Ptx)
            .map(drop)
            .expect_err("refused")
            .to_string();
        assert!(
            text.contains(&format!(
                "option '{name}' cannot be honoured for sm_90: it is for the caller"
            )),
            "{text}"
        );
    }
}

#[test]
fn the_program_isolates_itself() {
    let work = Workshop::new();
    let compile = |out: &str, more: &[&str]| {
        let input = example("gelu.mlir");
        let mut arguments = vec!["compile", &input, "-t", "sm_90,gfx942", "-o", out];
        arguments.extend(more);
        work.run(&arguments).quiet();
    };
    compile("here/", &[]);
    compile(
        "there/",
        &["--isolation=worker", "--memory-limit=4096", "--time-limit=600"],
    );
    assert_eq!(work.files("here"), work.files("there"));
    for file in work.files("here") {
        assert!(
            work.read(&format!("here/{file}")) == work.read(&format!("there/{file}")),
            "{file}"
        );
    }
    work.run(&[
        "compile",
        &example("gelu.mlir"),
        "-t",
        "sm_90",
        "--isolation=worker",
        "--dump-dir=d",
        "-o",
        "k",
    ])
    .failed(2)
    .says(&["--dump-dir and --override-dir look into the stages, which a worker process does not show"]);
    work.run(&["worker"])
        .failed(1)
        .says(&["the standard input is not a socket: a worker is started by a program that compiles"]);
}

/// A library that is named by a relative path is found by the process that asks.
#[test]
fn relative_libraries_are_read_by_who_asks() {
    let work = Workshop::new();
    work.write(
        "k.ll",
        "declare void @f(ptr)\ndefine ptx_kernel void @k(ptr %p) { call void @f(ptr %p) ret void }",
    );
    work.write("f.ll", "define void @f(ptr %p) { store i32 7, ptr %p ret void }");
    let compile = |out: &str, more: &[&str]| {
        let mut arguments = vec!["compile", "k.ll", "-t", "sm_90", "-l", "f.ll", "-e", "ptx", "-o", out];
        arguments.extend(more);
        work.run(&arguments).quiet();
    };
    compile("here.ptx", &[]);
    compile("there.ptx", &["--isolation=worker"]);
    assert_eq!(work.text("here.ptx"), work.text("there.ptx"));
    let missing = |more: &[&str]| {
        let mut arguments = vec!["compile", "k.ll", "-t", "sm_90", "-l", "g.ll", "-o", "k"];
        arguments.extend(more);
        work.run(&arguments).failed(1).stderr
    };
    assert_eq!(missing(&[]), missing(&["--isolation=worker"]));
}
