//! How many registers kernels may have, where the number that the PTX compiler aims at is not the best.
//!
//! - It keeps to as many as a chip has for all its threads, 32 on an H200, wherever it can. Loops that it unrolls four times have 16
//!   loads and more in an iteration then, and too few registers for these to be under way at once: kernels with such a loop may have
//!   [`FOR_LOADS`].
//! - Kernels that take a few registers more than a chip has for all its threads are compiled once more, with no more than that, and
//!   taken so where nothing is spilled: of 33 registers, a multiprocessor of an H200 has enough for 48 warps of 64.
//! - Kernels that would spill with 255 registers, and state the size of their block, get as many, or 40, and spill kilobytes: what
//!   spills as many as it has or more, and may have more, is compiled once more, and taken so where that saves [`LEAST_SAVED`].
//! - Where it keeps to few registers in other loops, the machine code says so: it waits for one load after the other. Kernels with
//!   such loops are compiled once more with [`FOR_WAITS`], and taken so where an iteration is then estimated to take
//!   [`MOST_WITH_MORE`].

use std::{borrow::Cow, collections::HashMap};

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
        ptx_loops::{PtxLoop, innermost_loops},
        resource::KernelResources,
        sass_loops::{self, SassLoop},
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

/// Threads of the largest block, and of a warp.
const MOST_THREADS: u32 = 1024;
const WARP: u32 = 32;

/// Registers that an instruction can name.
const MOST_REGISTERS: u32 = 255;

const REGISTER_BYTES: u32 = 4;

/// The part of what is spilled that more registers have to save, an eighth: they leave room for fewer threads. On an H200, kernels of
/// Triton's that saved 19 percent and more took 0.13 to 0.89 of the time with few registers; smaller parts were not seen.
const LEAST_SAVED: u32 = 8;

/// What kernels whose loops wait too often may have, where their block leaves room for so many; [`FOR_LOADS`], if they have 32. On an
/// H200, of 76 kernels that had 255, 128, 96 or 64, those with 128 were the fastest (docs/lab/code-quality.md).
const FOR_WAITS: u32 = 128;

/// Registers of kernels of which nothing says that they have too few: the PTX compiler aims at 32.
const ENOUGH: u32 = 28;

/// The part of a loop's time that has to be left if it waited only once, for a kernel to be compiled again.
const MOST_WITH_ONE_WAIT: (u64, u64) = (17, 20);

/// The part of a loop's time that may be left with more registers, times the root of the part of the warps that have room then; and
/// how much longer other loops may take. On an H200, the 55 to 60 kernels below 0.80 to 0.92 took 0.87 of the time, the worst 1.11; of
/// those below 0.97 one took 1.53, which has a bound by [`FOR_LOADS`] here (docs/lab/code-quality.md).
const MOST_WITH_MORE: f64 = 0.95;
const OTHERS_LONGER: f64 = 1.1;

/// An instruction that means something only where a kernel states how many registers it begins with, and that waits for
/// more.
const CHANGES_REGISTERS: &str = "setmaxnreg";

/// A kernel, the registers that it may have, the bytes that it may spill with these, and the loops that have to become faster.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Bound {
    kernel: String,
    registers: u32,
    spills: u32,
    waiting: Option<Waiting>,
}

