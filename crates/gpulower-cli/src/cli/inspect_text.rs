//! An inspection as people read it, in 80 columns.

use gpulower::{
    FileKind,
    inspect::{DebugInfo, Image, Inspection, Kernel},
    target::PtxPolicy,
};

use super::{
    inspect_details,
    message::printable,
    report::usage,
    table::{aligned, wrapped},
};

/// What is shown besides images and kernels.
#[derive(Debug)]
pub struct Show {
    pub parameters: bool,
    pub sections: bool,
}

/// The whole text.
pub fn text(inspection: &Inspection, show: &Show) -> String {
    let mut text = headline(inspection);
    let parts = [
        images(inspection),
        notes(inspection),
        kernels(inspection),
        if show.parameters {
            inspect_details::parameters(inspection)
        } else {
            String::new()
        },
        if show.sections {
            inspect_details::sections(inspection)
        } else {
            String::new()
        },
    ];
    for part in parts.iter().filter(|part| !part.is_empty()) {
        text.push('\n');
        text.push_str(part);
    }
    printable_lines(&text)
}

/// Names in the file may hold anything.
pub fn printable_lines(text: &str) -> String {
    text.lines().map(|line| printable(line) + "\n").collect()
}

fn headline(inspection: &Inspection) -> String {
    let kind = match (inspection.containers.first(), inspection.images.first()) {
        (Some(container), _) => match &container.machine {
            Some(machine) => format!("{} for {machine}", container.kind.name()),
            None if container.kind == FileKind::Unknown => "device section".to_owned(),
            None => container.kind.name().to_owned(),
        },
        (None, Some(image)) => image.kind.name().to_owned(),
        (None, None) => "nothing".to_owned(),
    };
    let mut text = format!("{}: {kind}, {} bytes", inspection.file, inspection.bytes);
    let count = inspection.images.len();
    let images = if count == 1 { "image" } else { "images" };
    if count == 0 {
        text.push_str(", no image for a GPU");
    } else if inspection.device_bytes == inspection.bytes {
        text.push_str(&format!(", {count} {images}"));
    } else {
        let share = percent(inspection.device_bytes, inspection.bytes);
        text.push_str(&format!(
            ", of which {} ({share}) are device code: {count} {images}",
            inspection.device_bytes
        ));
    }
    wrapped(&text, 0)
}

pub fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "-".to_owned();
    }
    format!("{:.1}%", part as f64 * 100.0 / whole as f64)
}

