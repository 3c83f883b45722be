//! The symbols by which device code is linked: what an object defines for others, and what it needs of them.
//!
//! Relocatable cubins and AMDGPU objects are read here, PTX by [`super::ptx_symbols`].

use std::collections::{BTreeMap, BTreeSet};

use super::elf::{self, Elf, SHT_SYMTAB, Section, Symbol};
use crate::ReadError;

/// `sh_type` of relocations with and without an addend.
const SHT_RELA: u32 = 4;
const SHT_REL: u32 = 9;
/// Sizes of their entries; the symbol is the upper half of the 8 bytes at offset 8 in both.
const RELA_SIZE: u64 = 24;
const REL_SIZE: u64 = 16;
/// `st_shndx` of a symbol that is allocated by the linker, and may be so in several objects (`.common` of PTX).
const SHN_COMMON: u16 = 0xfff2;
/// `STT_FUNC`.
const FUNCTION: u8 = 2;
/// `STT_OBJECT`.
const OBJECT: u8 = 1;
/// `st_info & 15` of variables in cubins (`STT_CUDA_OBJECT` of LLVM's ELF.h).
const CUDA_OBJECT: u8 = 13;
/// `st_other` of a kernel in a cubin (`STO_CUDA_ENTRY`).
const CUDA_ENTRY: u8 = 0x10;
/// The part of `st_other` that tells a cubin's memory spaces apart, and its value for shared memory
/// (`STO_CUDA_SHARED`): an undefined variable there is dynamic shared memory, whose size the launch gives.
const CUDA_SPACE: u8 = 0xe0;
const CUDA_SHARED: u8 = 0x40;

/// Functions that NVIDIA's driver provides to the device code that it loads (CUDA C++ Programming Guide, formatted output,
/// assertion and dynamic global memory allocation).
pub const DRIVER_FUNCTIONS: [&str; 4] = ["vprintf", "malloc", "free", "__assertfail"];

/// Whether NVIDIA's driver defines a function when it loads an image: [`DRIVER_FUNCTIONS`], and what the device runtime
/// (`libcudadevrt.a`) calls (the undefined symbols of its object in CUDA 13.0, which nvJitLink leaves in the image).
#[must_use]
pub fn is_provided_by_driver(name: &str) -> bool {
    let device_runtime = name
        .strip_prefix("cnp")
        .is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_uppercase()));
    DRIVER_FUNCTIONS.contains(&name) || name.starts_with("__cuda_syscall_") || device_runtime
}

table! {
    /// What a symbol is.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum SymbolKind: &'static str {
        /// A function that the host launches.
        Kernel = "kernel";
        /// A function that device code calls.
        Function = "function";
        /// A variable.
        Variable = "variable";
    }
}

impl SymbolKind {
    /// The word for messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.row()
    }
}

/// A symbol that other objects may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Definition {
    /// What it is.
    pub kind: SymbolKind,
    /// Whether several objects may define it: weak and common symbols, of which the linker keeps one.
    pub mergeable: bool,
}

/// What one object defines for others, and needs of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LinkSymbols<'data> {
    /// Definitions that other objects see, and kernels, which are never private.
    pub defined: BTreeMap<&'data str, Definition>,
    /// Symbols that some other object has to define, each with the functions (or the sections of data) that use it.
    /// Weak references, which may stay unresolved, are not among them.
    pub needed: BTreeMap<&'data str, BTreeSet<&'data str>>,
}

impl<'data> LinkSymbols<'data> {
    /// The kernels that the object defines.
    pub fn kernels(&self) -> impl Iterator<Item = &'data str> + '_ {
        self.defined
            .iter()
            .filter(|(_, definition)| definition.kind == SymbolKind::Kernel)
            .map(|(name, _)| *name)
    }

    /// Reads a relocatable cubin.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if its symbols or relocations are damaged.
    pub fn of_cubin(elf: &Elf<'data>) -> Result<Self, ReadError> {
        let symbols = elf.symbols(SHT_SYMTAB)?;
        let mut result = Self::default();
        for symbol in &symbols {
            let kind = match symbol.kind {
                FUNCTION if symbol.other & CUDA_ENTRY != 0 => SymbolKind::Kernel,
                FUNCTION => SymbolKind::Function,
                OBJECT | CUDA_OBJECT => SymbolKind::Variable,
                _ => continue,
            };
            let dynamic_shared = kind == SymbolKind::Variable && symbol.other & CUDA_SPACE == CUDA_SHARED;
            if symbol.is_undefined() {
                if !symbol.is_local() && !symbol.is_weak() && !dynamic_shared {
                    result.needed.entry(symbol.name).or_default();
                }
            } else if !symbol.is_local() || kind == SymbolKind::Kernel {
                // A kernel without `.visible` is a local symbol, and still found by name when the image is loaded.
                result.define(symbol, kind);
            }
        }
        result.add_users(elf, &symbols)?;
        Ok(result)
    }

