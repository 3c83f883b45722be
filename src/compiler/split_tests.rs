//! Modules that are compiled in parts: the same bytes as from the whole, with any number of threads.

use std::{
    collections::HashSet,
    fmt::Write,
    sync::{Arc, Mutex, PoisonError},
};

use inkwell::module::Module as LlvmModule;

use super::*;
use gpulower_testing::nvidia;

use crate::{
    bridge::llvm::DeviceContext,
    device::{self, DeviceJob, Split, StageClock, StageResult},
    image::symbols::LinkInterface,
    interrupt::Interrupt,
    stage::{Checkpoint, Subject},
};

/// Keeps the linked module. Because it wants to see optimised modules, they are compiled as a whole.
#[derive(Default)]
struct Keep(Mutex<Vec<u8>>);

impl StageListener for Keep {
    fn checkpoints(&self) -> &[Checkpoint] {
        &[Checkpoint::Linked, Checkpoint::Optimized]
    }

    fn llvm(&self, _: Subject<'_>, checkpoint: Checkpoint, module: &LlvmModule<'_>) -> Result<Option<Vec<u8>>, String> {
        if checkpoint == Checkpoint::Linked {
            let bitcode = module.write_bitcode_to_memory().as_slice().to_vec();
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = bitcode;
        }
        Ok(None)
    }
}

fn builder() -> CompilerBuilder {
    Compiler::builder().toolkit(Toolkit::discover(&Search::nowhere().with_cuda(nvidia::toolkit())))
}

fn compile(compiler: &Compiler, name: &str, text: &str, emit: Emit) -> Result<Vec<u8>, Failure> {
    let targets = Target::parse_list("sm_80").expect("a target");
    let mut compilation = compiler.compile_source(name, text.as_bytes(), &targets, emit)?;
    Ok(compilation.artifacts.remove(0).bytes)
}

/// The PTX of the whole, and that of its parts if they can be put together.
fn both(name: &str, text: &str) -> (String, Option<String>) {
    let keep = Arc::new(Keep::default());
    let whole = compile(&builder().listener(keep.clone()).build(), name, text, Emit::Ptx).expect("compiles");
    let linked = keep.0.lock().expect("not poisoned").clone();
    let parts = in_parts(&linked, "sm_80", Interrupt::default()).expect("no part is interrupted");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (text(whole), parts.map(text))
}

/// The code of the parts of a linked module, if they can be put together.
fn in_parts(linked: &[u8], target: &str, interrupt: Interrupt) -> StageResult<Option<Vec<u8>>> {
    let target: Target = target.parse().expect("a target");
    let resolved = Options::default().resolve(&target, None).expect("resolves");
    let job = DeviceJob {
        name: "m",
        resolved: &resolved,
        libraries: &[],
        vendor_library: &|_| panic!("everything is linked"),
        locate: &|_| None,
        listeners: &[],
        for_each: &device::in_turn,
        kept_parts: None,
        decide: &|_| {},
        own: None,
        has_places: false,
    };
    let context = DeviceContext::new();
    let module = context.parse(linked, "m").expect("parses");
    let split = Split::prepare(&module, &resolved, &LinkInterface::default()).expect("no fatal error");
    let split = split.expect("the module can be divided");
    assert!(split.has_parts(), "the module is large, and of several components");
    split.compile(
        &context,
        &module,
        &job,
        &HashSet::new(),
        &mut StageClock::new(interrupt, None),
    )
}

#[track_caller]
fn assert_same(name: &str, text: &str) {
    let (whole, parts) = both(name, text);
    let parts = parts.expect("the parts can be put together");
    // Not assert_eq: nobody reads megabytes.
    let differs = whole.lines().zip(parts.lines()).find(|(one, other)| one != other);
    assert_eq!(differs, None);
    assert_eq!(whole.len(), parts.len());
    for threads in [1, 2, 4] {
        let compiled = compile(&builder().threads(threads).build(), name, text, Emit::Ptx).expect("compiles");
        assert!(compiled == whole.as_bytes(), "{threads} threads");
    }
}

