//! The contents of sections, with indices of the whole.

use std::borrow::Cow;

use super::CubinJoinError;
use super::lines::Moved;
use super::part::{SHT_MERCURY_SYMTAB, SHT_NOBITS, Section};
use crate::image::cubin_attributes as attributes;

type JoinResult<T> = Result<T, CubinJoinError>;

const SHT_NULL: u32 = 0;
const SHT_PROGBITS: u32 = 1;
const SHT_SYMTAB: u32 = 2;
const SHT_STRTAB: u32 = 3;
pub(super) const SHT_RELA: u32 = 4;
const SHT_NOTE: u32 = 7;
pub(super) const SHT_REL: u32 = 9;
pub(super) const SHT_INFO: u32 = 0x7000_0000;
pub(super) const SHT_CALL_GRAPH: u32 = 0x7000_0001;
const SHT_RELOCATION_ACTIONS: u32 = 0x7000_000b;
pub(super) const SHT_COMPATIBILITY: u32 = 0x7000_0086;
pub(super) const SHT_MERCURY_NOBITS: u32 = 0x7000_0015;
const SHT_MERCURY_CODE: u32 = 0x7000_0016;
pub(super) const SHT_MERCURY_RELA: u32 = 0x7000_0082;
pub(super) const SHT_MERCURY_INFO: u32 = 0x7000_0083;
pub(super) const SHT_MERCURY_CALL_GRAPH: u32 = 0x7000_008a;
const SHT_MERCURY_CONSTANTS: u32 = 0x7000_0084;
const SHT_MERCURY_USER_CONSTANTS: u32 = 0x7000_007c;
const SHT_MERCURY_ADDRESSES: u32 = 0x7000_007d;
const SHT_MERCURY_VARIABLES: u32 = 0x7000_0008;
const SHF_EXECINSTR: u64 = 4;

/// Where the reserved shared memory of Mercury code has the size of the table of section names. The section should be empty;
/// up to CUDA 13.2, `ptxas` writes what it had in memory: section headers before there was any Mercury code.
pub(super) const NAMES_SIZE: usize = 0x60;

/// What `sh_info` of a section is.
pub(super) enum Info {
    Section,
    /// The kernel's symbol, and a number of registers.
    Kernel,
    SymbolTable,
}

pub(super) fn info_of(section: &Section<'_>) -> Info {
    match section.kind {
        SHT_SYMTAB | SHT_MERCURY_SYMTAB => Info::SymbolTable,
        SHT_MERCURY_CODE => Info::Kernel,
        SHT_PROGBITS if section.flags & SHF_EXECINSTR != 0 => Info::Kernel,
        _ => Info::Section,
    }
}

/// The section whose contents are those of a section of Mercury code, too.
pub(super) fn same_as(name: &str) -> Option<&'static str> {
    match name {
        ".nv.merc.nv.constant.user" => Some(".nv.constant3"),
        ".nv.merc.nv.constant.pic" => Some(".nv.constant4"),
        ".nv.merc.nv.global.init" => Some(".nv.global.init"),
        ".nv.merc.nv_debug_ptx_txt" => Some(".nv_debug_ptx_txt"),
        _ => None,
    }
}

/// What the indices of a part are in the whole.
#[derive(Debug, Clone, Copy)]
pub(super) struct Indices<'m> {
    pub sections: &'m [usize],
    pub symbols: &'m [usize],
}

impl Indices<'_> {
    pub(super) fn section(&self, index: u32) -> Option<u32> {
        u32::try_from(*self.sections.get(index as usize)?).ok()
    }

    pub(super) fn symbol(&self, index: u32) -> Option<u32> {
        u32::try_from(*self.symbols.get(index as usize)?).ok()
    }
}

/// A section of a part.
#[derive(Debug, Clone, Copy)]
pub(super) struct Piece<'a, 'm> {
    pub part: usize,
    pub section: Section<'a>,
    pub indices: Indices<'m>,
    /// How its call frames, or what relocations change, is moved.
    pub moved: Option<&'m Moved>,
    /// Whether its kernels are all that there are.
    pub is_alone: bool,
}

