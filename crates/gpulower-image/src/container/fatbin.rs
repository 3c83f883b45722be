//! Writes and reads NVIDIA's fat binary: a container of cubins and PTX for several architectures.
//!
//! The driver takes the best cubin for its device, or else compiles the PTX. [`write()`] gives the bytes that
//! `fatbinary` gives for the same images; [`read`] takes the container apart again.

pub use super::fatbin_format::{Compression, MAGIC, ZSTD_DEFAULT};
pub use super::fatbin_read::{Entry, Fatbin, FatbinError, read, read_first};

use super::fatbin_format::{
    ENTRY_HEADER_SIZE, ENTRY_VERSION, FLAG_64_BIT, FLAG_ARCH_SPECIFIC, FLAG_DEBUG, FLAG_FAMILY, FLAG_LINUX, FLAG_LZ4,
    FLAG_MERCURY, FLAG_ZSTD, HEADER_SIZE, KIND_ELF, KIND_PTX, VERSION, padded,
};
use crate::image::cubin::{self, CubinError};
use crate::image::elf::{Elf, ElfError};
use crate::image::ptx;
use crate::target::{NvidiaArch, Suffix};

/// Why images could not be put into a fat binary.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FatbinWriteError {
    /// The name of the architecture is of unknown form.
    #[error("`{name}` is no NVIDIA architecture: expected a name like sm_90, sm_90a or sm_100f")]
    UnknownArch {
        /// The name.
        name: String,
    },
    /// The image was made for another architecture than the entry is for, and would not load.
    #[error("a {what} for {found} cannot be stored as {stated}: a driver would choose it for the wrong device")]
    ArchMismatch {
        /// "cubin" or "PTX module".
        what: &'static str,
        /// The architecture the image names.
        found: String,
        /// The architecture of the entry.
        stated: NvidiaArch,
    },
    /// The PTX does not begin with `.version` and `.target`.
    #[error("the PTX for {arch} does not begin with .version and .target")]
    PtxHead {
        /// The architecture of the entry.
        arch: NvidiaArch,
    },
    /// A NUL byte in PTX text, an identifier or an options string, which end at one.
    #[error("{what} for {arch} contains a NUL byte")]
    Nul {
        /// "the PTX", "the identifier" or "the options string".
        what: &'static str,
        /// The architecture of the entry.
        arch: NvidiaArch,
    },
    /// The cubin could not be read.
    #[error("the cubin for {arch}: {source}")]
    Cubin {
        /// The architecture of the entry.
        arch: NvidiaArch,
        /// What is wrong with it.
        source: CubinError,
    },
    /// zstd refused the level or ran out of memory.
    #[error("compressing the image for {arch}: {source}")]
    Compress {
        /// The architecture of the entry.
        arch: NvidiaArch,
        /// What zstd said.
        source: std::io::Error,
    },
    /// An image of 4 GiB or more: its compressed size has 32 bits.
    #[error("the image for {arch} is too large: {bytes} bytes")]
    TooLarge {
        /// The architecture of the entry.
        arch: NvidiaArch,
        /// Its size.
        bytes: usize,
    },
}

/// Content of an image to be written.
#[derive(Debug, Clone, Copy)]
pub enum Content<'a> {
    /// PTX text, with or without a NUL at its end.
    Ptx(&'a str),
    /// A cubin.
    Cubin(&'a [u8]),
}

/// An image to be written.
#[derive(Debug, Clone, Copy)]
pub struct Image<'a> {
    /// The content.
    pub content: Content<'a>,
    /// The architecture under which the driver finds it. It has to be the one the content was made for.
    pub arch: NvidiaArch,
    /// Identifier (usually the name of the source file), which tools show.
    pub identifier: Option<&'a str>,
    /// PTX: the options for the driver's compiler, for example `-O3`. Ignored for cubins.
    pub options: &'a str,
    /// Whether the image carries debug information.
    pub debug: bool,
    /// How it is stored.
    pub compression: Compression,
}

