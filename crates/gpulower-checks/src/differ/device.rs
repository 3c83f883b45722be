//! What runs the kernels: a GPU of this machine, or a program that executes AMD code (`tests/amd`) or LLVM IR (`scripts/run_ir.py`).

use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use gpulower::runtime::{Arguments, Context, Driver, LaunchShape, LoadOptions, Module, Stream};

use super::launch::{Argument, Launch};
use crate::gpu_checks::launch as enqueue;

/// Contents of the storages after a launch, or what stopped it.
pub type Ran = Result<Vec<Vec<u8>>, String>;

/// Something that runs kernels.
pub trait Device {
    /// Runs kernels of one image, each on memory of its own.
    ///
    /// # Errors
    ///
    /// What loses the device: nothing else can be run.
    fn run(&mut self, image: &[u8], launches: &[Launch]) -> Result<Vec<Ran>, Box<dyn Error>>;
}

/// Bytes between two storages on a GPU, which have to be as they were.
const GAP: usize = 256;
const FILLING: u8 = 0xA5;

/// A GPU, through the driver.
pub struct Cuda {
    context: Context,
    stream: Stream,
}

impl Cuda {
    pub fn new() -> Result<Self, Box<dyn Error>> {
        let context = Driver::cuda()?.device(0)?.context()?;
        Ok(Self {
            stream: context.stream()?,
            context,
        })
    }

    pub fn describe(&self) -> String {
        let device = self.context.device();
        let (major, minor) = device.driver().version();
        format!(
            "{}, driver for CUDA {major}.{minor}",
            device.name().unwrap_or_else(|error| error.to_string())
        )
    }
}

impl Device for Cuda {
    fn run(&mut self, image: &[u8], launches: &[Launch]) -> Result<Vec<Ran>, Box<dyn Error>> {
        let module = Module::load(&self.context, "differ", image, &LoadOptions::default())?;
        // All storages of all launches in one buffer, so that there is one copy in each direction.
        let mut all = vec![FILLING; GAP];
        let mut places = Vec::new();
        for launch in launches {
            let mut starts = Vec::new();
            for storage in &launch.storages {
                starts.push(all.len());
                all.extend(&storage.bytes);
                all.resize(all.len().next_multiple_of(GAP) + GAP, FILLING);
            }
            places.push(starts);
        }
        let buffer = self.context.allocate(all.len())?;
        buffer.upload(&all, &self.stream)?;
        for (launch, starts) in launches.iter().zip(&places) {
            let mut arguments = Arguments::new();
            for argument in &launch.arguments {
                match argument {
                    Argument::Storage(number) => arguments.pointer(buffer.address() + starts[*number] as u64),
                    Argument::Bytes(bytes) => arguments.raw(bytes),
                };
            }
            let shape = LaunchShape::new([launch.blocks, 1, 1], [launch.threads, 1, 1]);
            enqueue(&module.function(&launch.kernel)?, &shape, &arguments, &self.stream)?;
        }
        let mut found = vec![0; all.len()];
        buffer.download(&mut found, &self.stream)?;
        Ok(launches
            .iter()
            .zip(&places)
            .map(|(launch, starts)| {
                let mut storages = Vec::new();
                for (storage, &start) in launch.storages.iter().zip(starts) {
                    let end = start + storage.bytes.len();
                    let next = end.next_multiple_of(GAP) + GAP;
                    if found[end..next].iter().any(|&byte| byte != FILLING)
                        || found[start - GAP..start].iter().any(|&byte| byte != FILLING)
                    {
                        return Err("a store outside of every buffer".to_owned());
                    }
                    storages.push(found[start..end].to_vec());
                }
                Ok(storages)
            })
            .collect())
    }
}

/// A program that takes a launch in a line and answers in one.
pub struct Executor {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    target: String,
}

/// A variable of the environment says how an executor is started, a word in a line.
fn command(variable: &str) -> Result<Command, Box<dyn Error>> {
    let words = std::env::var(variable)
        .map_err(|_| format!("{variable} says how the executor is started: docs/lab/differential.md"))?;
    let mut words = words.split('\n');
    let mut command = Command::new(words.next().unwrap_or_default());
    command.args(words);
    Ok(command)
}

/// The LLVM IR that upstream's own pipeline makes of a module.
pub fn lower_by_upstream(source: &str) -> Result<Vec<u8>, Box<dyn Error>> {
    let file = tempfile::NamedTempFile::new()?;
    std::fs::write(file.path(), source)?;
    let made = command("DIFFER_HOST")?.arg(file.path()).output()?;
    match made.status.success() {
        true => Ok(made.stdout),
        false => Err(String::from_utf8_lossy(&made.stderr).into()),
    }
}

impl Executor {
    /// `variable`: see [`command`].
    pub fn new(target: &str, variable: &str) -> Result<Self, Box<dyn Error>> {
        let mut child = command(variable)?
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let input = child.stdin.take().ok_or("the executor has no input")?;
        let output = BufReader::new(child.stdout.take().ok_or("the executor has no output")?);
        Ok(Self {
            child,
            input,
            output,
            target: target.to_owned(),
        })
    }
}

impl Drop for Executor {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len() / 2)
        .filter_map(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).ok())
        .collect()
}

impl Device for Executor {
    fn run(&mut self, image: &[u8], launches: &[Launch]) -> Result<Vec<Ran>, Box<dyn Error>> {
        let file = tempfile::NamedTempFile::new()?;
        std::fs::write(file.path(), image)?;
        let mut all = Vec::new();
        for launch in launches {
            let arguments: Vec<serde_json::Value> = launch
                .arguments
                .iter()
                .map(|argument| match argument {
                    Argument::Storage(number) => serde_json::json!(number),
                    Argument::Bytes(bytes) => serde_json::json!(hex(bytes)),
                })
                .collect();
            let storages: Vec<serde_json::Value> = launch
                .storages
                .iter()
                .map(|storage| serde_json::json!([hex(&storage.bytes), storage.writable]))
                .collect();
            let request = serde_json::json!({
                "image": file.path(), "target": self.target, "kernel": launch.kernel, "blocks": launch.blocks,
                "threads": launch.threads, "storages": storages, "arguments": arguments,
            });
            writeln!(self.input, "{request}")?;
            self.input.flush()?;
            let mut line = String::new();
            if self.output.read_line(&mut line)? == 0 {
                return Err("the executor has ended".into());
            }
            let answer: serde_json::Value = serde_json::from_str(&line)?;
            all.push(match (answer["storages"].as_array(), answer["trap"].as_str()) {
                (Some(storages), _) => Ok(storages
                    .iter()
                    .map(|text| unhex(text.as_str().unwrap_or_default()))
                    .collect()),
                (None, trap) => Err(trap.unwrap_or("no answer").to_owned()),
            });
        }
        Ok(all)
    }
}
