//! What a release of clang registers of the entries and images of an object.

use std::collections::BTreeSet;

use super::{
    super::{
        images::unknown_chip,
        layout::{EntryLayout, ImageForm, language, newest_offload_binary, numbering, refusal},
        release::ClangRelease,
        runtime::Runtime,
    },
    chips::ByChip,
    items::{Items, is_declaration, listed, take, take_for_openmp},
    report::{FoundEntry, FoundImage, Registered},
};
use crate::{
    container::offload_binary::{ImageKind, OffloadKindNumber},
    target::Target,
};

/// What a release would register.
pub(super) fn registered(entries: &[FoundEntry], images: &[FoundImage], release: ClangRelease) -> Registered {
    let mut result = Registered::default();
    let newest = newest_offload_binary(release);
    let mut versions = images.iter().filter_map(|image| image.version);
    if let Some(version) = versions.find(|version| *version > newest) {
        result.problems.push(format!(
            "it reads offload binaries up to version {newest}, and there is one of version {version}"
        ));
    } else {
        for runtime in Runtime::ALL {
            of_runtime(&mut result, entries, images, release, runtime);
        }
        if result == Registered::default() {
            let numbers: BTreeSet<String> = images
                .iter()
                .filter_map(|image| Some(image.kind?.to_string()))
                .collect();
            result.problems.push(format!(
                "it finds no entries and images for CUDA, HIP or OpenMP (languages of the images: {})",
                listed(numbers.iter().map(String::as_str))
            ));
        }
    }
    result.note_missing(entries);
    result
}

/// Adds what a release registers with one runtime, or why it does not.
fn of_runtime(
    result: &mut Registered,
    entries: &[FoundEntry],
    images: &[FoundImage],
    release: ClangRelease,
    runtime: Runtime,
) {
    let layout = EntryLayout::of(release);
    let Some(number) = language(runtime).number(numbering(release)) else {
        return;
    };
    let section = layout.section(runtime);
    let all: Vec<&FoundEntry> = entries.iter().filter(|entry| entry.section == section).collect();
    let is_of_language = |entry: &&&FoundEntry| entry.kind.is_none_or(|kind| kind == number);
    let of_language: Vec<&FoundEntry> = all.iter().filter(is_of_language).copied().collect();
    // A number of several languages is none of OpenMP's: HIP's up to 20 is OpenMP and CUDA to newer ones.
    let is_read = |kind: OffloadKindNumber| match runtime {
        Runtime::OpenMp => kind.0 == number,
        _ => kind.read_as(numbering(release)).contains(&language(runtime)),
    };
    let images: Vec<&FoundImage> = images.iter().filter(|image| image.kind.is_some_and(is_read)).collect();
    let problem = if all.is_empty() && images.is_empty() {
        return;
    } else if all.iter().any(|entry| entry.bytes != layout.size()) {
        let size = layout.size();
        format!("it reads entries of {size} bytes in the section {section}, and these have another layout")
    } else if images.is_empty() && of_language.is_empty() {
        return;
    } else if images.is_empty() {
        let name = runtime.language();
        format!("no image is of the language {name}, number {number}")
    } else if of_language.is_empty() {
        no_entries(entries, runtime, section, number)
    } else {
        let refused: BTreeSet<String> = images
            .iter()
            .filter_map(|image| refused(image, release, runtime))
            .collect();
        let by_chip = ByChip::new(&images);
        let twice = by_chip.defined_twice();
        let links = refused.is_empty() && twice.is_empty();
        result.problems.extend(refused);
        result.problems.extend(twice);
        if links {
            match runtime {
                Runtime::OpenMp => take_for_openmp(result, &of_language),
                _ => take(
                    result,
                    &of_language,
                    layout,
                    runtime == Runtime::Hip && layout.has_flag_bits(),
                ),
            }
            let of_language: Vec<&FoundEntry> =
                of_language.into_iter().filter(|entry| !is_declaration(entry)).collect();
            result.problems.extend(by_chip.missing(&of_language));
        }
        return;
    };
    result.problems.push(problem);
}

fn no_entries(entries: &[FoundEntry], runtime: Runtime, section: &str, number: u16) -> String {
    let others: BTreeSet<&str> = entries.iter().map(|entry| entry.section.as_str()).collect();
    if others.is_empty() {
        "there are images and no offload entries".to_owned()
    } else if others.contains(section) {
        format!(
            "no entry in the section {section} is of the language {}, number {number}",
            runtime.language()
        )
    } else {
        let others = listed(others);
        format!("it looks for entries in the section {section}, and they are in {others}")
    }
}

