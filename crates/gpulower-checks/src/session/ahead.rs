//! Compiling ahead while the GPU works; several host threads.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use gpulower::Emit;
use gpulower::runtime::{Arguments, MemRef};
use gpulower::session::JitSession;

use super::fixture::{Check, Gpu, ONE, Outcome, check_scale, launch};
use super::kernels::{WAITING, scale};

pub const CHECKS: &[Check] = &[
    ("compiled while the GPU works", compiled_while_the_gpu_works),
    ("two host threads", two_host_threads),
];

/// Kernels are compiled while another one runs, which ends when this program has seen that. Whether loading and launching go on
/// meanwhile is for the driver to say, and shown.
fn compiled_while_the_gpu_works(gpu: &Gpu) -> Outcome {
    const KERNELS: usize = 32;
    // It ends by itself, should this program not come to tell it.
    const LIMIT: Duration = Duration::from_secs(3);
    let session = gpu.session()?;
    session.add("waiting", WAITING)?;
    let (busy, other) = (gpu.context.stream()?, gpu.context.stream()?);
    // A word of the host: to tell the kernel is no call of the driver's.
    let mut flag = gpu.context.allocate_pinned(4)?;
    flag.as_bytes_mut().fill(0);
    let times = gpu.context.allocate(16)?;
    let mut arguments = Arguments::new();
    arguments
        .pointer(flag.device_address()?)
        .value(LIMIT.as_nanos() as u64)
        .memref(&MemRef::of::<i64>(&times, &[2])?);
    let factors: Vec<f32> = (0..KERNELS).map(|_| gpu.float()).collect();
    let x: Vec<f32> = (0..1001).map(|_| gpu.float()).collect();
    // What is made for a first launch is made before.
    session.add("first", scale(1.0))?;
    check_scale(&gpu.context, &other, &session.function("first", "scale")?, 1.0, &x)?;

    let start = Instant::now();
    launch(&session.function("waiting", "wait")?, &ONE, &arguments, &busy)?;
    let mut pending = Vec::new();
    for (index, factor) in factors.iter().enumerate() {
        pending.push(session.prepare(&format!("k{index}"), scale(*factor))?);
    }
    for one in &mut pending {
        while !one.is_ready() {
            thread::sleep(Duration::from_micros(200));
        }
    }
    let compiled = start.elapsed();
    ensure!(
        !busy.is_done()?,
        "the kernel ended before the others were compiled, after {compiled:.0?}"
    );
    let mut steps = Vec::new();
    let mut step = |what: &str| -> Result<(), Box<dyn std::error::Error>> {
        let waited = if busy.is_done()? {
            "waited for the kernel"
        } else {
            "did not wait"
        };
        steps.push(format!("{what} {waited} ({:.0?})", start.elapsed()));
        Ok(())
    };
    let mut modules = Vec::new();
    for one in pending {
        modules.push(one.wait()?.module);
    }
    step("loading")?;
    let function = modules[0].function("scale")?;
    step("looking up")?;
    check_scale(&gpu.context, &other, &function, factors[0], &x)?;
    step("launching")?;
    flag.as_bytes_mut().fill(1);
    busy.synchronize()?;
    for (module, factor) in modules.iter().zip(&factors) {
        gpu.check_scale(&module.function("scale")?, *factor, 129)?;
    }
    Ok(format!(
        "{KERNELS} kernels on {} threads in {compiled:.0?}, while one kernel ran; {}",
        thread::available_parallelism()?,
        steps.join(", ")
    ))
}

fn two_host_threads(gpu: &Gpu) -> Outcome {
    const ROUNDS: usize = 60;
    let session = Arc::new(
        JitSession::builder(Arc::clone(&gpu.compiler))
            .context(&gpu.context)
            .emit(Emit::Binary)
            .build()?,
    );
    // Each of the threads gets its own numbers; the names are partly the same, so that they replace each other's kernels.
    let given: Vec<Vec<(f32, Vec<f32>)>> = (0..2)
        .map(|_| {
            (0..ROUNDS)
                .map(|_| (gpu.float(), (0..515).map(|_| gpu.float()).collect()))
                .collect()
        })
        .collect();
    let context = &gpu.context;
    let work = |thread: usize, rounds: &[(f32, Vec<f32>)]| -> Result<(), String> {
        let run = || -> Result<(), Box<dyn std::error::Error>> {
            let stream = context.stream()?;
            for (round, (factor, x)) in rounds.iter().enumerate() {
                let shared = format!("shared{}", round % 3);
                let added = session.add(&shared, scale(*factor))?;
                let function = added.module.function("scale")?;
                check_scale(context, &stream, &function, *factor, x)?;
                let own = session.add(&format!("own{thread}"), scale(-*factor))?.module;
                check_scale(context, &stream, &own.function("scale")?, -*factor, x)?;
                check_scale(context, &stream, &function, *factor, x)?;
            }
            Ok(())
        };
        run().map_err(|error| error.to_string())
    };
    let results: Vec<Result<(), String>> = thread::scope(|scope| {
        let threads: Vec<_> = given
            .iter()
            .enumerate()
            .map(|(number, rounds)| scope.spawn(move || work(number, rounds)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|_| Err("a thread panicked".to_owned())))
            .collect()
    });
    results.into_iter().collect::<Result<(), String>>()?;
    ensure!(session.len() == 5, "{} modules are left", session.len());
    Ok(format!(
        "{} kernels added and launched by each, half of them under names of both",
        2 * ROUNDS
    ))
}
