//! Files for a CPU that hold device code: ELF files and archives of them.

use super::elf_image::section_sizes;
use super::embedded::is_searched;
use super::model::Container;
use super::walk::{Place, Walk, kind_of};
use crate::FileKind;
use crate::container::archive;
use crate::container::bundle::{BundleId, OffloadKind, section_id};
use crate::container::host_sections::{
    HIP_FATBIN_SECTION, LLVM_OFFLOADING_SECTION, NV_FATBIN_SECTION, SHT_LLVM_OFFLOADING,
};
use crate::image::elf::{Elf, SHT_NOBITS, Section};

/// `sh_type` of a section whose meaning is the program's own.
const SHT_PROGBITS: u32 = 1;

/// The sections that hold containers one after the other. nvcc puts relocatable device code (`-rdc=true`) into
/// `__nv_relfatbin` (observed with 13.0.88).
const DEVICE_SECTIONS: [&str; 4] = [
    NV_FATBIN_SECTION,
    "__nv_relfatbin",
    HIP_FATBIN_SECTION,
    LLVM_OFFLOADING_SECTION,
];

impl Walk<'_> {
    /// Lists a host file and looks into its sections.
    pub(super) fn host_elf(&mut self, bytes: &[u8], place: &Place<'_>) {
        let mut container = Container::new(FileKind::HostObject, bytes.len());
        let elf = match Elf::parse(bytes) {
            Ok(elf) => elf,
            Err(error) => {
                container.error = Some(error.to_string());
                self.add_container(container, bytes.len(), place);
                return;
            }
        };
        container.kind = FileKind::of(bytes);
        container.machine = Some(machine(elf.header().machine));
        match section_sizes(&elf, bytes.len()) {
            Ok(sections) => container.sections = sections,
            Err(error) => container.error = Some(error),
        }
        // The first section of an ELF file is empty, and not among the sizes.
        for (size, section) in container.sections.iter_mut().zip(elf.sections().iter().skip(1)) {
            size.device = holds_device_code(section);
        }
        let unmarked =
            |section: &&Section<'_>| section.name == LLVM_OFFLOADING_SECTION && section.kind != SHT_LLVM_OFFLOADING;
        if let Some(section) = elf.sections().iter().find(unmarked) {
            container.remarks.push(format!(
                "{LLVM_OFFLOADING_SECTION} has section type {:#x} instead of {SHT_LLVM_OFFLOADING:#x}: clang's linker wrapper does \
                 not look into it",
                section.kind
            ));
        }
        let Some(inside) = self.add_container(container, bytes.len(), place) else {
            return;
        };
        for section in elf.sections() {
            let device = holds_device_code(section);
            let searched = section.kind == SHT_PROGBITS && is_searched(section.name);
            if !device && !searched {
                continue;
            }
            let there = Place {
                label: Some(section.name),
                offset: place.at(section.offset),
                ..inside
            };
            match elf.contents(section) {
                Ok(contents) if device => self.section(contents, &there),
                Ok(contents) => match self.limits.read(contents.len()) {
                    Ok(()) => self.constants(contents, &there),
                    Err(error) => self.container_error(&inside, error),
                },
                Err(error) => self.container_error(&inside, error.to_string()),
            }
        }
    }

    fn section(&mut self, contents: &[u8], place: &Place<'_>) {
        // One section for each entry of a bundle: the bundler states the target in the section's name.
        let entry = place.label.and_then(section_id);
        let id: Option<BundleId> = entry.and_then(|id| id.parse().ok());
        if contents.is_empty() || id.as_ref().is_some_and(|id| id.kind() == OffloadKind::Host) {
            return;
        }
        self.inspection.device_bytes = self.inspection.device_bytes.saturating_add(contents.len() as u64);
        let inside = Place {
            in_device_code: true,
            ..*place
        };
        if entry.is_some() {
            let target = id.as_ref().and_then(BundleId::target_id);
            self.content(contents, &Place { target, ..inside });
        } else {
            self.sequence(contents, &inside);
        }
    }

    /// Lists an archive and looks into its members. Those that are no files of a kind that is read are passed over:
    /// archives hold all sorts of files.
    pub(super) fn archive(&mut self, bytes: &[u8], place: &Place<'_>) {
        let (members, error) = archive::read(bytes);
        let mut container = Container::new(FileKind::Archive, bytes.len());
        container.error = error.map(|error| error.to_string());
        let Some(inside) = self.add_container(container, bytes.len(), place) else {
            return;
        };
        for member in members {
            let there = Place {
                label: Some(&member.name),
                offset: place.at(member.offset),
                ..inside
            };
            if kind_of(member.contents).is_some() {
                self.content(member.contents, &there);
            }
        }
    }
}

fn holds_device_code(section: &Section<'_>) -> bool {
    section.kind != SHT_NOBITS
        && (section.kind == SHT_LLVM_OFFLOADING
            || DEVICE_SECTIONS.contains(&section.name)
            || section_id(section.name).is_some())
}

/// Names of `e_machine` (`llvm/BinaryFormat/ELF.h`) for hosts of GPUs.
fn machine(machine: u16) -> String {
    match machine {
        62 => "x86-64".to_owned(),
        183 => "aarch64".to_owned(),
        21 => "ppc64".to_owned(),
        243 => "riscv".to_owned(),
        247 => "bpf".to_owned(),
        258 => "loongarch".to_owned(),
        other => format!("machine {other}"),
    }
}
