//! Several host threads.

use std::thread;

use gpulower::runtime::{Arguments, LoadOptions, Module};

use super::fixture::{Check, Gpu, Outcome, WARP, launch};

pub const CHECKS: &[Check] = &[
    ("two threads, one function", two_threads_one_function),
    ("threads that load", threads_that_load),
];

fn two_threads_one_function(gpu: &Gpu) -> Outcome {
    const LAUNCHES: u32 = 2000;
    let step = gpu.plain()?.function("step")?;
    let context = &gpu.context;
    let work = |start: u32| -> Result<(), String> {
        let run = || -> Outcome {
            let stream = context.stream()?;
            let buffer = context.allocate(128)?;
            buffer.all().fill(start, &stream)?;
            let mut arguments = Arguments::new();
            arguments.buffer(&buffer).value(32u32);
            let mut expected = start;
            for _ in 0..LAUNCHES {
                launch(&step, &WARP, &arguments, &stream)?;
                expected = expected.wrapping_mul(3).wrapping_add(1);
            }
            let mut found = [0u32; 32];
            buffer.download(&mut found, &stream)?;
            ensure!(found == [expected; 32], "{found:?} instead of {expected}");
            Ok(String::new())
        };
        run().map(drop).map_err(|error| error.to_string())
    };
    let results: Vec<Result<(), String>> = thread::scope(|scope| {
        let threads: Vec<_> = (1..=2).map(|start| scope.spawn(move || work(start))).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|_| Err("a thread panicked".to_owned())))
            .collect()
    });
    results.into_iter().collect::<Result<(), String>>()?;
    Ok(format!("{LAUNCHES} launches each, in a stream each"))
}

fn threads_that_load(gpu: &Gpu) -> Outcome {
    let (context, image) = (&gpu.context, &gpu.images.plain);
    let work = move || -> Result<(), String> {
        for _ in 0..50 {
            let module = Module::load(context, "plain.cubin", image, &LoadOptions::default())
                .map_err(|error| error.to_string())?;
            let function = module.function("count").map_err(|error| error.to_string())?;
            drop(module);
            let stream = context.stream().map_err(|error| error.to_string())?;
            launch(&function, &WARP, &Arguments::new(), &stream).map_err(|error| error.to_string())?;
            stream.synchronize().map_err(|error| error.to_string())?;
        }
        Ok(())
    };
    let results: Vec<Result<(), String>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(work)).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|_| Err("a thread panicked".to_owned())))
            .collect()
    });
    results.into_iter().collect::<Result<(), String>>()?;
    Ok("4 threads, 50 modules each".to_owned())
}
