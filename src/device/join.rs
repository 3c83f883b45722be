//! Several device modules into one, before optimisation: their calls of each other can then be inlined.

use std::collections::BTreeMap;
use std::fmt::{self, Write};

use inkwell::module::Linkage;
use inkwell::values::{BasicValue, FunctionValue, GlobalValue};

use super::{DeviceError, Refusal};
use crate::{
    bridge::llvm::{DeviceContext, DeviceModule},
    error::{ErrorKind, Location},
    image::symbols::SymbolKind,
};

/// Calling conventions of kernels (`llvm/include/llvm/IR/CallingConv.h`): `PTX_Kernel`, `AMDGPU_KERNEL`.
const KERNEL_CONVENTIONS: [u32; 2] = [71, 91];

/// Between a variable's type and its address space, where that is not 0.
const IN_SPACE: &str = " in ";

/// One module of a join.
pub(crate) struct JoinInput<'c, 'a> {
    /// Name for messages: the symbol of the `gpu.module`, or of a file.
    pub name: &'a str,
    /// The module. All have to be of one context.
    pub module: DeviceModule<'c>,
    /// Definitions that are private to it ([`super::symbols::private_definitions`]): others may have the same names.
    pub private: Vec<String>,
    /// Where a symbol is defined or declared, if that is known.
    pub locate: &'a dyn Fn(&str) -> Option<Location>,
}

impl fmt::Debug for JoinInput<'_, '_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("JoinInput")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// A place at which a symbol is defined or declared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SymbolPlace {
    /// The module.
    pub module: String,
    /// Where MLIR says it is.
    pub location: Option<Location>,
}

impl fmt::Display for SymbolPlace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "module {}", self.module)?;
        match &self.location {
            Some(location) => write!(formatter, " at {location}"),
            None => Ok(()),
        }
    }
}

/// A symbol as a module has it.
struct Seen {
    place: SymbolPlace,
    kind: SymbolKind,
    /// What a user of the symbol has to agree on with its definition.
    shape: String,
}

/// What modules define and declare under one name.
#[derive(Default)]
struct Symbol {
    definitions: Vec<(Seen, bool)>,
    declarations: Vec<Seen>,
}

/// Joins modules into the first of them. Kernels and other definitions stay visible; [`super::compile`] makes internal
/// what only the joined module needs.
///
/// # Errors
///
/// [`DeviceError`]. All duplicates are listed, then all mismatches, before anything is linked.
pub(crate) fn join<'c>(
    _context: &'c DeviceContext,
    inputs: Vec<JoinInput<'c, '_>>,
) -> Result<DeviceModule<'c>, DeviceError> {
    let mut symbols: BTreeMap<String, Symbol> = BTreeMap::new();
    for input in &inputs {
        make_private(input);
        collect(input, &mut symbols);
    }
    check(&symbols)?;
    let mut inputs = inputs.into_iter();
    let Some(JoinInput { module: joined, .. }) = inputs.next() else {
        return Err(Refusal::new(ErrorKind::Link, "nothing to join: there is no module").into());
    };
    for input in inputs {
        let name = input.name;
        joined.join(input.module).map_err(|reason| {
            let message = format!("module {name} cannot be joined with the others: {reason}");
            Refusal::new(ErrorKind::Link, message)
        })?;
    }
    Ok(joined)
}

fn make_private(input: &JoinInput<'_, '_>) {
    let module = input.module.inkwell();
    for name in &input.private {
        if let Some(function) = module.get_function(name)
            && !is_kernel(function)
            && function.count_basic_blocks() > 0
        {
            function.set_linkage(Linkage::Internal);
        }
        if let Some(global) = module.get_global(name)
            && !global.is_declaration()
        {
            global.set_linkage(Linkage::Internal);
        }
    }
}

fn is_kernel(function: FunctionValue<'_>) -> bool {
    KERNEL_CONVENTIONS.contains(&function.get_call_conventions())
}

