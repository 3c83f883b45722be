//! Reads a cubin: what it was compiled for, and what each of its kernels needs.
//!
//! A cubin is an ELF file with machine 190. What is in it besides ELF is not documented; it was established
//! with `cuobjdump` on the output of CUDA 11.8 to 13.0. Spilled bytes are recorded nowhere in the file: they
//! come from the compiler's log ([`CubinInfo::add_log`]).

use std::collections::{HashMap, HashSet};

use super::cubin_attributes::{self as attributes, Attribute};
use super::elf::{self, Elf, SHT_SYMTAB, Section, Symbol};
use super::ptx_log::{FunctionUsage, PtxLog};
use super::resource::{ConstantBank, KernelResources, Parameter};
use crate::ReadError;

/// `EM_CUDA` (`llvm/BinaryFormat/ELF.h`).
const MACHINE: u16 = 190;
/// `e_ident[EI_OSABI]` of the second layout of `e_flags`: everything of CUDA 13, and sm_100 and newer of
/// CUDA 12.8. (LLVM 22 has 41 for `ELFOSABI_CUDA_V2`; ptxas 13.0.88 writes 0x41.)
const OS_ABI_V2: u8 = 0x41;
/// In `st_other` of a function symbol: a kernel. (`STO_CUDA_ENTRY` in `llvm/BinaryFormat/ELF.h`.)
const ENTRY: u8 = 0x10;
/// `STT_FUNC`.
const FUNCTION: u8 = 2;
/// Shared memory that the system reserves at the start of each block's, from sm_90 on; `.nv.shared.KERNEL`
/// includes it whenever that section exists (observed with ptxas 12.0 to 13.0).
const RESERVED_SHARED: u64 = 1024;

/// A device function that was not inlined, with its stack frame.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct DeviceFunction {
    /// Symbol name; `$kernel$function` for one that belongs to a kernel.
    pub name: String,
    /// Bytes of stack frame per call.
    pub frame_bytes: u64,
}

/// What a cubin says about itself.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct CubinInfo {
    /// Architecture number: 90 for sm_90 and sm_90a.
    pub arch: u32,
    /// Whether the code is architecture-specific (`sm_90a`). Family-specific code (`sm_100f`) is not marked
    /// in a cubin.
    pub arch_specific: bool,
    /// `e_ident[EI_ABIVERSION]`: 7 up to CUDA 12.x below sm_100, 8 for the rest.
    pub abi_version: u8,
    /// Whether it is relocatable device code, which still has to be linked.
    pub relocatable: bool,
    /// Whether it holds intermediate ("Mercury") code that the driver finishes: sm_100 and newer.
    pub mercury: bool,
    /// Bytes of global variables.
    pub global_bytes: u64,
    /// Constant banks of the module as a whole (`__constant__` variables are bank 3).
    pub constant_banks: Vec<ConstantBank>,
    /// Kernels, in the order of the symbol table.
    pub kernels: Vec<KernelResources>,
    /// Functions that kernels call.
    pub device_functions: Vec<DeviceFunction>,
}

impl CubinInfo {
    /// The chip's name: `sm_90a`.
    #[must_use]
    pub fn chip(&self) -> String {
        format!("sm_{}{}", self.arch, if self.arch_specific { "a" } else { "" })
    }

    /// Adds to the kernels what only the compiler's log knows: spills, and barriers if they are not in the
    /// file.
    pub fn add_log(&mut self, log: &PtxLog) {
        let usages: HashMap<&str, &FunctionUsage> =
            log.functions.iter().map(|usage| (usage.name.as_str(), usage)).collect();
        for kernel in &mut self.kernels {
            if let Some(usage) = usages.get(kernel.name.as_str()) {
                kernel.spill_store_bytes = usage.spill_stores;
                kernel.spill_load_bytes = usage.spill_loads;
                kernel.barriers = kernel.barriers.or(usage.barriers);
            }
        }
    }
}

/// Reads the cubin in `bytes`.
///
/// # Errors
///
/// [`ReadError`]. No input makes it panic, and what it allocates is proportional to the size of the file.
pub fn read(bytes: &[u8]) -> Result<CubinInfo, ReadError> {
    let elf = Elf::parse(bytes)?;
    let header = *elf.header();
    if header.machine != MACHINE {
        let machine = header.machine;
        let what = match machine {
            224 => " (an AMD GPU code object)",
            62 => " (x86-64 host code)",
            183 => " (AArch64 host code)",
            _ => "",
        };
        return Err(ReadError::other_format(format!(
            "not a cubin: an ELF file for machine {machine} instead of {MACHINE}{what}"
        )));
    }
    let version_2 = header.os_abi == OS_ABI_V2;
    let arch = if version_2 { header.flags >> 8 } else { header.flags } & 0xff;
    // 12.x marks `a` in the flags, 13.0 only in `.nv.compat`.
    let flag = if version_2 { 0x8 } else { 0x800 };
    let file = File::new(&elf)?;
    let arch_specific = header.flags & flag != 0 || file.is_accelerator_target()?;
    let (kernels, device_functions) = file.functions(arch, bytes.len())?;
    Ok(CubinInfo {
        arch,
        arch_specific,
        abi_version: header.abi_version,
        relocatable: header.kind == super::elf::ET_REL,
        mercury: is_mercury(header.os_abi, header.flags),
        global_bytes: file.size(".nv.global").saturating_add(file.size(".nv.global.init")),
        constant_banks: file.constant_banks(""),
        kernels,
        device_functions,
    })
}

