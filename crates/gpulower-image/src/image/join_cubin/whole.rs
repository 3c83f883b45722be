//! The parts put together: one order of names, sections and symbols, and every index changed to it.

use std::borrow::Cow;
use std::collections::HashMap;

use super::contents::{self, Indices};
use super::lines::{self, Moved};
use super::names;
use super::order::{Item, Order};
use super::part::{Head, Items, Part, Section, Symbol, Text};
use super::{CubinJoinError, Renaming};

type JoinResult<T> = Result<T, CubinJoinError>;

/// A cubin that is ready to be written.
#[derive(Debug)]
pub(super) struct Whole<'a> {
    pub head: Head,
    pub section_names: Vec<(Cow<'a, str>, usize)>,
    pub names: Vec<(Cow<'a, str>, usize)>,
    pub sections: Vec<NewSection<'a>>,
    pub symbols: Vec<NewSymbol<'a>>,
    pub mercury_symbols: Vec<NewSymbol<'a>>,
}

#[derive(Debug)]
pub(super) struct NewSection<'a> {
    pub name: Cow<'a, str>,
    pub contents: Cow<'a, [u8]>,
    /// The rest, with new indices.
    pub header: Section<'a>,
}

#[derive(Debug)]
pub(super) struct NewSymbol<'a> {
    pub name: Cow<'a, str>,
    /// The rest, with a new section index.
    pub symbol: Symbol<'a>,
}

/// The parts, in the order in which `ptxas` compiles kernels.
pub(super) struct Merger<'p, 'a> {
    parts: &'p [&'p Part<'a>],
    renamings: &'p [Renaming<'a>],
    /// What is added to the numbers of the functions of each part: how many of them the parts before have.
    numbers: Vec<usize>,
    /// The sections of which parts have pieces.
    moved: Vec<(bool, &'static str, Moved)>,
    section_names: Order,
    names: Order,
    sections: Order,
    symbols: Order,
    mercury_symbols: Order,
}

impl<'p, 'a> Merger<'p, 'a> {
    pub(super) fn new(parts: &'p [&'p Part<'a>], renamings: &'p [Renaming<'a>]) -> JoinResult<Self> {
        let unordered =
            |what: &'static str| move |part| CubinJoinError::unknown(part, format_args!("the order of its {what}"));
        let mut numbers = Vec::with_capacity(parts.len());
        let mut total = 0usize;
        for (index, part) in parts.iter().enumerate() {
            numbers.push(total);
            total += internal_functions(part, index)?;
        }
        let order = |items: fn(&Items) -> &[Item], what| {
            let items: Vec<&[Item]> = parts.iter().map(|part| items(&part.items)).collect();
            Order::new(&items).map_err(unordered(what))
        };
        let symbols = order(|items| &items.symbols, "symbols")?;
        let mercury_symbols = order(|items| &items.mercury_symbols, "Mercury symbols")?;
        Ok(Self {
            parts,
            renamings,
            numbers,
            moved: moved(parts)?,
            section_names: order(|items| &items.section_names, "names")?,
            names: order(|items| &items.names, "names")?,
            sections: order(|items| &items.sections, "sections")?,
            symbols,
            mercury_symbols,
        })
    }

    /// Some of one part, whose functions have numbers from `first_number` on: the orders of the names of sections, of names, sections,
    /// symbols and Mercury symbols that stay.
    pub(super) fn of_one(
        parts: &'p [&'p Part<'a>; 1],
        renamings: &'p [Renaming<'a>],
        first_number: usize,
        moved: Vec<(bool, &'static str, Moved)>,
        [section_names, names, sections, symbols, mercury_symbols]: [Order; 5],
    ) -> Self {
        Self {
            parts,
            renamings,
            numbers: vec![first_number.wrapping_neg()],
            moved,
            section_names,
            names,
            sections,
            symbols,
            mercury_symbols,
        }
    }

    pub(super) fn merge(&self) -> JoinResult<Whole<'a>> {
        let first = self
            .parts
            .first()
            .ok_or_else(|| CubinJoinError::new([], "there are none"))?;
        if let Some(part) = self.parts.iter().position(|part| part.head != first.head) {
            return Err(CubinJoinError::differs(part, "ELF header"));
        }
        let sections = self.merge_sections()?;
        Ok(Whole {
            head: first.head,
            section_names: self.merge_section_names(&sections)?,
            names: self.merge_texts(&self.names, |part| &part.names)?,
            symbols: self.merge_symbols(&self.symbols, |part| &part.symbols)?,
            mercury_symbols: self.merge_symbols(&self.mercury_symbols, |part| &part.mercury_symbols)?,
            sections,
        })
    }

