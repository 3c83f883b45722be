//! `gpulower targets sm_90`: all about one target.

use gpulower::{
    Target,
    occupancy::unit_facts,
    target::{AmdTarget, ComputeCapability, NvidiaTarget},
};

use super::{table::hanging, targets::Row};

/// The target, what it has, what makes its code, and where that runs.
pub fn page(target: &Target, row: &Row) -> String {
    let mut facts = match target {
        Target::Nvidia(chip) => nvidia(chip, row),
        Target::Amd(chip) => amd(chip, row),
    };
    let features = if row.features.is_empty() {
        "-".to_owned()
    } else {
        row.features.join(", ")
    };
    facts.push(("features", features));
    facts.extend(unit_facts(target));
    let width = facts.iter().map(|(name, _)| name.len()).max().unwrap_or(0) + 2;
    let mut text = format!("{target}\n");
    for (name, fact) in facts {
        text.push_str(&hanging(&format!("  {name:<width$}"), &fact));
    }
    text
}

fn nvidia(chip: &NvidiaTarget, row: &Row) -> Vec<(&'static str, String)> {
    let capability = ComputeCapability::new(chip.number() / 10, chip.number() % 10);
    let mut facts = vec![
        ("vendor", format!("NVIDIA, compute capability {capability}")),
        ("PTX", format!("ISA {} and later", chip.min_ptx())),
    ];
    let cuda = match (chip.first_cuda(), chip.last_cuda()) {
        (Some(first), Some(last)) => format!("{first} to {last}"),
        (Some(first), None) => format!("{first} and later"),
        (None, _) => "none that reads LLVM's PTX".to_owned(),
    };
    facts.push(("CUDA", cuda));
    let finished = match (&row.finished_by, &row.missing) {
        _ if chip.is_virtual() => "nothing: it is PTX alone".to_owned(),
        (Some(tool), _) => tool.clone(),
        (None, Some(why)) => format!("nothing here: {why}"),
        (None, None) => "nothing here".to_owned(),
    };
    facts.push(("cubin by", finished));
    if !chip.is_virtual() {
        facts.push(("cubin runs on", devices(|device| chip.cubin_runs_on(device))));
    }
    facts.push(("PTX runs on", devices(|device| chip.ptx_runs_on(device))));
    let others: Vec<String> = NvidiaTarget::all()
        .filter(|other| other.number() == chip.number() && other.suffix() != chip.suffix())
        .map(|other| other.to_string())
        .collect();
    if !others.is_empty() {
        facts.push(("same chip", others.join(", ")));
    }
    facts
}

/// The compute capabilities of the tables on which something runs.
fn devices(runs: impl Fn(ComputeCapability) -> bool) -> String {
    let mut devices: Vec<String> = NvidiaTarget::all()
        .map(|chip| ComputeCapability::new(chip.number() / 10, chip.number() % 10))
        .filter(|&device| runs(device))
        .map(|device| device.to_string())
        .collect();
    devices.dedup();
    devices.join(", ")
}

fn amd(chip: &AmdTarget, row: &Row) -> Vec<(&'static str, String)> {
    let isa = chip.isa_version();
    let list = |words: Vec<String>| match words.is_empty() {
        true => "none".to_owned(),
        false => words.join(", "),
    };
    let waves: Vec<String> = chip.wave_sizes().iter().map(u32::to_string).collect();
    let settings = chip.supported_features().iter().map(|&name| name.to_owned()).collect();
    let runs_on = AmdTarget::all().filter(|device| !device.is_generic() && chip.runs_on(device));
    let generic = AmdTarget::all().filter(|other| other.is_generic() && other != chip && other.runs_on(chip));
    let mut facts = vec![
        (
            "vendor",
            format!("AMD, ISA {}.{}.{:x}", isa.major, isa.minor, isa.stepping),
        ),
        ("waves", format!("{} lanes", waves.join(" or "))),
        ("settings", list(settings)),
        ("hsaco by", row.finished_by.clone().unwrap_or_default()),
    ];
    if chip.is_generic() {
        facts.push(("runs on", list(runs_on.map(|device| device.to_string()).collect())));
    }
    let generic: Vec<String> = generic.map(|target| target.to_string()).collect();
    if !generic.is_empty() {
        facts.push(("runs code of", generic.join(", ")));
    }
    if chip.has_unified_registers() {
        facts.push((
            "registers",
            "vector and accumulation registers share one file".to_owned(),
        ));
    }
    facts
}
