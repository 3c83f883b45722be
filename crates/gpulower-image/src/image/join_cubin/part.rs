//! A cubin taken apart: its header, names, sections and symbols, in the order of the file.

use super::CubinJoinError;
use super::contents::SHT_MERCURY_NOBITS;
use super::names::{self, DEAD, NamePhases, SectionPhases};
use super::order::Item;
use crate::image::elf::{Strings, file};
use crate::read::Bytes;
use crate::{ReadError, image::elf::Elf};

/// `EM_CUDA`.
const MACHINE: u16 = 190;
/// `e_type` of a linked program.
const ET_EXEC: u16 = 2;
pub(super) const SHT_NOBITS: u32 = 8;
/// `.nv.merc.symtab`.
pub(super) const SHT_MERCURY_SYMTAB: u32 = 0x7000_0085;
/// Larger alignments are in no cubin; without a limit, a damaged one would make a file as large as it likes.
const LARGEST_ALIGNMENT: u64 = 4096;
/// `SHN_LORESERVE`: above it, section indices are elsewhere in the file.
pub(super) const MOST_SECTIONS: usize = 0xff00;

/// What the parts of a module must have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    pub ident: [u8; 16],
    pub machine_version: u32,
    pub flags: u32,
    pub layout: Layout,
}

/// In what the releases of `ptxas` differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Layout {
    /// Whether section names are in the order of sections, without those that came to nothing, and the tables at the end of
    /// the file are not aligned (CUDA 13.2 and later).
    pub compact: bool,
    /// Zeros after the section names.
    pub gap: Gap,
    /// Whether the segment of the program headers comes first, and constants and code have segments of their own (sm_90 and
    /// newer).
    pub separate_segments: bool,
    pub header_segment_flags: u32,
    /// Whether `sh_info` of the symbol table is the number of its symbols, rather than the first kernel's.
    pub symbols_are_local: bool,
}

/// Room for section names that came to nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Gap {
    /// So many bytes.
    Fixed(usize),
    /// So many bytes, and those of the names that sections of Mercury code would have.
    Names(usize),
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Section<'a> {
    pub name: &'a str,
    pub kind: u32,
    pub flags: u64,
    pub address: u64,
    pub size: u64,
    pub link: u32,
    pub info: u32,
    pub alignment: u64,
    pub entry_size: u64,
    pub contents: &'a [u8],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Symbol<'a> {
    /// [`DEAD`] for one that was dropped.
    pub name: &'a str,
    pub info: u8,
    pub other: u8,
    pub section: u16,
    pub value: u64,
    pub size: u64,
}

impl Symbol<'_> {
    /// A kernel: `STO_CUDA_ENTRY`.
    pub(super) fn is_kernel(&self) -> bool {
        self.info & 0xf == 2 && self.other & 0x10 != 0
    }
}

/// A name in a string table, and how many zeros follow it besides the one that ends it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Text<'a> {
    pub name: &'a str,
    pub zeros: usize,
}

#[derive(Debug, Clone)]
pub(super) struct Part<'a> {
    pub head: Head,
    pub section_names: Vec<Text<'a>>,
    pub names: Vec<Text<'a>>,
    pub sections: Vec<Section<'a>>,
    pub symbols: Vec<Symbol<'a>>,
    /// Those of `.nv.merc.symtab`.
    pub mercury_symbols: Vec<Symbol<'a>>,
    pub items: Items,
}

/// The same, as far as it is put in order.
#[derive(Debug, Clone)]
pub(super) struct Items {
    pub section_names: Vec<Item>,
    pub names: Vec<Item>,
    pub sections: Vec<Item>,
    pub symbols: Vec<Item>,
    pub mercury_symbols: Vec<Item>,
}

