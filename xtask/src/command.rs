//! Running other programs so that a failure names the command line that failed.

use std::fmt;
use std::process::{Command, Output, Stdio};

/// Why a development command stopped: one message for a person.
#[derive(Debug)]
pub struct Failure(String);

impl Failure {
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// Turns an error of the standard library into a [`Failure`] that says what was being done.
pub trait Context<T> {
    fn context(self, doing: impl FnOnce() -> String) -> Result<T, Failure>;
}

impl<T, E: fmt::Display> Context<T> for Result<T, E> {
    fn context(self, doing: impl FnOnce() -> String) -> Result<T, Failure> {
        self.map_err(|error| Failure(format!("cannot {}: {error}", doing())))
    }
}

/// Runs the command with the terminal attached; anything but success is a failure.
pub fn run(command: &mut Command) -> Result<(), Failure> {
    let shown = shown(command);
    let status = command.status().context(|| format!("run `{shown}`"))?;
    if status.success() {
        Ok(())
    } else {
        Err(Failure(format!("`{shown}` failed ({status})")))
    }
}

/// Runs the command and returns what it printed, whatever its exit status.
pub fn capture(command: &mut Command) -> Result<Output, Failure> {
    let shown = shown(command);
    command
        .stdin(Stdio::null())
        .output()
        .context(|| format!("run `{shown}`"))
}

/// What a program prints, which has to succeed.
pub fn printed(command: &mut Command) -> Result<String, Failure> {
    let output = capture(command)?;
    if !output.status.success() {
        return Err(Failure::new(format!(
            "`{}` failed ({}): {}",
            shown(command),
            output.status,
            String::from_utf8_lossy(&output.stderr).trim()
        )));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// True when the program starts and succeeds; what it prints is dropped.
pub fn succeeds(command: &mut Command) -> bool {
    capture(command).is_ok_and(|output| output.status.success())
}

/// The command as a person would type it.
pub fn shown(command: &Command) -> String {
    std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|word| quoted(&word.to_string_lossy()))
        .collect::<Vec<_>>()
        .join(" ")
}

/// A word as a shell reads it.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=+:,%@".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_command_is_named_with_its_arguments() {
        let failure = run(Command::new("sh").args(["-c", "exit 3"])).unwrap_err();
        assert_eq!(failure.to_string(), "`sh -c 'exit 3'` failed (exit status: 3)");
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let failure = run(&mut Command::new("/nowhere/tool")).unwrap_err();
        assert!(
            failure.to_string().starts_with("cannot run `/nowhere/tool`: "),
            "{failure}"
        );
    }
}
