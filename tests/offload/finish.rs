//! Programs made with these parts, finished by real releases of clang, GNU ld and lld, and run with a runtime library
//! that writes down what is registered and launched.

use super::{
    finishing_site::{FinishingSite, export, layouts, ptx_text, unit_program},
    ir_text::IrText,
    layout::{EntryLayout, ImageForm},
    program::Runtime,
    registration,
};
use crate::{
    container::{bundle, fatbin},
    target::{CodeObjectVersion, Target},
};

const LLD_GC: &[&str] = &["-fuse-ld=lld", "-Wl,--gc-sections"];

fn assert_log(log: &str, lines: &[&str], context: &str) {
    for line in lines {
        assert!(
            log.lines().any(|other| other == *line),
            "{context}: no {line:?} in\n{log}"
        );
    }
}

const REGISTERED: &[&str] = &["function axpy axpy limit -1 in 0", "launch axpy grid 2 block 32"];

/// The layouts to try, each with the releases that are installed.
const CUDA: &[(&str, &[&str])] = &[
    ("15..17", &["clang-16", "clang-19"]),
    ("19", &["clang-19"]),
    ("22", &["clang-22"]),
    ("15..19,21..23", &["clang-16", "clang-19", "clang-22"]),
    ("20..23", &["clang-22"]),
];

#[test]
fn cuda_objects_and_ir_are_registered_by_every_clang_and_linker() {
    let site = FinishingSite::new();
    let (a, b) = (site.cubin("", "sm_80"), site.cubin("", "sm_90"));
    let images = [
        ("sm_80", ImageForm::RelocatableCubin, &*a),
        ("sm_90", ImageForm::RelocatableCubin, &*b),
    ];
    for (list, clangs) in CUDA {
        let set = layouts(list, Runtime::Cuda);
        let object = export(&site, "", &set, &images);
        for clang in *clangs {
            for (input, options) in [
                (&*object, &[][..]),
                (&object, &["-Wl,--gc-sections"]),
                (&object, LLD_GC),
                (".ll", LLD_GC),
            ] {
                let context = format!("{list} {clang} {input} {options:?}");
                let log = site.finish(clang, &[input], options, Runtime::Cuda).expect(&context);
                assert_log(&log, REGISTERED, &context);
                assert!(
                    log.contains("fatbinary magic 466243b1 version 1 data ba55ed50 aligned"),
                    "{context}: {log}"
                );
                let flagged = *clang != "clang-16" && set.layouts != [EntryLayout::Clang15];
                let flagged = flagged && (*clang == "clang-22" || set.layouts == [EntryLayout::Clang18]);
                let variable = format!("variable table external 0 size 16 constant {}", u8::from(flagged));
                assert_log(&log, &[&variable], &context);
            }
        }
        let found = site.run("cuobjdump", &["-lelf", "app"]);
        assert!(
            found.contains("sm_80.cubin") && found.contains("sm_90.cubin"),
            "{found}"
        );
    }
}

#[test]
fn several_objects_are_one_program() {
    let site = FinishingSite::new();
    let set = layouts("15..19,21..23", Runtime::Cuda);
    let (a, b) = (site.cubin("", "sm_80"), site.cubin("_b", "sm_80"));
    let first = export(&site, "", &set, &[("sm_80", ImageForm::RelocatableCubin, &a)]);
    let second = export(&site, "_b", &set, &[("sm_80", ImageForm::RelocatableCubin, &b)]);
    for clang in ["clang-16", "clang-19", "clang-22"] {
        let log = site
            .finish(clang, &[&first, &second], LLD_GC, Runtime::Cuda)
            .expect(clang);
        assert_log(&log, REGISTERED, clang);
        assert_log(
            &log,
            &["function axpy_b axpy_b limit -1 in 0", "launch axpy_b grid 2 block 32"],
            clang,
        );
        assert_eq!(log.matches("fatbinary").count(), 1, "{log}");
    }
}

