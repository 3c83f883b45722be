//! Which objects take part in a link, and whether their symbols fit together, judged before a linker sees them.

use std::collections::{BTreeMap, BTreeSet};

use super::super::link_error::{DeviceLinkError, DuplicateSymbol, MissingSymbol};
use super::input::Unit;
use crate::image::symbols::{LinkSymbols, SymbolKind};

/// An object and what it defines and needs.
pub(super) struct Object<'u, 'a> {
    pub unit: &'u Unit<'a>,
    pub symbols: LinkSymbols<'u>,
}

/// The objects that take part: all that are not members of archives, and those members that define what is needed.
pub(super) fn participants<'o, 'u, 'a>(objects: &'o [Object<'u, 'a>]) -> Vec<&'o Object<'u, 'a>> {
    let mut taken: Vec<bool> = objects.iter().map(|object| !object.unit.optional).collect();
    let mut defined: BTreeSet<&str> = BTreeSet::new();
    let mut needed: BTreeSet<&str> = BTreeSet::new();
    let mut take = |object: &Object<'u, 'a>, needed: &mut BTreeSet<&'u str>| {
        defined.extend(object.symbols.defined.keys());
        needed.extend(object.symbols.needed.keys());
        needed.retain(|name| !defined.contains(name));
    };
    for object in objects.iter().filter(|object| !object.unit.optional) {
        take(object, &mut needed);
    }
    loop {
        let mut changed = false;
        for (object, taken) in objects.iter().zip(&mut taken) {
            if !*taken && object.symbols.defined.keys().any(|name| needed.contains(name)) {
                *taken = true;
                changed = true;
                take(object, &mut needed);
            }
        }
        if !changed {
            break;
        }
    }
    objects
        .iter()
        .zip(taken)
        .filter_map(|(object, taken)| taken.then_some(object))
        .collect()
}

/// Refuses symbols that are defined more than once. nvJitLink would keep one definition, and succeed.
pub(super) fn refuse_duplicates(objects: &[&Object<'_, '_>]) -> Result<(), DeviceLinkError> {
    let mut definitions: BTreeMap<&str, (SymbolKind, Vec<&str>)> = BTreeMap::new();
    for object in objects {
        for (name, definition) in &object.symbols.defined {
            if !definition.mergeable {
                let (_, inputs) = definitions.entry(name).or_insert((definition.kind, Vec::new()));
                inputs.push(&object.unit.name);
            }
        }
    }
    let duplicates: Vec<DuplicateSymbol> = definitions
        .into_iter()
        .filter(|(_, (_, inputs))| inputs.len() > 1)
        .map(|(name, (kind, inputs))| DuplicateSymbol {
            name: name.to_owned(),
            kind: Some(kind),
            inputs: inputs.into_iter().map(str::to_owned).collect(),
        })
        .collect();
    if duplicates.is_empty() {
        Ok(())
    } else {
        Err(DeviceLinkError::duplicates(&duplicates))
    }
}

/// Symbols that are needed, and neither defined nor `provided` by a runtime or the linker.
pub(super) fn missing(objects: &[&Object<'_, '_>], provided: impl Fn(&str) -> bool) -> Vec<MissingSymbol> {
    let defined: BTreeSet<&str> = objects
        .iter()
        .flat_map(|object| object.symbols.defined.keys().copied())
        .collect();
    let names: BTreeSet<&str> = objects
        .iter()
        .flat_map(|object| object.symbols.needed.keys().copied())
        .filter(|name| !defined.contains(name) && !provided(name))
        .collect();
    names.into_iter().map(|name| needs(objects, name)).collect()
}

/// Who needs a symbol.
pub(super) fn needs(objects: &[&Object<'_, '_>], name: &str) -> MissingSymbol {
    let needed_by = objects.iter().filter_map(|object| {
        let users = object.symbols.needed.get(name)?;
        let users: Vec<&str> = users.iter().copied().collect();
        Some(match users.is_empty() {
            true => object.unit.name.clone(),
            false => format!("{} of {}", users.join(", "), object.unit.name),
        })
    });
    MissingSymbol {
        name: name.to_owned(),
        needed_by: needed_by.collect(),
    }
}

