//! How many registers kernels may have, where the number that the PTX compiler aims at is not the best.
//!
//! - It keeps to as many as a chip has for all its threads, 32 on an H200, wherever it can. Loops that it unrolls four times have 16
//!   loads and more in an iteration then, and too few registers for these to be under way at once: kernels with such a loop may have
//!   [`FOR_LOADS`].
//! - Kernels that take a few registers more than a chip has for all its threads are compiled once more, with no more than that, and
//!   taken so where nothing is spilled: of 33 registers, a multiprocessor of an H200 has enough for 48 warps of 64.
//! - Kernels that would spill with 255 registers, and state the size of their block, get as many, or 40, and spill kilobytes: what
//!   spills as many as it has or more, and may have more, is compiled once more, and taken so where that saves [`LEAST_SAVED`].

use std::borrow::Cow;

use super::{
    kernel_groups::split_by_kernel,
    kernels::{KernelPtx, PtxWork, Stored, has_lines, join, kernels_of},
    pool::Helpers,
};
use crate::{
    image::{
        ptx_canonical::PLACEHOLDER,
        ptx_components::components,
        ptx_entries::{entries, with_bodies},
        ptx_loops::{PtxLoop, loops_of_one_block},
        resource::KernelResources,
    },
    occupancy::{Occupancy, usual_threads},
    serialize::nvidia::{Cubin, PtxCompiler, SerializeError},
    target::Target,
};

/// How much of the bound registers may be beyond it: 6 of 32. On an H200, kernels with 33 to 38 took 0.72 to 1.00 of the time
/// with 32, and those with 39 and 40 1.00 to 1.30, though nothing was spilled (docs/lab/code-quality.md).
const MOST_BEYOND: (u32, u32) = (3, 16);

/// What kernels with short loops of loads may have. On an H200, 192 cases took 0.91 of the time with it, 0.92 to 0.96 with 40 and
/// 48, and with 96 one took 1.54 (docs/lab/code-quality.md). Without a bound the PTX compiler keeps to fewer by itself.
const FOR_LOADS: u32 = 64;

/// Loads of an iteration; the PTX compiler puts four iterations into one of its own, and their loads first.
const LEAST_LOADS: u32 = 4;

/// Instructions of the longest loop that ptxas 13.0 was seen to unroll four times, in the PTX of 712 kernels.
const MOST_INSTRUCTIONS: usize = 32;

/// Steps from which on the threads of a warp share the iterations of a loop: each has few of them, and some such kernels lose.
const SHARED_STEP: u64 = 128;

/// Warps of a multiprocessor of the chips for which [`FOR_LOADS`] was measured: with 32 registers for each thread.
const WARPS: u32 = 64;

/// Threads of the largest block, which has to be possible where nothing is known of it.
const MOST_THREADS: u32 = 1024;

/// Registers that an instruction can name.
const MOST_REGISTERS: u32 = 255;

const REGISTER_BYTES: u32 = 4;

/// The part of what is spilled that more registers have to save, an eighth: they leave room for fewer threads. On an H200, kernels of
/// Triton's that saved 19 percent and more took 0.13 to 0.89 of the time with few registers; smaller parts were not seen.
const LEAST_SAVED: u32 = 8;

/// An instruction that means something only where a kernel states how many registers it begins with, and that waits for
/// more.
const CHANGES_REGISTERS: &str = "setmaxnreg";

/// A kernel, the registers that it may have, and the bytes that it may spill with these.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Bound {
    kernel: String,
    registers: u32,
    spills: u32,
}

