//! Every operation of MLIR's `math` dialect on every type that kernels use: for both vendors it compiles, and nothing
//! stays unresolved. The list of operations comes from MLIR itself.

use std::path::{Path, PathBuf};

use gpulower::{Artifact, Compiler, Emit, Options, Search, Target, Toolkit};

const FLOATS: [&str; 6] = ["f16", "bf16", "f32", "f64", "vector<4xf32>", "vector<2xf16>"];
const INTEGERS: [&str; 6] = ["i8", "i16", "i32", "i64", "index", "vector<4xi32>"];

/// How an operation is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Unary,
    Binary,
    Ternary,
    Clamp,
    Classification,
    SineAndCosine,
    IntegerPower,
    IntegerUnary,
    IntegerBinary,
}

/// Mnemonic and form of every operation in `MathOps.td`.
fn operations() -> Vec<(String, Form)> {
    let binaries =
        std::env::var_os("GPULOWER_LLVM_BIN").map_or_else(|| PathBuf::from("/usr/lib/llvm-22/bin"), PathBuf::from);
    let path = binaries.join("../include/mlir/Dialect/Math/IR/MathOps.td");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| {
        panic!(
            "cannot read MLIR's list of math operations, {}: {error}; run `cargo xtask setup`, or set GPULOWER_LLVM_BIN",
            path.display()
        )
    });
    let operations: Vec<(String, Form)> = text
        .lines()
        .filter_map(|line| line.strip_prefix("def Math_")?.split_once(" : "))
        .filter_map(|(_, definition)| {
            let (class, rest) = definition.split_once("<\"")?;
            let (mnemonic, _) = rest.split_once('"')?;
            Some((mnemonic.to_owned(), form(class.trim(), mnemonic)))
        })
        .collect();
    let definitions = text
        .lines()
        .filter(|line| line.starts_with("def Math_") && line.contains("Op :"))
        .count();
    assert!(
        operations.len() > 40,
        "{} operations in {}",
        operations.len(),
        path.display()
    );
    assert_eq!(operations.len(), definitions, "every definition was understood");
    operations
}

fn form(class: &str, mnemonic: &str) -> Form {
    match (class, mnemonic) {
        (_, "clampf") => Form::Clamp,
        ("Math_FloatUnaryOp", _) => Form::Unary,
        ("Math_FloatBinaryOp", _) => Form::Binary,
        ("Math_FloatTernaryOp", _) => Form::Ternary,
        ("Math_FloatClassificationOp", _) => Form::Classification,
        ("Math_IntegerUnaryOp", _) => Form::IntegerUnary,
        ("Math_IntegerBinaryOp", _) => Form::IntegerBinary,
        ("Math_Op", "sincos") => Form::SineAndCosine,
        ("Math_Op", "fpowi") => Form::IntegerPower,
        _ => panic!("math.{mnemonic} (a {class}) is new to this test: give it a form, and see that it lowers"),
    }
}

/// A type of the same shape with another element.
fn with_element(shape: &str, element: &str) -> String {
    match shape.rsplit_once('x') {
        Some((dimensions, _)) if shape.starts_with("vector<") => format!("{dimensions}x{element}>"),
        _ => element.to_owned(),
    }
}