#[test]
fn ptx_is_assembled_by_clang_up_to_19() {
    let site = FinishingSite::new();
    site.write("k.ptx", ptx_text("", "sm_80"));
    let object = export(
        &site,
        "",
        &layouts("16..19", Runtime::Cuda),
        &[("sm_80", ImageForm::Ptx, "k.ptx")],
    );
    for clang in ["clang-16", "clang-19"] {
        let log = site.finish(clang, &[&object], &[], Runtime::Cuda).expect(clang);
        assert_log(&log, REGISTERED, clang);
    }
}

/// That the tests above can fail: a layout for other releases links, and registers nothing.
#[test]
fn a_wrong_layout_registers_nothing() {
    let site = FinishingSite::new();
    let cubin = site.cubin("", "sm_80");
    for (list, clang) in [
        ("22", "clang-16"),
        ("22", "clang-19"),
        ("15..17", "clang-22"),
        ("20", "clang-22"),
    ] {
        let object = export(
            &site,
            "",
            &layouts(list, Runtime::Cuda),
            &[("sm_80", ImageForm::RelocatableCubin, &cubin)],
        );
        let log = site.finish(clang, &[&object], &[], Runtime::Cuda).expect(clang);
        assert_log(
            &log,
            &["launch of a handle that is not registered"],
            &format!("{list} {clang}"),
        );
        assert!(!log.contains("function"), "{log}");
    }
}

/// That `llvm.used` is what keeps the entries when lld drops what nothing refers to.
#[test]
fn entries_that_are_not_in_llvm_used_do_not_survive_lld() {
    let site = FinishingSite::new();
    let cubin = site.cubin("", "sm_80");
    let set = layouts("22", Runtime::Cuda);
    export(&site, "", &set, &[("sm_80", ImageForm::RelocatableCubin, &cubin)]);
    let text = String::from_utf8(site.read(".ll")).expect("text");
    let without: Vec<&str> = text.lines().filter(|line| !line.starts_with("@llvm.used")).collect();
    assert!(without.len() < text.lines().count(), "{text}");
    site.write("unused.ll", without.join("\n"));
    let log = site
        .finish("clang-22", &["unused.ll"], &[], Runtime::Cuda)
        .expect("GNU ld");
    assert_log(&log, REGISTERED, "GNU ld");
    let error = site
        .finish("clang-22", &["unused.ll"], LLD_GC, Runtime::Cuda)
        .expect_err("lld");
    assert!(error.contains("__stop_llvm_offload_entries"), "{error}");
}

#[test]
fn hip_objects_are_registered_with_their_code() {
    let site = FinishingSite::new();
    let version = CodeObjectVersion::V5;
    let (a, b) = (
        site.amd_object("", "gfx90a", version),
        site.amd_object("", "gfx1030", version),
    );
    let images = [
        ("gfx90a", ImageForm::AmdObject(version), &*a),
        ("gfx1030", ImageForm::AmdObject(version), &*b),
    ];
    for (list, clangs) in [("15..19", &["clang-16", "clang-19"][..]), ("21..23", &["clang-22"])] {
        let object = export(&site, "", &layouts(list, Runtime::Hip), &images);
        for clang in clangs {
            for options in [&[][..], LLD_GC] {
                let context = format!("{list} {clang} {options:?}");
                let log = site.finish(clang, &[&object], options, Runtime::Hip).expect(&context);
                assert_log(&log, REGISTERED, &context);
                assert!(
                    log.contains("fatbinary magic 48495046 version 1 data 4c435f5f"),
                    "{context}: {log}"
                );
                assert!(log.contains("variable table external 0 size 16"), "{context}: {log}");
                assert_code(&site, &["gfx90a", "gfx1030"], &context);
            }
        }
    }
    // A wrong number of the language registers nothing.
    let object = export(&site, "", &layouts("21..23", Runtime::Hip), &images);
    let log = site.finish("clang-19", &[&object], &[], Runtime::Hip).expect("linked");
    assert_log(&log, &["launch of a handle that is not registered"], "clang-19");
}

