//! The offload entries of a host file.

use super::{
    super::layout::{ENTRY_VERSION, EntryLayout},
    contents::{HostContents, Part, Pointee, entry_section, u16_at, u32_at, u64_at},
    report::FoundEntry,
};

/// Most entries without a name that are listed.
const MOST_UNREADABLE: usize = 16;

/// All entries, and what is wrong with those that cannot be read.
///
/// Sections and names may share bytes, so that a small file could describe very many: both are counted against its size.
pub(super) fn entries(file: &impl HostContents, problems: &mut Vec<String>) -> Vec<FoundEntry> {
    let mut found = Vec::new();
    let (mut section_bytes, mut name_bytes, mut unreadable) = (0usize, 0usize, 0usize);
    for part in file.parts(&|name| entry_section(name).is_some()) {
        let section = part.section;
        let Some(contents) = part.contents else {
            problems.push(format!("the section {section} reaches behind the end of the file"));
            continue;
        };
        section_bytes = section_bytes.saturating_add(contents.len());
        let layout = layout_of(file, &part, contents);
        let size = usize::try_from(layout.size()).unwrap_or(usize::MAX);
        if contents.len() % size != 0 {
            let bytes = contents.len();
            problems.push(format!(
                "the section {section} has {bytes} bytes, which are no whole number of entries"
            ));
        }
        for (number, record) in contents.chunks_exact(size).enumerate() {
            if section_bytes > file.size() || name_bytes > file.size() {
                problems.push("the sections with entries, or their names, overlap".to_owned());
                return found;
            }
            let offset = (number * size) as u64;
            match entry(file, &part, layout, offset, record) {
                Some(entry) => {
                    name_bytes = name_bytes.saturating_add(entry.name.len());
                    found.push(entry);
                }
                None if unreadable < MOST_UNREADABLE => {
                    unreadable += 1;
                    problems.push(format!("the entry at {offset:#x} in the section {section} has no name"));
                }
                None => {
                    problems.push("more entries have no name; the rest is not read".to_owned());
                    return found;
                }
            }
        }
    }
    found
}

/// The long layout begins with eight zero bytes, a version and a language; the short one with a pointer.
fn layout_of(file: &impl HostContents, part: &Part<'_>, contents: &[u8]) -> EntryLayout {
    let size = EntryLayout::Clang21.size() as usize;
    let is_long = |(number, record): (usize, &[u8])| {
        u64_at(record, 0) == Some(0)
            && u16_at(record, 8) == Some(ENTRY_VERSION)
            && file.pointee(part.number, (number * size) as u64) == Some(Pointee::Null)
    };
    match contents.len().is_multiple_of(size) && contents.chunks_exact(size).enumerate().all(is_long) {
        true => EntryLayout::Clang21,
        false => EntryLayout::Clang15,
    }
}

fn entry(
    file: &impl HostContents,
    part: &Part<'_>,
    layout: EntryLayout,
    offset: u64,
    record: &[u8],
) -> Option<FoundEntry> {
    let at = |offset: u64| usize::try_from(offset).ok();
    let name = file.pointee(part.number, offset + layout.address_offset() + 8)?;
    Some(FoundEntry {
        section: part.section.to_owned(),
        bytes: layout.size(),
        name: file.text(name)?.to_owned(),
        size: u64_at(record, at(layout.size_offset())?)?,
        flags: u32_at(record, at(layout.flags_offset())?)?,
        kind: match layout {
            EntryLayout::Clang20 | EntryLayout::Clang21 => u16_at(record, 10),
            EntryLayout::Clang15 | EntryLayout::Clang18 => None,
        },
        has_address: file.pointee(part.number, offset + layout.address_offset()) != Some(Pointee::Null),
        retained: part.retained,
    })
}
