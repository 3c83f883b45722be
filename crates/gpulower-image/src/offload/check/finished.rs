//! What a finished program, or an object that needs no clang, registers of its entries.

use std::collections::BTreeSet;

use super::{
    super::layout::EntryLayout,
    chips::ByChip,
    contents::HostContents,
    items::{listed, take},
    report::{FoundEntry, FoundImage, Registered},
};

/// What is registered: the entries between the boundaries to which a constructor refers. None without entries.
pub(super) fn finished(file: &impl HostContents, entries: &[FoundEntry], images: &[FoundImage]) -> Option<Registered> {
    let sections: BTreeSet<&str> = entries.iter().map(|entry| entry.section.as_str()).collect();
    let mut result = Registered::default();
    let read: BTreeSet<&str> = match sections.first() {
        None => return None,
        Some(first) if file.refers_to_start_of(first).is_none() && sections.len() > 1 => {
            let problem = "its symbols were removed: which of its tables of entries it reads cannot be said";
            result.problems.push(problem.to_owned());
            result.note_missing(entries);
            return Some(result);
        }
        // One table is the one that is read.
        Some(_) => sections
            .iter()
            .copied()
            .filter(|section| file.refers_to_start_of(section) != Some(false))
            .collect(),
    };
    if read.is_empty() {
        let sections = listed(sections);
        result.problems.push(format!(
            "its constructor reads none of its entries, which are in {sections}: they were made for other releases of \
             clang"
        ));
        result.note_missing(entries);
        return Some(result);
    }
    let taken: Vec<&FoundEntry> = entries
        .iter()
        .filter(|entry| read.contains(entry.section.as_str()))
        .collect();
    for (layout, is_long) in [(EntryLayout::Clang18, false), (EntryLayout::Clang21, true)] {
        let of_layout: Vec<&FoundEntry> = taken
            .iter()
            .filter(|entry| entry.kind.is_some() == is_long)
            .copied()
            .collect();
        take(&mut result, &of_layout, layout, true);
    }
    let images: Vec<&FoundImage> = images.iter().collect();
    let by_chip = ByChip::new(&images);
    // Each table has a fat binary or bundle of its own, and only the constructors know which.
    result.problems.extend(match read.len() {
        1 => by_chip.missing(&taken),
        _ => by_chip.missing_everywhere(&taken),
    });
    result.note_missing(entries);
    Some(result)
}
