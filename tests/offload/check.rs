use std::fs;

use super::super::{
    embed::{self, ChipImage},
    entries::{self, tests::program},
    finish_tests::export_self,
    finishing_site::{FinishingSite, export, layouts},
    ir_text::IrText,
    layout::ImageForm,
    runtime::Runtime,
};
use super::*;
use crate::target::CodeObjectVersion;

/// The releases that register the kernel, by number.
pub(super) fn registering(report: &Report) -> Vec<u8> {
    let good = |registered: &Registered| registered.kernels == ["axpy"] && registered.variables == ["table"];
    let releases = report
        .releases
        .iter()
        .filter(|(_, registered)| good(registered) && registered.problems.is_empty());
    releases.map(|(release, _)| release.number()).collect()
}

pub(super) fn problem(report: &Report, release: u8) -> String {
    let found = report.releases.iter().find(|(other, _)| other.number() == release);
    found
        .map(|(_, registered)| registered.problems.join("\n"))
        .unwrap_or_default()
}

#[test]
fn objects_say_who_registers_them() {
    let site = FinishingSite::new();
    let cubin = site.cubin("", "sm_80");
    let amd = site.amd_object("", "gfx90a", CodeObjectVersion::V5);
    for (list, runtime, serves, other, reason) in [
        (
            "15..19",
            Runtime::Cuda,
            vec![15, 16, 17, 18, 19],
            20,
            "it reads entries of 56 bytes in the section cuda_offloading_entries, and these have another layout",
        ),
        (
            "19",
            Runtime::Cuda,
            vec![18, 19],
            17,
            "the variable table is passed over for its flags 16: up to clang 17 they are 0 to 3",
        ),
        (
            "20",
            Runtime::Cuda,
            vec![20],
            19,
            "it reads entries of 32 bytes in the section cuda_offloading_entries, and these have another layout",
        ),
        (
            "22",
            Runtime::Cuda,
            vec![21, 22, 23],
            19,
            "it looks for entries in the section cuda_offloading_entries, and they are in llvm_offload_entries",
        ),
        (
            "15..19,21..23",
            Runtime::Cuda,
            vec![15, 16, 17, 18, 19, 21, 22, 23],
            20,
            "it reads entries of 56 bytes",
        ),
        (
            "20..23",
            Runtime::Cuda,
            vec![20, 21, 22, 23],
            16,
            "it reads entries of 32 bytes",
        ),
        (
            "15..19",
            Runtime::Hip,
            vec![15, 16, 17, 18, 19],
            22,
            "it looks for entries in the section llvm_offload_entries, and they are in hip_offloading_entries",
        ),
        (
            "21..23",
            Runtime::Hip,
            vec![21, 22, 23],
            19,
            "it finds no entries and images for CUDA, HIP or OpenMP (languages of the images: 4 (clang up to 20: unknown; from 21: hip))",
        ),
    ] {
        let image = match runtime {
            Runtime::Cuda | Runtime::OpenMp => ("sm_80", ImageForm::RelocatableCubin, &*cubin),
            Runtime::Hip => ("gfx90a", ImageForm::AmdObject(CodeObjectVersion::V5), &*amd),
        };
        let object = export(&site, "", &layouts(list, runtime), &[image]);
        let report = check(&site.read(&object)).expect(list);
        assert_eq!(report.problems, Vec::<String>::new(), "{list}");
        assert_eq!(registering(&report), serves, "{list} {runtime:?}: {report:#?}");
        assert!(report.entries.iter().all(|entry| entry.retained), "{report:#?}");
        assert!(
            problem(&report, other).contains(reason),
            "{list}: {}",
            problem(&report, other)
        );
    }
}

