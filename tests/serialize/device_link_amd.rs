//! Tests with objects that LLVM's tools made.

use super::super::{LinkInput, LinkOptions, LinkedImage, link as link_inputs};
use super::*;
use crate::serialize::nvidia::{NvidiaParts, PtxToCubin};
use crate::serialize::nvidia_options::PtxOptions;
use crate::target::Target;
use gpulower_testing::amd::{DEFINITIONS, KERNELS, UNDEFINED, object, run, spawned_lld};

fn link_for(chip: &str, files: &[(&str, &[u8])]) -> Result<LinkedImage, DeviceLinkError> {
    let target: Target = chip.parse().unwrap();
    let inputs: Vec<LinkInput<'_>> = files
        .iter()
        .map(|(name, bytes)| LinkInput::detect(name, bytes))
        .collect::<Result<_, _>>()?;
    let tools = PtxToCubin::new(NvidiaParts::default());
    link_inputs(&inputs, &target, &LinkOptions::default(), &tools)
}

fn refused(chip: &str, files: &[(&str, &[u8])]) -> String {
    link_for(chip, files).unwrap_err().to_string()
}

fn names(image: &LinkedImage) -> Vec<&str> {
    image.kernels.iter().map(|kernel| kernel.name.as_str()).collect()
}

#[test]
fn objects_and_archives_link() {
    let users = object(UNDEFINED, "gfx942", "", 5);
    let definitions = object(DEFINITIONS, "gfx942", "", 5);
    let image = link_for("gfx942", &[("users.o", &users), ("definitions.o", &definitions)]).unwrap();
    assert_eq!(names(&image), ["one", "two"]);
    assert!(image.tool.starts_with("lld 22."), "{}", image.tool);
    let directory = tempfile::tempdir().unwrap();
    assert!(image.bytes == spawned_lld(directory.path(), &[&users, &definitions]));

    let (object_path, library) = (directory.path().join("d.o"), directory.path().join("lib.a"));
    std::fs::write(&object_path, &definitions).unwrap();
    let unused = directory.path().join("unused.o");
    std::fs::write(&unused, object(KERNELS, "gfx942", "", 5)).unwrap();
    let paths = [&library, &object_path, &unused].map(|path| path.to_str().unwrap());
    run("llvm-ar", &["rcs", paths[0], paths[1], paths[2]], b"");
    let library = std::fs::read(&library).unwrap();
    let image = link_for("gfx942", &[("users.o", &users), ("lib.a", &library)]).unwrap();
    assert_eq!(image.inputs, ["users.o", "lib.a(d.o)"]);
    assert_eq!(names(&image), ["one", "two"]);
}

#[test]
fn duplicates_and_missing_symbols_are_named() {
    let users = object(UNDEFINED, "gfx942", "", 5);
    assert_eq!(
        refused("gfx942", &[("users.o", &users)]),
        "2 unresolved symbols:\n  missing_a (needed by one, two of users.o)\n  missing_b (needed by two of users.o)\n\
         Give the file that defines them."
    );
    let kernels = object(KERNELS, "gfx942", "", 5);
    let text = refused("gfx942", &[("a.o", &kernels), ("b.o", &kernels)]);
    assert!(
        text.starts_with("3 symbols are defined more than once:\n  kernel saxpy in a.o and b.o\n"),
        "{text}"
    );
    let definitions = object(DEFINITIONS, "gfx942", "", 5);
    let text = refused("gfx942", &[("a.o", &definitions)]);
    assert!(text.starts_with("none of the inputs holds a kernel"), "{text}");
}

