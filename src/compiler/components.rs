//! The kernels of a `gpu.module` that can be compiled apart, each with the functions that it alone has.

use std::{collections::HashMap, sync::Arc};

use melior::ir::{
    BlockLike, RegionLike,
    attribute::StringAttribute,
    operation::{OperationLike, OperationRef},
};

use crate::{
    bridge::mlir::{context_of, generic_text, set_attribute, string_value, symbol_attribute_name},
    device::lower::name_of,
};

/// What a kernel is called whose name does not matter to what is made of it, and its number after that.
pub(super) const PLACEHOLDER: &str = "gpulower_nameless_";

/// What is known of the text of a component.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) struct Traits {
    /// Its hash.
    pub content: [u8; 32],
    pub bytes: usize,
    pub has_dynamic_memory: bool,
}

impl Traits {
    fn of(text: &str) -> Self {
        Self {
            content: *blake3::hash(text.as_bytes()).as_bytes(),
            bytes: text.len(),
            has_dynamic_memory: text.contains("\"gpu.dynamic_shared_memory\""),
        }
    }
}

/// Kernels that have functions together, as the text of their operations.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Component {
    /// The operations. The kernel of a nameless component is called [`PLACEHOLDER`]. `None` where it was not parsed.
    pub text: Option<Arc<str>>,
    /// What is known of the operations.
    pub traits: Traits,
    /// Whether the kernel is called by a placeholder.
    pub is_nameless: bool,
    /// Its functions by name, with their places in the module.
    pub functions: Vec<(usize, String)>,
}

impl Component {
    /// The text with a number for the name.
    pub(super) fn numbered(&self, number: usize) -> Option<String> {
        let text = self.text.as_ref()?;
        Some(if self.is_nameless {
            // The name is a string of the operation, and nothing else.
            text.replacen(&format!("\"{PLACEHOLDER}\""), &format!("\"{}\"", numbered(number)), 1)
        } else {
            text.to_string()
        })
    }
}

/// The placeholder with this number.
pub(super) fn numbered(number: usize) -> String {
    format!("{PLACEHOLDER}{number}_")
}

/// A function of a module, and its text.
struct Function<'t> {
    name: String,
    is_kernel: bool,
    text: &'t str,
}

/// The components of a module, in the order of their first functions. `None` where there are fewer than two, and where
/// there is anything but functions in it: what variables are in, others may see. Of a module that is a part of another one, they
/// may be fewer: `whole` has the names of the functions of that, and the places of those that are in the part.
pub(super) fn components(module: OperationRef<'_, '_>, whole: Option<(&[&str], &[usize])>) -> Option<Vec<Component>> {
    let is_plain = |(name, _): (melior::ir::Identifier<'_>, _)| {
        let name = name.as_string_ref();
        matches!(name.as_str(), Ok("sym_name" | "targets"))
    };
    if !module.attributes().all(is_plain) {
        return None;
    }
    let functions = functions_of(module)?;
    let is_in_place = |(index, (_, name, _)): (usize, &(_, String, bool))| match whole {
        Some((names, places)) => places.get(index).and_then(|place| names.get(*place)) == Some(&name.as_str()),
        None => true,
    };
    let is_enough = match whole {
        Some((_, places)) => places.len() == functions.len() && functions.iter().enumerate().all(is_in_place),
        None => functions.len() > 1,
    };
    if !is_enough {
        return None;
    }
    // The name of a function is a string of its operation: what refers to it is found in the other texts.
    let texts: Vec<String> = functions
        .iter()
        .map(|(operation, ..)| text_under(*operation, PLACEHOLDER))
        .collect();
    let is_divisible =
        |text: &String| text.matches(PLACEHOLDER).count() == 1 && is_without_places(text) && is_complete(text);
    if !texts.iter().all(is_divisible) || functions.iter().any(|(_, name, _)| name.contains(PLACEHOLDER)) {
        return None;
    }
    let parsed: Vec<Function<'_>> = functions
        .iter()
        .zip(&texts)
        .map(|((_, name, is_kernel), text)| Function {
            name: name.clone(),
            is_kernel: *is_kernel,
            text,
        })
        .collect();
    let groups = connected(&parsed)?;
    if groups.len() < 2 && whole.is_none() {
        return None;
    }
    let component = |group: Vec<usize>| {
        let is_nameless = match group.as_slice() {
            [kernel] => {
                let kernel = parsed.get(*kernel)?;
                is_name_of_ptx(&kernel.name) && !references(kernel.text).any(|name| name == kernel.name)
            }
            _ => false,
        };
        let text = |index: &usize| match is_nameless {
            true => Some(parsed.get(*index)?.text.to_owned()),
            false => Some(text_of(functions.get(*index)?.0)),
        };
        let text: String = group.iter().filter_map(text).collect();
        let place = |index: usize| whole.map_or(Some(index), |(_, places)| places.get(index).copied());
        Some(Component {
            traits: Traits::of(&text),
            text: Some(text.into()),
            is_nameless,
            functions: group
                .iter()
                .filter_map(|index| Some((place(*index)?, parsed.get(*index)?.name.clone())))
                .collect(),
        })
    };
    groups.into_iter().map(component).collect()
}

/// The functions in a module, with their names and whether they are kernels. `None` where there is something else.
fn functions_of<'c, 'a>(module: OperationRef<'c, 'a>) -> Option<Vec<(OperationRef<'c, 'a>, String, bool)>> {
    let mut functions = Vec::new();
    let mut next = module.region(0).ok()?.first_block()?.first_operation();
    while let Some(operation) = next {
        next = operation.next_in_block();
        match name_of(&operation).as_str() {
            "gpu.func" | "func.func" => {}
            // Its terminator, in older releases.
            "gpu.module_end" => continue,
            _ => return None,
        }
        // A declaration has no body.
        operation.region(0).ok()?.first_block()?;
        let name = operation
            .attribute(symbol_attribute_name())
            .ok()
            .and_then(string_value)?;
        functions.push((operation, name, operation.has_attribute("gpu.kernel")));
    }
    Some(functions)
}

