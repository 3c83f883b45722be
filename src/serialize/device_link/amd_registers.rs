//! Whether AMD kernels have the registers that functions of other objects use.
//!
//! A kernel's descriptor says how many registers its waves get, and its compiler cannot see functions of other objects:
//! LLVM 22 gives such a kernel what the functions of its own object use, and at least 41 vector registers. lld joins them
//! without a word; a function that uses more would write to registers of other waves, or fault. What a function uses is
//! nowhere in its object, so it is disassembled.

use std::collections::{BTreeMap, BTreeSet};

use super::DeviceLinkError;
use super::input::Unit;
use super::resolve::Object;
use crate::ReadError;
use crate::bridge::disassemble::Disassembler;
use crate::image::elf::{Elf, SHT_SYMTAB};
use crate::image::resource::KernelResources;
use crate::image::symbols::{FunctionRegisters, SymbolKind};
use crate::target::{AmdTarget, Target};

/// `STT_FUNC`.
const FUNCTION: u8 = 2;
/// Registers are given in such steps at least ("User Guide for AMDGPU Backend", `GRANULATED_WORKITEM_VGPR_COUNT`).
const STEP: u32 = 4;
/// Scalar registers of a gfx9 wave that the kernel's count includes and functions do not name: VCC, FLAT_SCRATCH and
/// XNACK_MASK.
const EXTRA_SCALARS: u32 = 6;
/// Scalar registers that an instruction can name; above are VCC and its like.
const LAST_SCALAR: u32 = 105;

/// The most registers that a function of the object uses, kernels apart.
pub(super) fn of_functions(unit: &Unit<'_>, target: AmdTarget) -> Result<FunctionRegisters, DeviceLinkError> {
    let damaged = |error: ReadError| DeviceLinkError::input(&unit.name, error);
    let elf = Elf::parse(&unit.bytes).map_err(damaged)?;
    let symbols = elf.symbols(SHT_SYMTAB).map_err(damaged)?;
    let kernels: BTreeSet<&str> = symbols
        .iter()
        .filter_map(|symbol| symbol.name.strip_suffix(".kd"))
        .collect();
    let mut used = FunctionRegisters::default();
    let mut disassembler: Option<Disassembler> = None;
    for symbol in &symbols {
        if symbol.kind != FUNCTION || symbol.is_undefined() || kernels.contains(symbol.name) {
            continue;
        }
        let Some(section) = elf.sections().get(usize::from(symbol.section)) else {
            continue;
        };
        let contents = elf.contents(section).map_err(damaged)?;
        let range = || {
            let start = usize::try_from(symbol.value).ok()?;
            contents.get(start..start.checked_add(usize::try_from(symbol.size).ok()?)?)
        };
        let Some(code) = range() else { continue };
        if disassembler.is_none() {
            let features = target.llvm_features(None).unwrap_or_default();
            let made = Disassembler::new(Target::Amd(target).triple(), target.chip(), &features);
            disassembler = Some(made.map_err(|error| DeviceLinkError::link(format!("{}: {error}", unit.name)))?);
        }
        if let Some(disassembler) = &mut disassembler {
            used = used.max(of_code(disassembler, code));
        }
    }
    Ok(used)
}

fn of_code(disassembler: &mut Disassembler, mut code: &[u8]) -> FunctionRegisters {
    let mut used = FunctionRegisters::default();
    while !code.is_empty() {
        // A word that is no instruction is data between them.
        let (size, text) = disassembler.instruction(code).unwrap_or((4, String::new()));
        used = used.max(of_text(&text));
        code = code.get(size..).unwrap_or_default();
    }
    used
}