fn kernel(mnemonic: &str, form: Form, kind: &str) -> String {
    let whole = with_element(kind, "i32");
    let truth = with_element(kind, "i1");
    let (body, result) = match form {
        Form::Unary | Form::IntegerUnary => (format!("%r = math.{mnemonic} %a : {kind}"), kind.to_owned()),
        Form::Binary | Form::IntegerBinary => (format!("%r = math.{mnemonic} %a, %b : {kind}"), kind.to_owned()),
        Form::Ternary => (format!("%r = math.{mnemonic} %a, %b, %c : {kind}"), kind.to_owned()),
        Form::Clamp => (format!("%r = math.clampf %a to [%b, %c] : {kind}"), kind.to_owned()),
        Form::Classification => (
            format!("%t = math.{mnemonic} %a : {kind}\n    %r = arith.extui %t : {truth} to {whole}"),
            whole,
        ),
        Form::SineAndCosine => (
            format!("%s, %k = math.sincos %a : {kind}\n    %r = arith.addf %s, %k : {kind}"),
            kind.to_owned(),
        ),
        Form::IntegerPower => (format!("%r = math.fpowi %a, %n : {kind}, {whole}"), kind.to_owned()),
    };
    let exponent = with_element(kind, "i32");
    format!(
        "  gpu.func @{mnemonic}(%a: {kind}, %b: {kind}, %c: {kind}, %n: {exponent}, %out: memref<?x{result}>) kernel {{
    %i = gpu.global_id x
    {body}
    memref.store %r, %out[%i] : memref<?x{result}>
    gpu.return
  }}
"
    )
}

/// One module for each type, with a kernel for each operation.
fn modules() -> Vec<(String, Vec<String>, String)> {
    let operations = operations();
    let is_integer = |form: Form| matches!(form, Form::IntegerUnary | Form::IntegerBinary);
    let kinds = FLOATS
        .iter()
        .map(|kind| (*kind, false))
        .chain(INTEGERS.iter().map(|kind| (*kind, true)));
    kinds
        .map(|(kind, integer)| {
            let chosen: Vec<&(String, Form)> = operations
                .iter()
                .filter(|(_, form)| is_integer(*form) == integer)
                .collect();
            let kernels: String = chosen
                .iter()
                .map(|(mnemonic, form)| kernel(mnemonic, *form, kind))
                .collect();
            let names = chosen.iter().map(|(mnemonic, _)| mnemonic.clone()).collect();
            (kind.to_owned(), names, format!("gpu.module @math {{\n{kernels}}}\n"))
        })
        .collect()
}

fn compiler(options: Options) -> Compiler {
    let cuda = std::env::var_os("GPULOWER_CUDA").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join(".toolkit/cuda"),
        PathBuf::from,
    );
    assert!(
        cuda.join("nvvm/libdevice").is_dir(),
        "{} is no CUDA toolkit, whose libdevice this test needs: run `cargo xtask setup`, or set GPULOWER_CUDA",
        cuda.display()
    );
    let toolkit = Toolkit::discover(&Search::default().with_cuda(cuda));
    Compiler::builder().options(options).toolkit(toolkit).build()
}

fn compile(compiler: &Compiler, source: &str, target: &str, emit: Emit) -> Artifact {
    let target: Target = target.parse().expect("a target");
    let mut compilation = compiler
        .compile_source("math.mlir", source.as_bytes(), &[target], emit)
        .unwrap_or_else(|failure| panic!("{failure}\nin\n{source}"));
    compilation.artifacts.pop().expect("an artifact")
}

#[test]
fn every_operation_links_for_nvidia() {
    let compiler = compiler(Options::default());
    for (kind, names, source) in modules() {
        let ptx = String::from_utf8(compile(&compiler, &source, "sm_90", Emit::Ptx).bytes).expect("text");
        for name in names {
            assert!(
                ptx.contains(&format!(".entry {name}(")),
                "{name} on {kind} is not in the PTX"
            );
        }
        assert!(!ptx.contains(".extern"), "{kind}: something is unresolved:\n{ptx}");
    }
}

#[test]
fn every_operation_links_for_amd() {
    let compiler = compiler(Options::default());
    for (kind, names, source) in modules() {
        let hsaco = compile(&compiler, &source, "gfx942", Emit::Hsaco);
        for name in names {
            assert!(
                hsaco.kernels().any(|kernel| kernel.name == name),
                "{name} on {kind} is not in the hsaco"
            );
        }
    }
}

