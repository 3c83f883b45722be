//! `gpulower targets`: every chip, what it has, and who can finish it here.

use clap::{
    Args,
    builder::{PossibleValuesParser, TypedValueParser},
};
use gpulower::{
    Compiler, Target,
    serialize::nvidia::{PtxCompiler, PtxToCubin},
    target::{AmdTarget, CudaRelease, NvidiaTarget, TargetError, Vendor, WmmaGeneration},
    toolkit::PartKind,
};
use serde::Serialize;

use super::{Failed, environment, json, message::Problem, suggested::Suggested, table, target_page, text_to_stdout};

/// List every chip that can be compiled for.
///
/// NVIDIA: the first PTX ISA that has the chip, and the compiler at hand that makes cubins for it; PTX and LLVM IR can be
/// made for every chip without one; mma are tensor cores. AMD: the wave sizes (the chip's own first) and the settings of target IDs; lld, which
/// makes the hsaco, is built in.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Say all about this target instead: sm_90, sm_90a, gfx942, gfx90a:xnack-
    #[arg(value_parser = Suggested::targets(), hide_possible_values = true)]
    target: Option<String>,
    /// List the chips of one vendor alone
    #[arg(long, conflicts_with = "target", value_parser = PossibleValuesParser::new(["nvidia", "amd"]).map(vendor))]
    vendor: Option<Vendor>,
    /// Print a JSON document
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    toolkits: environment::Toolkits,
}

fn vendor(name: String) -> Vendor {
    if name == "amd" { Vendor::Amd } else { Vendor::Nvidia }
}

/// One chip.
#[derive(Debug, Serialize)]
pub struct Row {
    pub target: String,
    pub vendor: &'static str,
    /// NVIDIA: the first PTX ISA with the chip.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ptx: Option<String>,
    /// AMD: lanes of a wave, the default first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wave_sizes: Option<&'static [u32]>,
    /// AMD: what a target ID may set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settings: Option<&'static [&'static str]>,
    pub features: Vec<&'static str>,
    /// The tool at hand that makes loadable code.
    pub finished_by: Option<String>,
    /// Why there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
}

/// Lists the chips.
pub fn run(arguments: &Arguments) -> Result<(), Failed> {
    let mut builder = Compiler::builder().toolkit(arguments.toolkits.toolkit()?);
    if let Some(directory) = arguments.toolkits.cache_directory() {
        builder = builder.cache_directory(directory);
    }
    let compiler = builder.build();
    let wanted = |vendor| arguments.wants(vendor);
    let tools = if wanted(Vendor::Nvidia) {
        cuda_compilers(compiler.ptx_to_cubin())
    } else {
        Vec::new()
    };
    if let Some(name) = &arguments.target {
        let target: Target = name
            .parse()
            .map_err(|error: TargetError| Problem::target(error.to_string()))?;
        let tools = match target.vendor() {
            Vendor::Nvidia => tools,
            Vendor::Amd => Vec::new(),
        };
        let row = row(&target, &tools);
        let text = match arguments.json {
            true => json(&row)?,
            false => target_page::page(&target, &row),
        };
        return text_to_stdout(&text);
    }
    let rows = rows(&tools, wanted);
    if arguments.json {
        #[derive(Serialize)]
        struct Document {
            targets: Vec<Row>,
        }
        return text_to_stdout(&json(&Document { targets: rows })?);
    }
    let (nvidia, amd): (Vec<Row>, Vec<Row>) = rows.into_iter().partition(|row| row.vendor == "nvidia");
    let mut text = String::new();
    if !nvidia.is_empty() {
        text.push_str(&nvidia_table(nvidia, tools.is_empty()));
    }
    if !amd.is_empty() {
        if !text.is_empty() {
            text.push('\n');
        }
        let ocml = compiler.toolkit().find(PartKind::Ocml).is_some();
        text.push_str(&amd_table(amd, ocml));
    }
    text_to_stdout(&text)
}

impl Arguments {
    fn wants(&self, vendor: Vendor) -> bool {
        self.vendor.is_none_or(|wanted| wanted == vendor)
    }
}

/// What `gpulower targets --json` lists, as a value to serialize.
pub fn target_report(compiler: &Compiler) -> impl Serialize + use<> {
    rows(&cuda_compilers(compiler.ptx_to_cubin()), |_| true)
}

fn rows(tools: &[(String, CudaRelease)], wanted: impl Fn(Vendor) -> bool) -> Vec<Row> {
    Target::all()
        .filter(|target| wanted(target.vendor()))
        .map(|target| row(&target, tools))
        .collect()
}

fn row(target: &Target, tools: &[(String, CudaRelease)]) -> Row {
    match target {
        Target::Nvidia(chip) => nvidia_row(chip, tools),
        Target::Amd(chip) => amd_row(chip),
    }
}

/// The compilers from PTX to cubins that can be used, in the order in which they are tried.
fn cuda_compilers(compilers: &PtxToCubin) -> Vec<(String, CudaRelease)> {
    PtxCompiler::ALL
        .into_iter()
        .filter_map(|compiler| {
            let version = compilers.version(compiler).ok()?;
            Some((format!("{compiler} {version}"), version.parse().ok()?))
        })
        .collect()
}

