//! `gpulower export`.

use std::{
    fmt::Write,
    path::{Path, PathBuf},
};

use clap::Args;
use gpulower::{
    Failure,
    offload::{Export, ExportForm, ExportOptions, HostTriple, Names, Runtime, export_source},
};

use super::{
    Failed,
    cache::CacheOptions,
    clang_list, environment, export_check,
    flags::{Flags, listed_targets},
    input,
    message::{self, Problem},
    progress::Progress,
    suggested::Suggested,
    table::aligned,
    text_to_stdout,
    write::{OneOutput, check_stdout, is_stdout},
};

/// Export a whole program, host code and kernels, for a machine that finishes it with its own clang.
///
/// Writes the file to carry, and prints the command that makes the program of it on the other machine.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The program: .mlir or .mlirbc with host code that launches kernels; - for the standard input
    #[arg(required_unless_present = "check")]
    input: Option<PathBuf>,
    /// What to compile the kernels for, such as sm_80,sm_90 or gfx90a,gfx942 [default: the target attributes of the
    /// modules]
    #[arg(short, long = "target", value_name = "TARGET[,TARGET..]", value_parser = Suggested::targets(), hide_possible_values = true)]
    targets: Vec<String>,
    /// What finishes the program: releases of clang from 15 to 23, and the CUDA toolkit (or rocm) there, such as
    /// clang-19,cuda-12.4 or clang-15..19,clang-22,cuda-11.8; a clang of this machine may be named by its path
    #[arg(long, value_name = "LIST")]
    finish_with: Option<String>,
    /// Whose runtime library the program calls: cuda, hip or openmp [default: that of the targets]
    #[arg(long, value_name = "KIND", value_parser = runtime)]
    kind: Option<Runtime>,
    /// What to write: obj (a host object), ll or bc (host code as LLVM IR), or self (a host object that registers its
    /// kernels by itself: any linker finishes it, and it carries PTX)
    #[arg(short, long, value_name = "FORM", default_value = "obj")]
    emit: String,
    /// The file to write, or - for the standard output
    #[arg(short, long, value_name = "FILE", required_unless_present = "check")]
    output: Option<PathBuf>,
    /// The machine that the program runs on: Linux on x86-64 or AArch64
    #[arg(long, value_name = "TRIPLE", default_value = "x86_64-unknown-linux-gnu")]
    host_triple: HostTriple,
    /// Leave the names of kernels and device variables as they are in the source, for code that refers to them by name
    #[arg(long)]
    keep_names: bool,
    /// A further CUDA toolkit here whose ptxas may be used: relocatable cubins have to be made by one that is not newer
    /// than the CUDA toolkit on the other machine; may be repeated
    #[arg(long, value_name = "DIR")]
    ptxas_of: Vec<PathBuf>,
    /// Link what is needed of a library of bitcode or LLVM IR into the kernels; may be repeated
    #[arg(short, long = "link", value_name = "FILE")]
    libraries: Vec<PathBuf>,
    /// Compile with at most this many threads [default: one for each processor]
    #[arg(short = 'j', long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    /// Say what is in the file
    #[arg(short, long)]
    verbose: bool,
    #[command(flatten)]
    check: export_check::CheckArguments,
    #[command(flatten)]
    flags: Flags,
    #[command(flatten)]
    cache: CacheOptions,
    #[command(flatten)]
    toolkits: environment::Toolkits,
}

const EXAMPLES: &str = "\
Examples:
  gpulower export app.mlir --target sm_80,sm_90 --finish-with clang-19,cuda-12.4 -o app.o
  gpulower export app.mlir --target gfx90a --finish-with clang-21..23,rocm --emit bc -o app.bc
  gpulower export app.mlir --target sm_90 --emit self -o app.o
  gpulower export app.mlir --target sm_90 --kind openmp --finish-with clang-19,cuda-12.4 -o app.o
  gpulower export --check app.o --with clang-19";