/// Refuses a result in which kernels of the inputs are missing.
pub(super) fn refuse_lost_kernels(
    objects: &[&Object<'_, '_>],
    kept: &BTreeSet<&str>,
    tool: &str,
) -> Result<(), DeviceLinkError> {
    let mut any = false;
    let mut lost = Vec::new();
    for object in objects {
        for kernel in object.symbols.kernels() {
            any = true;
            if !kept.contains(kernel) {
                lost.push(format!("kernel {kernel} of {}", object.unit.name));
            }
        }
    }
    if !any {
        return Err(DeviceLinkError::link(
            "none of the inputs holds a kernel, so nothing of them could be launched: give the one that has the kernels",
        ));
    }
    if lost.is_empty() {
        return Ok(());
    }
    Err(DeviceLinkError::link(format!(
        "{tool} left out {}: report it, and link without the input that holds {}",
        lost.join(", "),
        if lost.len() == 1 { "it" } else { "them" }
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FileKind;
    use crate::image::symbols::Definition;

    fn unit(name: &str, optional: bool) -> Unit<'static> {
        Unit {
            name: name.to_owned(),
            kind: FileKind::Ptx,
            bytes: b"".into(),
            optional,
        }
    }

    fn object<'u>(unit: &'u Unit<'static>, defined: &[&'static str], needed: &[&'static str]) -> Object<'u, 'static> {
        let definition = Definition {
            kind: SymbolKind::Function,
            mergeable: false,
        };
        Object {
            unit,
            symbols: LinkSymbols {
                defined: defined.iter().map(|name| (*name, definition)).collect(),
                needed: needed.iter().map(|name| (*name, BTreeSet::from(["user"]))).collect(),
            },
        }
    }

    #[test]
    fn archive_members_come_in_when_needed_and_bring_their_needs() {
        let units = [
            unit("main", false),
            unit("one", true),
            unit("two", true),
            unit("three", true),
        ];
        let objects = [
            object(&units[0], &["k"], &["deep"]),
            object(&units[1], &["deeper"], &[]),
            object(&units[2], &["deep"], &["deeper"]),
            object(&units[3], &["k", "unneeded"], &["nowhere"]),
        ];
        let taken = participants(&objects);
        let names: Vec<&str> = taken.iter().map(|object| object.unit.name.as_str()).collect();
        assert_eq!(names, ["main", "one", "two"]);
        assert!(refuse_duplicates(&taken).is_ok());
        assert!(missing(&taken, |_| false).is_empty());
        let all: Vec<&Object<'_, '_>> = objects.iter().collect();
        let error = refuse_duplicates(&all).unwrap_err().to_string();
        assert!(error.contains("function k in main and three"), "{error}");
        let missing = missing(&all, |_| false);
        assert_eq!(missing.len(), 1);
        assert_eq!(missing[0].needed_by[0].to_string(), "user of three");
    }

    #[test]
    fn one_strong_definition_and_any_number_of_weak_ones_fit() {
        let units = [unit("one", false), unit("two", false)];
        let mut objects = [object(&units[0], &["f"], &[]), object(&units[1], &["f"], &[])];
        objects[1].symbols.defined.get_mut("f").unwrap().mergeable = true;
        let all: Vec<&Object<'_, '_>> = objects.iter().collect();
        assert!(refuse_duplicates(&all).is_ok());
    }

    #[test]
    fn a_lost_kernel_is_named_with_its_input() {
        let units = [unit("one", false), unit("two", false)];
        let mut objects = [object(&units[0], &["k"], &[]), object(&units[1], &["f"], &[])];
        let none = BTreeSet::new();
        let error = refuse_lost_kernels(&objects.iter().collect::<Vec<_>>(), &none, "lld").unwrap_err();
        assert!(
            error.to_string().starts_with("none of the inputs holds a kernel"),
            "{error}"
        );
        objects[0].symbols.defined.get_mut("k").unwrap().kind = SymbolKind::Kernel;
        let all: Vec<&Object<'_, '_>> = objects.iter().collect();
        let error = refuse_lost_kernels(&all, &none, "lld").unwrap_err().to_string();
        assert!(error.starts_with("lld left out kernel k of one"), "{error}");
        assert!(refuse_lost_kernels(&all, &BTreeSet::from(["k"]), "lld").is_ok());
    }
}
