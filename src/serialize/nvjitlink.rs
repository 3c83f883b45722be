//! Links device code with nvJitLink, after looking into what the library would silently leave out.

use crate::bridge::nvjitlink::{Input, InputKind, Linked, NvJitLink, NvJitLinkError};
use crate::container::fatbin::{self, FatbinError, ImageKind};
use crate::image::elf::{ET_REL, Elf, ElfError};

/// Why device code was not linked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LinkError {
    /// The library refused, or would have dropped an input.
    #[error(transparent)]
    NvJitLink(#[from] NvJitLinkError),
    /// An input of kind fat binary could not be read.
    #[error("input {name:?}: {source}")]
    Fatbin {
        /// Name of the input.
        name: String,
        /// What is wrong with it.
        source: FatbinError,
    },
    /// A cubin in an input of kind fat binary could not be read.
    #[error("input {name:?}: its cubin for {arch}: {source}")]
    Cubin {
        /// Name of the input.
        name: String,
        /// Architecture of the cubin.
        arch: crate::target::NvidiaArch,
        /// What is wrong with it.
        source: ElfError,
    },
}

/// Links `inputs` into one cubin. `options` needs `-arch=sm_NN`.
///
/// Cubins have to be relocatable, alone or in a fat binary: nvJitLink 13.0.88 accepts others, and leaves
/// their kernels out. Host objects and archives are not looked into.
///
/// # Errors
///
/// [`LinkError`].
pub fn link(library: &NvJitLink, inputs: &[Input<'_>], options: &[String]) -> Result<Linked, LinkError> {
    for input in inputs {
        if input.kind == InputKind::Fatbin {
            check_fatbin(input)?;
        }
    }
    Ok(library.link(inputs, options)?)
}

fn check_fatbin(input: &Input<'_>) -> Result<(), LinkError> {
    let name = || input.name.to_owned();
    let unreadable = |source| LinkError::Fatbin { name: name(), source };
    for entry in fatbin::read(input.bytes).map_err(unreadable)?.entries {
        if entry.kind != ImageKind::Elf {
            continue;
        }
        let payload = entry.payload().map_err(unreadable)?;
        let elf = Elf::parse(&payload).map_err(|source| LinkError::Cubin {
            name: name(),
            arch: entry.arch,
            source,
        })?;
        let elf_type = elf.header().kind;
        if elf_type != ET_REL {
            return Err(LinkError::NvJitLink(NvJitLinkError::NotRelocatable {
                name: format!("{} ({})", input.name, entry.arch),
                elf_type,
            }));
        }
    }
    Ok(())
}