/// Whether an ELF header with these fields announces Mercury code (observed by patching headers and reading
/// `fatbinary`'s answer).
pub(super) fn is_mercury(os_abi: u8, flags: u32) -> bool {
    os_abi == OS_ABI_V2 && flags & 0x2 != 0
}

/// A cubin with its sections by name.
struct File<'elf, 'data> {
    elf: &'elf Elf<'data>,
    sections: HashMap<&'data str, &'elf Section<'data>>,
    symbols: Vec<Symbol<'data>>,
    /// `st_other` of each symbol.
    others: Vec<u8>,
    /// Constant banks that there are, of kernels or of the module.
    banks: Vec<u32>,
}

/// What `.nv.info` says about one symbol.
#[derive(Default)]
struct PerSymbol {
    registers: Option<u32>,
    frame: u32,
    minimal_stack: u32,
}

impl<'elf, 'data> File<'elf, 'data> {
    fn new(elf: &'elf Elf<'data>) -> Result<Self, ReadError> {
        let mut sections = HashMap::with_capacity(elf.sections().len());
        let mut has_bank = [false; 18];
        for section in elf.sections() {
            sections.entry(section.name).or_insert(section);
            let bank = section
                .name
                .strip_prefix(".nv.constant")
                .map(|bank| bank.split_once('.').map_or(bank, |(bank, _)| bank));
            if let Some(has) = bank.and_then(|bank| has_bank.get_mut(bank.parse::<usize>().ok()?)) {
                *has = true;
            }
        }
        let symbols = elf.symbols(SHT_SYMTAB)?;
        let mut others = Vec::with_capacity(symbols.len());
        let table = elf.sections().iter().find(|section| section.kind == SHT_SYMTAB);
        if let Some(table) = table {
            // The null symbol is left out of `symbols`, too.
            let (entries, _) = elf.contents(table)?.as_chunks::<24>();
            others.extend(entries.iter().skip(1).map(|entry| entry[5]));
        }
        Ok(Self {
            elf,
            sections,
            symbols,
            others,
            banks: (0..)
                .zip(has_bank)
                .filter(|(_, has)| *has)
                .map(|(bank, _)| bank)
                .collect(),
        })
    }

    fn size(&self, name: &str) -> u64 {
        self.sections.get(name).map_or(0, |section| section.size)
    }

