//! The oracle is LLVM: the object that it writes of all kernels together.

use gpulower_image::image::{hsaco::Hsaco, join_object::join};
use gpulower_testing::amd::{DEFINITIONS, object, spawned_lld};

const CHIPS: [&str; 6] = ["gfx906", "gfx90a", "gfx942", "gfx1030", "gfx1100", "gfx1201"];

/// Kernels of several sizes: plain, with scratch memory, with memory of the workgroup, with a required block.
fn kernel(name: &str, form: usize) -> String {
    let (before, body, attributes) = match form % 4 {
        0 => (String::new(), "%r = fadd float %v, %v", ""),
        1 => (
            String::new(),
            "%m = alloca [64 x float], addrspace(5)\n %i = and i32 %t, 63\n\
             %q = getelementptr float, ptr addrspace(5) %m, i32 %i\n store volatile float %v, ptr addrspace(5) %q\n\
             %r = load volatile float, ptr addrspace(5) %m",
            "",
        ),
        2 => (
            format!("@{name}_tile = internal addrspace(3) global [256 x float] poison\n"),
            "%q = getelementptr float, ptr addrspace(3) @NAME_tile, i32 %t\n store float %v, ptr addrspace(3) %q\n\
             call void @llvm.amdgcn.s.barrier()\n %r = load float, ptr addrspace(3) @NAME_tile",
            "\"amdgpu-flat-work-group-size\"=\"256,256\"",
        ),
        _ => (
            String::new(),
            "%d = fdiv float %v, 3.0\n %e = call float @llvm.sqrt.f32(float %d)\n %r = fdiv float %d, %e",
            "\"amdgpu-flat-work-group-size\"=\"1,64\"",
        ),
    };
    let body = body.replace("NAME", name);
    format!(
        "{before}define amdgpu_kernel void @{name}(ptr addrspace(1) %p, float %x) {attributes} {{\n\
         %t = call i32 @llvm.amdgcn.workitem.id.x()\n %a = getelementptr float, ptr addrspace(1) %p, i32 %t\n\
         %v = load float, ptr addrspace(1) %a\n {body}\n store float %r, ptr addrspace(1) %a\n ret void\n}}\n"
    )
}

/// Names that end, begin and sort like each other.
const NAMES: [&str; 9] = [
    "k",
    "kk",
    "k_long_name_indeed",
    "indeed",
    "z",
    "a",
    "text",
    "_Z4axpyPf",
    "k1",
];

#[test]
fn joined_objects_are_the_object_of_the_whole() {
    for (place, chip) in CHIPS.into_iter().enumerate() {
        let version = 4 + place as u32 % 3;
        let texts: Vec<String> = (0..9).map(|number| kernel(NAMES[number], number * 5 + place)).collect();
        let whole = object(&texts.concat(), chip, "", version);
        let parts: Vec<Vec<u8>> = texts.iter().map(|text| object(text, chip, "", version)).collect();
        let given: Vec<(&[u8], _)> = parts.iter().map(|part| (part.as_slice(), &[] as &[_])).collect();
        assert!(join(&given).unwrap() == whole, "{chip}");
        assert!(join(&given[..1]).unwrap() == parts[0], "{chip}");
        // Some of them made together, and all of them by another name.
        let two = object(&texts[..2].concat(), chip, "", version);
        let mut mixed = given.clone();
        mixed.splice(..2, [(two.as_slice(), &[] as &[_])]);
        assert!(join(&mixed).unwrap() == whole, "{chip}");
        let others: Vec<Vec<u8>> = (0..9)
            .map(|number| object(&kernel("placeholder_", number * 5 + place), chip, "", version))
            .collect();
        let renamings = NAMES.map(|name| [("placeholder_", name)]);
        let renamed: Vec<(&[u8], _)> = others
            .iter()
            .zip(&renamings)
            .map(|(part, to)| (part.as_slice(), &to[..]))
            .collect();
        assert!(join(&renamed).unwrap() == whole, "{chip}");
        // lld takes it.
        let directory = tempfile::tempdir().unwrap();
        let linked = spawned_lld(directory.path(), &[&join(&given).unwrap()]);
        let kernels = Hsaco::read(&linked).unwrap().kernels;
        let names: Vec<&str> = kernels.iter().map(|kernel| kernel.resources.name.as_str()).collect();
        assert_eq!(names, NAMES);
    }
}

#[test]
fn what_is_not_known_is_refused() {
    let one = object(&kernel("one", 0), "gfx942", "", 5);
    let error = |parts: &[&[u8]]| {
        let parts: Vec<(&[u8], _)> = parts.iter().map(|part| (*part, &[] as &[_])).collect();
        join(&parts).unwrap_err().to_string()
    };
    assert!(error(&[]).contains("there are none"));
    assert!(error(&[&one, &one]).contains("the same name"));
    let other = object(&kernel("two", 0), "gfx90a", "", 5);
    assert!(error(&[&one, &other]).contains("different kinds"));
    let with_table = "@table = addrspace(1) global [4 x float] zeroinitializer\n".to_owned() + &kernel("two", 0);
    assert!(error(&[&one, &object(&with_table, "gfx942", "", 5)]).contains("other sections"));
    assert!(error(&[&object(DEFINITIONS, "gfx942", "", 5)]).contains("AMDGPU objects are not joined"));
    // Every byte of an object is looked at: one that changed is seen, or is one that the whole has as well.
    for place in (0..one.len()).step_by(3) {
        let mut changed = one.clone();
        changed[place] ^= 0x11;
        if let Ok(joined) = join(&[(&changed, &[])]) {
            assert!(joined == changed, "byte {place}");
        }
        let _ = join(&[(&one[..place], &[])]);
    }
}
