//! Cubins and AMDGPU code objects, described.

use super::model::{DebugInfo, Image, Kernel, SectionSize};
use crate::FileKind;
use crate::ReadError;
use crate::image::elf::{Elf, SHT_NOBITS};
use crate::image::hsaco::Hsaco;
use crate::image::{cubin, producer};

/// Describes a cubin.
pub(super) fn cubin(bytes: &[u8], image: &mut Image) -> Result<(), String> {
    common(bytes, image, producer::of_cubin)?;
    let info = cubin::read(bytes).map_err(|error| error.to_string())?;
    let mut target = info.chip();
    // A cubin does not say that it is family-specific, but ptxas notes its options.
    if !info.arch_specific && asked_for(image, &format!("{target}f")) {
        target.push('f');
    }
    image.target = Some(target);
    image.abi_version = Some(info.abi_version);
    image.mercury = info.mercury;
    image.relocatable = info.relocatable;
    image.kernels = info
        .kernels
        .into_iter()
        .map(|kernel| Kernel::Machine(Box::new(kernel)))
        .collect();
    image.device_functions = info.device_functions;
    Ok(())
}

/// Whether the tool's options name an architecture.
fn asked_for(image: &Image, arch: &str) -> bool {
    let options = image.producer.as_ref().and_then(|producer| producer.options.as_deref());
    options.is_some_and(|options| options.split([' ', '=']).any(|word| word == arch))
}

/// Describes an AMDGPU code object, linked or not.
pub(super) fn amd(bytes: &[u8], image: &mut Image) -> Result<(), String> {
    common(bytes, image, producer::of_comment)?;
    let code = Hsaco::read(bytes).map_err(|error| error.to_string())?;
    image.kind = if code.linked {
        FileKind::Hsaco
    } else {
        FileKind::AmdObject
    };
    image.target = Some(code.target.to_string());
    image.code_object_version = Some(code.version.number());
    image.relocatable = !code.linked;
    image.undefined = owned(&code.undefined, bytes.len())?;
    image.kernels = code
        .kernels
        .into_iter()
        .map(|kernel| Kernel::Machine(Box::new(kernel.resources)))
        .collect();
    Ok(())
}

/// Names that may share bytes of a string table, copied as long as they fit into the file.
fn owned(names: &[&str], file_size: usize) -> Result<Vec<String>, String> {
    let total: usize = names.iter().map(|name| name.len()).sum();
    if total > file_size {
        return Err("damaged ELF file: names of symbols overlap".to_owned());
    }
    Ok(names.iter().map(|&name| name.to_owned()).collect())
}

/// What both have.
fn common(
    bytes: &[u8],
    image: &mut Image,
    producer: impl Fn(&Elf<'_>) -> Result<Option<producer::Producer>, ReadError>,
) -> Result<(), String> {
    let elf = Elf::parse(bytes).map_err(|error| error.to_string())?;
    let has = |name: &str| elf.sections().iter().any(|section| section.name == name);
    image.debug = match (has(".debug_info"), has(".debug_line")) {
        (true, _) => DebugInfo::Full,
        (false, true) => DebugInfo::Lines,
        (false, false) => DebugInfo::None,
    };
    // Who made it matters less than what it is: damage in a note does not hide the kernels.
    image.producer = producer(&elf).ok().flatten();
    image.sections = section_sizes(&elf, bytes.len())?;
    Ok(())
}

/// The sections with their sizes, without the empty first one.
pub(super) fn section_sizes(elf: &Elf<'_>, file_size: usize) -> Result<Vec<SectionSize>, String> {
    let names: usize = elf.sections().iter().map(|section| section.name.len()).sum();
    if names > file_size {
        return Err("damaged ELF file: names of sections overlap".to_owned());
    }
    let sections = elf.sections().iter().skip(1);
    Ok(sections
        .map(|section| SectionSize {
            name: section.name.to_owned(),
            bytes: section.size,
            in_file: section.kind != SHT_NOBITS,
            device: false,
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_no_more_bytes_than_the_file() {
        assert_eq!(owned(&["ab", "c"], 3), Ok(vec!["ab".to_owned(), "c".to_owned()]));
        assert!(owned(&["ab", "c"], 2).is_err());
    }
}