impl<'a> Part<'a> {
    /// Takes the cubin in `bytes` apart. What is not looked at here is found out when it is put together again.
    pub(super) fn read(bytes: &'a [u8], part: usize) -> Result<Self, CubinJoinError> {
        let unknown = |what: &str| CubinJoinError::unknown(part, what);
        let elf = |error: ReadError| CubinJoinError::new([part], error.to_string());
        let parsed = Elf::parse(bytes).map_err(elf)?;
        match parsed.header() {
            header if header.machine != MACHINE => return Err(unknown("it is for another machine than NVIDIA's")),
            header if header.kind != ET_EXEC => {
                let problem = "it is not an executable one: relocatable cubins are joined by a linker";
                return Err(CubinJoinError::new([part], problem));
            }
            _ => {}
        }
        let mut sections = read_sections(&parsed, file(bytes)).map_err(elf)?;
        if sections.iter().any(|section| section.alignment > LARGEST_ALIGNMENT) {
            return Err(unknown("the alignment of a section"));
        }
        let [_, section_names, names, table, ..] = sections.as_slice() else {
            return Err(unknown("it has fewer than four sections"));
        };
        let strings = Strings {
            contents: names.contents,
            offset: 0,
        };
        let symbols = read_symbols(table.contents, strings).map_err(elf)?;
        let mercury = sections.iter().find(|section| section.kind == SHT_MERCURY_SYMTAB);
        let mercury_symbols = read_symbols(mercury.map_or(&[], |table| table.contents), strings).map_err(elf)?;
        let section_names = read_texts(section_names.contents).ok_or_else(|| unknown("the names of its sections"))?;
        let mut names = read_texts(names.contents).ok_or_else(|| unknown("the names of its symbols"))?;
        split_dropped(&mut names);
        // CUDA 13.2 and later leaves their names.
        let dropped = names.iter().filter(|text| text.name == DEAD).count();
        if dropped > 0 && dropped != symbols.iter().filter(|symbol| symbol.name == DEAD).count() {
            return Err(unknown("zeros between the names of its symbols"));
        }
        let head = Head::read(bytes, &sections, &symbols, &section_names).map_err(elf)?;
        if head.layout.compact {
            // What else is at this place in the file is not the section's.
            let empty = sections.iter_mut().filter(|section| section.kind == SHT_MERCURY_NOBITS);
            empty.for_each(|section| section.contents = &[]);
        }
        let items = Items {
            section_names: name_items(section_names.iter().map(|text| text.name)),
            names: name_items(names.iter().map(|text| text.name)),
            sections: section_items(&sections, part)?,
            symbols: name_items(symbols.iter().map(|symbol| symbol.name)),
            mercury_symbols: name_items(mercury_symbols.iter().map(|symbol| symbol.name)),
        };
        Ok(Self {
            head,
            section_names,
            names,
            sections,
            symbols,
            mercury_symbols,
            items,
        })
    }

    /// The names of its kernels.
    pub(super) fn kernels(&self) -> impl Iterator<Item = &'a str> {
        let kernels = self.symbols.iter().filter(|symbol| symbol.is_kernel());
        kernels.map(|symbol| symbol.name)
    }
}

