//! Compile times inside one process, for `cargo xtask compare`: prints JSON.
//!
//! ```text
//! gpulower-checks measure warm INPUT TARGET FORMAT ROUNDS                       milliseconds of each round, nothing kept
//! gpulower-checks measure stages INPUT TARGET FORMAT ROUNDS                     median milliseconds of each stage
//! gpulower-checks measure growth FOLDER CHANGED TARGET FORMAT COUNT RESULTS     COUNT inputs: cold, kept, from memory, from disk, one changed
//! ```
//!
//! With `--cuda DIR` (the toolkit) and `--tools DIR` (where nvPTXCompiler's shared object is kept).

use std::{
    collections::BTreeMap,
    env,
    error::Error,
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use gpulower::{Compilation, Compiler, CompilerBuilder, Emit, Search, Target, Toolkit, cache::Cache};

type Outcome<T> = Result<T, Box<dyn Error>>;

pub fn main() -> Outcome<()> {
    let mut words: Vec<String> = env::args().skip(2).collect();
    let tools = option(&mut words, "--tools")?;
    let cuda = option(&mut words, "--cuda")?;
    let builder = || {
        Compiler::builder()
            .toolkit(Toolkit::discover(&Search::default().with_cuda(Path::new(&cuda))))
            .cache_directory(PathBuf::from(&tools))
    };
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let json = match words[..] {
        ["warm", input, target, format, rounds] => warm(&builder().build(), input, target, format, rounds)?,
        ["stages", input, target, format, rounds] => stages(&builder().build(), input, target, format, rounds)?,
        ["growth", folder, changed, target, format, count, results] => {
            let inputs = inputs(Path::new(folder), count.parse()?)?;
            let changed = fs::read(changed)?;
            growth(&builder, &inputs, &changed, target, format, Path::new(results))?
        }
        _ => return Err("see the first lines of crates/gpulower-checks/src/measure.rs".into()),
    };
    println!("{json}");
    Ok(())
}

fn option(words: &mut Vec<String>, name: &str) -> Outcome<String> {
    let place = words
        .iter()
        .position(|word| word == name)
        .ok_or(format!("{name} DIR is needed"))?;
    words.remove(place);
    if place < words.len() {
        Ok(words.remove(place))
    } else {
        Err(format!("{name} needs a directory").into())
    }
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn warm(compiler: &Compiler, input: &str, target: &str, format: &str, rounds: &str) -> Outcome<serde_json::Value> {
    let source = fs::read(input)?;
    let targets = Target::parse_list(target)?;
    let emit: Emit = format.parse()?;
    let compile = || compiler.compile_source(input, &source, &targets, emit);
    let first = compile()?;
    for _ in 0..2 {
        compile()?;
    }
    let mut times = Vec::new();
    for _ in 0..rounds.parse::<u32>()? {
        let before = Instant::now();
        let again = compile()?;
        times.push(milliseconds(before.elapsed()));
        same(&first, &again)?;
    }
    Ok(serde_json::json!({ "milliseconds": times, "bytes": first.artifacts[0].bytes.len() }))
}

fn stages(compiler: &Compiler, input: &str, target: &str, format: &str, rounds: &str) -> Outcome<serde_json::Value> {
    let source = fs::read(input)?;
    let targets = Target::parse_list(target)?;
    let emit: Emit = format.parse()?;
    let mut times: BTreeMap<_, Vec<f64>> = BTreeMap::new();
    for round in 0..rounds.parse::<u32>()? + 3 {
        let before = Instant::now();
        let compilation = compiler.compile_source(input, &source, &targets, emit)?;
        let whole = milliseconds(before.elapsed());
        if round < 3 {
            continue;
        }
        let mut known = 0.0;
        for entry in compilation.artifacts.iter().flat_map(|artifact| &artifact.stages) {
            known += milliseconds(entry.time);
            times
                .entry((entry.stage as u32, entry.stage.name()))
                .or_default()
                .push(milliseconds(entry.time));
        }
        times
            .entry((u32::MAX, "everything else"))
            .or_default()
            .push(whole - known);
    }
    let medians: serde_json::Map<String, serde_json::Value> = times
        .into_iter()
        .map(|((_, name), mut values)| {
            values.sort_by(f64::total_cmp);
            (name.to_owned(), values[values.len() / 2].into())
        })
        .collect();
    Ok(medians.into())
}

/// The first inputs of a folder, by name.
fn inputs(folder: &Path, count: usize) -> Outcome<Vec<(String, Vec<u8>)>> {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder)?
        .map(|entry| Ok(entry?.path()))
        .collect::<Outcome<_>>()?;
    paths.sort();
    paths.truncate(count);
    if paths.len() < count {
        return Err(format!("{} holds {} inputs", folder.display(), paths.len()).into());
    }
    paths
        .into_iter()
        .map(|path| Ok((path.display().to_string(), fs::read(path)?)))
        .collect()
}

fn growth(
    builder: &dyn Fn() -> CompilerBuilder,
    inputs: &[(String, Vec<u8>)],
    changed: &[u8],
    target: &str,
    format: &str,
    results: &Path,
) -> Outcome<serde_json::Value> {
    let targets = Target::parse_list(target)?;
    let emit: Emit = format.parse()?;
    let measure = |compiler: &Compiler, inputs: &[(&str, &[u8])]| -> Outcome<(Compilation, serde_json::Value)> {
        let (before, processor) = (Instant::now(), processor_time()?);
        let compilation = compiler.compile_sources(inputs, &targets, emit)?;
        let time = before.elapsed();
        let measured = serde_json::json!({
            "milliseconds": milliseconds(time),
            "processor": milliseconds(processor_time()?.saturating_sub(processor)),
            "mebibytes": peak_mebibytes()?,
        });
        Ok((compilation, measured))
    };
    let all: Vec<(&str, &[u8])> = inputs.iter().map(|(name, bytes)| (name.as_str(), &bytes[..])).collect();
    let mut one_changed = all.clone();
    let middle = all.len() / 2;
    one_changed[middle].1 = changed;

    let plain = builder().build();
    // Loads what is loaded once.
    plain.compile_source("first.mlir", changed, &targets, emit)?;
    let (made, cold) = measure(&plain, &all)?;
    let kept = Cache::builder().directory(results).memory_bytes(1 << 30).build();
    let keeping = builder().cache(kept).build();
    keeping.compile_source(
        "first.mlir",
        br#"gpu.module @m { gpu.func @k() kernel { gpu.return } }"#,
        &targets,
        emit,
    )?;
    let (filled, filling) = measure(&keeping, &all)?;
    same(&made, &filled)?;
    let (known, memory) = measure(&keeping, &all)?;
    same(&made, &known)?;
    let on_disk = || {
        builder()
            .cache(Cache::builder().directory(results).memory_bytes(0).build())
            .build()
    };
    let (known, disk) = measure(&on_disk(), &all)?;
    same(&made, &known)?;
    let (_, with_one_changed) = measure(&on_disk(), &one_changed)?;
    let (_, alone) = measure(&plain, &[("changed.mlir", changed)])?;
    Ok(serde_json::json!({
        "cold": cold,
        "filling": filling,
        "memory": memory,
        "disk": disk,
        "changed": with_one_changed,
        "alone": alone,
    }))
}

/// What is compiled twice has to be the same.
fn same(one: &Compilation, other: &Compilation) -> Outcome<()> {
    let bytes = |compilation: &Compilation| -> Vec<Vec<u8>> {
        compilation
            .artifacts
            .iter()
            .map(|artifact| artifact.bytes.clone())
            .collect()
    };
    if bytes(one) == bytes(other) {
        Ok(())
    } else {
        Err("not the same bytes twice".into())
    }
}

/// Processor time of this process and of the children that it waited for, from `/proc/self/stat` (`man 5 proc`).
fn processor_time() -> Outcome<Duration> {
    /// Of x86-64 and AArch64 Linux: `sysconf(_SC_CLK_TCK)`.
    const TICKS_PER_SECOND: u64 = 100;
    let text = fs::read_to_string("/proc/self/stat")?;
    let (_, rest) = text.rsplit_once(')').ok_or("/proc/self/stat has no name")?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    // utime, stime, cutime and cstime are fields 14 to 17; the first of these is field 3.
    let ticks: u64 = fields
        .get(11..15)
        .ok_or("/proc/self/stat is short")?
        .iter()
        .map(|field| field.parse::<u64>())
        .sum::<Result<u64, _>>()?;
    Ok(Duration::from_millis(ticks * 1000 / TICKS_PER_SECOND))
}

/// The most memory that this process had, in MiB.
fn peak_mebibytes() -> Outcome<u64> {
    let text = fs::read_to_string("/proc/self/status")?;
    let line = text.lines().find(|line| line.starts_with("VmHWM:")).ok_or("no VmHWM")?;
    let kibibytes: u64 = line.split_whitespace().nth(1).ok_or("VmHWM is empty")?.parse()?;
    Ok(kibibytes / 1024)
}
