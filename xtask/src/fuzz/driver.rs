//! The process that carries inputs out: started, fed, watched, and started again when it dies or hangs.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde::Deserialize;

use super::surface::Input;
use crate::command::{Context, Failure};
use crate::env::Workspace;

/// Processor time after which an input counts as one that hangs. The machine may have other things to do: the clock on
/// the wall does not count.
pub const MOST_SECONDS: u64 = 30;

/// Time after which an input counts as one that hangs although nothing works on it. A worker process is ended by its own
/// limits long before.
const MOST_WAIT: Duration = Duration::from_secs(600);

/// Address space of the process, in KiB: what asks for more has to be told so.
const MEMORY_KIB: u64 = 6 << 20;

/// Inputs after which the process is replaced: what fatal errors leave behind adds up.
const MOST_INPUTS: u32 = 1000;

/// What became of an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Accepted,
    /// Refused with an error, in a stage.
    Refused(String),
    /// An error that says that it is a bug of ours.
    Internal(String),
    /// It printed something, which the library must not.
    Printed(String),
    /// It crashed LLVM, MLIR or a library of NVIDIA's in the driver's process, which went on and was as before.
    Crashed(String),
    /// It ended its worker process, and nothing else.
    Lost(String),
    /// Its time limit ended it, and its worker process.
    Stopped,
    /// The process ended; what it said last.
    Died(String),
    /// It went on for too long.
    Hung,
}

/// As in `crates/gpulower-checks/src/fuzz/job.rs`.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Ended {
    Accepted,
    Refused,
    Crashed,
    Stopped,
    Lost,
}

#[derive(Debug, Deserialize)]
struct Answer {
    outcome: Ended,
    stage: String,
    message: String,
}

/// The process, if there is one.
pub struct Driver<'w> {
    workspace: &'w Workspace,
    program: PathBuf,
    /// Whether its address space is.
    is_limited: bool,
    /// Where the process prints to.
    said: PathBuf,
    running: Option<Running>,
}

struct Running {
    child: Child,
    input: ChildStdin,
    answers: Receiver<String>,
    said: File,
    inputs: u32,
}

impl<'w> Driver<'w> {
    pub const fn new(workspace: &'w Workspace, program: PathBuf, is_limited: bool, said: PathBuf) -> Self {
        Self {
            workspace,
            program,
            is_limited,
            said,
            running: None,
        }
    }

    /// Carries one input out.
    pub fn run(&mut self, input: &Input) -> Result<Outcome, Failure> {
        let mut running = match self.running.take() {
            Some(running) if running.inputs < MOST_INPUTS => running,
            Some(running) => {
                running.end()?;
                self.start()?
            }
            None => self.start()?,
        };
        running.inputs += 1;
        let begin = Instant::now();
        let spent = running.processor_seconds();
        // A process that is gone cannot be written to: that is found out below.
        let _ = input.write_to(&mut running.input);
        loop {
            match running.answers.recv_timeout(Duration::from_millis(250)) {
                Ok(line) => {
                    let answer: Answer =
                        serde_json::from_str(&line).context(|| format!("read the driver's answer {line:?}"))?;
                    let said = running.said()?;
                    self.running = Some(running);
                    return Ok(match answer.outcome {
                        _ if !said.trim().is_empty() => Outcome::Printed(said),
                        _ if answer.message.contains("bug in gpulower") => Outcome::Internal(answer.message),
                        Ended::Accepted => Outcome::Accepted,
                        Ended::Refused => Outcome::Refused(answer.stage),
                        Ended::Crashed => Outcome::Crashed(answer.message),
                        Ended::Stopped => Outcome::Stopped,
                        Ended::Lost => Outcome::Lost(answer.message),
                    });
                }
                Err(RecvTimeoutError::Timeout) => {
                    if running.processor_seconds() > spent + MOST_SECONDS || begin.elapsed() > MOST_WAIT {
                        running.kill()?;
                        return Ok(Outcome::Hung);
                    }
                }
                Err(RecvTimeoutError::Disconnected) => {
                    let status = running.child.wait().context(|| "wait for the driver".to_owned())?;
                    let said = running.said()?;
                    let last: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).collect();
                    let last = last.get(last.len().saturating_sub(3)..).unwrap_or_default();
                    return Ok(Outcome::Died(format!("{status}: {}", last.join(" / "))));
                }
            }
        }
    }

    fn start(&self) -> Result<Running, Failure> {
        let said = File::create(&self.said).context(|| format!("write {}", self.said.display()))?;
        let mut command = self.command();
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(said.try_clone().context(|| "share a file".to_owned())?);
        let mut child = command.spawn().context(|| format!("run {}", self.program.display()))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Failure::new("the driver has no pipes"));
        };
        let (sender, answers) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Ok(Running {
            child,
            input,
            answers,
            said: File::open(&self.said).context(|| format!("read {}", self.said.display()))?,
            inputs: 0,
        })
    }

    /// The shell sets the limits that Rust's standard library cannot, and then is the driver.
    fn command(&self) -> Command {
        let mut command = self.workspace.command("/bin/sh");
        let most = match self.is_limited {
            true => MEMORY_KIB.to_string(),
            false => "unlimited".to_owned(),
        };
        command.args(["-c", &format!("ulimit -v {most}; ulimit -c 0; exec \"$0\" \"$@\"")]);
        command.arg(&self.program).arg("fuzz");
        command
    }

    /// Lets the process end by itself.
    pub fn end(mut self) -> Result<(), Failure> {
        self.running.take().map_or(Ok(()), Running::end)
    }
}

impl Running {
    /// What it printed since the last call.
    fn said(&mut self) -> Result<String, Failure> {
        let mut bytes = Vec::new();
        self.said
            .read_to_end(&mut bytes)
            .and_then(|_| self.said.seek(SeekFrom::End(0)))
            .context(|| "read what the driver printed".to_owned())?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Processor time of the process so far (proc_pid_stat(5): fields 14 and 15, in ticks of 1/100 s).
    fn processor_seconds(&self) -> u64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap_or_default();
        // The name in parentheses, field 2, may have spaces in it.
        let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace();
        fields
            .skip(11)
            .take(2)
            .filter_map(|ticks| ticks.parse::<u64>().ok())
            .sum::<u64>()
            / 100
    }

    fn kill(mut self) -> Result<(), Failure> {
        self.child
            .kill()
            .and_then(|()| self.child.wait())
            .map(drop)
            .context(|| "end the driver".to_owned())
    }

    fn end(self) -> Result<(), Failure> {
        let Self { mut child, input, .. } = self;
        drop(input);
        let status = child.wait().context(|| "wait for the driver".to_owned())?;
        match status.success() {
            true => Ok(()),
            false => Err(Failure::new(format!("the driver failed at its end ({status})"))),
        }
    }
}

impl Input {
    fn write_to(&self, output: &mut impl Write) -> std::io::Result<()> {
        writeln!(output, "{}", self.job)?;
        for (_, bytes) in &self.files {
            output.write_all(bytes)?;
        }
        output.flush()
    }
}