/// The registers that an instruction names: `v4`, `v[4:7]`, `a3`, `s[30:31]`, `v1.l`.
fn of_text(text: &str) -> FunctionRegisters {
    let mut used = FunctionRegisters::default();
    let (_, operands) = text.trim().split_once(char::is_whitespace).unwrap_or_default();
    for word in operands.split(|character: char| !character.is_ascii_alphanumeric() && !"[]:_".contains(character)) {
        let Some((kind, numbers)) = word.split_at_checked(1) else {
            continue;
        };
        let numbers = match numbers.strip_prefix('[') {
            Some(range) => range.trim_end_matches(']').rsplit(':').next().unwrap_or_default(),
            None => numbers,
        };
        let Ok(count) = numbers.parse::<u32>().map(|last| last.saturating_add(1)) else {
            continue;
        };
        match kind {
            "v" => used.vector = used.vector.max(count),
            "a" => used.accumulation = used.accumulation.max(count),
            "s" if count <= LAST_SCALAR => used.scalar = used.scalar.max(count),
            _ => {}
        }
    }
    used
}

/// What a kernel was given of each kind.
fn given(kernel: &KernelResources, target: AmdTarget) -> FunctionRegisters {
    let total = kernel.vgprs.unwrap_or(0);
    let accumulation = kernel.agprs.unwrap_or(0);
    let (vector, accumulation) = if target.has_unified_registers() {
        (total.saturating_sub(accumulation), accumulation)
    } else {
        // Of chips with two files both have the same size.
        (total, total)
    };
    FunctionRegisters {
        vector: vector.next_multiple_of(STEP),
        accumulation: accumulation.next_multiple_of(STEP),
        scalar: match target.isa_version().major {
            9 => kernel.sgprs.unwrap_or(0).saturating_sub(EXTRA_SCALARS),
            // Later waves have them all.
            _ => u32::MAX,
        },
    }
}

/// Refuses kernels that have fewer registers than functions of other objects use which they may call.
pub(super) fn check(
    objects: &[&Object<'_, '_>],
    kernels: &[KernelResources],
    target: AmdTarget,
) -> Result<(), DeviceLinkError> {
    let functions: BTreeMap<&str, usize> = objects
        .iter()
        .enumerate()
        .flat_map(|(index, object)| {
            object
                .symbols
                .defined
                .iter()
                .map(move |(name, what)| (*name, what, index))
        })
        .filter(|(_, what, _)| what.kind == SymbolKind::Function)
        .map(|(name, _, index)| (name, index))
        .collect();
    let calls: Vec<BTreeMap<&str, usize>> = objects
        .iter()
        .map(|object| {
            let needed = object.symbols.needed.keys();
            needed.filter_map(|name| Some((*name, *functions.get(name)?))).collect()
        })
        .collect();
    if calls.iter().all(BTreeMap::is_empty) {
        return Ok(());
    }
    let own = objects
        .iter()
        .map(|object| of_functions(object.unit, target))
        .collect::<Result<Vec<_>, _>>()?;
    let mut shortages: Vec<String> = Vec::new();
    for (object, calls_of_object) in objects.iter().zip(&calls) {
        for (&function, &first) in calls_of_object {
            let needs = reachable(first, &calls)
                .into_iter()
                .filter_map(|index| own.get(index))
                .fold(FunctionRegisters::default(), |sum, registers| sum.max(*registers));
            let users = object.symbols.needed.get(function);
            let callers: Vec<&str> = object.symbols.kernels().collect();
            // A function of the object may be called by any of its kernels.
            let direct = users.is_some_and(|users| users.iter().all(|user| callers.contains(user)));
            let function_input = objects.get(first).map_or("", |object| object.unit.name.as_str());
            for kernel in kernels.iter().filter(|kernel| callers.contains(&kernel.name.as_str())) {
                if direct && !users.is_some_and(|users| users.contains(kernel.name.as_str())) {
                    continue;
                }
                let has = given(kernel, target);
                let kinds = [
                    ("vector", has.vector, needs.vector),
                    ("accumulation", has.accumulation, needs.accumulation),
                    ("scalar", has.scalar, needs.scalar),
                ];
                let short = kinds.into_iter().filter(|(_, has, needs)| needs > has);
                shortages.extend(short.map(|(registers, has, needs)| {
                    format!(
                        "\n  kernel {} of {} has {has} {registers} registers, function {function} of {function_input} uses {needs}",
                        kernel.name, object.unit.name
                    )
                }));
            }
        }
    }
    if shortages.is_empty() {
        Ok(())
    } else {
        Err(DeviceLinkError::link(format!(
            "kernels have fewer registers than functions need that they call:{}\nThe compiler of a kernel cannot see what \
             functions of other objects need. Link LLVM bitcode instead of objects, or compile the kernels with gpulower and \
             these objects.",
            shortages.concat()
        )))
    }
}