impl<'a> Piece<'a, '_> {
    fn unknown(&self, what: &str) -> CubinJoinError {
        CubinJoinError::unknown(self.part, format_args!("{what} of section `{}`", self.section.name))
    }

    fn differs(&self) -> CubinJoinError {
        CubinJoinError::differs(self.part, format_args!("section `{}`", self.section.name))
    }

    fn position(&self, offset: u64) -> u64 {
        self.moved.map_or(offset, |moved| moved.position(self.part, offset))
    }

    fn symbol(&self, index: u32) -> JoinResult<u32> {
        let new = self.indices.symbol(index);
        new.ok_or_else(|| self.unknown(&format!("symbol {index}, which is in the contents")))
    }

    /// The contents with symbols of the whole. A word is what follows `position`.
    fn change_symbol(&self, contents: &mut [u8], position: usize) -> JoinResult<()> {
        let word = contents
            .get_mut(position..)
            .and_then(|rest| rest.first_chunk_mut::<4>());
        let word = word.ok_or_else(|| self.unknown("the length of a record"))?;
        *word = self.symbol(u32::from_le_bytes(*word))?.to_le_bytes();
        Ok(())
    }
}

/// The size and the contents of a section of the whole, given those of the parts: one, or several for what parts have
/// together.
pub(super) fn merge<'a>(pieces: &[Piece<'a, '_>]) -> JoinResult<(u64, Cow<'a, [u8]>)> {
    let Some(first) = pieces.first() else {
        return Ok((0, Cow::Borrowed(&[])));
    };
    let contents = match (first.section.kind, first.section.name) {
        // Nothing, or written when everything else is known.
        (SHT_NULL | SHT_SYMTAB | SHT_STRTAB | SHT_MERCURY_SYMTAB, _) => Cow::Borrowed(&[] as &[u8]),
        (SHT_INFO | SHT_MERCURY_INFO, ".nv.info" | ".nv.merc.nv.info") => Cow::Owned(module_attributes(pieces)?),
        (SHT_INFO | SHT_MERCURY_INFO, _) => Cow::Owned(kernel_attributes(only(pieces)?)?),
        (SHT_REL, _) => Cow::Owned(relocations::<16>(pieces)?),
        (SHT_RELA | SHT_MERCURY_RELA, _) => Cow::Owned(relocations::<24>(pieces)?),
        (SHT_CALL_GRAPH | SHT_MERCURY_CALL_GRAPH, _) => Cow::Owned(call_graph(pieces)?),
        (SHT_PROGBITS, ".debug_frame" | ".nv.merc.debug_frame") => Cow::Owned(call_frames(pieces)?),
        (
            SHT_PROGBITS
            | SHT_MERCURY_CONSTANTS
            | SHT_MERCURY_USER_CONSTANTS
            | SHT_MERCURY_ADDRESSES
            | SHT_MERCURY_VARIABLES,
            _,
        ) => Cow::Borrowed(only(pieces)?.section.contents),
        (SHT_MERCURY_CODE, _) => Cow::Owned(mercury_code(only(pieces)?)?),
        (SHT_COMPATIBILITY, _) => Cow::Owned(compatibility(pieces)?),
        (SHT_NOTE | SHT_RELOCATION_ACTIONS, _) => {
            equal(pieces)?;
            Cow::Borrowed(first.section.contents)
        }
        (SHT_NOBITS, _) => {
            equal(pieces)?;
            return Ok((first.section.size, Cow::Borrowed(&[])));
        }
        (SHT_MERCURY_NOBITS, _) => {
            let pieces: Vec<_> = pieces.iter().map(without_names_size).collect();
            equal(&pieces)?;
            return Ok((first.section.size, Cow::Borrowed(first.section.contents)));
        }
        (kind, _) => return Err(first.unknown(&format!("kind {kind:#x}"))),
    };
    Ok((contents.len() as u64, contents))
}

fn only<'p, 'a, 'm>(pieces: &'p [Piece<'a, 'm>]) -> JoinResult<&'p Piece<'a, 'm>> {
    match pieces {
        [piece] => Ok(piece),
        [_, piece, ..] => Err(piece.unknown("another")),
        [] => Err(CubinJoinError::new([], "there are none")),
    }
}

/// Intermediate code, the first word of which is the index of the section of the code.
fn mercury_code(piece: &Piece<'_, '_>) -> JoinResult<Vec<u8>> {
    let mut code = piece.section.contents.to_vec();
    let section = code.first_chunk_mut::<4>().ok_or_else(|| piece.unknown("the length"))?;
    let new = piece.indices.section(u32::from_le_bytes(*section));
    *section = new.ok_or_else(|| piece.unknown("the first word"))?.to_le_bytes();
    Ok(code)
}

