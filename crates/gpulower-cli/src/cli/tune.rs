//! `gpulower tune`: the options with which a kernel is fastest on the GPU of this machine, by measurement.

use std::path::PathBuf;

use clap::Args;
use gpulower::{
    Compiler, Emit, Options, Target,
    image::resource::KernelResources,
    options::Speed,
    runtime::{Arguments as Values, Context, DeviceBuffer, Driver, Function, LaunchShape, LoadOptions, MemRef, Stream},
    shell_quoted,
};

use super::{
    Failed,
    cache::CacheOptions,
    environment,
    flags::Flags,
    input,
    message::{self, Problem},
    table,
    tune_argument::Argument,
    write::OneOutput,
};

/// A variant has to be so much faster than balanced to be preferred.
const WORTH_IT: f64 = 0.99;
/// How long a round of one variant takes, in seconds.
const ROUND: f64 = 0.5e-3;

/// Compile a kernel in several ways, launch each on the GPU of this machine, and say which options are fastest.
///
/// Every variant has to give what balanced gives: its result is compared first. Without a GPU, gpulower compile --speed=best
/// chooses by a model.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The kernel's file: MLIR, LLVM IR or PTX; - for the standard input
    input: PathBuf,
    /// The kernel, where there are several
    #[arg(short, long, value_name = "NAME")]
    kernel: Option<String>,
    /// Blocks of the grid: X, X,Y or X,Y,Z
    #[arg(long, value_name = "X[,Y[,Z]]", value_parser = shape)]
    grid: [u32; 3],
    /// Threads of a block
    #[arg(long, value_name = "X[,Y[,Z]]", value_parser = shape)]
    block: [u32; 3],
    /// An argument of the kernel, in order: f32=2.5, i32=7, index=1024 for a number; 1024x64xf32 for a memref with numbers
    /// from -1 to 1 (integers: 0), 4096xi32=0..63 for one with numbers from that range; *1024xf32 for a bare pointer
    #[arg(long = "arg", value_name = "ARGUMENT", allow_hyphen_values = true)]
    arguments: Vec<Argument>,
    /// Bytes of dynamic shared memory of a block
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    dynamic_shared: u32,
    /// Turns that each variant is measured
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rounds: u32,
    /// What to compile for, such as sm_90 [default: the device, with all that its chip has]
    #[arg(short, long, value_name = "TARGET")]
    target: Option<Target>,
    /// The device, counted from 0
    #[arg(long, value_name = "N", default_value_t = 0)]
    device: u32,
    /// Write the options of the fastest to this file, for gpulower compile @FILE
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Link what is needed of a library of bitcode or LLVM IR into the kernels; may be repeated
    #[arg(short, long = "link", value_name = "FILE")]
    libraries: Vec<PathBuf>,
    #[command(flatten)]
    flags: Flags,
    #[command(flatten)]
    cache: CacheOptions,
    #[command(flatten)]
    toolkits: environment::Toolkits,
}

const EXAMPLES: &str = "\
Example:
  gpulower tune examples/reduction.mlir --grid 1056 --block 256 --arg 67108864xf32 --arg 1xf32";

fn shape(text: &str) -> Result<[u32; 3], String> {
    let mut shape = [1; 3];
    let words: Vec<&str> = text.split([',', 'x']).collect();
    let parsed = words
        .iter()
        .map(|word| word.parse::<u32>().ok().filter(|size| *size > 0));
    match parsed.collect::<Option<Vec<u32>>>() {
        Some(sizes) if sizes.len() <= 3 => {
            for (place, size) in shape.iter_mut().zip(sizes) {
                *place = size;
            }
            Ok(shape)
        }
        _ => Err("expected one to three numbers above 0, such as 1056 or 32,32".to_owned()),
    }
}

/// A way to compile, and what became of it.
struct Variant {
    /// As options of the command line.
    name: String,
    options: Options,
}

struct Loaded {
    name: String,
    resources: KernelResources,
    function: Function,
    /// Microseconds of each round.
    times: Vec<f64>,
    is_right: bool,
}

