//! What each fuzz target does with its bytes: read them with one reader, and everything that the reader hands out.
//!
//! A panic, an overflow, a hang, or more memory than [`MEMORY`] is a finding. Where there is a second opinion (text that was
//! read and printed reads the same again) it is asked.

use std::alloc::System;

use cap::Cap;
use gpulower_image::{
    container::{archive, bundle, fatbin, offload_binary},
    image::{
        cubin, elf::Elf, hsaco::Hsaco, hsaco_attributes, join_cubin, producer, ptx, ptx_entries, ptx_log, ptx_symbols,
        symbols::LinkSymbols,
    },
    inspect,
    offload::{check, release::ClangRelease},
    target::{
        ComputeCapability, CudaRelease, Device, NvccArch, NvccFlags, NvidiaArch, PtxIsa, PtxPolicy, Target, TargetPlan,
    },
};

/// Most bytes that may be allocated at once. The readers decompress at most 64 MiB and 64 times the file; an input has 4 KiB
/// unless libFuzzer is told otherwise.
pub const MEMORY: usize = 256 << 20;

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, MEMORY);

/// 64-bit ELF, its symbols, its notes, and who made it.
pub fn elf(bytes: &[u8]) {
    let Ok(elf) = Elf::parse(bytes) else { return };
    for section in elf.sections() {
        let _ = elf.contents(section);
    }
    for kind in [2, 11] {
        let _ = elf.symbols(kind);
    }
    let _ = elf.notes();
    for symbols in [LinkSymbols::of_cubin(&elf), LinkSymbols::of_amd_object(&elf)]
        .iter()
        .flatten()
    {
        let _ = symbols.kernels().count();
    }
    let _ = producer::of_cubin(&elf);
    let _ = producer::of_comment(&elf);
}

/// A cubin.
pub fn cubin(bytes: &[u8]) {
    if let Ok(cubin) = cubin::read(bytes) {
        let _ = cubin.chip();
        let new: Vec<String> = (0..cubin.kernels.len()).map(|number| format!("k{number}")).collect();
        let mut kernels: Vec<(&str, &str)> = cubin
            .kernels
            .iter()
            .zip(&new)
            .map(|(kernel, name)| (kernel.name.as_str(), name.as_str()))
            .collect();
        let _ = join_cubin::split(bytes, &kernels);
        kernels.reverse();
        let _ = join_cubin::split(bytes, &kernels);
    }
    let _ = join_cubin::join(&[bytes, bytes]);
}

/// An AMDGPU code object.
pub fn hsaco(bytes: &[u8]) {
    if let Ok(hsaco) = Hsaco::read(bytes) {
        let _ = hsaco.resources().count();
        let _ = hsaco.target.to_string();
    }
    let _ = hsaco_attributes::kernel_metadata(bytes);
}

/// PTX: its head, its kernels, its symbols, who made it.
pub fn ptx(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let _ = ptx::header(&text);
    let _ = producer::of_ptx(&text);
    let _ = ptx_entries::entries(bytes);
    if let Ok(symbols) = ptx_symbols::symbols(bytes) {
        let _ = symbols.kernels().count();
    }
}

/// What a PTX compiler prints.
pub fn ptx_log(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let log = ptx_log::parse(&text);
    let _ = log.function("k");
    let without = ptx_log::without_times(&text);
    assert_eq!(ptx_log::without_times(&without), without, "times come back");
}

/// A fat binary, with every payload.
pub fn fatbin(bytes: &[u8]) {
    for read in [fatbin::read(bytes), fatbin::read_first(bytes)] {
        let Ok(read) = read else { continue };
        for entry in &read.entries {
            let _ = entry.payload();
            let _ = (entry.is_debug(), entry.is_mercury(), entry.is_obfuscated());
        }
    }
}

/// Offload bundles of every form, one after another.
pub fn bundle(bytes: &[u8]) {
    let _ = bundle::is_bundle(bytes);
    let mut budget = 1 << 20;
    let first = bundle::read_first(bytes, &mut budget).ok();
    let all = bundle::read_all_within(bytes, 1 << 20).unwrap_or_default();
    let one = bundle::read(bytes).ok();
    for read in first.iter().chain(&all).chain(&one) {
        for entry in read.entries() {
            let _ = (entry.is_host(), entry.is_host_placeholder());
        }
    }
    let id = String::from_utf8_lossy(bytes);
    if let Ok(id) = id.parse::<bundle::BundleId>() {
        assert!(id.means_same(&id), "{id}");
        let _ = (id.triple(), id.target_id(), id.target(), id.normalized());
    }
}

/// Offload binaries, one after another.
pub fn offload_binary(bytes: &[u8]) {
    let _ = offload_binary::read_first(bytes);
    for binary in offload_binary::read(bytes).unwrap_or_default() {
        for entry in &binary.entries {
            let _ = (entry.triple(), entry.arch(), entry.string("include-ptx"));
        }
    }
}

