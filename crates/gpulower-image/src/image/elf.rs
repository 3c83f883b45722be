//! A bounds-checked reader of 64-bit little-endian ELF files: sections, segments, symbols and notes.
//!
//! It reads relocatable objects and shared objects alike and copies nothing: names and contents are
//! slices of the file. Every read is checked against the file's size, and an error names the offset at
//! which the file stops making sense. What it allocates is proportional to the size of the file.
//!
//! Constants are from the System V ABI, chapters "Object Files" and "Program Loading", and have the same
//! values in `llvm/BinaryFormat/ELF.h`.

use std::fmt::Display;

use crate::read::{Bytes, ReadError, start};

/// `e_type` of a relocatable object.
pub const ET_REL: u16 = 1;
/// `e_type` of a shared object.
pub const ET_DYN: u16 = 3;

/// `e_machine` of NVIDIA's GPUs.
pub const EM_CUDA: u16 = 190;
/// `e_machine` of AMD's GPUs.
pub const EM_AMDGPU: u16 = 224;

/// `sh_type` of the symbol table of the static linker.
pub const SHT_SYMTAB: u32 = 2;
/// `sh_type` of the symbol table of the loader.
pub const SHT_DYNSYM: u32 = 11;

const SHT_NOTE: u32 = 7;
/// `sh_type` of a section that takes no space in the file.
pub const SHT_NOBITS: u32 = 8;
const SHN_UNDEF: u16 = 0;

const PT_NOTE: u32 = 4;
const SHN_XINDEX: u16 = 0xffff;

const SECTION_HEADER_SIZE: u64 = 64;
const PROGRAM_HEADER_SIZE: u64 = 56;
const HEADER_SIZE: u64 = 64;
const SYMBOL_SIZE: u64 = 24;
const NOTE_HEADER_SIZE: u64 = 12;

const FORMAT: &str = "ELF file";

/// Longest symbol or section name that is read, in bytes.
///
/// Names may share bytes in the string table, so that without a limit a small file could describe many
/// very long names, and reading it would take time quadratic in its size.
pub const MAX_NAME_BYTES: usize = 64 * 1024;

/// The fields of the ELF header which say what the file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// `e_ident[EI_OSABI]`.
    pub os_abi: u8,
    /// `e_ident[EI_ABIVERSION]`.
    pub abi_version: u8,
    /// `e_type`: [`ET_REL`], [`ET_DYN`] or another.
    pub kind: u16,
    /// `e_machine`.
    pub machine: u16,
    /// `e_flags`.
    pub flags: u32,
}

/// One section header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Section<'data> {
    /// Name, empty if the file has no section names.
    pub name: &'data str,
    /// `sh_type`.
    pub kind: u32,
    /// Where the contents start, in bytes from the start of the file.
    pub offset: u64,
    /// Size of the contents, in bytes.
    pub size: u64,
    /// `sh_link`: for a symbol table, the index of its string table.
    pub link: u32,
    /// `sh_info`: for relocations, the index of the section that they change.
    pub info: u32,
    /// `sh_addralign`.
    pub alignment: u64,
    /// `sh_entsize`.
    pub entry_size: u64,
}

/// One symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Symbol<'data> {
    /// Name.
    pub name: &'data str,
    /// `st_info >> 4`: 0 local, 1 global, 2 weak.
    pub binding: u8,
    /// `st_info & 15`: 1 object, 2 function, 3 section, 4 file.
    pub kind: u8,
    /// `st_other`: the visibility, and what the machine adds.
    pub other: u8,
    /// `st_shndx`; [`Symbol::is_undefined`] reads it.
    pub section: u16,
    /// Address, or offset in the section for a relocatable object.
    pub value: u64,
    /// Size, in bytes.
    pub size: u64,
}

impl Symbol<'_> {
    /// Whether the file only refers to the symbol and does not define it.
    #[must_use]
    pub fn is_undefined(&self) -> bool {
        self.section == SHN_UNDEF
    }

    /// Whether the symbol is weak: if nothing defines it, it is null and not an error.
    #[must_use]
    pub fn is_weak(&self) -> bool {
        self.binding == 2
    }

    /// Whether the symbol is visible only inside its own object.
    #[must_use]
    pub fn is_local(&self) -> bool {
        self.binding == 0
    }
}