/// Why a release does not take an image.
fn refused(image: &FoundImage, release: ClangRelease, runtime: Runtime) -> Option<String> {
    let arch = &image.arch;
    let Some(form) = image.form else {
        return Some(format!(
            "the image for {arch} is neither a cubin, nor PTX, bitcode or an object for AMD's GPUs"
        ));
    };
    let because = |reason: String| Some(format!("the {form} for {arch} is not taken: {reason}"));
    if let Some(reason) = refusal(release, form) {
        return because(reason.to_owned());
    }
    if let Some(reason) = wrong_mark(image, form, release) {
        return because(reason);
    }
    if let Some(reason) = image.call.and_then(|call| call.refusal(release)) {
        return Some(format!(
            "the kernels for {arch} are not called as they expect it: {reason}"
        ));
    }
    let target = match (arch.parse::<Target>(), runtime) {
        (Ok(target @ Target::Nvidia(_)), Runtime::Cuda | Runtime::OpenMp)
        | (Ok(target @ Target::Amd(_)), Runtime::Hip | Runtime::OpenMp) => target,
        _ => return because(format!("{arch:?} is no chip for {} that is known", runtime.name())),
    };
    let triple = image.triple.as_deref().unwrap_or_default();
    // Clang 23 calls AMD's processors so, too.
    let renamed = release.number() >= 23 && triple.starts_with("amdgpu-amd-amdhsa");
    if !triple.starts_with(target.triple()) && !renamed {
        return because(format!("its triple is {triple:?} instead of {}", target.triple()));
    }
    if let Some(first) = unknown_chip(release, form, &target) {
        return because(format!(
            "{release} does not know the chip, which clang {first} and newer do"
        ));
    }
    let made_for = image.made_for.as_deref()?;
    let agrees = match (&target, made_for.parse::<Target>()) {
        (Target::Nvidia(target), Ok(Target::Nvidia(made_for))) => target.number() == made_for.number(),
        (Target::Amd(target), Ok(Target::Amd(made_for))) => {
            let differ = |a: Option<bool>, b: Option<bool>| a.zip(b).is_some_and(|(a, b)| a != b);
            target.chip() == made_for.chip()
                && !differ(target.xnack(), made_for.xnack())
                && !differ(target.sramecc(), made_for.sramecc())
        }
        _ => true,
    };
    match agrees {
        true => None,
        false => because(format!("it was made for {made_for}")),
    }
}

/// Clang up to 19 names the temporary file after what the offload binary says of the image. Tried with 16 and 19.
fn wrong_mark(image: &FoundImage, form: ImageForm, release: ClangRelease) -> Option<String> {
    let marked = image.marked?;
    let wrong = match form {
        _ if release.number() > 19 || marked == form.image_kind() => false,
        ImageForm::Ptx | ImageForm::Bitcode => true,
        _ => marked == ImageKind::Bitcode,
    };
    wrong.then(|| {
        format!(
            "the offload binary says that it is of the kind `{marked}` instead of `{}`, which clang up to 19 believe",
            form.image_kind()
        )
    })
}

impl Registered {
    /// Notes what has an entry and is not registered.
    pub(super) fn note_missing(&mut self, entries: &[FoundEntry]) {
        let mut items = Items::default();
        for entry in entries.iter().filter(|entry| is_of_gpu(entry)) {
            items.add(entry);
        }
        let missing = |all: BTreeSet<&str>, registered: &[String]| -> Vec<String> {
            let registered: BTreeSet<&str> = registered.iter().map(String::as_str).collect();
            all.difference(&registered).map(|name| (*name).to_owned()).collect()
        };
        self.missing_kernels = missing(items.kernels, &self.kernels);
        self.missing_variables = missing(items.variables, &self.variables);
    }
}

/// Whether some release takes an entry for one of a kernel or variable.
fn is_of_gpu(entry: &FoundEntry) -> bool {
    // OpenMP; CUDA; HIP up to 20; HIP from 21 on.
    entry.kind.is_none_or(|kind| [1, 2, 3, 4].contains(&kind)) && !is_declaration(entry)
}
