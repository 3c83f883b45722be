//! On a GPU: a session with a module for each step, tiles chosen by measuring, and the whole graph in a loop.

use std::{error::Error, fs, path::Path, time::Instant};

use gpulower::runtime::{Arguments, Driver, Function, LaunchShape, MemRef, Stream};
use gpulower::{Compiler, session::JitSession};

use crate::graph::{Graph, Value};
use crate::{lower::lower, step::Tiles};

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

/// Runs a graph on inputs in a folder, `NAME.bin` of f16, writes `result.bin`, and prints what it took.
pub fn run(graph: &Graph, compiler: Compiler, folder: &Path) -> Result<(), Box<dyn Error>> {
    let context = Driver::cuda()?.device(0)?.context()?;
    let stream = context.stream()?;
    let session = JitSession::new(compiler, &context)?;
    let buffers = graph
        .shapes
        .iter()
        .map(|shape| context.allocate(2 * shape.iter().product::<usize>()));
    let buffers = buffers.collect::<Result<Vec<_>, _>>()?;
    for (name, buffer) in graph.inputs.iter().zip(&buffers) {
        buffer.upload(&fs::read(folder.join(format!("{name}.bin")))?, &stream)?;
    }

    let begin = Instant::now();
    let (mut steps, mut tried) = (Vec::new(), 0);
    for (number, step) in graph.steps.iter().enumerate() {
        // All choices are compiled ahead, on all processors; the fastest is kept. The operands have their values.
        let mut ahead = Vec::new();
        for tiles in Tiles::of(graph, step, true)? {
            let kernel = lower(graph, number, step, &tiles)?;
            let pending = session.prepare(&format!("step{number} {tiles:?}"), &kernel.code[0])?;
            ahead.push((tiles, kernel.launch, pending));
        }
        tried += ahead.len();
        let memref = |value: Value| MemRef::of::<u16>(&buffers[value], &[buffers[value].bytes() as i64 / 2]);
        let memrefs = step.values().into_iter().map(memref).collect::<Result<Vec<_>, _>>()?;
        let mut measured = Vec::new();
        for (tiles, launch, pending) in ahead {
            let step = Loaded {
                function: pending.wait()?.module.function(&launch.kernel)?,
                arguments: launch.with_parameters(&memrefs)?,
                shape: launch.shape?,
            };
            step.enqueue(&stream)?;
            let time = stream.time(|| (0..10).try_for_each(|_| step.enqueue(&stream)))? / 10;
            measured.push((time, tiles, step));
        }
        let fastest = measured.into_iter().min_by_key(|(time, ..)| *time);
        let (time, tiles, step) = fastest.ok_or("a step without tiles")?;
        println!("step {number}: {time:?}, {tiles:?}");
        steps.push(step);
    }
    let seconds = begin.elapsed().as_secs_f64();
    println!("compiled and measured {tried} kernels in {seconds:.2} s");

    let whole = || steps.iter().try_for_each(|step| step.enqueue(&stream));
    whole()?;
    let time = stream.time(|| (0..50).try_for_each(|_| whole()))? / 50;
    println!("graph: {:.4} ms", time.as_secs_f64() * 1e3);
    let result = buffers.last().ok_or("the graph is empty")?;
    let mut bytes = vec![0u8; result.bytes()];
    result.download(&mut bytes, &stream)?;
    Ok(fs::write(folder.join("result.bin"), bytes)?)
}
