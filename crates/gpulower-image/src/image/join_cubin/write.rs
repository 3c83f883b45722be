//! Writes a cubin as `ptxas` does.

use std::borrow::Cow;
use std::collections::HashMap;

use super::CubinJoinError;
use super::contents::{NAMES_SIZE, SHT_MERCURY_NOBITS, same_as};
use super::names::{DEAD, NamePhases};
use super::part::{Gap, MOST_SECTIONS, SHT_MERCURY_SYMTAB, SHT_NOBITS, unused_names};
use super::whole::{NewSection, NewSymbol, Whole};

const SHF_WRITE: u64 = 1;
const SHF_ALLOC: u64 = 2;
const SHF_EXECINSTR: u64 = 4;
/// Sections of Mercury code, which are in no segment.
const SHF_MERCURY: u64 = 0x1000_0000;
const PT_LOAD: u32 = 1;
const PT_PHDR: u32 = 6;

/// Positions of names in a table.
type Positions<'t> = HashMap<&'t str, u32>;

/// The file.
pub(super) fn write(whole: &Whole<'_>) -> Result<Vec<u8>, CubinJoinError> {
    if whole.sections.len() >= MOST_SECTIONS {
        // A kernel has some ten sections; a file has up to 65,279 where nothing more is done about it.
        return Err(CubinJoinError::new([], "they have more than 65,279 sections together"));
    }
    let (section_names, section_positions) = table(&whole.section_names);
    let (names, positions) = table(&whole.names);
    let contents = whole.sections.iter().map(|section| section.contents.len() + 64);
    let tables = section_names.len() + names.len() + 24 * (whole.symbols.len() + whole.mercury_symbols.len());
    // Some more, for alignments and program headers.
    let mut file = Vec::with_capacity((contents.sum::<usize>() + tables) / 16 * 17 + 1024);
    file.resize(64, 0);
    let mut offsets = Vec::with_capacity(whole.sections.len());
    let mut sizes = Vec::with_capacity(whole.sections.len());
    for (index, section) in whole.sections.iter().enumerate() {
        let contents = match index {
            1 => Cow::Borrowed(section_names.as_slice()),
            2 => Cow::Borrowed(names.as_slice()),
            3 => Cow::Owned(symbols(&whole.symbols, &positions)?),
            _ if section.header.kind == SHT_MERCURY_SYMTAB => Cow::Owned(symbols(&whole.mercury_symbols, &positions)?),
            _ if section.header.kind == SHT_MERCURY_NOBITS => reserved(section, &whole.section_names, &section_names),
            _ => Cow::Borrowed(section.contents.as_ref()),
        };
        if index == 0 {
            offsets.push(0);
            sizes.push(0);
            continue;
        }
        if let Some(other) = same_as(&section.name).or_else(|| same_lines(section, whole)) {
            let other = whole.sections.iter().position(|section| section.name == other);
            offsets.push(other.and_then(|other| offsets.get(other)).copied().unwrap_or(0));
            sizes.push(contents.len() as u64);
            continue;
        }
        align(&mut file, section.header.alignment);
        offsets.push(file.len() as u64);
        let has_size = matches!(section.header.kind, SHT_NOBITS | SHT_MERCURY_NOBITS);
        sizes.push(if has_size {
            section.header.size
        } else {
            contents.len() as u64
        });
        file.extend_from_slice(&contents);
        let gap = match index {
            1 => section_gap(whole),
            2 => symbol_gap(whole),
            _ => 0,
        };
        file.resize(file.len() + gap, 0);
    }
    if !whole.head.layout.compact {
        align(&mut file, 8);
    }
    let section_headers = file.len() as u64;
    for ((section, offset), size) in whole.sections.iter().zip(&offsets).zip(&sizes) {
        let name = position(&section_positions, &section.name)?;
        write_section_header(&mut file, section, (name, *offset, *size), whole);
    }
    let segments = segments(whole, &offsets, file.len() as u64);
    let program_headers = file.len() as u64;
    for segment in &segments {
        segment.write(&mut file);
    }
    let header = header(whole, section_headers, program_headers, segments.len());
    if let Some(start) = file.first_chunk_mut::<64>() {
        *start = header;
    }
    Ok(file)
}

