//! The other direction: of a cubin of several kernels, the cubin that `ptxas` would have written of each alone.
//!
//! A cubin does not say everything about its kernels: of some things that a module has once it cannot be told which kernel needs
//! them. Then it is refused.

use std::collections::HashMap;
use std::fmt::Display;

use super::CubinJoinError;
use super::contents::{self, SHT_CALL_GRAPH, SHT_COMPATIBILITY, SHT_INFO, SHT_MERCURY_CALL_GRAPH, SHT_MERCURY_INFO};
use super::contents::{SHT_MERCURY_RELA, SHT_REL, SHT_RELA};
use super::lines::Moved;
use super::names::{self, DEAD};
use super::order::{Item, Order};
use super::part::{Part, Section, Symbol, Text};
use super::whole::Merger;
use super::write;
use crate::image::cubin_attributes as attributes;

type SplitResult<T> = Result<T, CubinJoinError>;

/// Entered with the reserved shared memory by a kernel that computes addresses in shared memory. For some chips its name is dropped.
const CAP: &str = ".nv.reservedSmem.cap";
/// What is entered of a kernel before what reserves shared memory for the module.
const FIRST_OF_KERNEL: [&str; 3] = [".text.", ".nv.info.", ".nv.shared."];
const FRAMES: [&str; 2] = [".debug_frame", ".nv.merc.debug_frame"];

/// Which kernel something belongs to, by its number; `None` for what the module has once.
type Owner = Option<usize>;

/// A cubin, and what of it belongs to which kernel.
pub(super) struct Split<'p, 'a> {
    part: &'p Part<'a>,
    /// The kernels, in the order in which `ptxas` compiles them.
    pub(super) kernels: Vec<&'a str>,
    section_names: Vec<Owner>,
    names: Vec<Owner>,
    sections: Vec<Owner>,
    symbols: Vec<Owner>,
    mercury_symbols: Vec<Owner>,
}

fn unknown(what: impl Display) -> CubinJoinError {
    CubinJoinError::new([0], format!("it is not known to which kernel {what} belongs"))
}

impl<'p, 'a> Split<'p, 'a> {
    pub(super) fn new(part: &'p Part<'a>) -> SplitResult<Self> {
        check_what_is_shared(part)?;
        let kernels: Vec<&'a str> = part.kernels().collect();
        if let Some(kernel) = kernels.iter().find(|kernel| names::internal_number(kernel).is_some()) {
            return Err(unknown(format_args!("`{kernel}`")));
        }
        let numbers: HashMap<&str, usize> = kernels.iter().copied().zip(0..).collect();
        // A name of PTX has no dots.
        let owner = |name: &str| match numbers.get(name.rsplit('.').next().unwrap_or(name)) {
            _ if names::is_shared(name) => Ok(None),
            Some(number) => Ok(Some(*number)),
            None => Err(unknown(format_args!("`{}`", name.escape_debug()))),
        };
        let sections: SplitResult<Vec<Owner>> = part.sections.iter().map(|section| owner(section.name)).collect();
        let sections = sections?;
        // Functions have names of their own, and are in sections of kernels.
        let of_symbol = |symbol: &Symbol<'_>| match sections.get(usize::from(symbol.section)) {
            Some(Some(number)) => Ok(Some(*number)),
            _ => owner(symbol.name),
        };
        let of_symbols = |symbols: &[Symbol<'_>]| symbols.iter().map(of_symbol).collect::<SplitResult<Vec<_>>>();
        let symbols = of_symbols(&part.symbols)?;
        let named: HashMap<&str, Owner> = part
            .symbols
            .iter()
            .zip(&symbols)
            .map(|(symbol, owner)| (symbol.name, *owner))
            .collect();
        let of_texts = |texts: &[Text<'_>]| -> SplitResult<Vec<Owner>> {
            let of_text =
                |text: &Text<'_>| owner(text.name).or_else(|error| named.get(text.name).copied().ok_or(error));
            texts.iter().map(of_text).collect()
        };
        Ok(Self {
            section_names: of_texts(&part.section_names)?,
            names: of_texts(&part.names)?,
            mercury_symbols: of_symbols(&part.mercury_symbols)?,
            part,
            kernels,
            sections,
            symbols,
        })
    }

