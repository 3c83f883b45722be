//! Host code as LLVM IR: the constants of the sections that matter are what an object will have there.
//!
//! Reading LLVM IR takes LLVM, which this crate does without: whoever has it hands in an [`LlvmIrReader`].

use std::collections::BTreeSet;

use super::{
    contents::{HostContents, Part, Pointee, entry_section, is_wrapper, text_at, u64_at},
    member::Member,
    report::ImageSymbols,
};
use crate::container::host_sections::{
    HIP_FATBIN_SECTION, LLVM_OFFLOADING_SECTION, NV_FATBIN_SECTION, SHT_LLVM_OFFLOADING,
};
use crate::{FileKind, ReadError, ReadProblem};

/// What the constants may have together, in bytes for each byte of the file. Bitcode takes 6 bits for some of 8 bytes.
const GROWTH: u64 = 32;
/// `sh_type` of a section whose meaning is the program's own.
const SHT_PROGBITS: u32 = 1;

/// Reads LLVM IR, as text or bitcode.
pub trait LlvmIrReader {
    /// The variables of the sections that are wanted, and the texts to which they point.
    ///
    /// # Errors
    ///
    /// LLVM's words, for what is no LLVM IR, and for initializers of more than `limit` bytes together.
    fn constants(
        &self,
        bytes: &[u8],
        wanted: &(dyn Fn(&str) -> bool + Sync),
        limit: u64,
    ) -> Result<HostConstants, String>;

    /// What device code as bitcode defines; none if it cannot be read.
    fn symbols(&self, bitcode: &[u8]) -> Option<ImageSymbols>;
}

/// The constants of a module of host code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostConstants {
    /// Those that were asked for.
    pub constants: Vec<Constant>,
    /// The sections to whose starts (`__start_NAME`) something refers.
    pub starts: BTreeSet<String>,
}

/// A global variable with its initializer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constant {
    /// Its name.
    pub name: String,
    /// Its section; empty for none.
    pub section: String,
    /// Whether it is in `llvm.used`.
    pub kept: bool,
    /// What it will be in memory, with zeros where pointers are.
    pub bytes: Vec<u8>,
    /// The pointers in it, by offset.
    pub pointers: Vec<Pointer>,
}

/// A pointer in a constant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pointer {
    /// Where it is, in bytes from the start of the constant.
    pub offset: u64,
    /// The number of the constant that it points to, if that was read.
    pub target: Option<usize>,
    /// Where in its target it points, in bytes.
    pub addend: i64,
    /// The symbol that it points to.
    pub symbol: String,
}

/// Reads textual IR or bitcode.
pub(super) fn read(bytes: &[u8], reader: Option<&dyn LlvmIrReader>) -> Result<Member, ReadError> {
    let reader = reader.ok_or_else(|| {
        ReadError::not_read("cannot be checked: it is LLVM IR, which this program was built without LLVM to read")
    })?;
    let wanted = |section: &str| {
        let others = [LLVM_OFFLOADING_SECTION, NV_FATBIN_SECTION, HIP_FATBIN_SECTION];
        entry_section(section).is_some() || is_wrapper(section) || others.contains(&section)
    };
    let limit = (bytes.len() as u64).saturating_mul(GROWTH);
    let host = reader
        .constants(bytes, &wanted, limit)
        .map_err(|problem| ReadError::new(ReadProblem::Damaged, format!("cannot be checked: {problem}")))?;
    let size = host.constants.iter().map(|constant| constant.bytes.len()).sum();
    Ok(Member::of(&IrFile { host, size }, Some(reader)))
}

#[derive(Debug)]
struct IrFile {
    host: HostConstants,
    size: usize,
}

fn part(number: usize, constant: &Constant) -> Part<'_> {
    Part {
        number,
        section: &constant.section,
        // The name decides it.
        kind: match constant.section.as_str() {
            LLVM_OFFLOADING_SECTION => SHT_LLVM_OFFLOADING,
            _ => SHT_PROGBITS,
        },
        contents: Some(&constant.bytes),
        retained: constant.kept,
    }
}

impl HostContents for IrFile {
    fn kind(&self) -> FileKind {
        FileKind::LlvmIr
    }

    fn parts(&self, wanted: &dyn Fn(&str) -> bool) -> Vec<Part<'_>> {
        let constants = self.host.constants.iter().enumerate();
        let wanted = constants.filter(|(_, constant)| wanted(&constant.section));
        wanted.map(|(number, constant)| part(number, constant)).collect()
    }

    fn pointee(&self, part: usize, offset: u64) -> Option<Pointee<'_>> {
        let constant = self.host.constants.get(part)?;
        let Ok(index) = constant
            .pointers
            .binary_search_by_key(&offset, |pointer| pointer.offset)
        else {
            let value = u64_at(&constant.bytes, usize::try_from(offset).ok()?)?;
            return (value == 0).then_some(Pointee::Null);
        };
        let pointer = constant.pointers.get(index)?;
        Some(match (pointer.target, u64::try_from(pointer.addend)) {
            (Some(target), Ok(addend)) => Pointee::Place(target, addend),
            _ => Pointee::Elsewhere(&pointer.symbol),
        })
    }

    fn text(&self, pointee: Pointee<'_>) -> Option<&str> {
        let Pointee::Place(target, offset) = pointee else {
            return None;
        };
        text_at(&self.host.constants.get(target)?.bytes, offset)
    }

    fn refers_to_start_of(&self, section: &str) -> Option<bool> {
        Some(self.host.starts.contains(section))
    }

    fn size(&self) -> usize {
        self.size
    }
}