impl<'a> Image<'a> {
    /// An uncompressed image for the architecture called `arch`, without identifier and options.
    ///
    /// # Errors
    ///
    /// [`FatbinWriteError::UnknownArch`].
    pub fn new(content: Content<'a>, arch: &str) -> Result<Self, FatbinWriteError> {
        let name = arch;
        let arch = NvidiaArch::parse(name).ok_or_else(|| FatbinWriteError::UnknownArch { name: name.to_owned() })?;
        Ok(Self {
            content,
            arch,
            identifier: None,
            options: "",
            debug: false,
            compression: Compression::None,
        })
    }
}

/// Writes a fat binary that holds `images` in that order.
///
/// # Errors
///
/// [`FatbinWriteError`]; nothing is stored that a driver could not load for the architecture it is stored
/// under.
pub fn write(images: &[Image<'_>]) -> Result<Vec<u8>, FatbinWriteError> {
    let mut entries = Vec::new();
    for image in images {
        write_entry(image, &mut entries)?;
    }
    let mut bytes = Vec::with_capacity(HEADER_SIZE + entries.len());
    bytes.extend(MAGIC);
    bytes.extend(VERSION.to_le_bytes());
    bytes.extend((HEADER_SIZE as u16).to_le_bytes());
    bytes.extend((entries.len() as u64).to_le_bytes());
    bytes.append(&mut entries);
    Ok(bytes)
}

/// What the header says about an image's content.
struct Described {
    kind: u16,
    /// Minor, then major: the PTX ISA, or the ABI version of a cubin and 1.
    version: (u16, u16),
    flags: u64,
    /// The bytes to store.
    payload: Vec<u8>,
    /// The options record: the length it states, and its data.
    record: Option<(u32, Vec<u8>)>,
}

fn write_entry(image: &Image<'_>, out: &mut Vec<u8>) -> Result<(), FatbinWriteError> {
    let arch = image.arch;
    let described = match image.content {
        Content::Ptx(text) => describe_ptx(text, image)?,
        Content::Cubin(bytes) => describe_cubin(bytes, arch)?,
    };
    let mut flags = FLAG_64_BIT | FLAG_LINUX | described.flags;
    flags |= match arch.suffix {
        Suffix::Plain => 0,
        Suffix::ArchitectureSpecific => FLAG_ARCH_SPECIFIC,
        Suffix::FamilySpecific => FLAG_FAMILY,
    };
    if image.debug {
        flags |= FLAG_DEBUG;
    }
    let plain_size = described.payload.len();
    let (payload, compression_flag) = compress(described.payload, image)?;
    flags |= compression_flag;
    let (compressed_size, uncompressed_size) = if compression_flag == 0 {
        (0, 0)
    } else {
        let size = u32::try_from(payload.len()).map_err(|_| FatbinWriteError::TooLarge {
            arch,
            bytes: payload.len(),
        })?;
        (size, plain_size as u64)
    };

    let (mut identifier_at, mut identifier_length, mut record_at) = (0u32, 0u32, 0u32);
    let mut extension = Vec::new();
    if let Some(identifier) = image.identifier.filter(|identifier| !identifier.is_empty()) {
        if identifier.contains('\0') {
            return Err(FatbinWriteError::Nul {
                what: "the identifier",
                arch,
            });
        }
        identifier_at = ENTRY_HEADER_SIZE as u32;
        identifier_length = length(identifier.len(), arch)?;
        extension.extend(identifier.as_bytes());
        extension.push(0);
        extension.resize(padded(extension.len()), 0);
    }
    if let Some((stated_length, data)) = described.record {
        record_at = length(ENTRY_HEADER_SIZE + extension.len(), arch)?;
        extension.extend((record_at + 8).to_le_bytes());
        extension.extend(stated_length.to_le_bytes());
        extension.extend(data);
        extension.resize(padded(extension.len()), 0);
    }

    out.extend(described.kind.to_le_bytes());
    out.extend(ENTRY_VERSION.to_le_bytes());
    out.extend(length(ENTRY_HEADER_SIZE + extension.len(), arch)?.to_le_bytes());
    out.extend((padded(payload.len()) as u64).to_le_bytes());
    out.extend(compressed_size.to_le_bytes());
    out.extend(record_at.to_le_bytes());
    out.extend(described.version.0.to_le_bytes());
    out.extend(described.version.1.to_le_bytes());
    out.extend(u32::from(arch.number).to_le_bytes());
    out.extend(identifier_at.to_le_bytes());
    out.extend(identifier_length.to_le_bytes());
    out.extend(flags.to_le_bytes());
    out.extend(0u64.to_le_bytes());
    out.extend(uncompressed_size.to_le_bytes());
    out.append(&mut extension);
    let padding = padded(payload.len()) - payload.len();
    out.extend(payload);
    out.resize(out.len() + padding, 0);
    Ok(())
}

fn length(size: usize, arch: NvidiaArch) -> Result<u32, FatbinWriteError> {
    u32::try_from(size).map_err(|_| FatbinWriteError::TooLarge { arch, bytes: size })
}

fn describe_ptx(text: &str, image: &Image<'_>) -> Result<Described, FatbinWriteError> {
    let arch = image.arch;
    let text = text.strip_suffix('\0').unwrap_or(text);
    for (what, checked) in [("the PTX", text), ("the options string", image.options)] {
        if checked.contains('\0') {
            return Err(FatbinWriteError::Nul { what, arch });
        }
    }
    let header = ptx::header(text);
    let (Some((major, minor)), Some(target)) = (header.version, header.target) else {
        return Err(FatbinWriteError::PtxHead { arch });
    };
    let (Ok(major), Ok(minor)) = (u16::try_from(major), u16::try_from(minor)) else {
        return Err(FatbinWriteError::PtxHead { arch });
    };
    if NvidiaArch::parse(&target) != Some(arch) {
        return Err(FatbinWriteError::ArchMismatch {
            what: "PTX module",
            found: target,
            stated: arch,
        });
    }
    let mut payload = text.as_bytes().to_vec();
    payload.push(0);
    let mut record = image.options.as_bytes().to_vec();
    record.push(0);
    Ok(Described {
        kind: KIND_PTX,
        version: (minor, major),
        flags: 0,
        payload,
        record: Some((length(image.options.len(), arch)?, record)),
    })
}

fn describe_cubin(bytes: &[u8], arch: NvidiaArch) -> Result<Described, FatbinWriteError> {
    let cubin = |source| FatbinWriteError::Cubin { arch, source };
    let elf_error = |error: ElfError| cubin(CubinError::Elf(error));
    let read = cubin::read(bytes).map_err(cubin)?;
    // A cubin does not say whether it is specific to a family, only whether it is to an architecture.
    let specific = arch.suffix == Suffix::ArchitectureSpecific;
    if read.arch != u32::from(arch.number) || (read.arch_specific && !specific) {
        return Err(FatbinWriteError::ArchMismatch {
            what: "cubin",
            found: read.chip(),
            stated: arch,
        });
    }
    let mut record = None;
    if read.mercury {
        // The driver needs the compatibility attributes before it unpacks the cubin. They follow an empty
        // options string.
        let elf = Elf::parse(bytes).map_err(elf_error)?;
        if let Some(section) = elf.sections().iter().find(|section| section.name == ".nv.compat") {
            let contents = elf.contents(section).map_err(elf_error)?;
            let mut data = vec![0];
            data.extend(contents);
            record = Some((length(contents.len(), arch)?, data));
        }
    }
    Ok(Described {
        kind: KIND_ELF,
        version: (read.abi_version.into(), 1),
        flags: if read.mercury { FLAG_MERCURY } else { 0 },
        payload: bytes.to_vec(),
        record,
    })
}

/// Compresses `payload` as the image asks; the flag is 0 where nothing was compressed.
fn compress(payload: Vec<u8>, image: &Image<'_>) -> Result<(Vec<u8>, u64), FatbinWriteError> {
    match image.compression {
        Compression::None => Ok((payload, 0)),
        Compression::Lz4 => Ok((lz4_flex::block::compress(&payload), FLAG_LZ4)),
        Compression::Zstd { level } => {
            let compressed = zstd::bulk::compress(&payload, level).map_err(|source| FatbinWriteError::Compress {
                arch: image.arch,
                source,
            })?;
            Ok((compressed, FLAG_ZSTD))
        }
    }
}