    /// The cubin of kernel `number` alone, called `name`.
    pub(super) fn kernel(&self, number: usize, name: &str) -> SplitResult<Vec<u8>> {
        let contents: Vec<Option<(Vec<u8>, Moved)>> = self
            .part
            .sections
            .iter()
            .map(|section| self.contents(number, section))
            .collect::<SplitResult<_>>()?;
        let sections = self.part.sections.iter().zip(&contents);
        let sections = sections.map(|(section, contents)| match contents {
            Some((contents, _)) => Section { contents, ..*section },
            None => *section,
        });
        let part = Part {
            sections: sections.collect(),
            ..self.part.clone()
        };
        let frames = FRAMES.into_iter().zip(&[false, true]).filter_map(|(name, is_mercury)| {
            let index = self.part.sections.iter().position(|section| section.name == name)?;
            let (_, moved) = contents.get(index)?.as_ref()?;
            Some((*is_mercury, FRAMES[0], moved.clone()))
        });
        let has_addresses = self.has_shared_addresses(number);
        let order = |owners: &[Owner], items: &[Item], names: Vec<&str>| {
            let is_there = |name: &str| has_addresses || !matches!(name, CAP | DEAD);
            order(number, owners, items, &names, is_there)
        };
        let Part {
            section_names,
            names,
            symbols,
            mercury_symbols,
            ..
        } = self.part;

        let texts = |texts: &[Text<'a>]| texts.iter().map(|text| text.name).collect();
        let named = |symbols: &[Symbol<'a>]| symbols.iter().map(|symbol| symbol.name).collect();
        let sections = self.part.sections.iter().map(|section| section.name).collect();
        let items = &part.items;
        let orders = [
            order(&self.section_names, &items.section_names, texts(section_names)),
            order(&self.names, &items.names, texts(names)),
            order(&self.sections, &items.sections, sections),
            order(&self.symbols, &items.symbols, named(symbols)),
            order(&self.mercury_symbols, &items.mercury_symbols, named(mercury_symbols)),
        ];
        let parts = [&part];
        let renaming = [(self.kernels.get(number).copied().unwrap_or_default(), name)];
        let renamings = [renaming.as_slice()];
        let whole = Merger::of_one(
            &parts,
            &renamings,
            self.first_internal(number),
            frames.collect(),
            orders,
        )
        .merge()?;
        write::write(&whole)
    }

    /// The number of the kernel's first function that has a number.
    fn first_internal(&self, number: usize) -> usize {
        let symbols = self.part.symbols.iter().zip(&self.symbols);
        let own = symbols.filter(|(_, owner)| **owner == Some(number));
        let numbers = own.filter_map(|(symbol, _)| Some(names::internal_number(symbol.name)?.0));
        numbers.min().unwrap_or_default()
    }

    /// Whether the kernel computes addresses in shared memory, as far as that makes a difference: from sm_90 on, its code asks for the
    /// block's number in its cluster then. (No other sign was found in a hundred kernels; one that only declares shared memory does not.)
    fn has_shared_addresses(&self, number: usize) -> bool {
        /// Operations that read a special register, and the register's number.
        const READS: [u16; 2] = [0x919, 0x9c3];
        const NUMBER_IN_CLUSTER: u8 = 0x88;
        let own = |start: &str| {
            let mut sections = self.part.sections.iter().zip(&self.sections);
            sections.find(|(section, owner)| **owner == Some(number) && section.name.starts_with(start))
        };
        let (Some((code, _)), Some(_)) = (own(".text."), own(".nv.shared.")) else {
            return false;
        };
        code.contents
            .as_chunks::<16>()
            .0
            .iter()
            .any(|[low, high, _, _, _, _, _, _, _, register, ..]| {
                READS.contains(&(u16::from_le_bytes([*low, *high]) & 0xfff)) && *register == NUMBER_IN_CLUSTER
            })
    }

    /// What stays of the contents of a section that the module has once, and how far that is moved. `None` if all of it stays.
    fn contents(&self, number: usize, section: &Section<'_>) -> SplitResult<Option<(Vec<u8>, Moved)>> {
        if !names::is_shared(section.name) {
            return Ok(None);
        }
        let kept: Vec<(usize, &[u8])> = match section.kind {
            SHT_INFO | SHT_MERCURY_INFO => self.attributes(number, section)?,
            SHT_REL => self.records::<16>(number, section, 12)?,
            SHT_RELA | SHT_MERCURY_RELA => self.records::<24>(number, section, 12)?,
            SHT_CALL_GRAPH | SHT_MERCURY_CALL_GRAPH => self.records::<8>(number, section, 0)?,
            _ if FRAMES.contains(&section.name) => self.frames(number, section)?,
            _ => return Ok(None),
        };
        let mut contents = Vec::new();
        let mut moves = Vec::new();
        for (position, record) in kept {
            moves.push((position as u64, (contents.len() as u64).wrapping_sub(position as u64)));
            contents.extend_from_slice(record);
        }
        Ok(Some((contents, Moved::of_one(moves))))
    }

    /// Whether the symbol whose index is at `position` of a record is the kernel's.
    fn owns(&self, number: usize, section: &Section<'_>, record: &[u8], position: usize) -> SplitResult<bool> {
        let linked = self.part.sections.get(section.link as usize);
        let owners = match linked.is_some_and(|table| table.name == ".nv.merc.symtab") {
            true => &self.mercury_symbols,
            false => &self.symbols,
        };
        let index = record.get(position..).and_then(|rest| rest.first_chunk::<4>());
        match index.and_then(|index| owners.get(u32::from_le_bytes(*index) as usize)) {
            Some(Some(owner)) => Ok(*owner == number),
            _ => Err(unknown(format_args!("something in section `{}`", section.name))),
        }
    }

    fn attributes<'s>(&self, number: usize, section: &Section<'s>) -> SplitResult<Vec<(usize, &'s [u8])>> {
        let mut kept = Vec::new();
        let mut position = 0;
        for attribute in read_attributes(section)? {
            // Each has four bytes before its value.
            let end = attribute.offset as usize + attribute.value.len();
            if self.owns(number, section, attribute.value, 0)? {
                kept.push((position, section.contents.get(position..end).unwrap_or_default()));
            }
            position = end;
        }
        Ok(kept)
    }

    /// Records of one size, with the index of a symbol at `position`, and those of call graphs that separate others.
    fn records<'s, const SIZE: usize>(
        &self,
        number: usize,
        section: &Section<'s>,
        position: usize,
    ) -> SplitResult<Vec<(usize, &'s [u8])>> {
        let mut kept = Vec::new();
        let (records, _) = section.contents.as_chunks::<SIZE>();
        for (index, record) in records.iter().enumerate() {
            let separates = matches!(record.as_slice(), [0, 0, 0, 0, _, 0xff, 0xff, 0xff]);
            if separates || self.owns(number, section, record, position)? {
                kept.push((index * SIZE, record.as_slice()));
            }
        }
        Ok(kept)
    }

