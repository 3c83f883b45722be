//! Tests of the link against spawned tools.

use super::{
    amd::{NamedObject, link_object, link_objects},
    link_error::DeviceLinkError,
};
use crate::image::hsaco::Hsaco;
use gpulower_testing::amd::{DEFINITIONS, KERNELS, UNDEFINED, object, run, spawned_lld, tool};

fn named<'a>(name: &'a str, bytes: &'a [u8]) -> NamedObject<'a> {
    NamedObject { name, bytes }
}

/// An archive with one member, `member.o`.
fn archive(directory: &std::path::Path, member: &[u8], options: &str) -> Vec<u8> {
    let (object, archive) = (directory.join("member.o"), directory.join("lib.a"));
    std::fs::write(&object, member).unwrap();
    let (archive_name, object_name) = (archive.to_str().unwrap(), object.to_str().unwrap());
    let mut arguments = vec!["rcs", archive_name, object_name];
    if !options.is_empty() {
        arguments.insert(0, options);
    }
    run("llvm-ar", &arguments, b"");
    std::fs::read(archive).unwrap()
}

#[test]
fn the_result_is_what_ld_lld_and_clang_write() {
    let directory = tempfile::tempdir().unwrap();
    for chip in ["gfx90a", "gfx942", "gfx1100"] {
        for version in [4, 5, 6] {
            let object = object(KERNELS, chip, "", version);
            let linked = link_object("kernels.o", &object).unwrap();
            assert_eq!(linked.warnings, Vec::<String>::new());
            let spawned = spawned_lld(directory.path(), &[&object]);
            assert!(linked.bytes == spawned, "{chip} V{version}");

            let (input, out) = (directory.path().join("0.o"), directory.path().join("clang"));
            let cpu = format!("-mcpu={chip}");
            let (input, out_name) = (input.to_str().unwrap(), out.to_str().unwrap());
            let target = "--target=amdgcn-amd-amdhsa";
            run("clang", &[target, &cpu, input, "-o", out_name], b"");
            assert!(linked.bytes == std::fs::read(&out).unwrap(), "{chip} V{version}");

            let read = Hsaco::read(&linked.bytes).unwrap();
            assert!(read.linked);
            assert_eq!(read.kernels.len(), 3);
        }
    }
}

#[test]
fn several_objects_are_linked_and_their_kernels_joined() {
    let directory = tempfile::tempdir().unwrap();
    let users = object(UNDEFINED, "gfx942", "", 5);
    let definitions = object(DEFINITIONS, "gfx942", "", 5);
    let kernels = object(KERNELS, "gfx942", "", 5);
    let inputs = [
        named("users.o", &users),
        named("definitions.o", &definitions),
        named("kernels.o", &kernels),
    ];
    let linked = link_objects(&inputs).unwrap();
    let spawned = spawned_lld(directory.path(), &[&users, &definitions, &kernels]);
    assert!(linked.bytes == spawned);
    let read = Hsaco::read(&linked.bytes).unwrap();
    let names: Vec<&str> = read.resources().map(|kernel| kernel.name.as_str()).collect();
    assert_eq!(names, ["one", "two", "saxpy", "scratch", "spill"]);

    let archive = archive(directory.path(), &definitions, "");
    let inputs = [named("users.o", &users), named("lib.a", &archive)];
    let linked = link_objects(&inputs).unwrap();
    let spawned = spawned_lld(directory.path(), &[&users, &archive]);
    assert!(linked.bytes == spawned);
}

#[test]
fn undefined_symbols_are_all_named_before_the_link() {
    let users = object(UNDEFINED, "gfx942", "", 5);
    let error = link_object("users.o", &users).unwrap_err();
    assert_eq!(
        error.to_string(),
        "undefined symbols in the AMDGPU link: `missing_a` (used by users.o), `missing_b` (used by users.o); \
         link the device library or object that defines them"
    );
    let half = object("define void @missing_b() { ret void }", "gfx942", "", 5);
    let error = link_objects(&[named("users.o", &users), named("half.o", &half)]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "undefined symbol in the AMDGPU link: `missing_a` (used by users.o); link the device library or object \
         that defines it"
    );
}

#[test]
fn undefined_symbols_behind_an_archive_are_named_by_lld() {
    let directory = tempfile::tempdir().unwrap();
    let users = object(UNDEFINED, "gfx942", "", 5);
    let half = object(
        "define void @missing_b() { call void @deeper() ret void }\ndeclare void @deeper()",
        "gfx942",
        "",
        5,
    );
    let archive = archive(directory.path(), &half, "");
    let inputs = [named("users.o", &users), named("lib.a", &archive)];
    let error = link_objects(&inputs).unwrap_err().to_string();
    let expected = "undefined symbols in the AMDGPU link: `deeper` (used by ";
    let rest = error.strip_prefix(expected).expect(&error);
    let (first, second) = rest.split_once("), `missing_a` (used by ").expect(&error);
    assert!(first.contains("lib.a"), "{error}");
    assert!(second.contains("users.o"), "{error}");
}

#[test]
fn weak_symbols_and_section_bounds_may_stay_undefined() {
    let ir = r#"
@entry = global i32 7, section "table"
@weak = extern_weak addrspace(1) global i32
@__start_table = external hidden addrspace(1) global i32
define amdgpu_kernel void @k(ptr addrspace(1) %x) {
  store volatile ptr addrspace(1) @weak, ptr addrspace(1) %x
  store volatile ptr addrspace(1) @__start_table, ptr addrspace(1) %x
  ret void
}
"#;
    let ir = ir.replace("@entry = global", "@entry = addrspace(1) global");
    let object = object(&ir, "gfx942", "", 5);
    let linked = link_object("k.o", &object).unwrap();
    let directory = tempfile::tempdir().unwrap();
    assert!(linked.bytes == spawned_lld(directory.path(), &[&object]));
}

