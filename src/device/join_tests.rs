//! Tests of joining modules of LLVM IR, and of compiling what remains open.

use super::super::{DeviceError, DeviceJob, DeviceOutput, LoadedLibrary, StageClock, VendorLibrary, generate_code};
use super::*;
use crate::bridge::llvm::DeviceContext;
use crate::image::symbols::LinkInterface;
use crate::options::{Options, Resolved};
use crate::toolkit::ToolkitError;

const USER: &str = "declare float @scale(float)\n@table = external global [4 x float]\n\
    define internal float @helper(float %x) { %r = fadd float %x, 1.0 ret float %r }\n\
    define ptx_kernel void @kernel(ptr %p) {\n\
      %x = load float, ptr %p\n  %t = load float, ptr @table\n\
      %s = call float @scale(float %x)\n  %h = call float @helper(float %s)\n  %r = fadd float %h, %t\n\
      store float %r, ptr %p\n  ret void\n}\n";
const LIBRARY: &str = "@table = global [4 x float] [float 1.0, float 2.0, float 3.0, float 4.0]\n\
    define internal float @helper(float %x) { %r = fmul float %x, 2.0 ret float %r }\n\
    define float @scale(float %x) { %r = call float @helper(float %x) ret float %r }\n";

fn located(module: &'static str) -> impl Fn(&str) -> Option<Location> {
    move |symbol| {
        let line = u32::try_from(symbol.len()).expect("a line");
        Some(Location::in_file(&format!("{module}.mlir"), line, 1))
    }
}

/// Joins modules with their names and their private definitions.
fn join_all<'c>(
    context: &'c DeviceContext,
    modules: &[(&'static str, &str, &[&str])],
) -> Result<DeviceModule<'c>, DeviceError> {
    let places: Vec<_> = modules.iter().map(|(name, ..)| located(name)).collect();
    let inputs = modules
        .iter()
        .zip(&places)
        .map(|((name, text, private), locate)| JoinInput {
            name,
            module: context.parse(text.as_bytes(), name).expect("parses"),
            private: private.iter().map(ToString::to_string).collect(),
            locate,
        })
        .collect();
    join(context, inputs)
}

