//! The command line: arguments, the environment, files, messages and exit statuses. Everything else is the library.

mod cache;
mod clang_list;
mod code_view;
mod colour;
mod compile;
mod dependencies;
mod disassembly;
mod doctor;
mod doctor_clang;
mod environment;
mod explain;
mod export;
mod export_check;
mod export_check_text;
mod extract;
mod flags;
mod form;
mod generate;
mod input;
mod inspect;
mod inspect_answer;
mod inspect_details;
mod inspect_text;
mod interruption;
mod link;
mod listing;
mod message;
mod native;
mod nvcc;
mod nvcc_flags;
mod output;
mod outputs;
mod pack;
mod phases;
mod progress;
mod report;
mod report_html;
mod response;
mod run;
mod suggested;
mod table;
mod target_page;
mod targets;
mod trace;
mod tune;
mod tune_argument;
mod write;

use std::{
    ffi::OsString,
    io::{self, IsTerminal, Write},
    path::PathBuf,
};

use clap::{
    CommandFactory, FromArgMatches, Parser, Subcommand,
    error::{ContextKind, ContextValue},
};

use message::Problem;
use trace::Trace;

pub(crate) use cache::{finish as finish_cache, of_environment as cache_of_environment};
pub use doctor::doctor_report;
pub(crate) use environment::search;
pub(crate) use message::shown;
pub use targets::target_report;

/// Exit status of a command line that cannot be understood; clap's own.
const USAGE: u8 = 2;

/// Compiles GPU kernels written in MLIR to PTX, cubin, hsaco and LLVM IR.
#[derive(Debug, Parser)]
#[command(name = "gpulower", version, max_term_width = 100, after_help = AFTER_HELP, arg_required_else_help = true)]
struct CommandLine {
    /// Say what an error's code means, and what to do
    #[arg(long, value_name = "CODE", exclusive = true)]
    explain: Option<String>,
    /// Colours in messages and help: auto has them on a terminal, unless NO_COLOR is set
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        default_value = "auto",
        hide_short_help = true
    )]
    color: clap::ColorChoice,
    /// Most MiB of an input; what has more, or no end, is refused.
    #[arg(
        long,
        global = true,
        value_name = "MIB",
        default_value_t = 1024,
        hide_short_help = true
    )]
    input_limit: u64,
    /// Write what happened when, and on which thread, to this file, for ui.perfetto.dev: stages, kernels, the cache, tools
    #[arg(long, global = true, value_name = "FILE", hide_short_help = true)]
    trace: Option<PathBuf>,
    #[command(subcommand)]
    command: Option<Command>,
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
    Tune(Box<tune::Arguments>),
    Pack(pack::Arguments),
    Inspect(inspect::Arguments),
    Targets(targets::Arguments),
    Cache(cache::Arguments),
    Doctor(doctor::Arguments),
    Completions(generate::Completions),
    Man(generate::Man),
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
    /// Something failed, and what did not was written and reported.
    Partly(Vec<Problem>),
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
    let arguments = match parse(arguments.into_iter().collect()) {
        Ok(arguments) => arguments,
        Err(status) => return status,
    };
    colour::choose(arguments.color);
    input::set_limit(arguments.input_limit);
    ended(arguments.run())
}

impl CommandLine {
    /// Carries out the command, with the log and the trace that were asked for.
    fn run(self) -> Result<(), Failed> {
        let trace = self.trace.as_deref().map(Trace::begin).transpose()?;
        write::reserve(self.trace.as_deref())?;
        start_log(environment::variable("GPULOWER_LOG"), trace.as_ref());
        let result = match self.command {
            Some(command) => command.run(),
            None => explain::run(self.explain.as_deref()),
        };
        // What failed is worth looking at, too.
        let written = trace.map_or(Ok(()), |trace| trace.end());
        result.and(written)
    }
}

impl Command {
    fn run(self) -> Result<(), Failed> {
        match self {
            Command::Compile(arguments) => compile::run(&arguments),
            Command::Link(arguments) => link::run(&arguments),
            Command::Export(arguments) => export::run(&arguments),
            Command::Run(arguments) => run::run(&arguments),
            Command::Tune(arguments) => tune::run(&arguments),
            Command::Pack(arguments) => pack::run(&arguments),
            Command::Inspect(arguments) => inspect::run(&arguments),
            Command::Targets(arguments) => targets::run(&arguments),
            Command::Cache(arguments) => cache::run(&arguments),
            Command::Doctor(arguments) => doctor::run(&arguments),
            Command::Completions(arguments) => generate::completions(&arguments, CommandLine::command()),
            Command::Man(arguments) => generate::man(&arguments, CommandLine::command()),
            Command::Worker => gpulower::worker::serve().map_err(|error| Problem::input(error.to_string()).into()),
        }
    }
}