/// Measures, and prints the table.
pub fn run(arguments: &Arguments) -> Result<(), Failed> {
    let name = arguments.input.to_string_lossy().into_owned();
    let bytes = input::read(&arguments.input)?;
    let output = arguments.output.as_deref();
    let output = output.map(|path| OneOutput::new(path, &[&arguments.input], true));
    let output = output.transpose()?;
    let context = arguments.context()?;
    let target = match arguments.target {
        Some(target) => target,
        None => own_target(&context)?,
    };
    let base = Options {
        speed: Speed::Balanced,
        ..arguments.flags.with_libraries(&arguments.libraries)
    };
    let builder = environment::compiler(
        base.clone(),
        arguments.toolkits.toolkit()?,
        &arguments.toolkits,
        &arguments.cache,
        None,
    )?;
    let compiler = builder.build();
    let work = Work {
        arguments,
        name: &name,
        bytes: &bytes,
        target,
        compiler: &compiler,
        context: &context,
    };
    let mut variants = vec![work.load(&Variant {
        name: "--speed=balanced".to_owned(),
        options: base.clone(),
    })?];
    let registers = variants
        .first()
        .and_then(|variant| variant.resources.registers.or(variant.resources.vgprs));
    for variant in others(&base, registers.unwrap_or(0)) {
        match work.load(&variant) {
            Ok(loaded) => variants.push(loaded),
            Err(Failed::Problems(_)) => message::line(&format!("note: {} does not compile", variant.name)),
            Err(failed) => return Err(failed),
        }
    }
    let stream = context.stream().map_err(driver)?;
    work.check(&mut variants, &stream)?;
    work.measure(&mut variants, &stream)?;
    super::finish_cache(compiler.cache());
    let winner = report(&variants, target, arguments, &given(arguments))?;
    match output {
        Some(output) => output.write(format!("{winner}\n").as_bytes()),
        None => Ok(()),
    }
}

/// The options that were given, as words of a command line: what was measured had them.
fn given(arguments: &Arguments) -> String {
    let pairs = arguments.flags.0.to_pairs().into_iter();
    let options = pairs
        .filter(|(name, _)| *name != "speed")
        .map(|(name, value)| match name {
            "O" => format!("-O{value}"),
            name => format!("--{name}={value}"),
        });
    let libraries = arguments.libraries.iter();
    let libraries = libraries.map(|library| format!("--link={}", library.display()));
    options.chain(libraries).map(|word| shell_quoted(&word) + " ").collect()
}

fn driver(error: impl ToString) -> Failed {
    Problem::run(error.to_string()).into()
}

fn own_target(context: &Context) -> Result<Target, Failed> {
    let device = context.device().target().map_err(driver)?;
    device.own_target().ok_or_else(|| {
        driver(format!(
            "{device} is newer than the tables; name a target with --target"
        ))
    })
}

/// The variants beside balanced: what is stated stays.
fn others(base: &Options, registers: u32) -> Vec<Variant> {
    let mut variants = Vec::new();
    for factor in [1, 2, 4, 8].into_iter().filter(|_| base.interleave.is_none()) {
        variants.push(Variant {
            name: format!("--interleave={factor}"),
            options: Options {
                interleave: Some(factor),
                ..base.clone()
            },
        });
    }
    // Bounds with which more blocks of 128 and of 256 threads are at work.
    let steps = [128, 96, 80, 64, 48, 40, 32]
        .into_iter()
        .filter(|step| *step < registers);
    for bound in steps.filter(|_| base.max_registers.is_none()).take(2) {
        variants.push(Variant {
            name: format!("--max-registers={bound}"),
            options: Options {
                max_registers: Some(bound),
                ..base.clone()
            },
        });
    }
    variants
}

impl Arguments {
    fn context(&self) -> Result<Context, Failed> {
        let found = Driver::cuda().or_else(|cuda| Driver::hip().map_err(|hip| format!("{cuda}; {hip}")));
        let context = found.and_then(|driver| {
            let device = driver.device(self.device).map_err(|error| error.to_string())?;
            device.context().map_err(|error| error.to_string())
        });
        context.map_err(|error| {
            driver(format!(
                "tuning needs a GPU: {error}\n  Without one, gpulower compile --speed=best chooses by a model."
            ))
        })
    }
}