/// The kernels of `scripts/compare/five.mlir`, so many times.
fn five_kernels(times: usize) -> String {
    let five = include_str!("../../scripts/compare/five.mlir");
    let (_, kernels) = five.split_once("gpu.module @module_SEED {").expect("a module");
    let (kernels, _) = kernels.rsplit_once('}').expect("its end");
    let all: String = (1..=times)
        .map(|seed| kernels.replace("SEED", &seed.to_string()))
        .collect();
    format!("gpu.module @many {{\n{all}}}\n")
}

#[test]
fn many_kernels_are_the_same_in_parts() {
    assert_same("many.mlir", &five_kernels(12));
}

/// Declarations for [`kernel`], and what several of its kernels have.
const COMMON: &str = r#"
target triple = "nvptx64-nvidia-cuda"
@text = internal constant [4 x i8] c"a%d\00"
@visible = addrspace(1) global i32 0
@dynamic = external addrspace(3) global [0 x float]
@table.of.all = internal addrspace(1) global [5 x float] [float 1.0, float 5.0, float 7.0, float 9.0, float 2.0]
declare i32 @vprintf(ptr, ptr)
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.redux.sync.add(i32, i32)
declare i32 @llvm.nvvm.redux.sync.umin(i32, i32)
declare float @__nv_sinf(float)
declare float @__nv_cosf(float)
declare float @__nv_powf(float, float)
declare float @__nv_erff(float)
declare double @__nv_sin(double)
declare double @__nv_pow(double, double)
define internal float @inlined(float %x) alwaysinline {
  %y = call float @__nv_erff(float %x)
  %z = fadd float %y, 1.0
  ret float %z
}
define internal i32 @help.er(i32 %x) noinline {
  %room = alloca [10 x i32]
  %p = getelementptr [10 x i32], ptr %room, i32 0, i32 %x
  store volatile i32 %x, ptr %p
  %v = load volatile i32, ptr %room
  ret i32 %v
}
define internal i32 @other(i32 %x) noinline {
  %y = call i32 @help.er(i32 %x)
  %z = mul i32 %y, %x
  ret i32 %z
}
"#;

/// What a kernel may do with its number `%n`, a pointer `%p` to a float `%x`, and its thread `%t`.
const BODIES: &[&str] = &[
    "%y = call float @__nv_sinf(float %x)\n store float %y, ptr %p",
    "%y = call float @__nv_powf(float %x, float 2.5)\n %z = call float @__nv_cosf(float %y)\n store float %z, ptr %p",
    "%d = fpext float %x to double\n %y = call double @__nv_sin(double %d)\n store double %y, ptr %p",
    "%d = fpext float %x to double\n %y = call double @__nv_pow(double %d, double %d)\n store double %y, ptr %p",
    "%r = call i32 @vprintf(ptr @text, ptr %p)\n %s = call i32 @vprintf(ptr @text.N, ptr %p)\n store i32 %r, ptr %p",
    "%y = call i32 @help.er(i32 %t)\n %z = call i32 @other(i32 %y)\n store i32 %z, ptr %p",
    "%y = call float @inlined(float %x)\n store float %y, ptr %p",
    "%q = getelementptr [9 x i32], ptr addrspace(1) @table.N, i32 0, i32 %t\n %v = load i32, ptr addrspace(1) %q\n\
     store i32 %v, ptr %p",
    "%q = getelementptr [5 x float], ptr addrspace(1) @table.of.all, i32 0, i32 %t\n\
     %v = load float, ptr addrspace(1) %q\n store float %v, ptr %p",
    "%q = getelementptr [64 x float], ptr addrspace(3) @shared.N, i32 0, i32 %t\n\
     store float %x, ptr addrspace(3) %q\n\
     %g = getelementptr [0 x float], ptr addrspace(3) @dynamic, i32 0, i32 %t\n store float %x, ptr addrspace(3) %g",
    "%f = load ptr, ptr %p\n call void %f(i32 %t)\n call void %f(i32 7)",
    "call void asm sideeffect \"{\\0A.reg .b32 unused;\\0A}\", \"\"()\n store i32 N, ptr %p",
    "%old = atomicrmw add ptr addrspace(1) @visible, i32 N monotonic\n store i32 %old, ptr %p",
    "switch i32 %t, label %end [ i32 0, label %a i32 1, label %b i32 2, label %c i32 3, label %d i32 4, label %e ]\n\
     a:\n store volatile i32 N, ptr %p\n br label %end\nb:\n store volatile float %x, ptr %p\n br label %end\n\
     c:\n store volatile i64 1, ptr %p\n br label %end\nd:\n store volatile i16 3, ptr %p\n br label %end\n\
     e:\n store volatile i8 4, ptr %p\n br label %end\nend:",
];

