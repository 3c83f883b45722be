//! Tests of the ELF reader on real files, and on real files with something broken.

use gpulower_image::ReadProblem;
use gpulower_image::image::elf::{ET_DYN, ET_REL, Elf, SHT_DYNSYM, SHT_SYMTAB};
use gpulower_testing::amd::{KERNELS, hsaco, object, readelf};

fn patch(file: &[u8], offset: usize, bytes: &[u8]) -> Vec<u8> {
    let mut file = file.to_vec();
    file[offset..offset + bytes.len()].copy_from_slice(bytes);
    file
}

/// Offset in the file of the header of the section called `name`.
fn section_header(file: &[u8], name: &str) -> usize {
    let index = Elf::parse(file)
        .unwrap()
        .sections()
        .iter()
        .position(|section| section.name == name)
        .unwrap();
    let table = u64::from_le_bytes(file[40..48].try_into().unwrap());
    usize::try_from(table).unwrap() + 64 * index
}

#[test]
fn sections_and_symbols_are_those_of_llvm_readelf() {
    for file in [object(KERNELS, "gfx942", "", 5), hsaco(KERNELS, "gfx942", "", 5)] {
        let elf = Elf::parse(&file).unwrap();
        let text = readelf(&file, &["-S", "-W"]);
        for section in elf.sections() {
            assert!(text.contains(section.name), "{section:?}\n{text}");
            elf.contents(section).unwrap();
        }
        assert!(text.contains(&format!("There are {} section headers", elf.sections().len())));
        let text = readelf(&file, &["--symbols", "-W"]);
        let symbols = elf.symbols(SHT_SYMTAB).unwrap();
        let count = symbols.len() + 1;
        let title = format!("Symbol table '.symtab' contains {count} entries");
        assert!(text.contains(&title), "{text}");
        for symbol in symbols {
            let line = format!(": {:016x} {:5} ", symbol.value, symbol.size);
            assert!(
                text.lines()
                    .any(|other| other.contains(&line) && other.ends_with(symbol.name)),
                "{line} {}\n{text}",
                symbol.name
            );
        }
    }
}

#[test]
fn notes_are_found_in_objects_and_in_shared_objects() {
    for (file, kind) in [
        (object(KERNELS, "gfx90a", "", 4), ET_REL),
        (hsaco(KERNELS, "gfx90a", "", 4), ET_DYN),
    ] {
        let elf = Elf::parse(&file).unwrap();
        assert_eq!(elf.header().kind, kind);
        let notes = elf.notes().unwrap();
        let [note] = notes.as_slice() else {
            panic!("{notes:?}");
        };
        assert_eq!((note.owner, note.kind), (&b"AMDGPU"[..], 32));
        let size = note.contents.len();
        let text = readelf(&file, &["--notes"]);
        assert!(text.contains(&format!("{size:#010x}")), "{size:#x}\n{text}");
        let start = usize::try_from(note.offset).unwrap();
        assert_eq!(&file[start..start + size], note.contents);
    }
}

#[test]
fn only_64_bit_little_endian_elf_is_read() {
    let error = Elf::parse(b"PK\x03\x04").unwrap_err();
    assert_eq!(
        error.to_string(),
        "not an ELF file: it starts with [50 4b 03 04] instead of [7f 45 4c 46]"
    );
    assert_eq!(Elf::parse(b"").unwrap_err().problem, ReadProblem::OtherFormat);
    let file = object(KERNELS, "gfx90a", "", 5);
    let error = Elf::parse(&patch(&file, 4, &[1])).unwrap_err();
    assert_eq!(
        error.to_string(),
        "ELF class 1, data encoding 1: only 64-bit little-endian files (2, 1) are read"
    );
}

