//! Whether the tables of a cubin are sound.
//!
//! A driver takes a cubin without its size and believes its tables: NVIDIA's (release 580) crashes where a section or a segment
//! is not what it says, and takes the process along. So what they say is checked first. What is inside of sections, code
//! above all, cannot be.
//!
//! The rules are the System V ABI's, and what is true of all cubins that ptxas 11.8, 12.4 and 13.0, nvlink, nvPTXCompiler and
//! nvJitLink write, for `sm_75` to `sm_120`, with and without debug information.

/// `SHT_RELA`, `SHT_NOBITS`, `SHT_REL`, and NVIDIA's type for shared memory, which takes no space in the file either.
const RELA: u32 = 4;
const NOBITS: u32 = 8;
const REL: u32 = 9;
const SHARED: u32 = 0x7000_000a;
const SYMTAB: u32 = 2;
/// `SHF_INFO_LINK`: `sh_info` is a section.
const INFO_LINK: u64 = 0x40;
/// `SHF_ALLOC | SHF_EXECINSTR`: in `sh_info` are a symbol and, in the top byte, registers.
const CODE: u64 = 6;
/// Flags of the ABI, and of NVIDIA in the upper bits, that there are. Before CUDA 13 a kernel's barriers are counted there.
const FLAGS: u64 = 0x1ff0_0277;
/// More shared memory has no multiprocessor.
const SHARED_AT_MOST: u64 = 1 << 20;
/// The largest alignment that is believed.
const ALIGNMENT_AT_MOST: u64 = 1 << 16;

const HEADER: u64 = 64;
const SECTION: u64 = 64;
const SEGMENT: u64 = 56;

/// What is wrong with the tables, in words.
type Problem = String;

struct File<'a>(&'a [u8]);

struct Section {
    name: u64,
    kind: u32,
    flags: u64,
    address: u64,
    offset: u64,
    size: u64,
    link: u32,
    info: u32,
    alignment: u64,
    entry: u64,
}

impl Section {
    /// Where its bytes are in the file.
    fn bytes(&self) -> (u64, u64) {
        let size = if matches!(self.kind, 0 | NOBITS | SHARED) {
            0
        } else {
            self.size
        };
        (self.offset, self.offset.saturating_add(size))
    }
}

impl File<'_> {
    fn number<const BYTES: usize>(&self, offset: u64) -> Result<u64, Problem> {
        let bytes = usize::try_from(offset)
            .ok()
            .and_then(|start| self.0.get(start..)?.get(..BYTES))
            .ok_or_else(|| format!("the file ends before {offset:#x}"))?;
        Ok(bytes.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte)))
    }

    fn word(&self, offset: u64) -> Result<u32, Problem> {
        self.number::<4>(offset).map(|value| value as u32)
    }

    fn section(&self, at: u64) -> Result<Section, Problem> {
        Ok(Section {
            name: self.number::<4>(at)?,
            kind: self.word(at + 4)?,
            flags: self.number::<8>(at + 8)?,
            address: self.number::<8>(at + 16)?,
            offset: self.number::<8>(at + 24)?,
            size: self.number::<8>(at + 32)?,
            link: self.word(at + 40)?,
            info: self.word(at + 44)?,
            alignment: self.number::<8>(at + 48)?,
            entry: self.number::<8>(at + 56)?,
        })
    }

    /// The name at an offset of the table of names.
    fn name(&self, names: &Section, offset: u64) -> Option<&[u8]> {
        let (start, end) = names.bytes();
        let table = self.0.get(usize::try_from(start).ok()?..usize::try_from(end).ok()?)?;
        let rest = table.get(usize::try_from(offset).ok()?..)?;
        rest.get(..rest.iter().position(|&byte| byte == 0)?)
    }
}