    /// Call frames (DWARF 64): a relocation says which function one is of, and it says what it has in common with others, which
    /// is there for each function.
    fn frames<'s>(&self, number: usize, section: &Section<'s>) -> SplitResult<Vec<(usize, &'s [u8])>> {
        let index = self.part.sections.iter().position(|other| other.name == section.name);
        let mut relocations = self.part.sections.iter().filter(|relocations| {
            Some(relocations.info as usize) == index
                && matches!(relocations.kind, SHT_REL | SHT_RELA | SHT_MERCURY_RELA)
                && names::is_shared(relocations.name)
        });
        let (Some(relocations), None) = (relocations.next(), relocations.next()) else {
            return Err(unknown("a call frame"));
        };
        let own = match relocations.kind {
            SHT_REL => self.records::<16>(number, relocations, 12)?,
            _ => self.records::<24>(number, relocations, 12)?,
        };
        let own: Vec<u64> = own
            .iter()
            .filter_map(|(_, record)| record.first_chunk().map(|offset| u64::from_le_bytes(*offset)))
            .collect();
        let mut records = contents::frames(section.contents).map_err(unknown)?;
        let is_own = |begin: usize, record: &[u8]| {
            own.iter()
                .any(|offset| (begin as u64..(begin + record.len()) as u64).contains(offset))
        };
        let mut common: Vec<u64> = Vec::new();
        for (begin, record) in &records {
            if is_own(*begin, record) {
                common.extend(contents::common_of(record));
            }
        }
        records.retain(|(begin, record)| is_own(*begin, record) || common.contains(&(*begin as u64)));
        Ok(records)
    }
}

