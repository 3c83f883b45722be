//! Checked reads at offsets of a 64-bit little-endian ELF file, below [`super::elf`].

use super::elf::{ElfError, MAX_NAME_BYTES, Section};

const PT_NOTE: u32 = 4;
const SHN_XINDEX: u16 = 0xffff;

const SECTION_HEADER_SIZE: u64 = 64;
const PROGRAM_HEADER_SIZE: u64 = 56;

/// A string table.
#[derive(Clone, Copy)]
pub(super) struct Strings<'data> {
    pub(super) contents: &'data [u8],
    /// Where the table starts in the file.
    pub(super) offset: u64,
}

impl<'data> Strings<'data> {
    pub(super) fn get(&self, index: u32) -> Result<&'data str, ElfError> {
        let damaged = |problem: &str| ElfError::Damaged {
            what: "a name in a string table".to_owned(),
            offset: self.offset.saturating_add(u64::from(index)),
            problem: problem.to_owned(),
        };
        let rest = usize::try_from(index)
            .ok()
            .and_then(|index| self.contents.get(index..))
            .ok_or_else(|| damaged("it starts behind the end of the table"))?;
        let rest = rest.get(..=MAX_NAME_BYTES).unwrap_or(rest);
        let end = rest
            .iter()
            .position(|&byte| byte == 0)
            .ok_or_else(|| damaged("no terminating NUL, or longer than the 65536 bytes that are read"))?;
        let name = rest.get(..end).unwrap_or_default();
        std::str::from_utf8(name).map_err(|_| damaged("not UTF-8"))
    }
}

/// Checked reads at offsets of a file.
#[derive(Clone, Copy)]
pub(super) struct File<'data>(pub(super) &'data [u8]);

impl<'data> File<'data> {
    pub(super) fn slice(&self, what: &str, offset: u64, size: u64) -> Result<&'data [u8], ElfError> {
        let range = || {
            let start = usize::try_from(offset).ok()?;
            let end = usize::try_from(offset.checked_add(size)?).ok()?;
            self.0.get(start..end)
        };
        range().ok_or_else(|| ElfError::Truncated {
            what: what.to_owned(),
            offset,
            size,
            available: self.0.len() as u64,
        })
    }

    fn array<const N: usize>(&self, offset: u64) -> Result<[u8; N], ElfError> {
        let bytes = self.slice("a field", offset, N as u64)?;
        // `slice` returned N bytes, so that the default is never taken.
        Ok(bytes.try_into().unwrap_or([0; N]))
    }

    pub(super) fn u8(&self, offset: u64) -> Result<u8, ElfError> {
        self.array(offset).map(u8::from_le_bytes)
    }

    pub(super) fn u16(&self, offset: u64) -> Result<u16, ElfError> {
        self.array(offset).map(u16::from_le_bytes)
    }

    pub(super) fn u32(&self, offset: u64) -> Result<u32, ElfError> {
        self.array(offset).map(u32::from_le_bytes)
    }

    pub(super) fn u64(&self, offset: u64) -> Result<u64, ElfError> {
        self.array(offset).map(u64::from_le_bytes)
    }

    /// The table of `count` records of `size` bytes at `offset`, whose record size the header gives as
    /// `stated`.
    fn table(&self, what: &str, offset: u64, count: u64, stated: u16, size: u64) -> Result<&'data [u8], ElfError> {
        if count == 0 {
            return Ok(&[]);
        }
        if u64::from(stated) != size {
            return Err(ElfError::Damaged {
                what: what.to_owned(),
                offset,
                problem: format!("entries of {stated} bytes instead of {size}"),
            });
        }
        self.slice(what, offset, count.saturating_mul(size))
    }

    pub(super) fn sections(&self) -> Result<Vec<Section<'data>>, ElfError> {
        let (offset, stated) = (self.u64(40)?, self.u16(58)?);
        let mut count = u64::from(self.u16(60)?);
        let mut names_index = u64::from(self.u16(62)?);
        // More than 0xfeff sections: the first section header holds what has no room in the header.
        if offset != 0 && (count == 0 || names_index == u64::from(SHN_XINDEX)) {
            let first = self.slice("the first section header", offset, SECTION_HEADER_SIZE)?;
            if count == 0 {
                count = File(first).u64(32)?;
            }
            if names_index == u64::from(SHN_XINDEX) {
                names_index = u64::from(File(first).u32(40)?);
            }
        }
        let what = "the section header table";
        let table = self.table(what, offset, count, stated, SECTION_HEADER_SIZE)?;
        let (headers, _) = table.as_chunks::<{ SECTION_HEADER_SIZE as usize }>();
        let names = usize::try_from(names_index)
            .ok()
            .filter(|&index| index != 0)
            .and_then(|index| headers.get(index))
            .map(|header| -> Result<_, ElfError> {
                let (offset, size) = (File(header).u64(24)?, File(header).u64(32)?);
                let contents = self.slice("the section names", offset, size)?;
                Ok(Strings { contents, offset })
            })
            .transpose()?;
        headers
            .iter()
            .map(|header| {
                let header = File(header);
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

    pub(super) fn note_segments(&self) -> Result<Vec<(u64, u64, u64)>, ElfError> {
        let (offset, stated, count) = (self.u64(32)?, self.u16(54)?, self.u16(56)?);
        let what = "the program header table";
        let table = self.table(what, offset, count.into(), stated, PROGRAM_HEADER_SIZE)?;
        let (headers, _) = table.as_chunks::<{ PROGRAM_HEADER_SIZE as usize }>();
        let mut segments = Vec::new();
        for header in headers {
            let header = File(header);
            if header.u32(0)? == PT_NOTE {
                segments.push((header.u64(8)?, header.u64(32)?, header.u64(48)?));
            }
        }
        Ok(segments)
    }
}