#[test]
fn finished_programs_say_what_they_register() {
    let site = FinishingSite::new();
    let cubin = site.cubin("", "sm_80");
    let image = ("sm_80", ImageForm::RelocatableCubin, &*cubin);
    let object = export(&site, "", &layouts("15..19,21..23", Runtime::Cuda), &[image]);
    for clang in ["clang-16", "clang-19", "clang-22"] {
        for options in [
            &[][..],
            &["-no-pie"],
            &["-fuse-ld=lld", "-Wl,--gc-sections"],
            &["-fuse-ld=lld", "-Wl,--pack-dyn-relocs=relr"],
        ] {
            site.link(clang, &[&object], options, Runtime::Cuda).expect(clang);
            let report = check(&site.read("app")).expect(clang);
            let context = format!("{clang} {options:?}: {report:#?}");
            assert_eq!(report.registers_itself, [Runtime::Cuda], "{context}");
            let finished = report.finished.as_ref().expect(&context);
            assert_eq!(
                (finished.kernels.as_slice(), finished.variables.len()),
                (&["axpy".to_owned()][..], 1),
                "{context}"
            );
            assert_eq!(finished.problems, Vec::<String>::new(), "{context}");
            assert!(report.releases.is_empty() && report.problems.is_empty(), "{context}");
        }
    }
    // Without symbols, one table is the one that is read; of two that cannot be said.
    site.run("strip", &["app"]);
    let finished = check(&site.read("app")).expect("app").finished.expect("finished");
    assert!(
        finished.problems.join("").starts_with("its symbols were removed"),
        "{finished:?}"
    );
    let object = export(&site, "", &layouts("22", Runtime::Cuda), &[image]);
    site.link("clang-22", &[&object], &["-s"], Runtime::Cuda)
        .expect("linked");
    let finished = check(&site.read("app")).expect("app").finished.expect("finished");
    assert_eq!(
        (finished.kernels.len(), finished.problems.len()),
        (1, 0),
        "{finished:?}"
    );
    // The wrong layout.
    let object = export(&site, "", &layouts("22", Runtime::Cuda), &[image]);
    site.finish("clang-19", &[&object], &[], Runtime::Cuda).expect("linked");
    let finished = check(&site.read("app")).expect("app").finished.expect("finished");
    assert!(finished.kernels.is_empty(), "{finished:?}");
    assert!(
        finished
            .problems
            .join("")
            .starts_with("its constructor reads none of its entries"),
        "{finished:?}"
    );
    // Without --offload-link.
    site.run("clang-19", &[&object, "-o", "app", "-L.", "-lcudart"]);
    let report = check(&site.read("app")).expect("app");
    assert!(
        report.problems.join("").contains("linked without --offload-link"),
        "{report:#?}"
    );
}

#[test]
fn images_that_are_not_taken_are_named() {
    let site = FinishingSite::new();
    site.write("k.ptx", super::super::finishing_site::ptx_text("", "sm_80"));
    let object = export(
        &site,
        "",
        &layouts("19", Runtime::Cuda),
        &[("sm_80", ImageForm::Ptx, "k.ptx")],
    );
    assert_eq!(registering(&check(&site.read(&object)).expect("PTX")), [18, 19]);
    // A cubin without the kernel, and of the wrong kind.
    let other = site.cubin("_b", "sm_80");
    let image = ("sm_80", ImageForm::RelocatableCubin, &*other);
    let object = export(&site, "", &layouts("22", Runtime::Cuda), &[image]);
    let report = check(&site.read(&object)).expect("another cubin");
    assert!(
        problem(&report, 22).contains("axpy, table are registered, and the image for sm_80 does not define them"),
        "{report:#?}"
    );
    site.run("ptxas", &["-arch=sm_80", "k.ptx", "-o", "linked.cubin"]);
    let image = ("sm_80", ImageForm::RelocatableCubin, "linked.cubin");
    let object = export(&site, "", &layouts("22", Runtime::Cuda), &[image]);
    let report = check(&site.read(&object)).expect("a linked cubin");
    assert!(
        problem(&report, 22).contains("the linked cubin for sm_80 is not taken: its clang-nvlink-wrapper"),
        "{report:#?}"
    );
    // A section of the wrong type, as objcopy makes it.
    site.run(
        "/usr/lib/llvm-22/bin/llvm-objcopy",
        &["--set-section-type", ".llvm.offloading=1", &object, "typed.o"],
    );
    let report = check(&site.read("typed.o")).expect("another type");
    assert!(
        report
            .problems
            .join("")
            .contains("is of type 0x1 instead of 0x6fff4c0b"),
        "{report:#?}"
    );
    assert!(
        problem(&report, 22).contains("no image is of the language cuda, number 2"),
        "{report:#?}"
    );
}

