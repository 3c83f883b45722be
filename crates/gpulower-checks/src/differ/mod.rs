//! Wrong code is looked for: kernels at random, compiled with several settings, run, and compared bit for bit with an
//! interpretation of the kernel here, which knows nothing of MLIR and LLVM. `docs/lab/differential.md` says more.
//!
//! ```text
//! gpulower-checks differ gpu [--seed S] [--count N] [--batch N] [--threads N] [--settings A,B] [--each N]   on the first GPU
//!     [--seconds N] [--shrink N]    how long kernels are run, and how long what differs is made smaller: both are kept
//!     [--kernels A,B]               these alone, by the numbers that a report gives
//! gpulower-checks differ amd --target gfx942 [the same]             by the executor of AMD code, from `cargo xtask amd differ`
//! gpulower-checks differ host [the same]                             LLVM IR for NVIDIA, by the processor of this machine
//! gpulower-checks differ compile --target sm_90 [the same]           compiled and interpreted, not run
//! gpulower-checks differ print KERNEL                                one kernel as MLIR, by the number that a report gives
//! ```

mod device;
mod emit;
mod generate;
mod interpret;
mod kernel;
mod launch;
mod number;
mod shrink;

use std::collections::BTreeMap;
use std::error::Error;
use std::os::unix::process::CommandExt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use gpulower::{Compiler, Emit, Options, Target};

use self::device::{Cuda, Device, Executor};
use self::interpret::Machine;
use self::kernel::Kernel;
use self::launch::{Launch, difference, expected};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Options that have to make no difference.
#[derive(Debug)]
struct Setting {
    name: &'static str,
    options: &'static [(&'static str, &'static str)],
    /// For kernels alone in which no float is rounded.
    exact: bool,
    /// For kernels alone whose indices have 32 bits.
    narrow: bool,
    /// For kernels alone whose memrefs all have static shapes.
    fixed: bool,
    /// Lowered by `mlir-opt`, and refused where that refuses it.
    upstream: bool,
}

const PLAIN: Setting = Setting {
    name: "default",
    options: &[],
    exact: false,
    narrow: false,
    fixed: false,
    upstream: false,
};

const SETTINGS: &[Setting] = &[
    PLAIN,
    Setting {
        name: "O0",
        options: &[("O", "0")],
        ..PLAIN
    },
    Setting {
        name: "O1-interleave2",
        options: &[("O", "1"), ("interleave", "2")],
        ..PLAIN
    },
    Setting {
        name: "index32-interleave8",
        options: &[("index-bitwidth", "32"), ("interleave", "8")],
        narrow: true,
        ..PLAIN
    },
    Setting {
        name: "O2-no-contraction",
        options: &[("O", "2"), ("interleave", "1"), ("fp-contract", "off")],
        ..PLAIN
    },
    // They want memrefs of static shapes.
    Setting {
        name: "bare-pointers",
        options: &[("bare-pointers", "true")],
        fixed: true,
        ..PLAIN
    },
    Setting {
        name: "fast",
        options: &[("fast", "true")],
        exact: true,
        ..PLAIN
    },
    Setting {
        name: "speed-fast",
        options: &[("speed", "fast")],
        ..PLAIN
    },
    Setting {
        name: "mlir-opt",
        upstream: true,
        ..PLAIN
    },
];

/// What takes longer than this never ends: a batch, with one setting.
const ENDLESS: Duration = Duration::from_secs(90);

impl Setting {
    fn takes(&self, kernel: &Kernel) -> bool {
        (kernel.exact || !self.exact) && (kernel.narrow || !self.narrow) && (kernel.fixed || !self.fixed)
    }

    fn value(&self, name: &str) -> Option<&'static str> {
        self.options
            .iter()
            .find(|(option, _)| *option == name)
            .map(|(_, value)| *value)
    }

    fn machine(&self, subgroup: u32) -> Machine {
        Machine {
            index_bits: self.value("index-bitwidth").map_or(64, |_| 32),
            subgroup,
        }
    }

    fn launch(&self, kernel: &Kernel, number: usize, subgroup: u32) -> Launch {
        Launch::new(
            kernel,
            number,
            self.machine(subgroup),
            self.value("bare-pointers").is_some(),
        )
    }
}

/// What is asked for.
#[derive(Clone, Debug)]
struct Request {
    what: String,
    target: String,
    seed: u64,
    /// The first kernel and how many.
    first: u64,
    count: u64,
    batch: u64,
    threads: usize,
    seconds: u64,
    /// Seconds for making smaller what differs.
    shrink: u64,
    settings: Vec<&'static Setting>,
    /// How many of the settings each batch is compiled with: the first, and others in turn.
    each: usize,
    /// In the place of those of a seed.
    kernels: Vec<u64>,
}