/// An `ar` archive.
pub fn archive(bytes: &[u8]) {
    let _ = archive::read(bytes);
}

/// What the releases of clang register of a host file: the part that needs no LLVM.
pub fn export_check(bytes: &[u8]) {
    let Ok(report) = check::check(bytes) else { return };
    let every: Vec<ClangRelease> = ClangRelease::all().collect();
    // What all releases register, some release does.
    assert!(!report.is_complete(&every) || report.is_complete(&[]));
    for (_, registered) in &report.releases {
        assert!(!registered.is_complete() || registered.kernels.len() <= report.entries.len());
    }
}

/// Everything, nested as it comes, with the questions that are asked of it.
pub fn inspect(bytes: &[u8]) {
    let Ok(inspection) = inspect::inspect_with("input", bytes, &mut |_, _| {}) else {
        return;
    };
    let _ = inspection.problems().count();
    assert_eq!(inspect::file_names(&inspection, "input").len(), inspection.images.len());
    for device in ["sm_86", "gfx942:sramecc+:xnack-"] {
        let device: Device = device.parse().expect("a device");
        let _ = inspect::device::answer(&inspection, device, PtxIsa::new(9, 0).ok());
    }
}

/// Targets, policies, devices, versions, and nvcc's flags, one on a line: what it prints it reads.
pub fn specs(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let _ = NvidiaArch::parse(&text);
    let _ = (text.parse::<PtxIsa>(), text.parse::<CudaRelease>());
    if let Ok(device) = text.parse::<Device>() {
        assert_eq!(device.to_string().parse(), Ok(device), "{text}");
    }
    let policy = text.parse::<PtxPolicy>().ok();
    if let Some(policy) = &policy {
        assert_eq!(policy.to_string().parse().as_ref(), Ok(policy), "{text}");
        assert_eq!(
            PtxPolicy::from_identifier(&policy.to_identifier()).as_ref(),
            Ok(&Some(policy.clone()))
        );
    }
    if let Ok(targets) = Target::parse_list(&text) {
        let printed: Vec<String> = targets.iter().map(Target::to_string).collect();
        assert_eq!(Target::parse_list(&printed.join(",")).as_ref(), Ok(&targets), "{text}");
        for policy in [
            None,
            Some(PtxPolicy::None),
            Some(PtxPolicy::Newest),
            Some(PtxPolicy::All),
            policy,
        ] {
            check_plan(TargetPlan::from_targets(&targets, policy.as_ref()).ok(), &text);
        }
    }
    let mut flags = NvccFlags::default();
    for line in text.lines() {
        match line.split_at_checked(1) {
            Some(("a", rest)) => flags.arch.push(rest.to_owned()),
            Some(("c", rest)) => flags.code.push(rest.to_owned()),
            _ => flags.gencode.push(line.to_owned()),
        }
    }
    let devices = match flags.arch() {
        Ok(Some(NvccArch::Native)) => vec![ComputeCapability::new(9, 0), ComputeCapability::new(8, 6)],
        _ => Vec::new(),
    };
    check_plan(flags.plan(None, CudaRelease::new(13, 0), &devices).ok(), &text);
}

/// Every generation of a plan makes something, and nothing twice.
fn check_plan(plan: Option<TargetPlan>, text: &str) {
    let Some(plan) = plan else { return };
    assert!(plan.images().count() > 0, "{text}");
    for generation in &plan.generations {
        assert!(!generation.images.is_empty(), "{text}");
        for (index, image) in generation.images.iter().enumerate() {
            assert!(!generation.images[..index].contains(image), "{image} twice: {text}");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    /// The seeds, without a fuzzer: what was found once stays found.
    fn read_seeds(name: &str, target: fn(&[u8])) {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
        let mut seeds = 0;
        for seed in fs::read_dir(corpus.join(name)).expect(name) {
            let bytes = fs::read(seed.expect(name).path()).expect(name);
            if cfg!(miri) && has_zstd(&bytes) {
                continue;
            }
            target(&bytes);
            seeds += 1;
        }
        assert!(seeds > 0, "no seeds for {name}");
    }

    /// Whether something in it may be compressed with zstd, which is C: Miri cannot run it.
    fn has_zstd(bytes: &[u8]) -> bool {
        bytes.windows(4).any(|window| window == [0x28, 0xb5, 0x2f, 0xfd])
    }

    macro_rules! seeds_are_read_without_a_crash {
        ($($target:ident)*) => {
            $(
                #[test]
                fn $target() {
                    read_seeds(stringify!($target), super::$target);
                }
            )*
        };
    }

    seeds_are_read_without_a_crash! {
        archive bundle cubin elf export_check fatbin hsaco inspect offload_binary ptx ptx_log specs
    }
}