fn collect(input: &JoinInput<'_, '_>, symbols: &mut BTreeMap<String, Symbol>) {
    let module = input.module.inkwell();
    let place = |name: &str| SymbolPlace {
        module: input.name.to_owned(),
        location: (input.locate)(name),
    };
    let mut add = |value: GlobalValue<'_>, kind: SymbolKind, shape: String| {
        let linkage = value.get_linkage();
        let Ok(name) = value.get_name().to_str() else { return };
        if matches!(linkage, Linkage::Internal | Linkage::Private) || name.is_empty() || name.starts_with("llvm.") {
            return;
        }
        let seen = Seen {
            place: place(name),
            kind,
            shape,
        };
        let symbol = symbols.entry(name.to_owned()).or_default();
        if !value.is_declaration() {
            symbol.definitions.push((seen, is_mergeable(linkage)));
        } else if is_used(value) {
            symbol.declarations.push(seen);
        }
    };
    for function in module.get_functions() {
        let kind = if is_kernel(function) {
            SymbolKind::Kernel
        } else {
            SymbolKind::Function
        };
        let mut shape = function.get_type().print_to_string().to_string();
        match function.get_call_conventions() {
            0 => {}
            _ if kind == SymbolKind::Kernel => shape.push_str(" as a kernel"),
            convention => {
                let _ = write!(shape, " with calling convention {convention}");
            }
        }
        add(function.as_global_value(), kind, shape);
    }
    for global in module.get_globals() {
        let mut shape = global.get_value_type().print_to_string().to_string();
        // "ptr addrspace(1)", or "ptr" alone.
        let pointer = global.as_pointer_value().get_type().print_to_string().to_string();
        if let Some(space) = pointer.strip_prefix("ptr ") {
            shape.push_str(IN_SPACE);
            shape.push_str(space);
        }
        add(global, SymbolKind::Variable, shape);
    }
}

fn is_used(value: GlobalValue<'_>) -> bool {
    value.as_pointer_value().get_first_use().is_some()
}

/// Whether LLVM's linker keeps one of several definitions with this linkage.
const fn is_mergeable(linkage: Linkage) -> bool {
    matches!(
        linkage,
        Linkage::AvailableExternally
            | Linkage::Common
            | Linkage::LinkOnceAny
            | Linkage::LinkOnceODR
            | Linkage::WeakAny
            | Linkage::WeakODR
    )
}

fn check(symbols: &BTreeMap<String, Symbol>) -> Result<(), DeviceError> {
    let mut duplicates: Vec<Conflict<'_>> = Vec::new();
    for (name, symbol) in symbols {
        let definitions = symbol.definitions.iter();
        let strong: Vec<&Seen> = definitions
            .filter_map(|(seen, mergeable)| (!mergeable).then_some(seen))
            .collect();
        // The first definition is as good as any other: the second one is where the conflict arises.
        if let [first, second, ..] = strong.as_slice() {
            let places: Vec<String> = strong.iter().map(|seen| seen.place.to_string()).collect();
            let places = places.join(" and in ");
            duplicates.push((&second.place, format!("{} {name} in {places}", first.kind.name())));
        }
    }
    refuse(
        &duplicates,
        ["is defined more than once", "are defined more than once"],
        "Keep one definition and declare it elsewhere, rename one, or make those private that only their own module uses.",
    )?;
    // LLVM would link them, and miscompile.
    let mut mismatches: Vec<Conflict<'_>> = Vec::new();
    for (name, symbol) in symbols {
        let Some((defined, _)) = symbol.definitions.first() else {
            continue;
        };
        for declared in symbol.declarations.iter().filter(|declared| !fits(declared, defined)) {
            let as_what = |seen: &Seen| format!("{} in {}", seen.shape, seen.place);
            let line = format!("{name}: {}, {}", as_what(declared), as_what(defined));
            mismatches.push((&declared.place, line));
        }
    }
    refuse(
        &mismatches,
        [
            "is declared otherwise than it is defined",
            "are declared otherwise than they are defined",
        ],
        "Make the declarations equal to the definitions.",
    )
}

/// A symbol that cannot be joined: where that shows, and what is said of it.
type Conflict<'a> = (&'a SymbolPlace, String);

/// An error with the conflicts, if there are any. `what`: of one symbol, and of several.
fn refuse(conflicts: &[Conflict<'_>], [one, several]: [&str; 2], advice: &str) -> Result<(), DeviceError> {
    let Some((place, _)) = conflicts.first() else {
        return Ok(());
    };
    let mut text = match conflicts.len() {
        1 => format!("a symbol {one}:"),
        count => format!("{count} symbols {several}:"),
    };
    for (_, line) in conflicts {
        let _ = write!(text, "\n  {line}");
    }
    let refusal = Refusal::new(ErrorKind::Symbols, format!("{text}\n{advice}"));
    Err(Refusal {
        location: place.location.clone(),
        ..refusal
    }
    .into())
}

fn fits(declared: &Seen, defined: &Seen) -> bool {
    // An array of unknown length, as C declares it.
    let space = |seen: &Seen| seen.shape.split_once(IN_SPACE).map(|(_, space)| space.to_owned());
    let unsized_array = declared.kind == SymbolKind::Variable
        && declared.shape.starts_with("[0 x ")
        && space(declared) == space(defined);
    declared.shape == defined.shape || unsized_array
}

#[cfg(test)]
#[path = "join_tests.rs"]
mod tests;
