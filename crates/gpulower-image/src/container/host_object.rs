//! Writes a host object that carries device code in the sections where runtimes and tools expect it.
//!
//! The object has data alone: whoever links it registers the wrapper with the runtime (`__cudaRegisterFatBinary`,
//! `__hipRegisterFatBinary`), under the name that the caller chose. Sections, magic numbers and alignments are those of
//! [`host_sections`](super::host_sections).
//!
//! ```
//! use gpulower_image::container::fatbin::{self, Content, Image};
//! use gpulower_image::container::host_object::{self, DeviceCode, HostArch, HostSymbol};
//!
//! let ptx = ".version 7.8\n.target sm_80\n.address_size 64\n";
//! let fatbin = fatbin::write(&[Image::new(Content::Ptx(ptx), "sm_80")?])?;
//! let object = host_object::write(
//!     HostArch::X86_64,
//!     &[DeviceCode::Fatbin {
//!         bytes: &fatbin,
//!         data: HostSymbol::hidden("kernels_fatbin"),
//!         wrapper: HostSymbol::hidden("kernels_fatbin_wrapper"),
//!     }],
//! )?;
//! assert!(object.starts_with(b"\x7fELF"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::collections::BTreeMap;

use object::write::{Object, Relocation, SectionId, Symbol, SymbolId, SymbolSection};
use object::{
    Architecture, BinaryFormat, Endianness, RelocationEncoding, RelocationFlags, RelocationKind, SectionFlags,
    SectionKind, SymbolFlags, SymbolKind, SymbolScope, elf,
};

use super::host_sections::{
    HIP_FATBIN_ALIGN, HIP_FATBIN_SECTION, HIP_WRAPPER_MAGIC, HIP_WRAPPER_SECTION, LLVM_OFFLOADING_ALIGN,
    LLVM_OFFLOADING_SECTION, NV_FATBIN_ALIGN, NV_FATBIN_SECTION, NV_WRAPPER_MAGIC, NV_WRAPPER_SECTION,
    SHT_LLVM_OFFLOADING, WRAPPER_ALIGN, WRAPPER_DATA_OFFSET, WRAPPER_SIZE, WRAPPER_VERSION,
};
use super::{WriteError, bundle, fatbin, offload_binary};
use crate::ReadError;

/// The processor of the host. Objects are 64-bit little-endian ELF.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HostArch {
    /// x86-64.
    X86_64,
    /// AArch64.
    Aarch64,
}

/// Who may refer to a symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Visibility {
    /// This object alone.
    Local,
    /// Whatever is linked into the same program or library.
    Hidden,
    /// Other libraries, too.
    Exported,
}

/// A symbol of the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct HostSymbol<'a> {
    /// Its name.
    pub name: &'a str,
    /// Who may refer to it.
    pub visibility: Visibility,
}

impl<'a> HostSymbol<'a> {
    /// A symbol that this object alone knows.
    #[must_use]
    pub fn local(name: &'a str) -> Self {
        Self {
            name,
            visibility: Visibility::Local,
        }
    }

    /// A symbol for what is linked into the same program or library.
    #[must_use]
    pub fn hidden(name: &'a str) -> Self {
        Self {
            name,
            visibility: Visibility::Hidden,
        }
    }
}

/// Device code for the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DeviceCode<'a> {
    /// A fat binary in `.nv_fatbin`, and its wrapper in `.nvFatBinSegment`.
    Fatbin {
        /// The fat binary.
        bytes: &'a [u8],
        /// The symbol at the fat binary.
        data: HostSymbol<'a>,
        /// The symbol at the wrapper, which `__cudaRegisterFatBinary` takes.
        wrapper: HostSymbol<'a>,
    },
    /// A bundle for HIP in `.hip_fatbin`, and its wrapper in `.hipFatBinSegment`.
    HipBundle {
        /// The bundle, compressed or not.
        bytes: &'a [u8],
        /// The symbol at the bundle.
        data: HostSymbol<'a>,
        /// The symbol at the wrapper, which `__hipRegisterFatBinary` takes.
        wrapper: HostSymbol<'a>,
    },
    /// Offload binaries in `.llvm.offloading`, for clang's linker wrapper. They have no symbol.
    Offload {
        /// One offload binary or more.
        bytes: &'a [u8],
    },
}