fn kernel(number: usize, body: &str) -> String {
    let own = format!(
        "@text.{number} = private constant [6 x i8] c\"k%d {c}\\00\"\n\
         @table.{number} = internal addrspace(1) constant [9 x i32] [i32 {number}, i32 2, i32 3, i32 5, i32 8, i32 1, \
         i32 0, i32 9, i32 4]\n@shared.{number} = internal addrspace(3) global [64 x float] undef\n",
        c = char::from(b'a' + u8::try_from(number % 26).unwrap_or(0)),
    );
    let used: String = own
        .lines()
        .filter(|line| {
            let name = line.split_whitespace().next().unwrap_or_default();
            let name = name.trim_end_matches(|digit: char| digit.is_ascii_digit());
            body.contains(&format!("{name}N"))
        })
        .map(|line| format!("{line}\n"))
        .collect();
    format!(
        "{used}define ptx_kernel void @kernel_{number}(ptr %p) {{\nentry:\n \
         %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n %x = load float, ptr %p\n {}\n ret void\n}}\n",
        body.replace('N', &number.to_string())
    )
}

fn kernels(count: usize, bodies: &[&str]) -> String {
    let mut text = COMMON.to_owned();
    for (number, body) in bodies.iter().cycle().take(count).enumerate() {
        let _ = writeln!(text, "{}", kernel(number, body));
    }
    text
}

#[test]
fn everything_that_kernels_share_is_the_same_in_parts() {
    assert_same("kernels.ll", &kernels(280, BODIES));
}

/// LLVM's simplification makes tables of switches, and merges those that are the same: the whole is compiled instead.
/// Sees what there is to see without an optimised module, and replaces the PTX.
#[derive(Default)]
struct Mark(Mutex<Vec<Checkpoint>>);

impl StageListener for Mark {
    fn checkpoints(&self) -> &[Checkpoint] {
        &[Checkpoint::Initial, Checkpoint::Linked, Checkpoint::Isa]
    }

    fn llvm(&self, _: Subject<'_>, checkpoint: Checkpoint, _: &LlvmModule<'_>) -> Result<Option<Vec<u8>>, String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(checkpoint);
        Ok(None)
    }

    fn isa(&self, _: Subject<'_>, text: &str) -> Result<Option<String>, String> {
        Ok(Some(format!("{text}// marked\n")))
    }
}

#[test]
fn a_listener_that_wants_no_optimised_module_does_not_keep_it_whole() {
    let text = kernels(280, BODIES);
    let mark = Arc::new(Mark::default());
    let marked = compile(
        &builder().listener(mark.clone()).build(),
        "kernels.ll",
        &text,
        Emit::Ptx,
    )
    .expect("compiles");
    let plain = compile(&builder().build(), "kernels.ll", &text, Emit::Ptx).expect("compiles");
    assert_eq!(marked.strip_suffix(b"// marked\n"), Some(plain.as_slice()));
    assert_eq!(
        *mark.0.lock().expect("not poisoned"),
        [Checkpoint::Initial, Checkpoint::Linked]
    );
}

