//! Kernels that fail. What is lost is lost for the process, so that each has a process of its own; this one goes on.

use std::io::Read;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use gpulower::runtime::{Arguments, Context, DriverError, Fault, LoadOptions, Module, ModuleError};

use super::fixture::{Check, Gpu, ONE, Outcome, launch};

pub const CHECKS: &[Check] = &[
    ("a reset without a fault", a_reset_without_a_fault),
    ("faults in child processes", faults_in_child_processes),
    ("a reset of the primary context", a_reset_of_the_primary_context),
    ("wrong bytes in a cubin", wrong_bytes_in_a_cubin),
];

/// The argument of the program, before the name of one of [`CHILDREN`], that makes it such a child.
pub const CHILD: &str = "--child";

/// An address that is no memory.
const NOWHERE: u64 = 0x10;

/// What runs in a process of its own.
const CHILDREN: &[Check] = &[
    ("illegal-address-in-a-separate-context", |gpu| {
        let context = gpu.context.device().separate_context()?;
        lose(gpu, &context, "store", Some(NOWHERE), Fault::IllegalAddress)
    }),
    ("illegal-address-in-the-primary-context", |gpu| {
        lose(gpu, &gpu.context, "store", Some(NOWHERE), Fault::IllegalAddress)
    }),
    ("misaligned-address", |gpu| {
        let buffer = gpu.context.allocate(8)?;
        lose(
            gpu,
            &gpu.context,
            "store",
            Some(buffer.address() + 1),
            Fault::MisalignedAddress,
        )
    }),
    ("trap", |gpu| lose(gpu, &gpu.context, "stop", None, Fault::LaunchFailed)),
    ("assertion", |gpu| {
        lose(gpu, &gpu.context, "fail_assertion", None, Fault::Assert)
    }),
    ("reset", |gpu| {
        let fresh = gpu.context.reset()?;
        ensure!(!fresh.is(&gpu.context), "the same context");
        ensure!(fresh.device().context()?.is(&fresh), "two primary contexts");
        run(gpu, &fresh)?;
        Ok("a kernel runs in the new one".to_owned())
    }),
];

/// Runs one of [`CHILDREN`], or `wrong-bytes NUMBER`.
pub fn child(gpu: &Gpu, words: &[String]) -> Outcome {
    let name = match words {
        [name] => name,
        [name, from] if name == "wrong-bytes" => return load_wrong_bytes(gpu, from.parse()?),
        other => return Err(format!("there is no {other:?}").into()),
    };
    let found = CHILDREN.iter().find(|(known, _)| *known == name);
    let (_, check) = found.ok_or_else(|| format!("there is no {name}"))?;
    check(gpu)
}

/// How long a child may take: seconds are enough, and a driver that hangs does so for ever.
const LIMIT: Duration = Duration::from_secs(40);

/// Runs this program as a child, and returns how it ended (`None`: it hung and was ended) and what it printed.
fn run_child(gpu: &Gpu, words: &[&str]) -> Result<(Option<ExitStatus>, String), Box<dyn std::error::Error>> {
    let mut child = Command::new(std::env::current_exe()?)
        .arg("runtime")
        .arg(&gpu.directory)
        .arg(CHILD)
        .args(words)
        .stdout(Stdio::piped())
        .spawn()?;
    let start = Instant::now();
    let status = loop {
        match child.try_wait()? {
            Some(status) => break Some(status),
            None if start.elapsed() > LIMIT => {
                child.kill()?;
                child.wait()?;
                break None;
            }
            None => std::thread::sleep(Duration::from_millis(10)),
        }
    };
    let mut said = String::new();
    // It prints less than a pipe holds.
    if let Some(mut output) = child.stdout.take() {
        output.read_to_string(&mut said)?;
    }
    Ok((status, said))
}

/// Lets a child do its work while this process has a context and a module loaded, and sees that these are as before.
fn in_a_child(gpu: &Gpu, name: &str) -> Outcome {
    let module = gpu.plain()?;
    let (status, said) = run_child(gpu, &[name])?;
    ensure!(
        status.is_some_and(|status| status.success()),
        "{name} ended with {status:?}: {said}"
    );
    gpu.saxpy(&module.function("saxpy")?, 1001)?;
    // A failing assertion prints a line of its own.
    Ok(said.lines().last().unwrap_or_default().to_owned())
}

fn faults_in_child_processes(gpu: &Gpu) -> Outcome {
    let mut said = Vec::new();
    for (name, _) in CHILDREN.iter().filter(|(name, _)| *name != "reset") {
        said.push(in_a_child(gpu, name)?);
    }
    // One after the other leaves nothing behind.
    for _ in 0..5 {
        in_a_child(gpu, "trap")?;
    }
    Ok(format!("{}; this process goes on after each", said.join("; ")))
}

fn a_reset_of_the_primary_context(gpu: &Gpu) -> Outcome {
    in_a_child(gpu, "reset")
}

