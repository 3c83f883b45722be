//! Kernels that take a few registers more than a chip has for all its threads. They are compiled once more, with no more than
//! that, and taken so where nothing is spilled: of 33 registers, a multiprocessor of an H200 has enough for 48 warps of 64.

use std::borrow::Cow;

use super::{
    kernel_groups::split_by_kernel,
    kernels::{KernelPtx, PtxWork, Stored, join, kernels_of},
    pool::Helpers,
};
use crate::{
    image::{ptx_canonical::PLACEHOLDER, ptx_components::components, resource::KernelResources},
    occupancy::{Occupancy, usual_threads},
    serialize::nvidia::{Cubin, PtxCompiler, SerializeError},
    target::Target,
};

/// Registers beyond the bound are one for so many of it at most. On an H200, 33 to 36 cut to 32 took 0.72 to 1.00 of the time in 12
/// kernels; 39 and 40 took up to 1.30, though nothing was spilled (docs/lab/code-quality.md).
const BOUND_FOR_EACH: u32 = 8;

/// Instructions of a kernel that say something of its registers already.
const OWN_BOUNDS: [&str; 2] = [".maxnreg", ".minnctapersm"];

/// A kernel, and the registers that it may have.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Bound<'n> {
    kernel: Cow<'n, str>,
    registers: u32,
}

impl PtxWork<'_> {
    /// What `compile` made of `ptx`, with fewer registers for kernels that then have all threads of the chip at work. What becomes of
    /// a kernel does not depend on the others in the text.
    pub(super) fn at_full_occupancy(
        &self,
        ptx: &str,
        made: Cubin,
        compile: impl Fn(&str) -> Result<Cubin, SerializeError>,
    ) -> Cubin {
        let bounds = self.bounds(ptx, &made);
        if bounds.is_empty() {
            return made;
        }
        let again = self
            .replaced(ptx, &made, &bounds, &compile)
            .unwrap_or_else(|| bounded(ptx, &bounds, &compile));
        again.unwrap_or(made)
    }

    /// The kernels that are worth it.
    fn bounds(&self, ptx: &str, made: &Cubin) -> Vec<Bound<'static>> {
        let options = self.options;
        let is_open = options.opt_level == 3
            && options.max_registers.is_none()
            && !options.device_debug
            && !options.relocatable
            && !options.extra.iter().any(|option| option.contains("reg"));
        let target = self.chip.parse::<Target>().ok();
        let (true, Some(target), true) = (is_open, target, made.compiler != PtxCompiler::NvJitLink) else {
            return Vec::new();
        };
        let kernels = made.info().map(|info| info.kernels).unwrap_or_default();
        kernels
            .iter()
            .filter_map(|kernel| {
                let registers = bound_of(&target, kernel)?;
                let head = head_of(ptx, &kernel.name)?;
                let has_own = OWN_BOUNDS
                    .iter()
                    .any(|bound| ptx.get(head.clone()).is_none_or(|head| head.contains(bound)));
                (!has_own).then(|| Bound {
                    kernel: Cow::Owned(kernel.name.clone()),
                    registers,
                })
            })
            .collect()
    }

    /// The kernels alone, in the place of those in the cubin. `None` where cubins are not taken apart.
    fn replaced(
        &self,
        ptx: &str,
        made: &Cubin,
        bounds: &[Bound<'_>],
        compile: &impl Fn(&str) -> Result<Cubin, SerializeError>,
    ) -> Option<Option<Cubin>> {
        // In the text of a component, lines have other numbers.
        if self.options.line_info || ptx.contains(".loc") {
            return None;
        }
        let components = components(ptx).ok()?;
        let kernels = kernels_of(&components);
        if kernels.len() < 2 || kernels.iter().any(|kernel| kernel.kernel.is_none()) {
            return None;
        }
        let all: Vec<&KernelPtx<'_>> = kernels.iter().collect();
        let mut cubins = split_by_kernel(made, self.chip, &all)?;
        let mut is_other = false;
        for (kernel, cubin) in kernels.iter().zip(&mut cubins) {
            let Some(bound) = bounds
                .iter()
                .find(|bound| Some(&*bound.kernel) == kernel.kernel.as_deref())
            else {
                continue;
            };
            let alone = Bound {
                kernel: Cow::Borrowed(PLACEHOLDER),
                registers: bound.registers,
            };
            if let Some(again) = bounded(&(kernel.text)()?, &[alone], compile) {
                *cubin = again;
                is_other = true;
            }
        }
        if !is_other {
            return Some(None);
        }
        let parts: Vec<(Option<&str>, usize)> = kernels
            .iter()
            .enumerate()
            .map(|(place, kernel)| (kernel.kernel.as_deref(), place))
            .collect();
        let stored: Vec<Stored> = cubins.into_iter().map(Stored::new).collect();
        let stored: Vec<(&Stored, bool)> = stored.iter().map(|stored| (stored, false)).collect();
        join(&stored, &parts, Helpers::None).map(Some)
    }
}