#[test]
fn what_optimisation_adds_to_a_module_is_compiled_as_a_whole() {
    let choice = "switch i32 %t, label %end [ i32 0, label %end i32 1, label %b i32 2, label %c i32 3, label %d ]\n\
         b:\n br label %end\nc:\n br label %end\nd:\n br label %end\nend:\n\
         %v = phi i32 [ 17, %entry ], [ 17, %entry ], [ 23, %b ], [ 4, %c ], [ 99, %d ]\n store i32 %v, ptr %p";
    let bodies = [&[choice], BODIES].concat();
    let text = kernels(300, &bodies);
    let (whole, parts) = both("kernels.ll", &text);
    assert!(whole.contains("switch_$_table"), "LLVM makes a table of this switch");
    assert_eq!(parts, None);
    let compiled = compile(&builder().threads(4).build(), "kernels.ll", &text, Emit::Ptx).expect("compiles");
    assert!(compiled == whole.as_bytes());
}

/// One kernel of many is another: the parts without it come from the cache, and the bytes are those of the whole.
#[test]
fn parts_that_were_compiled_before_are_known() {
    let text = kernels(280, BODIES);
    let changed = text.replacen("float 2.5", "float 3.5", 1);
    assert_ne!(text, changed);
    let cache = Cache::builder().build();
    let compile = |builder: CompilerBuilder, text: &str| {
        let targets = Target::parse_list("sm_80").expect("a target");
        let made = builder
            .build()
            .compile_source("kernels.ll", text.as_bytes(), &targets, Emit::Ptx);
        made.expect("compiles").artifacts.remove(0)
    };
    compile(builder().cache(cache.clone()), &text);
    let known = compile(builder().cache(cache), &changed);
    let outcome = known
        .decisions
        .iter()
        .find_map(|decision| decision.outcome.strip_suffix(" parts taken from the cache"));
    let (taken, all) = outcome
        .and_then(|outcome| outcome.split_once(" of "))
        .expect("parts were taken");
    let number = |text: &str| text.parse::<usize>().expect("a number");
    assert_eq!(number(taken) + 1, number(all), "{outcome:?}");
    assert!(known.bytes == compile(builder(), &changed).bytes);
}

/// Kernels of LLVM IR for AMD, of a few kinds.
fn kernels_of_amd(count: usize) -> String {
    let mut text = "target triple = \"amdgcn-amd-amdhsa\"\n\
        declare float @llvm.sqrt.f32(float)\ndeclare i32 @llvm.amdgcn.workitem.id.x()\n\
        @__oclc_ABI_version = weak_odr hidden local_unnamed_addr addrspace(4) constant i32 600\n\
        !llvm.ident = !{!0}\n!0 = !{!\"a compiler\"}\n\
        define internal float @helper(float %x) alwaysinline {\n  %y = fdiv float 1.0, %x\n  ret float %y\n}\n"
        .to_owned();
    for number in 0..count {
        let body = match number % 4 {
            0 => "%r = call float @llvm.sqrt.f32(float %v)".to_owned(),
            1 => "%r = call float @helper(float %v)".to_owned(),
            2 => {
                let _ = writeln!(text, "@room{number} = internal addrspace(3) global [64 x float] poison");
                format!(
                    "%s = getelementptr float, ptr addrspace(3) @room{number}, i32 %t\n  \
                     store volatile float %v, ptr addrspace(3) %s\n  %r = load volatile float, ptr addrspace(3) %s"
                )
            }
            _ => "%s = alloca [8 x float], addrspace(5)\n  %k = and i32 %t, 7\n  \
                 %q = getelementptr float, ptr addrspace(5) %s, i32 %k\n  store volatile float %v, ptr addrspace(5) %q\n  \
                 %r = load volatile float, ptr addrspace(5) %q"
                .to_owned(),
        };
        let _ = write!(
            text,
            "define amdgpu_kernel void @k{number}(ptr addrspace(1) %p) {{\n  %t = call i32 @llvm.amdgcn.workitem.id.x()\n  \
             %a = getelementptr float, ptr addrspace(1) %p, i32 %t\n  %w = load float, ptr addrspace(1) %a\n  \
             %v = fadd float %w, {number}.0\n  {body}\n  store float %r, ptr addrspace(1) %a\n  ret void\n}}\n"
        );
    }
    text
}

