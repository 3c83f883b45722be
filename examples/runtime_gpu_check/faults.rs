//! Kernels that fail, and going on in the same process.

use gpulower::runtime::{Arguments, Context, DriverError, Fault, LoadOptions, Module, ModuleError};

use crate::ensure;
use crate::fixture::{Check, Gpu, ONE, Outcome, launch};

pub const CHECKS: &[Check] = &[
    ("a fault in a separate context", a_fault_in_a_separate_context),
    ("a trap in a separate context", a_trap_in_a_separate_context),
    ("a fault in the primary context", a_fault_in_the_primary_context),
    ("a reset without a fault", a_reset_without_a_fault),
    ("ten faults", ten_faults),
    ("wrong bytes in a cubin", wrong_bytes_in_a_cubin),
];

/// An address that is no memory.
const NOWHERE: u64 = 0x10;

/// Lets a kernel fail, sees that the context is lost, resets it, and runs a kernel in the new one.
fn lose_and_rebuild(
    gpu: &Gpu,
    context: &Context,
    kernel: &str,
) -> Result<(Fault, Context), Box<dyn std::error::Error>> {
    let stream = context.stream()?;
    let module = Module::load(context, "plain.cubin", &gpu.images.plain, &LoadOptions::default())?;
    let function = module.function(kernel)?;
    let (buffer, event) = (context.allocate(4096)?, context.event()?);
    let pinned = context.allocate_pinned(4096)?;
    let mut arguments = Arguments::new();
    if kernel == "store" {
        arguments.pointer(NOWHERE);
    }
    launch(&function, &ONE, &arguments, &stream)?;
    let transfer = buffer.all().upload_pinned(pinned, &stream);
    let fault = match stream.synchronize() {
        Err(DriverError::ContextLost { fault, .. }) => fault,
        other => return Err(format!("the fault was not reported: {other:?}").into()),
    };
    // Everything says so from here on.
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
    // Some things are dropped before the reset, some after it, with the new context in use.
    drop(buffer);
    let fresh = context.reset()?;
    match stream.synchronize() {
        Err(DriverError::ContextReset { .. }) => {}
        other => return Err(format!("a stream of a context that is gone: {other:?}").into()),
    }
    match function
        .launch(&ONE, &arguments)
        .map_err(|error| error.to_string())
        .and_then(|launch| {
            // SAFETY: the context of the kernel is gone: nothing runs.
            unsafe { launch.enqueue(&stream) }.map_err(|error| error.to_string())
        }) {
        Err(text) if text.contains("the context was reset") => {}
        other => return Err(format!("a kernel of a context that is gone: {other:?}").into()),
    }
    let words = run(gpu, &fresh)?;
    drop((transfer, event, function, module, stream));
    ensure!(run(gpu, &fresh)? == words, "dropping what is gone changed something");
    Ok((fault, fresh))
}

/// Loads and launches in a context, with results.
fn run(gpu: &Gpu, context: &Context) -> Result<u32, Box<dyn std::error::Error>> {
    let stream = context.stream()?;
    let module = Module::load(context, "plain.cubin", &gpu.images.plain, &LoadOptions::default())?;
    launch(&module.function("count")?, &ONE, &Arguments::new(), &stream)?;
    let mut word = [0u32];
    module.global("counter")?.download(&mut word, &stream)?;
    ensure!(word == [6], "{word:?}");
    Ok(word[0])
}

fn a_fault_in_a_separate_context(gpu: &Gpu) -> Outcome {
    let context = gpu.context.device().separate_context()?;
    let (fault, _fresh) = lose_and_rebuild(gpu, &context, "store")?;
    ensure!(fault == Fault::IllegalAddress, "{fault:?}");
    let primary = match gpu.context.synchronize() {
        Ok(()) => "the primary context goes on".to_owned(),
        Err(error) => format!("the primary context is lost as well: {error}"),
    };
    Ok(format!("{}; {primary}", fault.description()))
}

fn a_trap_in_a_separate_context(gpu: &Gpu) -> Outcome {
    let context = gpu.context.device().separate_context()?;
    let (fault, _fresh) = lose_and_rebuild(gpu, &context, "stop")?;
    Ok(format!("{fault:?}: {}", fault.description()))
}

fn a_fault_in_the_primary_context(gpu: &Gpu) -> Outcome {
    let before = gpu.context.memory()?.0;
    let (fault, fresh) = lose_and_rebuild(gpu, &gpu.context, "store")?;
    ensure!(fault == Fault::IllegalAddress, "{fault:?}");
    ensure!(!fresh.is(&gpu.context), "the same context");
    ensure!(fresh.device().context()?.is(&fresh), "two primary contexts");
    let after = fresh.memory()?.0;
    Ok(format!(
        "{}; {before} bytes were free before, {after} are after",
        fault.description()
    ))
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

fn ten_faults(gpu: &Gpu) -> Outcome {
    let mut context = gpu.context.device().separate_context()?;
    for _ in 0..10 {
        (_, context) = lose_and_rebuild(gpu, &context, "store")?;
    }
    Ok("each is followed by a right result".to_owned())
}

/// Last of all: should a driver not survive what our reader lets through, everything else is said already.
fn wrong_bytes_in_a_cubin(gpu: &Gpu) -> Outcome {
    let whole = &gpu.images.plain;
    let (mut refused, mut loaded) = (0, 0);
    // The header of the file, and what lies at its end.
    for index in (0..64).chain(whole.len().saturating_sub(2048)..whole.len()).step_by(13) {
        let mut wrong = whole.clone();
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
