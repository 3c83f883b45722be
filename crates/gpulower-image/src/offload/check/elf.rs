//! What the check of host files needs of ELF beyond [`Elf`]: addresses and flags of sections, and what pointers in them
//! point to, in relocatable objects as in executables.

use std::collections::{BTreeMap, BTreeSet};

use super::contents::{HostContents, Part, Pointee, text_at, u64_at};
use crate::image::elf::{self, ET_REL, Elf, SHT_DYNSYM, SHT_NOBITS, SHT_SYMTAB, Section, Symbol};
use crate::{FileKind, ReadError};

const SHT_RELA: u32 = 4;
const SHF_ALLOC: u64 = 2;
const SHF_GNU_RETAIN: u64 = 1 << 21;
const RELA_SIZE: usize = 24;

/// Where relocations are, and the symbol and addend of each. The first of the key is the section in an object and 0 in
/// others, the second the offset in it or the address.
type Relocations = BTreeMap<(usize, u64), (u32, u64)>;

/// A host object, shared library or executable.
#[derive(Debug)]
pub(super) struct HostFile<'data> {
    kind: FileKind,
    elf: Elf<'data>,
    size: usize,
    /// Flags and address of each section.
    placement: Vec<(u64, u64)>,
    symbols: Vec<Symbol<'data>>,
    /// The sections whose starts are referred to.
    starts: BTreeSet<&'data str>,
    dynamic_symbols: Vec<Symbol<'data>>,
    relocations: Relocations,
    /// Address, size and number of the sections in memory, by address.
    memory: Vec<(u64, u64, usize)>,
}

impl<'data> HostFile<'data> {
    pub(super) fn parse(bytes: &'data [u8]) -> Result<Self, ReadError> {
        let elf = Elf::parse(bytes)?;
        let placement = placement(bytes, elf.sections().len());
        let mut file = Self {
            symbols: elf.symbols(SHT_SYMTAB)?,
            dynamic_symbols: elf.symbols(SHT_DYNSYM)?,
            placement,
            kind: FileKind::of(bytes),
            size: bytes.len(),
            starts: BTreeSet::new(),
            relocations: BTreeMap::new(),
            memory: Vec::new(),
            elf,
        };
        file.relocations = file.read_relocations(bytes.len())?;
        file.memory = file.memory();
        let names = file.symbols.iter().map(|symbol| symbol.name);
        file.starts = names.filter_map(|name| name.strip_prefix("__start_")).collect();
        Ok(file)
    }

    fn part<'a>(&'a self, number: usize, section: &'a Section<'data>) -> Part<'a> {
        let placement = self.placement.get(number);
        Part {
            number,
            section: section.name,
            kind: section.kind,
            contents: self.elf.contents(section).ok(),
            retained: placement.is_some_and(|(flags, _)| flags & SHF_GNU_RETAIN != 0),
        }
    }

    fn is_object(&self) -> bool {
        self.elf.header().kind == ET_REL
    }

    /// `e_machine`.
    pub(super) fn machine(&self) -> u16 {
        self.elf.header().machine
    }

    fn read_relocations(&self, file_size: usize) -> Result<Relocations, ReadError> {
        let mut relocations = BTreeMap::new();
        let mut total = 0usize;
        for section in self.elf.sections().iter().filter(|section| section.kind == SHT_RELA) {
            let target = match self.is_object() {
                true => usize::try_from(section.info).unwrap_or(usize::MAX),
                false => 0,
            };
            let contents = self.elf.contents(section)?;
            total = total.saturating_add(contents.len());
            if total > file_size {
                return Err(elf::damaged(
                    format!("section `{}`", section.name),
                    section.offset,
                    "sections with relocations overlap".to_owned(),
                ));
            }
            let (entries, _) = contents.as_chunks::<RELA_SIZE>();
            for entry in entries {
                let (offset, info, addend) = (u64_at(entry, 0), u64_at(entry, 8), u64_at(entry, 16));
                if let (Some(offset), Some(info), Some(addend)) = (offset, info, addend) {
                    let symbol = u32::try_from(info >> 32).unwrap_or_default();
                    relocations.insert((target, offset), (symbol, addend));
                }
            }
        }
        Ok(relocations)
    }

    fn memory(&self) -> Vec<(u64, u64, usize)> {
        let sections = self.elf.sections().iter().zip(&self.placement).enumerate();
        let mut memory: Vec<(u64, u64, usize)> = sections
            .filter(|(_, (section, (flags, _)))| flags & SHF_ALLOC != 0 && section.size > 0)
            .map(|(index, (section, (_, address)))| (*address, section.size, index))
            .collect();
        memory.sort_unstable();
        memory
    }

    /// The place in the file of an address.
    fn place(&self, address: u64) -> Option<Pointee<'data>> {
        let behind = self.memory.partition_point(|(start, ..)| *start <= address);
        // The section of thread-local zeros shares its addresses with what follows it.
        let candidates = self.memory.get(behind.saturating_sub(2)..behind)?;
        candidates.iter().rev().find_map(|&(start, size, index)| {
            let offset = address.checked_sub(start)?;
            (offset < size).then_some(Pointee::Place(index, offset))
        })
    }
}

