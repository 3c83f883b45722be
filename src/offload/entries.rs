//! Offload entries: constants in a section of their own, of which clang's linker wrapper makes the calls that register
//! kernels and variables.

use super::{
    error::OffloadError,
    ir_text::{IrText, symbol},
    layout::{ENTRY_ALIGNMENT, ENTRY_VERSION, EntryLayout, FLAG_CONSTANT, LayoutSet, language},
    program::{Program, Runtime},
};

/// Section of the names; it says nothing to any tool, and clang has it from release 20 on.
const NAMES_SECTION: &str = ".llvm.rodata.offloading";

/// What is registered: an address of the host and a name of the device.
struct Item<'a> {
    address: &'a str,
    name: &'a str,
    size: u64,
    constant: bool,
}

/// Adds the entries of a program in every layout of the set, and declares the symbols that they refer to.
///
/// Entries are weak, as clang's: two of one name become one. All are in `llvm.used`, so that they survive a link with
/// `--gc-sections`, which the sections' names alone do not achieve with lld before release 24.
///
/// # Errors
///
/// [`OffloadError`].
pub fn add(module: &mut IrText, program: &Program, layouts: &LayoutSet) -> Result<(), OffloadError> {
    if layouts.runtime != program.runtime {
        let (layouts, program) = (layouts.runtime, program.runtime);
        return Err(OffloadError::internal(format!(
            "layouts for {layouts:?} with a program for {program:?}"
        )));
    }
    check(program)?;
    declare(module, program);
    let kernels = program.kernels.iter().map(|kernel| Item {
        address: &kernel.handle,
        name: &kernel.name,
        size: 0,
        constant: false,
    });
    let variables = program.variables.iter().map(|variable| Item {
        address: &variable.shadow,
        name: &variable.name,
        size: variable.size,
        constant: variable.constant,
    });
    let has = |layout| layouts.layouts.contains(&layout);
    let section = if has(EntryLayout::Clang20) || has(EntryLayout::Clang21) {
        format!(", section \"{NAMES_SECTION}\", align 1")
    } else {
        String::new()
    };
    for item in kernels.chain(variables) {
        let name = module.string(".offloading.entry_name", item.name, &section);
        if has(EntryLayout::Clang21) {
            module.offloading_symbol(name.clone());
        }
        for layout in &layouts.layouts {
            entry(module, &item, &name, *layout, layouts);
        }
    }
    Ok(())
}

/// Refuses what no entry and no call can express.
pub(super) fn check(program: &Program) -> Result<(), OffloadError> {
    if let Some(empty) = program.variables.iter().find(|variable| variable.size == 0) {
        return Err(OffloadError::new(format!(
            "the global variable {} has no bytes and cannot be registered: an offload entry of size 0 stands for a kernel; \
             make it private, or give it a type with a size",
            empty.source_name
        )));
    }
    let kernels = program.kernels.iter().map(|kernel| &kernel.name);
    let variables = program.variables.iter().map(|variable| &variable.name);
    match kernels.chain(variables).find(|name| name.contains('\0')) {
        Some(name) => Err(OffloadError::new(format!(
            "the name {name:?} has a NUL byte and cannot be registered: rename it"
        ))),
        None => Ok(()),
    }
}

/// Declares stubs or handles, and shadows, without visibility: that of the definition counts.
pub(super) fn declare(module: &mut IrText, program: &Program) {
    for kernel in &program.kernels {
        let handle = symbol(&kernel.handle);
        module.define(&match program.runtime {
            Runtime::Cuda | Runtime::OpenMp => format!("declare void {handle}()"),
            Runtime::Hip => format!("{handle} = external constant ptr, align 8"),
        });
    }
    for variable in &program.variables {
        let (shadow, size) = (symbol(&variable.shadow), variable.size);
        module.define(&format!("{shadow} = external global [{size} x i8]"));
    }
}

fn entry(module: &mut IrText, item: &Item<'_>, name: &str, layout: EntryLayout, layouts: &LayoutSet) {
    let Item {
        address,
        size,
        constant,
        name: device_name,
    } = *item;
    // To libomptarget this flag says something else, and a variable that the device cannot change is like any other.
    let flags = if constant && layout.has_flag_bits() && layouts.runtime != Runtime::OpenMp {
        FLAG_CONSTANT
    } else {
        0
    };
    let address = symbol(address);
    let content = match layout {
        EntryLayout::Clang15 | EntryLayout::Clang18 => {
            format!("{{ ptr, ptr, i64, i32, i32 }} {{ ptr {address}, ptr {name}, i64 {size}, i32 {flags}, i32 0 }}")
        }
        EntryLayout::Clang20 | EntryLayout::Clang21 => {
            // These languages have numbers in both numberings.
            let kind = language(layouts.runtime).number(layouts.numbering).unwrap_or_default();
            format!(
                "{{ i64, i16, i16, i32, ptr, ptr, i64, i64, ptr }} {{ i64 0, i16 {ENTRY_VERSION}, i16 {kind}, i32 {flags}, \
                 ptr {address}, ptr {name}, i64 {size}, i64 0, ptr null }}"
            )
        }
    };
    let entry = symbol(&format!("{}{device_name}", layout.symbol_prefix()));
    let section = layout.section(layouts.runtime);
    module.define(&format!(
        "{entry} = weak constant {content}, section \"{section}\", align {ENTRY_ALIGNMENT}"
    ));
    module.keep(entry);
}

#[cfg(test)]
#[path = "entries_tests.rs"]
pub(super) mod tests;
