//! Joins relocatable AMDGPU objects: of kernels that were compiled apart, the object that LLVM writes of all together.
//!
//! LLVM 22 writes a fixed list of sections for a module of kernels. Code and descriptors follow each other, symbols are those
//! of one kernel after the other, and one note describes all kernels. The last object may have constants behind its descriptors. What has any other section, or symbols that another
//! object may define, is refused. So is an object that is not, byte for byte, what its own pieces give here: nothing that is
//! unknown gets lost.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use rmpv::Value;

use super::elf::{EM_AMDGPU, ET_REL, Elf, file};
use super::join_cubin::Renaming;
use crate::ReadError;

/// The sections of an object of kernels, in the order of their headers. [`COMMENT`] may be missing.
const SECTIONS: [&str; 10] = [
    "",
    ".strtab",
    ".text",
    ".rodata",
    ".rela.rodata",
    ".AMDGPU.gpr_maximums",
    ".comment",
    ".note.GNU-stack",
    ".note",
    ".symtab",
];
const STRTAB: usize = 1;
const TEXT: usize = 2;
const RODATA: usize = 3;
const RELA: usize = 4;
const MAXIMUMS: usize = 5;
/// Which compilers the LLVM IR came from (`!llvm.ident`).
const COMMENT: usize = 6;
const STACK: usize = 7;
const NOTE: usize = 8;
const SYMTAB: usize = 9;
/// The order of their contents.
const CONTENTS: [usize; 9] = [TEXT, RODATA, MAXIMUMS, COMMENT, STACK, NOTE, SYMTAB, RELA, STRTAB];

const SHN_ABS: u16 = 0xfff1;
/// Bytes of a kernel's descriptor (`amdhsa::kernel_descriptor_t`).
const DESCRIPTOR: usize = 64;
/// Kernels start at multiples of it.
const KERNEL_ALIGNMENT: usize = 256;
/// `s_nop 0`, with which LLVM fills the space before a kernel.
const NOP: [u8; 4] = 0xbf80_0000_u32.to_le_bytes();
/// `NT_AMDGPU_METADATA`.
const METADATA: u32 = 32;
const KERNELS: &str = "amdhsa.kernels";

/// The object of all kernels of `parts`, in this order. Kernels may be called otherwise in it.
///
/// # Errors
///
/// [`ReadError`]: what cannot be joined has to be compiled together.
pub fn join(parts: &[(&[u8], Renaming<'_>)]) -> Result<Vec<u8>, ReadError> {
    let mut read = Vec::with_capacity(parts.len());
    for (bytes, renaming) in parts {
        let part = Part::read(bytes)?;
        if write(&[(&part, &[])])? != *bytes {
            return Err(refused("an object has something that is not known"));
        }
        read.push((part, *renaming));
    }
    let parts: Vec<(&Part<'_>, Renaming<'_>)> = read.iter().map(|(part, renaming)| (part, *renaming)).collect();
    write(&parts)
}

fn refused(problem: &str) -> ReadError {
    ReadError::not_read(format!("AMDGPU objects are not joined: {problem}"))
}

/// An object taken apart.
struct Part<'a> {
    header: [u8; 64],
    /// By [`SECTIONS`]; without the one that is missing.
    section_headers: Vec<(usize, [u8; 64])>,
    /// The contents of the sections, by [`SECTIONS`].
    contents: Vec<&'a [u8]>,
    symbols: Vec<Symbol<'a>>,
    /// Where the code of its last function ends. What follows keeps the processor from fetching what is behind it.
    code: usize,
    /// Whether there are constants behind the descriptors, as clang's `__oclc_ABI_version`. No code refers to them: that would be a
    /// section of relocations.
    has_constants: bool,
    /// The metadata.
    metadata: Vec<(Value, Value)>,
}

struct Symbol<'a> {
    name: &'a str,
    is_local: bool,
    section: u16,
    value: u64,
    /// As it is in the file.
    entry: [u8; 24],
}

