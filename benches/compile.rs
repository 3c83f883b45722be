//! What a compilation costs, stage by stage and as a whole, warm and in one process.
//!
//! ```sh
//! cargo bench --bench compile
//! ```
//!
//! The module is that of `scripts/compare/five.mlir`: five kernels. Every result is compared with the first: a benchmark
//! that makes other bytes fails.

use std::{hint::black_box, path::Path, time::Duration};

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use gpulower::{Artifact, Compiler, CompilerBuilder, Emit, Options, Search, Target, Toolkit, cache::Cache};

const FIVE: &str = include_str!("../scripts/compare/five.mlir");

fn module(seed: usize) -> String {
    FIVE.replace("SEED", &seed.to_string())
}

/// With the toolkit that `cargo xtask setup` installs, and one thread.
fn builder() -> CompilerBuilder {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    Compiler::builder()
        .toolkit(Toolkit::discover(
            &Search::default().with_cuda(root.join(".toolkit/cuda")),
        ))
        .cache_directory(root.join("target/bench-tools"))
        .threads(1)
}

fn compile(compiler: &Compiler, name: &str, source: &[u8], target: &str, emit: Emit) -> Artifact {
    let targets = Target::parse_list(target).expect("a target");
    let compilation = compiler.compile_source(name, source, &targets, emit);
    let mut artifacts = compilation.unwrap_or_else(|failure| panic!("{failure}")).artifacts;
    artifacts.pop().expect("one artifact")
}

/// From MLIR to each form of output: each one is another stage further.
fn outputs(criterion: &mut Criterion) {
    let source = module(1);
    let compiler = builder().build();
    let mut group = criterion.benchmark_group("one module to");
    for (target, emit) in [
        ("sm_90", Emit::Mlir),
        ("sm_90", Emit::Bitcode),
        ("sm_90", Emit::Ptx),
        ("sm_90", Emit::Cubin),
        ("sm_90", Emit::Fatbin),
        ("gfx942", Emit::Mlir),
        ("gfx942", Emit::Bitcode),
        ("gfx942", Emit::Object),
        ("gfx942", Emit::Hsaco),
    ] {
        let make = || compile(&compiler, "five.mlir", source.as_bytes(), target, emit);
        let expected = make().bytes;
        group.bench_function(BenchmarkId::new(emit.name(), target), |bencher| {
            bencher.iter(|| assert!(black_box(make()).bytes == expected));
        });
    }
    group.finish();
}

/// From what a stage takes: LLVM IR without libraries, and PTX.
fn inputs(criterion: &mut Criterion) {
    let compiler = builder().build();
    let five = module(1);
    let unoptimised = builder()
        .options(Options {
            optimization: Some(gpulower::options::OptimizationLevel::O0),
            ..Options::default()
        })
        .build();
    let bitcode = compile(&unoptimised, "five.mlir", five.as_bytes(), "sm_90", Emit::Bitcode).bytes;
    let ptx = compile(&compiler, "five.mlir", five.as_bytes(), "sm_90", Emit::Ptx).bytes;
    let mut group = criterion.benchmark_group("one module from");
    for (name, source, emit) in [
        ("five.bc", &bitcode, Emit::Ptx),
        ("five.bc", &bitcode, Emit::Cubin),
        ("five.ptx", &ptx, Emit::Cubin),
    ] {
        let make = || compile(&compiler, name, source, "sm_90", emit);
        let expected = make().bytes;
        group.bench_function(format!("{name} to {emit}"), |bencher| {
            bencher.iter(|| assert!(black_box(make()).bytes == expected));
        });
    }
    group.finish();
}

/// Many modules in one call, by the number of threads.
fn many(criterion: &mut Criterion) {
    let sources: Vec<String> = (1..=32).map(module).collect();
    let inputs: Vec<(&str, &[u8])> = sources.iter().map(|source| ("five.mlir", source.as_bytes())).collect();
    let targets = Target::parse_list("sm_90").expect("a target");
    let mut group = criterion.benchmark_group("32 modules to cubins");
    group.sample_size(10).measurement_time(Duration::from_secs(20));
    for threads in [1, 2] {
        let compiler = builder().threads(threads).build();
        group.bench_function(BenchmarkId::new("threads", threads), |bencher| {
            bencher.iter(|| {
                let made = compiler.compile_sources(black_box(&inputs), &targets, Emit::Cubin);
                assert_eq!(
                    made.unwrap_or_else(|failure| panic!("{failure}")).artifacts.len(),
                    inputs.len()
                );
            });
        });
    }
    group.finish();
}

/// A hit in memory, and one on disk.
fn hits(criterion: &mut Criterion) {
    let source = module(1);
    let directory = tempfile::tempdir().expect("a directory");
    let mut group = criterion.benchmark_group("one module from the cache");
    for (name, memory) in [("in memory", 1 << 30), ("on disk", 0)] {
        let cache = Cache::builder()
            .directory(directory.path())
            .memory_bytes(memory)
            .build();
        let compiler = builder().cache(cache.clone()).build();
        let make = || compile(&compiler, "five.mlir", source.as_bytes(), "sm_90", Emit::Cubin);
        let expected = make().bytes;
        group.bench_function(name, |bencher| {
            bencher.iter(|| assert!(black_box(make()).bytes == expected));
        });
        assert!(cache.statistics().memory_hits + cache.statistics().disk_hits > 0);
    }
    group.finish();
}

criterion_group!(benches, outputs, inputs, many, hits);
criterion_main!(benches);