#[test]
fn truncation_names_the_offset() {
    let file = object(KERNELS, "gfx90a", "", 5);
    let error = Elf::parse(&file[..20]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "truncated ELF file: the ELF header needs 64 bytes at offset 0x0, but the file has only 20 bytes"
    );
    let table = u64::from_le_bytes(file[40..48].try_into().unwrap());
    let error = Elf::parse(&file[..file.len() - 1]).unwrap_err().to_string();
    assert!(
        error.contains(&format!(
            "the section header table needs {} bytes at offset {table:#x}",
            file.len() as u64 - table
        )),
        "{error}"
    );

    let text = section_header(&file, ".text");
    let far = patch(&file, text + 24, &u64::MAX.to_le_bytes());
    let elf = Elf::parse(&far).unwrap();
    let section = elf.sections().iter().find(|section| section.name == ".text");
    let error = elf.contents(section.unwrap()).unwrap_err().to_string();
    assert!(
        error.contains("section `.text` needs") && error.contains("at offset 0xffffffffffffffff"),
        "{error}"
    );
}

#[test]
fn damaged_tables_are_named() {
    let file = object(KERNELS, "gfx90a", "", 5);
    let symbols = section_header(&file, ".symtab");
    let error = |file: &[u8]| {
        let elf = Elf::parse(file).unwrap();
        elf.symbols(SHT_SYMTAB).unwrap_err().to_string()
    };
    let entries = error(&patch(&file, symbols + 56, &16u64.to_le_bytes()));
    assert!(
        entries.contains("symbol table `.symtab`") && entries.contains("entries of 16 bytes"),
        "{entries}"
    );
    let link = error(&patch(&file, symbols + 40, &999u32.to_le_bytes()));
    assert!(link.contains("its string table, section 999, does not exist"), "{link}");
    let size = error(&patch(&file, symbols + 32, &25u64.to_le_bytes()));
    assert!(size.contains("25 bytes are not a whole number"), "{size}");
    let table = u64::from_le_bytes(file[symbols + 24..symbols + 32].try_into().unwrap());
    let first = usize::try_from(table).unwrap() + 24;
    let name = error(&patch(&file, first, &u32::MAX.to_le_bytes()));
    assert!(
        name.contains("a name in a string table") && name.contains("behind the end of the table"),
        "{name}"
    );
    let strings = section_header(&file, ".strtab");
    let table = u64::from_le_bytes(file[strings + 24..strings + 32].try_into().unwrap());
    let name = u32::from_le_bytes(file[first..first + 4].try_into().unwrap());
    let byte = usize::try_from(table + u64::from(name)).unwrap();
    let name = error(&patch(&file, byte, &[0xff]));
    assert!(name.contains("not UTF-8"), "{name}");

    let stated = Elf::parse(&patch(&file, 58, &[40, 0])).unwrap_err();
    assert!(
        stated.to_string().contains("the section header table at offset"),
        "{stated}"
    );
}

#[test]
fn a_note_that_leaves_its_section_is_refused() {
    let file = object(KERNELS, "gfx90a", "", 5);
    let offset = Elf::parse(&file).unwrap().notes().unwrap()[0].offset;
    let header = usize::try_from(offset).unwrap() - 20;
    let broken = patch(&file, header + 4, &u32::MAX.to_le_bytes());
    let error = Elf::parse(&broken).unwrap().notes().unwrap_err();
    assert!(
        error
            .to_string()
            .contains(&format!("a note's contents at offset {offset:#x}")),
        "{error}"
    );
    assert!(error.to_string().contains("4294967295 bytes"), "{error}");
}

#[test]
fn overlapping_note_segments_are_refused() {
    let file = hsaco(KERNELS, "gfx90a", "", 5);
    let segments = usize::from(u16::from_le_bytes([file[56], file[57]]));
    let mut broken = file.clone();
    let headers = 64..64 + 56 * segments;
    let note = headers
        .clone()
        .step_by(56)
        .find(|&header| file[header..header + 4] == 4u32.to_le_bytes())
        .unwrap();
    let note = &file[note..note + 56];
    // Every segment becomes the note segment.
    for header in headers.step_by(56) {
        broken = patch(&broken, header, note);
    }
    let error = Elf::parse(&broken).unwrap().notes().unwrap_err();
    assert!(error.to_string().contains("overlap"), "{error}");
}

#[test]
fn a_file_without_dynamic_symbols_has_none() {
    let file = object(KERNELS, "gfx90a", "", 5);
    assert_eq!(Elf::parse(&file).unwrap().symbols(SHT_DYNSYM), Ok(vec![]));
}
