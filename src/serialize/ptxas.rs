//! Runs NVIDIA's assembler `ptxas` as a child process, without a shell and without temporary files.
//!
//! The PTX, the cubin and the log are three anonymous files in memory, handed over as the child's standard
//! streams: input is `/dev/stdin`, output is `/dev/stdout`, the log goes to standard error (ptxas 13.0.88
//! writes nothing else to standard output). Descriptors stay close-on-exec in this process, so that children
//! which other threads start at the same moment inherit none of them, and no pipe can fill up.

use std::fs::File;
use std::io;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};

use crate::bridge::{memfd, vendor_error::VendorError};
use crate::interrupt::{Interrupt, InterruptError};

fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => "; install a CUDA toolkit or name its directory",
        io::ErrorKind::PermissionDenied => "; make it executable (wheels unpacked with an archive tool lose that bit)",
        _ => "",
    }
}

/// What a successful run gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assembled {
    /// The cubin, an ELF file.
    pub cubin: Vec<u8>,
    /// Everything the program printed: warnings, and resource usage with `-v`.
    pub log: String,
}

/// Assembles `ptx` with the `ptxas` at `program`. `options` needs `--gpu-name=sm_NN`; input and output are
/// added here.
///
/// # Errors
///
/// [`VendorError`].
#[cfg(test)]
pub fn assemble(program: &Path, ptx: &str, options: &[String], limit: Duration) -> Result<Assembled, VendorError> {
    assemble_until(program, ptx, options, &Interrupt::after(limit))
}

/// The same, until there is a reason to stop.
pub(crate) fn assemble_until(
    program: &Path,
    ptx: &str,
    options: &[String],
    interrupt: &Interrupt,
) -> Result<Assembled, VendorError> {
    let mut command = Command::new(program);
    command
        .args(options)
        .args(["--output-file", "/dev/stdout", "/dev/stdin"]);
    let output = run(command, program, ptx.as_bytes(), interrupt)?;
    let log = String::from_utf8_lossy(&output.log).into_owned();
    if !output.status.success() {
        return Err(VendorError::Ended {
            program: program.to_owned(),
            status: output.status,
            log,
        });
    }
    if !output.written.starts_with(b"\x7fELF") {
        return Err(VendorError::Unusable(format!(
            "{} succeeded but wrote {} bytes that are no ELF file; is it NVIDIA's ptxas? It printed: {}",
            program.display(),
            output.written.len(),
            if log.trim().is_empty() { "nothing" } else { log.trim() }
        )));
    }
    Ok(Assembled {
        cubin: output.written,
        log,
    })
}

/// The version of the `ptxas` at `program`, as its `--version` prints it after the `V` ("13.0.88").
///
/// # Errors
///
/// [`VendorError`].
pub fn version(program: &Path, limit: Duration) -> Result<String, VendorError> {
    let mut command = Command::new(program);
    command.arg("--version");
    let output = run(command, program, b"", &Interrupt::after(limit))?;
    let text = String::from_utf8_lossy(&output.written).into_owned();
    // "Cuda compilation tools, release 13.0, V13.0.88"
    text.lines()
        .find(|line| line.contains("release"))
        .and_then(|line| line.rsplit_once(", V"))
        .map(|(_, version)| version.trim().to_owned())
        .filter(|version| version.starts_with(|first: char| first.is_ascii_digit()))
        .ok_or_else(|| {
            let (path, text) = (program.display(), text.trim());
            VendorError::Unusable(format!(
                "{path} --version printed no version; is it NVIDIA's ptxas? It printed: {text}"
            ))
        })
}

struct Output {
    status: ExitStatus,
    written: Vec<u8>,
    log: Vec<u8>,
}

/// Runs `command` with `input` as standard input, until there is a reason to stop.
fn run(mut command: Command, program: &Path, input: &[u8], interrupt: &Interrupt) -> Result<Output, VendorError> {
    let io = |action: &'static str| move |error: io::Error| VendorError::Unusable(format!("{action}: {error}"));
    let standard_input = memfd::with_bytes("ptx", input).map_err(io("putting the PTX into memory"))?;
    let mut written = memfd::create("cubin").map_err(io("creating a file in memory"))?;
    let mut log = memfd::create("log").map_err(io("creating a file in memory"))?;
    let duplicate = |file: &File| {
        file.try_clone()
            .map(Stdio::from)
            .map_err(io("duplicating a descriptor"))
    };
    command
        .stdin(standard_input)
        .stdout(duplicate(&written)?)
        .stderr(duplicate(&log)?);
    tracing::debug!(?command, "running ptxas");
    let child = command.spawn().map_err(|error| {
        let (path, advice) = (program.display(), advice(&error));
        VendorError::Unusable(format!("{path} could not be started: {error}{advice}"))
    })?;
    let status = Guard(child).wait(interrupt);
    let status = status
        .map_err(io("waiting for ptxas to end"))?
        .map_err(|interrupt| VendorError::Interrupted {
            program: program.to_owned(),
            interrupt,
        })?;
    Ok(Output {
        status,
        written: memfd::read_all(&mut written).map_err(io("reading the cubin from memory"))?,
        log: memfd::read_all(&mut log).map_err(io("reading the log from memory"))?,
    })
}

/// A child that does not outlive this value: killed and reaped on every path that did not see it end.
struct Guard(Child);

impl Drop for Guard {
    fn drop(&mut self) {
        if matches!(self.0.try_wait(), Ok(Some(_))) {
            return;
        }
        // Errors mean that it has ended meanwhile; there is nothing else to do about them here.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Guard {
    /// Waits for the child to end. Where there is a reason to stop before, that is the inner error.
    fn wait(mut self, interrupt: &Interrupt) -> io::Result<Result<ExitStatus, InterruptError>> {
        let process = rustix::process::Pid::from_child(&self.0);
        let handle = rustix::process::pidfd_open(process, rustix::process::PidfdFlags::empty()).ok();
        loop {
            if let Some(status) = self.0.try_wait()? {
                return Ok(Ok(status));
            }
            let waited = match &handle {
                Some(handle) => interrupt.wait(&[PollFd::new(handle, PollFlags::IN)])?.map(drop),
                // Linux before 5.3 has no process descriptors.
                None => interrupt.sleep(Duration::from_millis(2)),
            };
            if let Err(reason) = waited {
                return Ok(Err(reason));
            }
        }
    }
}

#[cfg(test)]
#[path = "../../tests/serialize/ptxas.rs"]
mod tests;
