//! Tests of what is recognised, unpacked and refused.

use super::*;
use crate::container::fatbin::{self, Content, Image};
use crate::serialize::ptxas;
use gpulower_testing::amd;
use gpulower_testing::nvidia::{part, relocatable_cubin, store_kernel};

fn target(name: &str) -> Target {
    name.parse().unwrap()
}

fn ptx(chip: &str) -> String {
    let version = if chip.starts_with("sm_1") { "8.6" } else { "8.0" };
    store_kernel(version, chip)
}

fn cubin(chip: &str) -> Vec<u8> {
    relocatable_cubin(&ptx(chip), chip)
}

fn refusal(name: &str, bytes: &[u8], chip: &str) -> String {
    let result = LinkInput::detect(name, bytes).and_then(|input| unpack(&[input], &target(chip)).map(drop));
    result.unwrap_err().to_string()
}

/// Names and kinds of what an input unpacks to.
fn units(name: &str, bytes: &[u8], chip: &str) -> Vec<(String, FileKind)> {
    let input = LinkInput::detect(name, bytes).unwrap();
    let units = unpack(&[input], &target(chip)).unwrap();
    units.into_iter().map(|unit| (unit.name, unit.kind)).collect()
}

fn archive(members: &[(&str, &[u8])]) -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    let mut arguments = vec!["rcS".to_owned(), directory.path().join("lib.a").display().to_string()];
    for (name, bytes) in members {
        let path = directory.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        arguments.push(path.display().to_string());
    }
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    amd::run("llvm-ar", &arguments, b"");
    std::fs::read(directory.path().join("lib.a")).unwrap()
}

