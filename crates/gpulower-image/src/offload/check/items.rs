//! The kernels and variables that entries stand for.

use std::collections::BTreeSet;

use super::{
    super::{
        layout::{EntryLayout, FLAG_TYPE_MASK},
        runtime::Runtime,
    },
    report::{FoundEntry, Registered},
};

/// Names that a list shows before it says how many more there are.
const SHOWN: usize = 8;
/// The low bits of the flags of a managed variable, and the first of those of surfaces and textures.
const MANAGED: u32 = 1;
const SURFACE: u32 = 2;
/// Flags of OpenMP's entries: a function that is called by pointer (from clang 17 on), and what the program requires (18).
const OPENMP_DECLARATIONS: u32 = 8 | 16;

/// Names as people read them: `a, b and 3 more`.
pub(super) fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let mut names = names.into_iter();
    let shown: Vec<&str> = names.by_ref().take(SHOWN).collect();
    match names.count() {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// The names of entries.
#[derive(Debug, Default)]
pub(super) struct Items<'a> {
    pub(super) kernels: BTreeSet<&'a str>,
    pub(super) variables: BTreeSet<&'a str>,
}

impl<'a> Items<'a> {
    pub(super) fn add(&mut self, entry: &'a FoundEntry) {
        match entry.is_kernel() {
            true => self.kernels.insert(&entry.name),
            false => self.variables.insert(&entry.name),
        };
    }
}

/// Registers entries, or says why not. `textures` says whether surfaces and textures are registered.
pub(super) fn take(result: &mut Registered, entries: &[&FoundEntry], layout: EntryLayout, textures: bool) {
    let mut taken = Items::default();
    let (mut without_address, mut flagged) = (BTreeSet::new(), BTreeSet::new());
    let (mut managed, mut surfaces) = (BTreeSet::new(), BTreeSet::new());
    for entry in entries {
        let name = entry.name.as_str();
        if !entry.has_address {
            without_address.insert(name);
        } else if entry.is_kernel() {
            taken.kernels.insert(name);
        } else if !layout.has_flag_bits() && entry.flags > FLAG_TYPE_MASK {
            flagged.insert((name, entry.flags));
        } else if entry.flags & FLAG_TYPE_MASK == MANAGED && layout < EntryLayout::Clang20 {
            managed.insert(name);
        } else if is_texture(entry) && !textures {
            surfaces.insert(name);
        } else {
            taken.variables.insert(name);
        }
    }
    result.kernels.extend(taken.kernels.into_iter().map(str::to_owned));
    result.variables.extend(taken.variables.into_iter().map(str::to_owned));
    if !without_address.is_empty() {
        let verb = if without_address.len() == 1 { "has" } else { "have" };
        let names = listed(without_address);
        result.problems.push(format!("{names} {verb} no address"));
    }
    if let Some((_, flags)) = flagged.first() {
        let variables = variables(&flagged.iter().map(|(name, _)| *name).collect());
        result.problems.push(format!(
            "{variables} passed over for its flags {flags}: up to clang 17 they are 0 to 3"
        ));
    }
    if !managed.is_empty() {
        let variables = variables(&managed);
        result.problems.push(format!(
            "{variables} passed over: clang registers managed variables from 20 on"
        ));
    }
    if !surfaces.is_empty() {
        let variables = variables(&surfaces);
        result.problems.push(format!(
            "{variables} passed over: clang registers surfaces and textures for HIP alone, from 18 on"
        ));
    }
}

/// Registers entries for OpenMP, which have flags of their own.
pub(super) fn take_for_openmp(result: &mut Registered, entries: &[&FoundEntry]) {
    for entry in entries.iter().filter(|entry| !is_declaration(entry)) {
        match entry.is_kernel() {
            _ if !entry.has_address => result.problems.push(format!("{} has no address", entry.name)),
            true => result.kernels.push(entry.name.clone()),
            false => result.variables.push(entry.name.clone()),
        }
    }
    for names in [&mut result.kernels, &mut result.variables] {
        names.sort();
        names.dedup();
    }
}

/// Whether an entry stands for nothing on the device: one of OpenMP's that says what the program requires, or for a function
/// that is called by pointer.
pub(super) fn is_declaration(entry: &FoundEntry) -> bool {
    let is_of_openmp = entry.kind == Some(1) || entry.section == EntryLayout::Clang15.section(Runtime::OpenMp);
    is_of_openmp && entry.flags & OPENMP_DECLARATIONS != 0
}

/// Whether an entry is of a surface or texture.
pub(super) fn is_texture(entry: &FoundEntry) -> bool {
    !entry.is_kernel() && entry.flags & FLAG_TYPE_MASK >= SURFACE
}

fn variables(names: &BTreeSet<&str>) -> String {
    match names.len() {
        1 => format!("the variable {} is", listed(names.iter().copied())),
        _ => format!("the variables {} are", listed(names.iter().copied())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_are_cut() {
        let names = ["a"; 10];
        assert_eq!(listed(names.into_iter().take(2)), "a, a");
        assert_eq!(listed(names), "a, a, a, a, a, a, a, a and 2 more");
    }

    /// Entries of every kind, alone and in pairs.
    #[test]
    fn entries_are_taken_as_before() {
        let mut entries = Vec::new();
        for flags in [0, 1, 2, 3, 7, 8, 9, 16, 24] {
            for (size, has_address) in [(0, true), (0, false), (4, true), (4, false)] {
                for kind in [None, Some(1), Some(2)] {
                    entries.push(FoundEntry {
                        section: EntryLayout::Clang15
                            .section(Runtime::OpenMp)
                            .replace("omp", if size == 0 { "omp" } else { "cuda" }),
                        bytes: 32,
                        name: format!("e{}", entries.len()),
                        size,
                        flags,
                        kind,
                        has_address,
                        retained: true,
                    });
                }
            }
        }
        let mut told = crate::seeds_tests::Told::default();
        for (index, entry) in entries.iter().enumerate() {
            let some = [entry, &entries[index / 2]];
            told.line("is", (is_declaration(entry), is_texture(entry)));
            for layout in [
                EntryLayout::Clang15,
                EntryLayout::Clang18,
                EntryLayout::Clang20,
                EntryLayout::Clang21,
            ] {
                for textures in [false, true] {
                    let mut result = Registered::default();
                    take(&mut result, &some, layout, textures);
                    told.line("taken", result);
                }
            }
            let mut result = Registered::default();
            take_for_openmp(&mut result, &some);
            told.line("taken", result);
        }
        use md5::Digest as _;
        assert_eq!(
            crate::seeds_tests::short(md5::Md5::new_with_prefix(&told.0)),
            "aa82df235523"
        );
    }
}