struct Work<'a> {
    arguments: &'a Arguments,
    name: &'a str,
    bytes: &'a [u8],
    target: Target,
    compiler: &'a Compiler,
    context: &'a Context,
}

impl Work<'_> {
    /// Compiles and loads a variant.
    fn load(&self, variant: &Variant) -> Result<Loaded, Failed> {
        let compiler = self.compiler.with_options(variant.options.clone());
        let compiled = compiler.compile_source(self.name, self.bytes, &[self.target], Emit::Binary);
        let compiled = compiled.map_err(|failure| {
            Failed::Problems(
                failure
                    .errors
                    .iter()
                    .map(|error| Problem::of(error, self.name))
                    .collect(),
            )
        })?;
        let of_artifact = |artifact: &gpulower::Artifact| -> Vec<KernelResources> {
            artifact
                .images
                .iter()
                .flat_map(|image| image.kernels.iter().cloned())
                .collect()
        };
        let kernels: Vec<_> = compiled
            .artifacts
            .iter()
            .flat_map(|artifact| of_artifact(artifact).into_iter().map(move |kernel| (artifact, kernel)))
            .collect();
        let wanted = |kernel: &KernelResources| self.arguments.kernel.as_ref().is_none_or(|name| *name == kernel.name);
        let mut fitting = kernels.iter().filter(|(_, kernel)| wanted(kernel));
        let (Some((artifact, resources)), None) = (fitting.next(), fitting.next()) else {
            let names: Vec<&str> = kernels.iter().map(|(_, kernel)| kernel.name.as_str()).collect();
            return Err(Failed::Usage(format!(
                "name one kernel with --kernel: {}",
                names.join(", ")
            )));
        };
        let module = artifact.load(self.context, &LoadOptions::default()).map_err(driver)?;
        Ok(Loaded {
            name: variant.name.clone(),
            function: module.function(&resources.name).map_err(driver)?,
            resources: resources.clone(),
            times: Vec::new(),
            is_right: true,
        })
    }

    fn buffers(&self) -> Result<Vec<Option<DeviceBuffer>>, Failed> {
        let buffer = |argument: &Argument| argument.bytes().map(|bytes| self.context.allocate(bytes)).transpose();
        let buffers = self.arguments.arguments.iter().map(buffer);
        buffers.collect::<Result<_, _>>().map_err(driver)
    }

    fn fill(&self, buffers: &[Option<DeviceBuffer>], stream: &Stream) -> Result<(), Failed> {
        for (number, (argument, buffer)) in self.arguments.arguments.iter().zip(buffers).enumerate() {
            if let Some(buffer) = buffer {
                buffer
                    .upload(&argument.contents(number as u64), stream)
                    .map_err(driver)?;
            }
        }
        Ok(())
    }

    fn values(&self, buffers: &[Option<DeviceBuffer>]) -> Values {
        let bits = self.arguments.flags.0.index_bitwidth;
        let mut values = Values::new();
        for (argument, buffer) in self.arguments.arguments.iter().zip(buffers) {
            match (argument, buffer) {
                (Argument::Number { .. }, _) | (_, None) => {
                    values.raw(&argument.number(bits));
                }
                (Argument::Memory { sizes, is_bare, .. }, Some(buffer)) => {
                    let memref = MemRef::contiguous(buffer.address(), sizes).with_index_bits(bits);
                    match *is_bare || self.arguments.flags.0.bare_pointers {
                        true => values.bare_memref(&memref),
                        false => values.memref(&memref),
                    };
                }
            }
        }
        values
    }

    fn launch(&self, variant: &Loaded, values: &Values, stream: &Stream) -> Result<(), Failed> {
        let shape = LaunchShape::new(self.arguments.grid, self.arguments.block);
        let shape = shape.with_dynamic_shared(self.arguments.dynamic_shared);
        let launch = variant.function.launch(&shape, values).map_err(driver)?;
        // SAFETY: whoever types the command says what the kernel's arguments are; the buffers live until the stream is done.
        #[allow(unsafe_code, reason = "launching what the user names is what the command is for")]
        unsafe { launch.enqueue(stream) }.map_err(driver)
    }

    /// Compares what each variant makes of the same memory with what the first one does.
    fn check(&self, variants: &mut [Loaded], stream: &Stream) -> Result<(), Failed> {
        let buffers = self.buffers()?;
        let values = self.values(&buffers);
        let mut expected: Option<Vec<Vec<u8>>> = None;
        for variant in variants {
            self.fill(&buffers, stream)?;
            self.launch(variant, &values, stream)?;
            let mut results = Vec::new();
            for buffer in buffers.iter().flatten() {
                let mut bytes = vec![0u8; buffer.bytes()];
                buffer.download(&mut bytes, stream).map_err(driver)?;
                results.push(bytes);
            }
            stream.synchronize().map_err(driver)?;
            let memory = self
                .arguments
                .arguments
                .iter()
                .filter(|argument| argument.bytes().is_some());
            match &expected {
                None => expected = Some(results),
                Some(expected) => {
                    let mut each = memory.zip(expected.iter().zip(&results));
                    variant.is_right = each.all(|(argument, (one, other))| argument.is_like(one, other));
                }
            }
        }
        Ok(())
    }

    /// Times the variants in turn, each round with as many launches as take about half a millisecond.
    fn measure(&self, variants: &mut [Loaded], stream: &Stream) -> Result<(), Failed> {
        let buffers = self.buffers()?;
        let values = self.values(&buffers);
        self.fill(&buffers, stream)?;
        let (start, end) = (
            self.context.timing_event().map_err(driver)?,
            self.context.timing_event().map_err(driver)?,
        );
        let time = |variant: &Loaded, launches: u32| -> Result<f64, Failed> {
            start.record(stream).map_err(driver)?;
            for _ in 0..launches {
                self.launch(variant, &values, stream)?;
            }
            end.record(stream).map_err(driver)?;
            end.synchronize().map_err(driver)?;
            Ok(end.since(&start).map_err(driver)?.as_secs_f64() / f64::from(launches))
        };
        let Some(first) = variants.first() else { return Ok(()) };
        time(first, 1)?;
        let once = time(first, 1)?.min(time(first, 1)?).max(1e-7);
        let launches = (ROUND / once).clamp(1.0, 100.0) as u32;
        for round in 0..=self.arguments.rounds {
            for variant in &mut *variants {
                let seconds = time(variant, launches)?;
                // The first round warms up.
                if round > 0 {
                    variant.times.push(seconds * 1e6);
                }
            }
        }
        Ok(())
    }
}

