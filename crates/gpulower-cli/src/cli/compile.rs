//! `gpulower compile`.

use std::{path::PathBuf, sync::Arc};

use clap::Args;
use gpulower::{
    Emit, Failure, Library, Options, Target, Toolkit,
    compiler::{Plan, Targets},
    options::{DeviceLink, Isolation},
    stage_files::{StageFiles, StageFilesError},
};

use super::{
    Failed,
    cache::CacheOptions,
    environment,
    flags::Flags,
    input,
    message::{self, Problem},
    nvcc::NvccArguments,
    output::{ArtifactName, Destination},
    phases,
    progress::Progress,
    report::{Report, ReportFormat},
    text_to_stdout,
};

/// Compile kernels: MLIR gpu modules, device LLVM IR or PTX.
///
/// Each gpu.module makes one artifact for each target. Without -o the artifacts are written to the current directory as
/// MODULE.TARGET.EXTENSION. Files appear when they are complete, all of them or none.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// What to compile: .mlir, .mlirbc, .ll, .bc or .ptx; - for the standard input
    input: PathBuf,
    /// What to compile for, such as sm_90, sm_90a, compute_90, gfx942, gfx90a:xnack-; `gpulower targets` lists them
    /// [default: the target attributes of the modules]
    #[arg(short, long = "target", value_name = "TARGET[,TARGET..]")]
    targets: Vec<String>,
    #[command(flatten)]
    nvcc: NvccArguments,
    /// What to make: ptx, cubin, hsaco, asm, llvm, bitcode, object, mlir, binary (cubin or hsaco), or all targets of a
    /// module in one: fatbin, bundle, offload
    #[arg(short, long, value_name = "FORMAT", default_value = "binary")]
    emit: Emit,
    /// Where to write it: a file, a directory (if it exists or ends with /), or - for the standard output
    #[arg(short, long, value_name = "PATH")]
    output: Option<PathBuf>,
    /// Link what is needed of a library of bitcode or LLVM IR; may be repeated
    #[arg(short, long = "link", value_name = "FILE")]
    libraries: Vec<PathBuf>,
    /// Join the modules of the input into one image for each target, so that kernels can call what another module defines
    #[arg(long)]
    device_link: bool,
    /// Link compiled code into that image: PTX, a relocatable cubin, LTO-IR, an AMDGPU object, an archive; may be
    /// repeated
    #[arg(long = "link-object", value_name = "FILE")]
    link_objects: Vec<PathBuf>,
    /// Compile with at most this many threads [default: one for each processor]
    #[arg(short = 'j', long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    /// Print a report on the standard output
    #[arg(long, value_name = "FORMAT")]
    report: Option<ReportFormat>,
    /// Write the report to a file instead
    #[arg(long, value_name = "FILE", requires = "report")]
    report_file: Option<PathBuf>,
    /// Write what each stage made to this directory, as MODULE.TARGET.0-lowered.mlir, 1-initial.ll, 2-linked.ll,
    /// 3-optimized.ll, 4-isa.ptx (or .s), with the command that repeats the next stage in the first line
    #[arg(long, value_name = "DIR")]
    dump_dir: Option<PathBuf>,
    /// Go on with the files of this directory in the place of what the stages made. They have the names that --dump-dir
    /// gives; leave only those there that were edited
    #[arg(long, value_name = "DIR")]
    override_dir: Option<PathBuf>,
    /// Print the phases of the compilation as a tree, and do nothing else
    #[arg(long)]
    print_phases: bool,
    /// Print who would do each phase, what it reads and what it leaves, and do nothing else
    #[arg(long)]
    print_bindings: bool,
    /// Print both, and do nothing else
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    flags: Flags,
    #[command(flatten)]
    cache: CacheOptions,
    #[command(flatten)]
    toolkits: environment::Toolkits,
}

const EXAMPLES: &str = "\
Examples:
  gpulower compile kernels.mlir --target sm_90 --emit cubin -o kernels.cubin
  gpulower compile kernels.mlir --target sm_80,sm_90a,gfx942 -o out/ --report=table
  gpulower compile kernels.mlir --target sm_80,sm_90 --emit fatbin --include-ptx=newest -o kernels.fatbin
  gpulower compile kernels.mlir -gencode arch=compute_80,code=[sm_80,sm_86,compute_80] --emit fatbin -o kernels.fatbin
  mlir-opt ... | gpulower compile - --target sm_90 --emit ptx -o -";

/// Compiles, writes and reports.
pub fn run(arguments: &Arguments) -> Result<(), Failed> {
    let destination = Destination::of(arguments.output.as_deref());
    let report = arguments.report(&destination)?;
    match arguments.compile(&destination, report) {
        Err(Failed::Problems(problems)) => {
            if let Some(report) = report {
                report.problems(&problems)?;
            }
            Err(Failed::Problems(problems))
        }
        other => other,
    }
}

