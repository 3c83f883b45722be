//! How many blocks of a kernel are at work at a time, what keeps a further one away, and a picture of it.
//!
//! The unit is a multiprocessor of NVIDIA's, a compute unit of AMD's up to gfx9 and on gfx1250, a workgroup processor of the chips
//! between them.

mod amd;
mod nvidia;
mod picture;

use std::fmt;

use serde::Serialize;

pub use picture::{bar, picture};

use crate::{Target, image::resource::KernelResources};

/// What a block takes of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Resource {
    /// Room for blocks.
    Blocks,
    /// Room for warps (NVIDIA) or waves (AMD).
    Waves,
    /// Registers; the vector registers of AMD's.
    Registers,
    /// Scalar registers of AMD's.
    ScalarRegisters,
    /// Shared memory (LDS).
    SharedMemory,
}

/// How full a unit is with blocks of one kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Occupancy {
    /// Threads of a block that were assumed.
    pub threads: u32,
    /// Blocks at a time.
    pub blocks: u32,
    /// Warps or waves of these.
    pub waves: u32,
    /// As many as there can be.
    pub most_waves: u32,
    /// What keeps a further block away.
    pub limit: Resource,
    /// How many blocks there could be for each resource alone, in the order in which they are named when several are as scarce.
    pub blocks_by: Vec<(Resource, u32)>,
    /// Whether it is NVIDIA's: warps, not waves.
    #[serde(skip)]
    nvidia: bool,
}

impl Occupancy {
    /// Of blocks with so many threads and so much shared memory beside what the kernel declares. `None` where the chip is not in
    /// the tables, or the kernel does not say what it needs.
    pub fn of(target: &Target, kernel: &KernelResources, threads: u32, dynamic_shared: u64) -> Option<Self> {
        if threads == 0 {
            return None;
        }
        let shared = kernel.shared_bytes.checked_add(dynamic_shared)?;
        match target {
            Target::Nvidia(chip) => nvidia::occupancy(chip, kernel.registers?, shared, threads),
            Target::Amd(chip) => amd::occupancy(chip, kernel, shared, threads),
        }
    }

    /// As [`of`](Self::of), of blocks as the kernel says, or else of [`USUAL_THREADS`] threads, without further shared memory.
    pub fn usual(target: &Target, kernel: &KernelResources) -> Option<Self> {
        Self::of(target, kernel, usual_threads(kernel), 0)
    }

    /// From the blocks that there could be for each resource: the scarcest one counts, the first of those that are alike.
    fn new(
        threads: u32,
        waves_per_block: u32,
        most_waves: u32,
        nvidia: bool,
        by: Vec<(Resource, u32)>,
    ) -> Option<Self> {
        let &(limit, blocks) = by.iter().min_by_key(|(_, blocks)| *blocks)?;
        Some(Self {
            threads,
            blocks,
            waves: blocks.saturating_mul(waves_per_block),
            most_waves,
            limit,
            blocks_by: by,
            nvidia,
        })
    }

    /// Warps or waves of as many as there can be, in per cent.
    #[must_use]
    pub fn percent(&self) -> u32 {
        (self.waves * 100 + self.most_waves / 2) / self.most_waves.max(1)
    }

    /// What the vendor calls a resource.
    #[must_use]
    pub fn name(&self, resource: Resource) -> &'static str {
        match (resource, self.nvidia) {
            (Resource::Blocks, _) => "blocks",
            (Resource::Waves, true) => "warps",
            (Resource::Waves, false) => "waves",
            (Resource::Registers, true) => "registers",
            (Resource::Registers, false) => "VGPRs",
            (Resource::ScalarRegisters, _) => "SGPRs",
            (Resource::SharedMemory, true) => "shared memory",
            (Resource::SharedMemory, false) => "LDS",
        }
    }
}

impl fmt::Display for Occupancy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (waves, most, blocks) = (self.waves, self.most_waves, self.blocks);
        let (what, limit) = (self.name(Resource::Waves), self.name(self.limit));
        let plural = if blocks == 1 { "block" } else { "blocks" };
        write!(
            formatter,
            "{waves}/{most} {what} in {blocks} {plural}, limited by {limit}"
        )
    }
}

/// What a unit of a chip has for blocks, as names and numbers for people. Empty for chips that are not in the tables.
#[must_use]
pub fn unit_facts(target: &Target) -> Vec<(&'static str, String)> {
    match target {
        Target::Nvidia(chip) => nvidia::facts(chip),
        Target::Amd(chip) => amd::facts(chip),
    }
}

/// Threads of a block that are assumed where nothing is known of it.
pub const USUAL_THREADS: u32 = 256;

/// The threads of a block as the kernel requires them, or [`USUAL_THREADS`], or as many as it may have if these are fewer.
#[must_use]
pub fn usual_threads(kernel: &KernelResources) -> u32 {
    let required = kernel
        .required_block
        .map(|block| block.into_iter().fold(1, u32::saturating_mul));
    required.unwrap_or_else(|| kernel.max_threads_per_block.unwrap_or(USUAL_THREADS).min(USUAL_THREADS))
}

/// What fits of `each` into `all`; `most` where nothing is needed.
fn fits(all: u64, each: u64, most: u32) -> u32 {
    match all.checked_div(each) {
        Some(count) => u32::try_from(count).unwrap_or(u32::MAX),
        None => most,
    }
}

#[cfg(test)]
mod tests;
