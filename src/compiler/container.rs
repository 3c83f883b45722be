//! From the images of requests to artifacts: one for each image, or the images of a module in one container.

use super::{
    plan::PlannedArtifact,
    request::{Origin, Outcome},
};
use crate::{
    container::{
        bundle::{self, BundleImage, BundleOptions},
        fatbin::{self, Compression, Content, FatbinWriteError},
        offload_binary::{self, ImageKind, KindNumbering, OffloadKind},
    },
    device::StageClock,
    error::{Cause, Error},
    options::{DebugLevel, OptionError},
    report::{Artifact, Format, Image},
    stage::Stage,
    target::{Target, Vendor},
};

/// The string of an offload image that says which PTX its artifact was to hold.
const INCLUDE_PTX: &str = "include-ptx";

/// Puts an artifact together from what requests made. `None` where one of them failed.
pub(super) fn assemble(
    planned: &PlannedArtifact,
    origins: &[Origin],
    outcomes: &[Option<Outcome>],
) -> Option<Result<Artifact, Error>> {
    let mut images: Vec<Part<'_>> = Vec::new();
    // The requests that take part, each once.
    let mut makers: Vec<(usize, &Outcome)> = Vec::new();
    for (request, product) in &planned.images {
        let origin = origins.get(*request)?;
        let outcome = outcomes.get(*request)?.as_ref()?;
        let (image, bytes) = outcome.images.get(*product)?;
        images.push((origin, image, bytes));
        if !makers.iter().any(|(maker, _)| maker == request) {
            makers.push((*request, outcome));
        }
    }
    let (origin, _, first) = *images.first()?;
    let (_, first_outcome) = *makers.first()?;
    // What a request reports belongs to the first artifact that is made of it.
    let firsts: Vec<&Outcome> = makers
        .iter()
        .filter(|(request, _)| planned.is_first_of(*request))
        .map(|(_, outcome)| *outcome)
        .collect();
    let mut clock = StageClock::default();
    for entry in firsts.iter().flat_map(|outcome| &outcome.stages) {
        clock.add(entry.stage, entry.time);
    }
    let bytes = if planned.format.is_container() {
        let written = clock.time(Stage::Container, || write(planned.format, &images));
        match written {
            Ok(bytes) => bytes,
            Err(error) => return Some(Err(error.in_module(&origin.name))),
        }
    } else {
        first.to_vec()
    };
    Some(Ok(Artifact {
        module: origin.name.clone(),
        format: planned.format,
        bytes,
        images: images.iter().map(|(_, image, _)| (*image).clone()).collect(),
        include_ptx: images
            .iter()
            .find(|(_, image, _)| planned.format.is_container() && image.target.vendor() == Vendor::Nvidia)
            .map(|(origin, ..)| origin.include_ptx.clone()),
        signatures: first_outcome.signatures.clone(),
        optimization: first_outcome.optimization,
        decisions: firsts.iter().flat_map(|outcome| outcome.decisions.clone()).collect(),
        warnings: firsts.iter().flat_map(|outcome| outcome.warnings.clone()).collect(),
        stages: clock.into_times(),
    }))
}

type Part<'a> = (&'a Origin, &'a Image, &'a [u8]);

fn write(format: Format, parts: &[Part<'_>]) -> Result<Vec<u8>, Error> {
    let failed = |cause: Cause| Error::new(Stage::Container, cause);
    match format {
        Format::Fatbin => fat_binary(parts).map_err(|error| failed(error.into())),
        Format::Bundle => offload_bundle(parts).map_err(failed),
        _ => offload_binaries(parts).map_err(failed),
    }
}

fn fat_binary(parts: &[Part<'_>]) -> Result<Vec<u8>, FatbinWriteError> {
    let identifiers: Vec<String> = parts
        .iter()
        .map(|(origin, ..)| origin.include_ptx.to_identifier())
        .collect();
    let mut entries = Vec::new();
    for ((origin, image, bytes), identifier) in parts.iter().zip(&identifiers) {
        let content = match image.format {
            // What is no text has no head either, which the writer says.
            Format::Ptx => Content::Ptx(std::str::from_utf8(bytes).unwrap_or_default()),
            _ => Content::Cubin(bytes),
        };
        let mut entry = fatbin::Image::new(content, image.target.chip())?;
        entry.identifier = Some(identifier);
        entry.debug = origin.options.debug == DebugLevel::Full;
        entry.compression = origin.options.compression.unwrap_or_default();
        entries.push(entry);
    }
    fatbin::write(&entries)
}

fn offload_bundle(parts: &[Part<'_>]) -> Result<Vec<u8>, Cause> {
    let mut images = vec![BundleImage::host()];
    let mut options = BundleOptions::default();
    for (origin, image, bytes) in parts {
        if let Target::Amd(target) = &image.target {
            images.push(BundleImage::hip(target, bytes));
        }
        if let Some(compression) = origin.options.compression {
            options.compression = bundle_compression(compression, image.target)?;
        }
    }
    Ok(bundle::write(&images, &options)?)
}

/// Version 2 of the compressed form: every HIP runtime that reads compressed bundles reads it, and 4 GiB are enough.
fn bundle_compression(compression: Compression, target: Target) -> Result<Option<bundle::Compression>, Cause> {
    match compression {
        Compression::None => Ok(None),
        Compression::Zstd { .. } => Ok(Some(bundle::Compression {
            version: bundle::CompressionVersion::V2,
            ..bundle::Compression::default()
        })),
        Compression::Lz4 => Err(OptionError::NotHonoured {
            name: "compress",
            target: target.to_string(),
            reason: "offload bundles are compressed with zstd; use compress=zstd, or none".to_owned(),
        }
        .into()),
    }
}

/// The form that clang 21 and later read.
fn offload_binaries(parts: &[Part<'_>]) -> Result<Vec<u8>, Cause> {
    let names: Vec<(String, String)> = parts
        .iter()
        .map(|(origin, image, _)| (image.target.to_string(), origin.include_ptx.to_string()))
        .collect();
    let mut images = Vec::new();
    for ((origin, image, bytes), (arch, policy)) in parts.iter().zip(&names) {
        if origin.options.compression.is_some_and(|compression| compression != Compression::None) {
            return Err(OptionError::NotHonoured {
                name: "compress",
                target: image.target.to_string(),
                reason: "offload binaries that clang up to 23 reads are not compressed; leave the option out".to_owned(),
            }
            .into());
        }
        let (kind, language) = match (image.format, image.target) {
            (Format::Ptx, _) => (ImageKind::Ptx, OffloadKind::Cuda),
            (_, Target::Nvidia(_)) => (ImageKind::Cubin, OffloadKind::Cuda),
            (_, Target::Amd(_)) => (ImageKind::Object, OffloadKind::Hip),
        };
        let triple = image.target.triple();
        let mut entry = offload_binary::Image::new(kind, language, KindNumbering::BitMask, triple, arch, bytes)?;
        if language == OffloadKind::Cuda {
            entry.strings.push((INCLUDE_PTX, policy));
        }
        images.push(entry);
    }
    Ok(offload_binary::write(&images)?)
}
