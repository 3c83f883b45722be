//! A static model of how long a kernel takes: what an iteration of its loops needs of a multiprocessor, and how much of that
//! there is with so many threads at work.
//!
//! An iteration takes as long as its instructions or its memory, whichever is longer. Instructions: their number by the lanes,
//! or by the threads that there are where these are too few to hide the latency of arithmetic. Memory: its bytes by the
//! bandwidth, or by what all threads have under way in the latency of memory (Little's law). It compares variants of one kernel,
//! whose work is the same, and nothing else. How often loops run, and what is found in caches, it does not know: a variant is
//! better only if it is in no case worse.

use super::code::{Body, Shape};
use crate::{
    image::resource::KernelResources,
    occupancy::Occupancy,
    target::{Target, Vendor},
};

/// What the model has to assume of a run.
struct Assumed {
    /// Cycles from a load to its result.
    latency: f64,
    /// Bytes for each lane and cycle.
    bandwidth: f64,
    /// Iterations of a loop for each thread.
    iterations: f64,
}

/// Long loops over memory. Under load, on an H200: a sum with two loads under way in each thread takes 1.14 of its time with four,
/// which is what this latency makes of it; 4.8 TB/s by 132 multiprocessors of 128 lanes at 1.75 GHz. An MI300X has 0.13 bytes.
const MEMORY: Assumed = Assumed {
    latency: 950.0,
    bandwidth: 0.16,
    iterations: 64.0,
};
/// Short loops: rows have a few elements for each thread.
const SHORT: Assumed = Assumed {
    iterations: 16.0,
    ..MEMORY
};
/// What is used again and again, and found in the cache of the multiprocessor.
const CACHED: Assumed = Assumed {
    latency: 40.0,
    bandwidth: 1.0,
    ..MEMORY
};
/// Cycles from one operation to the next that uses its result, by the two that a thread has at once.
const DEPENDENT: f64 = 2.5;

/// What is known of one kernel in one variant.
#[derive(Clone, Debug)]
pub(super) struct Estimate {
    pub resources: KernelResources,
    pub shape: Shape,
    pub occupancy: Option<Occupancy>,
    /// Threads at work, and lanes.
    threads: f64,
    lanes: f64,
}

impl Estimate {
    pub(super) fn new(target: &Target, resources: KernelResources, shape: Shape) -> Self {
        let occupancy = Occupancy::usual(target, &resources);
        let wave = resources.wavefront_size.unwrap_or(32);
        let waves = occupancy.as_ref().map_or(0, |occupancy| occupancy.waves);
        let lanes = match target.vendor() {
            Vendor::Nvidia => 128.0,
            Vendor::Amd => 64.0,
        };
        Self {
            threads: f64::from(waves) * f64::from(wave),
            lanes,
            occupancy,
            resources,
            shape,
        }
    }

    /// Bytes or registers that are spilled.
    pub(super) fn spills(&self) -> u64 {
        let of = |count: Option<u32>| u64::from(count.unwrap_or(0));
        let kernel = &self.resources;
        of(kernel.spill_store_bytes) + of(kernel.spill_load_bytes) + of(kernel.spilled_sgprs) + of(kernel.spilled_vgprs)
    }

    /// Registers of a thread.
    pub(super) fn registers(&self) -> Option<u32> {
        self.resources.registers.or(self.resources.vgprs)
    }

    /// The time of this, of that of `base`; both do what an iteration of each loop of `plain` does, which is not interleaved.
    /// Where it is longer under any assumption, that is the answer. `None` where the model cannot tell: it does not find the loops
    /// again, or memory is used for what was in registers.
    pub(super) fn compared(&self, base: &Self, plain: &Shape) -> Option<f64> {
        let grows = self.spills() > base.spills() || self.resources.scratch_bytes > base.resources.scratch_bytes;
        if grows || self.threads < 1.0 || base.threads < 1.0 {
            return None;
        }
        // That more threads are at work is no gain to rely on: on an H200 every variant that was chosen for that alone lost 6 to 10
        // percent (attention, SwiGLU). Registers hold loads under way, which PTX does not show.
        let threads = self.threads.min(base.threads);
        let ratio = |assumed| {
            let times = (
                self.time(plain, threads, assumed)?,
                base.time(plain, base.threads, assumed)?,
            );
            Some(times.0 / times.1).filter(|ratio| ratio.is_finite())
        };
        let worst = ratio(&SHORT)?.max(ratio(&CACHED)?);
        let usual = ratio(&MEMORY)?;
        Some(if worst > 1.0 { worst.max(usual) } else { usual })
    }

    fn time(&self, plain: &Shape, threads: f64, assumed: &Assumed) -> Option<f64> {
        let once = match plain.loops.is_empty() {
            true => 1.0,
            false => 1.0 / assumed.iterations,
        };
        let mut time = once * self.time_of(&self.shape.outside, threads, assumed);
        for (main, factor, rest) in matched(&self.shape.loops, &plain.loops)? {
            let in_main = self.time_of(main, threads, assumed) / factor;
            time += match rest {
                // On average half of a round is left over.
                Some(rest) => {
                    let left = (factor - 1.0) / 2.0 / assumed.iterations;
                    (1.0 - left) * in_main + left * self.time_of(rest, threads, assumed)
                }
                None => in_main,
            };
        }
        Some(time)
    }