pub fn main() -> Outcome<()> {
    let words: Vec<String> = std::env::args().skip(2).collect();
    if let [what, number] = &words[..]
        && what == "print"
    {
        let kernel = generate::from_seed(u64::from_str_radix(number.trim_start_matches("0x"), 16)?);
        print!("{}", emit::module(&[&kernel]));
        return Ok(());
    }
    let request = Request::read(&words)?;
    if request.what == "gpu" {
        println!("{}", Cuda::new()?.describe());
    }
    let search = Search::new(request)?;
    let found = search.run()?;
    search.resume()?;
    if found { Err("something differs".into()) } else { Ok(()) }
}

impl Request {
    fn read(words: &[String]) -> Outcome<Self> {
        let known = |what: &&String| ["gpu", "amd", "host", "compile"].contains(&what.as_str());
        let what = words.first().filter(known).cloned().ok_or(
            "differ gpu|amd|host|compile ... or differ print KERNEL: see the first lines of \
             crates/gpulower-checks/src/differ/mod.rs",
        )?;
        let option = |name: &str, default: &str| -> String {
            let place = words.iter().position(|word| word == name);
            place
                .and_then(|at| words.get(at + 1))
                .cloned()
                .unwrap_or_else(|| default.to_owned())
        };
        let threads = std::thread::available_parallelism().map_or(1, usize::from).to_string();
        let names = option("--settings", "");
        let settings: Vec<&Setting> = SETTINGS
            .iter()
            .filter(|setting| names.is_empty() || names.split(',').any(|name| name == setting.name))
            .filter(|setting| what == "host" || !setting.upstream)
            .collect();
        if settings.is_empty() {
            let all: Vec<&str> = SETTINGS.iter().map(|setting| setting.name).collect();
            return Err(format!("--settings takes some of {}", all.join(",")).into());
        }
        let kernels = option("--kernels", "");
        let kernels: Vec<u64> = kernels
            .split(',')
            .filter(|number| !number.is_empty())
            .map(|number| u64::from_str_radix(number.trim_start_matches("0x"), 16))
            .collect::<Result<_, _>>()?;
        let count = if kernels.is_empty() {
            "1000".to_owned()
        } else {
            kernels.len().to_string()
        };
        Ok(Self {
            target: option("--target", "sm_90"),
            seed: option("--seed", "1").parse()?,
            first: option("--first", "0").parse()?,
            count: option("--count", &count).parse()?,
            batch: option(
                "--batch",
                match what.as_str() {
                    "amd" => "8",
                    "host" => "10",
                    _ => "100",
                },
            )
            .parse()?,
            threads: option("--threads", &threads).parse()?,
            seconds: option("--seconds", "100000").parse()?,
            shrink: option("--shrink", "60").parse()?,
            each: option("--each", "100").parse()?,
            what,
            settings,
            kernels,
        })
    }
}

/// One kernel with one setting that did not do what it should.
#[derive(Debug)]
struct Found {
    kernel: u64,
    setting: &'static Setting,
    what: String,
}

/// What all threads share.
struct Search {
    request: Request,
    target: Target,
    subgroup: u32,
    compiler: Compiler,
    started: Instant,
    next: AtomicU64,
    /// The first kernel that nobody had begun with when the device was lost.
    reached: AtomicU64,
    kernels: AtomicU64,
    /// By setting.
    runs: Vec<AtomicU64>,
    /// What each thread does, and since when.
    now: Vec<Mutex<Option<(Instant, String)>>>,
    /// Nanoseconds of all threads: generating and interpreting, compiling, running.
    times: [AtomicU64; 3],
    differences: Mutex<Vec<Found>>,
    refusals: Mutex<BTreeMap<String, Vec<Found>>>,
    /// What ended the search before its end.
    lost: Mutex<Option<String>>,
}

impl Search {
    fn new(request: Request) -> Outcome<Self> {
        let target: Target = request.target.parse()?;
        let subgroup = if request.target.starts_with("gfx9") { 64 } else { 32 };
        Ok(Self {
            target,
            subgroup,
            compiler: Compiler::builder().environment().threads(1).build(),
            started: Instant::now(),
            next: AtomicU64::new(request.first),
            reached: AtomicU64::new(u64::MAX),
            kernels: AtomicU64::new(0),
            runs: request.settings.iter().map(|_| AtomicU64::new(0)).collect(),
            now: (0..request.threads).map(|_| Mutex::default()).collect(),
            times: [const { AtomicU64::new(0) }; 3],
            differences: Mutex::default(),
            refusals: Mutex::default(),
            lost: Mutex::default(),
            request,
        })
    }

