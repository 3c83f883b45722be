//! `gpulower link`.

use std::path::{Path, PathBuf};

use clap::Args;
use gpulower::{
    Compiler, Emit, Failure, Library, Options, Target,
    compiler::InputKind,
    options::{DeviceLink, OptionError},
    serialize::{
        device_link::{self, LinkInput, LinkOptions, LinkedImage, LtoOptions},
        nvidia_options::PtxOptions,
    },
};

use super::{
    Failed, environment,
    input::read,
    message::{self, Problem},
    progress::Progress,
    report::usage,
    suggested::Suggested,
    table::aligned,
    write::OneOutput,
};

/// Link relocatable device code into one image: a cubin for NVIDIA, an hsaco for AMD.
///
/// Inputs are PTX, relocatable cubins, LTO-IR, fat binaries and `nvcc -dc` objects, or AMDGPU objects, and archives of
/// these, of which only what is needed takes part. MLIR and LLVM IR are compiled, joined before they are optimised. Symbols that are defined twice or not at all are refused by name.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// What to link; - for the standard input
    #[arg(required = true, value_name = "FILE")]
    inputs: Vec<PathBuf>,
    /// What to link for, such as sm_90a or gfx90a:xnack-
    #[arg(short, long, value_name = "TARGET", value_parser = Suggested::targets(), hide_possible_values = true)]
    target: String,
    /// Where to write the image: a file, or - for the standard output
    #[arg(short, long, value_name = "PATH")]
    output: PathBuf,
    /// Print what took part, what each kernel needs, and what the linker said
    #[arg(short, long)]
    verbose: bool,
    #[command(flatten)]
    code: CodeOptions,
    #[command(flatten)]
    toolkits: environment::Toolkits,
}

/// Options for what is still compiled in a link: PTX and LTO-IR.
#[derive(Debug, Args)]
#[command(next_help_heading = "NVIDIA: for PTX and LTO-IR")]
struct CodeOptions {
    /// Optimise this much
    #[arg(short = 'O', value_name = "0|1|2|3", default_value_t = 3, value_parser = clap::value_parser!(u8).range(0..=3))]
    optimization: u8,
    /// Use at most this many registers in a thread
    #[arg(long, value_name = "N")]
    max_registers: Option<u32>,
    /// Keep line numbers
    #[arg(long)]
    line_info: bool,
    /// Further options for ptxas, in its words; may be repeated
    #[arg(long, value_name = "WORDS", allow_hyphen_values = true)]
    ptxas_options: Vec<String>,
    /// LTO-IR: f32 denormals become zero
    #[arg(long, value_name = "BOOL")]
    ftz: Option<bool>,
    /// LTO-IR: f32 division is correctly rounded
    #[arg(long, value_name = "BOOL")]
    prec_div: Option<bool>,
    /// LTO-IR: f32 square roots are correctly rounded
    #[arg(long, value_name = "BOOL")]
    prec_sqrt: Option<bool>,
    /// LTO-IR: multiplications and additions are fused
    #[arg(long, value_name = "BOOL")]
    fma: Option<bool>,
}

const EXAMPLES: &str = "\
Examples:
  gpulower link kernels.cubin functions.ptx --target sm_90 -o linked.cubin
  gpulower link kernels.ptx functions.ltoir libdevice_parts.a --target sm_90 -o linked.cubin -v
  gpulower link kernels.mlir functions.mlir helpers.ptx --target sm_90 -o linked.cubin
  gpulower link kernels.o functions.o --target gfx942 -o linked.hsaco";

/// Links and writes.
pub fn run(arguments: &Arguments) -> Result<(), Failed> {
    let target: Target = arguments
        .target
        .parse()
        .map_err(|error: gpulower::target::TargetError| Problem::target(error.to_string()))?;
    let inputs: Vec<&Path> = arguments.inputs.iter().map(PathBuf::as_path).collect();
    let output = OneOutput::new(&arguments.output, &inputs, false)?;
    let mut files = Vec::with_capacity(arguments.inputs.len());
    for path in &arguments.inputs {
        files.push((path.display().to_string(), read(path)?));
    }
    let progress = Progress::start("linking", &arguments.inputs, false);
    let linked = arguments.link(&files, &target, &progress);
    progress.end();
    let linked = linked?;
    for warning in linked.warnings.iter().cloned().chain(spills(&linked)) {
        message::warn(&warning);
    }
    if arguments.verbose {
        message::line(&description(&linked));
    }
    output.write(&linked.bytes)
}