fn text_of(operation: OperationRef<'_, '_>) -> String {
    let mut text = generic_text(operation, true, false);
    text.push('\n');
    text
}

/// The text of a function that is called otherwise for a moment.
fn text_under(operation: OperationRef<'_, '_>, name: &str) -> String {
    let attribute = symbol_attribute_name();
    let Ok(kept) = operation.attribute(attribute) else {
        return text_of(operation);
    };
    let context = context_of(operation.context());
    set_attribute(operation, attribute, StringAttribute::new(context, name).into());
    let text = text_of(operation);
    set_attribute(operation, attribute, kept);
    text
}

/// Assertions have their places in the code.
fn is_without_places(text: &str) -> bool {
    !text.contains("\"cf.assert\"")
}

/// The contents of resources are in the text of a whole file alone.
fn is_complete(text: &str) -> bool {
    !text.contains("dense_resource<")
}

/// Names that are the same in PTX and in MLIR, and can be written without quotes in both. Those that begin with two underscores
/// may be a library's or ours; one alone is no name in PTX.
pub(super) fn is_name_of_ptx(name: &str) -> bool {
    /// What lowering declares for NVIDIA.
    const DECLARED: [&str; 3] = ["free", "malloc", "vprintf"];
    name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name != "_"
        && !name.starts_with("__")
        && !DECLARED.contains(&name)
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Groups of functions, none of which refers to one of another group. `None` where a group has no kernel.
fn connected(functions: &[Function<'_>]) -> Option<Vec<Vec<usize>>> {
    let places: HashMap<&str, usize> = functions
        .iter()
        .enumerate()
        .map(|(index, function)| (function.name.as_str(), index))
        .collect();
    let mut first: Vec<usize> = (0..functions.len()).collect();
    let root = |first: &[usize], mut index: usize| {
        while let Some(&before) = first.get(index).filter(|&&before| before != index) {
            index = before;
        }
        index
    };
    for (index, function) in functions.iter().enumerate() {
        for name in references(function.text) {
            if let Some(&other) = places.get(name) {
                let (one, other) = (root(&first, index), root(&first, other));
                if let Some(slot) = first.get_mut(one.max(other)) {
                    *slot = one.min(other);
                }
            }
        }
    }
    let mut groups: Vec<Vec<usize>> = vec![Vec::new(); functions.len()];
    for index in 0..functions.len() {
        groups.get_mut(root(&first, index))?.push(index);
    }
    groups.retain(|group| !group.is_empty());
    let has_kernel = |group: &Vec<usize>| {
        let mut members = group.iter().filter_map(|index| functions.get(*index));
        members.any(|function| function.is_kernel)
    };
    groups.iter().all(has_kernel).then_some(groups)
}

/// Everything in a text that is written as a symbol.
pub(super) fn references(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices('@').filter_map(|(start, _)| {
        let rest = text.get(start + 1..)?;
        if let Some(quoted) = rest.strip_prefix('"') {
            return quoted.split('"').next();
        }
        let end = rest.find(|byte: char| !(byte.is_ascii_alphanumeric() || "_$.".contains(byte)));
        rest.get(..end.unwrap_or(rest.len()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compiler::{
        gpu_modules,
        input::{context, parse},
    };

    fn of(body: &str) -> Option<Vec<Component>> {
        let context = context();
        let text = format!("gpu.module @m {{\n{body}\n}}");
        let module = parse(&context, "m.mlir", text.as_bytes()).expect("parses");
        let gpu_module = gpu_modules(&module).remove(0);
        let before = gpu_module.to_string();
        let components = components(gpu_module, None);
        assert_eq!(gpu_module.to_string(), before, "the module is as it was");
        components
    }

    fn names(components: &[Component]) -> Vec<Vec<String>> {
        let names = |component: &Component| component.functions.iter().map(|(_, name)| name.clone()).collect();
        components.iter().map(names).collect()
    }

    #[test]
    fn kernels_are_apart_from_others_and_together_with_what_they_call() {
        let found = of("gpu.func @a(%x: f32) kernel { gpu.return }
             gpu.func @calls() kernel { func.call @both() : () -> ()  gpu.return }
             gpu.func @b(%y: f32) kernel { gpu.return } // comment
             func.func private @both() { func.return }")
        .expect("is divided");
        assert_eq!(names(&found), [vec!["a"], vec!["calls", "both"], vec!["b"]]);
        assert_eq!(found[0].text, found[2].text, "names do not matter");
        assert!(found[0].is_nameless && !found[1].is_nameless);
        assert!(
            found[0]
                .numbered(7)
                .expect("has a text")
                .contains("\"gpulower_nameless_7_\""),
            "{:?}",
            found[0].text
        );
    }

    #[test]
    fn what_may_be_common_is_not_divided() {
        let two = "gpu.func @a() kernel { gpu.return } gpu.func @b() kernel { gpu.return }";
        assert!(of(two).is_some());
        assert!(of(&format!("memref.global \"private\" @table : memref<4xf32>\n{two}")).is_none());
        assert!(of(&format!("func.func @alone() {{ func.return }}\n{two}")).is_none());
        assert!(of("gpu.func @a() kernel { gpu.return }").is_none());
        let asserts = two.replacen(
            "gpu.return",
            "%t = arith.constant true cf.assert %t, \"never\" gpu.return",
            1,
        );
        assert!(of(&asserts).is_none());
        assert!(of(&two.replace("@a", "@gpulower_nameless_1")).is_none());
    }
}