    /// Reads a relocatable AMDGPU object.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if its symbols or relocations are damaged.
    pub fn of_amd_object(elf: &Elf<'data>) -> Result<Self, ReadError> {
        let symbols = elf.symbols(SHT_SYMTAB)?;
        // A kernel is a function with a descriptor, the object `NAME.kd`.
        let kernels: BTreeSet<&str> = symbols
            .iter()
            .filter(|symbol| symbol.kind == OBJECT && !symbol.is_undefined())
            .filter_map(|symbol| symbol.name.strip_suffix(".kd"))
            .collect();
        let mut result = Self::default();
        for symbol in symbols.iter().filter(|symbol| !symbol.is_local()) {
            if symbol.is_undefined() {
                if !symbol.is_weak() {
                    result.needed.entry(symbol.name).or_default();
                }
                continue;
            }
            let kind = match symbol.kind {
                FUNCTION if kernels.contains(symbol.name) => SymbolKind::Kernel,
                FUNCTION => SymbolKind::Function,
                _ if symbol
                    .name
                    .strip_suffix(".kd")
                    .is_some_and(|name| kernels.contains(name)) =>
                {
                    continue;
                }
                _ => SymbolKind::Variable,
            };
            result.define(symbol, kind);
        }
        result.add_users(elf, &symbols)?;
        Ok(result)
    }

    fn define(&mut self, symbol: &Symbol<'data>, kind: SymbolKind) {
        let mergeable = symbol.is_weak() || symbol.section == SHN_COMMON;
        self.defined.insert(symbol.name, Definition { kind, mergeable });
    }

    /// Finds out from the relocations which functions use the symbols that are needed.
    fn add_users(&mut self, elf: &Elf<'data>, symbols: &[Symbol<'data>]) -> Result<(), ReadError> {
        if self.needed.is_empty() {
            return Ok(());
        }
        let functions = Functions::new(symbols);
        for section in elf.sections() {
            let size = match section.kind {
                SHT_RELA => RELA_SIZE,
                SHT_REL => REL_SIZE,
                _ => continue,
            };
            let target = usize::try_from(section.info)
                .ok()
                .and_then(|index| elf.sections().get(index));
            let Some(target) = target else {
                let problem = format!("they change section {}, which does not exist", section.info);
                return Err(damaged(section, problem));
            };
            if section.entry_size != size {
                return Err(damaged(
                    section,
                    format!("entries of {} bytes instead of {size}", section.entry_size),
                ));
            }
            let Ok(step) = usize::try_from(size) else { continue };
            for entry in elf.contents(section)?.chunks_exact(step) {
                let word = |at: usize| {
                    let bytes = entry
                        .get(at..at.saturating_add(8))
                        .and_then(|bytes| bytes.try_into().ok());
                    u64::from_le_bytes(bytes.unwrap_or_default())
                };
                // The null symbol is not in `symbols`.
                let symbol = usize::try_from(word(8) >> 32)
                    .ok()
                    .and_then(|index| symbols.get(index.checked_sub(1)?));
                if let Some(users) = symbol.and_then(|symbol| self.needed.get_mut(symbol.name)) {
                    users.insert(functions.at(section.info, word(0)).unwrap_or(target.name));
                }
            }
        }
        Ok(())
    }
}

/// Registers that AMDGPU functions use, of each kind: one more than the highest number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FunctionRegisters {
    /// Vector registers.
    pub vector: u32,
    /// Accumulation registers (chips with MFMA).
    pub accumulation: u32,
    /// Scalar registers.
    pub scalar: u32,
}

impl FunctionRegisters {
    /// The larger number of each kind.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        Self {
            vector: self.vector.max(other.vector),
            accumulation: self.accumulation.max(other.accumulation),
            scalar: self.scalar.max(other.scalar),
        }
    }
}

/// What objects of a link offer to code that is yet to be compiled, and want of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LinkInterface {
    /// Symbols that they define, members of archives included.
    pub defined: BTreeSet<String>,
    /// Symbols that they need, whether or not others of them define these.
    pub needed: BTreeSet<String>,
    /// AMD: the most registers that a function of theirs uses. A kernel which calls one has to be given as many.
    pub registers: FunctionRegisters,
    /// Whether there is something among them that does not tell what it defines and needs (LTO-IR): it may be anything.
    pub opaque: bool,
}

fn damaged(section: &Section<'_>, problem: String) -> ReadError {
    elf::damaged(format!("relocations `{}`", section.name), section.offset, problem)
}

/// The functions of an object by section and address.
struct Functions<'data>(BTreeMap<(u32, u64), (u64, &'data str)>);

