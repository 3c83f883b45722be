//! Fat binaries with LTO-IR, of which nvFatbin writes the entries for LTO-IR.
//!
//! LTO-IR is NVIDIA's, and how a fat binary scrambles it is not described. nvFatbin makes an entry of each; the container
//! and its other entries are written by [`fatbin`], as they are without LTO-IR.

use crate::FileKind;
use crate::bridge::{
    nvfatbin::{Input, InputKind, NvFatbin},
    vendor_error::VendorError,
};
use crate::container::WriteError;
use crate::container::fatbin::{self, Compression, Fatbin, Image};
use crate::image::lto_ir;
use crate::target::{NvidiaArch, Suffix};
use crate::toolkit::{PartKind, Toolkit};

/// From this level on, zstd is nvFatbin's "size", which takes level 19; below, its default, which takes 5.
const SMALL_LEVEL: i32 = 10;

/// LTO-IR to be written.
#[derive(Debug, Clone, Copy)]
pub struct LtoIr<'a> {
    /// What `nvcc -dlto` or NVRTC gave.
    pub bytes: &'a [u8],
    /// The architecture under which it is found. It has to be the one the LTO-IR was made for.
    pub arch: NvidiaArch,
    /// Identifier (usually the name of the source file), which tools show.
    pub identifier: Option<&'a str>,
    /// Options for the link, such as `-ftz=1`. Nobody checks them before.
    pub options: &'a str,
    /// Whether it carries debug information.
    pub debug: bool,
    /// How it is stored. nvFatbin chooses the level of zstd: 5, or 19 where 10 or more is asked for. Compressed LTO-IR
    /// is scrambled as well.
    pub compression: Compression,
}

/// One entry of a fat binary.
#[derive(Debug, Clone, Copy)]
pub enum LtoEntry<'a> {
    /// A cubin or PTX.
    Image(Image<'a>),
    /// LTO-IR.
    LtoIr(LtoIr<'a>),
}

/// Loads the nvFatbin of a toolkit.
///
/// # Errors
///
/// [`WriteError::Refused`] if it is not there, with the places that were tried and how to get it, or cannot be loaded.
pub fn load(toolkit: &Toolkit) -> Result<NvFatbin, WriteError> {
    let path = toolkit
        .require(PartKind::NvFatbin)
        .map_err(|error| WriteError::Refused(error.to_string()))?;
    NvFatbin::open(path).map_err(failed)
}

/// Writes a fat binary that holds `entries` in that order.
///
/// # Errors
///
/// [`WriteError`].
pub fn write_with_lto(library: &NvFatbin, entries: &[LtoEntry<'_>]) -> Result<Vec<u8>, WriteError> {
    let mut written = Vec::new();
    for entry in entries {
        let one = match entry {
            LtoEntry::Image(image) => fatbin::write(&[*image])?,
            LtoEntry::LtoIr(lto) => write_lto(library, lto)?,
        };
        written.extend(one.get(fatbin::HEADER_SIZE..).unwrap_or_default());
    }
    Ok(fatbin::container(&written))
}

/// A fat binary with the LTO-IR alone.
fn write_lto(library: &NvFatbin, lto: &LtoIr<'_>) -> Result<Vec<u8>, WriteError> {
    check_lto(lto)?;
    let mut options = vec!["-64", "-host=linux"];
    if lto.debug {
        options.push("-g");
    }
    match lto.compression {
        Compression::None => options.push("-compress=false"),
        // LZ4 is what releases before 13 do; zstd what 13 does.
        Compression::Lz4 if library.version() >= Some((13, 0)) => options.push("-compress-mode=speed"),
        Compression::Zstd { level } if level >= SMALL_LEVEL => options.push("-compress-mode=size"),
        Compression::Lz4 | Compression::Zstd { .. } => {}
    }
    let input = Input {
        kind: InputKind::LtoIr,
        bytes: lto.bytes,
        arch: &format!("{}{}", lto.arch.number, lto.arch.suffix.as_str()),
        identifier: lto.identifier.unwrap_or(""),
        options: lto.options,
    };
    let bytes = library.create(&[input], &options).map_err(failed)?;
    let written = fatbin::read(&bytes).map_err(|error| unexpected(&error.to_string()))?;
    check_written(&written, lto, library)?;
    Ok(bytes)
}

fn failed(error: VendorError) -> WriteError {
    WriteError::Refused(format!("the LTO-IR cannot be put into a fat binary: {error}"))
}

fn unexpected(problem: &str) -> WriteError {
    WriteError::Refused(format!("nvFatbin gave a fat binary that is not as expected: {problem}"))
}

/// Whether nvFatbin did what it was asked to do: releases differ in what they know.
fn check_written(fatbin: &Fatbin<'_>, lto: &LtoIr<'_>, library: &NvFatbin) -> Result<(), WriteError> {
    let unexpected = |problem: String| Err(unexpected(&problem));
    let [entry] = fatbin.entries.as_slice() else {
        return unexpected(format!("{} entries for one input", fatbin.entries.len()));
    };
    if entry.kind != FileKind::LtoIr || entry.arch != lto.arch {
        return unexpected(format!("an entry of kind {:?} for {}", entry.kind, entry.arch));
    }
    if std::mem::discriminant(&entry.compression) != std::mem::discriminant(&lto.compression) {
        let release = library.version().map_or_else(
            || "this release".to_owned(),
            |(major, minor)| format!("release {major}.{minor}"),
        );
        return unexpected(format!(
            "{release} stores LTO-IR with the compression {:?} when asked for {:?}",
            entry.compression, lto.compression
        ));
    }
    Ok(())
}

/// nvFatbin takes anything for LTO-IR: what is not, or is for another architecture, would be found by a user's link.
fn check_lto(lto: &LtoIr<'_>) -> Result<(), WriteError> {
    let magic = lto.bytes.get(..4).unwrap_or(lto.bytes);
    if magic != lto_ir::MAGIC {
        let start: Vec<String> = magic.iter().map(|byte| format!("{byte:02x}")).collect();
        return Err(WriteError::Refused(format!(
            "what is given as LTO-IR for {} starts with [{}] instead of [ed 43 4e 7f]",
            lto.arch,
            start.join(" ")
        )));
    }
    match lto_ir::arch(lto.bytes) {
        // LTO-IR does not say whether it is specific to a family, only whether it is to an architecture.
        Some((number, specific))
            if number != lto.arch.number || specific != (lto.arch.suffix == Suffix::ArchitectureSpecific) =>
        {
            let suffix = if specific {
                Suffix::ArchitectureSpecific
            } else {
                Suffix::Plain
            };
            let (found, stated) = (NvidiaArch { number, suffix }, lto.arch);
            // nvFatbin would take it.
            Err(WriteError::Refused(format!(
                "LTO-IR for {found} cannot be stored as {stated}: make it with -arch={stated}, or store it as {found}"
            )))
        }
        Some(_) => Ok(()),
        None => {
            tracing::debug!(stated = %lto.arch, "LTO-IR that does not say its architecture");
            Ok(())
        }
    }
}