/// Reserved shared memory, with the size of the names that were there when it was reserved.
fn reserved<'s>(section: &'s NewSection<'_>, texts: &[(Cow<'_, str>, usize)], table: &[u8]) -> Cow<'s, [u8]> {
    let mut contents = section.contents.to_vec();
    let mut phases = NamePhases::default();
    let later = texts
        .iter()
        .filter(|(name, _)| phases.of(name) > 1)
        .map(|(name, zeros)| name.len() + 1 + zeros);
    let size = table.len() - later.sum::<usize>();
    if let Some(field) = contents
        .get_mut(NAMES_SIZE..)
        .and_then(|rest| rest.first_chunk_mut::<8>())
    {
        *field = (size as u64).to_le_bytes();
    }
    Cow::Owned(contents)
}

fn align(file: &mut Vec<u8>, alignment: u64) {
    let alignment = usize::try_from(alignment).unwrap_or(1).max(1);
    file.resize(file.len().next_multiple_of(alignment), 0);
}

/// The line table of Mercury code is that of the other code, where both have no lines.
fn same_lines(section: &NewSection<'_>, whole: &Whole<'_>) -> Option<&'static str> {
    let name = section
        .name
        .strip_prefix(".nv.merc")
        .filter(|name| *name == ".debug_line")?;
    let other = whole.sections.iter().find(|section| section.name == name)?;
    (other.contents == section.contents).then_some(".debug_line")
}

/// The zeros after the names of sections.
fn section_gap(whole: &Whole<'_>) -> usize {
    match whole.head.layout.gap {
        Gap::Fixed(gap) => gap,
        Gap::Names(base) => base + unused_names(whole.sections.iter().map(|section| section.name.as_ref())),
    }
}

/// The zeros after the names of symbols. Constant banks of Mercury code had longer names at first, and those of their
/// relocations are there twice.
fn symbol_gap(whole: &Whole<'_>) -> usize {
    if whole.head.layout.compact {
        return 0;
    }
    let zeros = |section: &NewSection<'_>| match section.name.strip_prefix(".nv.merc") {
        Some(name) if name.starts_with(".rela.nv.constant.") => name.len(),
        Some(name) if name.starts_with(".nv.constant.optimizer.") => "constant.optimizer".len() - "constant2".len() - 1,
        Some(".nv.constant.pic") => "constant.pic".len() - "constant4".len() - 1,
        Some(".nv.constant.user") => "constant.user".len() - "constant3".len() - 1,
        _ => 0,
    };
    whole.sections.iter().map(zeros).sum()
}