fn nvidia_row(chip: &NvidiaTarget, tools: &[(String, CudaRelease)]) -> Row {
    let features = [
        (chip.has_tensor_cores(), "mma"),
        (chip.has_redux(), "redux"),
        (chip.has_cp_async(), "cp.async"),
        (chip.has_bf16_fma(), "bf16"),
        (chip.has_fp8_mma(), "fp8"),
        (chip.has_cluster(), "clusters"),
        (chip.has_wgmma(), "wgmma"),
        (chip.has_tcgen05(), "tcgen05"),
    ];
    let tool = tools.iter().find(|(_, release)| chip.supported_by_cuda(*release));
    let refusal = tools
        .first()
        .and_then(|(_, release)| chip.check_cuda(*release).err())
        .map(|error| error.to_string());
    Row {
        target: chip.to_string(),
        vendor: "nvidia",
        ptx: Some(chip.min_ptx().to_string()),
        wave_sizes: None,
        settings: None,
        features: names(&features),
        missing: tool
            .is_none()
            .then(|| refusal.unwrap_or_else(|| "no CUDA toolkit was found".to_owned())),
        finished_by: tool.map(|(name, _)| name.clone()),
    }
}

fn amd_row(chip: &AmdTarget) -> Row {
    let wmma = match chip.wmma() {
        Some(WmmaGeneration::Gfx11) => "wmma (gfx11)",
        Some(WmmaGeneration::Gfx12) => "wmma (gfx12)",
        Some(_) => "wmma (gfx1250)",
        None => "",
    };
    Row {
        target: chip.to_string(),
        vendor: "amd",
        ptx: None,
        wave_sizes: Some(chip.wave_sizes()),
        settings: Some(chip.supported_features()),
        features: names(&[(chip.has_mfma(), "mfma"), (chip.has_wmma(), wmma)]),
        finished_by: Some("lld (built in)".to_owned()),
        missing: None,
    }
}

fn names(features: &[(bool, &'static str)]) -> Vec<&'static str> {
    let present = features.iter().filter(|(present, _)| *present);
    present.map(|(_, name)| *name).collect()
}

fn nvidia_table(rows: Vec<Row>, no_tool: bool) -> String {
    let mut cells = vec![["NVIDIA", "PTX", "cubin by", "features"].map(str::to_owned).to_vec()];
    cells.extend(rows.into_iter().map(|row| {
        vec![
            row.target,
            row.ptx.unwrap_or_default(),
            row.finished_by.unwrap_or_else(|| "-".to_owned()),
            row.features.join(" "),
        ]
    }));
    let mut text = table::aligned(cells, usize::MAX);
    let note = if no_tool {
        "-: no CUDA toolkit was found; PTX can be made for every chip. `gpulower doctor` says how to get one."
    } else {
        "-: no compiler at hand makes cubins for the chip; PTX can be made. --json says why."
    };
    text.push_str(&table::wrapped(note, 0));
    text
}

fn amd_table(rows: Vec<Row>, ocml: bool) -> String {
    let mut cells = vec![["AMD", "waves", "settings", "features"].map(str::to_owned).to_vec()];
    cells.extend(rows.into_iter().map(|row| {
        let waves: Vec<String> = row.wave_sizes.unwrap_or_default().iter().map(u32::to_string).collect();
        vec![
            row.target,
            waves.join(" "),
            row.settings.unwrap_or_default().join(" "),
            row.features.join(" "),
        ]
    }));
    let mut text = table::aligned(cells, usize::MAX);
    let note = if ocml {
        "hsaco by lld, which is built in; ocml.bc, for math functions, is there."
    } else {
        "hsaco by lld, which is built in; ocml.bc, for math functions, was not found: `gpulower doctor` says how to \
         get it."
    };
    text.push_str(&table::wrapped(note, 0));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nvidia(name: &str, tools: &[(String, CudaRelease)]) -> Row {
        nvidia_row(&name.parse().expect("a chip"), tools)
    }

    #[test]
    fn a_chip_is_finished_by_the_first_tool_that_has_it() {
        let tools = [
            ("ptxas 13.0".to_owned(), CudaRelease::new(13, 0)),
            ("nvjitlink 12.4".to_owned(), CudaRelease::new(12, 4)),
        ];
        assert_eq!(nvidia("sm_90a", &tools).finished_by.as_deref(), Some("ptxas 13.0"));
        assert_eq!(nvidia("sm_70", &tools).finished_by.as_deref(), Some("nvjitlink 12.4"));
        let dropped = nvidia("sm_70", &tools[..1]);
        assert_eq!(dropped.finished_by, None);
        assert!(
            dropped
                .missing
                .is_some_and(|reason| reason.contains("no longer compiles for sm_70"))
        );
        let nothing = nvidia("sm_90", &[]);
        assert_eq!(nothing.missing.as_deref(), Some("no CUDA toolkit was found"));
    }

    #[test]
    fn features_follow_the_chip() {
        assert!(nvidia("sm_90a", &[]).features.contains(&"wgmma"));
        assert!(!nvidia("sm_90", &[]).features.contains(&"wgmma"));
        let amd = |name: &str| amd_row(&name.parse().expect("a chip"));
        assert_eq!(amd("gfx942").features, ["mfma"]);
        assert_eq!(amd("gfx1100").features, ["wmma (gfx11)"]);
        assert_eq!(amd("gfx1100").wave_sizes, Some([32, 64].as_slice()));
    }

    #[test]
    fn every_line_fits_a_terminal() {
        let tools = [("nvptxcompiler 13.0".to_owned(), CudaRelease::new(13, 0))];
        let nvidia = NvidiaTarget::all().map(|chip| nvidia_row(&chip, &tools)).collect();
        let amd = AmdTarget::all().map(|chip| amd_row(&chip)).collect();
        let text = nvidia_table(nvidia, false) + &amd_table(amd, true);
        let longest = text.lines().map(|line| line.chars().count()).max();
        assert!(longest <= Some(table::WIDTH), "{longest:?}\n{text}");
    }
}
