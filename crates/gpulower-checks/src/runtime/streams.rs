//! Streams and events: what comes after what, and what comes at the same time.

use gpulower::runtime::{Arguments, LaunchShape};

use super::fixture::{Check, Gpu, ONE, Outcome, WARP, launch};

pub const CHECKS: &[Check] = &[
    ("order in a stream", order_in_a_stream),
    ("order by an event", order_by_an_event),
    ("time between events", time_between_events),
    ("streams at the same time", streams_at_the_same_time),
    ("a stream of another library", a_stream_of_another_library),
    ("priorities", priorities),
];

/// How long the kernel that only waits does so, in nanoseconds.
const WAIT: u64 = 20_000_000;

fn order_in_a_stream(gpu: &Gpu) -> Outcome {
    let step = gpu.plain()?.function("step")?;
    let buffer = gpu.context.allocate(128)?;
    buffer.all().fill(1u32, &gpu.stream)?;
    let mut expected = 1u32;
    let mut arguments = Arguments::new();
    arguments.buffer(&buffer).value(32u32);
    for _ in 0..1000 {
        launch(&step, &WARP, &arguments, &gpu.stream)?;
        expected = expected.wrapping_mul(3).wrapping_add(1);
    }
    let mut words = [0u32; 32];
    buffer.download(&mut words, &gpu.stream)?;
    ensure!(words == [expected; 32], "{words:?} instead of {expected}");
    Ok("1000 launches".to_owned())
}

fn order_by_an_event(gpu: &Gpu) -> Outcome {
    let module = gpu.plain()?;
    let (spin, step) = (module.function("spin")?, module.function("step")?);
    let (first, second) = (gpu.context.stream()?, gpu.context.stream()?);
    let (times, words) = (gpu.context.allocate(16)?, gpu.context.allocate(128)?);
    words.all().fill(0u32, &gpu.stream)?;
    gpu.stream.synchronize()?;

    let mut arguments = Arguments::new();
    arguments.buffer(&times).value(WAIT);
    launch(&spin, &ONE, &arguments, &first)?;
    words.all().fill(1u32, &first)?;
    let event = gpu.context.event()?;
    event.record(&first)?;
    let early = (first.is_done()?, event.is_done()?);
    second.wait_for(&event)?;
    arguments.clear();
    arguments.buffer(&words).value(32u32);
    launch(&step, &WARP, &arguments, &second)?;
    let mut found = [0u32; 32];
    words.download(&mut found, &second)?;
    ensure!(found == [4; 32], "{found:?} instead of 4");
    ensure!(
        early == (false, false),
        "a stream of {WAIT} ns was done at once: {early:?}"
    );
    ensure!(
        first.is_done()? && event.is_done()?,
        "a stream that was waited for is not done"
    );
    event.synchronize()?;
    Ok("one stream waits for another".to_owned())
}

fn time_between_events(gpu: &Gpu) -> Outcome {
    let spin = gpu.plain()?.function("spin")?;
    let times = gpu.context.allocate(16)?;
    let (start, end) = (gpu.context.timing_event()?, gpu.context.timing_event()?);
    let mut arguments = Arguments::new();
    arguments.buffer(&times).value(WAIT);
    start.record(&gpu.stream)?;
    launch(&spin, &ONE, &arguments, &gpu.stream)?;
    end.record(&gpu.stream)?;
    end.synchronize()?;
    let elapsed = end.since(&start)?;
    ensure!(!elapsed.is_zero(), "no time between two events");
    ensure!(start.since(&end)?.is_zero(), "time runs backwards");
    let timed = gpu.stream.time(|| launch(&spin, &ONE, &arguments, &gpu.stream))?;
    ensure!(!timed.is_zero(), "a stream takes no time");
    Ok(format!("{elapsed:?} and {timed:?} around kernels of {WAIT} ns"))
}

fn streams_at_the_same_time(gpu: &Gpu) -> Outcome {
    let spin = gpu.plain()?.function("spin")?;
    let mut running = Vec::new();
    for _ in 0..8 {
        running.push((gpu.context.stream()?, gpu.context.allocate(16)?));
    }
    for (stream, times) in &running {
        let mut arguments = Arguments::new();
        arguments.buffer(times).value(WAIT);
        launch(&spin, &ONE, &arguments, stream)?;
    }
    let mut spans = Vec::new();
    for (stream, times) in &running {
        let mut span = [0u64; 2];
        times.download(&mut span, stream)?;
        spans.push(span);
    }
    let overlaps = spans
        .iter()
        .filter(|a| spans.iter().filter(|b| a[0] < b[1] && b[0] < a[1]).count() > 1)
        .count();
    ensure!(
        overlaps == spans.len(),
        "of {} kernels {overlaps} ran beside another: {spans:?}",
        spans.len()
    );
    Ok(format!("{overlaps} kernels in as many streams"))
}

#[allow(unsafe_code, reason = "a handle of another library is the caller's word")]
fn a_stream_of_another_library(gpu: &Gpu) -> Outcome {
    let theirs = gpu.context.stream()?;
    // SAFETY: the stream lives until the end of this function.
    let ours = unsafe { gpu.context.stream_from_raw(theirs.raw()) };
    let step = gpu.plain()?.function("step")?;
    let mut found = Vec::new();
    for stream in [ours, gpu.context.default_stream()] {
        let buffer = gpu.buffer(&[5u32; 32])?;
        let mut arguments = Arguments::new();
        arguments.buffer(&buffer).value(32u32);
        launch(&step, &LaunchShape::linear(32, 32), &arguments, &stream)?;
        let mut words = [0u32; 32];
        buffer.download(&mut words, &stream)?;
        drop(stream);
        found.push(words[31]);
    }
    ensure!(found == [16, 16], "{found:?}");
    // Ours to drop, theirs to destroy.
    theirs.synchronize()?;
    Ok("a raw handle, and the default stream".to_owned())
}

fn priorities(gpu: &Gpu) -> Outcome {
    let (urgent, usual) = gpu.context.stream_priorities()?;
    ensure!(urgent <= usual, "{urgent} {usual}");
    gpu.context.stream_with_priority(urgent)?.synchronize()?;
    // Out of range counts as the nearest.
    gpu.context.stream_with_priority(urgent - 100)?.synchronize()?;
    Ok(format!("{urgent} to {usual}"))
}
