use super::*;

fn finish(text: &str) -> FinishWith {
    text.parse().expect(text)
}

fn cudas(list: &[&str]) -> Vec<CudaRelease> {
    list.iter().map(|text| text.parse().expect(text)).collect()
}

fn form(list: &str, chip: &str, ptxas: &[&str], bitcode: bool) -> Result<ImageRecipe, String> {
    let target: NvidiaTarget = chip.parse().expect(chip);
    nvidia(&finish(list), &target, &cudas(ptxas), bitcode).map_err(|error| error.to_string())
}

#[test]
fn nvlink_takes_what_was_observed() {
    let release = |text: &str| text.parse::<CudaRelease>().expect(text);
    for (maker, linker, expected) in [
        ("11.8", "11.8", true),
        ("11.8", "12.4", false),
        ("11.8", "13.0", false),
        ("12.4", "11.8", false),
        ("12.4", "12.4", true),
        ("12.4", "13.0", true),
        ("13.0", "11.8", false),
        ("13.0", "12.4", false),
        ("13.0", "13.0", true),
    ] {
        assert_eq!(links(release(maker), release(linker)), expected, "{maker} {linker}");
    }
}

#[test]
fn the_form_follows_from_clang_and_cuda() {
    let cubin = |text: &str| {
        Ok(ImageRecipe::RelocatableCubin {
            ptxas: text.parse().expect(text),
        })
    };
    let ptx = |text: &str| {
        Ok(ImageRecipe::Ptx {
            newest: text.parse().expect(text),
        })
    };
    assert_eq!(form("22,cuda-13.0", "sm_90", &["13.0"], false), cubin("13.0"));
    assert_eq!(
        form("22,cuda-12.4,cuda-13.0", "sm_90", &["12.4", "13.0", "12.2"], false),
        cubin("12.4")
    );
    assert_eq!(
        form("15..19,cuda-11.8", "sm_80", &["11.8", "13.0"], false),
        cubin("11.8")
    );
    // Nvlink alone sees a cubin: clang does not have to know the chip.
    assert_eq!(form("15..19,cuda-13.0", "sm_100", &["13.0"], false), cubin("13.0"));
    assert_eq!(form("16..19,cuda-12.4", "sm_90a", &["12.4"], false), cubin("12.4"));
    // Only a newer ptxas here: PTX, for the ptxas on the other machine.
    assert_eq!(form("16..19,cuda-11.8", "sm_80", &["13.0"], false), ptx("7.8"));
    assert_eq!(form("19,cuda-12.4", "sm_90a", &["13.0"], false), ptx("8.4"));
    assert_eq!(
        form("22,cuda-12.4", "sm_80", &["13.0"], true),
        Ok(ImageRecipe::Bitcode {
            oldest: ClangRelease::new(22).expect("22")
        })
    );
    assert_eq!(form("15,cuda-11.8", "sm_90", &["11.8"], false), cubin("11.8"));
}

#[test]
fn what_no_form_serves_is_refused_with_every_reason() {
    for (list, chip, ptxas, message) in [
        (
            "22,cuda-12.4",
            "sm_80",
            &["13.0"][..],
            "no form of image for sm_80 serves clang 22 with CUDA 12.4: relocatable cubin: ptxas here is of CUDA 13.0, and \
             a ptxas of CUDA 12.0 up to 12.4 that knows sm_80 would do; PTX: not with clang 22, its clang-nvlink-wrapper \
             takes no PTX (\"Unsupported file type\"); bitcode: only with host IR (--emit ll or bc); --emit self, which \
             needs no clang, carries PTX and linked cubins",
        ),
        (
            "21,cuda-11.8,cuda-12.4",
            "sm_80",
            &["11.8", "12.4"],
            "no form of image for sm_80 serves clang 21 with CUDA 11.8, 12.4: relocatable cubin: the nvlink of CUDA 11.8 \
             and that of CUDA 12.4 take none in common; PTX: not with clang 21",
        ),
        (
            "22,cuda-11.8",
            "sm_80",
            &[],
            "no form of image for sm_80 serves clang 22 with CUDA 11.8: relocatable cubin: \
             there is no ptxas here, and a ptxas of CUDA 11 up to 11.8",
        ),
        ("22", "sm_80", &["13.0"], "say which CUDA toolkit is on the machine"),
        (
            "22,cuda-11.8",
            "sm_100",
            &["13.0"],
            "nothing can be made for the CUDA toolkit on the other machine: ",
        ),
        (
            "22,cuda-13.0",
            "sm_52",
            &["12.4"],
            "nothing can be made for the CUDA toolkit on the other machine: ",
        ),
        (
            "16..19,cuda-12.4",
            "sm_90a",
            &["13.0"],
            "no form of image for sm_90a serves clang 16 to 19 with CUDA 12.4: relocatable cubin: ptxas here is of CUDA \
             13.0, and a ptxas of CUDA 12.0 up to 12.4 that knows sm_90a would do; PTX: clang 16 does not know sm_90a; \
             bitcode: only with host IR",
        ),
    ] {
        let error = form(list, chip, ptxas, false).expect_err(list);
        assert!(error.starts_with(message), "{list} {chip}: {error}");
    }
}