    /// Cycles of a multiprocessor for one execution by one thread.
    fn time_of(&self, body: &Body, threads: f64, assumed: &Assumed) -> f64 {
        let instructions = body.instructions / self.lanes.min(threads / DEPENDENT);
        if body.bytes == 0 {
            return instructions;
        }
        // What only stores waits for nothing.
        let under_way = match body.loads {
            0 => f64::INFINITY,
            _ => threads * f64::from(body.under_way),
        };
        let rate = (assumed.bandwidth * self.lanes).min(under_way / assumed.latency);
        instructions.max(f64::from(body.bytes) / rate)
    }
}

/// For each loop of `plain` the loop that does the same, how many iterations it does at once, and the loop for what is left over.
/// `None` where the loops are others.
fn matched<'s>(loops: &'s [Body], plain: &[Body]) -> Option<Vec<(&'s Body, f64, Option<&'s Body>)>> {
    let mut left: Vec<&Body> = loops.iter().collect();
    let mut take = |wanted: &Body, factor: u32| {
        let is_it = |body: &&Body| work(body, wanted) == factor * work(wanted, wanted) && is_like(body, wanted);
        let place = left.iter().position(is_it)?;
        Some(left.remove(place))
    };
    let mut found = Vec::new();
    for wanted in plain {
        if work(wanted, wanted) == 0 {
            found.push((take(wanted, 1)?, 1.0, None));
            continue;
        }
        let main = [8, 4, 2]
            .into_iter()
            .find_map(|factor| Some((take(wanted, factor)?, f64::from(factor))));
        match main {
            Some((main, factor)) => found.push((main, factor, take(wanted, 1))),
            None => found.push((take(wanted, 1)?, 1.0, None)),
        }
    }
    left.is_empty().then_some(found)
}

/// What an iteration does that no optimisation takes away: operations on floats, or stores, or loads.
fn work(body: &Body, wanted: &Body) -> u32 {
    match wanted {
        Body { floats: 1.., .. } => body.floats,
        Body { stores: 1.., .. } => body.stores,
        _ => body.loads,
    }
}

/// Loops that touch memory and loops that do not are not the same.
fn is_like(one: &Body, other: &Body) -> bool {
    (one.loads == 0, one.stores == 0, one.floats == 0) == (other.loads == 0, other.stores == 0, other.floats == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(instructions: f64, floats: u32, loads: u32, under_way: u32) -> Body {
        Body {
            instructions,
            floats,
            loads,
            bytes: 4 * loads,
            under_way,
            stores: 0,
        }
    }

    fn estimate(registers: u32, spilled: u32, loops: Vec<Body>) -> Estimate {
        let resources = KernelResources {
            registers: Some(registers),
            spill_store_bytes: Some(spilled),
            ..KernelResources::default()
        };
        let shape = Shape {
            loops,
            outside: Body::default(),
        };
        Estimate::new(&"sm_90".parse().expect("a target"), resources, shape)
    }

    #[test]
    fn loads_under_way_count_until_the_bandwidth_is_reached() {
        let plain = estimate(32, 0, vec![body(6.0, 1, 1, 4)]);
        // Of a loop whose count is known nothing is left over.
        let of = |factor: u32, registers| {
            let main = body(2.0 + 4.0 * f64::from(factor), factor, factor, 4 * factor);
            estimate(registers, 0, vec![main])
        };
        let compared = |one: &Estimate, base: &Estimate| one.compared(base, &plain.shape).expect("the same loops");
        assert!(compared(&plain, &of(2, 32)) > 1.5, "one load at a time waits");
        assert!(
            (compared(&of(8, 32), &of(4, 32)) - 1.0).abs() < 0.05,
            "four are enough with all threads"
        );
        assert!(
            compared(&of(8, 128), &of(4, 128)) < 0.7,
            "but not with a quarter of them"
        );
        assert!(
            compared(&of(4, 128), &of(4, 32)) > 1.2,
            "fewer threads have fewer under way"
        );
    }

    #[test]
    fn what_is_slower_in_short_loops_or_from_the_cache_is_not_better() {
        let rest = body(6.0, 1, 1, 4);
        let plain = estimate(32, 0, vec![rest.clone()]);
        let of = |factor: u32, registers| {
            let main = body(2.0 + 4.0 * f64::from(factor), factor, factor, 4 * factor);
            estimate(registers, 0, vec![main, rest.clone()])
        };
        let compared = |one: &Estimate, base: &Estimate| one.compared(base, &plain.shape).expect("the same loops");
        assert!(
            compared(&of(8, 48), &of(4, 48)) > 1.0,
            "what is left over is done one by one"
        );
        // More threads at work alone are no gain.
        let (many, few) = (
            estimate(64, 0, vec![body(6.0, 1, 1, 4)]),
            estimate(96, 0, vec![body(6.0, 1, 1, 4)]),
        );
        assert!((compared(&many, &few) - 1.0).abs() < 1e-9 && compared(&few, &many) > 1.0);
    }

    #[test]
    fn what_cannot_be_compared_is_not() {
        let plain = estimate(32, 0, vec![body(6.0, 3, 1, 4)]);
        let spilling = estimate(32, 8, vec![body(6.0, 3, 1, 4)]);
        assert_eq!(spilling.compared(&plain, &plain.shape), None);
        let other = estimate(32, 0, vec![body(6.0, 5, 1, 4)]);
        assert_eq!(other.compared(&plain, &plain.shape), None);
        let more = estimate(32, 0, vec![body(6.0, 3, 1, 4), body(6.0, 9, 1, 4)]);
        assert_eq!(more.compared(&plain, &plain.shape), None);
        assert_eq!(plain.compared(&plain, &plain.shape), Some(1.0));
    }
}
