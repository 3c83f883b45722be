//! `gpulower completions` and `gpulower man`: made of the same options as the command line.

use std::path::{Path, PathBuf};

use clap::{Args, Command};
use clap_complete::Shell;

use super::{Failed, message::Problem, to_stdout, write};

/// Print the completions of a shell, such as for `source <(gpulower completions bash)`.
#[derive(Debug, Args)]
pub struct Completions {
    /// The shell
    shell: Shell,
}

/// Print the manual page, or write those of all commands to a directory.
#[derive(Debug, Args)]
pub struct Man {
    /// Where to write gpulower.1, gpulower-compile.1 and so on
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
}

pub fn completions(arguments: &Completions, mut command: Command) -> Result<(), Failed> {
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, &mut command, "gpulower", &mut text);
    to_stdout(&text)
}

pub fn man(arguments: &Man, mut command: Command) -> Result<(), Failed> {
    command.build();
    let directory = arguments.output.as_deref().filter(|output| *output != Path::new("-"));
    let Some(directory) = directory else {
        return to_stdout(&page(&command)?);
    };
    let commands = command.get_subcommands().filter(|command| !command.is_hide_set());
    let mut pages = vec![("gpulower.1".to_owned(), page(&command)?)];
    for command in commands.filter(|command| command.get_name() != "help") {
        let name = format!("gpulower-{}", command.get_name());
        let title = command.clone().name(Box::leak(name.clone().into_boxed_str()) as &str);
        pages.push((format!("{name}.1"), page(&title)?));
    }
    let files: Vec<write::Output<'_>> = pages
        .iter()
        .map(|(name, bytes)| write::Output::new(directory.join(name), bytes))
        .collect();
    write::write_all(&files, Some(directory), b"")
}

fn page(command: &Command) -> Result<Vec<u8>, Problem> {
    let mut text = Vec::new();
    clap_mangen::Man::new(command.clone())
        .render(&mut text)
        .map_err(|error| Problem::output(error.to_string()))?;
    Ok(text)
}
