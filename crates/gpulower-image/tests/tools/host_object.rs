//! Host objects as the tools of three vendors see them, and as a C program does.

use std::path::Path;
use std::process::Command;

use gpulower_image::container::fatbin::{self, Content, Image};
use gpulower_image::container::host_object::{DeviceCode, HostArch, HostSymbol, Visibility, write};
use gpulower_image::container::host_sections::{HIP_FATBIN_ALIGN, LLVM_OFFLOADING_SECTION, SHT_LLVM_OFFLOADING};
use gpulower_image::container::offload_binary::{self, ImageKind, KindNumbering, OffloadKind};
use gpulower_image::image::elf::{Elf, SHT_SYMTAB};
use gpulower_testing::amd::{readelf, tool};
use gpulower_testing::nvidia::{relocatable_cubin, run, store_kernel};

fn fat_binary() -> Vec<u8> {
    let ptx = store_kernel("7.8", "sm_90");
    let cubin = relocatable_cubin(&ptx, "sm_90");
    let images = [
        Image::new(Content::Cubin(&cubin), "sm_90").unwrap(),
        Image::new(Content::Ptx(&ptx), "sm_90").unwrap(),
    ];
    fatbin::write(&images).unwrap()
}

/// A bundle with one empty host entry, as far as the writer looks into it.
const BUNDLE: &[u8] =
    b"__CLANG_OFFLOAD_BUNDLE__\x01\0\0\0\0\0\0\0\x35\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x05\0\0\0\0\0\0\0host-";

fn offload_binaries() -> Vec<u8> {
    let image = |arch| {
        offload_binary::Image::new(
            ImageKind::Cubin,
            OffloadKind::Cuda,
            KindNumbering::BitMask,
            "nvptx64-nvidia-cuda",
            arch,
            b"a cubin",
        )
        .unwrap()
    };
    offload_binary::write(&[image("sm_80"), image("sm_90")]).unwrap()
}

fn cuda<'a>(bytes: &'a [u8], data: &'a str, wrapper: &'a str) -> DeviceCode<'a> {
    DeviceCode::Fatbin {
        bytes,
        data: HostSymbol::local(data),
        wrapper: HostSymbol::hidden(wrapper),
    }
}

fn hip<'a>(data: &'a str, wrapper: &'a str) -> DeviceCode<'a> {
    DeviceCode::HipBundle {
        bytes: BUNDLE,
        data: HostSymbol::local(data),
        wrapper: HostSymbol {
            name: wrapper,
            visibility: Visibility::Exported,
        },
    }
}

fn everything(arch: HostArch) -> Vec<u8> {
    let (fatbin, offload) = (fat_binary(), offload_binaries());
    let parts = [
        cuda(&fatbin, "fatbin", "fatbin_wrapper"),
        hip("bundle", "bundle_wrapper"),
        DeviceCode::Offload { bytes: &offload },
    ];
    let object = write(arch, &parts).unwrap();
    assert_eq!(write(arch, &parts).unwrap(), object, "the same bytes each time");
    object
}

/// The words of the lines of a tool's table that have a word.
fn rows<'a>(text: &'a str, word: &str) -> Vec<Vec<&'a str>> {
    text.lines()
        .map(|line| line.trim_start().trim_start_matches('[').split_whitespace().collect())
        .filter(|words: &Vec<&str>| words.contains(&word))
        .collect()
}

/// What `readelf` says of a section: type, flags, alignment.
fn section(text: &str, name: &str) -> (String, String, String) {
    let found = rows(text, name);
    let [row] = &found[..] else {
        panic!("{name}: {text}");
    };
    // Number, name, type, address, offset, size, entry size, flags, link, info, alignment.
    let flags = if row.len() == 11 { row[7] } else { "" };
    (row[2].to_owned(), flags.to_owned(), row[row.len() - 1].to_owned())
}