/// One note.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Note<'data> {
    /// Owner, without the terminating NUL.
    pub owner: &'data [u8],
    /// Type, whose meaning depends on the owner.
    pub kind: u32,
    /// Contents.
    pub contents: &'data [u8],
    /// Where the contents start, in bytes from the start of the file.
    pub offset: u64,
}

/// A parsed ELF file.
#[derive(Debug, Clone)]
pub struct Elf<'data> {
    bytes: &'data [u8],
    header: Header,
    sections: Vec<Section<'data>>,
    /// Offset, size and alignment of each `PT_NOTE` segment.
    note_segments: Vec<(u64, u64, u64)>,
}

/// Something of an ELF file at `offset` contradicts the format.
pub(crate) fn damaged(what: impl Display, offset: u64, problem: impl Display) -> ReadError {
    ReadError::damaged(FORMAT, what, offset, problem)
}

pub(super) fn file(bytes: &[u8]) -> Bytes<'_> {
    Bytes::of(FORMAT, bytes)
}

impl<'data> Elf<'data> {
    /// Reads the header, the section headers and the program headers.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if `bytes` is not a 64-bit little-endian ELF file, or if one of the three tables lies
    /// outside of it. Contents of sections are checked when they are asked for.
    pub fn parse(bytes: &'data [u8]) -> Result<Self, ReadError> {
        let file = file(bytes);
        let magic = bytes.get(..4).unwrap_or(bytes);
        if magic != b"\x7fELF" {
            return Err(ReadError::other_format(format!(
                "not an ELF file: it starts with [{}] instead of [7f 45 4c 46]",
                start(magic, 4)
            )));
        }
        file.slice("the ELF header", 0, HEADER_SIZE)?;
        let (class, encoding) = (file.u8(4)?, file.u8(5)?);
        if (class, encoding) != (2, 1) {
            return Err(ReadError::not_read(format!(
                "ELF class {class}, data encoding {encoding}: only 64-bit little-endian files (2, 1) are read"
            )));
        }
        let header = Header {
            os_abi: file.u8(7)?,
            abi_version: file.u8(8)?,
            kind: file.u16(16)?,
            machine: file.u16(18)?,
            flags: file.u32(48)?,
        };
        Ok(Self {
            bytes,
            header,
            sections: file.sections()?,
            note_segments: file.note_segments()?,
        })
    }

    /// What the file is.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// All sections, in the order of the section header table.
    #[must_use]
    pub fn sections(&self) -> &[Section<'data>] {
        &self.sections
    }

    /// Whether it is a program that is loaded anywhere: a shared object with a mark.
    pub(crate) fn is_position_independent_program(&self) -> bool {
        const DT_FLAGS_1: u64 = 0x6fff_fffb;
        const DF_1_PIE: u64 = 0x0800_0000;
        let dynamic = self.sections.iter().find(|section| section.name == ".dynamic");
        let contents = dynamic.and_then(|section| self.contents(section).ok());
        let (words, _) = contents.unwrap_or_default().as_chunks::<8>();
        let (entries, _) = words.as_chunks::<2>();
        let mut flags = entries.iter().map(|entry| entry.map(u64::from_le_bytes));
        flags.any(|[tag, value]| tag == DT_FLAGS_1 && value & DF_1_PIE != 0)
    }

