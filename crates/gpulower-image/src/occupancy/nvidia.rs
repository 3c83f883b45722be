//! Multiprocessors of NVIDIA's.
//!
//! The numbers are those of the table "Technical Specifications per Compute Capability" of NVIDIA's CUDA C++ Programming Guide,
//! and the granularities of its occupancy calculator. Compared with the driver's answer on an H200
//! (`crates/gpulower-python/tests/test_gpu.py`).

use super::{Occupancy, Resource, fits};
use crate::target::NvidiaTarget;

const REGISTERS: u32 = 65536;
/// Registers are given to warps in units of so many.
const REGISTER_UNIT: u32 = 256;
/// Warps are placed in fours: a multiprocessor has four schedulers.
const WARP_UNIT: u32 = 4;

/// What a multiprocessor has.
struct Multiprocessor {
    warps: u32,
    blocks: u32,
    /// Bytes of shared memory for all blocks.
    shared: u64,
    /// Bytes that the system takes of it for each block.
    reserved: u64,
    /// Shared memory is given in units of so many bytes.
    shared_unit: u64,
}

fn multiprocessor(number: u16) -> Option<Multiprocessor> {
    let (warps, blocks, kilobytes) = match number {
        50 | 53 | 60 | 62 => (64, 32, 64),
        52 | 61 | 70 | 72 => (64, 32, 96),
        75 => (32, 16, 64),
        80 => (64, 32, 164),
        86 => (48, 16, 100),
        87 => (48, 16, 164),
        89 | 120 | 121 => (48, 24, 100),
        90 | 100 | 103 => (64, 32, 228),
        _ => return None,
    };
    let (reserved, shared_unit) = if number < 80 { (0, 256) } else { (1024, 128) };
    Some(Multiprocessor {
        warps,
        blocks,
        shared: kilobytes * 1024,
        reserved,
        shared_unit,
    })
}

pub(super) fn occupancy(chip: &NvidiaTarget, registers: u32, shared: u64, threads: u32) -> Option<Occupancy> {
    let has = multiprocessor(chip.number())?;
    let warps = threads.div_ceil(32);
    let each = registers.saturating_mul(32).checked_next_multiple_of(REGISTER_UNIT)?;
    let by_registers = match REGISTERS.checked_div(each) {
        Some(all) => all / WARP_UNIT * WARP_UNIT / warps,
        None => has.blocks,
    };
    let memory = shared
        .checked_add(has.reserved)?
        .checked_next_multiple_of(has.shared_unit)?;
    let by = vec![
        (Resource::Blocks, has.blocks),
        (Resource::Waves, has.warps / warps),
        (Resource::Registers, by_registers),
        (Resource::SharedMemory, fits(has.shared, memory, has.blocks)),
    ];
    Occupancy::new(threads, warps, has.warps, true, by)
}

pub(super) fn facts(chip: &NvidiaTarget) -> Vec<(&'static str, String)> {
    let Some(has) = multiprocessor(chip.number()) else {
        return Vec::new();
    };
    let shared = has.shared / 1024;
    vec![(
        "multiprocessor",
        format!(
            "{} warps of 32 threads, {} blocks, {REGISTERS} registers of 32 bits, {shared} KiB of shared memory",
            has.warps, has.blocks
        ),
    )]
}
