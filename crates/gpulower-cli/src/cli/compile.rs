//! `gpulower compile`.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::Args;
use gpulower::{
    Artifact, Compilation, Error, Library, Options, Toolkit,
    compiler::{Plan, Targets},
    options::{DebugLevel, DeviceLink, Isolation},
    stage_files::{Overrides, StageFiles},
    toolkit::PartKind,
};

use super::{
    Failed,
    cache::CacheOptions,
    code_view::{CodeMaker, CodeView},
    dependencies::Dependencies,
    disassembly::Disassemblers,
    environment,
    flags::{Flags, listed_targets},
    form::Form,
    input,
    message::{self, Problem},
    nvcc::NvccArguments,
    output::Destination,
    outputs::Outputs,
    phases,
    progress::Progress,
    report::{Report, ReportFormat},
    suggested::Suggested,
    text_to_stdout,
    write::is_stdout,
};

/// Compile kernels: MLIR gpu modules, device LLVM IR or PTX.
///
/// Each gpu.module makes one artifact for each target. Without -o the artifacts are written to the current directory as
/// MODULE.TARGET.EXTENSION, those of several inputs as INPUT.MODULE.TARGET.EXTENSION. Files appear when they are complete, all of
/// them or none.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// What to compile: .mlir, .mlirbc, .ll, .bc or .ptx; - for the standard input; @FILE for arguments from a file
    #[arg(required = true, value_name = "INPUT")]
    inputs: Vec<PathBuf>,
    /// What to compile for, such as sm_90, sm_90a, compute_90, gfx942, gfx90a:xnack-; `gpulower targets` lists them
    /// [default: the target attributes of the modules]
    #[arg(short, long = "target", value_name = "TARGET[,TARGET..]", value_parser = Suggested::targets(), hide_possible_values = true)]
    targets: Vec<String>,
    #[command(flatten)]
    nvcc: NvccArguments,
    /// What to make: ptx, cubin, hsaco, asm, sass (by nvdisasm), llvm, bitcode, object, mlir, binary (cubin or hsaco), or all targets of a
    /// module in one: fatbin, bundle, offload
    #[arg(short, long, value_name = "FORMAT", default_value = "binary", value_parser = Form::parser(), hide_possible_values = true)]
    emit: Form,
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
    /// Write the artifacts that could be made, though others could not; the status is 1 then
    #[arg(short, long, conflicts_with_all = ["device_link", "link_objects"])]
    keep_going: bool,
    /// Write which files were read, as a rule for make and ninja (also: -MD, -MF FILE) [default: the output, with .d]
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    depfile: Option<Option<PathBuf>>,
    /// Say what is done by which tool, and what the tools said
    #[arg(short, long)]
    verbose: bool,
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
    /// Print the files that would be read, and do nothing else
    #[arg(long)]
    print_inputs: bool,
    #[command(flatten)]
    flags: Flags,
    #[command(flatten)]
    cache: CacheOptions,
    #[command(flatten)]
    toolkits: environment::Toolkits,
    /// The files that `@FILE` named.
    #[arg(skip)]
    pub argument_files: Vec<PathBuf>,
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
    let outputs = arguments.outputs()?;
    match arguments.compile(&outputs) {
        Err(Failed::Problems(problems)) => {
            if let Some(report) = &outputs.report {
                report.problems(&problems)?;
            }
            Err(Failed::Problems(problems))
        }
        Err(Failed::Partly(problems)) => Err(Failed::Problems(problems)),
        other => other,
    }
}

impl Arguments {
    /// What is to be written, checked as far as it is known before the inputs are read.
    fn outputs(&self) -> Result<Outputs, Failed> {
        let outputs = Outputs {
            destination: Destination::of(self.output.as_deref()),
            inputs: self.inputs.clone(),
            report: self.report.map(|format| Report {
                format,
                file: self.report_file.clone().filter(|file| !is_stdout(file)),
            }),
            depfile: self.depfile()?,
            form: self.emit,
        };
        if !self.is_dry() {
            outputs.check_before(self.device_link)?;
        }
        Ok(outputs)
    }