#[test]
fn bitcode_needs_a_clang_that_compiles_for_the_chip() {
    for (clangs, cuda, chip, ignorant) in [
        ("15,22", "11.8", "sm_86", None),
        ("15,22", "11.8", "sm_90", Some("clang 15")),
        ("16..23", "11.8", "sm_87", None),
        ("17..20", "12.4", "sm_90a", Some("clang 17")),
        ("18..20", "12.4", "sm_90a", None),
        ("19,20", "12.8", "sm_100", Some("clang 19")),
        ("20", "12.8", "sm_120a", None),
        ("20", "12.9", "sm_100f", Some("clang 20")),
        ("21", "12.9", "sm_103", None),
        ("22,23", "13.0", "sm_88", Some("clang 22")),
        ("22", "13.0", "sm_110a", Some("clang 22")),
        ("23", "13.0", "sm_110", None),
    ] {
        let (list, context) = (format!("{clangs},cuda-{cuda}"), format!("{clangs} {chip}"));
        match (form(&list, chip, &[], true), ignorant) {
            (Ok(recipe), None) => assert_eq!(recipe.form(), ImageForm::Bitcode, "{context}"),
            (Err(error), Some(release)) => {
                let reason = format!("; bitcode: {release} cannot compile it for {chip}; --emit self");
                assert!(error.contains(&reason), "{context}: {error}");
            }
            (found, _) => panic!("{context}: {found:?}"),
        }
    }
}

#[test]
fn code_objects_by_release() {
    let amd = |list: &str, chip: &str, wanted| {
        let target: AmdTarget = chip.parse().expect(chip);
        amd(&finish(list), &target, wanted).map_err(|error| error.to_string())
    };
    let version = |version| Ok(ImageRecipe::AmdObject { version });
    assert_eq!(amd("15..20", "gfx90a", None), version(CodeObjectVersion::V5));
    assert_eq!(amd("21..23", "gfx942:xnack-", None), version(CodeObjectVersion::V5));
    assert_eq!(amd("15", "gfx942", None), version(CodeObjectVersion::V5));
    assert_eq!(amd("19", "gfx11-generic", None), version(CodeObjectVersion::V6));
    assert_eq!(
        amd("15..20", "gfx90a", Some(CodeObjectVersion::V4)),
        version(CodeObjectVersion::V4)
    );
    for (chip, first) in [
        ("gfx1100", 15),
        ("gfx1151", 17),
        ("gfx1200", 18),
        ("gfx1152", 19),
        ("gfx950", 20),
        ("gfx1250", 21),
        ("gfx1251", 22),
    ] {
        let (known, unknown) = (first.max(16), first - 1);
        assert!(amd(&known.to_string(), chip, None).is_ok(), "{chip} {known}");
        if unknown >= 16 {
            let error = amd(&unknown.to_string(), chip, None).expect_err(chip);
            let message =
                format!("clang {unknown} does not know {chip} and refuses its images; finish with clang {first}");
            assert!(error.starts_with(&message), "{error}");
        }
        assert!(amd("15", chip, None).is_ok(), "{chip}");
    }
    for (list, chip, wanted, message) in [
        (
            "18",
            "gfx12-generic",
            None,
            "clang 18 does not know gfx12-generic and refuses its images; finish with clang 19 or newer, or ask for --emit \
             self",
        ),
        (
            "15..19",
            "gfx942",
            None,
            "clang 16 does not know gfx942 and refuses its images; finish with clang 17 or newer (clang 15 does not ask), \
             or ask for --emit self, which needs no clang",
        ),
        (
            "18",
            "gfx90a",
            Some(CodeObjectVersion::V6),
            "code object version 6 does not serve clang 18: its lld does not know code object version 6 (\"unknown abi \
             version\"); version 5 serves clang 15 to 23",
        ),
        (
            "21",
            "gfx90a",
            Some(CodeObjectVersion::V4),
            "code object version 4 does not serve clang 21: it does not take",
        ),
    ] {
        let error = amd(list, chip, wanted).expect_err(list);
        assert!(error.starts_with(message), "{list} {chip}: {error}");
    }
}

#[test]
fn each_chip_has_a_first_clang() {
    for (chip, release) in [
        ("sm_86", 15),
        ("sm_87", 16),
        ("sm_88", 23),
        ("sm_89", 16),
        ("sm_90", 16),
        ("sm_90a", 18),
        ("sm_100a", 20),
        ("sm_100f", 21),
        ("sm_103", 21),
        ("sm_110", 23),
        ("sm_121a", 21),
    ] {
        assert_eq!(first_clang_nvidia(&chip.parse().expect(chip)), release, "{chip}");
    }
}