impl<'a> Part<'a> {
    fn read(bytes: &'a [u8]) -> Result<Self, ReadError> {
        let elf = Elf::parse(bytes)?;
        let (machine, kind) = (elf.header().machine, elf.header().kind);
        let has_comment = elf.sections().len() == SECTIONS.len();
        let present: Vec<usize> = (0..SECTIONS.len())
            .filter(|&slot| slot != COMMENT || has_comment)
            .collect();
        let names = present.iter().filter_map(|&slot| SECTIONS.get(slot).copied());
        if (machine, kind) != (EM_AMDGPU, ET_REL) || !elf.sections().iter().map(|section| section.name).eq(names) {
            return Err(refused("it has other sections than an object of kernels"));
        }
        let mut contents: Vec<&[u8]> = vec![&[]; SECTIONS.len()];
        for (section, &slot) in elf.sections().iter().zip(&present) {
            if let Some(place) = contents.get_mut(slot) {
                *place = elf.contents(section)?;
            }
        }
        let table = usize::try_from(file(bytes).u64(40)?).unwrap_or(usize::MAX);
        let headers = bytes
            .get(table..)
            .map_or(&[] as &[_], |table| table.as_chunks::<64>().0);
        let (entries, _) = contents
            .get(SYMTAB)
            .map_or(&[] as &[_], |table| table)
            .as_chunks::<24>();
        let mut symbols = Vec::with_capacity(entries.len());
        let (mut code, mut functions, mut descriptors) = (0, 0, 0);
        for (symbol, entry) in elf.symbols(super::elf::SHT_SYMTAB)?.iter().zip(entries.iter().skip(1)) {
            if ![TEXT as u16, RODATA as u16, SHN_ABS].contains(&symbol.section) {
                return Err(refused("a symbol is defined elsewhere"));
            }
            if symbol.section == TEXT as u16 {
                functions += 1;
                code = code.max(symbol.value.saturating_add(symbol.size));
            }
            descriptors += usize::from(symbol.section == RODATA as u16 && symbol.name.ends_with(".kd"));
            symbols.push(Symbol {
                name: symbol.name,
                is_local: symbol.is_local(),
                section: symbol.section,
                value: symbol.value,
                entry: *entry,
            });
        }
        let has_constants = contents.get(RODATA).map_or(0, |bytes| bytes.len()) > DESCRIPTOR * descriptors;
        if functions != descriptors {
            return Err(refused("it has a function that is no kernel"));
        }
        let [note] = elf.notes()?.try_into().map_err(|_| refused("it has not one note"))?;
        let metadata = match rmpv::decode::read_value(&mut &*note.contents) {
            Ok(Value::Map(entries)) if (note.owner, note.kind) == (b"AMDGPU", METADATA) => entries,
            _ => return Err(refused("its note is not metadata")),
        };
        Ok(Self {
            header: *bytes.first_chunk().ok_or_else(|| refused("it is too short"))?,
            section_headers: present.into_iter().zip(headers.iter().copied()).collect(),
            contents,
            symbols,
            code: usize::try_from(code).unwrap_or(usize::MAX),
            has_constants,
            metadata,
        })
    }

    fn contents(&self, section: usize) -> &'a [u8] {
        self.contents.get(section).copied().unwrap_or_default()
    }
}

/// What a name that begins with that of a kernel is with another.
fn renamed<'a>(name: &'a str, renaming: Renaming<'_>) -> Cow<'a, str> {
    let found = renaming.iter().find_map(|(from, to)| {
        let rest = name.strip_prefix(from)?;
        (rest.is_empty() || rest.starts_with('.')).then(|| format!("{to}{rest}"))
    });
    found.map_or(Cow::Borrowed(name), Cow::Owned)
}

