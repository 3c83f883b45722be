//! Compute units and workgroup processors of AMD's.
//!
//! The numbers are those of LLVM 22 (`AMDGPUBaseInfo.cpp`: registers, waves, workgroups for each unit; `SIProgramInfo`: units of
//! LDS), whose `; Occupancy:` in assembly `tests/tools/occupancy.rs` compares with.

use super::{Occupancy, Resource, fits};
use crate::{image::resource::KernelResources, target::AmdTarget};

/// SIMDs that the waves of a workgroup share.
const SIMDS: u32 = 4;

/// What a unit has, with waves of one size.
struct Unit {
    /// Waves of a SIMD.
    waves: u32,
    /// Vector registers of a SIMD's lane, and the unit in which a wave gets them.
    vgprs: u32,
    vgpr_unit: u32,
    /// Workgroups of more than one wave.
    blocks: u32,
    /// Bytes of LDS, and the unit in which a workgroup gets them.
    lds: u64,
    lds_unit: u64,
}

fn unit(chip: &AmdTarget, wave_size: u32) -> Unit {
    let isa = chip.isa_version();
    let wave32 = wave_size == 32;
    let of = |small: u32, large: u32| if wave32 { large } else { small };
    // gfx11 is told apart by chip, its generic target has the less.
    let more_registers = matches!(chip.chip(), "gfx1100" | "gfx1101" | "gfx1151") || (isa.major, isa.minor) == (12, 0);
    let (waves, vgprs, vgpr_unit) = match (isa.major, isa.minor) {
        (9, _) if chip.has_unified_registers() => (8, 512, 8),
        (9, _) => (10, 256, 4),
        (10, 1) => (20, of(512, 1024), of(4, 8)),
        _ if more_registers => (16, of(768, 1536), of(12, 24)),
        _ => (16, of(512, 1024), of(8, 16)),
    };
    let (blocks, kilobytes, lds_unit) = match (isa.major, isa.minor) {
        (9, 5) => (16, 160, 1280),
        (9, _) => (16, 64, 512),
        (12, 5) => (16, 320, 2048),
        // Two compute units, in the mode that LLVM's code has.
        _ => (32, 128, 512),
    };
    Unit {
        waves,
        vgprs,
        vgpr_unit,
        blocks,
        lds: kilobytes * 1024,
        lds_unit,
    }
}

pub(super) fn occupancy(chip: &AmdTarget, kernel: &KernelResources, shared: u64, threads: u32) -> Option<Occupancy> {
    let wave_size = kernel.wavefront_size.unwrap_or_else(|| chip.default_wave_size());
    let has = unit(chip, wave_size);
    let waves = threads.div_ceil(wave_size.max(1));
    let most = has.waves * SIMDS;
    // Where the two kinds have a file each, the larger count decides; elsewhere one count has both.
    let vgprs = kernel.vgprs?.max(kernel.agprs.unwrap_or(0));
    let each = vgprs.max(1).checked_next_multiple_of(has.vgpr_unit)?;
    let by_vgprs = (has.vgprs / each).clamp(1, has.waves) * SIMDS;
    // The thresholds of LLVM's getOccupancyWithNumSGPRs; later chips give every wave as many as it can have.
    let by_sgprs = match kernel.sgprs {
        Some(sgprs) if chip.isa_version().major < 10 => match sgprs {
            0..=80 => 10,
            81..=88 => 9,
            89..=100 => 8,
            _ => 7,
        },
        _ => has.waves,
    };
    let blocks = if waves == 1 { most } else { has.blocks };
    let lds = shared.checked_next_multiple_of(has.lds_unit)?;
    let by = vec![
        (Resource::Blocks, blocks),
        (Resource::Waves, most / waves),
        (Resource::Registers, by_vgprs / waves),
        (Resource::ScalarRegisters, by_sgprs.min(has.waves) * SIMDS / waves),
        (Resource::SharedMemory, fits(has.lds, lds, blocks)),
    ];
    Occupancy::new(threads, waves, most, false, by)
}

pub(super) fn facts(chip: &AmdTarget) -> Vec<(&'static str, String)> {
    let is_pair = matches!(
        (chip.isa_version().major, chip.isa_version().minor),
        (10 | 11, _) | (12, 0)
    );
    let name = if is_pair { "workgroup processor" } else { "compute unit" };
    let of_wave = |&size: &u32| {
        let has = unit(chip, size);
        let (waves, lds) = (has.waves * SIMDS, has.lds / 1024);
        let text = format!(
            "{waves} waves of {size} lanes, {} workgroups of several waves, {} VGPRs for a lane of each of {SIMDS} SIMDs, {lds} KiB \
             of LDS",
            has.blocks, has.vgprs
        );
        (name, text)
    };
    chip.wave_sizes().iter().map(of_wave).collect()
}
