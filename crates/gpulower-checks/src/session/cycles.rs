//! Many kernels, one after the other: nothing is left behind.

use std::collections::VecDeque;
use std::sync::Arc;

use gpulower::Emit;
use gpulower::session::{Change, JitSession, Pending};

use super::fixture::{Check, Gpu, Outcome};
use super::growth::resident;
use super::kernels::scale;

pub const CHECKS: &[Check] = &[
    ("10,000 kernels come and go", |gpu| come_and_go(gpu, Emit::Binary, true)),
    ("10,000 as PTX", |gpu| come_and_go(gpu, Emit::Ptx, true)),
    ("10,000 that are not loaded", |gpu| come_and_go(gpu, Emit::Ptx, false)),
];

const CYCLES: usize = 10_000;
/// Cycles before the first measurement: allocators and caches fill up in them.
const WARM_UP: usize = 2_000;
/// Compilations that run ahead.
const AHEAD: usize = 64;

/// Adds a kernel, launches it, and takes it out again, 10,000 times; half of them replace another one.
fn come_and_go(gpu: &Gpu, emit: Emit, loaded: bool) -> Outcome {
    let builder = JitSession::builder(Arc::clone(&gpu.compiler)).emit(emit);
    let session = match loaded {
        true => builder.context(&gpu.context).build()?,
        false => builder.target(*gpu.session()?.target()).build()?,
    };
    let mut pending: VecDeque<(f32, Pending)> = VecDeque::new();
    let (mut begun, mut largest) = (0, 0);
    // Bytes that are free on the device, and in use on the host.
    let mut measured: Vec<(usize, usize)> = Vec::new();
    for cycle in 0..CYCLES {
        while begun < CYCLES && pending.len() < AHEAD {
            let factor = gpu.factor();
            let name = format!("k{}", begun % 2);
            pending.push_back((factor, session.prepare(&name, scale(factor))?));
            begun += 1;
        }
        let (factor, next) = pending.pop_front().ok_or("nothing was begun")?;
        let added = next.wait()?;
        ensure!(
            added.compiled && added.change != Change::Unchanged,
            "cycle {cycle}: {added:?}"
        );
        if loaded {
            gpu.check_scale(&added.module.function("scale")?, factor, 129)?;
        }
        if cycle % 4 == 3 {
            session.remove(added.module.name());
        }
        largest = largest.max(session.len());
        drop(added);
        if (cycle + 1) % WARM_UP == 0 {
            gpu.context.synchronize()?;
            measured.push((gpu.context.memory()?.0, resident()?));
        }
    }
    ensure!(largest <= 2, "{largest} modules at once");
    let shown = |of: fn(&(usize, usize)) -> usize| {
        let words: Vec<String> = measured.iter().map(|pair| (of(pair) >> 10).to_string()).collect();
        words.join(" ")
    };
    let said = format!(
        "KiB after each {WARM_UP} cycles: free on the device {}; in use on the host {}",
        shown(|pair| pair.0),
        shown(|pair| pair.1)
    );
    let (Some(first), Some(last)) = (measured.first(), measured.last()) else {
        return Err("nothing was measured".into());
    };
    let (device, host) = (first.0.saturating_sub(last.0), last.1.saturating_sub(first.1));
    ensure!(device <= 4 << 20, "{device} bytes of the device are gone: {said}");
    // 8,000 leaks of 4 KiB, less than what one image or one kernel's IR takes, would be more than this.
    ensure!(host <= 32 << 20, "{host} bytes of the host are gone: {said}");
    Ok(said)
}
