//! Reader of AMDGPU code objects: target, kernels and their resources, undefined symbols.
//!
//! [`Hsaco::read`] takes linked code objects (`.hsaco`, ELF `ET_DYN`) and the relocatable objects that
//! LLVM writes (`ET_REL`), which carry the same metadata. It is safe on arbitrary bytes.

use std::collections::{BTreeSet, HashMap};

use super::elf::{EM_AMDGPU, ET_DYN, ET_REL, Elf, SHT_DYNSYM, SHT_SYMTAB, Symbol};
use super::hsaco_flags::{ELFOSABI_AMDGPU_HSA, TargetFlags};
use super::hsaco_metadata;
use super::resource::KernelResources;
use crate::ReadError;
use crate::target::CodeObjectVersion;

/// Owner and type of the note that holds the metadata (`NT_AMDGPU_METADATA`, code object V3 and later).
const METADATA_NOTE: (&[u8], u32) = (b"AMDGPU", 32);

/// `st_info & 15` of a function.
const STT_FUNC: u8 = 2;

/// One kernel of a code object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HsacoKernel {
    /// Symbol of the kernel descriptor, which the loader looks up: the kernel's name with `.kd`.
    pub descriptor: String,
    /// Alignment of the parameter block, in bytes.
    pub parameter_alignment: Option<u32>,
    /// Block shape that the source hints at.
    pub block_hint: Option<[u32; 3]>,
    /// Static resource usage.
    ///
    /// `vgprs` is `.vgpr_count` as the compiler wrote it. On processors with one register file for both
    /// kinds (gfx90a, gfx942, gfx950) that is the total which decides occupancy, `agprs` included.
    pub resources: KernelResources,
}

/// A code object, read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hsaco<'data> {
    /// Whether it is linked (`ET_DYN`), as a loader needs it, or a relocatable object.
    pub linked: bool,
    /// Version of the code object format.
    pub version: CodeObjectVersion,
    /// Processor and feature settings, from the ELF header.
    pub target: TargetFlags,
    /// `amdhsa.target` of the metadata, as `amdgcn-amd-amdhsa--gfx90a:sramecc-:xnack+`.
    pub target_id: Option<String>,
    /// `amdhsa.version` of the metadata: (1, 1) for V4, (1, 2) for V5 and V6.
    pub metadata_version: Option<(u32, u32)>,
    /// The kernels, in the order of the metadata. A file linked of several objects has several metadata
    /// notes, whose kernels are joined, as AMD's runtime does.
    pub kernels: Vec<HsacoKernel>,
    /// Kernel descriptors among the file's global symbols (`K.kd`), sorted.
    pub descriptors: Vec<&'data str>,
    /// Symbols that the file uses and does not define, sorted; weak ones, which may stay undefined, are
    /// not among them. A loader refuses a linked code object with any.
    pub undefined: Vec<&'data str>,
}

impl<'data> Hsaco<'data> {
    /// Reads a code object.
    ///
    /// # Errors
    ///
    /// [`ReadError`], which names the offset or the key that is wrong. A file without kernels but with a
    /// metadata note is read.
    pub fn read(bytes: &'data [u8]) -> Result<Self, ReadError> {
        let elf = Elf::parse(bytes)?;
        let header = *elf.header();
        if header.machine != EM_AMDGPU
            || header.os_abi != ELFOSABI_AMDGPU_HSA
            || !matches!(header.kind, ET_DYN | ET_REL)
        {
            let (machine, os_abi, kind) = (header.machine, header.os_abi, header.kind);
            return Err(ReadError::other_format(format!(
                "not an AMDGPU code object: ELF machine {machine}, OS ABI {os_abi}, type {kind} instead of machine 224, \
                 OS ABI 64 (amdhsa), type 1 (relocatable) or 3 (shared)"
            )));
        }
        let abi_version = header.abi_version;
        let version = CodeObjectVersion::from_abi_version(abi_version).ok_or_else(|| {
            ReadError::not_read(format!(
                "code object with ELF ABI version {abi_version}: only 2, 3 and 4 (code object V4, V5 and V6) are read; \
                 recompile with -mcode-object-version=4, 5 or 6"
            ))
        })?;
        let linked = header.kind == ET_DYN;
        let global = elf.symbols(if linked { SHT_DYNSYM } else { SHT_SYMTAB })?;

        let mut hsaco = Self {
            linked,
            version,
            target: TargetFlags::from_e_flags(header.flags),
            target_id: None,
            metadata_version: None,
            kernels: Vec::new(),
            descriptors: sorted(&global, |symbol| !symbol.is_undefined() && symbol.name.ends_with(".kd")),
            undefined: sorted(&global, |symbol| symbol.is_undefined() && !symbol.is_weak()),
        };
        hsaco.read_metadata(&elf)?;
        hsaco.measure_code(&global);
        Ok(hsaco)
    }

    /// Resource usage of each kernel.
    pub fn resources(&self) -> impl Iterator<Item = &KernelResources> {
        self.kernels.iter().map(|kernel| &kernel.resources)
    }

    fn read_metadata(&mut self, elf: &Elf<'_>) -> Result<(), ReadError> {
        let mut found = false;
        for note in elf.notes()? {
            if (note.owner, note.kind) != METADATA_NOTE {
                continue;
            }
            let metadata = hsaco_metadata::decode(note.contents, note.offset)?;
            found = true;
            self.kernels.extend(metadata.kernels);
            self.target_id = self.target_id.take().or(metadata.target);
            self.metadata_version = self.metadata_version.or(metadata.version);
        }
        if found {
            return Ok(());
        }
        Err(ReadError::not_read(
            "the code object has no metadata note (owner AMDGPU, type 32): its kernels cannot be told",
        ))
    }

    /// Fills in the code sizes, which only the symbol table has.
    fn measure_code(&mut self, symbols: &[Symbol<'_>]) {
        let sizes: HashMap<&str, u64> = symbols
            .iter()
            .filter(|symbol| symbol.kind == STT_FUNC && !symbol.is_undefined())
            .map(|symbol| (symbol.name, symbol.size))
            .collect();
        for kernel in &mut self.kernels {
            let entry = kernel.descriptor.strip_suffix(".kd");
            kernel.resources.code_bytes = entry.and_then(|entry| sizes.get(entry)).copied();
        }
    }
}

fn sorted<'data>(symbols: &[Symbol<'data>], keep: impl Fn(&Symbol<'data>) -> bool) -> Vec<&'data str> {
    let names: BTreeSet<&str> = symbols
        .iter()
        .filter(|symbol| !symbol.is_local() && keep(symbol))
        .map(|symbol| symbol.name)
        .collect();
    names.into_iter().collect()
}
