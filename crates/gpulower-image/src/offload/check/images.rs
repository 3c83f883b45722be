//! The device images of a host file.

use super::super::openmp::{CALL_KEY, KernelCall};
use super::{
    contents::{HostContents, Part},
    ir::LlvmIrReader,
    report::FoundImage,
    symbols::{form_of, made_for, symbols_of},
};
use crate::container::{
    bundle, fatbin,
    host_sections::{HIP_FATBIN_SECTION, LLVM_OFFLOADING_SECTION, NV_FATBIN_SECTION, SHT_LLVM_OFFLOADING},
    offload_binary,
};

/// Reads images, within limits in proportion to the file: several may name the same bytes, and compressed ones grow.
struct Reader<'a> {
    llvm_ir: Option<&'a dyn LlvmIrReader>,
    found: Vec<FoundImage>,
    problems: &'a mut Vec<String>,
    /// Bytes that may still be read.
    left: u64,
}

impl<'a> Reader<'a> {
    fn new(file: &impl HostContents, llvm_ir: Option<&'a dyn LlvmIrReader>, problems: &'a mut Vec<String>) -> Self {
        Self {
            llvm_ir,
            found: Vec::new(),
            problems,
            left: (file.size() as u64).saturating_mul(64).saturating_add(64 << 20),
        }
    }

    fn take(&mut self, bytes: u64) -> Option<()> {
        let left = self.left.checked_sub(bytes);
        if left.is_none() {
            self.problems.push(
                "the images are larger than those of a file of this size can be; the rest is not read".to_owned(),
            );
        }
        self.left = left?;
        Some(())
    }

    fn add(&mut self, arch: String, bytes: &[u8]) -> Option<&mut FoundImage> {
        self.take(bytes.len() as u64)?;
        self.found.push(FoundImage {
            version: None,
            kind: None,
            marked: None,
            triple: None,
            call: None,
            arch,
            form: form_of(bytes),
            made_for: made_for(bytes),
            symbols: symbols_of(bytes, self.llvm_ir),
        });
        self.found.last_mut()
    }

    /// The images of one section for clang's linker wrapper. None when reading has to end.
    fn offload_binaries(&mut self, part: &Part<'_>) -> Option<()> {
        let contents = part
            .contents
            .ok_or_else(|| "it reaches behind the end of the file".to_owned());
        let binaries = contents.and_then(|contents| offload_binary::read(contents).map_err(|error| error.to_string()));
        let binaries = match binaries {
            Ok(binaries) => binaries,
            Err(error) => {
                self.problems
                    .push(format!("the section {LLVM_OFFLOADING_SECTION} cannot be read: {error}"));
                return Some(());
            }
        };
        for binary in binaries {
            for entry in &binary.entries {
                let image = self.add(entry.arch().unwrap_or_default().to_owned(), &entry.image)?;
                image.version = Some(binary.version);
                image.kind = Some(entry.offload_kind);
                image.marked = Some(entry.image_kind);
                image.triple = entry.triple().map(str::to_owned);
                image.call = entry.string(CALL_KEY).and_then(KernelCall::named);
            }
        }
        Some(())
    }

    /// The images of fat binaries, one after the other.
    fn fat_binaries(&mut self, mut rest: &[u8]) -> Option<()> {
        while !rest.is_empty() {
            let fatbin = match fatbin::read_first(rest) {
                Ok(fatbin) => fatbin,
                Err(error) => {
                    self.problems
                        .push(format!("the section {NV_FATBIN_SECTION} cannot be read: {error}"));
                    break;
                }
            };
            for entry in &fatbin.entries {
                self.take(entry.uncompressed_size)?;
                match entry.payload() {
                    Ok(payload) => {
                        self.add(entry.arch.to_string(), &payload)?;
                    }
                    Err(error) => self
                        .problems
                        .push(format!("an image in {NV_FATBIN_SECTION} cannot be read: {error}")),
                }
            }
            // Objects of nvcc leave zeros between fat binaries.
            let size = fatbin.size.next_multiple_of(8);
            rest = rest.get(size.max(8)..).unwrap_or_default();
            let zeros = rest.iter().take_while(|byte| **byte == 0).count();
            rest = rest.get(zeros..).unwrap_or_default();
        }
        Some(())
    }

    /// The images of bundles, one after the other.
    fn bundles(&mut self, contents: &[u8]) -> Option<()> {
        match bundle::read_all_within(contents, self.left) {
            Err(error) => self
                .problems
                .push(format!("the section {HIP_FATBIN_SECTION} cannot be read: {error}")),
            Ok(bundles) => {
                for bundle in &bundles {
                    for entry in bundle.entries().filter(|entry| !entry.is_host()) {
                        self.add(entry.id.to_owned(), entry.bytes)?;
                    }
                }
            }
        }
        Some(())
    }
}

/// The images for clang's linker wrapper.
pub(super) fn images(
    file: &impl HostContents,
    llvm_ir: Option<&dyn LlvmIrReader>,
    problems: &mut Vec<String>,
) -> Vec<FoundImage> {
    let mut reader = Reader::new(file, llvm_ir, problems);
    let mut total = 0usize;
    for part in file.parts(&|name| name == LLVM_OFFLOADING_SECTION) {
        if part.kind != SHT_LLVM_OFFLOADING {
            reader.problems.push(format!(
                "the section {LLVM_OFFLOADING_SECTION} is of type {:#x} instead of {SHT_LLVM_OFFLOADING:#x}, and every \
                 clang passes over it (llvm-objcopy --set-section-type {LLVM_OFFLOADING_SECTION}={SHT_LLVM_OFFLOADING:#x})",
                part.kind
            ));
            continue;
        }
        total = total.saturating_add(part.contents.map_or(0, <[u8]>::len));
        if total > file.size() {
            let problem = format!("the sections {LLVM_OFFLOADING_SECTION} overlap");
            reader.problems.push(problem);
            break;
        }
        if reader.offload_binaries(&part).is_none() {
            break;
        }
    }
    reader.found
}

/// The images of a fat binary or bundle, and offload binaries in a program, which are for the runtime.
pub(super) fn finished_images(
    file: &impl HostContents,
    llvm_ir: Option<&dyn LlvmIrReader>,
    problems: &mut Vec<String>,
) -> Vec<FoundImage> {
    let mut reader = Reader::new(file, llvm_ir, problems);
    let mut total = 0usize;
    let is_program = file.kind().is_linked_host();
    let is_wanted = |name: &str| {
        [NV_FATBIN_SECTION, HIP_FATBIN_SECTION].contains(&name) || (is_program && name == LLVM_OFFLOADING_SECTION)
    };
    for part in file.parts(&is_wanted) {
        let contents = part.contents.unwrap_or_default();
        total = total.saturating_add(contents.len());
        if total > file.size() {
            reader.problems.push(format!("the sections {} overlap", part.section));
            break;
        }
        let read = match part.section {
            NV_FATBIN_SECTION => reader.fat_binaries(contents),
            LLVM_OFFLOADING_SECTION => reader.offload_binaries(&part),
            _ => reader.bundles(contents),
        };
        if read.is_none() {
            break;
        }
    }
    reader.found
}
