//! `gpulower run`.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use clap::Args;
use gpulower::{
    self as library, Target,
    jit::{Program, ProgramOptions, Returned, RunError, SharedLibraries},
};

use super::{
    Failed,
    cache::CacheOptions,
    environment,
    flags::Flags,
    input,
    message::{self, Problem},
    progress::Progress,
    suggested::Suggested,
    to_stdout,
};

/// Run a whole program, host code and kernels, on a GPU of this machine.
///
/// The status is what the program's main returns. A program that does not use the GPU needs none.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The program: .mlir or .mlirbc with host code, as it is written or as MLIR's passes lowered it; - for the standard
    /// input
    input: PathBuf,
    /// The function to call. It takes nothing; an i32 is the status, an i64, f32 or f64 is printed
    #[arg(long, value_name = "NAME", default_value = "main")]
    entry: String,
    /// Libraries with functions that the program calls
    #[arg(long, value_name = "FILE[,FILE..]", value_delimiter = ',')]
    shared_libs: Vec<PathBuf>,
    /// What to compile the kernels for, such as sm_90 [default: the device, with all that its chip has]
    #[arg(short, long, value_name = "TARGET", value_parser = Suggested::targets(), hide_possible_values = true)]
    target: Option<String>,
    /// The device, counted from 0
    #[arg(long, value_name = "N", default_value_t = 0)]
    device: u32,
    /// Link what is needed of a library of bitcode or LLVM IR into the kernels; may be repeated
    #[arg(short, long = "link", value_name = "FILE")]
    libraries: Vec<PathBuf>,
    /// Say which kernels are compiled for what, stage by stage, before the program runs
    #[arg(short, long)]
    verbose: bool,
    #[command(flatten)]
    flags: Flags,
    #[command(flatten)]
    cache: CacheOptions,
    #[command(flatten)]
    toolkits: environment::Toolkits,
}

const EXAMPLES: &str = "\
Examples:
  gpulower run app.mlir
  gpulower run app.mlir --entry test --shared-libs ./libhelpers.so
  mlir-opt app.mlir --gpu-lower-to-nvvm-pipeline=\"cubin-chip=sm_90 cubin-features=+ptx80\" | gpulower run -";

/// Compiles and runs the program, whose status becomes that of the command.
pub fn run(arguments: &Arguments) -> Result<(), Failed> {
    let name = arguments.input.to_string_lossy();
    let failed = |error: RunError| match error {
        RunError::Compile(failure) => {
            Failed::Problems(failure.errors.iter().map(|error| Problem::of(error, &name)).collect())
        }
        error => Problem::run(error.to_string()).into(),
    };
    let mut program = arguments.program(&name)?.map_err(failed)?;
    // SAFETY: whoever types the command asks for this program to be run, and this process does nothing else.
    #[allow(unsafe_code, reason = "running what the user names is what the command is for")]
    let returned = unsafe { program.run() }.map_err(failed)?;
    match returned {
        Returned::Nothing | Returned::I32(0) => Ok(()),
        // As the system cuts it off.
        Returned::I32(status) => Err(Failed::Status((status & 0xff) as u8)),
        Returned::I64(value) => to_stdout(format!("{value}\n").as_bytes()),
        Returned::F32(value) => to_stdout(format!("{value}\n").as_bytes()),
        Returned::F64(value) => to_stdout(format!("{value}\n").as_bytes()),
    }
}

impl Arguments {
    fn program(&self, name: &str) -> Result<Result<Program, RunError>, Failed> {
        let target = self.target.as_deref().map(str::parse::<Target>).transpose();
        let target = target.map_err(|error| Problem::target(error.to_string()))?;
        let options = self.flags.with_libraries(&self.libraries);
        let toolkit = self.toolkits.toolkit()?;
        let progress = Progress::start(
            "compiling",
            std::slice::from_ref(&self.input),
            self.cache.is_used(self.toolkits.is_hermetic()),
        );
        let (shown, steps) = (progress.callback(), Arc::new(Mutex::new(Vec::new())));
        let list = Arc::clone(&steps);
        let told = move |step: &library::Progress<'_>| {
            shown(step);
            list.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .extend(in_words(step));
        };
        let builder =
            environment::compiler(options, toolkit, &self.toolkits, &self.cache, None)?.progress(Arc::new(told));
        let options = ProgramOptions {
            entry: self.entry.clone(),
            target,
            device: self.device,
            // SAFETY: whoever types the command names them, to be called by the program that is run.
            #[allow(unsafe_code, reason = "as for running the program")]
            shared_libraries: unsafe { SharedLibraries::trusted(self.shared_libs.clone()) },
        };
        let bytes = input::read(&self.input)?;
        let compiler = builder.build();
        let program = Program::build_source(&compiler, name, &bytes, &options);
        progress.end();
        if self.verbose {
            let steps = steps.lock().unwrap_or_else(PoisonError::into_inner);
            steps.iter().for_each(|step| message::line(step));
        }
        super::finish_cache(compiler.cache());
        Ok(program)
    }
}

/// A step of a compilation, if it is worth a line.
fn in_words(step: &library::Progress<'_>) -> Option<String> {
    Some(match *step {
        library::Progress::Stage { subject, stage } => format!("# {} for {}: {stage}", subject.module, subject.target),
        library::Progress::Finished {
            subject,
            from_cache: true,
            ..
        } => format!("# {} for {}: from the cache", subject.module, subject.target),
        _ => return None,
    })
}