fn refused(modules: &[(&'static str, &str, &[&str])]) -> DeviceError {
    let context = DeviceContext::new();
    join_all(&context, modules).map(drop).expect_err("refused")
}

fn resolved(target: &str) -> Resolved {
    let target = target.parse().expect("a target");
    Options::default().resolve(&target, None).expect("resolves")
}

fn compile<'c>(
    context: &'c DeviceContext,
    module: DeviceModule<'c>,
    others: &LinkInterface,
    output: DeviceOutput,
) -> Result<String, DeviceError> {
    let resolved = resolved("sm_90");
    let missing = |_: VendorLibrary| -> Result<LoadedLibrary, ToolkitError> { panic!("no library is needed") };
    let job = DeviceJob {
        name: "joined",
        resolved: &resolved,
        libraries: &[],
        vendor_library: &missing,
        locate: &|_| None,
        listeners: &[],
        for_each: &crate::device::in_turn,
        kept_parts: None,
        decide: &|_| {},
        own: None,
        has_places: false,
    };
    generate_code(context, module, &job, others, output, &mut StageClock::default())
        .map(|bytes| String::from_utf8(bytes).expect("text"))
        .map_err(|(_, error)| error)
}

#[test]
fn calls_between_modules_are_inlined_and_variables_shared() {
    let context = DeviceContext::new();
    let joined = join_all(&context, &[("user", USER, &[]), ("library", LIBRARY, &[])]).expect("joins");
    let text = compile(&context, joined, &LinkInterface::default(), DeviceOutput::Llvm).expect("compiles");
    assert!(!text.contains("call float"), "{text}");
    assert!(!text.contains("@scale") && text.contains("@table"), "{text}");
    // Both helpers took part, each for its own module.
    assert!(text.contains("fmul") && text.contains("fadd"), "{text}");
}

#[test]
fn two_definitions_are_refused_with_modules_and_places() {
    let other = "define ptx_kernel void @kernel() { ret void }\ndefine float @scale(float %x) { ret float %x }\n\
        @table = global [4 x float] zeroinitializer\n";
    let error = refused(&[("user", USER, &[]), ("library", LIBRARY, &[]), ("other", other, &[])]);
    assert_eq!(
        error.to_string(),
        "3 symbols are defined more than once:\n  \
         kernel kernel in module user at user.mlir:6:1 and in module other at other.mlir:6:1\n  \
         function scale in module library at library.mlir:5:1 and in module other at other.mlir:5:1\n  \
         variable table in module library at library.mlir:5:1 and in module other at other.mlir:5:1\n\
         Keep one definition and declare it elsewhere, rename one, or make those private that only their own module uses."
    );
    assert_eq!(error.location().map(Location::as_mlir), Some("\"other.mlir\":6:1"));
}

#[test]
fn weak_and_private_definitions_may_be_repeated() {
    let weak = "define linkonce_odr float @scale(float %x) { ret float %x }\n";
    let own = "define float @scale(float %x) { ret float %x }\n\
        define ptx_kernel void @second(ptr %p) {\n  %x = load float, ptr %p\n\
          %s = call float @scale(float %x)\n  store float %s, ptr %p\n  ret void\n}\n";
    let context = DeviceContext::new();
    let joined = join_all(
        &context,
        &[
            ("user", USER, &[]),
            ("library", LIBRARY, &[]),
            ("weak", weak, &[]),
            ("own", own, &["scale", "second"]),
        ],
    )
    .expect("joins");
    let text = joined.to_text().expect("printed");
    assert!(text.contains("define internal float @scale"), "{text}");
    // A kernel is never private.
    assert!(text.contains("define ptx_kernel void @second"), "{text}");
}

#[test]
fn declarations_have_to_fit() {
    let calls = "declare void @scale(ptr)\n@table = external addrspace(3) global [4 x float]\n\
        declare void @kernel(ptr)\n@unsized = external global [0 x float]\ndeclare i64 @unused(i64)\n\
        define void @caller(ptr %p) {\n  call void @scale(ptr %p)\n  call void @kernel(ptr %p)\n\
          %t = load float, ptr addrspace(3) @table\n  store float %t, ptr @unsized\n  ret void\n}\n";
    let definitions = "@unsized = global [8 x float] zeroinitializer\ndefine i32 @unused(i32 %x) { ret i32 %x }\n";
    let kernel = "define ptx_kernel void @kernel(ptr %p) { ret void }\n";
    let error = refused(&[
        ("calls", calls, &[]),
        ("library", LIBRARY, &[]),
        ("kernel", kernel, &[]),
        ("definitions", definitions, &[]),
    ]);
    assert_eq!(
        error.to_string(),
        "3 symbols are declared otherwise than they are defined:\n  \
         kernel: void (ptr) in module calls at calls.mlir:6:1, void (ptr) as a kernel in module kernel at kernel.mlir:6:1\n  \
         scale: void (ptr) in module calls at calls.mlir:5:1, float (float) in module library at library.mlir:5:1\n  \
         table: [4 x float] in addrspace(3) in module calls at calls.mlir:5:1, [4 x float] in module library at \
         library.mlir:5:1\nMake the declarations equal to the definitions."
    );
    assert_eq!(error.location().map(Location::as_mlir), Some("\"calls.mlir\":6:1"));
    assert_eq!(refused(&[]).to_string(), "nothing to join: there is no module");
}

#[test]
fn what_other_objects_define_stays_open_and_what_they_need_stays_visible() {
    let context = DeviceContext::new();
    let text =
        format!("{USER}define float @offered(float %x) {{ ret float %x }}\ndefine void @unwanted() {{ ret void }}\n");
    let module = || context.parse(text.as_bytes(), "m").expect("parses");
    let error = compile(&context, module(), &LinkInterface::default(), DeviceOutput::Assembly).expect_err("refused");
    let DeviceError::Unresolved(symbols) = error else {
        panic!("{error}")
    };
    let names: Vec<&str> = symbols.iter().map(|symbol| symbol.name.as_str()).collect();
    assert_eq!(names, ["scale", "table"]);

    let set = |names: &[&str]| names.iter().map(ToString::to_string).collect();
    let mut others = LinkInterface {
        defined: set(&["scale"]),
        needed: set(&["offered"]),
        ..LinkInterface::default()
    };
    let error = compile(&context, module(), &others, DeviceOutput::Assembly).expect_err("refused");
    assert!(
        matches!(&error, DeviceError::Unresolved(symbols) if symbols.len() == 1),
        "{error}"
    );
    others.defined.insert("table".to_owned());
    let ptx = compile(&context, module(), &others, DeviceOutput::Assembly).expect("compiles");
    assert!(
        ptx.contains(".extern .func") && ptx.contains(".extern .global"),
        "{ptx}"
    );
    assert!(ptx.contains("offered") && !ptx.contains("unwanted"), "{ptx}");

    let opaque = LinkInterface {
        opaque: true,
        ..LinkInterface::default()
    };
    let ptx = compile(&context, module(), &opaque, DeviceOutput::Assembly).expect("compiles");
    assert!(ptx.contains("offered") && ptx.contains("unwanted"), "{ptx}");
}

#[test]
fn modules_of_two_contexts_are_refused() {
    let (one, other) = (DeviceContext::new(), DeviceContext::new());
    let first = one.parse(USER.as_bytes(), "user").expect("parses");
    let second = other.parse(LIBRARY.as_bytes(), "library").expect("parses");
    let input = |name, module| JoinInput {
        name,
        module,
        private: Vec::new(),
        locate: &|_| None,
    };
    let error = join(&one, vec![input("user", first), input("library", second)])
        .map(drop)
        .expect_err("refused");
    assert_eq!(
        error.to_string(),
        "module library cannot be joined with the others: modules of two LLVM contexts cannot be joined"
    );
}