impl PtxWork<'_> {
    /// What `compile` makes of `ptx`, with the bounds that are best for its kernels. What becomes of a kernel does not depend on others
    /// that it shares nothing with.
    pub(super) fn with_best_bounds(
        &self,
        ptx: &str,
        compile: impl Fn(&str) -> Result<Cubin, SerializeError>,
    ) -> Result<Cubin, SerializeError> {
        let loading = match self.is_open() {
            true => self.that_load(ptx),
            false => Vec::new(),
        };
        match bounded(ptx, &open_ones(ptx, loading), &compile)? {
            Some((text, made)) => self.with_better_bounds(&text, made, compile),
            None => self.with_better_bounds(ptx, compile(ptx)?, compile),
        }
    }

    /// The same of what was made of `ptx`: with fewer registers for kernels that then have all threads of the chip at work, and with
    /// more for those that spill.
    fn with_better_bounds(
        &self,
        ptx: &str,
        made: Cubin,
        compile: impl Fn(&str) -> Result<Cubin, SerializeError>,
    ) -> Result<Cubin, SerializeError> {
        let bounds = open_ones(ptx, self.better_bounds(&made));
        if bounds.is_empty() {
            return Ok(made);
        }
        let again = match self.replaced(ptx, &made, &bounds, &compile)? {
            None => bounded(ptx, &bounds, &compile)?.map(|(_, made)| made),
            replaced => replaced,
        };
        Ok(again.unwrap_or(made))
    }

    /// Whether nobody said anything of registers.
    fn is_open(&self) -> bool {
        let options = self.options;
        options.opt_level == 3
            && options.max_registers.is_none()
            && !options.device_debug
            && !options.relocatable
            && !options.extra.iter().any(|option| option.contains("reg"))
    }

    /// The kernels with loops of many loads, and how many registers they may have.
    fn that_load(&self, ptx: &str) -> Vec<Bound> {
        let few = KernelResources {
            registers: Some(1),
            ..KernelResources::default()
        };
        let target = self.chip.parse::<Target>().ok();
        let occupancy = target.and_then(|target| Occupancy::usual(&target, &few));
        if occupancy.is_none_or(|occupancy| occupancy.most_waves != WARPS) {
            return Vec::new();
        }
        let kernels = loops_of_one_block(ptx.as_bytes()).unwrap_or_default().into_iter();
        kernels
            .filter(|(_, loops)| loops.iter().any(is_short_and_loads))
            .map(|(kernel, _)| Bound {
                kernel,
                registers: FOR_LOADS,
                spills: 0,
            })
            .collect()
    }

    /// The kernels that have a few registers too many, or spill and may have more, and how many they may have.
    fn better_bounds(&self, made: &Cubin) -> Vec<Bound> {
        let target = self.chip.parse::<Target>().ok();
        let (true, Some(target), true) = (self.is_open(), target, made.compiler != PtxCompiler::NvJitLink) else {
            return Vec::new();
        };
        let kernels = made.info().map(|info| info.kernels).unwrap_or_default();
        kernels
            .iter()
            .filter_map(|kernel| {
                let registers = match spilled(kernel) {
                    0 => for_full_occupancy(&target, kernel),
                    bytes => for_fewer_spills(&target, kernel, bytes),
                };
                Some(Bound {
                    kernel: kernel.name.clone(),
                    registers: registers?,
                    spills: spilled(kernel) - spilled(kernel) / LEAST_SAVED,
                })
            })
            .collect()
    }

    /// The kernels alone, in the place of those in the cubin. `None` where cubins are not taken apart.
    fn replaced(
        &self,
        ptx: &str,
        made: &Cubin,
        bounds: &[Bound],
        compile: &impl Fn(&str) -> Result<Cubin, SerializeError>,
    ) -> Result<Option<Cubin>, SerializeError> {
        // In the text of a component, lines have other numbers.
        if self.options.line_info || has_lines(ptx) {
            return Ok(None);
        }
        let components = components(ptx).unwrap_or_default();
        let kernels = kernels_of(&components);
        let all: Vec<&KernelPtx<'_>> = kernels.iter().collect();
        let can_be = kernels.len() > 1 && kernels.iter().all(|kernel| kernel.kernel.is_some());
        let Some(mut cubins) = split_by_kernel(made, self.chip, &all).filter(|_| can_be) else {
            return Ok(None);
        };
        for (kernel, cubin) in kernels.iter().zip(&mut cubins) {
            let bound = bounds
                .iter()
                .find(|bound| Some(bound.kernel.as_str()) == kernel.kernel.as_deref());
            let (Some(bound), Some(text)) = (bound, (kernel.text)()) else {
                continue;
            };
            let alone = Bound {
                kernel: PLACEHOLDER.to_owned(),
                ..*bound
            };
            if let Some((_, again)) = bounded(&text, &[alone], compile)? {
                *cubin = again;
            }
        }
        let parts: Vec<(Option<&str>, usize)> = kernels
            .iter()
            .enumerate()
            .map(|(place, kernel)| (kernel.kernel.as_deref(), place))
            .collect();
        let stored: Vec<Stored> = cubins.into_iter().map(Stored::new).collect();
        let stored: Vec<(&Stored, bool)> = stored.iter().map(|stored| (stored, false)).collect();
        Ok(join(&stored, &parts, Helpers::None))
    }
}

/// Whether the PTX compiler unrolls it, and more loads could be under way then than it has registers for.
fn is_short_and_loads(found: &PtxLoop) -> bool {
    found.may_be_unrolled
        && found.loads >= LEAST_LOADS
        && found.instructions <= MOST_INSTRUCTIONS
        && found.step.is_some_and(|step| step < SHARED_STEP)
}