    /// What a name of a part is in the whole.
    fn name(&self, part: usize, name: &'a str) -> Cow<'a, str> {
        if names::is_shared(name) {
            return Cow::Borrowed(name);
        }
        if let Some((number, rest)) = names::internal_number(name) {
            let before = self.numbers.get(part).copied().unwrap_or(0);
            return Cow::Owned(format!("$__internal_{}_{rest}", before.wrapping_add(number)));
        }
        let renaming = self.renamings.get(part).copied().unwrap_or(&[]);
        let renamed = renaming.iter().find_map(|(from, to)| names::rename(name, from, to));
        renamed.map_or(Cow::Borrowed(name), Cow::Owned)
    }

    fn merge_section_names(&self, sections: &[NewSection<'a>]) -> JoinResult<Vec<(Cow<'a, str>, usize)>> {
        let is_compact = self.parts.first().is_some_and(|part| part.head.layout.compact);
        if !is_compact {
            return self.merge_texts(&self.section_names, |part| &part.section_names);
        }
        let zeros = |part: &&Part<'_>| part.section_names.last().map_or(0, |text| text.zeros);
        let after = self.parts.first().map_or(0, zeros);
        if let Some(part) = self.parts.iter().position(|part| zeros(part) != after) {
            return Err(CubinJoinError::differs(part, "room after the names of sections"));
        }
        let mut texts: Vec<_> = sections.iter().map(|section| (section.name.clone(), 0)).collect();
        if let Some((_, zeros)) = texts.last_mut() {
            *zeros = after;
        }
        Ok(texts)
    }

    fn merge_texts(
        &self,
        order: &Order,
        table: fn(&'p Part<'a>) -> &'p [Text<'a>],
    ) -> JoinResult<Vec<(Cow<'a, str>, usize)>> {
        let tables: Vec<&[Text<'a>]> = self.parts.iter().map(|part| table(part)).collect();
        let mut texts = Vec::with_capacity(order.from.len());
        for sources in &order.from {
            let mut sources = sources
                .iter()
                .filter_map(|&(part, text)| Some((part, tables.get(part)?.get(text)?)));
            let Some((part, text)) = sources.next() else { continue };
            if let Some((other, _)) = sources.find(|(_, other)| other.zeros != text.zeros) {
                return Err(CubinJoinError::differs(other, "zeros after a name"));
            }
            texts.push((self.name(part, text.name), text.zeros));
        }
        Ok(texts)
    }

    fn merge_symbols(
        &self,
        order: &Order,
        table: fn(&'p Part<'a>) -> &'p [Symbol<'a>],
    ) -> JoinResult<Vec<NewSymbol<'a>>> {
        let mut symbols = Vec::with_capacity(order.from.len());
        let mut definitions: HashMap<Cow<'a, str>, usize> = HashMap::new();
        for sources in &order.from {
            let mut merged: Option<NewSymbol<'a>> = None;
            for &(part, index) in sources {
                let Some(&symbol) = self.parts.get(part).and_then(|part| table(part).get(index)) else {
                    continue;
                };
                let symbol = Symbol {
                    section: self.new_section_index(part, symbol.section)?,
                    ..symbol
                };
                match &merged {
                    Some(first) if first.symbol != symbol => {
                        return Err(CubinJoinError::differs(part, format_args!("symbol `{}`", symbol.name)));
                    }
                    Some(_) => {}
                    None => {
                        let name = self.name(part, symbol.name);
                        merged = Some(NewSymbol { name, symbol });
                    }
                }
            }
            let (Some(merged), Some(&(part, _))) = (merged, sources.first()) else {
                continue;
            };
            if let Some(first) = definitions.insert(merged.name.clone(), part) {
                return Err(CubinJoinError::twice(first, part, &merged.name));
            }
            symbols.push(merged);
        }
        Ok(symbols)
    }