/// Reserved shared memory of Mercury code, but for [`NAMES_SIZE`] and what follows it.
fn without_names_size<'a, 'm>(piece: &Piece<'a, 'm>) -> Piece<'a, 'm> {
    let (before, _) = piece.section.contents.split_at_checked(NAMES_SIZE).unwrap_or_default();
    Piece {
        section: Section {
            contents: before,
            ..piece.section
        },
        ..*piece
    }
}

/// What the driver must be able to do for a module.
fn compatibility(pieces: &[Piece<'_, '_>]) -> JoinResult<Vec<u8>> {
    let Some((first, rest)) = pieces.split_first() else {
        return Ok(Vec::new());
    };
    let mut merged = first.section.contents.to_vec();
    for piece in rest {
        if merged.len() != piece.section.contents.len() {
            return Err(piece.differs());
        }
        for attribute in read_attributes(piece)? {
            let position = attribute.offset as usize;
            let value = merged
                .get_mut(position..)
                .and_then(|rest| rest.get_mut(..attribute.value.len()));
            let value = value.ok_or_else(|| piece.differs())?;
            match (attribute.kind, value, attribute.value) {
                (_, value, other) if value == other => {}
                // The class of instructions that the module needs (ISA_CLASS), and whether it has those for tensor maps.
                (0x02, [class @ 1..=3, ..], [other @ 1..=3, ..]) => *class = *other.max(class),
                (0x03, [uses @ 0..=1, ..], [other @ 0..=1, ..]) => *uses |= other,
                // A bit that is set if no kernel needs more.
                (0x0b, [word, rest @ ..], [other, others @ ..]) if rest == others && (*word ^ other) == 8 => {
                    *word &= !8
                }
                _ => return Err(piece.differs()),
            }
        }
    }
    Ok(merged)
}

/// Checks that the parts have the same.
fn equal(pieces: &[Piece<'_, '_>]) -> JoinResult<()> {
    let contents = |piece: &Piece<'_, '_>| (piece.section.size, piece.section.contents.to_vec());
    let first = pieces.first().map(contents);
    match pieces.iter().find(|piece| Some(contents(piece)) != first) {
        Some(piece) => Err(piece.differs()),
        None => Ok(()),
    }
}

/// What refers to a symbol in an attribute of a kernel or of a module.
enum Reference {
    None,
    First,
    All,
}

/// Which variants of sparse matrix multiplication a kernel uses.
const SPARSE_MMA_MASK: u8 = 0x50;

/// Attributes that are known not to refer to anything but a symbol. Names are those that `cuobjdump -elf` prints.
fn reference(attribute: u8) -> Option<Reference> {
    Some(match attribute {
        // PARAM_CBANK, FRAME_SIZE, MIN_STACK_SIZE, MAX_STACK_SIZE, REGCOUNT.
        0x0a | 0x11 | 0x12 | 0x23 | 0x2f => Reference::First,
        // EXTERNS.
        0x0f => Reference::All,
        // CTAIDZ_USED, MAX_THREADS, REQNTID, KPARAM_INFO, CBANK_PARAM_SIZE, MAXREG_COUNT, EXIT_INSTR_OFFSETS,
        // S2RCTAID_INSTR_OFFSETS, CRS_STACK_SIZE.
        0x04 | 0x05 | 0x10 | 0x17 | 0x19 | 0x1b..=0x1e => Reference::None,
        // EXPLICIT_CACHING, LD_CACHEMOD_INSTR_OFFSETS, LOAD_CACHE_REQUEST, ATOM_SYS_INSTR_OFFSETS, COOP_GROUP_*,
        // SW1850030_WAR, WMMA_USED.
        0x21 | 0x25..=0x2b => Reference::None,
        // SW2393858_WAR, INT_WARP_WIDE_INSTR_OFFSETS, INDIRECT_BRANCH_TARGETS, SW2861232_WAR, SW_WAR, CUDA_API_VERSION,
        // NUM_MBARRIERS, MBARRIER_INSTR_OFFSETS.
        0x30 | 0x31 | 0x34..=0x39 => Reference::None,
        // CTA_PER_CLUSTER, EXPLICIT_CLUSTER, MAX_CLUSTER_RANK, RESERVED_SMEM_USED, RESERVED_SMEM_0_SIZE,
        // UNUSED_LOAD_BYTE_OFFSET, KPARAM_INFO_V2, SYSCALL_OFFSETS, SW_WAR_MEMBAR_SYS_INSTR_OFFSETS.
        0x3d..=0x3f | 0x41 | 0x42 | 0x44..=0x47 => Reference::None,
        // VRC_CTA_INIT_COUNT, NUM_BARRIERS, SPARSE_MMA_MASK, TCGEN05_1CTA_USED, TCGEN05_2CTA_USED, GEN_ERRBAR_AT_EXIT,
        // REG_RECONFIG, ANNOTATIONS, STACK_CANARY_TRAP_OFFSETS, LOCAL_CTA_ASYNC_STORE_OFFSETS, MERCURY_FINALIZER_OPTIONS,
        // BLOCKS_ARE_CLUSTERS, MERCURY_ISA_VERSION.
        0x4a | 0x4c | SPARSE_MMA_MASK..=0x55 | 0x57 | 0x59..=0x5b | 0x5f => Reference::None,
        // CLUSTER_LAUNCH_CONTROL_USED, MIN_PER_CTA_MEMORY_SIZE, IGNOREOOB_CP_ASYNC_BULK_INSTR_OFFSETS, LANGUAGE,
        // NVSAL_SW_WAR, PREEXIT_USED.
        0x62 | 0x64..=0x66 | 0x6b | 0x6d => Reference::None,
        _ => return None,
    })
}

