//! Host code as LLVM IR: the constants of the sections that matter are what an object will have there.

use std::{collections::BTreeSet, thread};

use super::{
    CheckError,
    contents::{HostContents, Part, Pointee, entry_section, is_wrapper, text_at, u64_at},
    member::Member,
    report::FileKind,
};
use crate::{
    bridge::{
        LlvmError,
        constants::{self, Constant},
        llvm::DeviceContext,
    },
    container::host_sections::{HIP_FATBIN_SECTION, LLVM_OFFLOADING_SECTION, NV_FATBIN_SECTION, SHT_LLVM_OFFLOADING},
};

/// LLVM's readers recurse with the nesting of their input.
const STACK_BYTES: usize = 64 << 20;
/// What the constants may have together, in bytes for each byte of the file. Bitcode takes 6 bits for some of 8 bytes.
const GROWTH: u64 = 32;
/// `sh_type` of a section whose meaning is the program's own.
const SHT_PROGBITS: u32 = 1;

/// The constants of a module.
#[derive(Debug)]
struct IrFile {
    constants: Vec<Constant>,
    /// The sections whose starts are referred to.
    starts: BTreeSet<String>,
    size: usize,
}

/// Reads textual IR or bitcode.
pub(super) fn read(bytes: &[u8]) -> Result<Member, CheckError> {
    let read = || {
        let file = parse(bytes)?;
        Ok(Member::of(&file))
    };
    thread::scope(|scope| {
        let thread = thread::Builder::new()
            .stack_size(STACK_BYTES)
            .spawn_scoped(scope, read)
            .map_err(|error| CheckError::LlvmIr(format!("no thread can be started to read it: {error}")))?;
        thread
            .join()
            .unwrap_or_else(|_| Err(CheckError::LlvmIr("internal error: the reader panicked".to_owned())))
    })
}

fn parse(bytes: &[u8]) -> Result<IrFile, CheckError> {
    // Below its first line an error shows the place in the text.
    let refused = |error: LlvmError| {
        let text = error.to_string();
        CheckError::LlvmIr(text.lines().next().unwrap_or_default().to_owned())
    };
    let context = DeviceContext::new();
    let module = context.parse(bytes, "LLVM IR").map_err(refused)?;
    let wanted = |section: &str| {
        let others = [LLVM_OFFLOADING_SECTION, NV_FATBIN_SECTION, HIP_FATBIN_SECTION];
        entry_section(section).is_some() || is_wrapper(section) || others.contains(&section)
    };
    let limit = (bytes.len() as u64).saturating_mul(GROWTH);
    let constants = constants::of_sections(&module, &wanted, limit).map_err(refused)?;
    let names = module
        .inkwell()
        .get_globals()
        .map(|global| global.get_name().to_string_lossy().into_owned());
    let starts = names
        .filter_map(|name| Some(name.strip_prefix("__start_")?.to_owned()))
        .collect();
    let size = constants.iter().map(|constant| constant.bytes.len()).sum();
    Ok(IrFile {
        constants,
        starts,
        size,
    })
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
        let constants = self.constants.iter().enumerate();
        let wanted = constants.filter(|(_, constant)| wanted(&constant.section));
        wanted.map(|(number, constant)| part(number, constant)).collect()
    }

    fn pointee(&self, part: usize, offset: u64) -> Option<Pointee<'_>> {
        let constant = self.constants.get(part)?;
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
        text_at(&self.constants.get(target)?.bytes, offset)
    }

    fn refers_to_start_of(&self, section: &str) -> Option<bool> {
        Some(self.starts.contains(section))
    }

    fn size(&self) -> usize {
        self.size
    }
}