impl<'data> Functions<'data> {
    fn new(symbols: &[Symbol<'data>]) -> Self {
        Self(
            symbols
                .iter()
                .filter(|symbol| symbol.kind == FUNCTION && !symbol.is_undefined())
                .map(|symbol| ((symbol.section.into(), symbol.value), (symbol.size, symbol.name)))
                .collect(),
        )
    }

    /// The function in whose bytes an offset of a section lies.
    fn at(&self, section: u32, offset: u64) -> Option<&'data str> {
        let (&(found, start), &(size, name)) = self.0.range(..=(section, offset)).next_back()?;
        (found == section && offset.checked_sub(start)? < size).then_some(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpulower_testing::{amd, nvidia};

    fn users<'a>(symbols: &'a LinkSymbols<'_>, name: &str) -> Vec<&'a str> {
        symbols.needed[name].iter().copied().collect()
    }

    fn cubin() -> Vec<u8> {
        nvidia::relocatable_cubin(nvidia::LINKED_KERNELS, "sm_90")
    }

    #[test]
    fn a_cubin_says_what_it_defines_and_who_needs_what() {
        let bytes = cubin();
        let symbols = LinkSymbols::of_cubin(&Elf::parse(&bytes).unwrap()).unwrap();
        let defined: Vec<(&str, SymbolKind, bool)> = symbols
            .defined
            .iter()
            .map(|(name, definition)| (*name, definition.kind, definition.mergeable))
            .collect();
        use SymbolKind::{Function, Kernel, Variable};
        assert_eq!(
            defined,
            [
                ("common_value", Variable, true),
                ("hidden_kernel", Kernel, false),
                ("offered", Function, false),
                ("table", Variable, false),
                ("user", Kernel, false),
                ("weak_value", Variable, true),
            ]
        );
        assert_eq!(symbols.kernels().collect::<Vec<_>>(), ["hidden_kernel", "user"]);
        // Dynamic shared memory and weak references are not needed.
        let needed: Vec<&str> = symbols.needed.keys().copied().collect();
        assert_eq!(needed, ["counter", "in_table", "never_read", "scale", "vprintf"]);
        assert_eq!(users(&symbols, "scale"), ["offered", "user"]);
        assert_eq!(users(&symbols, "counter"), ["user"]);
        assert_eq!(users(&symbols, "in_table"), [".nv.global.init"]);
        assert!(users(&symbols, "never_read").is_empty());
    }

    #[test]
    fn an_amd_object_says_what_it_defines_and_who_needs_what() {
        let ir = format!(
            "{}\n@state = addrspace(1) global i32 7\n@maybe = weak addrspace(1) global i32 7\n\
             @optional = extern_weak addrspace(1) global i32\n",
            amd::UNDEFINED
        );
        let bytes = amd::object(&ir, "gfx942", "", 5);
        let symbols = LinkSymbols::of_amd_object(&Elf::parse(&bytes).unwrap()).unwrap();
        assert_eq!(symbols.kernels().collect::<Vec<_>>(), ["one", "two"]);
        let names: Vec<&str> = symbols.defined.keys().copied().collect();
        assert_eq!(
            names,
            ["maybe", "one", "state", "two"],
            "descriptors belong to their kernels"
        );
        assert!(symbols.defined["maybe"].mergeable && !symbols.defined["state"].mergeable);
        assert_eq!(users(&symbols, "missing_a"), ["one", "two"]);
        assert_eq!(users(&symbols, "missing_b"), ["two"]);
        assert_eq!(symbols.needed.len(), 2);
    }

    #[test]
    fn damaged_files_are_errors_or_read_and_never_a_panic() {
        let amd = amd::object(amd::UNDEFINED, "gfx942", "", 5);
        for bytes in [cubin(), amd] {
            let read = |bytes: &[u8]| {
                let elf = Elf::parse(bytes)?;
                LinkSymbols::of_cubin(&elf)?;
                LinkSymbols::of_amd_object(&elf).map(drop)
            };
            for length in 0..bytes.len() {
                let _ = read(&bytes[..length]);
            }
            let mut copy = bytes.clone();
            for index in 0..copy.len() {
                for bit in [0x01, 0x80, 0xff] {
                    copy[index] ^= bit;
                    let _ = read(&copy);
                    copy[index] = bytes[index];
                }
            }
        }
    }

    #[test]
    fn relocations_of_nothing_are_refused() {
        let mut bytes = cubin();
        let elf = Elf::parse(&bytes).unwrap();
        let index = elf
            .sections()
            .iter()
            .position(|section| section.kind == SHT_RELA)
            .unwrap();
        let table = usize::try_from(u64::from_le_bytes(bytes[40..48].try_into().unwrap())).unwrap();
        let header = table + index * 64;
        let mut changed = bytes.clone();
        changed[header + 44..header + 48].copy_from_slice(&9999u32.to_le_bytes());
        let text = LinkSymbols::of_cubin(&Elf::parse(&changed).unwrap())
            .unwrap_err()
            .to_string();
        assert!(
            text.contains("they change section 9999, which does not exist"),
            "{text}"
        );
        bytes[header + 56] = 7;
        let text = LinkSymbols::of_cubin(&Elf::parse(&bytes).unwrap())
            .unwrap_err()
            .to_string();
        assert!(text.contains("entries of 7 bytes instead of 24"), "{text}");
    }
}