/// Lets a kernel fail. Every call says so from then on; the driver gives no context that works any more, whatever is ended
/// before, and this is said; nothing crashes.
fn lose(gpu: &Gpu, context: &Context, kernel: &str, address: Option<u64>, expected: Fault) -> Outcome {
    let stream = context.stream()?;
    let module = Module::load(context, "plain.cubin", &gpu.images.plain, &LoadOptions::default())?;
    let function = module.function(kernel)?;
    let (buffer, event) = (context.allocate(4096)?, context.event()?);
    let pinned = context.allocate_pinned(4096)?;
    let mut arguments = Arguments::new();
    if let Some(address) = address {
        arguments.pointer(address);
    }
    launch(&function, &ONE, &arguments, &stream)?;
    let transfer = buffer.all().upload_pinned(pinned, &stream);
    let (fault, code) = match stream.synchronize() {
        Err(DriverError::ContextLost { fault, status, .. }) => (fault, status.code),
        other => return Err(format!("the fault was not reported: {other:?}").into()),
    };
    ensure!(fault == expected, "{fault:?} instead of {expected:?}");
    for (what, result) in [
        ("allocating", context.allocate(64).map(drop)),
        ("waiting", context.synchronize()),
        ("copying", buffer.upload(&[0u8; 4096], &stream)),
    ] {
        match result {
            Err(error) if error.is_context_lost() => {}
            other => return Err(format!("{what} in a lost context: {other:?}").into()),
        }
    }
    match Module::load(context, "plain.cubin", &gpu.images.plain, &LoadOptions::default()) {
        Err(ModuleError::Driver(error)) if error.is_context_lost() => {}
        other => return Err(format!("loading in a lost context: {other:?}").into()),
    }
    // Some things are dropped before the reset, some after it.
    drop(buffer);
    match context.reset() {
        Err(DriverError::NotRecovered { status, .. }) if status.code == code => {}
        other => return Err(format!("a reset after {fault:?}: {other:?}").into()),
    }
    match stream.synchronize() {
        Err(DriverError::ContextReset { .. }) => {}
        other => return Err(format!("a stream of a context that is gone: {other:?}").into()),
    }
    let gone = function
        .launch(&ONE, &arguments)
        .map_err(|error| error.to_string())
        .and_then(|launch| {
            // SAFETY: the context of the kernel is gone: nothing runs.
            #[allow(unsafe_code, reason = "what a kernel does is the caller's word")]
            unsafe { launch.enqueue(&stream) }.map_err(|error| error.to_string())
        });
    match gone {
        Err(text) if text.contains("the context was reset") => {}
        other => return Err(format!("a kernel of a context that is gone: {other:?}").into()),
    }
    drop((transfer, event, function, module, stream));
    // Neither kind of context works, new or not.
    let device = gpu.context.device();
    for (what, made) in [
        ("a separate context", device.separate_context()),
        ("the primary context", device.context()),
    ] {
        match made.and_then(|context| context.allocate(64).map(drop)) {
            Err(DriverError::ContextLost { status, .. }) if status.code == code => {}
            other => return Err(format!("{what} after {fault:?}: {other:?}").into()),
        }
    }
    Ok(format!("{fault:?} ({code}) is reported, and a reset does not recover"))
}

/// Loads and launches in a context, with results.
fn run(gpu: &Gpu, context: &Context) -> Outcome {
    let stream = context.stream()?;
    let module = Module::load(context, "plain.cubin", &gpu.images.plain, &LoadOptions::default())?;
    launch(&module.function("count")?, &ONE, &Arguments::new(), &stream)?;
    let mut word = [0u32];
    module.global("counter")?.download(&mut word, &stream)?;
    ensure!(word == [6], "{word:?}");
    Ok(String::new())
}

fn a_reset_without_a_fault(gpu: &Gpu) -> Outcome {
    let context = gpu.context.device().separate_context()?;
    run(gpu, &context)?;
    let buffer = context.allocate(1 << 20)?;
    let fresh = context.reset()?;
    run(gpu, &fresh)?;
    match (buffer.upload(&vec![0u8; 1 << 20], &fresh.stream()?), context.reset()) {
        (Err(DriverError::OtherContext { .. }), Err(error @ DriverError::ContextReset { .. })) => Ok(error.to_string()),
        other => Err(format!("{other:?}").into()),
    }
}

/// In child processes, for a driver may not survive what our reader lets through: each begins behind the byte that ended the one
/// before.
fn wrong_bytes_in_a_cubin(gpu: &Gpu) -> Outcome {
    let count = wrong_bytes(&gpu.images.plain).len();
    let (mut from, mut fatal) = (0, Vec::new());
    while from < count {
        let (status, said) = run_child(gpu, &["wrong-bytes", &from.to_string()])?;
        if status.is_some_and(|status| status.success()) {
            ensure!(fatal.is_empty(), "the driver does not survive wrong bytes at {fatal:?}");
            run(gpu, &gpu.context)?;
            return Ok(said.lines().last().unwrap_or_default().to_owned());
        }
        let reached = said.lines().filter_map(|line| line.parse::<usize>().ok()).next_back();
        let reached = reached.ok_or_else(|| format!("{status:?}: {said}"))?;
        fatal.push(wrong_bytes(&gpu.images.plain)[reached]);
        ensure!(
            status.is_some() && fatal.len() < 5,
            "the driver does not survive wrong bytes at {fatal:?}"
        );
        from = reached + 1;
    }
    Err(format!("the driver does not survive wrong bytes at {fatal:?}").into())
}

/// The header of the file, and the tables at its end, of which our reader knows what is wrong.
fn wrong_bytes(whole: &[u8]) -> Vec<usize> {
    (0..64)
        .chain(whole.len().saturating_sub(2048)..whole.len())
        .step_by(13)
        .collect()
}

/// Loads a cubin with one wrong byte, for each byte from a number on; prints the number before.
fn load_wrong_bytes(gpu: &Gpu, from: usize) -> Outcome {
    let (mut refused, mut loaded) = (0, 0);
    for (number, index) in wrong_bytes(&gpu.images.plain).into_iter().enumerate().skip(from) {
        println!("{number}");
        let mut wrong = gpu.images.plain.clone();
        wrong[index] ^= 0xff;
        match Module::load(&gpu.context, "wrong.cubin", &wrong, &LoadOptions::default()) {
            Ok(_) => loaded += 1,
            Err(_) => refused += 1,
        }
    }
    run(gpu, &gpu.context)?;
    Ok(format!(
        "{refused} are refused, {loaded} load, and the next one is right"
    ))
}
