//! What the images define, chip by chip: all images for one chip are linked into one.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    super::layout::ImageForm,
    items::{is_texture, listed},
    report::{FoundEntry, FoundImage},
};

/// Most chips that are looked at one by one.
const MOST_CHIPS: usize = 256;

/// The images for each chip.
#[derive(Debug)]
pub(super) struct ByChip<'a> {
    chips: BTreeMap<&'a str, Vec<&'a FoundImage>>,
}

impl<'a> ByChip<'a> {
    pub(super) fn new(images: &[&'a FoundImage]) -> Self {
        let mut chips: BTreeMap<&str, Vec<&FoundImage>> = BTreeMap::new();
        for image in images {
            chips.entry(&image.arch).or_default().push(image);
        }
        Self { chips }
    }

    /// What several images for one chip define, although one may: the device link refuses that.
    pub(super) fn defined_twice(&self) -> Vec<String> {
        let twice = |(chip, images): (&&str, &Vec<&FoundImage>)| {
            let (mut once, mut twice) = (BTreeSet::new(), BTreeSet::new());
            for name in images
                .iter()
                .filter_map(|image| image.symbols.as_ref())
                .flat_map(|all| &all.unique)
            {
                if !once.insert(name.as_str()) {
                    twice.insert(name.as_str());
                }
            }
            (!twice.is_empty()).then(|| {
                let names = listed(twice);
                format!("several images for {chip} define {names}: the device link takes one definition")
            })
        };
        self.chips.iter().take(MOST_CHIPS).filter_map(twice).collect()
    }

    /// What is registered for a chip without an image that defines it: the launch fails.
    pub(super) fn missing(&self, entries: &[&FoundEntry]) -> Vec<String> {
        let chips = self.chips.iter().take(MOST_CHIPS);
        chips
            .filter_map(|(chip, images)| missing(chip, images, entries))
            .collect()
    }

    /// The same where it is not known which entries belong to which images: what no image at all defines.
    pub(super) fn missing_everywhere(&self, entries: &[&FoundEntry]) -> Vec<String> {
        let images: Vec<&FoundImage> = self.chips.values().flatten().copied().collect();
        missing("any chip", &images, entries).into_iter().collect()
    }
}

fn missing(chip: &str, images: &[&FoundImage], entries: &[&FoundEntry]) -> Option<String> {
    let (mut kernels, mut variables) = (BTreeSet::new(), BTreeSet::new());
    for image in images {
        // What one image holds cannot be told, so nothing is known to be missing.
        let symbols = image.symbols.as_ref()?;
        kernels.extend(symbols.kernels.iter().map(String::as_str));
        variables.extend(symbols.variables.iter().map(String::as_str));
    }
    let is_missing = |entry: &&&FoundEntry| match entry.is_kernel() {
        true => !kernels.contains(entry.name.as_str()),
        false => !variables.contains(entry.name.as_str()),
    };
    let names: BTreeSet<&str> = entries
        .iter()
        .filter(|entry| entry.has_address && !is_texture(entry))
        .filter(is_missing)
        .map(|entry| entry.name.as_str())
        .collect();
    if names.is_empty() {
        return None;
    }
    let (are, them) = if names.len() == 1 {
        ("is", "it")
    } else {
        ("are", "them")
    };
    let image = if images.len() == 1 { "image" } else { "images" };
    let does = if images.len() == 1 { "does" } else { "do" };
    let amd = images
        .iter()
        .any(|image| matches!(image.form, Some(ImageForm::AmdObject(_) | ImageForm::AmdLinked)));
    // A kernel of AMD's is found by the object NAME.kd, and hidden ones by nothing.
    let how = if amd {
        " for others to see, a kernel as NAME.kd"
    } else {
        ""
    };
    Some(format!(
        "{} {are} registered, and the {image} for {chip} {does} not define {them}{how}",
        listed(names)
    ))
}