/// What a section is, wherever it is and whatever its size: the section, type and flags, the section that it is linked with, alignment
/// and the size of entries.
fn kind((section, header): &(usize, [u8; 64])) -> (usize, [Option<&[u8]>; 3]) {
    (*section, [header.get(4..24), header.get(40..44), header.get(48..)])
}

/// The file of these parts.
fn write(parts: &[(&Part<'_>, Renaming<'_>)]) -> Result<Vec<u8>, ReadError> {
    let Some((first, _)) = parts.first() else {
        return Err(refused("there are none"));
    };
    let is_alike = |part: &Part<'_>| {
        let are_empty = [MAXIMUMS, STACK]
            .iter()
            .all(|section| part.contents(*section).is_empty());
        part.header.get(..40) == first.header.get(..40)
            && part.header.get(48..) == first.header.get(48..)
            && are_empty
            && part.contents(COMMENT) == first.contents(COMMENT)
            && part
                .section_headers
                .iter()
                .map(kind)
                .eq(first.section_headers.iter().map(kind))
    };
    if !parts.iter().all(|(part, _)| is_alike(part)) {
        return Err(refused("they are of different kinds"));
    }
    if parts.iter().rev().skip(1).any(|(part, _)| part.has_constants) {
        return Err(refused("constants are not those of the last object"));
    }
    let (symbols, names) = symbols(parts)?;
    let mut contents: Vec<Vec<u8>> = vec![Vec::new(); SECTIONS.len()];
    let mut slot = |section: usize, bytes: Vec<u8>| {
        if let Some(slot) = contents.get_mut(section) {
            *slot = bytes;
        }
    };
    slot(TEXT, code(parts)?);
    slot(
        RODATA,
        parts
            .iter()
            .flat_map(|(part, _)| part.contents(RODATA))
            .copied()
            .collect(),
    );
    slot(RELA, relocations(parts, &symbols)?);
    slot(COMMENT, first.contents(COMMENT).to_vec());
    slot(NOTE, note(parts)?);
    let sections = first
        .section_headers
        .iter()
        .filter_map(|(slot, _)| SECTIONS.get(*slot).copied());
    let strings = Strings::new(sections.chain(names.iter().map(|name| &**name)));
    let mut table = vec![0; 24];
    for (new, name) in symbols.in_order.iter().zip(&names) {
        table.extend_from_slice(&strings.position(name).to_le_bytes());
        table.extend_from_slice(new);
    }
    slot(SYMTAB, table);
    slot(STRTAB, strings.table.clone());

    let mut file = first.header.to_vec();
    let mut offsets = [0; SECTIONS.len()];
    for section in CONTENTS {
        let Some((_, header)) = first.section_headers.iter().find(|(slot, _)| *slot == section) else {
            continue;
        };
        let alignment = header
            .get(48..)
            .and_then(|rest| rest.first_chunk())
            .map_or(1, |field| u64::from_le_bytes(*field));
        if alignment > KERNEL_ALIGNMENT as u64 {
            return Err(refused("a section has a large alignment"));
        }
        file.resize(file.len().next_multiple_of((alignment as usize).max(1)), 0);
        if let (Some(offset), Some(bytes)) = (offsets.get_mut(section), contents.get(section)) {
            *offset = file.len() as u64;
            file.extend_from_slice(bytes);
        }
    }
    file.resize(file.len().next_multiple_of(8), 0);
    let start = file.len() as u64;
    for &(index, mut header) in &first.section_headers {
        put(
            &mut header,
            0,
            &strings
                .position(SECTIONS.get(index).copied().unwrap_or_default())
                .to_le_bytes(),
        );
        put(&mut header, 24, &offsets.get(index).copied().unwrap_or(0).to_le_bytes());
        put(
            &mut header,
            32,
            &(contents.get(index).map_or(0, Vec::len) as u64).to_le_bytes(),
        );
        if index == SYMTAB {
            put(&mut header, 44, &(symbols.locals as u32 + 1).to_le_bytes());
        }
        file.extend_from_slice(&header);
    }
    put(&mut file, 40, &start.to_le_bytes());
    Ok(file)
}