/// Exports, writes, and prints how the program is finished.
pub fn run(arguments: &Arguments) -> Result<(), Failed> {
    let (Some(input), Some(output)) = (&arguments.input, &arguments.output) else {
        return arguments.check.run();
    };
    arguments.check.refuse()?;
    let file = OneOutput::new(output, &[input], arguments.emit == "ll")?;
    if output != Path::new("-") {
        // The command that finishes the program.
        check_stdout(true)?;
    }
    let form = arguments.form()?;
    let extension = form.extension();
    let exported = arguments.export(input, form)?;
    for warning in &exported.warnings {
        message::warning(warning);
    }
    for note in &exported.notes {
        message::line(&format!("note: {note}"));
    }
    if arguments.verbose {
        message::line(&contents(&exported));
    }
    let to_stdout = is_stdout(output);
    let name = match to_stdout {
        true => format!("app.{}", extension),
        false => output.to_string_lossy().into_owned(),
    };
    let program = Path::new(&name)
        .file_stem()
        .map(|stem| stem.to_string_lossy().into_owned());
    let program = program
        .filter(|program| *program != name)
        .unwrap_or_else(|| "app".to_owned());
    let base = Path::new(&name)
        .file_name()
        .map(|name| name.to_string_lossy().into_owned());
    let commands = exported.finish.commands(&base.unwrap_or(name), &program);
    file.write(&exported.bytes)?;
    if to_stdout {
        message::line(commands.trim_end());
        return Ok(());
    }
    text_to_stdout(&commands)
}

impl Arguments {
    fn form(&self) -> Result<ExportForm, Failed> {
        let usage = |list: &str, error: &dyn std::fmt::Display| Failed::Usage(format!("--finish-with {list}: {error}"));
        let finish_with = match &self.finish_with {
            Some(list) => Some(
                clang_list::resolved(list)?
                    .parse()
                    .map_err(|error| usage(list, &error))?,
            ),
            None => None,
        };
        ExportForm::named(&self.emit, finish_with).map_err(|error| Failed::Usage(error.to_string()))
    }

    fn export(&self, input: &Path, form: ExportForm) -> Result<Export, Failed> {
        let name = input.to_string_lossy();
        let targets = listed_targets(&self.targets)?;
        let options = self.flags.with_libraries(&self.libraries);
        let toolkit = self.toolkits.toolkit()?;
        let progress = Progress::start(
            "exporting",
            &[input.to_owned()],
            self.cache.is_used(self.toolkits.is_hermetic()),
        );
        let builder = environment::compiler(options, toolkit, &self.toolkits, &self.cache, self.threads)?
            .progress(progress.callback());
        let unit = input.file_name().map(|name| name.to_string_lossy().into_owned());
        let export_options = ExportOptions {
            names: if self.keep_names { Names::Keep } else { Names::Unique },
            further_toolkits: self
                .ptxas_of
                .iter()
                .map(|root| environment::Toolkits::cuda_toolkit("--ptxas-of", root))
                .collect::<Result<_, _>>()?,
            runtime: self.kind,
            ..ExportOptions::new(form, unit.unwrap_or_default(), self.host_triple.clone())
        };

        let bytes = input::read(input)?;
        let failed =
            |failure: Failure| Failed::Problems(failure.errors.iter().map(|error| Problem::of(error, &name)).collect());
        let compiler = builder.build();
        let exported = export_source(&compiler, &name, &bytes, &targets, &export_options);
        progress.end();
        super::finish_cache(compiler.cache());
        exported.map_err(failed)
    }
}

fn runtime(name: &str) -> Result<Runtime, String> {
    Runtime::named(name).ok_or_else(|| "expected cuda, hip or openmp".to_owned())
}

/// A table of what was exported.
fn contents(exported: &Export) -> String {
    let head = ["module", "target", "image", "made by", "bytes"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for image in &exported.images {
        rows.push(vec![
            image.module.clone(),
            image.target.to_string(),
            image.form.to_string(),
            image.tool.clone().unwrap_or_default(),
            image.bytes.to_string(),
        ]);
    }
    let mut text = aligned(rows, 4);
    for kernel in &exported.program.kernels {
        let _ = writeln!(text, "kernel {} is called {}", kernel.source_name, kernel.name);
    }
    for variable in &exported.program.variables {
        let _ = writeln!(text, "variable {} is called {}", variable.source_name, variable.name);
    }
    text.trim_end().to_owned()
}
