//! ELF files that are put together by hand, and every byte of small ones.

use std::{fs, path::Path};

use md5::{Digest as _, Md5};

use crate::{
    FileKind,
    container::bundle,
    image::{cubin, elf::Elf, hsaco::Hsaco},
    offload::check,
    seeds_tests::short,
};

/// A section of a file that is put together by hand.
pub(crate) struct Section<'a> {
    pub name: &'a str,
    pub kind: u32,
    pub link: u32,
    pub entry_size: u64,
    /// Which of the contents it is.
    pub content: usize,
}

/// An ELF file for a machine, whose sections may share contents.
pub(crate) fn elf(machine: u16, contents: &[&[u8]], sections: &[Section<'_>]) -> Vec<u8> {
    let mut names = vec![0];
    let mut name_offsets = Vec::new();
    for section in sections {
        name_offsets.push(names.len() as u32);
        names.extend(section.name.as_bytes());
        names.push(0);
    }
    let mut bytes = vec![0; 64];
    let mut places = Vec::new();
    for content in contents.iter().chain([&names.as_slice()]) {
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        places.push((bytes.len() as u64, content.len() as u64));
        bytes.extend(*content);
    }
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    let table = bytes.len() as u64;
    let mut header = |name: u32, kind: u32, (offset, size): (u64, u64), link: u32, entry_size: u64| {
        bytes.extend(name.to_le_bytes());
        bytes.extend(kind.to_le_bytes());
        bytes.extend([0; 16]);
        bytes.extend(offset.to_le_bytes());
        bytes.extend(size.to_le_bytes());
        bytes.extend(link.to_le_bytes());
        bytes.extend([0; 4]);
        bytes.extend(1u64.to_le_bytes());
        bytes.extend(entry_size.to_le_bytes());
    };
    header(0, 0, (0, 0), 0, 0);
    for (section, name) in sections.iter().zip(name_offsets) {
        header(
            name,
            section.kind,
            places[section.content],
            section.link,
            section.entry_size,
        );
    }
    header(0, 3, places[contents.len()], 0, 0);
    let count = sections.len() as u16 + 2;
    bytes[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    bytes[7] = 0x41;
    bytes[8] = 8;
    bytes[16..18].copy_from_slice(&2u16.to_le_bytes());
    bytes[18..20].copy_from_slice(&machine.to_le_bytes());
    bytes[40..48].copy_from_slice(&table.to_le_bytes());
    bytes[48..52].copy_from_slice(&(90u32 << 8).to_le_bytes());
    bytes[58..60].copy_from_slice(&64u16.to_le_bytes());
    bytes[60..62].copy_from_slice(&count.to_le_bytes());
    bytes[62..64].copy_from_slice(&(count - 1).to_le_bytes());
    bytes
}

/// What is read of a seed of the fuzz targets in which one byte is more, less or negative.
fn each_byte(seed: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fuzz/corpus")
        .join(seed);
    let good = fs::read(path).expect("seeds can be read");
    let mut digest = Md5::new();
    let mut changed = good.clone();
    for place in 0..good.len() {
        for value in [
            good[place].wrapping_add(1),
            good[place].wrapping_sub(1),
            good[place] ^ 0x80,
        ] {
            changed[place] = value;
            digest.update(match Elf::parse(&changed) {
                Ok(elf) => format!("{:?}{:?}{:?}", elf.header(), elf.sections(), elf.notes()),
                Err(error) => error.to_string(),
            });
            digest.update(format!("{:?}", FileKind::of(&changed)));
            digest.update(format!("{:?}{:?}", cubin::read(&changed), Hsaco::read(&changed)));
        }
        changed[place] = good[place];
    }
    short(digest)
}

#[test]
fn each_byte_of_a_cubin() {
    assert_eq!(each_byte("cubin/sm_90a.cubin"), "ebfafc064975");
}

#[test]
fn each_byte_of_a_code_object() {
    assert_eq!(each_byte("hsaco/gfx1100.hsaco"), "cc410f634651");
}

#[test]
fn each_byte_of_a_host_object() {
    assert_eq!(each_byte("inspect/host.o"), "0fef652fdbbe");
}

#[test]
fn a_shared_object_may_be_a_program() {
    let file = |entries: &[[u64; 2]], kind: u8| {
        let contents: Vec<u8> = entries.iter().flatten().flat_map(|word| word.to_le_bytes()).collect();
        let dynamic = Section {
            name: ".dynamic",
            kind: 6,
            link: 0,
            entry_size: 16,
            content: 0,
        };
        let mut file = elf(62, &[&contents], &[dynamic]);
        file[16] = kind;
        FileKind::of(&file)
    };
    const FLAGS_1: u64 = 0x6fff_fffb;
    assert_eq!(file(&[[1, 5], [FLAGS_1, 0x0800_0001], [0, 0]], 3), FileKind::Executable);
    for other in [
        [FLAGS_1, 0x0400_0001],
        [FLAGS_1 - 1, 0x0800_0000],
        [0x0800_0000, FLAGS_1],
    ] {
        assert_eq!(file(&[other], 3), FileKind::SharedLibrary);
    }
    assert_eq!(file(&[], 1), FileKind::HostObject);
    assert_eq!(file(&[], 2), FileKind::Executable);
}

#[test]
fn many_sections_are_counted_in_the_first() {
    let names = ["one", "two"].map(|name| Section {
        name,
        kind: 1,
        link: 0,
        entry_size: 0,
        content: 0,
    });
    let good = elf(62, &[b"contents"], &names);
    let expected = format!("{:?}", Elf::parse(&good).expect("good").sections());
    let table = u64::from_le_bytes(*good[40..].first_chunk().expect("a header")) as usize;
    let mut file = good.clone();
    file[table + 32] = file[60];
    file[table + 40] = file[62];
    let read =
        |file: &[u8]| Elf::parse(file).map_or_else(|error| error.to_string(), |elf| format!("{:?}", elf.sections()));
    // The first section is none: what it holds is not looked at.
    let expected = expected.replacen("size: 0, link: 0", "size: 4, link: 3", 1);
    for (count, index) in [(4, 3), (0, 3), (4, 0xffff), (0, 0xffff)] {
        file[60..62].copy_from_slice(&u16::to_le_bytes(count));
        file[62..64].copy_from_slice(&u16::to_le_bytes(index));
        assert_eq!(read(&file), expected, "{count} {index}");
    }
    // Without a table there are none.
    file[40..48].fill(0);
    file[60..62].fill(0);
    assert_eq!(read(&file), "[]");
}

#[test]
fn entries_of_a_bundle_in_a_host_object() {
    let magic = "__CLANG_OFFLOAD_BUNDLE__";
    let names = ["host-x86_64-unknown-linux-gnu", "hip-amdgcn-amd-amdhsa--gfx942", ""].map(|id| format!("{magic}{id}"));
    let section = |name, content| Section {
        name,
        kind: 1,
        link: 0,
        entry_size: 0,
        content,
    };
    let sections = [
        section(".text", 0),
        section(&names[0], 1),
        section(&names[1], 0),
        section(&names[2], 0),
    ];
    let file = elf(62, &[b"device code", &[0]], &sections);
    let elf = Elf::parse(&file).expect("good");
    let contents = |section| elf.contents(section).expect("there");
    let entries = bundle::from_sections(elf.sections().iter().map(|section| (section.name, contents(section))));
    let [host, device] = entries.as_slice() else {
        panic!("{entries:?}");
    };
    assert!(host.is_host_placeholder() && host.is_host());
    assert!(!device.is_host_placeholder() && !device.is_host());
    assert_eq!(
        (device.id, device.bytes),
        ("hip-amdgcn-amd-amdhsa--gfx942", &b"device code"[..])
    );
}

#[test]
fn the_machine_of_another_file_is_named() {
    for (machine, words) in [
        (224, "an AMD GPU code object"),
        (62, "x86-64 host code"),
        (183, "AArch64 host code"),
        (3, "machine 3 instead of 190"),
    ] {
        let error = cubin::read(&elf(machine, &[], &[])).expect_err("no cubin").to_string();
        assert!(error.contains(words), "{error}");
    }
}

/// What is said of host objects in which one byte is more.
fn each_byte_of_entries(seed: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fuzz/corpus/export_check")
        .join(seed);
    let good = fs::read(path).expect("seeds can be read");
    let mut digest = Md5::new();
    let mut changed = good.clone();
    for place in 0..good.len() {
        changed[place] = good[place].wrapping_add(1);
        digest.update(format!("{:?}", check::check(&changed)));
        changed[place] = good[place];
    }
    short(digest)
}

#[test]
fn each_byte_of_an_object_for_cuda() {
    assert_eq!(each_byte_of_entries("cuda.o"), "ca5548e798bb");
}

#[test]
fn each_byte_of_an_object_for_hip() {
    assert_eq!(each_byte_of_entries("hip.o"), "5af97508f907");
}
