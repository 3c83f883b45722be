//! Which releases of clang register which kernels of a host object, and what a finished program registers.
//!
//! Nothing else says so: a link with the wrong layout succeeds, and the program finds no kernel.

use std::collections::BTreeSet;

use super::{
    check_elf::HostFile,
    check_tables,
    layout::{EntryLayout, FLAG_TYPE_MASK, ImageForm, language, newest_offload_binary, numbering, refusal},
    program::Runtime,
    release::ClangRelease,
};
use crate::{
    container::{
        host_sections::{HIP_WRAPPER_SECTION, NV_WRAPPER_SECTION},
        offload_binary::OffloadKindNumber,
    },
    image::elf::ElfError,
};

/// Why a host file could not be checked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CheckError {
    /// Not a host object or program.
    #[error("cannot be checked: {0}")]
    Elf(#[from] ElfError),
}

/// An offload entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundEntry {
    /// Its section.
    pub section: &'static str,
    /// Size of the entry, 32 or 56 bytes.
    pub bytes: u64,
    /// The name of the kernel or variable.
    pub name: String,
    /// Bytes of the variable; 0 for a kernel.
    pub size: u64,
    /// Flags.
    pub flags: u32,
    /// The number of the language, in an entry of 56 bytes.
    pub kind: Option<u16>,
    /// Whether it has an address.
    pub has_address: bool,
    /// Whether it survives a link with `--gc-sections` and lld. In a finished program that is past.
    pub retained: bool,
}

/// A device image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundImage {
    /// Version of the offload binary; none in a fat binary or bundle.
    pub version: Option<u32>,
    /// The number of the language there.
    pub kind: Option<OffloadKindNumber>,
    /// What it is for, as the file says it.
    pub arch: String,
    /// What it is, if it is any of those.
    pub form: Option<ImageForm>,
    /// The names that it defines, if they can be read.
    pub symbols: Option<BTreeSet<String>>,
}

/// What one release of clang, or the finished program itself, registers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Registered {
    /// The kernels.
    pub kernels: Vec<String>,
    /// The variables.
    pub variables: Vec<String>,
    /// Why others are not registered, or fail when they are launched.
    pub problems: Vec<String>,
}

/// What there is to say of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The entries.
    pub entries: Vec<FoundEntry>,
    /// The images for clang's linker wrapper, or for the runtime in a finished program.
    pub images: Vec<FoundImage>,
    /// The runtimes with which the file registers fat binaries or bundles by itself: it is a finished program, or an
    /// object that needs no clang.
    pub registers_itself: Vec<Runtime>,
    /// What is wrong whatever the release.
    pub problems: Vec<String>,
    /// For each release what it registers; empty for a finished program and for an object that needs no clang.
    pub releases: Vec<(ClangRelease, Registered)>,
    /// What a finished program registers of its entries.
    pub finished: Option<Registered>,
}

/// Reads a host object or a finished program (64-bit ELF).
///
/// # Errors
///
/// [`CheckError`] if it is not one. What is wrong inside is in the report.
pub fn check(bytes: &[u8]) -> Result<Report, CheckError> {
    let file = HostFile::parse(bytes)?;
    let mut problems = Vec::new();
    let entries = check_tables::entries(&file, bytes.len(), &mut problems);
    let has = |section: &str| file.sections(section).next().is_some();
    let wrappers = [(Runtime::Cuda, NV_WRAPPER_SECTION), (Runtime::Hip, HIP_WRAPPER_SECTION)];
    let registers_itself: Vec<Runtime> = wrappers
        .into_iter()
        .filter_map(|(runtime, section)| has(section).then_some(runtime))
        .collect();
    let images = match registers_itself.is_empty() {
        true => check_tables::images(&file, bytes.len(), &mut problems),
        false => check_tables::finished_images(&file, &mut problems),
    };
    let mut report = Report {
        entries,
        images,
        registers_itself,
        problems,
        releases: Vec::new(),
        finished: None,
    };
    if !report.registers_itself.is_empty() {
        report.finished = finished(&file, &report);
    } else if !file.is_object() && !report.entries.is_empty() {
        let problem = "the program has offload entries and registers none: it was linked without --offload-link, which \
                       drops the device code without a word";
        report.problems.push(problem.to_owned());
    } else if report.entries.is_empty() && report.images.is_empty() {
        report
            .problems
            .push("there are neither offload entries nor device images in it".to_owned());
    } else {
        report.releases = ClangRelease::all()
            .map(|release| (release, registered(&report, release)))
            .collect();
    }
    Ok(report)
}