    fn run(&self) -> Outcome<bool> {
        for now in &self.now {
            *lock(now) = Some((Instant::now(), "the beginning".to_owned()));
        }
        std::thread::scope(|scope| {
            for thread in 0..self.request.threads {
                scope.spawn(move || {
                    if let Err(error) = self.work(thread) {
                        self.lose(error.to_string());
                    }
                    *lock(&self.now[thread]) = None;
                });
            }
            scope.spawn(|| self.watch());
        });
        self.report();
        let differs = self.shrink_all();
        Ok(differs || lock(&self.lost).is_some())
    }

    /// The others stop as well.
    fn lose(&self, what: String) {
        let next = self.next.swap(u64::MAX / 2, Ordering::Relaxed);
        self.reached.fetch_min(next, Ordering::Relaxed);
        lock(&self.lost).get_or_insert(what);
    }

    /// Says how far the threads are, until they are done; what does not end is left, with this process.
    fn watch(&self) {
        let mut said = Instant::now();
        loop {
            std::thread::sleep(Duration::from_millis(200));
            let now: Vec<(Instant, String)> = self.now.iter().filter_map(|one| lock(one).clone()).collect();
            if now.is_empty() {
                return;
            }
            if said.elapsed() > Duration::from_secs(10) {
                said = Instant::now();
                println!("{}", self.counts());
            }
            if let Some((_, what)) = now.iter().find(|(since, _)| since.elapsed() > ENDLESS) {
                self.lose(format!("{what} does not end"));
                self.report();
                if let Err(error) = self.resume() {
                    println!("{error}");
                }
                std::process::exit(1);
            }
        }
    }

    fn counts(&self) -> String {
        let runs: Vec<String> = self
            .request
            .settings
            .iter()
            .zip(&self.runs)
            .map(|(setting, runs)| format!("{} {}", setting.name, runs.load(Ordering::Relaxed)))
            .collect();
        let refused: usize = lock(&self.refusals).values().map(Vec::len).sum();
        format!(
            "{:.0} s: {} kernels of seed {}; runs: {}; {refused} refused, {} different",
            self.started.elapsed().as_secs_f64(),
            self.kernels.load(Ordering::Relaxed),
            self.request.seed,
            runs.join(", "),
            lock(&self.differences).len()
        )
    }

    fn is_over(&self) -> bool {
        self.started.elapsed() > Duration::from_secs(self.request.seconds)
    }

