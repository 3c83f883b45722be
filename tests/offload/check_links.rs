//! Archives, and what `clang -r` and further links make of objects.

use super::{
    super::{
        finish_tests::export_self,
        finishing_site::{FinishingSite, export, layouts},
        layout::ImageForm,
        runtime::Runtime,
    },
    Report, check,
    tests::{problem, registering},
};
use crate::FileKind;

fn read(site: &FinishingSite, file: &str) -> Report {
    check(&site.read(file)).expect(file)
}

fn object(site: &FinishingSite, unit: &str, list: &str) -> String {
    let cubin = site.cubin(unit, "sm_80");
    let image = ("sm_80", ImageForm::RelocatableCubin, &*cubin);
    export(site, unit, &layouts(list, Runtime::Cuda), &[image])
}

#[test]
fn archives_are_read_member_by_member() {
    let site = FinishingSite::new();
    let (first, second) = (object(&site, "", "15..19,21..23"), object(&site, "_b", "15..19,21..23"));
    site.write("plain.c", "void run(void);\nint plain(void) { run(); return 0; }\n");
    site.run("cc", &["-c", "plain.c"]);
    site.write("notes.txt", "not an object");
    site.run("ar", &["rcs", "libk.a", &first, &second, "plain.o", "notes.txt"]);
    let report = read(&site, "libk.a");
    assert_eq!(report.kind, FileKind::Archive);
    assert_eq!(report.members, [first.as_str(), &second]);
    for release in [16, 19, 22] {
        let found = &report.releases[release - 15].1;
        assert_eq!(found.kernels, ["axpy", "axpy_b"], "{report:#?}");
        assert_eq!(found.variables, ["table", "table_b"], "{report:#?}");
        assert!(found.is_complete(), "{report:#?}");
    }
    assert!(
        problem(&report, 20).contains("it reads entries of 56 bytes"),
        "{report:#?}"
    );
    let note = report.notes.join("\n");
    assert!(note.contains("as with -Wl,--whole-archive"), "{note}");
    assert!(note.contains("-Wl,--should-extract=sm_80 does it, too"), "{note}");

    // The note is right: nothing is registered of an archive alone, and with either option everything is.
    site.write("main.c", "void run(void);\nint main(void) { run(); return 0; }\n");
    site.run("cc", &["-c", "main.c"]);
    site.run("ar", &["rcs", "libb.a", &second]);
    site.write("main_b.c", "void run_b(void);\nint main(void) { run_b(); return 0; }\n");
    site.run("cc", &["-c", "main_b.c"]);
    for (inputs, registered) in [
        (&["main_b.o", "libb.a"][..], false),
        (&["main_b.o", "libb.a", "-Wl,--should-extract=sm_80"], true),
        (
            &["main_b.o", "-Wl,--whole-archive", "libb.a", "-Wl,--no-whole-archive"],
            true,
        ),
    ] {
        let log = site.finish("clang-22", inputs, &[], Runtime::Cuda).expect("linked");
        assert_eq!(log.contains("launch axpy_b"), registered, "{inputs:?}: {log}");
    }
}

#[test]
fn members_of_different_kinds_and_damage_are_told_apart() {
    let site = FinishingSite::new();
    let (first, second) = (object(&site, "", "22"), export_self(&site, "_b", Runtime::Cuda));
    site.run("ar", &["rcs", "libk.a", &first, &second]);
    let report = read(&site, "libk.a");
    assert_eq!(report.registers_itself, [Runtime::Cuda], "{report:#?}");
    assert_eq!(registering(&report), [21, 22, 23], "{report:#?}");
    assert!(
        report.notes.join("").contains("does so only if the link takes it"),
        "{report:#?}"
    );
    // Two layouts in one section: the linker puts them together, and nobody reads that.
    let other = {
        let cubin = site.cubin("_c", "sm_80");
        let image = ("sm_80", ImageForm::RelocatableCubin, &*cubin);
        export(&site, "_c", &layouts("19", Runtime::Cuda), &[image])
    };
    let twenty = object(&site, "_b", "20");
    site.run("ar", &["rcs", "libm.a", &other, &twenty]);
    let report = read(&site, "libm.a");
    for release in [19, 20] {
        assert!(
            problem(&report, release).contains("these have another layout"),
            "{report:#?}"
        );
    }
    // Cut off, and thin.
    let archive = site.read("libk.a");
    let report = check(&archive[..archive.len() - 100]).expect("an archive");
    assert!(
        report.problems.join("").contains("damaged archive: a member"),
        "{report:#?}"
    );
    assert!(!report.is_complete(&[]));
    site.run("ar", &["rcsT", "libt.a", &first]);
    let report = read(&site, "libt.a");
    assert!(
        report
            .problems
            .join("")
            .contains("a thin archive holds the names of its members"),
        "{report:#?}"
    );
    site.write("damaged.o", &site.read(&first)[..1000]);
    site.run("ar", &["rcS", "libd.a", "damaged.o"]);
    let report = read(&site, "libd.a");
    assert!(
        report
            .problems
            .join("")
            .contains("damaged.o: cannot be checked: truncated ELF file"),
        "{report:#?}"
    );
    site.run("ar", &["rcS", "empty.a"]);
    let report = read(&site, "empty.a");
    assert_eq!(
        report.problems,
        ["there are neither offload entries nor device images in it"]
    );
}

