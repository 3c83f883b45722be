//! Many modules, one after the other: nothing is left behind.

use gpulower::runtime::{Arguments, LoadOptions, Module};

use super::fixture::{Check, Gpu, Outcome, WARP, launch};

pub const CHECKS: &[Check] = &[
    ("10,000 modules", ten_thousand_modules),
    ("10,000 streams and buffers", ten_thousand_streams_and_buffers),
    ("2,000 failures", two_thousand_failures),
];

/// Cycles before the first measurement: caches fill up in them.
const WARM_UP: u32 = 1000;

/// Runs `cycle` many times, and compares the memory after some with the memory at the end.
fn flat(gpu: &Gpu, cycles: u32, mut cycle: impl FnMut(u32) -> Outcome) -> Outcome {
    let mut before = (0, 0);
    for index in 0..cycles {
        if index == WARM_UP {
            gpu.context.synchronize()?;
            before = (gpu.context.memory()?.0, resident()?);
        }
        cycle(index)?;
    }
    gpu.context.synchronize()?;
    let after = (gpu.context.memory()?.0, resident()?);
    let (device, host) = (before.0.saturating_sub(after.0), after.1.saturating_sub(before.1));
    ensure!(
        device <= 2 << 20,
        "{device} bytes of the device are gone after {cycles} cycles"
    );
    // 9,000 leaks of 1 KiB would be more than this.
    ensure!(
        host <= 8 << 20,
        "{host} bytes of the host are gone after {cycles} cycles"
    );
    Ok(format!(
        "after {WARM_UP} and {cycles} cycles: {} and {} bytes of the device free, {} and {} bytes of the host in use",
        before.0, after.0, before.1, after.1
    ))
}

/// Bytes of this process in memory.
fn resident() -> Result<usize, Box<dyn std::error::Error>> {
    let statistics = std::fs::read_to_string("/proc/self/statm")?;
    let pages = statistics
        .split_whitespace()
        .nth(1)
        .ok_or("no number in /proc/self/statm")?;
    Ok(pages.parse::<usize>()? * 4096)
}

fn ten_thousand_modules(gpu: &Gpu) -> Outcome {
    let out = gpu.context.allocate(128)?;
    out.all().fill(0u32, &gpu.stream)?;
    let mut arguments = Arguments::new();
    arguments.buffer(&out).value(32u32);
    let found = flat(gpu, 10_000, |_| {
        let module = Module::load(&gpu.context, "plain.cubin", &gpu.images.plain, &LoadOptions::default())?;
        let step = module.function("step")?;
        launch(&step, &WARP, &arguments, &gpu.stream)?;
        Ok(String::new())
    })?;
    let expected = (0..10_000).fold(0u32, |value, _| value.wrapping_mul(3).wrapping_add(1));
    let mut words = [0u32; 32];
    out.download(&mut words, &gpu.stream)?;
    ensure!(words == [expected; 32], "{words:?} instead of {expected}");
    Ok(found)
}

fn ten_thousand_streams_and_buffers(gpu: &Gpu) -> Outcome {
    flat(gpu, 10_000, |index| {
        let stream = gpu.context.stream()?;
        let event = gpu.context.event()?;
        let buffer = if index % 2 == 0 {
            gpu.context.allocate(4096)?
        } else {
            stream.allocate(4096)?
        };
        buffer.all().fill(index, &stream)?;
        event.record(&stream)?;
        let pinned = gpu.context.allocate_pinned(4096)?;
        let transfer = buffer.all().download_pinned(pinned, &stream)?;
        let back = transfer.wait()?;
        ensure!(
            back.as_slice::<u32>()?.iter().all(|&word| word == index),
            "cycle {index}"
        );
        Ok(String::new())
    })
}

fn two_thousand_failures(gpu: &Gpu) -> Outcome {
    let saxpy = gpu.plain()?.function("saxpy")?;
    let (_, total) = gpu.context.memory()?;
    flat(gpu, 2_000, |_| {
        ensure!(gpu.context.allocate(2 * total).is_err(), "too much memory");
        let half = &gpu.images.plain[..gpu.images.plain.len() / 2];
        let loaded = Module::load(&gpu.context, "half.cubin", half, &LoadOptions::default());
        ensure!(loaded.is_err(), "half a cubin");
        let refused = saxpy.launch(&WARP, &Arguments::new()).is_err();
        ensure!(refused, "no arguments");
        Ok(String::new())
    })
}