/// A string table, and where its names are.
fn table<'t>(texts: &'t [(Cow<'_, str>, usize)]) -> (Vec<u8>, Positions<'t>) {
    let mut table = Vec::new();
    let mut positions = HashMap::with_capacity(texts.len());
    for (name, zeros) in texts {
        if name != DEAD {
            // No cubin has four gigabytes of names.
            positions.entry(name.as_ref()).or_insert(table.len() as u32);
            table.extend_from_slice(name.as_bytes());
        }
        table.resize(table.len() + 1 + zeros, 0);
    }
    (table, positions)
}

fn position(positions: &Positions<'_>, name: &str) -> Result<u32, CubinJoinError> {
    let found = positions.get(if name == DEAD { "" } else { name }).copied();
    found.ok_or_else(|| CubinJoinError::new([], format!("the name `{name}` is not among the names")))
}

fn symbols(symbols: &[NewSymbol<'_>], positions: &Positions<'_>) -> Result<Vec<u8>, CubinJoinError> {
    let mut table = Vec::with_capacity(symbols.len() * 24);
    for NewSymbol { name, symbol } in symbols {
        table.extend(position(positions, name)?.to_le_bytes());
        table.extend([symbol.info, symbol.other]);
        table.extend(symbol.section.to_le_bytes());
        table.extend(symbol.value.to_le_bytes());
        table.extend(symbol.size.to_le_bytes());
    }
    Ok(table)
}

fn write_section_header(
    file: &mut Vec<u8>,
    section: &NewSection<'_>,
    (name, offset, size): (u32, u64, u64),
    whole: &Whole<'_>,
) {
    let header = &section.header;
    let info = match section.name.as_ref() {
        ".symtab" if whole.head.layout.symbols_are_local => whole.symbols.len() as u32,
        ".symtab" => first_kernel(&whole.symbols),
        ".nv.merc.symtab" => first_kernel(&whole.mercury_symbols),
        _ => header.info,
    };
    file.extend(name.to_le_bytes());
    file.extend(header.kind.to_le_bytes());
    for field in [header.flags, header.address, offset, size] {
        file.extend(field.to_le_bytes());
    }
    file.extend(header.link.to_le_bytes());
    file.extend(info.to_le_bytes());
    file.extend(header.alignment.to_le_bytes());
    file.extend(header.entry_size.to_le_bytes());
}

fn first_kernel(symbols: &[NewSymbol<'_>]) -> u32 {
    let first = symbols.iter().position(|symbol| symbol.symbol.is_kernel());
    first.unwrap_or(symbols.len()) as u32
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Segment {
    kind: u32,
    flags: u32,
    offset: u64,
    file_size: u64,
    memory_size: u64,
}

impl Segment {
    fn write(&self, file: &mut Vec<u8>) {
        file.extend(self.kind.to_le_bytes());
        file.extend(self.flags.to_le_bytes());
        for field in [self.offset, 0, 0, self.file_size, self.memory_size, 8] {
            file.extend(field.to_le_bytes());
        }
    }
}

/// Runs of sections that are loaded alike, and the segment of the program headers, which start at `start`.
fn segments(whole: &Whole<'_>, offsets: &[u64], start: u64) -> Vec<Segment> {
    let layout = whole.head.layout;
    let mut loaded: Vec<Segment> = Vec::new();
    // What the last of them has in memory alone.
    let mut in_memory = 0u64;
    for (section, &offset) in whole.sections.iter().zip(offsets) {
        let header = &section.header;
        if header.flags & (SHF_ALLOC | SHF_MERCURY) != SHF_ALLOC {
            continue;
        }
        let flags = match header.flags & (SHF_WRITE | SHF_EXECINSTR) {
            SHF_WRITE => 6,
            0 if layout.separate_segments => 4,
            _ => 5,
        };
        if loaded.last().is_none_or(|segment| segment.flags != flags) {
            in_memory = 0;
            loaded.push(Segment {
                kind: PT_LOAD,
                flags,
                offset,
                file_size: 0,
                memory_size: 0,
            });
        }
        let Some(segment) = loaded.last_mut() else { continue };
        if header.kind == SHT_NOBITS {
            // Alignments are small; sizes are what a damaged file says.
            let start = in_memory
                .checked_next_multiple_of(header.alignment.max(1))
                .unwrap_or(u64::MAX);
            in_memory = start.saturating_add(header.size);
            segment.file_size = offset - segment.offset;
        } else {
            segment.file_size = offset - segment.offset + section.contents.len() as u64;
        }
        segment.memory_size = segment.file_size.saturating_add(in_memory);
    }
    let size = 56 * (loaded.len() as u64 + 2);
    let headers = Segment {
        kind: PT_PHDR,
        flags: layout.header_segment_flags,
        offset: start,
        file_size: size,
        memory_size: size,
    };
    let loaded_headers = Segment {
        kind: PT_LOAD,
        ..headers
    };
    let position = if layout.separate_segments { 0 } else { loaded.len() };
    loaded.insert(position, loaded_headers);
    loaded.insert(0, headers);
    loaded
}

fn header(whole: &Whole<'_>, section_headers: u64, program_headers: u64, segments: usize) -> [u8; 64] {
    let mut header = Vec::with_capacity(64);
    header.extend(whole.head.ident);
    // A linked program for NVIDIA's machine.
    header.extend(2u16.to_le_bytes());
    header.extend(190u16.to_le_bytes());
    header.extend(whole.head.machine_version.to_le_bytes());
    for field in [0, program_headers, section_headers] {
        header.extend(field.to_le_bytes());
    }
    header.extend(whole.head.flags.to_le_bytes());
    // Sizes and numbers of records; names of sections are in the first.
    for field in [64, 56, segments as u16, 64, whole.sections.len() as u16, 1] {
        header.extend(field.to_le_bytes());
    }
    header.try_into().unwrap_or([0; 64])
}
