//! The offload entries and device images of a host file.

use std::collections::BTreeSet;

use super::{
    check::{FoundEntry, FoundImage},
    check_elf::{HostFile, Pointee, u16_at, u32_at, u64_at},
    layout::{ENTRY_VERSION, EntryLayout, ImageForm, SHARED_SECTION},
};
use crate::{
    container::{
        bundle, fatbin,
        host_sections::{HIP_FATBIN_SECTION, LLVM_OFFLOADING_SECTION, NV_FATBIN_SECTION, SHT_LLVM_OFFLOADING},
        offload_binary,
    },
    image::elf::{ET_REL, Elf, SHT_DYNSYM, SHT_SYMTAB},
    target::CodeObjectVersion,
};

/// The sections with entries of any release.
pub(super) const SECTIONS: [&str; 3] = ["cuda_offloading_entries", "hip_offloading_entries", SHARED_SECTION];

const EM_CUDA: u16 = 190;
const EM_AMDGPU: u16 = 224;
/// Most bytes that compressed bundles may inflate to.
const BUDGET: u64 = 1 << 30;

/// All entries, and what is wrong with those that cannot be read.
///
/// Sections and names may share bytes, so that a small file could describe very many: both are counted against its size.
pub(super) fn entries(file: &HostFile<'_>, file_size: usize, problems: &mut Vec<String>) -> Vec<FoundEntry> {
    let mut found = Vec::new();
    let (mut section_bytes, mut name_bytes) = (0usize, 0usize);
    for name in SECTIONS {
        for (index, section) in file.sections(name) {
            let Ok(contents) = file.elf.contents(section) else {
                problems.push(format!("the section {name} reaches behind the end of the file"));
                continue;
            };
            section_bytes = section_bytes.saturating_add(contents.len());
            if section_bytes > file_size || name_bytes > file_size {
                problems.push("the sections with entries, or their names, overlap".to_owned());
                return found;
            }
            let layout = layout_of(file, index, contents);
            let size = usize::try_from(layout.size()).unwrap_or(usize::MAX);
            if contents.len() % size != 0 {
                let bytes = contents.len();
                problems.push(format!(
                    "the section {name} has {bytes} bytes, which are no whole number of entries"
                ));
            }
            for (number, record) in contents.chunks_exact(size).enumerate() {
                let offset = (number * size) as u64;
                match entry(file, index, name, layout, offset, record) {
                    Some(entry) => {
                        name_bytes = name_bytes.saturating_add(entry.name.len());
                        found.push(entry);
                        if name_bytes > file_size {
                            break;
                        }
                    }
                    None => problems.push(format!("the entry at {offset:#x} in the section {name} has no name")),
                }
            }
        }
    }
    found
}

/// The long layout begins with eight zero bytes, a version and a language; the short one with a pointer.
fn layout_of(file: &HostFile<'_>, section: usize, contents: &[u8]) -> EntryLayout {
    let size = EntryLayout::Clang21.size() as usize;
    let is_long = |(number, record): (usize, &[u8])| {
        u64_at(record, 0) == Some(0)
            && u16_at(record, 8) == Some(ENTRY_VERSION)
            && file.pointee(section, (number * size) as u64) == Some(Pointee::Null)
    };
    match contents.len().is_multiple_of(size) && contents.chunks_exact(size).enumerate().all(is_long) {
        true => EntryLayout::Clang21,
        false => EntryLayout::Clang15,
    }
}

fn entry(
    file: &HostFile<'_>,
    section: usize,
    section_name: &'static str,
    layout: EntryLayout,
    offset: u64,
    record: &[u8],
) -> Option<FoundEntry> {
    let at = |offset: u64| usize::try_from(offset).ok();
    let name = file.pointee(section, offset + layout.address_offset() + 8)?;
    Some(FoundEntry {
        section: section_name,
        bytes: layout.size(),
        name: file.text(name)?.to_owned(),
        size: u64_at(record, at(layout.size_offset())?)?,
        flags: u32_at(record, at(layout.flags_offset())?)?,
        kind: match layout {
            EntryLayout::Clang20 | EntryLayout::Clang21 => u16_at(record, 10),
            EntryLayout::Clang15 | EntryLayout::Clang18 => None,
        },
        has_address: file.pointee(section, offset + layout.address_offset()) != Some(Pointee::Null),
        retained: file.is_retained(section),
    })
}

