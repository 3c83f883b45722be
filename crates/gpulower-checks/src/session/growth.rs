//! What one more kernel costs a session that grows from 1 to 1,000.

use std::sync::Arc;
use std::time::{Duration, Instant};

use gpulower::Emit;
use gpulower::session::JitSession;

use super::fixture::{Check, Gpu, Outcome};
use super::kernels::scale;

pub const CHECKS: &[Check] = &[
    ("growth to 1,000, machine code", |gpu| growth(gpu, Emit::Binary)),
    ("growth to 1,000, PTX", |gpu| growth(gpu, Emit::Ptx)),
];

/// The kernels whose times are shown, by their numbers in the session.
const WINDOWS: [(usize, usize); 3] = [(1, 10), (91, 100), (991, 1000)];

/// What one kernel took.
struct Times {
    compile: Duration,
    load: Duration,
    look_up: Duration,
}

/// Memory in use, in KiB.
#[derive(Clone, Copy)]
struct Memory {
    device: usize,
    host: usize,
}

/// Bytes of this process in memory.
pub fn resident() -> Result<usize, Box<dyn std::error::Error>> {
    let statistics = std::fs::read_to_string("/proc/self/statm")?;
    let pages = statistics
        .split_whitespace()
        .nth(1)
        .ok_or("no number in /proc/self/statm")?;
    Ok(pages.parse::<usize>()? * 4096)
}

fn memory(gpu: &Gpu) -> Result<Memory, Box<dyn std::error::Error>> {
    gpu.context.synchronize()?;
    let (free, total) = gpu.context.memory()?;
    Ok(Memory {
        device: (total - free) >> 10,
        host: resident()? >> 10,
    })
}

fn add(gpu: &Gpu, session: &JitSession, name: &str) -> Result<Times, Box<dyn std::error::Error>> {
    let factor = gpu.factor();
    let source = scale(factor);
    let start = Instant::now();
    let mut pending = session.prepare(name, source)?;
    while !pending.is_ready() {
        std::hint::spin_loop();
    }
    let compiled = Instant::now();
    let module = pending.wait()?.module;
    let loaded = Instant::now();
    let function = module.function("scale")?;
    let looked_up = Instant::now();
    gpu.check_scale(&function, factor, 129)?;
    Ok(Times {
        compile: compiled - start,
        load: loaded - compiled,
        look_up: looked_up - loaded,
    })
}

/// Median, and the largest, in ms.
fn shown(times: &[Times], of: impl Fn(&Times) -> Duration) -> String {
    let mut sorted: Vec<Duration> = times.iter().map(of).collect();
    sorted.sort_unstable();
    let ms = |duration: Option<&Duration>| duration.map_or(0.0, |duration| duration.as_secs_f64() * 1e3);
    format!("{:.2} ({:.2})", ms(sorted.get(sorted.len() / 2)), ms(sorted.last()))
}

fn growth(gpu: &Gpu, emit: Emit) -> Outcome {
    let (_, most) = WINDOWS[WINDOWS.len() - 1];
    let what = emit.to_string();
    let session = JitSession::builder(Arc::clone(&gpu.compiler))
        .context(&gpu.context)
        .emit(emit)
        .threads(1)
        .build()?;
    // What the process takes for its first kernel, of whatever session, is no part of it.
    add(gpu, &session, "first")?;
    session.remove("first");
    let start = memory(gpu)?;
    let (mut times, mut rows, mut before) = (Vec::new(), Vec::new(), (0, start));
    for number in 1..=most {
        times.push(add(gpu, &session, &format!("k{number}"))?);
        if let Some((first, last)) = WINDOWS.iter().find(|(_, last)| *last == number) {
            let window = &times[first - 1..*last];
            let (now, (count, then)) = (memory(gpu)?, before);
            let each = |now: usize, then: usize| (now as f64 - then as f64) / (number - count) as f64;
            rows.push(format!(
                "{:<12} {:>16} {:>16} {:>16} {:>14.1} {:>14.1}",
                format!("{first} to {last}"),
                shown(window, |times| times.compile),
                shown(window, |times| times.load),
                shown(window, |times| times.look_up),
                each(now.device, then.device),
                each(now.host, then.host),
            ));
            before = (number, now);
        }
    }
    ensure!(session.len() == most, "{} modules", session.len());
    let full = memory(gpu)?;
    drop(session);
    let end = memory(gpu)?;
    // 1,000 kernels and their images are gone again: what is left is not in proportion to them.
    ensure!(
        end.device <= start.device + (full.device - start.device) / 4 + 2048,
        "{} KiB of the device were in use before, {} with {most} kernels, {} after the session",
        start.device,
        full.device,
        end.device
    );
    Ok(format!(
        "{what}; ms as median (largest)\n       {:<12} {:>16} {:>16} {:>16} {:>14} {:>14}\n       {}\n       KiB in use before, with {most} \
         kernels, and after the session: device {} {} {}, host {} {} {}",
        "kernels",
        "compile",
        "load",
        "look up",
        "device KiB each",
        "host KiB each",
        rows.join("\n       "),
        start.device,
        full.device,
        end.device,
        start.host,
        full.host,
        end.host,
    ))
}
