//! What a device image is, what it was made for, and what it defines.

use std::collections::BTreeSet;

use super::{super::layout::ImageForm, ir::LlvmIrReader, report::ImageSymbols};
use crate::{
    FileKind,
    image::{
        cubin,
        elf::{EM_AMDGPU, EM_CUDA, ET_REL, Elf, SHT_DYNSYM, SHT_SYMTAB, Symbol},
        hsaco_flags::TargetFlags,
        ptx_symbols,
        symbols::{LinkSymbols, SymbolKind},
    },
    target::CodeObjectVersion,
};

/// `STV_INTERNAL` and `STV_HIDDEN`, of the low two bits of `st_other`.
const HIDDEN: [u8; 2] = [1, 2];
/// `STT_OBJECT`.
const OBJECT: u8 = 1;

/// What an image is to clang's linker.
pub fn form_of(bytes: &[u8]) -> Option<ImageForm> {
    let header = || Elf::parse(bytes).ok().map(|elf| *elf.header());
    match FileKind::of(bytes) {
        FileKind::Bitcode => Some(ImageForm::Bitcode),
        FileKind::Ptx => Some(ImageForm::Ptx),
        FileKind::Cubin if header()?.kind == ET_REL => Some(ImageForm::RelocatableCubin),
        FileKind::Cubin => Some(ImageForm::LinkedCubin),
        FileKind::AmdObject => CodeObjectVersion::from_abi_version(header()?.abi_version).map(ImageForm::AmdObject),
        FileKind::Hsaco => header().map(|_| ImageForm::AmdLinked),
        _ => None,
    }
}

/// The chip that machine code says it was made for.
pub(super) fn made_for(bytes: &[u8]) -> Option<String> {
    let elf = Elf::parse(bytes).ok()?;
    match elf.header().machine {
        EM_CUDA => cubin::read(bytes).ok().map(|cubin| cubin.chip()),
        EM_AMDGPU => Some(TargetFlags::from_e_flags(elf.header().flags).to_string()),
        _ => None,
    }
}

/// What an image defines; none if that cannot be read from it.
pub fn symbols_of(bytes: &[u8], reader: Option<&dyn LlvmIrReader>) -> Option<ImageSymbols> {
    match form_of(bytes)? {
        ImageForm::RelocatableCubin | ImageForm::LinkedCubin => {
            let elf = Elf::parse(bytes).ok()?;
            linked(&LinkSymbols::of_cubin(&elf).ok()?, bytes.len())
        }
        ImageForm::Ptx => linked(&ptx_symbols::symbols(bytes).ok()?, bytes.len()),
        ImageForm::AmdObject(_) | ImageForm::AmdLinked => amd(&Elf::parse(bytes).ok()?, bytes.len()),
        ImageForm::Bitcode => reader?.symbols(bytes),
    }
}

/// Collects names, of which those in an ELF file may share bytes: together they may not be longer than the file.
struct Names {
    left: usize,
    symbols: ImageSymbols,
}

impl Names {
    fn add(&mut self, name: &str, kind: SymbolKind, unique: bool) -> Option<()> {
        self.left = self.left.checked_sub(name.len())?;
        match kind {
            SymbolKind::Kernel => self.symbols.kernels.insert(name.to_owned()),
            SymbolKind::Variable => self.symbols.variables.insert(name.to_owned()),
            SymbolKind::Function => false,
        };
        if unique {
            self.symbols.unique.insert(name.to_owned());
        }
        Some(())
    }
}

fn names(size: usize) -> Names {
    Names {
        left: size,
        symbols: ImageSymbols::default(),
    }
}

fn linked(symbols: &LinkSymbols<'_>, size: usize) -> Option<ImageSymbols> {
    let mut names = names(size);
    for (name, definition) in &symbols.defined {
        names.add(name, definition.kind, !definition.mergeable)?;
    }
    Some(names.symbols)
}

/// The runtime finds a kernel by the object `NAME.kd`. What is hidden stays inside of the linked code object, and so
/// nothing finds it.
fn amd<'data>(elf: &Elf<'data>, size: usize) -> Option<ImageSymbols> {
    let tables = [SHT_SYMTAB, SHT_DYNSYM].map(|kind| elf.symbols(kind).unwrap_or_default());
    let is_seen =
        |symbol: &&Symbol<'_>| !symbol.is_undefined() && !symbol.is_local() && !HIDDEN.contains(&(symbol.other & 3));
    let seen = || tables.iter().flatten().filter(is_seen);
    let kernel = |symbol: &Symbol<'data>| match symbol.kind {
        OBJECT => symbol.name.strip_suffix(".kd"),
        _ => None,
    };
    let kernels: BTreeSet<&str> = seen().filter_map(kernel).collect();
    let mut names = names(size.saturating_mul(2));
    for symbol in seen() {
        let unique = !symbol.is_weak();
        match kernel(symbol) {
            Some(name) => names.add(name, SymbolKind::Kernel, unique)?,
            None if kernels.contains(symbol.name) => {}
            None if symbol.kind == OBJECT => names.add(symbol.name, SymbolKind::Variable, unique)?,
            None => names.add(symbol.name, SymbolKind::Function, unique)?,
        }
    }
    Some(names.symbols)
}