fn put(bytes: &mut [u8], offset: usize, value: &[u8]) {
    if let Some(field) = bytes.get_mut(offset..).and_then(|rest| rest.get_mut(..value.len())) {
        field.copy_from_slice(value);
    }
}

/// Where the code of each part starts, and how much there is of it: what follows the code of the last is kept.
fn places(parts: &[(&Part<'_>, Renaming<'_>)]) -> Vec<(usize, usize)> {
    let mut end = 0_usize;
    let mut places = Vec::with_capacity(parts.len());
    for (index, (part, _)) in parts.iter().enumerate() {
        let is_last = index + 1 == parts.len();
        let size = if is_last { part.contents(TEXT).len() } else { part.code };
        let start = end.next_multiple_of(KERNEL_ALIGNMENT);
        places.push((start, size));
        end = start.saturating_add(size);
    }
    places
}

fn code(parts: &[(&Part<'_>, Renaming<'_>)]) -> Result<Vec<u8>, ReadError> {
    let mut code: Vec<u8> = Vec::new();
    for ((part, _), (start, size)) in parts.iter().zip(places(parts)) {
        while code.len() < start {
            code.extend_from_slice(&NOP);
        }
        let own = part.contents(TEXT).get(..size);
        code.extend_from_slice(
            own.filter(|_| code.len() == start)
                .ok_or_else(|| refused("the size of a function"))?,
        );
    }
    Ok(code)
}

/// The symbols of the whole.
struct Symbols {
    /// All but the first, without their names: those of one part alone first.
    in_order: Vec<[u8; 20]>,
    locals: usize,
    /// For each part, the new places of its symbols, counted from 1.
    to: Vec<Vec<u64>>,
}

fn symbols<'a>(parts: &[(&'a Part<'_>, Renaming<'_>)]) -> Result<(Symbols, Vec<Cow<'a, str>>), ReadError> {
    let mut new = Symbols {
        in_order: Vec::new(),
        locals: 0,
        to: parts.iter().map(|(part, _)| vec![0; part.symbols.len()]).collect(),
    };
    let mut names = Vec::new();
    let mut known: HashSet<Cow<'a, str>> = HashSet::new();
    for of_locals in [true, false] {
        let mut constants = 0;
        for ((index, (part, renaming)), (start, _)) in parts.iter().enumerate().zip(places(parts)) {
            for (old, symbol) in part
                .symbols
                .iter()
                .enumerate()
                .filter(|(_, symbol)| symbol.is_local == of_locals)
            {
                let base = match usize::from(symbol.section) {
                    TEXT => start as u64,
                    RODATA => constants,
                    _ => 0,
                };
                let mut entry = [0; 20];
                put(&mut entry, 0, symbol.entry.get(4..).unwrap_or_default());
                put(&mut entry, 4, &symbol.value.saturating_add(base).to_le_bytes());
                let name = renamed(symbol.name, renaming);
                if !known.insert(name.clone()) {
                    return Err(refused("two have the same name"));
                }
                new.in_order.push(entry);
                names.push(name);
                if let Some(place) = new.to.get_mut(index).and_then(|to| to.get_mut(old)) {
                    *place = new.in_order.len() as u64;
                }
            }
            constants += part.contents(RODATA).len() as u64;
        }
        if of_locals {
            new.locals = new.in_order.len();
        }
    }
    Ok((new, names))
}

