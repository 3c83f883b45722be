//! The command line: arguments, the environment, files, messages and exit statuses. Everything else is the library.

mod cache;
mod clang_list;
mod compile;
mod doctor;
mod doctor_clang;
mod environment;
mod export;
mod export_check;
mod export_check_text;
mod extract;
mod flags;
mod input;
mod inspect;
mod inspect_answer;
mod inspect_details;
mod inspect_text;
mod link;
mod message;
mod native;
mod nvcc;
mod nvcc_flags;
mod output;
mod pack;
mod phases;
mod progress;
mod report;
mod run;
mod table;
mod targets;

use std::{
    ffi::OsString,
    io::{self, Write},
};

use clap::{Parser, Subcommand};

use message::Problem;

pub use doctor::doctor_report;
pub(crate) use environment::search;
pub use targets::target_report;

/// Exit status of a command line that cannot be understood; clap's own.
const USAGE: u8 = 2;

/// Compiles GPU kernels written in MLIR to PTX, cubin, hsaco and LLVM IR.
#[derive(Debug, Parser)]
#[command(name = "gpulower", version, max_term_width = 100, after_help = AFTER_HELP)]
struct CommandLine {
    /// Most MiB of an input; what has more, or no end, is refused.
    #[arg(
        long,
        global = true,
        value_name = "MIB",
        default_value_t = 1024,
        hide_short_help = true
    )]
    input_limit: u64,
    #[command(subcommand)]
    command: Command,
}

const AFTER_HELP: &str = "\
Exit status: 0 when everything was done, 1 when something failed, 2 when the command line is wrong.
Messages go to the standard error output; a result goes to the standard output only when asked to.
GPULOWER_LOG=debug shows what happens inside (a filter of the tracing-subscriber crate).";

#[derive(Debug, Subcommand)]
enum Command {
    Compile(Box<compile::Arguments>),
    Link(link::Arguments),
    Export(Box<export::Arguments>),
    Run(Box<run::Arguments>),
    Pack(pack::Arguments),
    Inspect(inspect::Arguments),
    Targets(targets::Arguments),
    Cache(cache::Arguments),
    Doctor(doctor::Arguments),
    /// Compile for another process, which starts this one with --isolation=worker.
    #[command(hide = true)]
    Worker,
}

/// Why a command ended early.
#[derive(Debug)]
enum Failed {
    /// Something failed.
    Problems(Vec<Problem>),
    /// The command line asks for something that makes no sense.
    Usage(String),
    /// The program that was run ended with this status.
    Status(u8),
    /// Whoever read the standard output has stopped reading: nothing is wrong.
    NobodyReads,
}

impl From<Problem> for Failed {
    fn from(problem: Problem) -> Self {
        Self::Problems(vec![problem])
    }
}

/// Runs the program `gpulower` on a command line, whose first word is its name, and returns the exit status.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    start_log(environment::variable("GPULOWER_LOG"));
    let arguments = match CommandLine::try_parse_from(nvcc_flags::rewrite(arguments.into_iter().collect())) {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and version are "errors" for the standard output, with status 0.
            if error.use_stderr() {
                message::line(error.render().to_string().trim_end());
            } else {
                let _ = error.print();
            }
            return u8::try_from(error.exit_code()).unwrap_or(USAGE);
        }
    };
    input::set_limit(arguments.input_limit);
    let result = match arguments.command {
        Command::Compile(arguments) => compile::run(&arguments),
        Command::Link(arguments) => link::run(&arguments),
        Command::Export(arguments) => export::run(&arguments),
        Command::Run(arguments) => run::run(&arguments),
        Command::Pack(arguments) => pack::run(&arguments),
        Command::Inspect(arguments) => inspect::run(&arguments),
        Command::Targets(arguments) => targets::run(&arguments),
        Command::Cache(arguments) => cache::run(&arguments),
        Command::Doctor(arguments) => doctor::run(&arguments),
        Command::Worker => gpulower::worker::serve().map_err(|error| Problem::input(error.to_string()).into()),
    };
    match result {
        Ok(()) | Err(Failed::NobodyReads) => 0,
        Err(Failed::Status(status)) => status,
        Err(Failed::Problems(problems)) => {
            for problem in &problems {
                message::error(problem);
            }
            1
        }
        Err(Failed::Usage(text)) => {
            message::line(&format!("error: {text}\n\nFor more information, try '--help'."));
            USAGE
        }
    }
}

/// Sends the library's traces to the standard error output, as far as the filter asks for them.
fn start_log(filter: Option<OsString>) {
    use tracing_subscriber::EnvFilter;

    let Some(filter) = filter else { return };
    match EnvFilter::try_new(filter.to_string_lossy()) {
        Ok(filter) => tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_ansi(false)
            .with_writer(|| message::Log)
            .init(),
        Err(error) => message::line(&format!("warning: GPULOWER_LOG is ignored: {error}")),
    }
}

/// Writes text for people to the standard output.
fn text_to_stdout(text: &str) -> Result<(), Failed> {
    to_stdout(message::shown(text).as_bytes())
}

/// Writes a result to the standard output.
fn to_stdout(bytes: &[u8]) -> Result<(), Failed> {
    let mut stdout = io::stdout().lock();
    stdout
        .write_all(bytes)
        .and_then(|()| stdout.flush())
        .map_err(|error| match error.kind() {
            io::ErrorKind::BrokenPipe => Failed::NobodyReads,
            _ => Problem::output(format!("cannot write to the standard output: {error}")).into(),
        })
}

/// A JSON document with a line break at its end.
fn json(document: &impl serde::Serialize) -> Result<String, Failed> {
    let mut text = serde_json::to_string_pretty(document)
        .map_err(|error| Problem::output(format!("cannot write JSON: {error}")))?;
    text.push('\n');
    Ok(message::escaped_in_json(&text))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_arguments_fit_together() {
        CommandLine::command().debug_assert();
    }
}