/// The attributes of one kernel.
fn kernel_attributes(piece: &Piece<'_, '_>) -> JoinResult<Vec<u8>> {
    let mut contents = piece.section.contents.to_vec();
    for attribute in read_attributes(piece)? {
        let position = attribute.offset as usize;
        let references = match reference(attribute.kind) {
            Some(Reference::None) => 0,
            Some(Reference::First) => 1,
            Some(Reference::All) => attribute.value.len() / 4,
            None => return Err(piece.unknown(&format!("attribute {:#04x}", attribute.kind))),
        };
        if attribute.kind == SPARSE_MMA_MASK && !piece.is_alone {
            // "Unknown variants" is what CUDA 12.4 says of functions, in a module of one kernel only.
            if let Some(byte) = contents.get_mut(position + 1) {
                *byte &= 0x7f;
            }
        }
        for index in 0..references {
            piece.change_symbol(&mut contents, position + 4 * index)?;
        }
    }
    Ok(contents)
}

fn read_attributes<'a>(piece: &Piece<'a, '_>) -> JoinResult<Vec<attributes::Attribute<'a>>> {
    let section = &piece.section;
    attributes::read(section.name, section.contents, 0)
        .map_err(|error| CubinJoinError::new([piece.part], error.to_string()))
}

/// The attributes of the functions of a module: first kernel first, but for stack sizes at the end, which are in the order of
/// symbols.
fn module_attributes(pieces: &[Piece<'_, '_>]) -> JoinResult<Vec<u8>> {
    let mut functions = Vec::new();
    let mut stacks = Vec::new();
    for piece in pieces {
        let contents = kernel_attributes(piece)?;
        let attributes = read_attributes(piece)?;
        let is_of_function = |kind| matches!(kind, 0x11 | 0x12 | 0x23 | 0x2f);
        if attributes
            .iter()
            .any(|attribute| !is_of_function(attribute.kind) || attribute.value.len() != 8)
        {
            return Err(piece.unknown("an attribute"));
        }
        let at_end = attributes
            .iter()
            .rev()
            .take_while(|attribute| attribute.kind == attributes::MIN_STACK_SIZE)
            .count();
        // Each has four bytes before its value.
        let (before, after) = contents.split_at(contents.len().saturating_sub(12 * at_end));
        functions.push(before.to_vec());
        stacks.extend_from_slice(after);
    }
    functions.reverse();
    functions.push(stacks);
    Ok(functions.concat())
}

