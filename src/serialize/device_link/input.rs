//! What may be linked, told by its bytes, and taken out of containers.

use std::{borrow::Cow, fmt::Display};

use super::DeviceLinkError;
use crate::container::archive;
use crate::container::fatbin::{self, Entry, Fatbin};
use crate::image::cubin;
use crate::image::elf::{ET_REL, Elf};
use crate::image::ptx;
use crate::target::selection::{LoadableImage, cubin_links, select_for_link};
use crate::target::{NvidiaTarget, Target};
use crate::{FileKind, ReadError};

/// Section of a host object in which `nvcc -dc` puts relocatable device code (observed with 13.0.88).
const RELOCATABLE_FATBIN_SECTION: &str = "__nv_relfatbin";
/// Section of a host object with device code that is linked already.
const FATBIN_SECTION: &str = ".nv_fatbin";

const RELOCATABLE_CUBIN: &str = "`ptxas -c`, `nvcc -dc`, or `gpulower compile --emit object`";

/// One input of a link.
#[derive(Debug, Clone, Copy)]
pub struct LinkInput<'a> {
    /// Name for messages: a path, or what the code was made from.
    pub name: &'a str,
    /// What the bytes are: PTX, a cubin, LTO-IR, an AMDGPU object, or a fat binary, host object (of `nvcc -dc`) or archive
    /// that holds them. Those members of an archive take part that define what is needed.
    pub kind: FileKind,
    /// The bytes.
    pub bytes: &'a [u8],
}

impl<'a> LinkInput<'a> {
    /// An input whose kind the bytes tell.
    ///
    /// # Errors
    ///
    /// [`DeviceLinkError`] if they tell nothing that can be linked.
    pub fn detect(name: &'a str, bytes: &'a [u8]) -> Result<Self, DeviceLinkError> {
        let kind = kind_of(bytes).map_err(|problem| DeviceLinkError::input(name, problem))?;
        Ok(Self { name, kind, bytes })
    }
}

/// The kind, if it can be linked or holds what can.
fn kind_of(bytes: &[u8]) -> Result<FileKind, String> {
    let not_linkable = |reason: &str| Err(reason.to_owned());
    if bytes.starts_with(b"\x7fELF") {
        // What is cut off or damaged is told so.
        Elf::parse(bytes).map_err(in_words)?;
    }
    match FileKind::of(bytes) {
        FileKind::Hsaco => Ok(FileKind::AmdObject),
        FileKind::Executable | FileKind::SharedLibrary => Ok(FileKind::HostObject),
        FileKind::ThinArchive => Ok(FileKind::Archive),
        kind @ (FileKind::Ptx
        | FileKind::Cubin
        | FileKind::LtoIr
        | FileKind::FatBinary
        | FileKind::AmdObject
        | FileKind::HostObject
        | FileKind::Archive) => Ok(kind),
        FileKind::Bitcode => not_linkable(
            "it is LLVM bitcode, which is linked before code is generated: give it as a library to `compile`",
        ),
        FileKind::Bundle => not_linkable("it is an offload bundle: extract the object for the target, and link that"),
        FileKind::OffloadBinary => {
            not_linkable("it is an offload binary: extract the image for the target, and link that")
        }
        _ => {
            let start: Vec<String> = bytes.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
            Err(format!(
                "it starts with [{}], and is neither PTX, a cubin, LTO-IR, a fat binary, an AMDGPU object nor an archive of them",
                start.join(" ")
            ))
        }
    }
}

/// One object, out of its container.
#[derive(Debug)]
pub(super) struct Unit<'a> {
    /// Name for messages.
    pub name: String,
    /// PTX, a cubin, LTO-IR or an AMDGPU object; a fat binary is one of a single image of LTO-IR, scrambled with a key that
    /// the fat binary has.
    pub kind: FileKind,
    pub bytes: Cow<'a, [u8]>,
    /// Whether it takes part only if something needs it: a member of an archive.
    pub optional: bool,
}

/// Takes the inputs out of their containers, and refuses what does not fit the target.
pub(super) fn unpack<'a>(inputs: &[LinkInput<'a>], target: &Target) -> Result<Vec<Unit<'a>>, DeviceLinkError> {
    let mut unpacking = Unpacking {
        target,
        units: Vec::new(),
    };
    for input in inputs {
        if input.kind == FileKind::Archive {
            unpacking.archive(input)?;
        } else {
            unpacking.file(input.name.to_owned(), input.kind, input.bytes, false)?;
        }
    }
    Ok(unpacking.units)
}

