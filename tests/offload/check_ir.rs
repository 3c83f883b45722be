//! LLVM IR says the same as the object that becomes of it.

use super::{
    super::{
        finish_tests::export_self,
        finishing_site::{FinishingSite, export, layouts},
        layout::ImageForm,
        runtime::Runtime,
    },
    Report, check,
    tests::registering,
};
use crate::FileKind;
use crate::target::CodeObjectVersion;

fn read(site: &FinishingSite, file: &str) -> Report {
    check(&site.read(file)).expect(file)
}

#[test]
fn text_and_bitcode_say_what_the_object_says() {
    let site = FinishingSite::new();
    let cubin = site.cubin("", "sm_80");
    let version = CodeObjectVersion::V5;
    let amd = site.amd_object("", "gfx90a", version);
    for (list, runtime) in [
        ("15..17", Runtime::Cuda),
        ("20", Runtime::Cuda),
        ("15..19,21..23", Runtime::Cuda),
        ("21..23", Runtime::Hip),
    ] {
        let image = match runtime {
            Runtime::Cuda | Runtime::OpenMp => ("sm_80", ImageForm::RelocatableCubin, &*cubin),
            Runtime::Hip => ("gfx90a", ImageForm::AmdObject(version), &*amd),
        };
        let object = export(&site, "", &layouts(list, runtime), &[image]);
        let of_object = read(&site, &object);
        assert!(!registering(&of_object).is_empty(), "{of_object:#?}");
        site.run("/usr/lib/llvm-22/bin/llvm-as", &[".ll", "-o", "host.bc"]);
        for file in [".ll", "host.bc"] {
            let report = read(&site, file);
            assert_eq!(report.kind, FileKind::LlvmIr);
            let sorted = |report: &Report| {
                let mut entries = report.entries.clone();
                entries.sort_by(|a, b| (&a.section, &a.name).cmp(&(&b.section, &b.name)));
                entries
            };
            assert_eq!(sorted(&report), sorted(&of_object), "{list} {file}");
            assert_eq!(report.images, of_object.images, "{list} {file}");
            assert_eq!(report.releases, of_object.releases, "{list} {file}");
            assert!(
                report
                    .notes
                    .join("")
                    .contains("has to be able to read this LLVM IR, too"),
                "{report:#?}"
            );
        }
    }
    site.run("ar", &["rcs", "libk.a", "host.bc"]);
    let report = read(&site, "libk.a");
    assert_eq!(
        (&*report.members, registering(&report)),
        (&["host.bc".to_owned()][..], vec![21, 22, 23])
    );
}

#[test]
fn ir_that_registers_itself_needs_no_clang() {
    let site = FinishingSite::new();
    for runtime in [Runtime::Cuda, Runtime::Hip] {
        export_self(&site, "", runtime);
        let report = read(&site, ".ll");
        assert_eq!(report.registers_itself, [runtime], "{report:#?}");
        assert!(report.is_complete(&[]) && report.releases.is_empty(), "{report:#?}");
        assert!(report.images.iter().all(|image| image.symbols.is_some()), "{report:#?}");
    }
}

#[test]
fn bitcode_images_are_read() {
    let site = FinishingSite::new();
    site.write(
        "device.ll",
        "target triple = \"nvptx64-nvidia-cuda\"\n\
         @table = addrspace(4) externally_initialized global [16 x i8] zeroinitializer\n\
         define internal void @helper() { ret void }\n\
         define ptx_kernel void @axpy(ptr %p) { call void @helper()\n ret void }\n",
    );
    site.run("/usr/lib/llvm-22/bin/llvm-as", &["device.ll", "-o", "device.bc"]);
    let image = ("sm_80", ImageForm::Bitcode, "device.bc");
    let object = export(&site, "", &layouts("22", Runtime::Cuda), &[image]);
    let report = read(&site, &object);
    assert_eq!(registering(&report), [21, 22, 23], "{report:#?}");
    assert!(
        report
            .notes
            .join("")
            .contains("has to be able to read the bitcode of the images, too"),
        "{report:#?}"
    );
    let symbols = report.images[0].symbols.as_ref().expect("symbols");
    assert_eq!(symbols.kernels.iter().collect::<Vec<_>>(), ["axpy"]);
    assert_eq!(symbols.variables.iter().collect::<Vec<_>>(), ["table"]);
    let text = String::from_utf8(site.read("device.ll")).expect("text");
    site.write("device.ll", text.replace("ptx_kernel void @axpy", "void @axpy"));
    site.run("/usr/lib/llvm-22/bin/llvm-as", &["device.ll", "-o", "device.bc"]);
    let object = export(&site, "", &layouts("22", Runtime::Cuda), &[image]);
    assert!(registering(&read(&site, &object)).is_empty());
}

#[test]
fn ir_that_cannot_be_read_is_refused_with_the_reason() {
    let site = FinishingSite::new();
    let layout = "target datalayout = \"e-m:e-i64:64-S128\"\n";
    for (text, message) in [
        (
            "define void @f( {",
            "cannot be checked: LLVM IR:1:18: error: expected type",
        ),
        (
            "target datalayout = \"e-p:32:32\"\n",
            "cannot be checked: the host is not a little-endian machine of 64 bits",
        ),
        (
            &format!("{layout}@e = constant [4000000000 x i64] zeroinitializer, section \"llvm_offload_entries\"\n"),
            "cannot be checked: the initializer of the global variable e cannot be read: it is too large for a file",
        ),
        (
            &format!("{layout}@e = constant i64 ptrtoint (ptr @e to i64), section \"llvm_offload_entries\"\n"),
            "cannot be checked: the initializer of the global variable e cannot be read",
        ),
    ] {
        let error = check(text.as_bytes()).expect_err(text).to_string();
        assert!(error.starts_with(message) && error.lines().count() == 1, "{error}");
    }
    let cubin = site.cubin("", "sm_80");
    let image = ("sm_80", ImageForm::RelocatableCubin, &*cubin);
    export(&site, "", &layouts("22", Runtime::Cuda), &[image]);
    site.run("/usr/lib/llvm-22/bin/llvm-as", &[".ll", "-o", "host.bc"]);
    let bitcode = site.read("host.bc");
    let error = check(&bitcode[..bitcode.len() / 2])
        .expect_err("half of it")
        .to_string();
    assert!(
        error.contains("the bitcode is damaged, cut off, or from an LLVM newer than 22"),
        "{error}"
    );
    // Entries without a name, of no layout, and with a name that another file defines.
    let text = format!(
        "{layout}@a = constant {{ ptr, ptr, i64, i32, i32 }} {{ ptr @a, ptr null, i64 0, i32 0, i32 0 }}, section \
         \"cuda_offloading_entries\"\n\
         @b = constant {{ ptr, ptr, i64, i32, i32 }} {{ ptr @a, ptr @name, i64 0, i32 0, i32 0 }}, section \
         \"cuda_offloading_entries\"\n@c = constant i32 5, section \"cuda_offloading_entries\"\n@name = external constant i8\n"
    );
    let report = check(text.as_bytes()).expect("IR");
    let problems = report.problems.join("\n");
    assert_eq!(
        problems
            .matches("the entry at 0x0 in the section cuda_offloading_entries has no name")
            .count(),
        2,
        "{problems}"
    );
    assert!(
        problems.contains("the section cuda_offloading_entries has 4 bytes, which are no whole number of entries"),
        "{problems}"
    );
}
