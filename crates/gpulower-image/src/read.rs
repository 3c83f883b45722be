//! Reading bytes that nobody vouches for: the one error of all readers, and checked reads of little-endian numbers.

use std::fmt::Display;

/// Why bytes could not be read as what they were taken for. The message names the format, the place, and what is wrong
/// there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct ReadError {
    /// What kind of problem it is.
    pub problem: ReadProblem,
    /// Where it is, in bytes from the start of what was read, or of what was decompressed; `None` for the whole.
    pub offset: Option<u64>,
    message: String,
}

/// The kinds of [`ReadError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ReadProblem {
    /// The bytes are of another format.
    OtherFormat,
    /// The bytes are of the format, in a version or variant that is not read.
    NotRead,
    /// Something lies, wholly or in part, behind the end.
    Truncated,
    /// Something contradicts the format.
    Damaged,
    /// More would be decompressed than the reader is willing to.
    TooLarge,
}

impl ReadError {
    pub(crate) fn new(problem: ReadProblem, message: impl Into<String>) -> Self {
        Self {
            problem,
            offset: None,
            message: message.into(),
        }
    }

    pub(crate) fn other_format(message: impl Into<String>) -> Self {
        Self::new(ReadProblem::OtherFormat, message)
    }

    pub(crate) fn not_read(message: impl Into<String>) -> Self {
        Self::new(ReadProblem::NotRead, message)
    }

    /// `what`, which lies at `offset`, contradicts the format, as in "ELF file".
    pub(crate) fn damaged(format: &str, what: impl Display, offset: u64, problem: impl Display) -> Self {
        let message = format!("damaged {format}: {what} at offset {offset:#x}: {problem}");
        Self::new(ReadProblem::Damaged, message).at(offset)
    }

    /// `what` has `size` bytes at `offset`, and the end is as `end` says: "file has only 3 bytes".
    pub(crate) fn truncated(format: &str, what: impl Display, offset: u64, size: u64, end: impl Display) -> Self {
        let message = format!("truncated {format}: {what} needs {size} bytes at offset {offset:#x}, but the {end}");
        Self::new(ReadProblem::Truncated, message).at(offset)
    }

    pub(crate) fn at(mut self, offset: u64) -> Self {
        self.offset = Some(offset);
        self
    }

    /// The same problem, with words in front of the message, and where it lies in the file.
    pub(crate) fn within(mut self, place: impl Display, offset: Option<u64>) -> Self {
        self.message = format!("{place}: {}", self.message);
        self.offset = offset.or(self.offset);
        self
    }
}

/// The first bytes in hexadecimal, of `most`.
pub(crate) fn start(bytes: &[u8], most: usize) -> String {
    let start: Vec<String> = bytes.iter().take(most).map(|byte| format!("{byte:02x}")).collect();
    start.join(" ")
}

/// A file, or a part of one, with checked reads at offsets from its start.
#[derive(Clone, Copy)]
pub(crate) struct Bytes<'data> {
    pub(crate) bytes: &'data [u8],
    /// Where they start in the file, to which errors refer.
    pub(crate) start: u64,
    /// What they are a part of, in messages.
    pub(crate) format: &'static str,
    /// What ends where they do, in messages; `None` for the file, whose size is told instead.
    pub(crate) container: Option<&'static str>,
}

impl<'data> Bytes<'data> {
    /// A whole file.
    pub(crate) fn of(format: &'static str, bytes: &'data [u8]) -> Self {
        Self {
            bytes,
            start: 0,
            format,
            container: None,
        }
    }

    pub(crate) fn end(&self) -> u64 {
        self.bytes.len() as u64
    }

    pub(crate) fn damaged(&self, what: impl Display, offset: u64, problem: impl Display) -> ReadError {
        ReadError::damaged(self.format, what, self.start.saturating_add(offset), problem)
    }

    pub(crate) fn slice(&self, what: &str, offset: u64, size: u64) -> Result<&'data [u8], ReadError> {
        let range = || {
            let start = usize::try_from(offset).ok()?;
            let end = usize::try_from(offset.checked_add(size)?).ok()?;
            self.bytes.get(start..end)
        };
        range().ok_or_else(|| {
            let end = match self.container {
                None => format!("file has only {} bytes", self.end()),
                Some(container) => format!("{container} ends at {:#x}", self.start.saturating_add(self.end())),
            };
            ReadError::truncated(self.format, what, self.start.saturating_add(offset), size, end)
        })
    }

    /// What follows `offset`; nothing if that lies behind the end.
    pub(crate) fn rest(&self, offset: u64) -> &'data [u8] {
        usize::try_from(offset)
            .ok()
            .and_then(|start| self.bytes.get(start..))
            .unwrap_or_default()
    }

    fn array<const N: usize>(&self, offset: u64) -> Result<[u8; N], ReadError> {
        let bytes = self.slice("a field", offset, N as u64)?;
        // `slice` returned N bytes, so that the default is never taken.
        Ok(bytes.try_into().unwrap_or([0; N]))
    }

    pub(crate) fn u8(&self, offset: u64) -> Result<u8, ReadError> {
        self.array(offset).map(u8::from_le_bytes)
    }

    pub(crate) fn u16(&self, offset: u64) -> Result<u16, ReadError> {
        self.array(offset).map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&self, offset: u64) -> Result<u32, ReadError> {
        self.array(offset).map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&self, offset: u64) -> Result<u64, ReadError> {
        self.array(offset).map(u64::from_le_bytes)
    }
}
