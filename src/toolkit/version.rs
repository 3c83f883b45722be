//! Asking a tool for its version.

use std::fmt;
use std::io::{self, Read};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use super::error::ToolkitError;

/// How long a tool may take to say its version. ptxas 13.0.88 takes a few milliseconds; a network file system on which
/// its 36 MB are read for the first time takes longer.
const TIME_LIMIT: Duration = Duration::from_secs(20);

/// How long the output is waited for after the tool has ended. It is complete by then unless a process that the tool
/// left behind holds it open.
const OUTPUT_LIMIT: Duration = Duration::from_secs(1);

/// What is kept of each output stream, in bytes.
const OUTPUT_SIZE: u64 = 64 * 1024;

/// The version of a tool of CUDA.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ToolVersion {
    /// 13 in CUDA 13.0.
    pub major: u32,
    /// 0 in CUDA 13.0.
    pub minor: u32,
    /// The build, such as 13.0.88: what tells two tools of one release apart.
    pub build: String,
}

impl ToolVersion {
    /// The CUDA release, for comparisons.
    #[must_use]
    pub fn release(&self) -> (u32, u32) {
        (self.major, self.minor)
    }

    /// Finds the version in what `ptxas --version` and its siblings print. They all have a line like
    /// `Cuda compilation tools, release 13.0, V13.0.88` (observed with ptxas 13.0.88 and cuobjdump 13.5.37).
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        text.lines().find_map(|line| {
            let (_, rest) = line.split_once("release ")?;
            let (release, build) = rest.split_once(", V")?;
            let (major, minor) = release.split_once('.')?;
            let end = build.find(|c: char| c != '.' && !c.is_ascii_digit());
            let build = end.and_then(|end| build.get(..end)).unwrap_or(build);
            Some(Self {
                major: major.parse().ok()?,
                minor: minor.parse().ok()?,
                build: (!build.is_empty()).then(|| build.to_owned())?,
            })
        })
    }
}

impl fmt::Display for ToolVersion {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.build)
    }
}

/// Runs `TOOL --version`, without a shell, and reads the version. The tool is stopped when it takes longer than 20 s.
///
/// # Errors
/// [`ToolkitError::Tool`].
pub fn tool_version(tool: &Path) -> Result<ToolVersion, ToolkitError> {
    let (status, output) = ask(tool)?;
    let version = status.success().then(|| ToolVersion::parse(&output));
    version
        .flatten()
        .ok_or_else(|| unknown(tool, "a version of CUDA", status, &output))
}

/// What a tool prints when it is run with `--version`, without a shell; at most 64 KiB of each stream. It is stopped when
/// it takes longer than 20 s.
///
/// # Errors
/// [`ToolkitError::Tool`].
pub fn version_text(tool: &Path) -> Result<String, ToolkitError> {
    let (status, output) = ask(tool)?;
    match status.success() {
        true => Ok(output),
        false => Err(unknown(tool, "its version", status, &output)),
    }
}

/// The program ended with an error, or said something else.
fn unknown(tool: &Path, what: &str, status: ExitStatus, output: &str) -> ToolkitError {
    let said = match output.trim() {
        "" => "nothing",
        said => said,
    };
    ToolkitError::Tool(format!(
        "{} did not say {what} when asked with --version ({status}); it said: {said}",
        tool.display()
    ))
}

fn ask(tool: &Path) -> Result<(ExitStatus, String), ToolkitError> {
    let mut command = Command::new(tool);
    command.arg("--version");
    let path = tool.display();
    let ended = run(command, TIME_LIMIT)
        .map_err(|error| ToolkitError::Tool(format!("cannot run {path} to ask for its version: {error}")))?;
    ended.ok_or_else(|| {
        let limit = TIME_LIMIT.as_secs_f32();
        ToolkitError::Tool(format!(
            "{path} did not say its version within {limit} s and was stopped"
        ))
    })
}

/// Runs a command with no input; its exit status and what it printed, or None when it was stopped at the limit.
fn run(mut command: Command, limit: Duration) -> io::Result<Option<(ExitStatus, String)>> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let streams = [child.stdout.take().map(collect), child.stderr.take().map(collect)];
    let Some(status) = wait(&mut child, limit)? else {
        return Ok(None);
    };
    let mut output = String::new();
    for stream in streams.into_iter().flatten() {
        let bytes = stream.recv_timeout(OUTPUT_LIMIT).unwrap_or_default();
        output.push_str(&String::from_utf8_lossy(&bytes));
    }
    Ok(Some((status, output)))
}

/// Waits until the child ends; stops it at the limit.
fn wait(child: &mut Child, limit: Duration) -> io::Result<Option<ExitStatus>> {
    let start = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(Some(status)),
            Ok(None) if start.elapsed() < limit => thread::sleep(Duration::from_millis(1)),
            Ok(None) => {
                child.kill()?;
                child.wait()?;
                return Ok(None);
            }
            Err(error) => {
                // The error that counts is the first one.
                let _ = child.kill();
                return Err(error);
            }
        }
    }
}

/// Reads a stream beside the program, so that a full pipe never holds it up.
fn collect(stream: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // What arrived before an error still says something.
        let _ = stream.take(OUTPUT_SIZE).read_to_end(&mut bytes);
        let _ = sender.send(bytes);
    });
    receiver
}

#[cfg(test)]
#[path = "../../tests/toolkit/version.rs"]
mod tests;