    /// Where the dependencies go: by default beside the artifact.
    fn depfile(&self) -> Result<Option<PathBuf>, Failed> {
        let Some(given) = &self.depfile else { return Ok(None) };
        if let Some(path) = given {
            return Ok(Some(path.clone()));
        }
        match (Destination::of(self.output.as_deref()), self.inputs.as_slice()) {
            (Destination::File(path), _) => Ok(Some(path.with_extension("d"))),
            (Destination::Directory(directory), [input]) if input != Path::new("-") => {
                let stem = input.file_stem().unwrap_or_default();
                Ok(Some(directory.join(format!("{}.d", stem.to_string_lossy()))))
            }
            _ => Err(Failed::Usage(
                "name the file of dependencies: --depfile=FILE, or -MD -MF FILE".to_owned(),
            )),
        }
    }

    /// Whether something is shown and nothing is written.
    fn is_dry(&self) -> bool {
        self.print_phases || self.print_bindings || self.dry_run || self.print_inputs
    }

    fn compile(&self, outputs: &Outputs) -> Result<(), Failed> {
        let options = self.options();
        let toolkit = self.toolkits.toolkit()?;
        let targets = self.targets(&outputs.destination, &options, &toolkit)?;
        let files = self.stage_files(&options, &toolkit)?;
        let disassemblers = self.disassemblers(&toolkit)?;
        let dependencies = Dependencies::new(&self.inputs, &self.read_beside(&toolkit)?, &options, &toolkit);
        let contents = input::read_several(&self.inputs)?;
        let inputs: Vec<(&str, &[u8])> = contents.iter().map(|(name, bytes)| (&**name, &**bytes)).collect();
        let failed = |errors: &[Error]| -> Vec<Problem> {
            errors.iter().map(|error| Problem::of_inputs(error, &inputs)).collect()
        };

        let mut builder = environment::compiler(options, toolkit, &self.toolkits, &self.cache, self.threads)?;
        if self.is_dry() || self.verbose {
            let planner = builder.build();
            let plan = planner.plan_sources(&inputs, targets.clone(), self.emit.emit());
            let plan = plan.map_err(|failure| Failed::Problems(failed(&failure.errors)))?;
            let paths = outputs.paths(&outputs.names(&plan.artifacts))?;
            if self.print_inputs {
                return text_to_stdout(&dependencies.lines(&plan.artifacts));
            }
            if self.is_dry() {
                return self.show(&plan, &paths);
            }
            message::line(phases::bindings(&plan, &paths).trim_end());
            builder = planner.to_builder();
        }
        let progress = Progress::start(
            "compiling",
            &self.inputs,
            self.cache.is_used(self.toolkits.is_hermetic()),
        );
        builder = builder.progress(progress.callback());
        if let Some(files) = &files {
            builder = builder.listener(Arc::clone(files) as _);
        }
        let (gate, asked) = outputs.gate();
        let compiler = builder.gate(gate).build();
        let (mut compilation, errors) = match self.keep_going {
            true => compiler.compile_available(&inputs, targets, self.emit.emit()),
            false => match compiler.compile_sources(&inputs, targets, self.emit.emit()) {
                Ok(compilation) => (compilation, Vec::new()),
                Err(failure) => (Compilation::default(), failure.errors),
            },
        };
        progress.end();
        super::finish_cache(compiler.cache());

        if let Some(files) = &files {
            files.unused().iter().for_each(|warning| message::warn(warning));
        }
        let planned = asked.answer()?;
        let problems = failed(&errors);
        if compilation.artifacts.is_empty() && !problems.is_empty() {
            return Err(Failed::Problems(problems));
        }
        compilation.warnings().for_each(message::warning);
        self.print_logs(&compilation.artifacts);
        if let Some(disassemblers) = &disassemblers {
            self.emit.finish(&mut compilation.artifacts, disassemblers)?;
        }
        if let Some(files) = &files {
            for artifact in &compilation.artifacts {
                let written = files.write_artifact(artifact);
                written.map_err(|error| Problem::output(error.to_string()))?;
            }
        }
        let code = |artifacts: &[Artifact]| self.code(artifacts, &inputs);
        tracing::debug_span!("stage", name = "output").in_scope(|| {
            outputs.write(&compilation.artifacts, &problems, compiler.cache(), &code, |paths| {
                dependencies.makefile(paths, &compilation.artifacts, &planned)
            })
        })?;
        match problems.is_empty() {
            true => Ok(()),
            false => Err(Failed::Partly(problems)),
        }
    }

