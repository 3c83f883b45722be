//! Tests with objects that LLVM's tools made.

use super::super::{LinkInput, LinkOptions, LinkedImage, link as link_inputs};
use super::*;
use crate::serialize::nvidia::{NvidiaParts, PtxToCubin};
use crate::serialize::nvidia_options::PtxOptions;
use crate::target::Target;
use crate::testing::amd::{DEFINITIONS, KERNELS, UNDEFINED, object, run, spawned_lld};

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