fn fatbin_of(images: &[(Content<'_>, &str)]) -> Vec<u8> {
    let images: Vec<Image<'_>> = images
        .iter()
        .map(|(content, arch)| Image {
            compression: fatbin::ZSTD_DEFAULT,
            ..Image::new(*content, arch).unwrap()
        })
        .collect();
    fatbin::write(&images).unwrap()
}

#[test]
fn the_bytes_tell_the_kind() {
    let cubin = cubin("sm_90");
    let object = amd::object(amd::KERNELS, "gfx942", "", 5);
    let text = ptx("sm_90");
    let container = fatbin_of(&[(Content::Cubin(&cubin), "sm_90")]);
    let host = amd::run(
        "llc",
        &["-mtriple=x86_64-linux-gnu", "-filetype=obj", "-o", "-", "-"],
        b"define void @f() { ret void }",
    );
    for (bytes, kind) in [
        (cubin.as_slice(), FileKind::Cubin),
        (&object, FileKind::AmdObject),
        (text.as_bytes(), FileKind::Ptx),
        (&container, FileKind::FatBinary),
        (&host, FileKind::HostObject),
        (&crate::image::lto_ir::MAGIC, FileKind::LtoIr),
        (b"!<arch>\n", FileKind::Archive),
    ] {
        assert_eq!(LinkInput::detect("x", bytes).unwrap().kind, kind);
    }
    let text = refusal("host.o", &host, "sm_90");
    assert_eq!(
        text,
        "host.o cannot be linked: it is a host object without NVIDIA device code"
    );
    let text = refusal("host.o", &host, "gfx942");
    assert!(
        text.contains("it is a host object, and gfx942 is a chip of AMD"),
        "{text}"
    );
}

#[test]
fn what_cannot_be_linked_is_refused_with_advice() {
    for (bytes, part) in [
        (
            &b"BC\xc0\xde"[..],
            "it is LLVM bitcode, which is linked before code is generated",
        ),
        (b"__CLANG_OFFLOAD_BUNDLE__", "it is an offload bundle: extract"),
        (b"CCOB", "it is an offload bundle"),
        (b"\x10\xff\x10\xad", "it is an offload binary: extract"),
        (b"abcdef", "it starts with [61 62 63 64], and is neither PTX"),
        (b"", "it starts with [], and is neither"),
        (b"!<thin>\n", "a thin archive holds the names"),
        (b"\x7fELF", "truncated ELF file"),
        (b"\x50\xed\x55\xba", "truncated fat binary"),
    ] {
        let text = refusal("a.bin", bytes, "sm_90");
        assert!(
            text.starts_with("a.bin cannot be linked: ") && text.contains(part),
            "{text}"
        );
    }
}

#[test]
fn linked_code_is_refused_before_its_kernels_are_lost() {
    let options = ["--gpu-name=sm_90".to_owned()];
    let limit = std::time::Duration::from_secs(120);
    let linked = ptxas::assemble(&part("bin/ptxas"), &ptx("sm_90"), &options, limit)
        .unwrap()
        .cubin;
    let text = refusal("k.cubin", &linked, "sm_90");
    assert_eq!(
        text,
        "k.cubin cannot be linked: the cubin is linked already, and cannot be linked again: make it relocatable \
         (`ptxas -c`, `nvcc -dc`, or `gpulower compile --emit object`)"
    );
    let container = fatbin_of(&[(Content::Cubin(&linked), "sm_90")]);
    let text = refusal("k.fatbin", &container, "sm_90");
    assert!(
        text.starts_with("k.fatbin(cubin sm_90) cannot be linked: the cubin is linked already"),
        "{text}"
    );
    let text = refusal("lib.a", &archive(&[("k.cubin", &linked)]), "sm_90");
    assert!(
        text.starts_with("lib.a(k.cubin) cannot be linked: the cubin is linked already"),
        "{text}"
    );
    let text = refusal("k.hsaco", &amd::hsaco(amd::KERNELS, "gfx942", "", 5), "gfx942");
    assert!(
        text.contains("the code object is linked already") && text.contains("clang -c"),
        "{text}"
    );
}

#[test]
fn code_for_other_chips_is_refused() {
    assert_eq!(
        refusal("k.cubin", &cubin("sm_80"), "sm_90"),
        "k.cubin cannot be linked: it is for sm_80, which does not fit sm_90: compile it for sm_90"
    );
    assert!(refusal("k.cubin", &cubin("sm_86"), "sm_80").contains("it is for sm_86"));
    // nvJitLink would take it.
    let text = refusal("k.cubin", &cubin("sm_90a"), "sm_90");
    assert!(
        text.contains("it is for sm_90a, which does not fit sm_90: link for sm_90a, or compile"),
        "{text}"
    );
    assert_eq!(units("k.cubin", &cubin("sm_80"), "sm_86").len(), 1);
    assert_eq!(units("k.cubin", &cubin("sm_90"), "sm_90a").len(), 1);
    let text = refusal("k.ptx", ptx("sm_90").as_bytes(), "sm_80");
    assert!(
        text.contains("it is for sm_90, which does not fit sm_80: write PTX for an older"),
        "{text}"
    );
    let text = refusal("k.ptx", ptx("sm_90").as_bytes(), "gfx942");
    assert!(
        text.contains("it is PTX, and gfx942 is a chip of AMD: leave it out of this link"),
        "{text}"
    );
    let text = refusal("k.o", &amd::object(amd::KERNELS, "gfx942", "", 5), "sm_90");
    assert!(
        text.contains("it is an AMDGPU object, and sm_90 is a chip of NVIDIA"),
        "{text}"
    );
}

#[test]
fn of_a_fat_binary_the_best_image_is_taken() {
    let text = ptx("sm_80");
    let (old, new) = (cubin("sm_80"), cubin("sm_90"));
    let container = fatbin_of(&[
        (Content::Ptx(&text), "sm_80"),
        (Content::Cubin(&old), "sm_80"),
        (Content::Cubin(&new), "sm_90"),
    ]);
    for (chip, name, kind) in [
        ("sm_90", "k.fatbin(cubin sm_90)", FileKind::Cubin),
        ("sm_86", "k.fatbin(cubin sm_80)", FileKind::Cubin),
        ("sm_100", "k.fatbin(PTX sm_80)", FileKind::Ptx),
    ] {
        assert_eq!(units("k.fatbin", &container, chip), [(name.to_owned(), kind)]);
    }
    assert_eq!(
        refusal("k.fatbin", &container, "sm_75"),
        "k.fatbin cannot be linked: it holds nothing for sm_75; it has PTX sm_80, cubin sm_80, cubin sm_90"
    );
    let text = refusal("k.fatbin", &fatbin_of(&[]), "sm_75");
    assert!(text.ends_with("it has no device code"), "{text}");
}

#[test]
fn members_of_an_archive_have_names() {
    let cubin = cubin("sm_90");
    let good = archive(&[("one.cubin", &cubin), ("two.ptx", ptx("sm_90").as_bytes())]);
    let names: Vec<String> = units("lib.a", &good, "sm_90")
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert_eq!(names, ["lib.a(one.cubin)", "lib.a(two.ptx)"]);
    let text = refusal("lib.a", &archive(&[("readme", b"hello")]), "sm_90");
    assert!(
        text.starts_with("lib.a(readme) cannot be linked: it starts with [68 65 6c 6c]"),
        "{text}"
    );
    let text = refusal("lib.a", &archive(&[("inner.a", &good)]), "sm_90");
    assert!(
        text.contains("lib.a(inner.a) cannot be linked: it is an archive inside of an archive"),
        "{text}"
    );
    let text = refusal("lib.a", &good[..good.len() - 20], "sm_90");
    assert!(text.starts_with("lib.a cannot be linked: damaged archive"), "{text}");
}
