//! `gpulower doctor` and `gpulower targets`.

use serde_json::json;

use super::support::{Workshop, cuda, example};

#[test]
fn the_doctor_finds_the_toolkit_and_says_what_it_enables() {
    let work = Workshop::new();
    let text = work.run(&["doctor"]).quiet().output();
    for expected in [
        "LLVM, MLIR and lld 22.1.",
        "nvptxcompiler 13.",
        "sm_75 to ",
        "libdevice.10.bc: math functions",
        "(CUDA_HOME)",
        "AMD hsaco     yes, with math functions",
        "ocml.bc",
    ] {
        assert!(text.contains(expected), "no {expected:?} in\n{text}");
    }
}

#[test]
fn the_doctor_names_every_place_and_the_way_out() {
    let work = Workshop::new();
    let text = work.run(&["doctor", "--cuda", &example("")]).quiet().output();
    for expected in [
        "NVIDIA cubin  no: no PTX compiler can be used",
        "ptxas is missing: PTX to cubin",
        "bin/ptxas (given): no such directory",
        "to get it: install the wheel nvidia-cuda-nvcc",
    ] {
        let found = text.contains(expected) || expected.contains("bin/ptxas") && text.contains("(given): no such");
        assert!(found, "no {expected:?} in\n{text}");
    }
}

#[test]
fn the_doctor_speaks_json() {
    let work = Workshop::new();
    let report = work.run(&["doctor", "--json"]).quiet().json();
    let part = |name: &str| {
        let parts = report["parts"].as_array().expect("parts");
        parts
            .iter()
            .find(|part| part["name"] == name)
            .expect("the part")
            .clone()
    };
    let ptxas = part("ptxas");
    assert_eq!(ptxas["found"], cuda().join("bin/ptxas").display().to_string());
    assert!(
        ptxas["version"]
            .as_str()
            .is_some_and(|version| version.starts_with("13.")),
        "{ptxas}"
    );
    assert!(part("ocml.bc")["found"].is_string());
    let compiler = &report["ptx_compilers"][0];
    assert_eq!(compiler["name"], "nvptxcompiler");
    assert!(compiler["newest_ptx"].is_string(), "{compiler}");
}

#[test]
fn the_doctor_says_which_clangs_finish_exported_programs() {
    let work = Workshop::new();
    let report = work.run(&["doctor", "--json"]).quiet().json();
    let clangs = report["clangs"].as_array().expect("clangs");
    for (release, read_by) in [
        (16, json!([15, 16, 17, 18, 19])),
        (19, json!([18, 19])),
        (22, json!([21, 22, 23])),
    ] {
        let clang = clangs.iter().find(|clang| clang["release"] == release);
        let clang = clang.unwrap_or_else(|| panic!("no clang {release} (`cargo xtask setup`): {report}"));
        assert_eq!(clang["finishes"], json!(["cuda", "hip"]), "{clang}");
        assert_eq!(clang["read_by"], read_by, "{clang}");
        assert_eq!(clang["problems"], json!([]), "{clang}");
    }
    let toolkits = report["cuda_toolkits"].as_array().expect("toolkits");
    let toolkit = toolkits
        .iter()
        .find(|toolkit| toolkit["root"] == cuda().display().to_string());
    let toolkit = toolkit.unwrap_or_else(|| panic!("{report}"));
    for tool in ["ptxas", "nvlink", "fatbinary"] {
        let version = toolkit[tool].as_str().unwrap_or_default();
        assert!(version.starts_with("13."), "{tool}: {toolkit}");
    }
    assert_eq!(toolkit["release"], "13.0", "{toolkit}");
    assert_eq!(toolkit["script_for"], json!([16, 19]), "{toolkit}");

    let text = work.run(&["doctor"]).quiet().output();
    for expected in [
        "  exports       finished by clang 16, 19 and 22\n",
        ": finishes exported programs for CUDA and HIP\n",
        "  --finish-with clang-19: such objects are read by clang 18, 19\n",
        "CUDA 13.0: ",
        "  with clang 16 and 19 its fatbinary needs a script in front of it",
    ] {
        assert!(text.contains(expected), "no {expected:?} in\n{text}");
    }
}

