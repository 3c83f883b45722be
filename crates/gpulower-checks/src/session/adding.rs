//! Adding, replacing, unloading; variables.

use gpulower::runtime::{Arguments, DeviceBuffer, Function, LaunchShape, MemRef};
use gpulower::session::{Change, JitSession, SessionError, SessionModule};
use gpulower::target::Vendor;
use gpulower::{Options, options::DeviceLink};

use super::fixture::{Check, Gpu, ONE, Outcome, launch, one_line};
use super::kernels::{COUNTER, DOUBLE, WANTS_COUNTER, large, scale, word};

pub const CHECKS: &[Check] = &[
    ("kernels one by one", kernels_one_by_one),
    ("replaced under its name", replaced_under_its_name),
    ("unloaded with its last handle", unloaded_with_its_last_handle),
    ("variables live on", variables_live_on),
    ("a variable by its address", a_variable_by_its_address),
    ("another module's variable", another_modules_variable),
    ("modules that are joined", modules_that_are_joined),
    ("a session that is rebuilt", a_session_that_is_rebuilt),
];

fn kernels_one_by_one(gpu: &Gpu) -> Outcome {
    let session = gpu.session()?;
    let mut sizes = [1, 127, 128, 129, 1001, 100_003];
    // The executor of AMD code takes a second for so many.
    if session.target().vendor() == Vendor::Amd {
        sizes[5] = 2003;
    }
    for index in 0..24 {
        let factor = gpu.factor();
        let added = session.add(&format!("k{index}"), scale(factor))?;
        ensure!(added.compiled && added.change == Change::New, "{added:?}");
        let function = session.function(&format!("k{index}"), "scale")?;
        gpu.check_scale(&function, factor, sizes[index % sizes.len()])?;
    }
    ensure!(session.len() == 24, "{} modules", session.len());
    Ok(format!("24 for {}", session.target()))
}

fn replaced_under_its_name(gpu: &Gpu) -> Outcome {
    let session = gpu.session()?;
    let (one, two) = (gpu.float(), gpu.float());
    let first = session.add("k", scale(one))?;
    let old = session.function("k", "scale")?;
    let second = session.add("k", scale(two))?;
    ensure!(second.change == Change::Replaced, "{second:?}");
    ensure!(second.module.generation() > first.module.generation(), "generations");
    let new = session.function("k", "scale")?;
    // The old one stays what it is, also beside the new one, also when nothing else is left of it, and after the session.
    drop(first);
    for _ in 0..3 {
        gpu.check_scale(&old, one, 1001)?;
        gpu.check_scale(&new, two, 1001)?;
    }
    let again = session.add("k", scale(two))?;
    ensure!(again.change == Change::Unchanged, "{again:?}");
    let back = session.add("k", scale(one))?;
    let (change, compiled) = (back.change, back.compiled);
    ensure!(change == Change::Replaced, "{change:?}");
    drop((session, second, again, back));
    gpu.check_scale(&old, one, 1001)?;
    gpu.check_scale(&new, two, 1001)?;
    Ok(format!(
        "old and new side by side; put back: compiled again is {compiled}"
    ))
}

/// Runs the kernel of [`large`].
fn keep(gpu: &Gpu, function: &Function, number: i32) -> Result<(), Box<dyn std::error::Error>> {
    let out = gpu.context.allocate(4)?;
    out.all().fill(u32::MAX, &gpu.stream)?;
    let mut arguments = Arguments::new();
    arguments.memref(&MemRef::of::<i32>(&out, &[1])?);
    launch(function, &ONE, &arguments, &gpu.stream)?;
    let found = word(&out, &gpu.stream)?;
    ensure!(found == number, "{found} instead of {number}");
    Ok(())
}

fn unloaded_with_its_last_handle(gpu: &Gpu) -> Outcome {
    const MIB: usize = 1 << 20;
    const LARGE: usize = 256;
    let session = gpu.session()?;
    // What the driver takes once for a first module of this kind is no part of it.
    session.add("k", large(1, 1))?;
    keep(gpu, &session.function("k", "keep")?, 1)?;
    session.remove("k");
    let free = || -> Result<usize, Box<dyn std::error::Error>> {
        gpu.context.synchronize()?;
        Ok(gpu.context.memory()?.0)
    };
    let before = free()?;
    let module = session.add("k", large(LARGE, 17))?.module;
    let function = module.function("keep")?;
    keep(gpu, &function, 17)?;
    let loaded = free()?;
    ensure!(
        before.saturating_sub(loaded) >= LARGE * MIB,
        "{before} and then {loaded} bytes are free: the module does not show"
    );
    session.add("k", large(1, 18))?;
    keep(gpu, &session.function("k", "keep")?, 18)?;
    drop(module);
    let replaced = free()?;
    ensure!(
        before.saturating_sub(replaced) >= LARGE * MIB,
        "{replaced} bytes are free: unloaded while there is a handle"
    );
    keep(gpu, &function, 17)?;
    drop(function);
    let unloaded = free()?;
    ensure!(
        before.saturating_sub(unloaded) < LARGE * MIB / 8,
        "{before} bytes were free before, {unloaded} are after the last handle: not unloaded"
    );
    let used = |now: usize| before.saturating_sub(now) / MIB;
    Ok(format!(
        "MiB in use for a module with {LARGE} MiB: loaded {}, replaced {}, last handle dropped {}",
        used(loaded),
        used(replaced),
        used(unloaded)
    ))
}