/// The exit status of a link for HIP says nothing: the bundle has to have the kernels.
fn assert_code(site: &FinishingSite, chips: &[&str], context: &str) {
    site.run("objcopy", &["-O", "binary", "-j", ".hip_fatbin", "app", "bundle"]);
    let bytes = site.read("bundle");
    let found = bundle::read_first(&bytes, &mut (1 << 30)).expect(context);
    for chip in chips {
        let entry = found
            .entries()
            .find(|entry| entry.id.ends_with(chip))
            .unwrap_or_else(|| panic!("{context}: no {chip} in {found:?}"));
        site.write("code", entry.bytes);
        let symbols = site.run("/usr/lib/llvm-22/bin/llvm-nm", &["-D", "code"]);
        for symbol in ["T axpy", "R axpy.kd", "table"] {
            assert!(symbols.contains(symbol), "{context} {chip}: {symbols}");
        }
    }
}

/// The object of a unit that registers itself.
pub(super) fn export_self(site: &FinishingSite, unit: &str, runtime: Runtime) -> String {
    let program = unit_program(unit, runtime);
    let binary = match runtime {
        Runtime::Cuda | Runtime::OpenMp => {
            let cubin = site.read(&site.cubin(unit, "sm_80"));
            let ptx = ptx_text(unit, "sm_80");
            fatbin::write(&[
                fatbin::Image::new(fatbin::Content::Cubin(&cubin), "sm_80").expect("a chip"),
                fatbin::Image::new(fatbin::Content::Ptx(&ptx), "sm_80").expect("a chip"),
            ])
            .expect("a fat binary")
        }
        Runtime::Hip => {
            let object = site.amd_object(unit, "gfx90a", CodeObjectVersion::V5);
            site.run("/usr/lib/llvm-22/bin/ld.lld", &["-shared", &object, "-o", "linked"]);
            let linked = site.read("linked");
            let Ok(Target::Amd(target)) = "gfx90a".parse() else {
                panic!("gfx90a is a chip of AMD's")
            };
            let images = [bundle::BundleImage::host(), bundle::BundleImage::hip(&target, &linked)];
            bundle::write(&images, &bundle::BundleOptions::default()).expect("a bundle")
        }
    };
    let mut module = IrText::default();
    registration::add(&mut module, &program, &[&binary]).expect("registration");
    site.object(unit, &program, &module)
}

#[test]
fn self_registering_objects_need_any_linker() {
    let site = FinishingSite::new();
    for (runtime, library) in [(Runtime::Cuda, "-lcudart"), (Runtime::Hip, "-lamdhip64")] {
        let (first, second) = (export_self(&site, "", runtime), export_self(&site, "_b", runtime));
        for (tool, options) in [
            ("cc", &[][..]),
            ("cc", &["-Wl,--gc-sections"]),
            ("clang-19", LLD_GC),
            ("clang-16", &["-static-pie"][..0]),
        ] {
            let mut arguments = vec![&*first, &second, "-o", "app", "-L.", library];
            arguments.extend(options);
            site.run(tool, &arguments);
            let log = site.run("./app", &[]);
            let context = format!("{runtime:?} {tool} {options:?}");
            assert_log(&log, REGISTERED, &context);
            assert_log(
                &log,
                &[
                    "variable table external 0 size 16 constant 1",
                    "function axpy_b axpy_b limit -1 in 1",
                    "launch axpy_b grid 2 block 32",
                    "unregister 0",
                    "unregister 1",
                ],
                &context,
            );
            let data = match runtime {
                Runtime::Cuda | Runtime::OpenMp => "magic 466243b1 version 1 data ba55ed50 aligned",
                Runtime::Hip => "magic 48495046 version 1 data 4c435f5f aligned 4096",
            };
            assert_eq!(log.matches(data).count(), 2, "{context}: {log}");
        }
        // The IR is read by old releases, too.
        for clang in ["clang-16", "clang-19"] {
            site.run(clang, &["-O2", ".ll", "_b.ll", "-o", "app", "-L.", library]);
            assert_log(&site.run("./app", &[]), REGISTERED, clang);
        }
        if runtime == Runtime::Cuda {
            let found = site.run("cuobjdump", &["-lelf", "-lptx", "app"]);
            assert!(found.contains("sm_80.cubin") && found.contains("sm_80.ptx"), "{found}");
        }
    }
}