#[test]
fn lld_errors_carry_the_names_of_the_inputs() {
    let one = object(KERNELS, "gfx942", "", 5);
    let other = object(DEFINITIONS, "gfx90a", "", 5);
    let error = link_objects(&[named("one.o", &one), named("other.o", &other)]).unwrap_err();
    let text = error.to_string();
    assert!(
        text.starts_with("lld could not link one.o, other.o: error: incompatible mach: other.o"),
        "{text}"
    );
    assert!(!text.contains("/proc/"), "{text}");

    let one = object(KERNELS, "gfx90a", "+xnack", 5);
    let other = object(DEFINITIONS, "gfx90a", "-xnack", 5);
    let error = link_objects(&[named("one.o", &one), named("other.o", &other)]).unwrap_err();
    assert!(error.to_string().contains("incompatible xnack: other.o"), "{error}");

    let twice = link_objects(&[named("first.o", &one), named("second.o", &one)]).unwrap_err();
    let text = twice.to_string();
    assert!(
        text.contains("duplicate symbol: saxpy")
            && text.contains("first.o")
            && text.contains("second.o")
            && !text.contains("/proc/"),
        "{text}"
    );
}

#[test]
fn inputs_that_are_no_objects_are_refused_by_name() {
    let text = |name: &str, bytes: &[u8]| link_object(name, bytes).unwrap_err().to_string();
    assert_eq!(
        link_objects(&[]).unwrap_err().to_string(),
        "nothing to link: no AMDGPU object was given"
    );
    let good = object(KERNELS, "gfx942", "", 5);
    let error = text("half.o", &good[..good.len() / 2]);
    assert!(
        error.starts_with("`half.o` cannot be linked for AMDGPU: truncated ELF file"),
        "{error}"
    );
    let error = text("k.txt", b"hello");
    assert!(
        error.contains("`k.txt`") && error.contains("not an ELF file"),
        "{error}"
    );
    let linked = link_object("good.o", &good).unwrap().bytes;
    let error = text("k.hsaco", &linked);
    assert!(
        error.contains("`k.hsaco`") && error.contains("its ELF type is 3"),
        "{error}"
    );
    let host = run(
        "llc",
        &["-mtriple=x86_64-linux-gnu", "-filetype=obj", "-o", "-", "-"],
        b"define void @f() { ret void }",
    );
    let error = text("host.o", &host);
    assert!(error.contains("ELF for machine 62"), "{error}");
    let bitcode = run("llvm-as", &["-o", "-", "-"], b"define void @f() { ret void }");
    let error = text("k.bc", &bitcode);
    assert!(error.contains("it is LLVM bitcode"), "{error}");
    let directory = tempfile::tempdir().unwrap();
    let thin = archive(directory.path(), &good, "--thin");
    let error = text("lib.a", &thin);
    assert!(error.contains("thin archive"), "{error}");
}

#[test]
fn a_fatal_error_in_lld_is_an_error_and_the_next_link_works() {
    let directory = tempfile::tempdir().unwrap();
    let good = object(KERNELS, "gfx942", "", 5);
    let expected = spawned_lld(directory.path(), &[&good]);
    // An archive member whose section headers lie behind its end passes the checks made before the link.
    let users = object(UNDEFINED, "gfx942", "", 5);
    let definitions = object(DEFINITIONS, "gfx942", "", 5);
    let mut damaged = archive(directory.path(), &definitions, "");
    let member = damaged
        .windows(definitions.len())
        .position(|window| window == definitions)
        .unwrap();
    damaged[member + 46] = 1;
    for _ in 0..3 {
        let inputs = [named("users.o", &users), named("damaged.a", &damaged)];
        let error = link_objects(&inputs).unwrap_err();
        assert!(matches!(error, DeviceLinkError::Tool { .. }), "{error:?}");
        let text = error.to_string();
        assert!(text.contains("section header table goes past the end"), "{text}");
        assert!(text.contains("damaged.a(member.o)"), "{text}");
        // A section that reaches far behind the end of the file is for lld to find.
        let mut broken = good.clone();
        let table = usize::try_from(u64::from_le_bytes(good[40..48].try_into().unwrap())).unwrap();
        for index in 1..usize::from(good[60]) {
            if broken[table + 64 * index + 4] == 1 {
                broken[table + 64 * index + 32 + 6] = 1;
            }
        }
        let error = link_object("broken.o", &broken).unwrap_err();
        assert!(matches!(error, DeviceLinkError::Tool { .. }), "{error:?}");
        assert!(error.to_string().contains("broken.o"), "{error}");
        assert!(link_object("good.o", &good).unwrap().bytes == expected);
    }
}

#[test]
fn threads_get_the_same_bytes() {
    let object = object(KERNELS, "gfx1100", "", 6);
    let first = link_object("k.o", &object).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..10 {
                    assert!(link_object("k.o", &object).unwrap() == first);
                }
            });
        }
    });
}

#[test]
fn the_tools_are_those_of_llvm_22() {
    let version = run("ld.lld", &["--version"], b"");
    let version = String::from_utf8(version).unwrap();
    assert!(version.contains("LLD 22."), "{}: {version}", tool("ld.lld").display());
}