/// The loops of a kernel's machine code, and how many of its warps there is room for.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Waiting {
    target: Target,
    /// With whether its threads have iterations of their own.
    loops: Vec<(SassLoop, bool)>,
    warps: u32,
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
        let bounds = open_ones(ptx, self.better_bounds(ptx, &made));
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
        let kernels = innermost_loops(ptx.as_bytes()).unwrap_or_default().into_iter();
        kernels
            .filter(|(_, loops)| loops.iter().any(is_short_and_loads))
            .map(|(kernel, _)| Bound {
                kernel,
                registers: FOR_LOADS,
                spills: 0,
                waiting: None,
            })
            .collect()
    }

    /// The kernels that have a few registers too many, or spill or wait and may have more, and how many they may have.
    fn better_bounds(&self, ptx: &str, made: &Cubin) -> Vec<Bound> {
        let target = self.chip.parse::<Target>().ok();
        let (true, Some(target), true) = (self.is_open(), target, made.compiler != PtxCompiler::NvJitLink) else {
            return Vec::new();
        };
        let kernels = made.info().map(|info| info.kernels).unwrap_or_default();
        let loops: HashMap<String, Vec<PtxLoop>> = match sass_loops::is_known(&target) {
            true => innermost_loops(ptx.as_bytes())
                .unwrap_or_default()
                .into_iter()
                .collect(),
            false => HashMap::new(),
        };
        let bound = |kernel: &KernelResources| {
            let spilled = spilled(kernel);
            let (registers, waiting) = if spilled > 0 {
                (for_fewer_spills(&target, kernel, spilled)?, None)
            } else if let Some(fewer) = for_full_occupancy(&target, kernel) {
                (fewer, None)
            } else {
                let (more, waiting) = for_fewer_waits(&target, kernel, made, loops.get(&kernel.name)?)?;
                (more, Some(waiting))
            };
            Some(Bound {
                kernel: kernel.name.clone(),
                registers,
                spills: spilled - spilled / LEAST_SAVED,
                waiting,
            })
        };
        kernels.iter().filter_map(bound).collect()
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
                ..bound.clone()
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
    found.is_one_block
        && found.may_be_unrolled
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

/// How many registers a kernel may have, if that is more than it has, and it spills as many as it has or more.
fn for_fewer_spills(target: &Target, kernel: &KernelResources, spilled: u32) -> Option<u32> {
    let registers = kernel.registers?;
    if spilled < registers * REGISTER_BYTES {
        return None;
    }
    most_registers(target, kernel, MOST_REGISTERS)
}

/// How many registers a kernel may have, if that is more than it has, and it waits more than once in an iteration of a loop.
fn for_fewer_waits(
    target: &Target,
    kernel: &KernelResources,
    made: &Cubin,
    found: &[PtxLoop],
) -> Option<(u32, Waiting)> {
    let registers = kernel.registers.filter(|&registers| registers > ENOUGH)?;
    let most = if registers * 2 <= FOR_LOADS {
        FOR_LOADS
    } else {
        FOR_WAITS
    };
    let more = most_registers(target, kernel, most)?;
    let waiting = Waiting::of(target, kernel, made, |machine| has_own_iterations(machine, found))?;
    let (part, whole) = MOST_WITH_ONE_WAIT;
    let waits = |(machine, own): &(SassLoop, bool)| {
        *own && !machine.has_barrier && machine.cycles_with_one_wait * whole < machine.cycles * part
    };
    waiting.loops.iter().any(waits).then_some((more, waiting))
}

/// Whether a loop of the machine code may be one of the PTX whose iterations its threads do not share: one with a small constant step,
/// and as many loads, if the PTX compiler has unrolled it or not. Those that gather wait for what they have read before in any case, and
/// for places all over memory: sums of rows by indices took 1.11 of the time with more registers.
fn has_own_iterations(machine: &SassLoop, found: &[PtxLoop]) -> bool {
    let may_be = |one: &PtxLoop| {
        one.step.is_some_and(|step| step < SHARED_STEP)
            && !one.gathers
            && machine.loads.checked_rem(one.load_instructions) == Some(0)
    };
    machine.loads == 0 || found.iter().any(may_be)
}

impl Waiting {
    fn of(
        target: &Target,
        kernel: &KernelResources,
        made: &Cubin,
        has_own_iterations: impl Fn(&SassLoop) -> bool,
    ) -> Option<Self> {
        let loops = sass_loops::innermost_loops(&made.bytes, &kernel.name).ok()?;
        let occupancy = occupancy(target, kernel, kernel.registers?, usual_threads(kernel))?;
        Some(Self {
            target: *target,
            loops: loops
                .into_iter()
                .map(|found| (found, has_own_iterations(&found)))
                .collect(),
            warps: occupancy.waves,
        })
    }

    /// Whether a loop is that much faster in what was made of the same kernel with more registers, and no other much slower. Fewer warps
    /// then hide each other's waits; but how many there are is not known, a grid may be small.
    fn are_fewer(&self, kernel: &KernelResources, made: &Cubin) -> bool {
        let Some(now) = Self::of(&self.target, kernel, made, |_| true) else {
            return false;
        };
        let ratios = || {
            let pairs = self.loops.iter().zip(&now.loops);
            pairs.map(|((before, own), (now, _))| (now.cycles as f64 / before.cycles as f64, *own))
        };
        let warps = (f64::from(self.warps) / f64::from(now.warps)).sqrt();
        now.loops.len() == self.loops.len()
            && ratios().any(|(ratio, own)| own && ratio * warps < MOST_WITH_MORE)
            && ratios().all(|(ratio, _)| ratio < OTHERS_LONGER)
    }
}

/// The most registers up to a bound that a kernel's block has room for, if it has fewer. Where nothing is known of the block, every
/// block that there is room for has to stay possible. `None` for blocks of a cluster, too, which have to run at the same time.
fn most_registers(target: &Target, kernel: &KernelResources, most: u32) -> Option<u32> {
    if kernel.cluster.is_some() || kernel.max_cluster_rank.is_some() {
        return None;
    }
    let registers = kernel.registers?;
    let fits =
        |registers, threads| occupancy(target, kernel, registers, threads).is_some_and(|occupancy| occupancy.waves > 0);
    let required = kernel
        .required_block
        .map(|block| block.into_iter().fold(1, u32::saturating_mul));
    let stated = required.or(kernel.max_threads_per_block);
    let threads = match stated {
        Some(threads) => threads,
        None => (1..=MOST_THREADS / WARP)
            .rev()
            .map(|warps| warps * WARP)
            .find(|&threads| fits(registers, threads))?,
    };
    (registers + 1..=most).rev().find(|&more| fits(more, threads))
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

/// The text with bounds for kernels, as far as these then spill and wait no more than they may, and what was made of it. `None` where no
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
                let waits_less = || {
                    bound
                        .waiting
                        .as_ref()
                        .is_none_or(|waiting| waiting.are_fewer(kernel, &made))
                };
                kernel.name == bound.kernel && fits && spilled(kernel) <= bound.spills && waits_less()
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