/// Checks the tables of a cubin.
///
/// # Errors
///
/// What is wrong, and where.
pub(super) fn check(bytes: &[u8]) -> Result<(), Problem> {
    let file = File(bytes);
    check_header(&file)?;
    let (segments, sections) = (file.number::<8>(32)?, file.number::<8>(40)?);
    let (segment_count, section_count) = (file.number::<2>(56)?, file.number::<2>(60)?);
    let sections_end = sections.saturating_add(section_count * SECTION);
    let segments_end = segments.saturating_add(segment_count * SEGMENT);
    let all = (0..section_count)
        .map(|index| file.section(sections.saturating_add(index * SECTION)))
        .collect::<Result<Vec<Section>, Problem>>()?;
    let names = usize::try_from(file.number::<2>(62)?)
        .ok()
        .and_then(|index| all.get(index))
        .ok_or("the table of section names does not exist")?;
    if (0..SECTION / 8).any(|word| file.number::<8>(sections.saturating_add(word * 8)) != Ok(0)) {
        return Err("section 0 is not empty".to_owned());
    }
    let mut seen = std::collections::HashSet::new();
    for (index, section) in all.iter().enumerate().skip(1) {
        let name = file.name(names, section.name).unwrap_or_default();
        let text = String::from_utf8_lossy(name);
        let at = |problem: Problem| format!("section {index}, {text:?}: {problem}");
        if !name.starts_with(b".") || !seen.insert(name) {
            return Err(at("its name is no section's, or another section's".to_owned()));
        }
        check_section(section, name, &all, bytes.len() as u64).map_err(at)?;
        if matches!(section.kind, REL | RELA) {
            check_relocations(&file, section, &all).map_err(at)?;
        }
        if section.kind == SYMTAB {
            check_symbols(&file, section, &all).map_err(at)?;
        }
    }
    for index in 0..segment_count {
        let at = segments.saturating_add(index * SEGMENT);
        check_segment(&file, at, &all, (segments, segments_end))
            .map_err(|problem| format!("segment {index}: {problem}"))?;
    }
    // Chips from 10.0 on keep a second description of the same, which shares bytes with the first.
    if !seen.iter().any(|name| name.starts_with(b".nv.merc")) {
        let mut parts: Vec<(u64, u64)> = all
            .iter()
            .map(Section::bytes)
            .filter(|(start, end)| start < end)
            .collect();
        parts.extend([(0, HEADER), (sections, sections_end)]);
        parts.extend((segment_count > 0).then_some((segments, segments_end)));
        check_parts(bytes, parts)?;
    }
    Ok(())
}

fn check_header(file: &File<'_>) -> Result<(), Problem> {
    // The rest of the identification, the entry point, and the sizes of the tables' entries.
    let padding = (file.number::<7>(9)?, "the identification", [0, 0]);
    // Before CUDA 13 the version is the toolkit's, 124 for 12.4; then it is 1. Wrong is what has more bytes.
    let version = (file.number::<4>(20)? >> 8, "the version", [0, 0]);
    let entry = (file.number::<8>(24)?, "the entry point", [0, 0]);
    let size = (file.number::<2>(52)?, "the size of the header", [HEADER, HEADER]);
    let segment = (file.number::<2>(54)?, "the size of a segment's header", [0, SEGMENT]);
    let section = (
        file.number::<2>(58)?,
        "the size of a section's header",
        [SECTION, SECTION],
    );
    for (found, what, right) in [padding, version, entry, size, segment, section] {
        if !right.contains(&found) {
            return Err(format!("{what} in the header is {found:#x}"));
        }
    }
    Ok(())
}

fn check_section(section: &Section, name: &[u8], all: &[Section], file_size: u64) -> Result<(), Problem> {
    let count = all.len() as u64;
    let (start, end) = section.bytes();
    if end > file_size {
        return Err(format!("it ends at {end:#x}, behind the end of the file"));
    }
    if !(section.kind < 20 || (0x7000_0000..0x7000_0100).contains(&section.kind)) {
        return Err(format!("there is no type {:#x}", section.kind));
    }
    if section.flags & !FLAGS != 0 {
        return Err(format!("there are no flags {:#x}", section.flags));
    }
    if section.address != 0 {
        return Err(format!(
            "it has the address {:#x}, and a cubin has none",
            section.address
        ));
    }
    let alignment = section.alignment;
    if alignment > ALIGNMENT_AT_MOST || (alignment != 0 && (!alignment.is_power_of_two() || start % alignment != 0)) {
        return Err(format!("it is at {start:#x} with an alignment of {alignment}"));
    }
    if name.starts_with(b".nv.shared") && section.size > SHARED_AT_MOST {
        return Err(format!("{} bytes of shared memory", section.size));
    }
    let entry = match section.kind {
        SYMTAB | RELA => 24,
        REL => 16,
        _ => section.entry,
    };
    if section.entry != entry
        || !matches!(entry, 0 | 8 | 16 | 24)
        || (entry != 0 && !section.size.is_multiple_of(entry))
    {
        return Err(format!("{} bytes in entries of {}", section.size, section.entry));
    }
    let symbols = all
        .iter()
        .find(|section| section.kind == SYMTAB)
        .map_or(0, |table| table.size / 24);
    let (info, most) = match section.kind {
        SYMTAB => (u64::from(section.info), symbols + 1),
        _ if section.flags & CODE == CODE && section.flags & INFO_LINK == 0 => {
            (u64::from(section.info & 0xff_ffff), symbols)
        }
        _ => (u64::from(section.info), count),
    };
    if u64::from(section.link) >= count || info >= most {
        return Err(format!(
            "it refers to {} and {:#x}, which do not exist",
            section.link, section.info
        ));
    }
    Ok(())
}