/// The bounds of those kernels that have none of their own.
fn open_ones(ptx: &str, mut bounds: Vec<Bound>) -> Vec<Bound> {
    if bounds.is_empty() {
        return bounds;
    }
    let entries = entries(ptx.as_bytes()).unwrap_or_default();
    let components = components(ptx).unwrap_or_default();
    let changes = |name: &str| {
        let component = components.iter().find(|component| component.kernels.contains(&name));
        let text = component.map_or(Cow::Borrowed(ptx), |component| Cow::Owned(component.text()));
        ptx.contains(CHANGES_REGISTERS) && text.contains(CHANGES_REGISTERS)
    };
    bounds.retain(|Bound { kernel: name, .. }| {
        entries.iter().any(|entry| {
            entry.name == *name && entry.max_registers.is_none() && entry.min_blocks_per_multiprocessor.is_none()
        }) && !changes(name)
    });
    bounds
}

/// How many registers a kernel that spills nothing may have for all threads to be at work, where it has a few more.
fn for_full_occupancy(target: &Target, kernel: &KernelResources) -> Option<u32> {
    let registers = kernel.registers?;
    let (part, whole) = MOST_BEYOND;
    let least = (registers * whole).div_ceil(whole + part);
    let is_full = |registers| {
        let occupancy = occupancy(target, kernel, registers, usual_threads(kernel));
        occupancy.is_some_and(|occupancy| occupancy.waves == occupancy.most_waves)
    };
    if is_full(registers) {
        return None;
    }
    (least..registers).rev().find(|&fewer| is_full(fewer))
}

/// How many registers a kernel may have, if that is more than it has, and it spills as many as it has or more. Blocks of a cluster
/// have to run at the same time, which needs room for several.
fn for_fewer_spills(target: &Target, kernel: &KernelResources, spilled: u32) -> Option<u32> {
    let registers = kernel.registers?;
    if spilled < registers * REGISTER_BYTES || kernel.cluster.is_some() || kernel.max_cluster_rank.is_some() {
        return None;
    }
    let required = kernel
        .required_block
        .map(|block| block.into_iter().fold(1, u32::saturating_mul));
    let threads = required.or(kernel.max_threads_per_block).unwrap_or(MOST_THREADS);
    let fits = |registers| occupancy(target, kernel, registers, threads).is_some_and(|occupancy| occupancy.waves > 0);
    (registers + 1..=MOST_REGISTERS).rev().find(|&more| fits(more))
}

fn occupancy(target: &Target, kernel: &KernelResources, registers: u32, threads: u32) -> Option<Occupancy> {
    let kernel = KernelResources {
        registers: Some(registers),
        ..kernel.clone()
    };
    Occupancy::of(target, &kernel, threads, 0)
}

/// Bytes that are spilled, stored or loaded.
fn spilled(kernel: &KernelResources) -> u32 {
    let bytes = [kernel.spill_store_bytes, kernel.spill_load_bytes];
    bytes.into_iter().flatten().max().unwrap_or_default()
}

/// The text with bounds for kernels, as far as these then spill no more than they may, and what was made of it. `None` where no
/// bound is left, or the compiler refuses them.
fn bounded(
    ptx: &str,
    bounds: &[Bound],
    compile: &impl Fn(&str) -> Result<Cubin, SerializeError>,
) -> Result<Option<(String, Cubin)>, SerializeError> {
    let mut bounds = bounds.to_vec();
    while !bounds.is_empty() {
        let Some(text) = with_bounds(ptx, &bounds) else {
            return Ok(None);
        };
        let made = match compile(&text) {
            Err(SerializeError::Compile { .. }) => return Ok(None),
            made => made?,
        };
        // It does not say what was spilled.
        if made.compiler == PtxCompiler::NvJitLink {
            return Ok(None);
        }
        let kernels = made.info().map(|info| info.kernels).unwrap_or_default();
        let before = bounds.len();
        bounds.retain(|bound| {
            kernels.iter().any(|kernel| {
                let fits = kernel.registers.is_some_and(|registers| registers <= bound.registers);
                kernel.name == bound.kernel && fits && spilled(kernel) <= bound.spills
            })
        });
        if bounds.len() == before {
            return Ok(Some((text, made)));
        }
    }
    Ok(None)
}

/// Lines keep their numbers.
fn with_bounds(ptx: &str, bounds: &[Bound]) -> Option<String> {
    let mut places: Vec<(usize, u32)> = Vec::new();
    for (entry, body) in with_bodies(ptx.as_bytes()).ok()? {
        places.extend(
            bounds
                .iter()
                .filter(|bound| bound.kernel == entry.name)
                .map(|bound| (body, bound.registers)),
        );
    }
    let mut text = ptx.to_owned();
    for (body, registers) in places.iter().rev() {
        text.insert_str(*body, &format!(".maxnreg {registers} "));
    }
    (places.len() == bounds.len()).then_some(text)
}

#[cfg(test)]
#[path = "../../tests/compiler/register_bounds.rs"]
mod tests;