/// Which items stay with kernel `number`. What reserves shared memory was entered with the first kernel, after the first names of that.
fn order(number: usize, owners: &[Owner], items: &[Item], names: &[&str], is_there: impl Fn(&str) -> bool) -> Order {
    let is_first = |name: &str| FIRST_OF_KERNEL.iter().any(|start| name.starts_with(start));
    let all: Vec<_> = (0..).zip(items).zip(names.iter().zip(owners)).collect();
    let mut from = Vec::new();
    for phase in all.chunk_by(|((_, one), _), ((_, other), _)| one.phase == other.phase) {
        let shared = |reserves: bool| {
            let shared = phase.iter().filter(|(_, (_, owner))| owner.is_none());
            let shared = shared.filter(|(_, (name, _))| is_there(name));
            shared.filter(move |(_, (name, _))| names::reserves_memory(name) == reserves)
        };
        let own = |first: bool| {
            let own = phase.iter().filter(|(_, (_, owner))| **owner == Some(number));
            own.filter(move |(_, (name, _))| is_first(name) == first)
        };
        let kept = shared(false).chain(own(true)).chain(shared(true)).chain(own(false));
        from.extend(kept.map(|((index, _), _)| vec![(0, *index)]));
    }
    let mut to = vec![usize::MAX; items.len()];
    for (new, (_, old)) in from.iter().flatten().enumerate() {
        if let Some(position) = to.get_mut::<usize>(*old) {
            *position = new;
        }
    }
    Order { from, to: vec![to] }
}

fn read_attributes<'a>(section: &Section<'a>) -> SplitResult<Vec<attributes::Attribute<'a>>> {
    attributes::read(section.name, section.contents, 0).map_err(|error| CubinJoinError::new([0], error.to_string()))
}

/// Checks that the kernels need the same of what is merged. What is merged has the most that any of them needs
/// ([`contents::merge`]), so that the least says what each needs.
fn check_what_is_shared(part: &Part<'_>) -> SplitResult<()> {
    for section in &part.sections {
        if names::is_data(section.name) {
            return Err(unknown(format_args!("section `{}`", section.name)));
        }
        if section.kind != SHT_COMPATIBILITY {
            continue;
        }
        for attribute in read_attributes(section)? {
            let is_ambiguous = match (attribute.kind, attribute.value) {
                (0x02, [class, ..]) => *class > 1,
                (0x03, [uses, ..]) => *uses > 0,
                // Chips other than sm_100 have neither bit.
                (0x0b, [word, ..]) => word & 9 == 1,
                _ => false,
            };
            if is_ambiguous {
                return Err(unknown(format_args!(
                    "attribute {:#04x} of section `{}`",
                    attribute.kind, section.name
                )));
            }
        }
    }
    Ok(())
}