/// Reads the command line; where nothing is to be done the exit status.
fn parse(arguments: Vec<OsString>) -> Result<CommandLine, u8> {
    let usage = |text: &str| {
        message::line(&format!("error: {text}"));
        USAGE
    };
    let (arguments, files) = response::expand(arguments).map_err(|text| usage(&text))?;
    let arguments = nvcc_flags::rewrite(arguments);
    let choice = colour::in_words(&arguments);
    let matches = CommandLine::command().color(choice).try_get_matches_from(&arguments);
    let error = match matches.and_then(|matches| CommandLine::from_arg_matches(&matches)) {
        Ok(mut arguments) => {
            if let Some(Command::Compile(compile)) = &mut arguments.command {
                compile.argument_files = files;
            }
            return Ok(arguments);
        }
        Err(error) => error,
    };
    // Help and version are "errors" for the standard output, with status 0.
    if error.use_stderr() {
        let text = with_whole_word(error.render().to_string(), &error, &arguments);
        // An argument that may be a file is none of ours: nobody means `-- -v`.
        let lines = text.lines().filter(|line| !line.contains("as a value, use '-- "));
        let mut text = lines.collect::<Vec<_>>().join("\n");
        while text.contains("\n\n\n") {
            text = text.replace("\n\n\n", "\n\n");
        }
        message::line(text.trim_end());
        return Err(u8::try_from(error.exit_code()).unwrap_or(USAGE));
    }
    colour::choose(choice);
    let text = match colour::is_wanted(io::stdout().is_terminal()) {
        true => error.render().ansi().to_string(),
        false => error.render().to_string(),
    };
    Err(ended(to_stdout(text.as_bytes())))
}

/// Of `-std=c++17`, clap says that it does not know `-s`: nobody wrote that.
fn with_whole_word(text: String, error: &clap::Error, arguments: &[OsString]) -> String {
    let Some(ContextValue::String(letter)) = error.get(ContextKind::InvalidArg) else {
        return text;
    };
    let Some(letter) = letter.strip_prefix('-').filter(|letter| letter.chars().count() == 1) else {
        return text;
    };
    let mut words = arguments.iter().filter_map(|word| word.to_str());
    let word = words.find(|word| word.strip_prefix('-').is_some_and(|rest| rest.starts_with(letter)));
    match word {
        Some(word) => text.replace(&format!("'-{letter}'"), &format!("'{word}'")),
        None => text,
    }
}

/// Says what failed; returns the exit status.
fn ended(result: Result<(), Failed>) -> u8 {
    match result {
        Ok(()) | Err(Failed::NobodyReads) => 0,
        Err(Failed::Status(status)) => status,
        Err(Failed::Problems(problems) | Failed::Partly(problems)) => {
            for problem in &problems {
                message::error(problem);
            }
            message::advise(&problems);
            1
        }
        Err(Failed::Usage(text)) => {
            message::line(&format!("error: {text}\n\nFor more information, try '--help'."));
            USAGE
        }
    }
}

/// Sends the library's traces to the standard error output, as far as the filter asks for them, and to the trace.
fn start_log(filter: Option<OsString>, trace: Option<&Trace>) {
    use tracing_subscriber::{EnvFilter, Layer, filter::Targets, layer::SubscriberExt, util::SubscriberInitExt};

    let log = filter.and_then(|filter| match EnvFilter::try_new(filter.to_string_lossy()) {
        Ok(filter) => Some(
            tracing_subscriber::fmt::layer()
                .with_ansi(false)
                .with_writer(|| message::Log)
                .with_filter(filter),
        ),
        Err(error) => {
            message::line(&format!("warning: GPULOWER_LOG is ignored: {error}"));
            None
        }
    });
    if log.is_none() && trace.is_none() {
        return;
    }
    let ours = || Targets::new().with_target("gpulower", tracing::Level::DEBUG);
    let trace = trace.map(|trace| trace.layer().with_filter(ours()));
    // Whoever runs two commands in one process has the log of the first.
    let _ = tracing_subscriber::registry().with(log).with(trace).try_init();
}

/// Writes text for people to the standard output.
fn text_to_stdout(text: &str) -> Result<(), Failed> {
    to_stdout(message::shown(text).as_bytes())
}

/// Refuses a standard output that is closed.
fn stdout_is_open() -> Result<(), Failed> {
    match gpulower::output_was_closed() {
        true => Err(Problem::output("cannot write to the standard output: it is closed".to_owned()).into()),
        false => Ok(()),
    }
}

/// Writes a result to the standard output.
fn to_stdout(bytes: &[u8]) -> Result<(), Failed> {
    stdout_is_open()?;
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
    use super::*;

    #[test]
    fn the_arguments_fit_together() {
        CommandLine::command().debug_assert();
    }
}