/// The relocations of the descriptors.
fn relocations(parts: &[(&Part<'_>, Renaming<'_>)], symbols: &Symbols) -> Result<Vec<u8>, ReadError> {
    let mut relocations = Vec::new();
    let mut base = 0_u64;
    for ((part, _), to) in parts.iter().zip(&symbols.to) {
        for entry in part.contents(RELA).as_chunks::<24>().0 {
            let entry = file(entry);
            let (offset, info) = (entry.u64(0)?, entry.u64(8)?);
            let old = usize::try_from(info >> 32).unwrap_or(usize::MAX);
            let symbol = old.checked_sub(1).and_then(|old| to.get(old));
            let symbol = symbol.ok_or_else(|| refused("a relocation has no symbol"))?;
            relocations.extend_from_slice(&offset.saturating_add(base).to_le_bytes());
            relocations.extend_from_slice(&((symbol << 32) | (info & 0xffff_ffff)).to_le_bytes());
            relocations.extend_from_slice(&entry.u64(16)?.to_le_bytes());
        }
        base += part.contents(RODATA).len() as u64;
    }
    Ok(relocations)
}

/// One note of all kernels.
fn note(parts: &[(&Part<'_>, Renaming<'_>)]) -> Result<Vec<u8>, ReadError> {
    let mut kernels: Vec<Value> = Vec::new();
    let mut rest: Option<Vec<&(Value, Value)>> = None;
    for (part, renaming) in parts {
        let (own, others): (Vec<_>, Vec<_>) = part.metadata.iter().partition(|(key, _)| key.as_str() == Some(KERNELS));
        let [(_, Value::Array(own))] = own.as_slice() else {
            return Err(refused("a note does not describe kernels"));
        };
        if *rest.get_or_insert_with(|| others.clone()) != others {
            return Err(refused("their notes differ"));
        }
        kernels.extend(own.iter().map(|kernel| called(kernel, renaming)));
    }
    let mut kernels = Value::Array(kernels);
    let first = parts.first().map_or(&[] as &[_], |(part, _)| &part.metadata);
    let entries = first.iter().map(|(key, value)| match key.as_str() {
        Some(KERNELS) => (key.clone(), std::mem::replace(&mut kernels, Value::Nil)),
        _ => (key.clone(), value.clone()),
    });
    let mut contents = Vec::new();
    rmpv::encode::write_value(&mut contents, &Value::Map(entries.collect()))
        .map_err(|error| refused(&error.to_string()))?;
    let mut note = Vec::with_capacity(contents.len() + 24);
    for field in [7, contents.len() as u32, METADATA] {
        note.extend_from_slice(&field.to_le_bytes());
    }
    note.extend_from_slice(b"AMDGPU\0\0");
    note.append(&mut contents);
    note.resize(note.len().next_multiple_of(4), 0);
    Ok(note)
}

/// The description of a kernel that is called otherwise.
fn called(kernel: &Value, renaming: Renaming<'_>) -> Value {
    let Value::Map(entries) = kernel else {
        return kernel.clone();
    };
    let entry = |(key, value): &(Value, Value)| match (key.as_str(), value.as_str()) {
        (Some(".name" | ".symbol"), Some(name)) => (key.clone(), Value::from(&*renamed(name, renaming))),
        _ => (key.clone(), value.clone()),
    };
    Value::Map(entries.iter().map(entry).collect())
}

/// A string table as LLVM writes it: what another name ends with has no place of its own.
struct Strings<'a> {
    table: Vec<u8>,
    positions: HashMap<&'a str, u32>,
}

impl<'a> Strings<'a> {
    fn new(names: impl Iterator<Item = &'a str>) -> Self {
        let mut names: Vec<&str> = names.filter(|name| !name.is_empty()).collect();
        // By their ends, the last and the longest first.
        names.sort_unstable_by(|one, other| other.bytes().rev().cmp(one.bytes().rev()));
        let mut table = vec![0];
        let mut positions = HashMap::with_capacity(names.len());
        let mut previous = "";
        for name in names {
            if !previous.ends_with(name) {
                table.extend_from_slice(name.as_bytes());
                table.push(0);
                previous = name;
            }
            positions.insert(name, (table.len() - 1 - name.len()) as u32);
        }
        Self { table, positions }
    }

    fn position(&self, name: &str) -> u32 {
        self.positions.get(name).copied().unwrap_or(0)
    }
}