    /// The contents of `section`, empty for a section that takes no space in the file.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if the section reaches behind the end of the file.
    pub fn contents(&self, section: &Section<'data>) -> Result<&'data [u8], ReadError> {
        if section.kind == SHT_NOBITS {
            return Ok(&[]);
        }
        let what = format!("section `{}`", section.name);
        file(self.bytes).slice(&what, section.offset, section.size)
    }

    /// The symbols of the file's first symbol table of type `kind` ([`SHT_SYMTAB`] or [`SHT_DYNSYM`]),
    /// without the null symbol at its start. Empty if the file has no such table; the ABI allows one.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if the table or one of its names is damaged.
    pub fn symbols(&self, kind: u32) -> Result<Vec<Symbol<'data>>, ReadError> {
        let Some(table) = self.sections.iter().find(|section| section.kind == kind) else {
            return Ok(Vec::new());
        };
        let damaged_table = |problem: String| damaged(format!("symbol table `{}`", table.name), table.offset, problem);
        if table.entry_size != SYMBOL_SIZE {
            let size = table.entry_size;
            return Err(damaged_table(format!(
                "entries of {size} bytes instead of {SYMBOL_SIZE}"
            )));
        }
        let strings = usize::try_from(table.link)
            .ok()
            .and_then(|index| self.sections.get(index))
            .ok_or_else(|| {
                let link = table.link;
                damaged_table(format!("its string table, section {link}, does not exist"))
            })?;
        let strings = Strings {
            contents: self.contents(strings)?,
            offset: strings.offset,
        };
        let contents = self.contents(table)?;
        let (entries, rest) = contents.as_chunks::<{ SYMBOL_SIZE as usize }>();
        if !rest.is_empty() {
            let size = table.size;
            return Err(damaged_table(format!("{size} bytes are not a whole number of symbols")));
        }
        entries
            .iter()
            .skip(1)
            .map(|entry| {
                let entry = file(entry);
                let info = entry.u8(4)?;
                Ok(Symbol {
                    name: strings.get(entry.u32(0)?)?,
                    binding: info >> 4,
                    kind: info & 15,
                    other: entry.u8(5)?,
                    section: entry.u16(6)?,
                    value: entry.u64(8)?,
                    size: entry.u64(16)?,
                })
            })
            .collect()
    }

    /// All notes: those of the `PT_NOTE` segments, as a loader sees them, or if there is no such segment
    /// (relocatable objects have none) those of the note sections.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if a note reaches out of its segment or section, or that one out of the file.
    pub fn notes(&self) -> Result<Vec<Note<'data>>, ReadError> {
        let mut regions = self.note_segments.clone();
        if regions.is_empty() {
            regions.extend(
                self.sections
                    .iter()
                    .filter(|section| section.kind == SHT_NOTE)
                    .map(|section| (section.offset, section.size, section.alignment)),
            );
        }
        let mut notes = Vec::new();
        let mut total = 0u64;
        for (offset, size, alignment) in regions {
            let region = file(self.bytes).slice("the notes", offset, size)?;
            total = total.saturating_add(size);
            if total > self.bytes.len() as u64 {
                return Err(damaged(
                    "the notes".to_owned(),
                    offset,
                    "note segments overlap".to_owned(),
                ));
            }
            read_notes(region, offset, alignment, &mut notes)?;
        }
        Ok(notes)
    }
}

/// Reads the notes of one segment or section which starts at `start` in the file.
fn read_notes<'data>(
    region: &'data [u8],
    start: u64,
    alignment: u64,
    notes: &mut Vec<Note<'data>>,
) -> Result<(), ReadError> {
    // Contents are aligned to 4 bytes even in 64-bit files, except where a segment asks for 8.
    let alignment = if alignment == 8 { 8 } else { 4 };
    let file = file(region);
    let take = |what: &str, offset: u64, size: u64| {
        file.slice(what, offset, size).map_err(|_| {
            let end = start.saturating_add(region.len() as u64);
            damaged(
                what,
                start.saturating_add(offset),
                format!("it has {size} bytes and reaches behind the end of the notes at {end:#x}"),
            )
        })
    };
    let mut position = 0u64;
    while position < region.len() as u64 {
        take("a note's header", position, NOTE_HEADER_SIZE)?;
        let owner_size = u64::from(file.u32(position)?);
        let size = u64::from(file.u32(position + 4)?);
        let kind = file.u32(position + 8)?;
        let owner = take("a note's owner", position + NOTE_HEADER_SIZE, owner_size)?;
        let offset = (position + NOTE_HEADER_SIZE + owner_size).next_multiple_of(alignment);
        let contents = take("a note's contents", offset, size)?;
        position = (offset + size).next_multiple_of(alignment);
        notes.push(Note {
            owner: owner.strip_suffix(b"\0").unwrap_or(owner),
            kind,
            contents,
            offset: start.saturating_add(offset),
        });
    }
    Ok(())
}

