//! The oracle is what `ptxas` wrote for all kernels together.

use super::*;
use crate::{
    container::fatbin,
    image::ptx_components,
    recorded_tests::Ptxas,
    seeds_tests::{damaged_by, short, told},
};
use gpulower_testing::{
    kernels::{BODIES, BRANCHES, DIVISION, FILES, PLAIN, SHARED, head, kernel, lines},
    nvidia,
};
use md5::{Digest as _, Md5};

const NAMES: [&str; 6] = ["k", "k1", "_Z4axpyfPfS_", "text", "a$b", "gamma"];

fn borrowed(parts: &[Vec<u8>]) -> Vec<&[u8]> {
    parts.iter().map(Vec::as_slice).collect()
}

/// Everything that is compared for a chip; what is told of parts, of damaged ones and of what refuses them.
fn all(mut ptxas: Ptxas) -> String {
    let named: Vec<String> = NAMES
        .iter()
        .zip(BODIES)
        .map(|(name, body)| kernel(name, body))
        .collect();
    let parts: Vec<Vec<u8>> = named.iter().map(|text| ptxas.cubin(text, &[])).collect();
    assert!(join(&borrowed(&parts)).unwrap() == ptxas.cubin(&named.concat(), &[]));
    let names: [(&str, &str); 2] = [("content_1", DIVISION), ("content_2", BRANCHES)];
    let [one, two] = names.map(|(name, body)| ptxas.cubin(&kernel(name, body), &[]));
    let renamed: [Renaming<'_>; 3] = [&[("content_1", "first")], &[], &[("content_1", "a_copy_of_the_first")]];
    let joined = join_renamed(&[(&one, renamed[0]), (&two, renamed[1]), (&one, renamed[2])]).unwrap();
    let whole = [
        ("first", DIVISION),
        ("content_2", BRANCHES),
        ("a_copy_of_the_first", DIVISION),
    ];
    assert!(joined == ptxas.cubin(&whole.map(|(name, body)| kernel(name, body)).concat(), &[]));

    // Lines of the PTX that need one byte, and two.
    let bodies = [lines(1, 1, PLAIN), lines(2, 4000, DIVISION), PLAIN.to_owned()];
    let kernels: Vec<String> = NAMES
        .iter()
        .zip(&bodies)
        .map(|(name, body)| kernel(name, body))
        .collect();
    let options = ["-lineinfo"];
    let with_lines: Vec<Vec<u8>> = kernels
        .iter()
        .map(|text| ptxas.cubin(&(text.clone() + FILES), &options))
        .collect();
    assert!(join(&borrowed(&with_lines)).unwrap() == ptxas.cubin(&(kernels.concat() + FILES), &options));

    let module = format!(
        ".func (.param .f32 r) half(.param .f32 x) {{ .reg .f32 %f<2>; ld.param.f32 %f1, [x]; \
         mul.f32 %f1, %f1, 0f3F000000; st.param.f32 [r], %f1; ret; }}\n.shared .align 4 .b8 tile[512];\n{}{}{}",
        kernel("calls", "call (%f1), half, (%f1);"),
        kernel(
            "shares",
            "st.shared.f32 [tile], %f1; bar.sync 0; ld.shared.f32 %f1, [tile+4];"
        ),
        kernel(
            "both",
            "st.shared.f32 [tile], %f1; bar.sync 0; call (%f1), half, (%f1);"
        ),
    );
    let whole = head(ptxas.chip) + &module;
    let components = ptx_components::components(&whole).unwrap();
    let components: Vec<Vec<u8>> = components
        .iter()
        .map(|part| ptxas.cubin(part.text().split_once("64\n").expect("a head").1, &[]))
        .collect();
    assert!(join(&borrowed(&components)).unwrap() == ptxas.cubin(&module, &[]));

    let variable = |name: &str| {
        let body = format!("ld.global.f32 %f1, [of_{name}]; ld.const.f32 %f2, [constant_{name}+4];");
        format!(
            ".global .f32 of_{name} = 0f3F800000;\n.const .align 4 .b8 constant_{name}[64];\n{}",
            kernel(name, &body)
        )
    };
    let variables = ["one", "two"].map(|name| ptxas.cubin(&variable(name), &[]));
    let other_options = ptxas.cubin(&kernel("k", SHARED), &["-O1"]);
    // As far as the head, which each release and chip has for itself.
    let rest = |text: String| text.split_once("64\n").expect("a head").1.to_owned();
    let rich = ptxas.cubin(&rest(nvidia::rich_module("8.0", "sm_90")), &[]);
    let recursive = ptxas.cubin(&rest(nvidia::recursive_module()), &[]);
    let linked = ptxas.cubin(&rest(nvidia::LINKED_KERNELS.to_owned()), &["-c"]);

    let mut digest = Md5::new();
    let mut cubins = [parts, with_lines, components, variables.to_vec()].concat();
    cubins.extend([one, two, other_options, rich, recursive, linked]);
    for (index, cubin) in cubins.iter().enumerate() {
        let plain = join(&[cubin, &cubins[index / 2]]).map_err(|error| error.to_string());
        digest.update(format!("{plain:?}{:?}", join(&[&cubins[3], cubin, &cubins[0]])));
        digest.update(told("cubin", cubin));
        digest.update(told("elf", cubin));
        digest.update(told("inspect", cubin));
        for chip in ["sm_80", "sm_90", "sm_90a", "sm_100", "sm_100a", "sm_100f"] {
            let image = fatbin::Image::new(fatbin::Content::Cubin(cubin), chip).unwrap();
            digest.update(format!(
                "{:?}",
                fatbin::write(&[image]).map_err(|error| error.to_string())
            ));
        }
        let of_damaged = |bytes: &[u8]| format!("{:?}", join(&[bytes, &cubins[0]]).map_err(|error| error.to_string()));
        digest.update(damaged_by(&of_damaged, cubin, 20 + index % 7));
    }
    short(digest)
}

#[test]
fn turing() {
    assert_eq!(all(Ptxas::new("13.0", "sm_75")), "00a1992ca1d3");
}

#[test]
fn ampere_with_cuda_12() {
    assert_eq!(all(Ptxas::new("12.4", "sm_80")), "360c8b4529d5");
}

#[test]
fn hopper() {
    assert_eq!(all(Ptxas::new("13.0", "sm_90")), "f1cbc582d6e6");
}

#[test]
fn blackwell() {
    assert_eq!(all(Ptxas::new("13.0", "sm_100")), "e73b8a9cefec");
}

#[test]
fn kernels_are_called_something_else_than_what_is_shared() {
    let cubin = include_bytes!("../../../../../fuzz/corpus/cubin/sm_90a.cubin");
    for (name, is_refused) in [
        ("", true),
        ("two words", true),
        ("zero\0", true),
        ("_param", true),
        ("a_1$%", false),
    ] {
        let joined = join_renamed(&[(cubin, &[("k", name)])]);
        assert_eq!(joined.is_err(), is_refused, "{name:?}");
    }
}