/// The table of images, under the containers that they lie in.
fn images(inspection: &Inspection) -> String {
    if inspection.images.is_empty() {
        return String::new();
    }
    let head = [
        "image", "kind", "target", "version", "bytes", "stored", "packed", "of file",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows.extend(inspection.images.iter().map(|image| image_row(image, inspection)));
    let table = aligned(rows, 4);
    let mut lines = table.lines();
    let mut text = String::new();
    text.extend(lines.next().map(|head| format!("{head}\n")));
    let mut before = None;
    for (image, line) in inspection.images.iter().zip(lines) {
        if image.container != before {
            before = image.container;
            text.push_str(&container_line(inspection, image.container));
        }
        text.push_str(line);
        text.push('\n');
    }
    text
}

/// A line above the images of a container, where it says something that the first line does not.
fn container_line(inspection: &Inspection, index: Option<usize>) -> String {
    let container = index.and_then(|index| Some((index, inspection.containers.get(index)?)));
    let Some((index, container)) = container else {
        return String::new();
    };
    if container.parent.is_none() && container.compression.is_none() && inspection.containers.len() == 1 {
        return String::new();
    }
    let mut text = inspection.container_name(index);
    text.push_str(&format!(", {} bytes", container.bytes));
    if container.bytes != inspection.bytes {
        text.push_str(&format!(
            " ({} of the file)",
            percent(container.bytes, inspection.bytes)
        ));
    }
    if let (Some(compression), Some(bytes)) = (container.compression, container.uncompressed_bytes) {
        text.push_str(&format!(", {} of {bytes}", compression.name()));
    }
    if let Some(version) = container.version {
        text.push_str(&format!(", version {version}"));
    }
    wrapped(&text, 0)
}

fn image_row(image: &Image, inspection: &Inspection) -> Vec<String> {
    let version = match (&image.ptx_isa, image.abi_version, image.code_object_version) {
        (Some(isa), _, _) => format!("PTX {isa}"),
        (None, Some(abi), _) => format!("ABI {abi}"),
        (None, None, Some(version)) => format!("COV{version}"),
        (None, None, None) => String::new(),
    };
    let dash = || "-".to_owned();
    let packed = image
        .compression
        .map_or_else(String::new, |compression| match image.stored_bytes {
            Some(stored) if stored > 0 => format!("{} {:.1}x", compression.name(), image.bytes as f64 / stored as f64),
            _ => compression.name().to_owned(),
        });
    vec![
        image.number.to_string(),
        image.kind.name().to_owned(),
        image.target.clone().unwrap_or_else(dash),
        version,
        image.bytes.to_string(),
        image.stored_bytes.map_or_else(dash, |bytes| bytes.to_string()),
        packed,
        image
            .stored_bytes
            .map_or_else(dash, |bytes| percent(bytes, inspection.bytes)),
    ]
}

/// What is the same for many images, with their numbers, and what is unusual.
fn notes(inspection: &Inspection) -> String {
    let mut groups: Vec<(String, Vec<usize>)> = Vec::new();
    let mut note = |text: String, image: &Image| match groups.iter_mut().find(|(known, _)| *known == text) {
        Some((_, numbers)) => numbers.push(image.number),
        None => groups.push((text, vec![image.number])),
    };
    for image in &inspection.images {
        // In a bundle the label is the target, written longer.
        let container = image.container.and_then(|index| inspection.containers.get(index));
        let in_bundle = container.is_some_and(|one| matches!(one.kind, FileKind::Bundle | FileKind::TextBundle));
        if let (false, Some(label)) = (in_bundle, &image.label) {
            note(format!("in {label}"), image);
        }
        if let Some(producer) = &image.producer {
            let version = producer
                .version
                .as_ref()
                .map_or_else(String::new, |version| format!(" {version}"));
            note(format!("made by {}{version}", producer.name), image);
        }
        match image.debug {
            DebugInfo::Full => note("debug information".to_owned(), image),
            DebugInfo::Lines => note("line tables".to_owned(), image),
            DebugInfo::None => {}
        }
        if image.relocatable {
            let text = match image.kind {
                FileKind::Cubin => "relocatable: a driver leaves out kernels that need what it does not define",
                _ => "relocatable: has to be linked before it can be loaded",
            };
            note(text.to_owned(), image);
        }
        if image.mercury {
            note("Mercury code, which the driver finishes".to_owned(), image);
        }
        if let Some(identifier) = &image.identifier {
            let how = if matches!(PtxPolicy::from_identifier(identifier), Ok(Some(_))) {
                "made with"
            } else {
                "called"
            };
            note(format!("{how} {identifier}"), image);
        }
        if let Some(options) = &image.options {
            let whose = if image.kind == FileKind::Ptx {
                "options for the driver's compiler"
            } else {
                "options"
            };
            note(format!("{whose}: {options}"), image);
        }
        if !image.undefined.is_empty() {
            note(format!("undefined: {}", image.undefined.join(", ")), image);
        }
        for remark in &image.remarks {
            note(remark.clone(), image);
        }
        if let Some(error) = &image.error {
            note(error.clone(), image);
        }
    }
    let mut text = String::new();
    for (note, numbers) in groups {
        let images = if numbers.len() == 1 { "image" } else { "images" };
        text.push_str(&wrapped(&format!("{images} {}: {note}", ranges(&numbers)), 0));
    }
    for (index, container) in inspection.containers.iter().enumerate() {
        for remark in container.remarks.iter().chain(&container.error) {
            text.push_str(&wrapped(&format!("{}: {remark}", inspection.container_name(index)), 0));
        }
    }
    text
}

/// `1-3, 5` for ascending numbers.
fn ranges(numbers: &[usize]) -> String {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for &number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    let shown = ranges.iter().map(|&(first, last)| match last - first {
        0 => first.to_string(),
        1 => format!("{first}, {last}"),
        _ => format!("{first}-{last}"),
    });
    shown.collect::<Vec<_>>().join(", ")
}

fn kernels(inspection: &Inspection) -> String {
    let head = [
        "kernel",
        "image",
        "registers",
        "spills",
        "shared",
        "scratch",
        "code",
        "params",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    let (mut amd, mut unknown_spills, mut ptx) = (false, false, false);
    for image in &inspection.images {
        for kernel in &image.kernels {
            let (cells, parameters) = match kernel {
                Kernel::Machine(kernel) => {
                    amd |= kernel.vgprs.is_some();
                    unknown_spills |= kernel.spills().is_none();
                    let bytes = kernel
                        .parameter_bytes
                        .map_or_else(|| "-".to_owned(), |bytes| bytes.to_string());
                    (usage(kernel), bytes)
                }
                Kernel::Ptx(kernel) => {
                    ptx = true;
                    (["-"; 5].map(str::to_owned), kernel.parameter_bytes.to_string())
                }
            };
            let names = [printable(kernel.name()), image.number.to_string()];
            rows.push(names.into_iter().chain(cells).chain([parameters]).collect());
        }
    }
    if rows.len() == 1 {
        return String::new();
    }
    let mut text = aligned(rows, 1);
    let mut legend = "Sizes are bytes; params is the parameter block.".to_owned();
    if unknown_spills {
        legend.push_str(" A cubin does not record its spills: they are part of scratch.");
    }
    if ptx {
        legend.push_str(" What PTX needs is known when it has been compiled.");
    }
    if amd {
        legend.push_str(" AMD: v vector, a accumulation, s scalar registers; spills are registers.");
    }
    text.push_str(&wrapped(&legend, 0));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_drawn_together() {
        assert_eq!(ranges(&[1, 2, 3, 5, 7, 8]), "1-3, 5, 7, 8");
        assert_eq!(ranges(&[4]), "4");
    }

    #[test]
    fn shares_are_of_something() {
        assert_eq!(percent(1, 8), "12.5%");
        assert_eq!(percent(1, 0), "-");
    }
}