fn check_sections(text: &str) {
    let is = |name, kind: &str, flags: &str, alignment: &str| {
        assert_eq!(
            section(text, name),
            (kind.to_owned(), flags.to_owned(), alignment.to_owned()),
            "{name}: {text}"
        );
    };
    is(".nv_fatbin", "PROGBITS", "A", "8");
    is(".nvFatBinSegment", "PROGBITS", "WA", "8");
    is(".hip_fatbin", "PROGBITS", "A", "4096");
    is(".hipFatBinSegment", "PROGBITS", "WA", "8");
    is(".llvm.offloading", "LLVM_OFFLOADING", "E", "8");
    is(".note.GNU-stack", "PROGBITS", "", "1");
}

#[test]
fn sections_symbols_and_relocations() {
    for (arch, machine, relocation) in [
        (HostArch::X86_64, "X86-64", "R_X86_64_64"),
        (HostArch::Aarch64, "AArch64", "R_AARCH64_ABS64"),
    ] {
        let object = everything(arch);
        let header = readelf(&object, &["-h"]);
        assert!(header.contains("REL (Relocatable file)"), "{header}");
        assert!(header.contains(machine), "{header}");
        check_sections(&readelf(&object, &["-S", "-W"]));
        let symbols = readelf(&object, &["-s", "-W"]);
        for (name, size, binding, visibility) in [
            ("fatbin_wrapper", "24", "GLOBAL", "HIDDEN"),
            ("bundle_wrapper", "24", "GLOBAL", "DEFAULT"),
            ("bundle", &BUNDLE.len().to_string(), "LOCAL", "DEFAULT"),
            ("fatbin", &fat_binary().len().to_string(), "LOCAL", "DEFAULT"),
        ] {
            let found = rows(&symbols, name);
            let [row] = &found[..] else {
                panic!("{name}: {symbols}");
            };
            assert_eq!(row[2..6], [size, "OBJECT", binding, visibility], "{symbols}");
        }
        let relocations = readelf(&object, &["-r", "-W"]);
        let found: Vec<_> = rows(&relocations, relocation)
            .into_iter()
            .map(|row| (row[0].to_owned(), row[4].to_owned()))
            .collect();
        let expected = [("0000000000000008", "fatbin"), ("0000000000000008", "bundle")];
        assert_eq!(found, expected.map(|(at, name)| (at.to_owned(), name.to_owned())));
    }
}

#[test]
fn binutils_reads_it_too() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("k.o"), everything(HostArch::X86_64)).unwrap();
    let output = command(directory.path(), "readelf", &["-a", "-W", "k.o"]);
    assert!(!output.contains("Warning") && !output.contains("Error"), "{output}");
    let (kind, flags, alignment) = section(&output, ".nvFatBinSegment");
    assert_eq!((&*kind, &*flags, &*alignment), ("PROGBITS", "WA", "8"));
    assert!(output.contains("R_X86_64_64"), "{output}");
}

/// Runs a program of the system and returns its output, standard error included.
fn command(directory: &Path, program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(directory)
        .output()
        .unwrap_or_else(|error| panic!("this test needs `{program}` (a C compiler and binutils): {error}"));
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    assert!(output.status.success(), "{program} {arguments:?}: {text}");
    text
}

const PROGRAM: &str = r#"
#include <stdint.h>
#include <stdio.h>
#include <string.h>
struct wrapper { uint32_t magic, version; const unsigned char *data; const void *more; };
extern const struct wrapper first, second, hip;
static void show(const char *name, const struct wrapper *w, unsigned alignment) {
    printf("%s %08x %u %02x%02x%02x%02x %u %d\n", name, w->magic, w->version, w->data[0], w->data[1], w->data[2],
           w->data[3], (unsigned)((uintptr_t)w->data % alignment), w->more == NULL);
}
int main(void) {
    show("first", &first, 8);
    show("second", &second, 8);
    show("hip", &hip, 4096);
    printf("%d\n", first.data != second.data);
    return 0;
}
"#;