/// Writes a relocatable object with `parts`, which follow each other within a section in this order.
///
/// The same parts give the same bytes.
///
/// # Errors
///
/// [`WriteError`]; the fat binary, bundle and offload binaries are checked to be such.
pub fn write(arch: HostArch, parts: &[DeviceCode<'_>]) -> Result<Vec<u8>, WriteError> {
    if parts.is_empty() {
        return Err(WriteError::Empty(
            "a host object needs device code: there is none to put into it",
        ));
    }
    let mut writer = Writer::new(arch);
    for part in parts {
        match *part {
            DeviceCode::Fatbin { bytes, data, wrapper } => {
                fatbin::read(bytes).map_err(unfit(NV_FATBIN_SECTION))?;
                writer.wrapped(&NVIDIA, bytes, data, wrapper)?;
            }
            DeviceCode::HipBundle { bytes, data, wrapper } => {
                if !bundle::is_binary_bundle(bytes) {
                    return Err(WriteError::Refused(format!(
                        "what is to go into {HIP_FATBIN_SECTION} is no offload bundle: it starts with neither \
                         __CLANG_OFFLOAD_BUNDLE__ nor CCOB"
                    )));
                }
                writer.wrapped(&HIP, bytes, data, wrapper)?;
            }
            DeviceCode::Offload { bytes } => {
                offload_binary::read(bytes).map_err(unfit(LLVM_OFFLOADING_SECTION))?;
                writer.offload(bytes);
            }
        }
    }
    writer.object.write().map_err(unwritable)
}

fn unwritable(error: object::write::Error) -> WriteError {
    WriteError::Refused(format!("the host object could not be written: {error}"))
}

fn unfit(section: &str) -> impl Fn(ReadError) -> WriteError {
    move |source| WriteError::Input {
        place: format!("what is to go into {section}"),
        source,
    }
}

/// The sections of one runtime.
struct Runtime {
    data_section: &'static str,
    data_align: u64,
    wrapper_section: &'static str,
    wrapper_magic: u32,
}

const NVIDIA: Runtime = Runtime {
    data_section: NV_FATBIN_SECTION,
    data_align: NV_FATBIN_ALIGN,
    wrapper_section: NV_WRAPPER_SECTION,
    wrapper_magic: NV_WRAPPER_MAGIC,
};

const HIP: Runtime = Runtime {
    data_section: HIP_FATBIN_SECTION,
    data_align: HIP_FATBIN_ALIGN,
    wrapper_section: HIP_WRAPPER_SECTION,
    wrapper_magic: HIP_WRAPPER_MAGIC,
};

struct Writer {
    object: Object<'static>,
    sections: BTreeMap<&'static str, SectionId>,
    symbols: BTreeMap<String, SymbolId>,
}

impl Writer {
    fn new(arch: HostArch) -> Self {
        let architecture = match arch {
            HostArch::X86_64 => Architecture::X86_64,
            HostArch::Aarch64 => Architecture::Aarch64,
        };
        let mut writer = Self {
            object: Object::new(BinaryFormat::Elf, architecture, Endianness::Little),
            sections: BTreeMap::new(),
            symbols: BTreeMap::new(),
        };
        // Without it, the linker would make the stack of the whole program executable.
        writer.section(".note.GNU-stack", elf::SHT_PROGBITS, elf::SectionFlags(0));
        writer
    }

    /// The section with this name, which is created when it is asked for first.
    fn section(&mut self, name: &'static str, kind: elf::SectionType, flags: elf::SectionFlags) -> SectionId {
        if let Some(&section) = self.sections.get(name) {
            return section;
        }
        let section = self
            .object
            .add_section(Vec::new(), name.into(), SectionKind::ReadOnlyData);
        self.object.section_mut(section).flags = SectionFlags::Elf {
            sh_type: kind,
            sh_flags: flags,
        };
        self.sections.insert(name, section);
        section
    }

    fn offload(&mut self, bytes: &[u8]) {
        let section = self.section(
            LLVM_OFFLOADING_SECTION,
            elf::SectionType(SHT_LLVM_OFFLOADING),
            elf::SHF_EXCLUDE,
        );
        self.object.append_section_data(section, bytes, LLVM_OFFLOADING_ALIGN);
    }

    fn wrapped(
        &mut self,
        runtime: &Runtime,
        bytes: &[u8],
        data: HostSymbol<'_>,
        wrapper: HostSymbol<'_>,
    ) -> Result<(), WriteError> {
        let section = self.section(runtime.data_section, elf::SHT_PROGBITS, elf::SHF_ALLOC);
        let offset = self.object.append_section_data(section, bytes, runtime.data_align);
        let data = self.symbol(data, section, offset, bytes.len() as u64)?;

        let mut fields = Vec::new();
        fields.extend(runtime.wrapper_magic.to_le_bytes());
        fields.extend(WRAPPER_VERSION.to_le_bytes());
        // Two pointers: the linker fills in the first, and the second stays null.
        fields.resize(WRAPPER_SIZE as usize, 0);
        let flags = elf::SHF_ALLOC | elf::SHF_WRITE;
        let section = self.section(runtime.wrapper_section, elf::SHT_PROGBITS, flags);
        let offset = self.object.append_section_data(section, &fields, WRAPPER_ALIGN);
        self.symbol(wrapper, section, offset, WRAPPER_SIZE)?;
        let relocation = Relocation {
            offset: offset + WRAPPER_DATA_OFFSET,
            symbol: data,
            addend: 0,
            flags: RelocationFlags::Generic {
                kind: RelocationKind::Absolute,
                encoding: RelocationEncoding::Generic,
                size: 64,
            },
        };
        self.object.add_relocation(section, relocation).map_err(unwritable)?;
        Ok(())
    }

    fn symbol(
        &mut self,
        symbol: HostSymbol<'_>,
        section: SectionId,
        value: u64,
        size: u64,
    ) -> Result<SymbolId, WriteError> {
        let name = symbol.name.to_owned();
        if name.is_empty() || name.contains('\0') {
            return Err(WriteError::Refused(format!(
                "{name:?} cannot be the name of a symbol: it is empty or has a NUL byte"
            )));
        }
        if self.symbols.contains_key(&name) {
            return Err(WriteError::Refused(format!(
                "two symbols of the host object are called {name:?}"
            )));
        }
        let id = self.object.add_symbol(Symbol {
            name: name.clone().into_bytes(),
            value,
            size,
            kind: SymbolKind::Data,
            scope: match symbol.visibility {
                Visibility::Local => SymbolScope::Compilation,
                Visibility::Hidden => SymbolScope::Linkage,
                Visibility::Exported => SymbolScope::Dynamic,
            },
            weak: false,
            section: SymbolSection::Section(section),
            flags: SymbolFlags::None,
        });
        self.symbols.insert(name, id);
        Ok(id)
    }
}

#[cfg(test)]
#[path = "host_object_tests.rs"]
mod tests;