impl HostContents for HostFile<'_> {
    fn kind(&self) -> FileKind {
        self.kind
    }

    fn parts(&self, wanted: &dyn Fn(&str) -> bool) -> Vec<Part<'_>> {
        let sections = self.elf.sections().iter().enumerate();
        let wanted = sections.filter(|(_, section)| wanted(section.name));
        wanted.map(|(number, section)| self.part(number, section)).collect()
    }

    fn pointee(&self, section: usize, offset: u64) -> Option<Pointee<'_>> {
        let (_, address) = *self.placement.get(section)?;
        let key = match self.is_object() {
            true => (section, offset),
            false => (0, address.checked_add(offset)?),
        };
        let Some(&(symbol, addend)) = self.relocations.get(&key) else {
            let contents = self.elf.contents(self.elf.sections().get(section)?).ok()?;
            let value = u64_at(contents, usize::try_from(offset).ok()?)?;
            return match value {
                0 => Some(Pointee::Null),
                // What an object has in place says nothing without a relocation.
                _ if self.is_object() => None,
                value => self.place(value),
            };
        };
        let table = match self.is_object() {
            true => &self.symbols,
            false => &self.dynamic_symbols,
        };
        // The null symbol is not in the table, and stands for no symbol.
        let Some(index) = usize::try_from(symbol).ok()?.checked_sub(1) else {
            return self.place(addend);
        };
        let symbol = table.get(index)?;
        if symbol.is_undefined() {
            return Some(Pointee::Elsewhere(symbol.name));
        }
        let value = symbol.value.wrapping_add(addend);
        match self.is_object() {
            true => Some(Pointee::Place(usize::from(symbol.section), value)),
            false => self.place(value),
        }
    }

    fn text(&self, pointee: Pointee<'_>) -> Option<&str> {
        let Pointee::Place(section, offset) = pointee else {
            return None;
        };
        let section = self.elf.sections().get(section)?;
        if section.kind == SHT_NOBITS {
            return None;
        }
        text_at(self.elf.contents(section).ok()?, offset)
    }

    fn refers_to_start_of(&self, section: &str) -> Option<bool> {
        (!self.symbols.is_empty()).then(|| self.starts.contains(section))
    }

    fn size(&self) -> usize {
        self.size
    }
}

/// Flags and address of each section: [`Elf`] has checked that the headers are in the file.
fn placement(bytes: &[u8], count: usize) -> Vec<(u64, u64)> {
    let start = u64_at(bytes, 40).and_then(|start| usize::try_from(start).ok());
    let size = bytes
        .get(58..60)
        .and_then(|size| size.try_into().ok())
        .map(u16::from_le_bytes);
    let (Some(start), Some(size)) = (start, size) else {
        return Vec::new();
    };
    let header = |index: usize| {
        let at = index.checked_mul(usize::from(size))?.checked_add(start)?;
        Some((u64_at(bytes, at.checked_add(8)?)?, u64_at(bytes, at.checked_add(16)?)?))
    };
    (0..count).map_while(header).collect()
}
