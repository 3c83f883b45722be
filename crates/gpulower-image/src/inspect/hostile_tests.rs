//! Small files that would describe large results if they were believed.

use crate::container::fatbin::{self, Content};
use crate::elf_tests::{Section, elf};
use crate::inspect::{Inspection, inspect};
use gpulower_testing::nvidia;

fn symbol(name: usize, other: u8) -> Vec<u8> {
    let mut bytes = (name as u32).to_le_bytes().to_vec();
    // A global function, defined in section 1.
    bytes.extend([0x12, other, 1, 0]);
    bytes.extend([0; 16]);
    bytes
}

fn problem(bytes: &[u8]) -> String {
    let found = inspect("x", bytes).unwrap();
    // Generous: every field and every character counted.
    let size = serde_json::to_string(&found).unwrap().len();
    assert!(size < 64 * bytes.len() + (1 << 20), "{size} of {}", bytes.len());
    let problems: Vec<String> = found.problems().map(|(_, problem)| problem.to_owned()).collect();
    problems.join("\n")
}

const SYMTAB: u32 = 2;
const STRTAB: u32 = 3;
const PROGBITS: u32 = 1;

/// A string table, which is content 0, and a symbol table, content 1.
fn symbol_sections() -> Vec<Section<'static>> {
    let section = |name, kind, link, entry_size, content| Section {
        name,
        kind,
        link,
        entry_size,
        content,
    };
    vec![section("s", STRTAB, 0, 0, 0), section("t", SYMTAB, 1, 24, 1)]
}

#[test]
fn names_of_functions_that_share_their_bytes() {
    let strings = [vec![b'a'; 4000], vec![0]].concat();
    let symbols: Vec<u8> = (0..300).flat_map(|index| symbol(index.max(1) - 1, 0)).collect();
    let sections = symbol_sections();
    let message = problem(&elf(190, &[&strings, &symbols], &sections));
    assert!(message.contains("names of functions overlap"), "{message}");
}

#[test]
fn attributes_of_kernels_that_share_their_bytes() {
    let names: Vec<String> = (0..100).map(|index| format!(".nv.info.k{index:02}")).collect();
    let strings: Vec<u8> = std::iter::once(0)
        .chain((0..100).flat_map(|index| format!("k{index:02}\0").into_bytes()))
        .collect();
    let symbols: Vec<u8> = [symbol(0, 0)]
        .into_iter()
        .chain((0..100).map(|index| symbol(1 + index * 4, 0x10)))
        .flatten()
        .collect();
    // KPARAM_INFO with 12 bytes.
    let attributes: Vec<u8> = (0..200)
        .flat_map(|_| [4, 0x17, 12, 0].into_iter().chain([0; 12]))
        .collect();
    let mut sections = symbol_sections();
    sections.extend(names.iter().map(|name| Section {
        name,
        kind: PROGBITS,
        link: 0,
        entry_size: 0,
        content: 2,
    }));
    let message = problem(&elf(190, &[&strings, &symbols, &attributes], &sections));
    assert!(message.contains("attributes of kernels overlap"), "{message}");
}

#[test]
fn sections_that_share_one_fat_binary() {
    let text = nvidia::rich_module("7.8", "sm_80");
    for compression in [fatbin::Compression::None, fatbin::ZSTD_DEFAULT] {
        let image = fatbin::Image {
            compression,
            ..fatbin::Image::new(Content::Ptx(&text), "sm_80").unwrap()
        };
        let fatbin = fatbin::write(&vec![image; 20]).unwrap();
        let section = || Section {
            name: ".nv_fatbin",
            kind: PROGBITS,
            link: 0,
            entry_size: 0,
            content: 0,
        };
        let sections: Vec<Section<'_>> = (0..5000).map(|_| section()).collect();
        let bytes = elf(62, &[&fatbin], &sections);
        let found: Inspection = inspect("x", &bytes).unwrap();
        assert!(found.images.len() < 20_000, "{}", found.images.len());
        let problems: Vec<&str> = found.problems().map(|(_, problem)| problem).collect();
        assert!(
            problems.iter().any(|problem| problem.starts_with("not read: ")),
            "{problems:?}"
        );
        assert!(problems.len() < 10, "said once, not {} times", problems.len());
    }
}

#[test]
fn names_of_sections_that_share_their_bytes() {
    let long = "n".repeat(3000);
    let section = |name| Section {
        name,
        kind: PROGBITS,
        link: 0,
        entry_size: 0,
        content: 0,
    };
    let mut sections: Vec<Section<'_>> = (0..500).map(|_| section("")).collect();
    sections.push(section(&long));
    let mut bytes = elf(62, &[b"x"], &sections);
    // All sections take the long name's bytes.
    let table = usize::try_from(u64::from_le_bytes(bytes[40..48].try_into().unwrap())).unwrap();
    for index in 1..500 {
        bytes[table + 64 * index..][..4].copy_from_slice(&501u32.to_le_bytes());
    }
    let message = problem(&bytes);
    assert!(message.contains("names of sections overlap"), "{message}");
}

#[test]
fn many_damaged_containers() {
    let mut bytes = Vec::new();
    for _ in 0..20_000 {
        // A fat binary whose entries reach behind the end of the file.
        bytes.extend([0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0]);
        bytes.extend(u64::MAX.to_le_bytes());
    }
    let found = inspect("x", &bytes).unwrap();
    assert!(found.containers.len() < 100, "{}", found.containers.len());
    assert!(found.problems().count() > 0);
}