#[test]
fn the_doctor_says_what_a_clang_lacks() {
    let work = Workshop::new();
    // A clang without its tools, and one that borrows those of another release.
    let clang = std::fs::canonicalize("/usr/bin/clang-19").expect("clang-19 (`cargo xtask setup`)");
    work.write("bin/README", "");
    std::fs::copy(&clang, work.path("bin/clang")).expect("copied");
    let doctor = |path: &str| {
        let output = work.command(&["doctor"]).env("PATH", path).output().expect("doctor");
        String::from_utf8(output.stdout).expect("text")
    };
    let alone = work.path("bin").display().to_string();
    let text = doctor(&alone);
    for expected in [
        ": finishes no exported programs\n",
        "  cannot finish programs for CUDA, for want of clang-linker-wrapper,\n  clang-nvlink-wrapper: install \
         clang-tools-19\n",
        "  cannot finish programs for HIP, for want of clang-linker-wrapper,\n  clang-offload-bundler, ld.lld: install \
         clang-tools-19 and lld-19\n",
        "  exports       finished by none here\n",
    ] {
        assert!(text.contains(expected), "no {expected:?} in\n{text}");
    }
    let text = doctor(&format!("{alone}:/usr/lib/llvm-22/bin"));
    let expected =
        "it has no clang-linker-wrapper of its own and starts\n  /usr/lib/llvm-22/bin/clang-linker-wrapper of PATH";
    assert!(text.contains(expected), "{text}");
    let text = doctor("/nonexistent");
    for expected in [
        "clang is missing: finishing exported programs",
        "packages clang-19, clang-tools-19 and lld-19",
    ] {
        assert!(text.contains(expected), "no {expected:?} in\n{text}");
    }
}

#[test]
fn a_toolkit_of_another_name_is_an_error_of_the_doctor_too() {
    let work = Workshop::new();
    work.run(&["doctor", "--cuda", "/nonexistent"])
        .failed(1)
        .says(&["error: plan: --cuda /nonexistent"]);
}

#[test]
fn the_targets_are_listed_with_what_can_finish_them() {
    let work = Workshop::new();
    let text = work.run(&["targets"]).quiet().output();
    let line = |chip: &str| {
        let line = text.lines().find(|line| line.split_whitespace().next() == Some(chip));
        line.unwrap_or_else(|| panic!("no {chip} in\n{text}"))
    };
    assert!(line("sm_90a").contains("8.0") && line("sm_90a").contains("wgmma"));
    assert!(line("sm_90").contains("nvptxcompiler 13."));
    assert!(
        !line("sm_70").contains("13."),
        "CUDA 13 has no sm_70: {}",
        line("sm_70")
    );
    assert!(line("gfx942").contains("sramecc xnack") && line("gfx942").contains("mfma"));
    assert!(line("gfx1100").contains("32 64") && line("gfx1100").contains("wmma"));
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn the_targets_speak_json() {
    let work = Workshop::new();
    let list = |vendor: &str| {
        let report = work.run(&["targets", "--json", "--vendor", vendor]).quiet().json();
        report["targets"].as_array().expect("targets").clone()
    };
    let nvidia = list("nvidia");
    assert!(nvidia.iter().all(|target| target["vendor"] == "nvidia"));
    let old = nvidia.iter().find(|target| target["target"] == "sm_70").expect("sm_70");
    assert!(
        old["missing"]
            .as_str()
            .is_some_and(|reason| reason.contains("no longer compiles for sm_70")),
        "{old}"
    );
    let amd = list("amd");
    assert!(amd.iter().all(|target| target["finished_by"].is_string()));
}