/// How many registers a kernel may have for all threads to be at work, where it has a few more and spills none.
fn bound_of(target: &Target, kernel: &KernelResources) -> Option<u32> {
    let registers = kernel.registers?;
    let warps = |registers| {
        let kernel = KernelResources {
            registers: Some(registers),
            ..kernel.clone()
        };
        Occupancy::of(target, &kernel, usual_threads(&kernel), 0)
    };
    let least = registers - registers / (BOUND_FOR_EACH + 1);
    let is_full = |occupancy: &Occupancy| occupancy.waves == occupancy.most_waves;
    if has_spills(kernel) || is_full(&warps(registers)?) {
        return None;
    }
    let full = (least..registers)
        .rev()
        .find(|&fewer| warps(fewer).as_ref().is_some_and(is_full))?;
    (registers - full <= full / BOUND_FOR_EACH).then_some(full)
}

fn has_spills(kernel: &KernelResources) -> bool {
    [kernel.spill_store_bytes, kernel.spill_load_bytes]
        .iter()
        .any(|bytes| bytes.is_some_and(|bytes| bytes > 0))
}

/// The text compiled with bounds for kernels, as far as these then spill nothing. `None` where no bound is left.
fn bounded(ptx: &str, bounds: &[Bound<'_>], compile: &impl Fn(&str) -> Result<Cubin, SerializeError>) -> Option<Cubin> {
    let mut bounds = bounds.to_vec();
    while !bounds.is_empty() {
        let made = compile(&with_bounds(ptx, &bounds)?).ok()?;
        let kernels = made.info().ok()?.kernels;
        let before = bounds.len();
        bounds.retain(|bound| {
            kernels.iter().any(|kernel| {
                let fits = kernel.registers.is_some_and(|registers| registers <= bound.registers);
                kernel.name == bound.kernel && fits && !has_spills(kernel)
            })
        });
        if bounds.len() == before {
            return Some(made);
        }
    }
    None
}

/// Between the parameters of a kernel and its body, where its properties stand.
fn head_of(ptx: &str, kernel: &str) -> Option<std::ops::Range<usize>> {
    let is_of_name = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '$' | '%');
    let (start, _) = ptx.match_indices(".entry").find(|(at, word)| {
        let rest = ptx.get(at + word.len()..).unwrap_or_default().trim_start();
        rest.strip_prefix(kernel)
            .is_some_and(|rest| !rest.starts_with(is_of_name))
    })?;
    let body = start + ptx.get(start..)?.find('{')?;
    let head = ptx.get(start..body)?;
    let parameters = head
        .rfind(')')
        .map_or_else(|| head.find(kernel).map(|at| at + kernel.len()), |end| Some(end + 1))?;
    Some(start + parameters..body)
}

/// Lines keep their numbers.
fn with_bounds(ptx: &str, bounds: &[Bound<'_>]) -> Option<String> {
    let mut text = ptx.to_owned();
    for Bound { kernel, registers } in bounds {
        let head = head_of(&text, kernel)?;
        text.insert_str(head.start, &format!(" .maxnreg {registers}"));
    }
    Some(text)
}

#[cfg(test)]
#[path = "../../tests/compiler/full_occupancy.rs"]
mod tests;
