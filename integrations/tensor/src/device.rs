//! On a GPU: a session with a module for each step, tiles chosen by measuring, and the whole graph in a loop.

use std::{error::Error, fs, path::Path, time::Instant};

use gpulower::{
    Compiler,
    runtime::{Arguments, Context, DeviceBuffer, Driver, Function, LaunchShape, MemRef, Stream},
    session::JitSession,
};

use crate::{
    graph::{Graph, Step},
    lower::{Kernel, candidates, lower},
    schedule::Tiles,
};

/// A step that is loaded.
struct Loaded {
    function: Function,
    shape: LaunchShape,
    arguments: Arguments,
}

impl Loaded {
    fn enqueue(&self, stream: &Stream) -> Result<(), Box<dyn Error>> {
        let launch = self.function.launch(&self.shape, &self.arguments)?;
        // SAFETY: the kernels stay within the buffers of their sizes, which live as long as the graph runs.
        #[allow(unsafe_code, reason = "what a kernel does is the caller's word")]
        unsafe { launch.enqueue(stream) }?;
        Ok(())
    }
}

/// Milliseconds of `count` rounds of work, each.
fn measure(
    context: &Context,
    stream: &Stream,
    count: u16,
    work: impl Fn() -> Result<(), Box<dyn Error>>,
) -> Result<f64, Box<dyn Error>> {
    let (start, end) = (context.timing_event()?, context.timing_event()?);
    work()?;
    start.record(stream)?;
    for _ in 0..count {
        work()?;
    }
    end.record(stream)?;
    end.synchronize()?;
    Ok(end.since(&start)?.as_secs_f64() * 1e3 / f64::from(count))
}

/// Runs a graph on inputs in a folder, `NAME.bin` of f16, writes `result.bin`, and prints what it took.
pub fn run(graph: &Graph, compiler: Compiler, folder: &Path) -> Result<(), Box<dyn Error>> {
    let context = Driver::cuda()?.device(0)?.context()?;
    let stream = context.stream()?;
    let session = JitSession::new(compiler, &context)?;
    let buffers = (0..graph.len())
        .map(|value| context.allocate(2 * graph.shape(value).iter().product::<usize>()))
        .collect::<Result<Vec<_>, _>>()?;
    for (value, name) in graph.inputs() {
        buffers[value].upload(&fs::read(folder.join(format!("{name}.bin")))?, &stream)?;
    }

    let begin = Instant::now();
    let mut loaded = Vec::new();
    let mut tried = 0;
    for (number, step) in graph.steps()?.iter().enumerate() {
        let tiles = candidates(graph, step, true);
        let choices: Vec<Option<&Tiles>> = if tiles.is_empty() {
            vec![None]
        } else {
            tiles.iter().map(Some).collect()
        };
        tried += choices.len();
        let (best, taken, time) = choose(graph, number, step, &choices, &session, &buffers, (&context, &stream))?;
        println!("step {number}: {time:.4} ms, {taken:?}");
        loaded.push(best);
    }
    println!(
        "compiled and measured {tried} kernels in {:.2} s",
        begin.elapsed().as_secs_f64()
    );

    let time = measure(&context, &stream, 50, || {
        loaded.iter().try_for_each(|step| step.enqueue(&stream))
    })?;
    println!("graph: {time:.4} ms");
    let mut result = vec![0u8; buffers.last().map_or(0, DeviceBuffer::bytes)];
    if let Some(buffer) = buffers.last() {
        buffer.download(&mut result, &stream)?;
    }
    Ok(fs::write(folder.join("result.bin"), result)?)
}

/// Compiles all choices ahead, on all processors, and takes the one that runs fastest. Its operands have their values.
fn choose<'t>(
    graph: &Graph,
    number: usize,
    step: &Step,
    choices: &[Option<&'t Tiles>],
    session: &JitSession,
    buffers: &[DeviceBuffer],
    (context, stream): (&Context, &Stream),
) -> Result<(Loaded, Option<&'t Tiles>, f64), Box<dyn Error>> {
    let mut ahead = Vec::new();
    for (index, tiles) in choices.iter().enumerate() {
        let kernel = lower(graph, number, step, *tiles)?;
        ahead.push((
            *tiles,
            session.prepare(&format!("step{number}.{index}"), &kernel.device)?,
            kernel,
        ));
    }
    let mut best: Option<(Loaded, Option<&Tiles>, f64)> = None;
    for (tiles, pending, kernel) in ahead {
        let function = pending.wait()?.module.function(&kernel.name)?;
        let step = Loaded {
            function,
            shape: shape(&kernel),
            arguments: arguments(&kernel, buffers)?,
        };
        let time = measure(context, stream, 10, || step.enqueue(stream))?;
        if best.as_ref().is_none_or(|(_, _, least)| time < *least) {
            best = Some((step, tiles, time));
        }
    }
    best.ok_or_else(|| "no choice".into())
}

fn shape(kernel: &Kernel) -> LaunchShape {
    LaunchShape::new(kernel.grid, kernel.block)
}

fn arguments(kernel: &Kernel, buffers: &[DeviceBuffer]) -> Result<Arguments, Box<dyn Error>> {
    let mut arguments = Arguments::new();
    for &index in &kernel.arguments {
        let (value, shape) = &kernel.parameters[index];
        let sizes = shape
            .iter()
            .map(|size| i64::try_from(*size))
            .collect::<Result<Vec<_>, _>>()?;
        arguments.memref(&MemRef::of::<u16>(&buffers[*value], &sizes)?);
    }
    Ok(arguments)
}
