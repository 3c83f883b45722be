//! From the images of requests to artifacts: one for each image, or the images of a module in one container.

use super::{
    plan::PlannedArtifact,
    request::{Origin, Outcome},
};
use crate::{
    FileKind,
    container::WriteError,
    container::fatbin::Compression,
    device::StageClock,
    error::Error,
    options::DebugLevel,
    pack::{Member, Pack, PackFormat},
    report::{Artifact, Format, Image},
    stage::Stage,
    target::{Target, Vendor},
};

/// Puts an artifact together from what requests made. `None` where one of them failed. Where `is_last`, no other artifact has its first
/// image.
pub(super) fn assemble(
    planned: &PlannedArtifact,
    origins: &[Origin],
    outcomes: &mut [Option<Outcome>],
    is_last: bool,
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
    let (origin, ..) = *images.first()?;
    let (_, first_outcome) = *makers.first()?;
    // What a request reports belongs to the first artifact that is made of it.
    let firsts: Vec<&Outcome> = makers
        .iter()
        .filter(|(request, _)| planned.is_first_of(*request))
        .map(|(_, outcome)| *outcome)
        .collect();
    // The same choice for several images is said once.
    let mut decisions = Vec::new();
    for decision in firsts.iter().flat_map(|outcome| &outcome.decisions) {
        if !decisions.contains(decision) {
            decisions.push(decision.clone());
        }
    }
    let mut clock = StageClock::default();
    for entry in firsts.iter().flat_map(|outcome| &outcome.stages) {
        clock.add(entry.stage, entry.time);
    }
    let container = match planned.format {
        Format::Fatbin => Some(PackFormat::Fatbin),
        Format::Bundle => Some(PackFormat::Bundle),
        Format::Offload => Some(PackFormat::Offload),
        _ => None,
    };
    let bytes = match container {
        None => Vec::new(),
        Some(format) => match clock.time(Stage::Container, || write(format, &images)) {
            Ok(bytes) => bytes,
            Err(error) => return Some(Err(Error::new(Stage::Container, error).in_module(&origin.name))),
        },
    };
    let mut artifact = Artifact {
        input: None,
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
        decisions,
        warnings: firsts.iter().flat_map(|outcome| outcome.warnings.clone()).collect(),
        stages: clock.into_times(),
    };
    if container.is_none() {
        let (request, product) = planned.images.first()?;
        let (_, bytes) = outcomes.get_mut(*request)?.as_mut()?.images.get_mut(*product)?;
        artifact.bytes = if is_last { std::mem::take(bytes) } else { bytes.clone() };
    }
    Some(Ok(artifact))
}

type Part<'a> = (&'a Origin, &'a Image, &'a [u8]);

/// The images of a module in a container.
fn write(format: PackFormat, parts: &[Part<'_>]) -> Result<Vec<u8>, WriteError> {
    let mut pack = Pack::default();
    let mut compression = Compression::None;
    for (origin, image, bytes) in parts {
        pack.push(Member {
            input: format!("module {}", origin.name),
            kind: match image.format {
                Format::Ptx => FileKind::Ptx,
                Format::Cubin => FileKind::Cubin,
                _ => FileKind::Hsaco,
            },
            target: match image.target {
                Target::Nvidia(target) => target.chip().to_owned(),
                Target::Amd(target) => target.to_string(),
            },
            bytes: bytes.to_vec(),
            identifier: None,
            options: String::new(),
            debug: origin.options.debug == DebugLevel::Full,
        })?;
        if image.target.vendor() == Vendor::Nvidia {
            pack.set_include_ptx(&origin.include_ptx, &origin.name)?;
        }
        compression = origin.options.compression.unwrap_or(compression);
    }
    pack.write(format, compression)
}