#[test]
fn programs_for_hip_and_objects_that_register_themselves() {
    let site = FinishingSite::new();
    let version = CodeObjectVersion::V5;
    let amd = site.amd_object("", "gfx90a", version);
    for (list, clang) in [("15..19", "clang-16"), ("15..19", "clang-19"), ("21..23", "clang-22")] {
        let image = ("gfx90a", ImageForm::AmdObject(version), &*amd);
        let object = export(&site, "", &layouts(list, Runtime::Hip), &[image]);
        site.link(clang, &[&object], &[], Runtime::Hip).expect(clang);
        let report = check(&site.read("app")).expect(clang);
        assert_eq!(report.registers_itself, [Runtime::Hip], "{report:#?}");
        assert!(report.problems.is_empty(), "{report:#?}");
        let finished = report.finished.as_ref().expect(clang);
        assert_eq!(finished.kernels, ["axpy"], "{report:#?}");
        assert!(finished.problems.is_empty(), "{report:#?}");
        assert_eq!(report.images.len(), 1, "{report:#?}");
    }
    for runtime in [Runtime::Cuda, Runtime::Hip] {
        let (first, second) = (export_self(&site, "", runtime), export_self(&site, "_b", runtime));
        let report = check(&site.read(&first)).expect("an object");
        assert_eq!(report.registers_itself, [runtime], "{report:#?}");
        assert!(report.problems.is_empty() && report.releases.is_empty(), "{report:#?}");
        let library = match runtime {
            Runtime::Cuda | Runtime::OpenMp => "-lcudart",
            Runtime::Hip => "-lamdhip64",
        };
        site.run("cc", &[&first, &second, "-o", "app", "-L.", library]);
        let report = check(&site.read("app")).expect("a program");
        let images = if runtime == Runtime::Cuda { 4 } else { 2 };
        assert_eq!(report.images.len(), images, "{report:#?}");
        assert!(report.problems.is_empty(), "{report:#?}");
    }
}

#[test]
fn objects_for_aarch64_are_the_same() {
    let site = FinishingSite::new();
    let cubin = site.read(&site.cubin("", "sm_90"));
    let mut program = program(Runtime::Cuda);
    program.triple = "aarch64-unknown-linux-gnu".parse().expect("a host");
    let set = layouts("15..19,21..23", Runtime::Cuda);
    let mut module = IrText::default();
    entries::add(&mut module, &program, &set).expect("entries");
    let image = ChipImage {
        target: "sm_90".parse().expect("a chip"),
        form: ImageForm::RelocatableCubin,
        bytes: &cubin,
    };
    embed::add(&mut module, &[image], &set).expect("images");
    let layout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i8:8:32-i16:16:32-i64:64-i128:128-n32:64-S128-Fn32";
    site.write("arm.ll", module.finish(&program.triple, layout));
    site.run(
        "/usr/lib/llvm-22/bin/llc",
        &["-filetype=obj", "-relocation-model=pic", "arm.ll", "-o", "arm.o"],
    );
    let report = check(&site.read("arm.o")).expect("an object");
    assert_eq!(registering(&report), [15, 16, 17, 18, 19, 21, 22, 23], "{report:#?}");
}

#[test]
fn damaged_files_are_refused_or_reported() {
    let site = FinishingSite::new();
    let cubin = site.cubin("", "sm_80");
    let image = ("sm_80", ImageForm::RelocatableCubin, &*cubin);
    let object = site.read(&export(&site, "", &layouts("15..19,21..23", Runtime::Cuda), &[image]));
    for length in 0..object.len() {
        // Either a typed error or a report; never a panic.
        let _ = check(object.get(..length).unwrap_or_default());
    }
    let mut damaged = object.clone();
    for index in 0..damaged.len() {
        for flip in [0xff, 0x01] {
            damaged[index] ^= flip;
            let _ = check(&damaged);
            damaged[index] ^= flip;
        }
    }
    let error = check(b"#!/bin/sh").expect_err("a script").to_string();
    assert!(error.starts_with("cannot be checked: not an ELF file"), "{error}");
    let error = check(&site.read(&cubin)).expect_err("a cubin").to_string();
    assert!(
        error.starts_with("cannot be checked: it is device code, for machine 190 of ELF; name the host object"),
        "{error}"
    );
    site.write("empty.c", "int main(void) { return 0; }\n");
    site.run("cc", &["-c", "empty.c", "-o", "empty.o"]);
    let report = check(&fs::read(site.path("empty.o")).expect("empty.o")).expect("an object");
    assert_eq!(
        report.problems,
        ["there are neither offload entries nor device images in it"]
    );
}