const ROOT_AND_QUOTIENT: &str = "gpu.module @math {
  gpu.func @root(%a: f32, %out: memref<?xf32>) kernel {
    %i = gpu.global_id x
    %r = math.sqrt %a : f32
    memref.store %r, %out[%i] : memref<?xf32>
    gpu.return
  }
  gpu.func @quotient(%a: f32, %b: f32, %out: memref<?xf32>) kernel {
    %i = gpu.global_id x
    %r = arith.divf %a, %b : f32
    memref.store %r, %out[%i] : memref<?xf32>
    gpu.return
  }
}";

fn assembly(target: &str, options: &[(&str, &str)]) -> String {
    let mut asked = Options::default();
    for (name, value) in options {
        asked.set(name, value).expect("an option");
    }
    let artifact = compile(&compiler(asked), ROOT_AND_QUOTIENT, target, Emit::Asm);
    String::from_utf8(artifact.bytes).expect("text")
}

#[test]
fn nvidia_rounds_roots_and_quotients_correctly_unless_asked_not_to() {
    let precise = assembly("sm_90", &[]);
    assert!(
        precise.contains("sqrt.rn.f32") && precise.contains("div.rn.f32"),
        "{precise}"
    );
    let loose = assembly("sm_90", &[("prec-sqrt", "false"), ("prec-div", "false")]);
    assert!(loose.contains("sqrt.approx.f32"), "{loose}");
    assert!(
        !loose.contains("sqrt.rn.f32") && !loose.contains("div.rn.f32"),
        "{loose}"
    );
    let only_root = assembly("sm_90", &[("prec-sqrt", "false")]);
    assert!(
        only_root.contains("sqrt.approx.f32") && only_root.contains("div.rn.f32"),
        "{only_root}"
    );
    let fast = assembly("sm_90", &[("fast", "true")]);
    assert!(
        fast.contains("sqrt.approx.ftz.f32") && !fast.contains("div.rn"),
        "{fast}"
    );
}

#[test]
fn amd_rounds_roots_and_quotients_correctly_unless_asked_not_to() {
    // The hardware's v_sqrt_f32 and v_rcp_f32 are off by one unit: correct results need the steps of a refinement,
    // of which v_div_fixup_f32 is the last for a quotient, and fused multiply-adds for a root.
    let precise = assembly("gfx942", &[]);
    assert!(precise.contains("v_div_fixup_f32"), "{precise}");
    let root = &precise[precise.find("root:").expect("the kernel")..precise.find("quotient:").expect("the kernel")];
    assert!(root.contains("v_sqrt_f32") && root.contains("v_fma_f32"), "{root}");
    let loose = assembly("gfx942", &[("prec-sqrt", "false"), ("prec-div", "false")]);
    assert!(!loose.contains("v_div_fixup_f32"), "{loose}");
    let root = &loose[loose.find("root:").expect("the kernel")..loose.find("quotient:").expect("the kernel")];
    assert!(root.contains("v_sqrt_f32") && !root.contains("v_fma_f32"), "{root}");
}

#[test]
fn a_clamp_keeps_nan_and_takes_the_bounds_in_their_order() {
    let source = "gpu.module @math {
  gpu.func @clamp(%a: f32, %out: memref<?xf32>) kernel {
    %i = gpu.global_id x
    %low = arith.constant 2.0 : f32
    %high = arith.constant 4.0 : f32
    %r = math.clampf %a to [%low, %high] : f32
    memref.store %r, %out[%i] : memref<?xf32>
    gpu.return
  }
}";
    let ptx = compile(&compiler(Options::default()), source, "sm_90", Emit::Ptx);
    let ptx = String::from_utf8(ptx.bytes).expect("text");
    // 0f40800000 is 4.0, 0f40000000 is 2.0.
    let upper = ptx.find("min.NaN.f32").expect("a minimum that keeps NaN");
    let lower = ptx.find("max.NaN.f32").expect("a maximum that keeps NaN");
    assert!(upper < lower, "{ptx}");
    assert!(
        ptx[upper..lower].contains("0f40800000") && ptx[lower..].contains("0f40000000"),
        "{ptx}"
    );
}