/// A string table.
#[derive(Clone, Copy)]
pub(super) struct Strings<'data> {
    pub(super) contents: &'data [u8],
    /// Where the table starts in the file.
    pub(super) offset: u64,
}

impl<'data> Strings<'data> {
    pub(super) fn get(&self, index: u32) -> Result<&'data str, ReadError> {
        let damaged_name = |problem: &str| {
            damaged(
                "a name in a string table".to_owned(),
                self.offset.saturating_add(u64::from(index)),
                problem.to_owned(),
            )
        };
        let rest = usize::try_from(index)
            .ok()
            .and_then(|index| self.contents.get(index..))
            .ok_or_else(|| damaged_name("it starts behind the end of the table"))?;
        let rest = rest.get(..=MAX_NAME_BYTES).unwrap_or(rest);
        let end = rest
            .iter()
            .position(|&byte| byte == 0)
            .ok_or_else(|| damaged_name("no terminating NUL, or longer than the 65536 bytes that are read"))?;
        let name = rest.get(..end).unwrap_or_default();
        std::str::from_utf8(name).map_err(|_| damaged_name("not UTF-8"))
    }
}

/// The tables of a file.
impl<'data> Bytes<'data> {
    /// The table of `count` records of `size` bytes at `offset`, whose record size the header gives as
    /// `stated`.
    fn table(&self, what: &str, offset: u64, count: u64, stated: u16, size: u64) -> Result<&'data [u8], ReadError> {
        if count == 0 {
            return Ok(&[]);
        }
        if u64::from(stated) != size {
            return Err(damaged(
                what.to_owned(),
                offset,
                format!("entries of {stated} bytes instead of {size}"),
            ));
        }
        self.slice(what, offset, count.saturating_mul(size))
    }

    fn sections(&self) -> Result<Vec<Section<'data>>, ReadError> {
        let (offset, stated) = (self.u64(40)?, self.u16(58)?);
        let mut count = u64::from(self.u16(60)?);
        let mut names_index = u64::from(self.u16(62)?);
        // More than 0xfeff sections: the first section header holds what has no room in the header.
        if offset != 0 && (count == 0 || names_index == u64::from(SHN_XINDEX)) {
            let first = self.slice("the first section header", offset, SECTION_HEADER_SIZE)?;
            if count == 0 {
                count = file(first).u64(32)?;
            }
            if names_index == u64::from(SHN_XINDEX) {
                names_index = u64::from(file(first).u32(40)?);
            }
        }
        let what = "the section header table";
        let table = self.table(what, offset, count, stated, SECTION_HEADER_SIZE)?;
        let (headers, _) = table.as_chunks::<{ SECTION_HEADER_SIZE as usize }>();
        let names = usize::try_from(names_index)
            .ok()
            .filter(|&index| index != 0)
            .and_then(|index| headers.get(index))
            .map(|header| -> Result<_, ReadError> {
                let (offset, size) = (file(header).u64(24)?, file(header).u64(32)?);
                let contents = self.slice("the section names", offset, size)?;
                Ok(Strings { contents, offset })
            })
            .transpose()?;
        headers
            .iter()
            .map(|header| {
                let header = file(header);
                let name = header.u32(0)?;
                Ok(Section {
                    name: names.map_or(Ok(""), |names| names.get(name))?,
                    kind: header.u32(4)?,
                    offset: header.u64(24)?,
                    size: header.u64(32)?,
                    link: header.u32(40)?,
                    info: header.u32(44)?,
                    alignment: header.u64(48)?,
                    entry_size: header.u64(56)?,
                })
            })
            .collect()
    }

    fn note_segments(&self) -> Result<Vec<(u64, u64, u64)>, ReadError> {
        let (offset, stated, count) = (self.u64(32)?, self.u16(54)?, self.u16(56)?);
        let what = "the program header table";
        let table = self.table(what, offset, count.into(), stated, PROGRAM_HEADER_SIZE)?;
        let (headers, _) = table.as_chunks::<{ PROGRAM_HEADER_SIZE as usize }>();
        let mut segments = Vec::new();
        for header in headers {
            let header = file(header);
            if header.u32(0)? == PT_NOTE {
                segments.push((header.u64(8)?, header.u64(32)?, header.u64(48)?));
            }
        }
        Ok(segments)
    }
}