impl Arguments {
    fn report(&self, destination: &Destination) -> Result<Option<Report<'_>>, Failed> {
        let Some(format) = self.report else {
            return Ok(None);
        };
        let file = self.report_file.as_deref();
        if *destination == Destination::Stdout && file.is_none() {
            return Err(Failed::Usage(
                "the artifact and the report cannot both go to the standard output; name a file with --report-file"
                    .to_owned(),
            ));
        }
        Ok(Some(Report { format, file }))
    }

    fn compile(&self, destination: &Destination, report: Option<Report<'_>>) -> Result<(), Failed> {
        let options = self.options();
        let toolkit = self.toolkits.toolkit()?;
        let targets = self.targets(destination, &options, &toolkit)?;
        let bytes = input::read(&self.input)?;
        let files = self.stage_files(&options, &toolkit)?;

        let mut builder = environment::compiler(options, toolkit, &self.toolkits, &self.cache, self.threads);
        let name = self.input.to_string_lossy();
        if self.print_phases || self.print_bindings || self.dry_run {
            let plan = builder
                .build()
                .plan_sources(&[(&*name, &bytes)], targets, self.emit)
                .map_err(|failure| failed(&failure, &name))?;
            return self.show(&plan, destination);
        }
        let progress = Progress::start(&self.input);
        builder = builder.progress(progress.callback());
        if let Some(files) = &files {
            builder = builder.listener(Arc::clone(files) as _);
        }
        let result = builder.build().compile_source(&name, &bytes, targets, self.emit);
        progress.end();

        if let Some(files) = &files {
            files.unused().iter().for_each(|warning| message::warn(warning));
        }
        let compilation = result.map_err(|failure| failed(&failure, &name))?;
        compilation.warnings().for_each(message::warning);
        let artifacts = compilation.artifacts;
        let paths = destination.paths(&ArtifactName::all(&artifacts))?;
        if let Some(files) = &files {
            for artifact in &artifacts {
                files
                    .write_artifact(artifact)
                    .map_err(|error| Problem::output(error.to_string()))?;
            }
        }
        destination.write(&artifacts, &paths, &self.input)?;
        match report {
            Some(report) => report.artifacts(&artifacts, &paths),
            None => Ok(()),
        }
    }

    /// Prints what was asked for of a plan.
    fn show(&self, plan: &Plan, destination: &Destination) -> Result<(), Failed> {
        let paths = destination.paths(&ArtifactName::all(&plan.artifacts))?;
        let mut text = String::new();
        if self.print_phases || self.dry_run {
            text.push_str(&phases::phases(plan, &paths));
        }
        if self.print_bindings || self.dry_run {
            text.push_str(&phases::bindings(plan, &paths));
        }
        text_to_stdout(&text)
    }

    fn targets(&self, destination: &Destination, options: &Options, toolkit: &Toolkit) -> Result<Targets, Failed> {
        let listed = if self.targets.is_empty() {
            Vec::new()
        } else {
            Target::parse_list(&self.targets.join(",")).map_err(|error| Problem::plan(error.to_string()))?
        };
        if let Some(plan) = self.nvcc.plan(&listed, options, toolkit)? {
            return Ok(Targets::Plan(plan));
        }
        destination.check_targets(&listed, self.emit)?;
        Ok(Targets::from(&listed))
    }

    fn options(&self) -> Options {
        let mut options = self.flags.0.clone();
        options.libraries = self.libraries.iter().cloned().map(Library::File).collect();
        if self.device_link || !self.link_objects.is_empty() {
            options.device_link = Some(DeviceLink {
                objects: self.link_objects.iter().cloned().map(Library::File).collect(),
            });
        }
        options
    }

    fn stage_files(&self, options: &Options, toolkit: &Toolkit) -> Result<Option<Arc<StageFiles>>, Failed> {
        if self.dump_dir.is_none() && self.override_dir.is_none() {
            return Ok(None);
        }
        if options.isolation == Isolation::Worker {
            return Err(Failed::Usage(
                "--dump-dir and --override-dir look into the stages, which a worker process does not show; leave out \
                 --isolation=worker"
                    .to_owned(),
            ));
        }
        let (dump, overrides) = (self.dump_dir.clone(), self.override_dir.clone());
        let files = StageFiles::new(dump, overrides, input::limit(), options.clone(), toolkit);
        Ok(Some(Arc::new(files.map_err(|error| match error {
            StageFilesError::Read { .. } => Problem::plan(error.to_string()),
            _ => Problem::output(error.to_string()),
        })?)))
    }
}

fn failed(failure: &Failure, input: &str) -> Failed {
    Failed::Problems(failure.errors.iter().map(|error| Problem::of(error, input)).collect())
}