/// Relocations: those of what parts have together last part first, with one exception.
fn relocations<const SIZE: usize>(pieces: &[Piece<'_, '_>]) -> JoinResult<Vec<u8>> {
    let mut relocations = Vec::new();
    let mut ordered: Vec<_> = pieces.iter().collect();
    let name = pieces.first().map_or("", |piece| piece.section.name);
    if !matches!(name, ".rela.debug_line" | ".rela.nv_debug_line_sass") {
        ordered.reverse();
    }
    for piece in ordered {
        let (entries, rest) = piece.section.contents.as_chunks::<SIZE>();
        if !rest.is_empty() {
            return Err(piece.unknown("the size"));
        }
        for entry in entries {
            let mut entry = *entry;
            if let Some(offset) = entry.first_chunk_mut::<8>() {
                *offset = piece.position(u64::from_le_bytes(*offset)).to_le_bytes();
            }
            // The lower half of the second word is the type.
            piece.change_symbol(&mut entry, 12)?;
            relocations.extend_from_slice(&entry);
        }
    }
    Ok(relocations)
}

/// Pairs of symbols, caller first, in groups that start with a pair of 0 and a negative number.
fn call_graph(pieces: &[Piece<'_, '_>]) -> JoinResult<Vec<u8>> {
    let mut groups: Vec<([u8; 8], Vec<u8>)> = Vec::new();
    for piece in pieces {
        let (pairs, rest) = piece.section.contents.as_chunks::<8>();
        if !rest.is_empty() {
            return Err(piece.unknown("the size"));
        }
        let mut group: Option<usize> = None;
        for pair in pairs {
            if let [0, 0, 0, 0, _, 0xff, 0xff, 0xff] = pair {
                let next = group.map_or(0, |group| group + 1);
                if groups.len() == next {
                    groups.push((*pair, Vec::new()));
                }
                if groups.get(next).is_none_or(|(start, _)| start != pair) {
                    return Err(piece.unknown("the groups"));
                }
                group = Some(next);
                continue;
            }
            let mut pair = *pair;
            piece.change_symbol(&mut pair, 0)?;
            piece.change_symbol(&mut pair, 4)?;
            let members = group.and_then(|group| groups.get_mut(group));
            members
                .ok_or_else(|| piece.unknown("the groups"))?
                .1
                .extend_from_slice(&pair);
        }
        if group.map_or(0, |group| group + 1) != groups.len() {
            return Err(piece.unknown("the groups"));
        }
    }
    Ok(groups
        .into_iter()
        .flat_map(|(start, members)| [start.to_vec(), members].concat())
        .collect())
}

/// Call frames (DWARF 64): those of a function name the position of what they have in common with others.
fn call_frames(pieces: &[Piece<'_, '_>]) -> JoinResult<Vec<u8>> {
    let mut all = Vec::new();
    for piece in pieces {
        for (_, record) in frames(piece.section.contents).map_err(|what| piece.unknown(what))? {
            let begin = all.len() + FRAME_COMMON;
            all.extend_from_slice(record);
            if let Some(common) = common_of(record)
                && let Some(place) = all.get_mut(begin..).and_then(|rest| rest.first_chunk_mut())
            {
                *place = piece.position(common).to_le_bytes();
            }
        }
    }
    Ok(all)
}

/// Where a record of call frames has the position of what it has in common with others: after a mark and its length.
const FRAME_COMMON: usize = 12;

/// The records of call frames, with their positions; or what of them is not known.
pub(super) fn frames(contents: &[u8]) -> Result<Vec<(usize, &[u8])>, &'static str> {
    const LENGTH: &str = "the length of a record";
    let mut records = Vec::new();
    let mut position = 0usize;
    while let Some(rest) = contents.get(position..).filter(|rest| !rest.is_empty()) {
        let Some([0xff, 0xff, 0xff, 0xff, length @ .., _, _, _, _, _, _, _, _]) = rest.first_chunk::<20>() else {
            return Err("a record");
        };
        let length = usize::try_from(u64::from_le_bytes(*length)).ok();
        let length = length
            .and_then(|length| length.checked_add(FRAME_COMMON))
            .ok_or(LENGTH)?;
        records.push((position, rest.get(..length).ok_or(LENGTH)?));
        position += length;
    }
    Ok(records)
}

/// The position of what a record of call frames has in common with others, unless it is that itself.
pub(super) fn common_of(record: &[u8]) -> Option<u64> {
    let common = record.get(FRAME_COMMON..)?.first_chunk()?;
    (*common != [0xff; 8]).then_some(u64::from_le_bytes(*common))
}