#[test]
fn objects_of_amd_are_the_same_in_parts_and_known_by_them() {
    let text = kernels_of_amd(900);
    let targets = Target::parse_list("gfx942").expect("a target");
    let made = |builder: CompilerBuilder, text: &str| {
        let made = builder
            .build()
            .compile_source("kernels.ll", text.as_bytes(), &targets, Emit::Object);
        made.expect("compiles").artifacts.remove(0)
    };
    let keep = Arc::new(Keep::default());
    let whole = made(builder().listener(keep.clone()), &text);
    let linked = keep.0.lock().expect("not poisoned").clone();
    let parts = in_parts(&linked, "gfx942", Interrupt::default()).expect("no part is interrupted");
    assert!(parts.expect("the parts can be put together") == whole.bytes);
    let cache = Cache::builder().build();
    for builder in [
        builder().threads(1),
        builder().threads(2),
        builder().threads(4).cache(cache.clone()),
    ] {
        assert!(made(builder, &text).bytes == whole.bytes);
    }
    let changed = text.replacen("fadd float %w, 30.0", "fadd float %w, 3.5", 1);
    assert_ne!(text, changed);
    let known = made(builder().cache(cache), &changed);
    let is_of_parts = |decision: &crate::report::Decision| decision.outcome.ends_with(" parts taken from the cache");
    assert!(known.decisions.iter().any(is_of_parts), "{:?}", known.decisions);
    assert!(known.bytes == made(builder(), &changed).bytes);
}

#[test]
fn cubins_are_the_same_with_any_number_of_threads() {
    let text = five_kernels(12);
    let cubins = [1, 2, 4].map(|threads| {
        compile(&builder().threads(threads).build(), "many.mlir", &text, Emit::Cubin).expect("compiles")
    });
    assert!(cubins[0] == cubins[1] && cubins[0] == cubins[2]);
}

#[test]
fn an_error_in_one_of_many_kernels_is_reported_as_that_of_the_whole() {
    // sm_70 has no instruction for them, in any PTX version.
    let mut text = kernels(300, BODIES);
    for (number, operation) in [(150, "add"), (299, "umin")] {
        let bad = format!("%r = call i32 @llvm.nvvm.redux.sync.{operation}(i32 %t, i32 -1)\n store i32 %r, ptr %p");
        let good = kernel(number, BODIES[number % BODIES.len()]);
        assert!(text.contains(&good));
        text = text.replace(&good, &kernel(number, &bad));
    }
    let targets = Target::parse_list("sm_70").expect("a target");
    let error = |compiler: Compiler| {
        let result = compiler.compile_source("kernels.ll", text.as_bytes(), &targets, Emit::Ptx);
        result.expect_err("cannot be selected").to_string()
    };
    let whole = error(builder().listener(Arc::new(Keep::default())).build());
    assert!(
        whole.contains("LLVM fatal error: Cannot select: intrinsic %llvm.nvvm.redux.sync.add"),
        "{whole}"
    );
    for threads in [1, 4] {
        let parts = error(builder().threads(threads).build());
        assert_eq!(parts, whole);
    }
}

#[test]
fn a_part_does_not_begin_once_the_call_is_cancelled() {
    let keep = Arc::new(Keep::default());
    let compiler = builder().listener(keep.clone()).build();
    compile(&compiler, "kernels.ll", &kernels(280, BODIES), Emit::Ptx).expect("compiles");
    let token = CancellationToken::new();
    token.cancel();
    let linked = keep.0.lock().expect("not poisoned").clone();
    let (stage, error) = in_parts(&linked, "sm_80", Interrupt::new(&token, None)).expect_err("cancelled");
    assert_eq!(
        (stage, error.to_string().as_str()),
        (Stage::Optimize, "cancelled before it was done")
    );
}