/// The images for clang's linker wrapper.
pub(super) fn images(file: &HostFile<'_>, file_size: usize, problems: &mut Vec<String>) -> Vec<FoundImage> {
    let mut found = Vec::new();
    let mut total = 0u64;
    for (_, section) in file.sections(LLVM_OFFLOADING_SECTION) {
        if section.kind != SHT_LLVM_OFFLOADING {
            problems.push(format!(
                "the section {LLVM_OFFLOADING_SECTION} is of type {:#x} instead of {SHT_LLVM_OFFLOADING:#x}, and every \
                 clang passes over it (llvm-objcopy --set-section-type {LLVM_OFFLOADING_SECTION}={SHT_LLVM_OFFLOADING:#x})",
                section.kind
            ));
            continue;
        }
        total = total.saturating_add(section.size);
        if total > file_size as u64 {
            problems.push(format!("the sections {LLVM_OFFLOADING_SECTION} overlap"));
            break;
        }
        let binaries = file
            .elf
            .contents(section)
            .map_err(|error| error.to_string())
            .and_then(|contents| offload_binary::read(contents).map_err(|error| error.to_string()));
        match binaries {
            Err(error) => problems.push(format!("the section {LLVM_OFFLOADING_SECTION} cannot be read: {error}")),
            Ok(binaries) => {
                for binary in binaries {
                    found.extend(binary.entries.iter().map(|entry| FoundImage {
                        version: Some(binary.version),
                        kind: Some(entry.offload_kind),
                        arch: entry.arch().unwrap_or_default().to_owned(),
                        form: form_of(&entry.image),
                        symbols: symbols_of(&entry.image),
                    }));
                }
            }
        }
    }
    found
}

/// The images of a fat binary or bundle, which are for the runtime.
pub(super) fn finished_images(file: &HostFile<'_>, problems: &mut Vec<String>) -> Vec<FoundImage> {
    let mut found = Vec::new();
    let mut add = |arch: String, bytes: &[u8]| {
        found.push(FoundImage {
            version: None,
            kind: None,
            arch,
            form: form_of(bytes),
            symbols: symbols_of(bytes),
        });
    };
    for (_, section) in file.sections(NV_FATBIN_SECTION) {
        let mut rest = file.elf.contents(section).unwrap_or_default();
        while !rest.is_empty() {
            // Objects of nvcc leave zeros between fat binaries.
            let fatbin = match fatbin::read_first(rest) {
                Ok(fatbin) => fatbin,
                Err(error) => {
                    problems.push(format!("the section {NV_FATBIN_SECTION} cannot be read: {error}"));
                    break;
                }
            };
            for entry in &fatbin.entries {
                match entry.payload() {
                    Ok(payload) => add(entry.arch.to_string(), &payload),
                    Err(error) => problems.push(format!("an image in {NV_FATBIN_SECTION} cannot be read: {error}")),
                }
            }
            let size = fatbin.size.next_multiple_of(8);
            rest = rest.get(size.max(8)..).unwrap_or_default();
            let zeros = rest.iter().take_while(|byte| **byte == 0).count();
            rest = rest.get(zeros..).unwrap_or_default();
        }
    }
    for (_, section) in file.sections(HIP_FATBIN_SECTION) {
        let contents = file.elf.contents(section).unwrap_or_default();
        match bundle::read_all_within(contents, BUDGET) {
            Err(error) => problems.push(format!("the section {HIP_FATBIN_SECTION} cannot be read: {error}")),
            Ok(bundles) => {
                for bundle in &bundles {
                    for entry in bundle.entries().filter(|entry| !entry.is_host()) {
                        add(entry.id.to_owned(), entry.bytes);
                    }
                }
            }
        }
    }
    found
}

/// What an image is, from its first bytes.
pub(super) fn form_of(bytes: &[u8]) -> Option<ImageForm> {
    if bytes.starts_with(b"BC\xc0\xde") {
        return Some(ImageForm::Bitcode);
    }
    let Ok(elf) = Elf::parse(bytes) else {
        let start = bytes.get(..4096).unwrap_or(bytes);
        let is_ptx = start.windows(8).any(|window| window == b".version");
        return is_ptx.then_some(ImageForm::Ptx);
    };
    let header = elf.header();
    match (header.machine, header.kind == ET_REL) {
        (EM_CUDA, true) => Some(ImageForm::RelocatableCubin),
        (EM_CUDA, false) => Some(ImageForm::LinkedCubin),
        (EM_AMDGPU, true) => CodeObjectVersion::from_abi_version(header.abi_version).map(ImageForm::AmdObject),
        (EM_AMDGPU, false) => Some(ImageForm::AmdLinked),
        _ => None,
    }
}

/// The names that an image defines for others; none if that cannot be read from it.
pub(super) fn symbols_of(bytes: &[u8]) -> Option<BTreeSet<String>> {
    let elf = Elf::parse(bytes).ok()?;
    let symbols = [SHT_SYMTAB, SHT_DYNSYM].map(|kind| elf.symbols(kind).unwrap_or_default());
    let defined = symbols
        .iter()
        .flatten()
        .filter(|symbol| !symbol.is_undefined() && !symbol.is_local());
    let mut total = 0usize;
    let mut names = BTreeSet::new();
    for symbol in defined {
        // Names may share bytes.
        total = total.saturating_add(symbol.name.len());
        if total > bytes.len() {
            return None;
        }
        names.insert(symbol.name.to_owned());
    }
    Some(names)
}