    fn new_section_index(&self, part: usize, section: u16) -> JoinResult<u16> {
        let new = self.sections.to.get(part).and_then(|to| to.get(usize::from(section)));
        new.and_then(|&new| u16::try_from(new).ok())
            .ok_or_else(|| CubinJoinError::unknown(part, format_args!("section {section}, to which a symbol belongs")))
    }

    fn merge_sections(&self) -> JoinResult<Vec<NewSection<'a>>> {
        let mut sections: Vec<NewSection<'a>> = Vec::with_capacity(self.sections.from.len());
        for sources in &self.sections.from {
            let mut headers = Vec::with_capacity(sources.len());
            for &(part, index) in sources {
                let Some(section) = self.parts.get(part).and_then(|part| part.sections.get(index)) else {
                    continue;
                };
                headers.push((part, self.new_header(part, section)?));
            }
            let Some(&(part, header)) = headers.first() else {
                continue;
            };
            let (size, contents) = self.merge_contents(&headers)?;
            let name = self.name(part, header.name);
            sections.push(NewSection {
                name,
                contents,
                header: Section { size, ..header },
            });
        }
        Ok(sections)
    }

    /// The header of a section with new indices.
    fn new_header(&self, part: usize, section: &Section<'a>) -> JoinResult<Section<'a>> {
        let indices = self.indices(part, section);
        let unknown = |what: &str| CubinJoinError::unknown(part, format_args!("{what} of section `{}`", section.name));
        let link = indices.section(section.link).ok_or_else(|| unknown("the link"))?;
        let info = match contents::info_of(section) {
            contents::Info::Section => indices.section(section.info),
            contents::Info::Kernel => indices
                .symbol(section.info & 0xff_ffff)
                .filter(|&index| index <= 0xff_ffff),
            contents::Info::SymbolTable => Some(0),
        };
        let mut info = info.ok_or_else(|| unknown("the information"))?;
        if matches!(contents::info_of(section), contents::Info::Kernel) {
            // The upper bits are a number of registers.
            info |= section.info & !0xff_ffff;
        }
        Ok(Section { link, info, ..*section })
    }

    /// What the indices of `section` mean in the whole.
    fn indices(&self, part: usize, section: &Section<'_>) -> Indices<'_> {
        let linked = self
            .parts
            .get(part)
            .and_then(|part| part.sections.get(section.link as usize));
        let is_mercury = linked.is_some_and(|table| table.name == ".nv.merc.symtab");
        let symbols = if is_mercury {
            &self.mercury_symbols
        } else {
            &self.symbols
        };
        Indices {
            sections: self.sections.to.get(part).map_or(&[], Vec::as_slice),
            symbols: symbols.to.get(part).map_or(&[], Vec::as_slice),
        }
    }

    /// The size and the contents of a section, given what it is in each part.
    fn merge_contents(&self, sources: &[(usize, Section<'a>)]) -> JoinResult<(u64, Cow<'a, [u8]>)> {
        let mut pieces = Vec::with_capacity(sources.len());
        let mut first: Option<Section<'a>> = None;
        for &(part, section) in sources {
            let old = self
                .parts
                .get(part)
                .and_then(|part| part.sections.iter().find(|old| old.name == section.name));
            let Some(old) = old else { continue };
            if first.is_some_and(|first| !has_same_header(&first, &section)) {
                return Err(CubinJoinError::differs(
                    part,
                    format_args!("header of section `{}`", section.name),
                ));
            }
            first = first.or(Some(section));
            pieces.push(contents::Piece {
                part,
                section: *old,
                indices: self.indices(part, old),
                moved: self.moved(old),
                is_alone: self.parts.len() == 1,
            });
        }
        let merged = first
            .and_then(|section| self.moved(&section))
            .map(|moved| &moved.contents);
        match merged.filter(|contents| !contents.is_empty() && first.is_some_and(|first| first.kind == 1)) {
            Some(contents) => Ok((contents.len() as u64, Cow::Owned(contents.clone()))),
            None => contents::merge(&pieces),
        }
    }

    /// Where what `section` has, or changes, is.
    fn moved(&self, section: &Section<'_>) -> Option<&Moved> {
        let name = section.name;
        let changed = [".rela", ".rel", ".nv.merc.rela"]
            .iter()
            .find_map(|start| name.strip_prefix(start));
        let is_mercury = name.starts_with(".nv.merc");
        let changed = changed.unwrap_or(if is_mercury {
            name.trim_start_matches(".nv.merc")
        } else {
            name
        });
        let mut moved = self.moved.iter();
        let found = moved.find(|(of_mercury, name, _)| *of_mercury == is_mercury && *name == changed);
        found.map(|(_, _, moved)| moved)
    }
}

/// The sections of which parts have pieces, by whether they belong to Mercury code, and by their names in other code.
fn moved(parts: &[&Part<'_>]) -> JoinResult<Vec<(bool, &'static str, Moved)>> {
    let mut all = Vec::new();
    let texts = lines::texts(parts);
    let unmoved = vec![0; parts.len()];
    for (name, is_mercury) in [(".debug_frame", false), (".nv.merc.debug_frame", true)] {
        all.push((is_mercury, ".debug_frame", lines::frames(parts, name)));
    }
    for (name, is_mercury) in [(".debug_line", false), (".nv.merc.debug_line", true)] {
        if let Some(table) = lines::table(parts, name, &unmoved)? {
            all.push((is_mercury, ".debug_line", table));
        }
    }
    for (name, is_mercury) in [(".nv_debug_line_sass", false), (".nv.merc.nv_debug_line_sass", true)] {
        let by = texts.as_ref().map_or(&unmoved, |(_, by)| by);
        if let Some(table) = lines::table(parts, name, by)? {
            all.push((is_mercury, ".nv_debug_line_sass", table));
        }
    }
    if let Some((text, _)) = texts {
        let text = || Moved::new(text.clone());
        all.push((false, ".nv_debug_ptx_txt", text()));
        all.push((true, ".nv_debug_ptx_txt", text()));
    }
    Ok(all)
}

fn has_same_header(one: &Section<'_>, other: &Section<'_>) -> bool {
    let fields = |section: &Section<'_>| {
        let (link, info) = (section.link, section.info);
        (
            section.kind,
            section.flags,
            section.address,
            link,
            info,
            section.alignment,
            section.entry_size,
        )
    };
    fields(one) == fields(other)
}

/// How many functions of a part are numbered. The numbers start at 0 and are without holes.
fn internal_functions(part: &Part<'_>, index: usize) -> JoinResult<usize> {
    let mut numbers: Vec<usize> = part
        .names
        .iter()
        .filter_map(|text| names::internal_number(text.name))
        .map(|(number, _)| number)
        .collect();
    numbers.sort_unstable();
    numbers.dedup();
    match numbers.last() {
        Some(&last) if last != numbers.len() - 1 => {
            Err(CubinJoinError::unknown(index, "the numbers of its internal functions"))
        }
        _ => Ok(numbers.len()),
    }
}