    fn attributes(&self, name: &str) -> Result<Vec<Attribute<'data>>, ReadError> {
        match self.sections.get(name) {
            Some(section) => attributes::read(section.name, self.elf.contents(section)?, section.offset),
            None => Ok(Vec::new()),
        }
    }

    fn is_accelerator_target(&self) -> Result<bool, ReadError> {
        for attribute in self.attributes(".nv.compat")? {
            if attribute.kind == attributes::COMPAT_ACCELERATOR_TARGET {
                return Ok(attribute.byte()? == 1);
            }
        }
        Ok(false)
    }

    /// Sizes of `.nv.constantN` + `suffix`, for the banks that exist: 0 to 17.
    fn constant_banks(&self, suffix: &str) -> Vec<ConstantBank> {
        self.banks
            .iter()
            .filter_map(|&bank| {
                let section = self.sections.get(format!(".nv.constant{bank}{suffix}").as_str())?;
                Some(ConstantBank {
                    bank,
                    bytes: section.size,
                })
            })
            .collect()
    }

    /// Reads the module's `.nv.info`; the key is the index into `symbols`.
    fn module_info(&self) -> Result<HashMap<usize, PerSymbol>, ReadError> {
        let mut info: HashMap<usize, PerSymbol> = HashMap::new();
        for attribute in self.attributes(".nv.info")? {
            let kind = attribute.kind;
            if !matches!(
                kind,
                attributes::REGCOUNT | attributes::FRAME_SIZE | attributes::MIN_STACK_SIZE
            ) {
                continue;
            }
            let (symbol, value) = (attribute.word(0)?, attribute.word(1)?);
            let index = (symbol as usize)
                .checked_sub(1)
                .filter(|&index| index < self.symbols.len())
                .ok_or_else(|| {
                    elf::damaged(
                        format!("attribute {kind:#04x} of section `.nv.info`"),
                        attribute.offset,
                        format!("it speaks of symbol {symbol}, which does not exist"),
                    )
                })?;
            let entry = info.entry(index).or_default();
            match kind {
                attributes::REGCOUNT => entry.registers = Some(value),
                attributes::FRAME_SIZE => entry.frame = value,
                _ => entry.minimal_stack = value,
            }
        }
        Ok(info)
    }

    fn functions(&self, arch: u32, file_size: usize) -> Result<(Vec<KernelResources>, Vec<DeviceFunction>), ReadError> {
        let mut info = self.module_info()?;
        let mut kernels = Vec::new();
        let mut functions = Vec::new();
        let mut stacks = Vec::new();
        let mut names = HashSet::new();
        let (mut name_bytes, mut parameters) = (0usize, 0usize);
        for (index, (symbol, &other)) in self.symbols.iter().zip(&self.others).enumerate() {
            if symbol.kind != FUNCTION || symbol.is_undefined() {
                continue;
            }
            let recorded = info.remove(&index);
            // Each function has a name, and each kernel sections, of its own; where they shared bytes, a small file
            // could describe a large result.
            let damaged = |problem| {
                elf::damaged(
                    "the symbol table".to_owned(),
                    self.sections.get(".symtab").map_or(0, |section| section.offset),
                    problem,
                )
            };
            name_bytes += symbol.name.len();
            if name_bytes > file_size {
                return Err(damaged("names of functions overlap".to_owned()));
            }
            if other & ENTRY == 0 {
                functions.extend(recorded.map(|recorded| DeviceFunction {
                    name: symbol.name.to_owned(),
                    frame_bytes: recorded.frame.into(),
                }));
                continue;
            }
            if !names.insert(symbol.name) {
                return Err(damaged(format!("two kernels are named {:?}", symbol.name)));
            }
            let recorded = recorded.unwrap_or_default();
            stacks.push(recorded.minimal_stack);
            let kernel = self.kernel(symbol.name, &recorded, arch)?;
            // A parameter takes 16 bytes of attributes.
            parameters = parameters.saturating_add(kernel.parameters.len());
            if parameters.saturating_mul(16) > file_size {
                return Err(damaged("attributes of kernels overlap".to_owned()));
            }
            kernels.push(kernel);
        }
        for (kernel, &stack) in kernels.iter_mut().zip(&stacks) {
            // What a kernel calls is within its stack, except through recursion, which counts as nothing
            // (observed with ptxas 13.0.88).
            let prefix = format!("${}$", kernel.name);
            if functions
                .iter()
                .any(|function| function.frame_bytes > stack.into() && function.name.starts_with(&prefix))
            {
                kernel.dynamic_stack = Some(true);
            }
        }
        Ok((kernels, functions))
    }

    fn kernel(&self, name: &str, recorded: &PerSymbol, arch: u32) -> Result<KernelResources, ReadError> {
        let mut kernel = KernelResources {
            name: name.to_owned(),
            registers: recorded.registers,
            scratch_bytes: recorded.frame.into(),
            constant_banks: self.constant_banks(&format!(".{name}")),
            code_bytes: self
                .sections
                .get(format!(".text.{name}").as_str())
                .map(|section| section.size),
            ..KernelResources::default()
        };
        if let Some(section) = self.sections.get(format!(".nv.shared.{name}").as_str()) {
            let reserved = if arch >= 90 { RESERVED_SHARED } else { 0 };
            kernel.reserved_shared_bytes = reserved.min(section.size);
            kernel.shared_bytes = section.size - kernel.reserved_shared_bytes;
        }
        for attribute in self.attributes(&format!(".nv.info.{name}"))? {
            match attribute.kind {
                attributes::MAX_THREADS => {
                    let [x, y, z] = attribute.shape()?;
                    kernel.max_threads_per_block = Some(x.saturating_mul(y).saturating_mul(z));
                }
                attributes::REQNTID => kernel.required_block = Some(attribute.shape()?),
                attributes::CTA_PER_CLUSTER => kernel.cluster = Some(attribute.shape()?),
                attributes::MAX_CLUSTER_RANK => {
                    kernel.max_cluster_rank = Some(attribute.word(0)?);
                }
                attributes::NUM_BARRIERS => kernel.barriers = Some(attribute.byte()?.into()),
                attributes::CBANK_PARAM_SIZE => {
                    kernel.parameter_bytes = Some(attribute.half(0)?.into());
                }
                attributes::KPARAM_INFO => kernel.parameters.push(Parameter {
                    ordinal: attribute.half(4)?.into(),
                    offset: attribute.half(6)?.into(),
                    size: attribute.word(2)? >> 18,
                    ..Parameter::default()
                }),
                attributes::KPARAM_INFO_V2 => kernel.parameters.push(Parameter {
                    ordinal: attribute.half(4)?.into(),
                    offset: attribute.half(6)?.into(),
                    size: attribute.word(2)?,
                    ..Parameter::default()
                }),
                _ => {}
            }
        }
        // The compiler writes them last to first.
        kernel.parameters.sort_by_key(|parameter| parameter.ordinal);
        if kernel.max_threads_per_block.is_none()
            && let Some([x, y, z]) = kernel.required_block
        {
            kernel.max_threads_per_block = Some(x.saturating_mul(y).saturating_mul(z));
        }
        Ok(kernel)
    }
}