/// Prints the table; the options of the fastest.
fn report(variants: &[Loaded], target: Target, arguments: &Arguments, given: &str) -> Result<String, Failed> {
    let Some(base) = variants.first() else {
        return Ok(String::new());
    };
    // Within a round, so that what changes with time does not count.
    let ratio = |variant: &Loaded| median(variant.times.iter().zip(&base.times).map(|(one, other)| one / other));
    let mut rows = vec![
        ["options", "registers", "spills", "us", "of balanced", "result"]
            .map(str::to_owned)
            .to_vec(),
    ];
    for variant in variants {
        let kernel = &variant.resources;
        let spills = kernel.spill_store_bytes.or(kernel.spilled_vgprs).unwrap_or(0);
        rows.push(vec![
            variant.name.clone(),
            kernel.registers.or(kernel.vgprs).unwrap_or(0).to_string(),
            spills.to_string(),
            format!("{:.2}", median(variant.times.iter().copied())),
            format!("{:.3}", ratio(variant)),
            if variant.is_right { "same" } else { "DIFFERS" }.to_owned(),
        ]);
    }
    let right = variants.iter().skip(1).filter(|variant| variant.is_right);
    let fastest = right.min_by(|one, other| ratio(one).total_cmp(&ratio(other)));
    let winner = fastest.filter(|variant| ratio(variant) <= WORTH_IT).unwrap_or(base);
    let options = format!("{given}{}", winner.name);
    let text = format!(
        "{}\ngpulower compile {} --target {target} {options}\n",
        table::aligned(rows, 1),
        shell_quoted(&arguments.input.to_string_lossy()),
    );
    super::to_stdout(text.as_bytes())?;
    Ok(options)
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
