//! How time grows with the input: families of inputs at four sizes each, and the exponents.
//!
//! ```sh
//! cargo run --release -p gpulower-checks -- growth                        # all families, PTX, cubin and hsaco
//! cargo run --release -p gpulower-checks -- growth --only loops --target sm_90:cubin
//! cargo run --release -p gpulower-checks -- growth --write FOLDER         # the inputs, as files
//! ```
//!
//! Time is that of the processor, of this process, on one thread, so that a busy machine changes little. "Ours" is
//! everything but LLVM's stages (`optimize`, `code-gen`, `link-object`) and NVIDIA's (`ptx-to-cubin`); MLIR's passes are
//! part of it. The exponent is the slope of a line through the logarithms of the four times, each less the time of an
//! empty kernel.

mod families;

use std::{
    collections::BTreeMap,
    env,
    error::Error,
    fs,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use gpulower::{Compiler, Emit, Progress, Search, Stage, Target, Toolkit, toolkit::cache_directory};
use rustix::time::{ClockId, clock_gettime};

use self::families::{FAMILIES, Family};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Sizes of a family: the first, and each twice the one before.
const SIZES: usize = 4;

/// A size that takes longer than this is the last of its family.
const LONGEST: Duration = Duration::from_secs(120);

/// What a kernel of no size costs is measured with this.
const EMPTY: &str = "gpu.module @m { gpu.func @k() kernel { gpu.return } }";

const USAGE: &str = "usage: growth [--only WORD] [--target TARGET:FORMAT] [--rounds N] [--write FOLDER]";

pub fn main() -> Outcome<()> {
    let mut targets = vec!["sm_90:cubin".to_owned(), "gfx942:hsaco".to_owned()];
    let (mut only, mut rounds) = (String::new(), 3);
    let mut arguments = env::args().skip(2);
    while let Some(name) = arguments.next() {
        let value = arguments.next().ok_or(USAGE)?;
        match name.as_str() {
            "--only" => only = value,
            "--target" => targets = vec![value],
            "--rounds" => rounds = value.parse()?,
            "--write" => return write(Path::new(&value)),
            _ => return Err(USAGE.into()),
        }
    }
    println!("| family | target | sizes | ours, ms | exponent | LLVM, ms | exponent | NVIDIA, ms | exponent |");
    println!("|---|---|---|---|---|---|---|---|---|");
    for family in FAMILIES.iter().filter(|family| family.name.contains(&only)) {
        for target in &targets {
            let (target, emit) = target.split_once(':').ok_or(USAGE)?;
            let target: Target = target.parse()?;
            let is_nvidia = matches!(target, Target::Nvidia(_));
            if is_nvidia || !family.nvidia_only {
                grow(family, target, emit.parse()?, rounds)?;
            }
        }
    }
    Ok(())
}

fn write(folder: &Path) -> Outcome<()> {
    fs::create_dir_all(folder)?;
    for family in FAMILIES {
        for size in sizes(family) {
            let text = (family.make)(size);
            fs::write(
                folder.join(format!("{}-{size}", family.name.replace([' ', ','], "-"))),
                text,
            )?;
        }
    }
    Ok(())
}

fn sizes(family: &Family) -> impl Iterator<Item = usize> {
    (0..SIZES).map(|step| family.first << step)
}

/// Who the time of a stage belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Owner {
    Ours,
    Llvm,
    Nvidia,
}

const OWNERS: [Owner; 3] = [Owner::Ours, Owner::Llvm, Owner::Nvidia];

const fn owner(stage: Stage) -> Owner {
    match stage {
        Stage::Optimize | Stage::CodeGen | Stage::LinkObject => Owner::Llvm,
        Stage::PtxToCubin => Owner::Nvidia,
        _ => Owner::Ours,
    }
}

type Times = BTreeMap<Owner, Duration>;