    /// What the vendor's tools said, where that was asked for.
    fn print_logs(&self, artifacts: &[Artifact]) {
        let asked = self
            .flags
            .0
            .ptxas_options
            .iter()
            .any(|word| word == "-v" || word == "--verbose");
        if !asked && !self.verbose {
            return;
        }
        if self.verbose {
            let decisions = artifacts.iter().flat_map(|artifact| &artifact.decisions);
            for decision in decisions.filter(|decision| decision.choice.starts_with("speed=")) {
                message::line(&format!("{}: {}", decision.choice, decision.outcome));
            }
        }
        for image in artifacts.iter().flat_map(|artifact| &artifact.images) {
            if !image.log.trim().is_empty() {
                message::line(image.log.trim_end());
            }
        }
    }

    /// What shows machine code, where it is asked for; without nvdisasm there is no need to begin.
    fn disassemblers(&self, toolkit: &Toolkit) -> Result<Option<Disassemblers>, Failed> {
        if self.emit != Form::Sass {
            return Ok(None);
        }
        let found = Disassemblers::find(toolkit, &self.toolkits.search()?);
        found.sass()?;
        Ok(Some(found))
    }

    /// The code of artifacts beside its source.
    fn code(&self, artifacts: &[Artifact], inputs: &[(&str, &[u8])]) -> Result<Vec<CodeView>, Failed> {
        let toolkit = self.toolkits.toolkit()?;
        let disassemblers = Disassemblers::find(&toolkit, &self.toolkits.search()?);
        let mut options = self.options();
        if options.debug == DebugLevel::None {
            options.debug = DebugLevel::LineTables;
        }
        let compiler = environment::compiler(options, toolkit, &self.toolkits, &self.cache, self.threads)?.build();
        let maker = CodeMaker {
            inputs,
            compile: &|emit, targets| compiler.compile_sources(inputs, targets, emit),
            disassemblers: &disassemblers,
        };
        Ok(maker.views(artifacts))
    }

    /// Prints what was asked for of a plan.
    fn show(&self, plan: &Plan, paths: &[Option<PathBuf>]) -> Result<(), Failed> {
        let mut text = String::new();
        if self.print_phases || self.dry_run {
            text.push_str(&phases::phases(plan, paths));
        }
        if self.print_bindings || self.dry_run {
            text.push_str(&phases::bindings(plan, paths));
        }
        text_to_stdout(&text)
    }

    fn targets(&self, destination: &Destination, options: &Options, toolkit: &Toolkit) -> Result<Targets, Failed> {
        let listed = listed_targets(&self.targets)?;
        if let Some(plan) = self.nvcc.plan(&listed, options, toolkit)? {
            return Ok(Targets::Plan(plan));
        }
        destination.check_targets(&listed, self.emit.emit())?;
        Ok(Targets::from(&listed))
    }

    fn options(&self) -> Options {
        let mut options = self.flags.with_libraries(&self.libraries);
        if self.device_link || !self.link_objects.is_empty() {
            options.device_link = Some(DeviceLink {
                objects: self.link_objects.iter().cloned().map(Library::File).collect(),
            });
        }
        options
    }

    /// Files that are read beside inputs, libraries and toolkits.
    fn read_beside(&self, toolkit: &Toolkit) -> Result<Vec<PathBuf>, Failed> {
        let mut read = self.argument_files.clone();
        if let Some(folder) = &self.override_dir {
            let cannot = |error| Problem::plan(format!("cannot read {}: {error}", folder.display()));
            for entry in folder.read_dir().map_err(cannot)? {
                read.push(entry.map_err(cannot)?.path());
            }
            read.sort();
        }
        let disassembler = toolkit.find(PartKind::Nvdisasm);
        read.extend(disassembler.filter(|_| self.emit == Form::Sass).map(Path::to_owned));
        Ok(read)
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
        if self.dump_dir.as_deref().is_some_and(is_stdout) {
            return Err(Failed::Usage(
                "--dump-dir - is no folder, and several files are written".to_owned(),
            ));
        }
        let overrides = self.override_dir.clone().map(Overrides::find).transpose();
        let overrides = overrides.map_err(|error| Problem::plan(error.to_string()))?;
        let files = StageFiles::new(
            self.dump_dir.clone(),
            overrides,
            input::limit(),
            options.clone(),
            toolkit,
        );
        Ok(Some(Arc::new(
            files.map_err(|error| Problem::output(error.to_string()))?,
        )))
    }
}