#[test]
fn a_program_finds_the_wrappers_and_cuobjdump_the_images() {
    let (fatbin, offload) = (fat_binary(), offload_binaries());
    let parts = [
        cuda(&fatbin, "first_data", "first"),
        DeviceCode::Offload { bytes: &offload },
        hip("hip_data", "hip"),
        cuda(&fatbin, "second_data", "second"),
    ];
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("k.o"), write(HostArch::X86_64, &parts).unwrap()).unwrap();
    std::fs::write(directory.path().join("main.c"), PROGRAM).unwrap();
    for options in [
        &["-pie", "-fPIE", "-Wl,--fatal-warnings"][..],
        &["-no-pie"],
        &["-pie", "-fPIE", "-Wl,--gc-sections"],
    ] {
        let arguments = [options, &["main.c", "k.o", "-o", "program"]].concat();
        command(directory.path(), "cc", &arguments);
        let program = directory.path().join("program");
        let output = command(directory.path(), program.to_str().unwrap(), &[]);
        assert_eq!(
            output,
            "first 466243b1 1 50ed55ba 0 1\n\
             second 466243b1 1 50ed55ba 0 1\n\
             hip 48495046 1 5f5f434c 0 1\n\
             1\n",
            "{options:?}"
        );
        let sections = command(directory.path(), "readelf", &["-S", "-l", "-W", "program"]);
        assert!(
            !sections.contains(LLVM_OFFLOADING_SECTION),
            "the linker drops it: {sections}"
        );
        let stack = rows(&sections, "GNU_STACK");
        assert!(stack[0].contains(&"RW"), "{sections}");
        let listed = run("cuobjdump", &["-lelf".as_ref(), program.as_ref()]);
        assert_eq!(listed.matches("sm_90.cubin").count(), 2, "{listed}");
        let listed = run("cuobjdump", &["-lptx".as_ref(), program.as_ref()]);
        assert_eq!(listed.matches("sm_90.ptx").count(), 2, "{listed}");
    }
}

#[test]
fn lld_merges_objects_for_aarch64() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let fatbin = fat_binary();
    for name in ["a", "b"] {
        let (data, wrapper) = (format!("{name}_data"), format!("{name}_wrapper"));
        let parts = [cuda(&fatbin, &data, &wrapper), hip("hip_data", name)];
        let object = write(HostArch::Aarch64, &parts).unwrap();
        std::fs::write(path(name), object).unwrap();
    }
    let everything = everything(HostArch::Aarch64);
    std::fs::write(path("c"), &everything).unwrap();
    let lld = tool("ld.lld");
    let arguments = ["-r", "-m", "aarch64linux", "a", "b", "c", "-o", "all.o"];
    command(directory.path(), lld.to_str().unwrap(), &arguments);
    let merged = std::fs::read(path("all.o")).unwrap();
    check_sections(&readelf(&merged, &["-S", "-W"]));
    let elf = Elf::parse(&merged).unwrap();
    let sections = elf.sections();
    let offloading = sections
        .iter()
        .find(|section| section.kind == SHT_LLVM_OFFLOADING)
        .unwrap();
    let binaries = offload_binary::read(elf.contents(offloading).unwrap()).unwrap();
    assert_eq!(binaries.len(), 2);
    let symbols = elf.symbols(SHT_SYMTAB).unwrap();
    let bundles: Vec<_> = symbols
        .iter()
        .filter(|symbol| symbol.name == "hip_data" || symbol.name == "bundle")
        .collect();
    assert_eq!(bundles.len(), 3);
    for symbol in bundles {
        assert_eq!(symbol.value % HIP_FATBIN_ALIGN, 0);
    }
}

#[test]
fn llvm_finds_the_offload_binaries() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("k.o"), everything(HostArch::X86_64)).unwrap();
    let objdump = tool("llvm-objdump");
    let text = command(directory.path(), objdump.to_str().unwrap(), &["--offloading", "k.o"]);
    for line in ["arch            sm_80", "arch            sm_90", "producer        cuda"] {
        assert!(text.contains(line), "{text}");
    }
}