impl Arguments {
    fn link(&self, files: &[(String, Vec<u8>)], target: &Target, progress: &Progress) -> Result<LinkedImage, Failed> {
        if files
            .iter()
            .any(|(name, bytes)| InputKind::is_to_be_compiled(name, bytes))
        {
            return self.compile_and_link(files, target, progress);
        }
        let failed = |error: device_link::DeviceLinkError| Problem::link(error.to_string());
        let inputs = files
            .iter()
            .map(|(name, bytes)| LinkInput::detect(name, bytes))
            .collect::<Result<Vec<_>, _>>()
            .map_err(failed)?;
        let compiler = Compiler::builder().toolkit(self.toolkits.toolkit()?).build();
        let linked = device_link::link(&inputs, target, &self.code.options(), compiler.ptx_to_cubin());
        Ok(linked.map_err(failed)?)
    }

    /// Joins MLIR and LLVM IR before it is optimised, and links the other files with what comes of it.
    fn compile_and_link(
        &self,
        files: &[(String, Vec<u8>)],
        target: &Target,
        progress: &Progress,
    ) -> Result<LinkedImage, Failed> {
        let (ir, objects): (Vec<_>, Vec<_>) = files
            .iter()
            .partition(|(name, bytes)| InputKind::is_to_be_compiled(name, bytes));
        let objects = objects.into_iter().map(|(name, bytes)| Library::Memory {
            name: name.clone(),
            bytes: bytes.as_slice().into(),
        });
        let options = self.code.compile_options(DeviceLink {
            objects: objects.collect(),
        });
        let mut builder = Compiler::builder()
            .options(options.map_err(|error| Problem::plan(error.to_string()))?)
            .toolkit(self.toolkits.toolkit()?)
            .progress(progress.callback());
        if let Some(directory) = self.toolkits.cache_directory() {
            builder = builder.cache_directory(directory);
        }
        let inputs: Vec<(&str, &[u8])> = ir
            .iter()
            .map(|(name, bytes)| (name.as_str(), bytes.as_slice()))
            .collect();
        let failed = |failure: &Failure| {
            let name = inputs.first().map_or("-", |(name, _)| *name);
            Failed::Problems(failure.errors.iter().map(|error| Problem::of(error, name)).collect())
        };
        let compilation = builder
            .build()
            .compile_sources(&inputs, &[*target], Emit::Binary)
            .map_err(|failure| failed(&failure))?;
        let warnings = compilation.warnings().map(|warning| warning.message.clone()).collect();
        let artifact = compilation.artifacts.into_iter().next();
        let Some((artifact, image)) = artifact.and_then(|artifact| {
            let image = artifact.images.first().cloned()?;
            Some((artifact, image))
        }) else {
            return Err(Problem::link("nothing came of the link".to_owned()).into());
        };
        Ok(LinkedImage {
            bytes: artifact.bytes,
            kernels: image.kernels,
            inputs: files.iter().map(|(name, _)| name.clone()).collect(),
            tool: image.tool.unwrap_or_default(),
            log: image.log,
            warnings,
        })
    }
}

impl CodeOptions {
    /// For what is compiled from MLIR or LLVM IR.
    fn compile_options(&self, device_link: DeviceLink) -> Result<Options, OptionError> {
        let mut options = Options {
            max_registers: self.max_registers,
            ftz: self.ftz,
            prec_div: self.prec_div,
            prec_sqrt: self.prec_sqrt,
            device_link: Some(device_link),
            ..Options::default()
        };
        options.set("O", &self.optimization.to_string())?;
        if self.line_info {
            options.set("debug", "line-tables")?;
        }
        if self.fma == Some(false) {
            options.set("fp-contract", "off")?;
        }
        for words in &self.ptxas_options {
            options.set("ptxas-options", words)?;
        }
        Ok(options)
    }

    fn options(&self) -> LinkOptions {
        LinkOptions {
            ptx: PtxOptions {
                opt_level: self.optimization,
                max_registers: self.max_registers,
                line_info: self.line_info,
                extra: self
                    .ptxas_options
                    .iter()
                    .flat_map(|words| words.split_whitespace().map(str::to_owned))
                    .collect(),
                ..PtxOptions::default()
            },
            lto: LtoOptions {
                flush_denormals: self.ftz,
                precise_division: self.prec_div,
                precise_square_root: self.prec_sqrt,
                contract: self.fma,
            },
        }
    }
}

/// A warning for each kernel that spills.
fn spills(linked: &LinkedImage) -> impl Iterator<Item = String> + '_ {
    linked
        .kernels
        .iter()
        .filter(|kernel| kernel.spills() == Some(true))
        .map(|kernel| format!("link: kernel {} spills registers; -v shows how much", kernel.name))
}

/// What took part, what the kernels need, and the linker's log.
fn description(linked: &LinkedImage) -> String {
    let mut text = format!("{} linked {}\n", linked.tool, linked.inputs.join(", "));
    let head = ["kernel", "registers", "spills", "shared", "scratch", "code"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for kernel in &linked.kernels {
        rows.push(std::iter::once(kernel.name.clone()).chain(usage(kernel)).collect());
    }
    text.push_str(&aligned(rows, 1));
    text.push_str(&linked.log);
    text.trim_end().to_owned()
}