    /// The settings that a batch is compiled with.
    fn settings_of(&self, batch: u64) -> Vec<&'static Setting> {
        let settings = &self.request.settings;
        let others = settings.len().saturating_sub(1);
        let more = self.request.each.saturating_sub(1).min(others);
        let turn = |number: usize| (batch as usize * more + number) % others.max(1) + 1;
        let some = (0..more).filter_map(|number| settings.get(turn(number)));
        settings.first().into_iter().chain(some).copied().collect()
    }

    /// Goes on behind the batch that lost the device, in the place of this process: nothing brings a device back in the same one.
    fn resume(&self) -> Outcome<()> {
        let (request, behind) = (&self.request, self.reached.load(Ordering::Relaxed));
        let (end, seconds) = (
            request.first + request.count,
            request.seconds.saturating_sub(self.started.elapsed().as_secs()),
        );
        if lock(&self.lost).is_none()
            || request.what != "gpu"
            || behind >= end
            || seconds == 0
            || behind == request.first
        {
            return Ok(());
        }
        println!("\nfrom kernel {behind} on in a new process; the batches that were on their way are not compared");
        let names: Vec<&str> = request.settings.iter().map(|setting| setting.name).collect();
        let mut command = std::process::Command::new(std::env::current_exe()?);
        command.args([
            "differ",
            "gpu",
            "--target",
            &request.target,
            "--settings",
            &names.join(","),
        ]);
        for (name, value) in [
            ("--seed", request.seed),
            ("--first", behind),
            ("--count", end - behind),
            ("--batch", request.batch),
            ("--threads", request.threads as u64),
            ("--each", request.each as u64),
            ("--shrink", request.shrink),
            ("--seconds", seconds),
        ] {
            command.args([name, &value.to_string()]);
        }
        if !request.kernels.is_empty() {
            let kernels: Vec<String> = request.kernels.iter().map(|number| format!("{number:x}")).collect();
            command.args(["--kernels", &kernels.join(",")]);
        }
        Err(command.exec().into())
    }

    fn device(&self) -> Outcome<Option<Box<dyn Device>>> {
        Ok(match self.request.what.as_str() {
            "gpu" => Some(Box::new(Cuda::new()?)),
            "amd" => Some(Box::new(Executor::new(&self.request.target, "DIFFER_AMD")?)),
            "host" => Some(Box::new(Executor::new(&self.request.target, "DIFFER_HOST")?)),
            _ => None,
        })
    }

    /// Batch after batch, on one thread.
    fn work(&self, thread: usize) -> Outcome<()> {
        let mut device = self.device()?;
        let end = self.request.first + self.request.count;
        loop {
            let first = self.next.fetch_add(self.request.batch, Ordering::Relaxed);
            if first >= end || self.is_over() {
                return Ok(());
            }
            let kernels: Vec<Kernel> = (first..end.min(first + self.request.batch))
                .map(|number| match self.request.kernels.get(number as usize) {
                    Some(&kernel) => generate::from_seed(kernel),
                    None => generate::kernel(self.request.seed, number),
                })
                .collect();
            let kernels: Vec<&Kernel> = kernels.iter().collect();
            for setting in self.settings_of(first / self.request.batch) {
                if self.is_over() {
                    return Ok(());
                }
                *lock(&self.now[thread]) = Some((Instant::now(), format!("batch {first} with {}", setting.name)));
                let some: Vec<&Kernel> = kernels.iter().copied().filter(|kernel| setting.takes(kernel)).collect();
                self.batch(&some, setting, &mut device)
                    .map_err(|error| format!("batch {first}: {error}"))?;
            }
            self.kernels.fetch_add(kernels.len() as u64, Ordering::Relaxed);
        }
    }

    fn timed<T>(&self, which: usize, work: impl FnOnce() -> T) -> T {
        let before = Instant::now();
        let made = work();
        self.times[which].fetch_add(before.elapsed().as_nanos() as u64, Ordering::Relaxed);
        made
    }

    fn batch(
        &self,
        kernels: &[&Kernel],
        setting: &'static Setting,
        device: &mut Option<Box<dyn Device>>,
    ) -> Outcome<()> {
        let Some(&one) = kernels.first() else { return Ok(()) };
        match self.timed(1, || self.compile(kernels, setting)) {
            Ok(image) => {
                for (kernel, what) in kernels.iter().zip(self.compare(kernels, &image, setting, device)?) {
                    if let Some(what) = what {
                        println!("differs {:#018x} {}: {what}", kernel.seed, setting.name);
                        lock(&self.differences).push(Found {
                            kernel: kernel.seed,
                            setting,
                            what,
                        });
                    }
                }
                Ok(())
            }
            Err(what) if kernels.len() == 1 => {
                let found = Found {
                    kernel: one.seed,
                    setting,
                    what,
                };
                lock(&self.refusals)
                    .entry(kind_of(&found.what))
                    .or_default()
                    .push(found);
                Ok(())
            }
            // Some of them are refused: all but those are run.
            Err(_) => {
                let (left, right) = kernels.split_at(kernels.len() / 2);
                self.batch(left, setting, device)?;
                self.batch(right, setting, device)
            }
        }
    }

    fn compile(&self, kernels: &[&Kernel], setting: &Setting) -> Result<Vec<u8>, String> {
        let mut options = Options::default();
        for (name, value) in setting.options {
            options.set(name, value).map_err(|error| error.to_string())?;
        }
        let emit = match self.request.what.as_str() {
            "host" => Emit::Llvm,
            _ if self.request.target.starts_with("gfx") => Emit::Hsaco,
            _ => Emit::Cubin,
        };
        let source = emit::module(kernels);
        if setting.upstream {
            return device::lower_by_upstream(&source).map_err(|error| error.to_string());
        }
        let made = self.compiler.with_options(options).compile_source(
            "differ.mlir",
            source.as_bytes(),
            &[self.target][..],
            emit,
        );
        let artifacts = made.map_err(|failure| failure.to_string())?.artifacts;
        Ok(artifacts.into_iter().next().ok_or("nothing was made")?.bytes)
    }

    /// What differs, of each kernel.
    fn compare(
        &self,
        kernels: &[&Kernel],
        image: &[u8],
        setting: &Setting,
        device: &mut Option<Box<dyn Device>>,
    ) -> Outcome<Vec<Option<String>>> {
        let numbered = kernels.iter().enumerate();
        let (launches, wanted) = self.timed(0, || {
            let launches: Vec<Launch> = numbered
                .map(|(number, kernel)| setting.launch(kernel, number, self.subgroup))
                .collect();
            let machine = setting.machine(self.subgroup);
            let wanted: Vec<_> = kernels.iter().map(|kernel| expected(kernel, machine)).collect();
            (launches, wanted)
        });
        let Some(device) = device else { return Ok(Vec::new()) };
        let ran = self.timed(2, || device.run(image, &launches));
        let ran = ran.map_err(|error| format!("{} ({} kernels): {error}", setting.name, kernels.len()))?;
        if let Some(at) = self.request.settings.iter().position(|one| one.name == setting.name) {
            self.runs[at].fetch_add(ran.len() as u64, Ordering::Relaxed);
        }
        let all = kernels.iter().zip(&wanted).zip(ran);
        Ok(all
            .map(|((kernel, wanted), ran)| match ran {
                Ok(found) => difference(kernel, wanted, &found),
                Err(trap) => Some(trap),
            })
            .collect())
    }

    fn report(&self) {
        let [interpreting, compiling, running] =
            [0, 1, 2].map(|at| self.times[at].load(Ordering::Relaxed) as f64 / 1e9);
        println!(
            "{}; of all threads {interpreting:.1} s interpreting, {compiling:.1} s compiling, {running:.1} s running",
            self.counts()
        );
        for (what, found) in lock(&self.refusals).iter() {
            println!(
                "refused {} times, such as {:#018x} {}: {what}",
                found.len(),
                found[0].kernel,
                found[0].setting.name
            );
        }
        if let Some(what) = &*lock(&self.lost) {
            println!("LOST: {what}");
        }
        println!("{} differences", lock(&self.differences).len());
    }

    /// The first differences of each setting, made small and printed.
    fn shrink_all(&self) -> bool {
        const MOST: usize = 6;
        const TRIES: usize = 600;
        let found = std::mem::take(&mut *lock(&self.differences));
        let mut chosen: Vec<&Found> = Vec::new();
        for one in &found {
            if chosen.iter().all(|other| other.kernel != one.kernel) && chosen.len() < MOST {
                chosen.push(one);
            }
        }
        let mut device = match self.device() {
            Ok(device) if lock(&self.lost).is_none() => device,
            _ => return !found.is_empty(),
        };
        let until = Instant::now() + Duration::from_secs(self.request.shrink);
        for one in chosen {
            let kernel = generate::from_seed(one.kernel);
            let mut last = one.what.clone();
            let mut differs = |candidate: &Kernel, setting: &'static Setting| -> Option<String> {
                let image = self.compile(&[candidate], setting).ok()?;
                let mut compared = self.compare(&[candidate], &image, setting, &mut device).ok()?;
                compared.pop().flatten()
            };
            // Another fault shows with another setting as well: what is right now with one of them stays right.
            let right = SETTINGS.iter().find(|setting| {
                (self.request.what == "host" || !setting.upstream)
                    && setting.takes(&kernel)
                    && setting.name != one.setting.name
                    && differs(&kernel, setting).is_none()
            });
            let small = shrink::shrink(&kernel, TRIES, &mut |candidate| {
                if Instant::now() > until {
                    return false;
                }
                let Some(what) = differs(candidate, one.setting) else {
                    return false;
                };
                let same = right.is_none_or(|right| differs(candidate, right).is_none());
                if same {
                    last = what;
                }
                same
            });
            println!(
                "\n// {:#018x} {}{}: {last}\n{}",
                one.kernel,
                one.setting.name,
                right.map_or(String::new(), |right| format!(" (not {})", right.name)),
                emit::module(&[&small])
            );
        }
        for (what, all) in lock(&self.refusals).iter().take(MOST) {
            let small = shrink::shrink(&generate::from_seed(all[0].kernel), TRIES, &mut |candidate| {
                Instant::now() <= until
                    && self
                        .compile(&[candidate], all[0].setting)
                        .is_err_and(|message| kind_of(&message) == *what)
            });
            println!("\n// {}: {what}\n{}", all[0].setting.name, emit::module(&[&small]));
        }
        !found.is_empty()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// A message without places and numbers.
fn kind_of(what: &str) -> String {
    let line = what.lines().next().unwrap_or_default();
    line.chars()
        .map(|letter| if letter.is_ascii_digit() { '#' } else { letter })
        .collect::<String>()
        .replace("##", "#")
        .replace("##", "#")
}