/// Adds to a counter, and reads it.
fn count(gpu: &Gpu, module: &SessionModule, by: i32) -> Result<i32, Box<dyn std::error::Error>> {
    let mut arguments = Arguments::new();
    arguments.value(by);
    launch(&module.function("add")?, &ONE, &arguments, &gpu.stream)?;
    total(gpu, module)
}

fn total(gpu: &Gpu, module: &SessionModule) -> Result<i32, Box<dyn std::error::Error>> {
    let mut value = [0i32];
    module.global("total")?.download(&mut value, &gpu.stream)?;
    Ok(value[0])
}

fn variables_live_on(gpu: &Gpu) -> Outcome {
    let session = gpu.session()?;
    let old = session.add("counter", COUNTER)?.module;
    let mut expected = 5;
    for index in 0..20 {
        let by = gpu.random() as u16;
        expected += i32::from(by);
        let found = count(gpu, &old, by.into())?;
        ensure!(
            found == expected,
            "after {index} additions: {found} instead of {expected}"
        );
        session.add(&format!("k{index}"), scale(gpu.float()))?;
    }
    // A module that replaces it has a variable of its own.
    let changed = COUNTER.replace("addi %by", "maxs %by");
    let new = session.add("counter", changed)?;
    ensure!(new.change == Change::Replaced, "{new:?}");
    let found = (count(gpu, &new.module, 7)?, total(gpu, &old)?);
    ensure!(found == (7, expected), "{found:?} instead of (7, {expected})");
    Ok("over 20 additions; the one that replaces it begins anew, and the old one stays".to_owned())
}

fn a_variable_by_its_address(gpu: &Gpu) -> Outcome {
    let session = gpu.session()?;
    let counter = session.add("counter", COUNTER)?.module;
    let start = count(gpu, &counter, (gpu.random() >> 40) as i32 & 0xffff)?;
    // Added later, from a module of its own.
    session.add("double", DOUBLE)?;
    let address = counter.global("total")?.address();
    let mut arguments = Arguments::new();
    arguments.memref(&MemRef::contiguous(address, &[1]));
    launch(&session.function("double", "double")?, &ONE, &arguments, &gpu.stream)?;
    let found = count(gpu, &counter, 1)?;
    ensure!(found == 2 * start + 1, "{found} instead of {}", 2 * start + 1);
    Ok(format!("{start} doubled by another module, and counted on: {found}"))
}

fn another_modules_variable(gpu: &Gpu) -> Outcome {
    let session = gpu.session()?;
    session.add("counter", COUNTER)?;
    match session.add("wants", WANTS_COUNTER) {
        Err(error @ SessionError::Undefined { .. }) => {
            let text = one_line(&error.to_string());
            ensure!(
                text.contains("\"counter\" of this session defines total") && text.contains("cannot link new code"),
                "{text}"
            );
            ensure!(session.module("wants").is_err(), "it was added");
            Ok("refused: drivers cannot link new code to a module that is loaded".to_owned())
        }
        other => Err(format!("{other:?}").into()),
    }
}

fn modules_that_are_joined(gpu: &Gpu) -> Outcome {
    let options = Options {
        device_link: Some(DeviceLink::default()),
        ..Options::default()
    };
    let session = JitSession::new(gpu.compiler(options), &gpu.context)?;
    session.add("joined", include_str!("../../../../examples/device_link/joined.mlir"))?;
    let x: Vec<f32> = (0..97).map(|_| gpu.float()).collect();
    let data: DeviceBuffer = gpu.context.allocate(4 * x.len())?;
    data.upload(&x, &gpu.stream)?;
    let mut arguments = Arguments::new();
    arguments.memref(&MemRef::of::<f32>(&data, &[x.len() as i64])?);
    let shape = LaunchShape::new([1, 1, 1], [x.len() as u32, 1, 1]);
    launch(&session.function("joined", "apply")?, &shape, &arguments, &gpu.stream)?;
    let mut found = vec![f32::NAN; x.len()];
    data.download(&mut found, &gpu.stream)?;
    for (x, found) in x.iter().zip(&found) {
        let expected = 3.0 * f64::from(*x) + 20.0;
        let near = (f64::from(*found) - expected).abs() < 1e-5;
        ensure!(near, "{found} instead of {expected}");
    }
    Ok("a kernel with the function and the table of another gpu.module".to_owned())
}

fn a_session_that_is_rebuilt(gpu: &Gpu) -> Outcome {
    let context = gpu.context.device().separate_context()?;
    let session = JitSession::new(std::sync::Arc::clone(&gpu.compiler), &context)?;
    let factors: Vec<f32> = (0..8).map(|_| gpu.float()).collect();
    for (index, factor) in factors.iter().enumerate() {
        session.add(&format!("k{index}"), scale(*factor))?;
    }
    let old = session.function("k0", "scale")?;
    let fresh = context.reset()?;
    let gone = session.add("k8", scale(gpu.float()));
    ensure!(
        gone.as_ref().is_err_and(SessionError::is_context_lost),
        "adding after the reset: {gone:?}"
    );
    session.rebuild(&fresh)?;
    let stream = fresh.stream()?;
    for (index, factor) in factors.iter().enumerate() {
        let function = session.function(&format!("k{index}"), "scale")?;
        let x: Vec<f32> = (0..1001).map(|_| gpu.float()).collect();
        super::fixture::check_scale(&fresh, &stream, &function, *factor, &x)?;
    }
    drop(old);
    Ok("8 modules, in a new context after a reset, nothing compiled".to_owned())
}