#[test]
fn target_ids_have_to_agree() {
    let users = object(UNDEFINED, "gfx90a", "+xnack", 5);
    let off = object(DEFINITIONS, "gfx90a", "-xnack", 5);
    let any = object(DEFINITIONS, "gfx90a", "", 5);
    assert_eq!(
        refused("gfx90a:xnack+", &[("users.o", &users), ("off.o", &off)]),
        "users.o is for gfx90a:xnack+ and off.o is for gfx90a:xnack-: no device runs both; compile them for the same \
         target ID"
    );
    assert!(link_for("gfx90a:xnack+", &[("users.o", &users), ("any.o", &any)]).is_ok());
    let text = refused("gfx90a", &[("users.o", &users), ("any.o", &any)]);
    assert_eq!(
        text,
        "users.o cannot be linked: it is for gfx90a:xnack+, which does not fit gfx90a: link for gfx90a:xnack+, or \
         compile it for gfx90a"
    );
    let other = object(DEFINITIONS, "gfx942", "", 5);
    let text = refused("gfx942", &[("users.o", &users), ("other.o", &other)]);
    assert!(
        text.starts_with("users.o is for gfx90a:xnack+ and other.o is for gfx942: no device"),
        "{text}"
    );
    let text = refused("gfx1100", &[("other.o", &other)]);
    assert!(text.contains("it is for gfx942, which does not fit gfx1100"), "{text}");
}

#[test]
fn options_for_code_generation_are_refused() {
    let kernels = object(KERNELS, "gfx942", "", 5);
    let options = LinkOptions {
        ptx: PtxOptions {
            max_registers: Some(32),
            ..PtxOptions::default()
        },
        ..LinkOptions::default()
    };
    let inputs = [LinkInput::detect("k.o", &kernels).unwrap()];
    let tools = PtxToCubin::new(NvidiaParts::default());
    let error = link_inputs(&inputs, &"gfx942".parse().unwrap(), &options, &tools).unwrap_err();
    assert!(
        error.to_string().contains("have no effect on AMDGPU objects"),
        "{error}"
    );
}

/// A kernel which calls a function of another object.
const CALLS: &str = "declare i32 @callee(ptr addrspace(1), i32)\n\
    define amdgpu_kernel void @k(ptr addrspace(1) %x) {\n  %v = load i32, ptr addrspace(1) %x\n\
      %r = call i32 @callee(ptr addrspace(1) %x, i32 %v)\n  store i32 %r, ptr addrspace(1) %x\n  ret void\n}\n";

#[test]
fn a_kernel_with_too_few_registers_is_refused() {
    let kernel = object(CALLS, "gfx942", "", 5);
    let modest = "define i32 @callee(ptr addrspace(1) %x, i32 %v) { %r = add i32 %v, 1 ret i32 %r }\n";
    let modest = object(modest, "gfx942", "", 5);
    assert!(link_for("gfx942", &[("k.o", &kernel), ("modest.o", &modest)]).is_ok());
    let hungry = "define i32 @callee(ptr addrspace(1) %x, i32 %v) {\n\
        call void asm sideeffect \"\", \"~{v63},~{a7},~{s50}\"()\n  ret i32 %v\n}\n";
    let hungry = object(hungry, "gfx942", "", 5);
    let text = refused("gfx942", &[("k.o", &kernel), ("hungry.o", &hungry)]);
    let start = "kernels have fewer registers than functions need that they call:\n  \
        kernel k of k.o has 44 vector registers, function callee of hungry.o uses 64\n";
    assert!(text.starts_with(start), "{text}");
    assert!(
        text.contains("has 0 accumulation registers") && text.contains("has 36 scalar registers"),
        "{text}"
    );
    assert!(
        text.ends_with("or compile the kernels with gpulower and these objects."),
        "{text}"
    );
    // Through a second object.
    let between = "declare i32 @deep(ptr addrspace(1), i32)\ndefine i32 @callee(ptr addrspace(1) %x, i32 %v) {\n\
        %r = call i32 @deep(ptr addrspace(1) %x, i32 %v)\n  ret i32 %r\n}\n";
    let between = object(between, "gfx942", "", 5);
    let deep = object(
        "define i32 @deep(ptr addrspace(1) %x, i32 %v) {\n  call void asm sideeffect \"\", \"~{v95}\"()\n  ret i32 %v\n}\n",
        "gfx942",
        "",
        5,
    );
    let text = refused(
        "gfx942",
        &[("k.o", &kernel), ("between.o", &between), ("deep.o", &deep)],
    );
    assert!(
        text.contains("has 44 vector registers, function callee of between.o uses 96"),
        "{text}"
    );
}