#[test]
fn objects_of_clang_r_register_themselves() {
    let site = FinishingSite::new();
    let first = object(&site, "", "15..19,21..23");
    let second = object(&site, "_b", "15..19,21..23");
    for (clang, section) in [
        ("clang-19", "cuda_offloading_entries_"),
        ("clang-22", "llvm_offload_entries_"),
    ] {
        for linker in [&[][..], &["-fuse-ld=lld"]] {
            let context = format!("{clang} {linker:?}");
            let options = [&["-r", &*first, "--offload-link", "-o", "r.o"], linker].concat();
            site.run(clang, &options);
            let report = read(&site, "r.o");
            assert_eq!(report.kind, FileKind::HostObject);
            assert_eq!(report.registers_itself, [Runtime::Cuda], "{context}: {report:#?}");
            assert!(
                report.problems.is_empty() && report.notes.is_empty(),
                "{context}: {report:#?}"
            );
            assert!(
                report.is_complete(&[]) && report.releases.is_empty(),
                "{context}: {report:#?}"
            );
            let finished = report.finished.as_ref().expect(&context);
            assert_eq!(
                (&*finished.kernels, &*finished.variables),
                (&["axpy".to_owned()][..], &["table".to_owned()][..])
            );
            let hashed = |section: &str, entries: &[super::FoundEntry]| {
                entries.iter().any(|entry| entry.section.starts_with(section))
            };
            assert!(hashed(section, &report.entries), "{context}: {report:#?}");
            site.run("cc", &["r.o", "-o", "app", "-L.", "-lcudart"]);
            let report = read(&site, "app");
            assert_eq!(report.kind, FileKind::Executable);
            let finished = report.finished.as_ref().expect(&context);
            assert!(
                finished.is_complete() && finished.kernels == ["axpy"],
                "{context}: {report:#?}"
            );
            assert!(site.run("./app", &[]).contains("function axpy axpy"), "{context}");
        }
    }
    // Two of them, each with a table and a fat binary of its own.
    site.run("clang-19", &["-r", &first, "--offload-link", "-o", "r.o"]);
    site.run("clang-22", &["-r", &second, "--offload-link", "-o", "r_b.o"]);
    site.run("cc", &["r.o", "r_b.o", "-o", "app", "-L.", "-lcudart"]);
    let log = site.run("./app", &[]);
    assert!(log.contains("launch axpy ") && log.contains("launch axpy_b "), "{log}");
    let finished = read(&site, "app").finished.expect("finished");
    assert!(finished.is_complete(), "{finished:?}");
    assert_eq!(finished.kernels, ["axpy", "axpy_b"]);
    // Clang 16 leaves the images, and whoever finishes the object again registers them again.
    site.run("clang-16", &["-r", &first, "--offload-link", "-o", "r.o"]);
    let report = read(&site, "r.o");
    assert!(report.is_complete(&[]), "{report:#?}");
    assert!(
        report
            .notes
            .join("")
            .contains("the images for clang's linker wrapper are still in it"),
        "{report:#?}"
    );
    let log = site.finish("clang-22", &["r.o"], &[], Runtime::Cuda).expect("linked");
    assert_eq!(log.matches("function axpy axpy").count(), 2, "{log}");
}

/// What lld makes of entries that are not kept is in `finish_tests`.
#[test]
fn entries_that_the_linker_may_drop_are_noted() {
    let site = FinishingSite::new();
    let object = object(&site, "", "22");
    assert!(read(&site, &object).notes.is_empty());
    let text = String::from_utf8(site.read(".ll")).expect("text");
    let without: Vec<&str> = text.lines().filter(|line| !line.starts_with("@llvm.used")).collect();
    site.write("unused.ll", without.join("\n"));
    let llc = ["-filetype=obj", "-relocation-model=pic", "unused.ll", "-o", "unused.o"];
    site.run("/usr/lib/llvm-22/bin/llc", &llc);
    for file in ["unused.o", "unused.ll"] {
        let report = read(&site, file);
        assert!(
            report.notes.join("\n").contains(
                "the entries in llvm_offload_entries are not marked to be kept (llvm.used): a link with lld and --gc-sections \
                 fails for __stop_llvm_offload_entries"
            ),
            "{report:#?}"
        );
        assert_eq!(registering(&report), [21, 22, 23], "{report:#?}");
    }
}
