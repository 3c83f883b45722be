//! Names for the files that images are extracted to.

use std::collections::{HashMap, HashSet};

use super::model::Inspection;

/// Longest part of a name, in characters: names stay well below what file systems take.
const LONGEST: usize = 100;

/// A file name for each image, in order: `STEM.TARGET.EXTENSION`, with a number in front of the extension where that came
/// before (`k.sm_90.2.cubin`).
///
/// Every name is one component of a path, does not begin with a dot, and holds nothing but ASCII letters, digits and
/// `._-+@`, whatever the file says: the colons of target IDs become `@`, anything else `_`.
#[must_use]
pub fn file_names(inspection: &Inspection, stem: &str) -> Vec<String> {
    let stem = Some(safe(stem))
        .filter(|stem| !stem.is_empty())
        .unwrap_or_else(|| "image".to_owned());
    let mut taken = HashSet::new();
    let mut last_numbers: HashMap<String, usize> = HashMap::new();
    let mut names = Vec::new();
    for image in &inspection.images {
        let target = image.target.as_deref().map(safe).filter(|target| !target.is_empty());
        let base = target.map_or_else(|| stem.clone(), |target| format!("{stem}.{target}"));
        let extension = image.kind.extension();
        let mut name = format!("{base}.{extension}");
        let number = last_numbers.entry(name.clone()).or_insert(1);
        // Another image's target may end as if it had a number.
        while !taken.insert(name.clone()) {
            *number += 1;
            name = format!("{base}.{number}.{extension}");
        }
        names.push(name);
    }
    names
}

fn safe(text: &str) -> String {
    let character = |character: char| match character {
        ':' => '@',
        '_' | '-' | '.' | '+' => character,
        _ if character.is_ascii_alphanumeric() => character,
        _ => '_',
    };
    let text: String = text.chars().map(character).take(LONGEST).collect();
    text.trim_start_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::super::model::Image;
    use super::*;
    use crate::FileKind;

    fn names(stem: &str, images: &[(FileKind, Option<&str>)]) -> Vec<String> {
        let images = images
            .iter()
            .map(|(kind, target)| Image {
                target: target.map(str::to_owned),
                ..Image::new(*kind, 0)
            })
            .collect();
        let inspection = Inspection {
            file: String::new(),
            bytes: 0,
            device_bytes: 0,
            containers: Vec::new(),
            images,
        };
        file_names(&inspection, stem)
    }

    #[test]
    fn each_image_has_a_name_of_its_own() {
        let images = [
            (FileKind::Cubin, Some("sm_90a")),
            (FileKind::Ptx, Some("sm_90a")),
            (FileKind::Cubin, Some("sm_90a")),
            (FileKind::Hsaco, Some("gfx90a:sramecc+:xnack-")),
            (FileKind::Bitcode, None),
        ];
        assert_eq!(
            names("k", &images),
            [
                "k.sm_90a.cubin",
                "k.sm_90a.ptx",
                "k.sm_90a.2.cubin",
                "k.gfx90a@sramecc+@xnack-.hsaco",
                "k.bc"
            ]
        );
    }

    #[test]
    fn no_name_leaves_the_directory() {
        let images = [
            (FileKind::Cubin, Some("../../etc/passwd")),
            (FileKind::Cubin, Some("/\0\n\u{202e}\\")),
            (FileKind::Cubin, Some("..")),
            (FileKind::Cubin, Some(&"x".repeat(5000))),
        ];
        for stem in ["k", "..", "a/b", ""] {
            for name in names(stem, &images) {
                let path = std::path::Path::new(&name);
                assert_eq!(path.file_name(), Some(path.as_os_str()), "{name}");
                assert!(!name.starts_with('.') && name.len() < 255 && name.is_ascii(), "{name}");
                assert!(
                    !name
                        .chars()
                        .any(|character| character.is_control() || "/\\".contains(character)),
                    "{name}"
                );
            }
        }
        assert_eq!(names("", &[(FileKind::Ptx, None)]), ["image.ptx"]);
    }
}