struct Unpacking<'a, 't> {
    target: &'t Target,
    units: Vec<Unit<'a>>,
}

impl<'a> Unpacking<'a, '_> {
    fn archive(&mut self, input: &LinkInput<'a>) -> Result<(), DeviceLinkError> {
        let (members, error) = archive::read(input.bytes);
        if let Some(error) = error {
            return Err(DeviceLinkError::input(input.name, error));
        }
        for member in members {
            let name = format!("{}({})", input.name, member.name);
            match kind_of(member.contents) {
                Ok(FileKind::Archive) => {
                    let reason = "it is an archive inside of an archive: unpack it";
                    return Err(DeviceLinkError::input(&name, reason));
                }
                Ok(kind) => self.file(name, kind, member.contents, true)?,
                Err(problem) => return Err(DeviceLinkError::input(&name, problem)),
            }
        }
        Ok(())
    }

    fn file(&mut self, name: String, kind: FileKind, bytes: &'a [u8], optional: bool) -> Result<(), DeviceLinkError> {
        let (what, is_amd) = match kind {
            FileKind::Ptx => ("PTX", false),
            FileKind::Cubin => ("a cubin", false),
            FileKind::LtoIr => ("NVIDIA's LTO-IR", false),
            FileKind::FatBinary => ("a fat binary of NVIDIA's", false),
            FileKind::AmdObject => ("an AMDGPU object", true),
            _ => ("a host object", false),
        };
        let wrong_vendor = |vendor| {
            let target = self.target;
            let problem = format!("it is {what}, and {target} is a chip of {vendor}: leave it out of this link");
            DeviceLinkError::input(&name, problem)
        };
        match *self.target {
            Target::Nvidia(_) if is_amd => Err(wrong_vendor("NVIDIA")),
            Target::Amd(_) if !is_amd => Err(wrong_vendor("AMD")),
            Target::Nvidia(target) if kind == FileKind::FatBinary => self.fatbin(&name, bytes, target, optional),
            Target::Nvidia(target) if matches!(kind, FileKind::HostObject | FileKind::Archive) => {
                let fatbins = embedded(bytes).map_err(|problem| DeviceLinkError::input(&name, problem))?;
                self.fatbin(&name, fatbins, target, optional)
            }
            _ => self.image(name, kind, Cow::Borrowed(bytes), optional),
        }
    }

    fn image(
        &mut self,
        name: String,
        kind: FileKind,
        bytes: Cow<'a, [u8]>,
        optional: bool,
    ) -> Result<(), DeviceLinkError> {
        check(kind, &bytes, self.target).map_err(|problem| DeviceLinkError::input(&name, problem))?;
        self.units.push(Unit {
            name,
            kind,
            bytes,
            optional,
        });
        Ok(())
    }

    /// Adds the images for the target of one fat binary, or of several that follow each other.
    fn fatbin(
        &mut self,
        name: &str,
        mut bytes: &'a [u8],
        target: NvidiaTarget,
        optional: bool,
    ) -> Result<(), DeviceLinkError> {
        while !bytes.is_empty() {
            let Fatbin { entries, size } =
                fatbin::read_first(bytes).map_err(|error| DeviceLinkError::input(name, error))?;
            let (images, entries): (Vec<_>, Vec<_>) = entries
                .into_iter()
                .filter_map(|entry| Some((loadable(&entry)?, entry)))
                .unzip();
            let chosen = select_for_link(&target, &images);
            let Some((shown, entry)) = chosen.and_then(|index| Some((images.get(index)?, entries.get(index)?))) else {
                let held = match images.as_slice() {
                    [] => "no device code".to_owned(),
                    images => images.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
                };
                let problem = format!("it holds nothing for {target}; it has {held}");
                return Err(DeviceLinkError::input(name, problem));
            };
            let name = format!("{name}({shown})");
            let (kind, image) = match entry.kind {
                FileKind::Ptx | FileKind::Cubin => (entry.kind, entry.payload()),
                _ => (FileKind::FatBinary, Ok(alone(entry, bytes).into())),
            };
            let image = image.map_err(|error| DeviceLinkError::input(&name, error))?;
            self.image(name, kind, image, optional)?;
            bytes = bytes.get(size..).unwrap_or_default();
            // Containers in a section are aligned to 8.
            let padding = bytes.iter().take_while(|&&byte| byte == 0).count();
            bytes = bytes.get(padding..).unwrap_or_default();
        }
        Ok(())
    }
}

