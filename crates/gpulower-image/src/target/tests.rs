//! Tests of targets of either vendor.

use super::*;

fn message(list: &str) -> String {
    Target::parse_list(list).expect_err(list).to_string()
}

#[test]
fn all_targets_round_trip() {
    let all: Vec<Target> = Target::all().collect();
    assert!(all.is_sorted());
    for target in all {
        assert_eq!(target.to_string().parse(), Ok(target));
        let triple = match target.vendor() {
            Vendor::Nvidia => "nvptx64-nvidia-cuda",
            Vendor::Amd => "amdgcn-amd-amdhsa",
        };
        assert_eq!(target.triple(), triple);
        assert_eq!(target.chip(), target.to_string());
        assert_eq!(target.as_nvidia().is_some(), target.vendor() == Vendor::Nvidia);
        assert_eq!(target.as_amd().is_some(), target.vendor() == Vendor::Amd);
    }
}

/// Weakness W15 of upstream: three targets of `sm_80, sm_90, sm_80`.
#[test]
fn lists_keep_order_and_drop_repetitions() {
    let names = |list| -> Vec<String> {
        Target::parse_list(list)
            .unwrap()
            .iter()
            .map(Target::to_string)
            .collect()
    };
    assert_eq!(names("sm_80,sm_90,sm_80"), ["sm_80", "sm_90"]);
    assert_eq!(
        names(" gfx942:xnack- , sm_90a,gfx90a:xnack-:sramecc+,gfx90a:sramecc+:xnack-"),
        ["gfx942:xnack-", "sm_90a", "gfx90a:sramecc+:xnack-"]
    );
    // Different code, so different targets.
    assert_eq!(
        names("sm_90,compute_90,sm_90+ptx83,sm_90a"),
        ["sm_90", "compute_90", "sm_90+ptx83", "sm_90a"]
    );
}

#[test]
fn a_bad_entry_is_named() {
    assert_eq!(
        message("sm_80,sm_91,gfx942"),
        "unknown chip 'sm_91': did you mean sm_90 or sm_90a?"
    );
    assert_eq!(
        message("sm_80,gfx1030:xnack+"),
        "gfx1030 has no target ID feature 'xnack': it has none, write the chip alone"
    );
    assert_eq!(
        message("sm_80,,sm_90"),
        "target 2 of the list 'sm_80,,sm_90' is empty: remove the extra comma"
    );
    assert_eq!(
        message("sm_80,"),
        "target 2 of the list 'sm_80,' is empty: remove the extra comma"
    );
    assert_eq!(
        message(" "),
        "empty list of targets: name at least one chip, such as sm_90 or gfx942"
    );
}

#[test]
fn suggestions_come_from_the_right_vendor() {
    let message = |name: &str| name.parse::<Target>().unwrap_err().to_string();
    assert_eq!(message("sm90"), "unknown chip 'sm90': did you mean sm_90?");
    assert_eq!(message("GFX942"), "unknown chip 'GFX942': did you mean gfx942?");
    assert_eq!(
        message("x86-64"),
        "unknown chip 'x86-64': NVIDIA chips are written sm_90 (or compute_90 for PTX alone), \
         AMD chips gfx942; `gpulower targets` lists all"
    );
    assert_eq!(message(""), "empty target name: write a chip such as sm_90 or gfx942");
}

#[test]
fn targets_that_no_loader_could_tell_apart() {
    let check = |list| Target::check_one_binary(&Target::parse_list(list).unwrap());
    assert_eq!(check("sm_90,gfx90a:xnack+,gfx90a:xnack-,gfx942"), Ok(()));
    assert_eq!(check("gfx90a:sramecc+:xnack+,gfx90a:sramecc+:xnack-"), Ok(()));
    for list in ["gfx90a,sm_80,gfx90a:xnack+", "gfx90a:xnack+,gfx90a"] {
        assert_eq!(
            check(list).unwrap_err().to_string(),
            "targets gfx90a and gfx90a:xnack+ cannot be in one binary: both match a device with xnack set; \
             name xnack in all targets of the chip, or in none"
        );
    }
}

/// No input panics: every pair of pieces of names, cut at every place.
#[test]
fn nothing_panics() {
    let pieces = [
        "sm_",
        "compute_",
        "gfx",
        "90a",
        "sm_90",
        "gfx90a",
        ":",
        "+",
        "-",
        ",",
        "ptx",
        "83",
        "8.3",
        "xnack+",
        "sramecc-",
        "-generic",
        "é",
        "\0",
        "\u{1f600}",
        " ",
        "999999999999999999999",
    ];
    for a in pieces {
        for b in pieces {
            for c in ["", "sm_90", ":", "é"] {
                let text = format!("{a}{b}{c}");
                let _ = Target::parse_list(&text).map_err(|error| error.to_string());
                let _ = text.parse::<PtxIsa>().map_err(|error| error.to_string());
                let _ = text.parse::<CudaRelease>().map_err(|error| error.to_string());
                let _ = text.parse::<CodeObjectVersion>().map_err(|error| error.to_string());
                let _ = NvidiaTarget::from_llvm(a, &text).map_err(|error| error.to_string());
                let _ = AmdTarget::from_llvm("gfx90a", &text).map_err(|error| error.to_string());
            }
        }
    }
}

#[test]
fn vendors_are_called_what_they_call_themselves() {
    assert_eq!(
        [Vendor::Nvidia, Vendor::Amd].map(|vendor| vendor.to_string()),
        ["NVIDIA", "AMD"]
    );
}
