//! Tests of NVIDIA targets that need no tool.

use super::*;
use crate::target::ptx::{cuda, isa};

fn target(text: &str) -> NvidiaTarget {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn message(text: &str) -> String {
    text.parse::<NvidiaTarget>().expect_err(text).to_string()
}

#[test]
fn names_round_trip() {
    for chip in NvidiaTarget::all() {
        for kind in [NvidiaKind::Real, NvidiaKind::Virtual] {
            for ptx in [None, Some(isa(9, 0))] {
                let value = NvidiaTarget {
                    ptx,
                    ..chip.with_kind(kind)
                };
                assert_eq!(target(&value.to_string()), value);
                assert_eq!(value.chip(), chip.to_string());
            }
        }
    }
    assert_eq!(target("compute_100f").to_string(), "compute_100f");
    assert_eq!(target("compute_100f").chip(), "sm_100f");
    assert!(target("compute_90").is_virtual());
    assert_eq!(target("sm_90+ptx83").to_string(), "sm_90+ptx83");
    assert_eq!(target("sm_90+ptx83").explicit_ptx(), Some(isa(8, 3)));
}

#[test]
fn unknown_chips_get_suggestions() {
    assert_eq!(message("sm_91"), "unknown chip 'sm_91': did you mean sm_90 or sm_90a?");
    assert_eq!(message("sm90a"), "unknown chip 'sm90a': did you mean sm_90a?");
    assert_eq!(
        message("compute_99"),
        "unknown chip 'compute_99': did you mean compute_90 or compute_90a?"
    );
    assert_eq!(
        message("hopper"),
        "unknown chip 'hopper': NVIDIA chips are written sm_90 (or compute_90 for PTX alone), \
         AMD chips gfx942; `gpulower targets` lists all"
    );
}

#[test]
fn malformed_names_are_refused() {
    assert_eq!(message(""), "empty target name: write a chip such as sm_90 or gfx942");
    assert_eq!(
        message("sm_90:xnack+"),
        "'sm_90:xnack+' is not a target: only AMD chips take features after a colon"
    );
    assert_eq!(
        message("sm_90+83"),
        "'sm_90+83' is not a target: after + comes a PTX ISA version, as in sm_90+ptx83"
    );
    assert_eq!(
        message("sm_90+ptx83+ptx84"),
        "'ptx83+ptx84' is not a PTX ISA version: write it as 8.3, 83 or ptx83"
    );
    for text in [
        "sm_",
        "compute_",
        "sm_090",
        "sm_+90",
        "SM_90",
        " sm_90",
        "sm_90 ",
        "sm_90b",
        "sm_80a",
        "compute_sm_90",
    ] {
        assert!(text.parse::<NvidiaTarget>().is_err(), "{text}");
    }
}

#[test]
fn names_with_an_impossible_ptx_are_refused() {
    let message_old = "PTX 6.0 does not support sm_90: it needs 7.8 or newer; ask for 7.8 or leave the version out";
    assert_eq!(message("sm_90+ptx60"), message_old);
    assert_eq!(message("compute_90+ptx60"), message_old);
    assert_eq!(
        message("sm_100f+ptx86"),
        "PTX 8.6 does not support sm_100f: it needs 8.8 or newer; ask for 8.8 or leave the version out"
    );
    assert_eq!(
        message("sm_90+ptx91"),
        "LLVM 22 does not know PTX 9.1: the newest it writes is 9.0; ask for 9.0 or older"
    );
}

#[test]
fn ptx_is_the_chips_minimum_unless_asked() {
    let sm_90 = target("sm_90");
    assert_eq!(sm_90.resolve_ptx(None, None), Ok(isa(7, 8)));
    assert_eq!(sm_90.resolve_ptx(None, Some(isa(9, 0))), Ok(isa(7, 8)));
    assert_eq!(sm_90.resolve_ptx(Some(isa(8, 3)), Some(isa(8, 3))), Ok(isa(8, 3)));
    assert_eq!(target("sm_90+ptx83").resolve_ptx(None, None), Ok(isa(8, 3)));
    assert_eq!(target("sm_90+ptx83").resolve_ptx(Some(isa(8, 3)), None), Ok(isa(8, 3)));
    // A tool that is newer than LLVM is no reason to refuse.
    assert_eq!(sm_90.resolve_ptx(None, Some(isa(9, 9))), Ok(isa(7, 8)));
}

#[test]
fn impossible_ptx_is_refused_with_advice() {
    let refusal = |name: &str, user, tool| target(name).resolve_ptx(user, tool).unwrap_err().to_string();
    assert_eq!(
        refusal("sm_90", Some(isa(6, 0)), None),
        "PTX 6.0 does not support sm_90: it needs 7.8 or newer; ask for 7.8 or leave the version out"
    );
    assert_eq!(
        refusal("sm_90", Some(isa(9, 1)), Some(isa(9, 1))),
        "LLVM 22 does not know PTX 9.1: the newest it writes is 9.0; ask for 9.0 or older"
    );
    assert_eq!(
        refusal("sm_90", Some(isa(8, 8)), Some(isa(8, 5))),
        "PTX 8.8 is newer than the tool at hand, which reads up to PTX 8.5: ask for 8.5 or older, \
         or use a newer CUDA toolkit"
    );
    assert_eq!(
        refusal("sm_110", None, Some(isa(8, 8))),
        "sm_110 needs PTX 9.0, and the tool at hand reads up to PTX 8.8: use CUDA 13.0 or newer, or emit PTX only"
    );
    assert_eq!(
        refusal("sm_90+ptx83", Some(isa(8, 5)), None),
        "target sm_90+ptx83 names PTX 8.3, but PTX 8.5 was asked for: leave one of the two out"
    );
}

#[test]
fn cuda_releases_of_chips() {
    for (chip, first, last) in [
        ("sm_37", cuda(6, 5), Some(cuda(11, 8))),
        ("sm_50", cuda(6, 0), Some(cuda(12, 9))),
        ("sm_70", cuda(9, 0), Some(cuda(12, 9))),
        ("sm_75", cuda(10, 0), None),
        ("sm_80", cuda(11, 0), None),
        ("sm_86", cuda(11, 1), None),
        ("sm_87", cuda(11, 4), None),
        ("sm_88", cuda(13, 0), None),
        ("sm_89", cuda(11, 8), None),
        ("sm_90", cuda(11, 8), None),
        ("sm_90a", cuda(12, 0), None),
        ("sm_100a", cuda(12, 8), None),
        ("sm_100f", cuda(12, 9), None),
        ("sm_101", cuda(12, 8), Some(cuda(12, 9))),
        ("sm_103", cuda(12, 9), None),
        ("sm_110", cuda(13, 0), None),
        ("sm_120", cuda(12, 8), None),
        ("sm_121f", cuda(12, 9), None),
    ] {
        let target = target(chip);
        assert_eq!((target.first_cuda(), target.last_cuda()), (Some(first), last), "{chip}");
    }
    assert!(NvidiaTarget::all().all(|target| target.first_cuda().is_some()));
}

/// The lists of `ptxas --help`, release by release.
#[test]
fn chips_of_cuda_releases() {
    let chips = |release| -> Vec<&str> {
        NvidiaTarget::all()
            .filter(|t| t.supported_by_cuda(release))
            .map(|t| t.chip())
            .collect()
    };
    assert_eq!(
        chips(cuda(11, 8)).join(" ").replace("sm_", ""),
        "35 37 50 52 53 60 61 62 70 72 75 80 86 87 89 90"
    );
    assert_eq!(
        chips(cuda(12, 4)).join(" ").replace("sm_", ""),
        "50 52 53 60 61 62 70 72 75 80 86 87 89 90 90a"
    );
    assert_eq!(
        chips(cuda(12, 8)).join(" ").replace("sm_", ""),
        "50 52 53 60 61 62 70 72 75 80 86 87 89 90 90a 100 100a 101 101a 120 120a"
    );
    assert_eq!(
        chips(cuda(12, 9)).join(" ").replace("sm_", ""),
        "50 52 53 60 61 62 70 72 75 80 86 87 89 90 90a 100 100a 100f 101 101a 101f 103 103a 103f \
         120 120a 120f 121 121a 121f"
    );
    assert_eq!(
        chips(cuda(13, 0)).join(" ").replace("sm_", ""),
        "75 80 86 87 88 89 90 90a 100 100a 100f 103 103a 103f 110 110a 110f 120 120a 120f 121 121a 121f"
    );
}

#[test]
fn dropped_and_future_chips_are_refused_with_advice() {
    let refusal = |chip: &str, release| target(chip).check_cuda(release).unwrap_err().to_string();
    assert_eq!(
        refusal("sm_70", cuda(13, 0)),
        "CUDA 13.0 no longer compiles for sm_70: its last release is 12.9; use CUDA 9.0 to 12.9, or emit PTX only"
    );
    assert_eq!(
        refusal("sm_101a", cuda(13, 0)),
        "CUDA 13.0 no longer compiles for sm_101a: its last release is 12.9; it is called sm_110a now; name that, \
         or use CUDA 12.8 to 12.9, or emit PTX only"
    );
    assert_eq!(
        refusal("sm_100", cuda(12, 4)),
        "CUDA 12.4 does not know sm_100 yet: use CUDA 12.8 or newer, or emit PTX only"
    );
}

/// What ptxas 13.0.88 compiled: for each `.target`, with `.version 9.0`, the accepted `-arch`.
#[test]
fn ptx_compiles_where_ptxas_said() {
    const ARCHS: &str =
        "75 80 86 87 88 89 90 90a 100 100a 100f 103 103a 103f 110 110a 110f 120 120a 120f 121 121a 121f";
    let from = |first: &str| ARCHS.find(first).map_or("", |at| &ARCHS[at..]);
    for (ptx, accepted) in [
        ("50", ARCHS),
        ("75", ARCHS),
        ("80", from("80")),
        ("86", from("86")),
        ("87", from("87")),
        ("88", from("88")),
        ("89", from("89")),
        ("90", from("90 ")),
        ("90a", "90a"),
        ("100", from("100 ")),
        ("100a", "100a"),
        ("100f", "100 100a 100f 103 103a 103f"),
        ("101", from("103 ")),
        ("101a", "110a"),
        ("101f", "110 110a 110f"),
        ("103", from("103 ")),
        ("103a", "103a"),
        ("103f", "103 103a 103f"),
        ("110", from("110 ")),
        ("110a", "110a"),
        ("110f", "110 110a 110f"),
        ("120", from("120 ")),
        ("120a", "120a"),
        ("120f", "120 120a 120f 121 121a 121f"),
        ("121", from("121 ")),
        ("121a", "121a"),
        ("121f", "121 121a 121f"),
    ] {
        let found: Vec<&str> = ARCHS
            .split(' ')
            .filter(|arch| target(&format!("sm_{ptx}")).ptx_compiles_for(&target(&format!("sm_{arch}"))))
            .collect();
        assert_eq!(found.join(" "), accepted, "sm_{ptx}");
    }
    assert!(target("compute_80").ptx_compiles_for(&target("sm_86")));
    assert!(!target("compute_80").ptx_compiles_for(&target("compute_80")));
}

#[test]
fn code_runs_where_the_manual_says() {
    let cubin = |chip: &str, major, minor| target(chip).cubin_runs_on(ComputeCapability::new(major, minor));
    let ptx = |chip: &str, major, minor| target(chip).ptx_runs_on(ComputeCapability::new(major, minor));
    // The same major number, an equal or larger minor one.
    assert!(cubin("sm_80", 8, 0) && cubin("sm_80", 8, 6) && cubin("sm_86", 8, 9));
    assert!(!cubin("sm_86", 8, 0) && !cubin("sm_80", 9, 0));
    // Observed on an H200.
    assert!(cubin("sm_90", 9, 0) && cubin("sm_90a", 9, 0) && ptx("sm_80", 9, 0) && ptx("sm_90a", 9, 0));
    assert!(!cubin("sm_100", 9, 0) && !ptx("sm_100", 9, 0));
    // Suffixes.
    assert!(!cubin("sm_100a", 10, 3) && !ptx("sm_90a", 10, 0));
    assert!(cubin("sm_100f", 10, 3) && !cubin("sm_103f", 10, 0) && !cubin("sm_100f", 12, 0));
    assert!(ptx("sm_100f", 10, 3) && !ptx("sm_100f", 11, 0) && ptx("sm_120f", 12, 1));
    // 10.1 was renamed 11.0.
    assert!(ptx("sm_101a", 11, 0) && ptx("sm_101f", 11, 0) && !ptx("sm_110a", 10, 1));
    // nvJitLink 13.0 takes no machine code for 10.1 as code for 11.0.
    assert!(cubin("sm_101f", 10, 1) && !cubin("sm_101f", 11, 0) && !cubin("sm_101a", 11, 0) && cubin("sm_110f", 11, 0));
    // Tegra.
    assert!(cubin("sm_87", 8, 7) && !cubin("sm_80", 8, 7) && !cubin("sm_87", 8, 9) && !cubin("sm_70", 7, 2));
    assert!(cubin("sm_101", 10, 1) && !cubin("sm_100", 10, 1) && !cubin("sm_101", 10, 3) && cubin("sm_100", 10, 3));
    // No machine code for a virtual target; PTX all the same.
    assert!(!cubin("compute_90", 9, 0) && ptx("compute_90", 9, 0));
}

#[test]
fn attributes_are_read() {
    assert_eq!(NvidiaTarget::from_llvm("sm_90", ""), Ok(target("sm_90")));
    assert_eq!(NvidiaTarget::from_llvm("sm_90", "+ptx80"), Ok(target("sm_90+ptx80")));
    assert_eq!(
        NvidiaTarget::from_llvm("sm_90", "+ptx80,+ptx80"),
        Ok(target("sm_90+ptx80"))
    );
    let refusal = |features: &str| NvidiaTarget::from_llvm("sm_90", features).unwrap_err().to_string();
    assert_eq!(
        refusal("+ptx60"),
        "PTX 6.0 does not support sm_90: it needs 7.8 or newer; ask for 7.8 or leave the version out"
    );
    assert_eq!(
        refusal("+ptx80,+fast"),
        "'+fast' is not a target: the only feature of an NVIDIA target is its PTX ISA, written +ptx83"
    );
    assert_eq!(
        refusal("+ptx80,+ptx83"),
        "target sm_90+ptx80 names PTX 8.0, but PTX 8.3 was asked for: leave one of the two out"
    );
}