/// A fat binary of one image of `container`.
fn alone(entry: &Entry<'_>, container: &[u8]) -> Vec<u8> {
    let end = entry.payload_offset.saturating_add(entry.stored.len() as u64);
    let range = || Some(usize::try_from(entry.offset).ok()?..usize::try_from(end).ok()?);
    let image = range().and_then(|range| container.get(range)).unwrap_or_default();
    fatbin::container(image)
}

/// An entry as it is ranked and named, if it is of a known kind.
fn loadable(entry: &Entry<'_>) -> Option<LoadableImage> {
    let arch = entry.arch;
    match entry.kind {
        FileKind::Cubin => Some(LoadableImage::Cubin { arch }),
        FileKind::LtoIr => Some(LoadableImage::LtoIr { arch }),
        FileKind::Ptx => Some(LoadableImage::Ptx {
            arch,
            isa: entry.version,
        }),
        _ => None,
    }
}

/// The relocatable device code in a host object of `nvcc -dc`.
fn embedded(bytes: &[u8]) -> Result<&[u8], String> {
    let elf = Elf::parse(bytes).map_err(in_words)?;
    let find = |name: &str| elf.sections().iter().find(|section| section.name == name);
    match (find(RELOCATABLE_FATBIN_SECTION), find(FATBIN_SECTION)) {
        (Some(section), _) => elf.contents(section).map_err(in_words),
        (None, Some(_)) => Err(not_relocatable("the device code in the host object", "`nvcc -dc`")),
        (None, None) => Err("it is a host object without NVIDIA device code".to_owned()),
    }
}

fn in_words(error: ReadError) -> String {
    error.to_string()
}

/// Machine code is linked already: nvJitLink would accept it and leave its kernels out.
fn not_relocatable(what: &str, advice: &str) -> String {
    format!("{what} is linked already, and cannot be linked again: make it relocatable ({advice})")
}

/// Code is for another chip than the one that is linked for.
pub(super) fn wrong_target(found: &str, target: &dyn Display, advice: &str) -> String {
    format!("it is for {found}, which does not fit {target}: {advice}")
}

/// Refuses code that is linked already, or for another chip.
fn check(kind: FileKind, bytes: &[u8], target: &Target) -> Result<(), String> {
    match (kind, target) {
        (FileKind::Cubin, Target::Nvidia(target)) => {
            let elf = Elf::parse(bytes).map_err(in_words)?;
            // nvJitLink 13.0.88 accepts it and leaves its kernels out.
            if elf.header().kind != ET_REL {
                return Err(not_relocatable("the cubin", RELOCATABLE_CUBIN));
            }
            let info = cubin::read(bytes).map_err(in_words)?;
            cubin_links(info.arch, info.arch_specific, target)
                .map_err(|advice| wrong_target(&info.chip(), target, &advice))
        }
        (FileKind::Ptx, Target::Nvidia(target)) => {
            let text = std::str::from_utf8(bytes).map_err(|_| "it is PTX, but not UTF-8".to_owned())?;
            let found = ptx::header(text)
                .target
                .and_then(|name| name.parse::<NvidiaTarget>().ok());
            match found {
                // A chip that the tables do not have is for the compiler to judge.
                Some(found) if !found.ptx_compiles_for(target) => Err(wrong_target(
                    &found.to_string(),
                    target,
                    "write PTX for an older plain target, or for exactly this one",
                )),
                _ => Ok(()),
            }
        }
        (FileKind::AmdObject, Target::Amd(_)) => {
            if Elf::parse(bytes).map_err(in_words)?.header().kind != ET_REL {
                return Err(not_relocatable(
                    "the code object",
                    "`clang -c`, `llc -filetype=obj`, or `gpulower compile --emit object`",
                ));
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
#[path = "../../../tests/serialize/device_link_input.rs"]
mod tests;
