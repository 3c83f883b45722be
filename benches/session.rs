//! What one more kernel costs a session that holds many: time to compile (and to load, where there is an NVIDIA GPU), and memory.
//!
//! ```sh
//! cargo bench --bench session
//! ```
//!
//! The kernels differ in a constant, so that none is compiled for another. PTX is made: no vendor's tool takes part but, with
//! a GPU, the driver.

use std::{
    fs,
    hint::black_box,
    time::{Duration, Instant},
};

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use gpulower::{
    Compiler, Emit,
    runtime::{Context, Driver},
    session::JitSession,
};

/// How many kernels the session holds already.
const SIZES: [usize; 4] = [1, 10, 100, 1000];

/// Hands out kernels that are all different.
#[derive(Default)]
struct Kernels(u32);

impl Kernels {
    fn next(&mut self) -> String {
        self.0 += 1;
        format!(
            "gpu.module @m {{ gpu.func @scale(%x: memref<?xf32>, %n: index) kernel {{
               %factor = arith.constant {}.0 : f32
               %i = gpu.global_id x
               %inside = arith.cmpi ult, %i, %n : index
               scf.if %inside {{
                 %v = memref.load %x[%i] : memref<?xf32>
                 %r = arith.mulf %v, %factor : f32
                 memref.store %r, %x[%i] : memref<?xf32>
               }}
               gpu.return }} }}",
            self.0
        )
    }
}

fn context() -> Option<Context> {
    Driver::cuda().ok()?.device(0).ok()?.context().ok()
}

fn session(context: Option<&Context>) -> JitSession {
    let builder = JitSession::builder(Compiler::builder().build()).emit(Emit::Ptx);
    let builder = match context {
        Some(context) => builder.context(context),
        None => builder.target("sm_90".parse().expect("a target")),
    };
    builder.build().expect("a session")
}

/// Kilobytes of memory that the process has in use.
fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok())
        .unwrap_or(0)
}

fn growth(criterion: &mut Criterion) {
    let context = context();
    let where_to = if context.is_some() {
        "compile and load"
    } else {
        "compile"
    };
    let mut kernels = Kernels::default();
    let session = session(context.as_ref());
    let mut group = criterion.benchmark_group(format!("session/add ({where_to})"));
    group.sample_size(10);
    let mut before = None;
    for size in SIZES {
        while session.len() < size {
            session
                .add(&format!("k{}", session.len()), kernels.next())
                .expect("compiles");
        }
        let memory = resident();
        match before.replace((size, memory)) {
            None => eprintln!("{size} kernels: {memory} KiB"),
            Some((less, was)) => eprintln!(
                "{size} kernels: {memory} KiB, {:.1} KiB for each since {less}",
                memory.saturating_sub(was) as f64 / (size - less) as f64
            ),
        }
        group.bench_function(BenchmarkId::from_parameter(size), |bencher| {
            bencher.iter_custom(|times| {
                let mut spent = Duration::ZERO;
                for _ in 0..times {
                    let source = kernels.next();
                    let start = Instant::now();
                    black_box(session.add("next", source).expect("compiles"));
                    spent += start.elapsed();
                    session.remove("next");
                }
                spent
            });
        });
    }
    group.finish();
    if let Some(context) = context {
        let mut group = criterion.benchmark_group("session/rebuild (load all)");
        group.sample_size(10);
        group.bench_function(BenchmarkId::from_parameter(session.len()), |bencher| {
            bencher.iter(|| session.rebuild(&context).expect("loads"));
        });
        group.finish();
    }
}

criterion_group!(benches, growth);
criterion_main!(benches);