fn check_relocations(file: &File<'_>, section: &Section, all: &[Section]) -> Result<(), Problem> {
    let symbols = all.get(section.link as usize).filter(|table| table.kind == SYMTAB);
    let target = all.get(section.info as usize);
    let (Some(symbols), Some(target)) = (symbols, target) else {
        return Err("its symbols are no table of symbols".to_owned());
    };
    let (start, end) = section.bytes();
    for at in (start..end).step_by(section.entry as usize) {
        let (offset, symbol) = (file.number::<8>(at)?, file.number::<4>(at + 12)?);
        if offset >= target.size || symbol >= symbols.size / 24 {
            return Err(format!(
                "symbol {symbol} at {offset:#x} does not exist, or is for what does not"
            ));
        }
    }
    Ok(())
}

fn check_symbols(file: &File<'_>, section: &Section, all: &[Section]) -> Result<(), Problem> {
    /// Numbers of sections from here on have meanings of their own.
    const RESERVED: u64 = 0xff00;
    let strings = all.get(section.link as usize).ok_or("no names")?;
    let (start, end) = section.bytes();
    for at in (start..end).step_by(24) {
        let (name, home) = (file.number::<4>(at)?, file.number::<2>(at + 6)?);
        if name >= strings.size || (home >= all.len() as u64 && home < RESERVED) {
            return Err(format!(
                "the symbol at {at:#x} has a name or a section that does not exist"
            ));
        }
    }
    Ok(())
}

fn check_segment(file: &File<'_>, at: u64, all: &[Section], table: (u64, u64)) -> Result<(), Problem> {
    let (kind, flags) = (file.word(at)?, file.word(at + 4)?);
    let [offset, address, physical, in_file, in_memory, alignment] =
        [8, 16, 24, 32, 40, 48].map(|part| file.number::<8>(at + part));
    let (offset, in_file, in_memory, alignment) = (offset?, in_file?, in_memory?, alignment?);
    if !matches!(kind, 1 | 6) || flags > 7 || address? != 0 || physical? != 0 {
        return Err("its type, its flags or its address is no cubin's".to_owned());
    }
    let end = offset.saturating_add(in_file);
    let ends = || all.iter().map(Section::bytes).chain([table]);
    if in_file > 0 && !(ends().any(|(start, _)| start == offset) && ends().any(|(_, last)| last == end)) {
        return Err(format!("it is from {offset:#x} to {end:#x}, which are no sections"));
    }
    let without_bytes = all.iter().filter(|section| matches!(section.kind, NOBITS | SHARED));
    let most = without_bytes.fold(in_file, |sum, section| {
        sum.saturating_add(section.size).saturating_add(section.alignment)
    });
    if in_memory < in_file || in_memory > most || !alignment.is_power_of_two() || alignment > ALIGNMENT_AT_MOST {
        return Err(format!(
            "{in_file} bytes of it become {in_memory}, aligned to {alignment}"
        ));
    }
    Ok(())
}

/// The parts of a file do not overlap, and between them is nothing.
fn check_parts(bytes: &[u8], mut parts: Vec<(u64, u64)>) -> Result<(), Problem> {
    parts.sort_unstable();
    parts.push((bytes.len() as u64, bytes.len() as u64));
    let mut reached = 0;
    for (start, end) in parts {
        if start < reached {
            return Err(format!("two sections have the bytes at {start:#x}"));
        }
        let between = bytes.get(reached as usize..start as usize).unwrap_or_default();
        if between.iter().any(|&byte| byte != 0) {
            return Err(format!("no section has the bytes at {reached:#x} to {start:#x}"));
        }
        reached = end;
    }
    Ok(())
}

#[cfg(test)]
#[path = "../tests/private/cubin_layout.rs"]
mod tests;