/// What a release would register of an object.
fn registered(report: &Report, release: ClangRelease) -> Registered {
    let mut result = Registered::default();
    let newest = newest_offload_binary(release);
    if let Some(version) = report
        .images
        .iter()
        .filter_map(|image| image.version)
        .find(|version| *version > newest)
    {
        let problem =
            format!("it reads offload binaries up to version {newest}, and there is one of version {version}");
        result.problems.push(problem);
        return result;
    }
    let layout = EntryLayout::of(release);
    for runtime in [Runtime::Cuda, Runtime::Hip] {
        let Some(number) = language(runtime).number(numbering(release)) else {
            continue;
        };
        let section = layout.section(runtime);
        let all = report.entries.iter().filter(|entry| entry.section == section);
        let of_language = all.clone().filter(|entry| entry.kind.is_none_or(|kind| kind == number));
        let images: Vec<&FoundImage> = images_of(report, release, runtime).collect();
        if all.clone().next().is_none() && images.is_empty() {
            continue;
        }
        if all.clone().any(|entry| entry.bytes != layout.size()) {
            let size = layout.size();
            let problem =
                format!("it reads entries of {size} bytes in the section {section}, and these have another layout");
            result.problems.push(problem);
            continue;
        }
        if images.is_empty() {
            if of_language.clone().next().is_some() {
                let problem = format!("no image is of the language {}, number {number}", runtime.prefix());
                result.problems.push(problem);
            }
            continue;
        }
        if of_language.clone().next().is_none() {
            result.problems.push(no_entries(report, runtime, section, number));
            continue;
        }
        let refused: Vec<String> = images.iter().filter_map(|image| refused(image, release)).collect();
        if !refused.is_empty() {
            result.problems.extend(refused);
            continue;
        }
        for entry in of_language {
            take(&mut result, entry, layout, &images);
        }
    }
    if result == Registered::default() {
        let numbers: Vec<String> = report
            .images
            .iter()
            .filter_map(|image| Some(image.kind?.to_string()))
            .collect();
        let problem = format!(
            "it finds no entries and images for CUDA or HIP (languages of the images: {})",
            numbers.join(", ")
        );
        result.problems.push(problem);
    }
    result
}

/// The images that a release takes for a language.
fn images_of(report: &Report, release: ClangRelease, runtime: Runtime) -> impl Iterator<Item = &FoundImage> {
    let is_of = move |kind: OffloadKindNumber| kind.read_as(numbering(release)).contains(&language(runtime));
    report.images.iter().filter(move |image| image.kind.is_some_and(is_of))
}

fn no_entries(report: &Report, runtime: Runtime, section: &str, number: u16) -> String {
    let mut others: Vec<&str> = report.entries.iter().map(|entry| entry.section).collect();
    others.dedup();
    match others.as_slice() {
        [] => "there are images and no offload entries".to_owned(),
        others if others.contains(&section) => {
            format!(
                "no entry in the section {section} is of the language {}, number {number}",
                runtime.prefix()
            )
        }
        others => format!(
            "it looks for entries in the section {section}, and they are in {}",
            others.join(", ")
        ),
    }
}

fn refused(image: &FoundImage, release: ClangRelease) -> Option<String> {
    let arch = &image.arch;
    match image.form {
        Some(form) => Some(format!(
            "the {form} for {arch} is not taken: {}",
            refusal(release, form)?
        )),
        None => Some(format!(
            "the image for {arch} is neither a cubin, nor PTX, bitcode or an object for AMD's GPUs"
        )),
    }
}

/// Registers an entry, or says why not.
fn take(result: &mut Registered, entry: &FoundEntry, layout: EntryLayout, images: &[&FoundImage]) {
    let name = &entry.name;
    if !entry.has_address {
        result.problems.push(format!("{name} has no address"));
    } else if entry.size == 0 {
        result.kernels.push(name.clone());
    } else if !layout.has_flag_bits() && entry.flags > FLAG_TYPE_MASK {
        let problem = format!(
            "the variable {name} is passed over for its flags {}: up to clang 17 they are 0 to 3",
            entry.flags
        );
        result.problems.push(problem);
        return;
    } else if entry.flags & FLAG_TYPE_MASK == 1 && !matches!(layout, EntryLayout::Clang20 | EntryLayout::Clang21) {
        result.problems.push(format!(
            "the managed variable {name} is passed over: clang registers them from 20 on"
        ));
        return;
    } else {
        result.variables.push(name.clone());
    }
    for image in images {
        if image.symbols.as_ref().is_some_and(|symbols| !symbols.contains(name)) {
            let arch = &image.arch;
            result.problems.push(format!(
                "{name} is registered, and the image for {arch} does not define it"
            ));
        }
    }
}

/// What a finished program registers of its entries: those between the boundaries to which its constructor refers.
fn finished(file: &HostFile<'_>, report: &Report) -> Option<Registered> {
    let is_read = |section: &str| {
        let boundary = format!("__start_{section}");
        file.symbols.iter().any(|symbol| symbol.name == boundary)
    };
    let mut sections: Vec<&str> = report.entries.iter().map(|entry| entry.section).collect();
    sections.dedup();
    let mut result = Registered::default();
    if sections.is_empty() {
        return None;
    }
    match sections.iter().filter(|section| is_read(section)).count() {
        0 if file.symbols.is_empty() && sections.len() > 1 => {
            let problem = "its symbols were removed: which of its tables of entries it reads cannot be said";
            result.problems.push(problem.to_owned());
            return Some(result);
        }
        0 if file.symbols.is_empty() => {}
        0 => {
            let problem = format!(
                "its constructor reads none of its entries, which are in {}: they were made for other releases of clang",
                sections.join(", ")
            );
            result.problems.push(problem);
            return Some(result);
        }
        _ => sections.retain(|section| is_read(section)),
    }
    let images: Vec<&FoundImage> = report.images.iter().collect();
    for entry in report.entries.iter().filter(|entry| sections.contains(&entry.section)) {
        let layout = match entry.kind {
            Some(_) => EntryLayout::Clang21,
            None => EntryLayout::Clang18,
        };
        take(&mut result, entry, layout, &images);
    }
    Some(result)
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