impl Head {
    fn read(
        bytes: &[u8],
        sections: &[Section<'_>],
        symbols: &[Symbol<'_>],
        section_names: &[Text<'_>],
    ) -> Result<Self, ReadError> {
        let file = file(bytes);
        let in_order = sections.iter().map(|section| section.name);
        let program_headers = file.u64(32)?;
        let has_segments = file.u16(56)? >= 2;
        let segment = |index: u64, offset: u64| program_headers.saturating_add(index * 56).saturating_add(offset);
        let layout = Layout {
            compact: section_names.iter().map(|text| text.name).eq(in_order),
            gap: read_gap(file, sections)?,
            separate_segments: has_segments && file.u64(segment(1, 8))? == program_headers,
            header_segment_flags: if has_segments { file.u32(segment(0, 4))? } else { 0 },
            symbols_are_local: sections
                .get(3)
                .is_some_and(|table| table.info as usize == symbols.len()),
        };
        Ok(Self {
            ident: file.slice("the ELF header", 0, 16)?.try_into().unwrap_or_default(),
            machine_version: file.u32(20)?,
            flags: file.u32(48)?,
            layout,
        })
    }
}

/// How far the names of symbols are behind those of sections.
fn read_gap(file: Bytes<'_>, sections: &[Section<'_>]) -> Result<Gap, ReadError> {
    let header = |index: u64, field: u64| {
        let table = file.u64(40)?;
        file.u64(table.saturating_add(index * 64).saturating_add(field))
    };
    let end = header(1, 24)?.saturating_add(header(1, 32)?);
    let gap = usize::try_from(header(2, 24)?.saturating_sub(end)).unwrap_or(usize::MAX);
    Ok(
        match gap.checked_sub(unused_names(sections.iter().map(|section| section.name))) {
            None | Some(0) => Gap::Fixed(gap),
            Some(base) => Gap::Names(base),
        },
    )
}

/// The bytes of the names that sections of Mercury code would have.
pub(super) fn unused_names<'n>(sections: impl Iterator<Item = &'n str>) -> usize {
    let mut bytes = 0;
    for name in sections {
        if name.starts_with(".nv.capmerc") {
            return 0;
        }
        if let Some(kernel) = name.strip_prefix(".text.") {
            bytes += ".nv.capmerc.text.".len() + kernel.len() + 1;
        }
    }
    bytes
}

fn read_sections<'a>(elf: &Elf<'a>, file: Bytes<'a>) -> Result<Vec<Section<'a>>, ReadError> {
    let table = file.u64(40)?;
    let mut sections = Vec::with_capacity(elf.sections().len());
    for (index, section) in (0u64..).zip(elf.sections()) {
        let header = table.saturating_add(index.saturating_mul(64));
        sections.push(Section {
            name: section.name,
            kind: section.kind,
            flags: file.u64(header.saturating_add(8))?,
            address: file.u64(header.saturating_add(16))?,
            size: section.size,
            link: section.link,
            info: section.info,
            alignment: section.alignment,
            entry_size: section.entry_size,
            contents: elf.contents(section)?,
        });
    }
    Ok(sections)
}

fn read_symbols<'a>(table: &'a [u8], names: Strings<'a>) -> Result<Vec<Symbol<'a>>, ReadError> {
    let (entries, _) = table.as_chunks::<24>();
    entries
        .iter()
        .enumerate()
        .map(|(index, entry)| {
            let entry = file(entry);
            let name = names.get(entry.u32(0)?)?;
            Ok(Symbol {
                name: if name.is_empty() && index > 0 { DEAD } else { name },
                info: entry.u8(4)?,
                other: entry.u8(5)?,
                section: entry.u16(6)?,
                value: entry.u64(8)?,
                size: entry.u64(16)?,
            })
        })
        .collect()
}

/// The names of a string table, the first of which is empty.
fn read_texts(table: &[u8]) -> Option<Vec<Text<'_>>> {
    let table = std::str::from_utf8(table).ok()?;
    let mut texts: Vec<Text<'_>> = Vec::new();
    for name in table.strip_suffix('\0')?.split('\0') {
        match texts.last_mut() {
            Some(last) if name.is_empty() => last.zeros += 1,
            _ => texts.push(Text { name, zeros: 0 }),
        }
    }
    Some(texts)
}

/// Makes an entry of its own of zeros that are not part of a shortened name.
fn split_dropped(texts: &mut Vec<Text<'_>>) {
    let mut split = Vec::with_capacity(texts.len() + 1);
    for &text in texts.iter() {
        if text.zeros == 0 || names::is_shortened(text.name) {
            split.push(text);
        } else {
            split.push(Text { zeros: 0, ..text });
            split.push(Text {
                name: DEAD,
                zeros: text.zeros - 1,
            });
        }
    }
    *texts = split;
}

fn name_items<'n>(names: impl Iterator<Item = &'n str>) -> Vec<Item> {
    let mut phases = NamePhases::default();
    let item = |name| Item {
        phase: phases.of(name),
        shared: names::shared(name),
    };
    names.map(item).collect()
}

fn section_items(sections: &[Section<'_>], part: usize) -> Result<Vec<Item>, CubinJoinError> {
    let mut phases = SectionPhases::default();
    let item = |section: &Section<'_>| {
        let name = section.name;
        let phase = phases
            .of(name)
            .ok_or_else(|| CubinJoinError::unknown(part, format_args!("section `{name}`")))?;
        Ok(Item {
            phase,
            shared: names::shared(name),
        })
    };
    sections.iter().map(item).collect()
}