fn grow(family: &Family, target: Target, emit: Emit, rounds: u32) -> Outcome<()> {
    let empty = if family.nvidia_only {
        Times::new()
    } else {
        best(EMPTY, target, emit, rounds)?
    };
    let mut times: Vec<(usize, Times)> = Vec::new();
    let mut refusal = None;
    for size in sizes(family) {
        match best(&(family.make)(size), target, emit, rounds) {
            Ok(found) => {
                let is_long = found.values().sum::<Duration>() > LONGEST;
                times.push((size, found));
                if is_long {
                    break;
                }
            }
            Err(error) => {
                refusal = Some(format!("{size}: {error}"));
                break;
            }
        }
    }
    let shown: Vec<String> = times.iter().map(|(size, _)| size.to_string()).collect();
    let mut row = format!("| {} | {target} | {} |", family.name, shown.join(" "));
    for owner in OWNERS {
        let of = |times: &Times| times.get(&owner).map_or(0.0, Duration::as_secs_f64) * 1e3;
        let column: Vec<String> = times.iter().map(|(_, times)| format!("{:.0}", of(times))).collect();
        let points: Vec<(f64, f64)> = times
            .iter()
            .map(|(size, times)| (*size as f64, of(times) - of(&empty)))
            .collect();
        let slope = exponent(&points).map_or("-".to_owned(), |slope| format!("{slope:.2}"));
        row.push_str(&format!(" {} | {slope} |", column.join(" ")));
    }
    println!("{row}");
    if let Some(refusal) = refusal {
        println!("\n{}, {target}: refused at {refusal}\n", family.name);
    }
    Ok(())
}

/// The slope of the line through the logarithms. `None` where the times are too short to say.
fn exponent(points: &[(f64, f64)]) -> Option<f64> {
    const SHORTEST: f64 = 4.0;
    let logarithms: Vec<(f64, f64)> = points
        .iter()
        .filter(|(_, time)| *time > SHORTEST)
        .map(|(size, time)| (size.ln(), time.ln()))
        .collect();
    if logarithms.len() < 2 {
        return None;
    }
    let count = logarithms.len() as f64;
    let mean = |part: fn(&(f64, f64)) -> f64| logarithms.iter().map(part).sum::<f64>() / count;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let above: f64 = logarithms.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    let below: f64 = logarithms.iter().map(|point| (point.0 - x).powi(2)).sum();
    Some(above / below)
}

/// The least of some rounds, for each owner.
fn best(source: &str, target: Target, emit: Emit, rounds: u32) -> Outcome<Times> {
    let mut least = measure(source, target, emit)?;
    let mut spent = least.values().sum::<Duration>();
    for _ in 1..rounds {
        if spent > LONGEST / 10 {
            break;
        }
        for (owner, time) in measure(source, target, emit)? {
            spent += time;
            least
                .entry(owner)
                .and_modify(|least| *least = time.min(*least))
                .or_insert(time);
        }
    }
    Ok(least)
}

fn measure(source: &str, target: Target, emit: Emit) -> Outcome<Times> {
    struct Clock {
        times: Times,
        owner: Owner,
        since: Duration,
    }
    let clock = Arc::new(Mutex::new(Clock {
        times: Times::new(),
        owner: Owner::Ours,
        since: processor_time(),
    }));
    let enter = |clock: &Mutex<Clock>, next: Owner| {
        let mut clock = clock.lock().unwrap_or_else(PoisonError::into_inner);
        let now = processor_time();
        let (last, time) = (clock.owner, now.saturating_sub(clock.since));
        *clock.times.entry(last).or_default() += time;
        (clock.owner, clock.since) = (next, now);
    };
    let shared = Arc::clone(&clock);
    let mut compiler = Compiler::builder()
        .toolkit(Toolkit::discover(&Search::from_variables(|name| env::var_os(name))))
        .threads(1)
        .progress(Arc::new(move |progress| match progress {
            Progress::Stage { stage, .. } => enter(&shared, owner(*stage)),
            Progress::Finished { .. } => enter(&shared, Owner::Ours),
            _ => {}
        }));
    if let Some(folder) = cache_directory(|name| env::var_os(name)) {
        compiler = compiler.cache_directory(folder);
    }
    let compiler = compiler.build();
    compiler.compile_source("input", source.as_bytes(), &[target], emit)?;
    drop(compiler);
    enter(&clock, Owner::Ours);
    let times = std::mem::take(&mut clock.lock().unwrap_or_else(PoisonError::into_inner).times);
    Ok(times)
}

fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exponent_is_the_slope_of_logarithms() {
        let points = |power: f64| [10.0, 20.0, 40.0, 80.0].map(|size: f64| (size, 100.0 * size.powf(power)));
        for power in [1.0, 2.0, 3.0] {
            let found = exponent(&points(power)).expect("long enough");
            assert!((found - power).abs() < 1e-9, "{found} for {power}");
        }
        assert_eq!(exponent(&[(1.0, 0.1), (2.0, 0.2)]), None);
    }
}