/// The objects that a call into `first` may reach.
fn reachable(first: usize, calls: &[BTreeMap<&str, usize>]) -> BTreeSet<usize> {
    let mut found = BTreeSet::from([first]);
    let mut rest = vec![first];
    while let Some(index) = rest.pop() {
        for &next in calls.get(index).into_iter().flat_map(BTreeMap::values) {
            if found.insert(next) {
                rest.push(next);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FileKind;
    use gpulower_testing::amd::{object, run};

    const HUNGRY: &str = "define i32 @callee(ptr addrspace(1) %x, i32 %v) {\n\
        %a = load volatile <32 x i32>, ptr addrspace(1) %x\n  %b = load volatile <32 x i32>, ptr addrspace(1) %x\n\
        %c = load volatile <32 x i32>, ptr addrspace(1) %x\n  store volatile <32 x i32> %b, ptr addrspace(1) %x\n\
        store volatile <32 x i32> %a, ptr addrspace(1) %x\n  store volatile <32 x i32> %c, ptr addrspace(1) %x\n\
        ret i32 %v\n}\n\
        define amdgpu_kernel void @unrelated(ptr addrspace(1) %x) { ret void }\n";

    fn functions(bytes: Vec<u8>, chip: &str) -> FunctionRegisters {
        let unit = Unit {
            name: "f.o".to_owned(),
            kind: FileKind::AmdObject,
            bytes: bytes.into(),
            optional: false,
        };
        of_functions(&unit, chip.parse().unwrap()).unwrap()
    }

    #[test]
    fn the_text_names_registers() {
        let registers = |text: &str| {
            let FunctionRegisters {
                vector,
                accumulation,
                scalar,
            } = of_text(text);
            (vector, accumulation, scalar)
        };
        assert_eq!(registers("\tscratch_store_dword off, a33, s32 offset:72"), (0, 34, 33));
        assert_eq!(
            registers("global_load_dwordx4 a[20:23], v[0:1], off offset:16 sc0 sc1"),
            (2, 24, 0)
        );
        assert_eq!(registers("v_mad_u64_u32 v[2:3], s[4:5], v7, -v9, |v11|"), (12, 0, 6));
        assert_eq!(registers("v_add_f16_e32 v40.l, v1.h, v2.l"), (41, 0, 0));
        assert_eq!(registers("s_mov_b64 vcc, ttmp[2:3]"), (0, 0, 0));
        assert_eq!(registers("s_endpgm"), (0, 0, 0));
    }

    /// The numbers that LLVM writes into the assembly of the same function.
    #[test]
    fn functions_use_what_llvm_says_they_use() {
        for chip in ["gfx90a", "gfx942", "gfx1100", "gfx1201"] {
            let module = format!("target triple = \"amdgcn-amd-amdhsa\"\n{HUNGRY}");
            let arguments = [&format!("-mcpu={chip}") as &str, "-O2", "-o", "-", "-"];
            let text = String::from_utf8(run("llc", &arguments, module.as_bytes())).unwrap();
            let value = |what: &str| -> u32 {
                let start = format!(".set callee.{what}, ");
                let alternative = format!(".set .Lcallee.{what}, ");
                let line = text.lines().find_map(|line| {
                    line.trim()
                        .strip_prefix(&start)
                        .or_else(|| line.trim().strip_prefix(&alternative))
                });
                line.unwrap_or_else(|| panic!("no {what} for {chip}")).parse().unwrap()
            };
            let found = functions(object(HUNGRY, chip, "", 5), chip);
            assert_eq!(
                (found.vector, found.accumulation),
                (value("num_vgpr"), value("num_agpr")),
                "{chip}"
            );
            assert_eq!(found.scalar, value("numbered_sgpr"), "{chip}");
        }
    }
}
