//! What the checks share: a device with a context, a compiler, random numbers.

use std::cell::Cell;
use std::error::Error;
use std::sync::Arc;

use gpulower::runtime::{Arguments, Context, Driver, Function, LaunchShape, MemRef, Stream};
use gpulower::session::JitSession;
use gpulower::target::Vendor;
use gpulower::{Compiler, Options, Search, Toolkit};

use crate::gpu_checks::Random;
pub use crate::gpu_checks::{ONE, Outcome, launch};

/// A check, and what it is called.
pub type Check = (&'static str, fn(&Gpu) -> Outcome);

/// The device that is checked.
pub struct Gpu {
    /// Its primary context.
    pub context: Context,
    /// A stream in it.
    pub stream: Stream,
    /// What compiles, with the default options.
    pub compiler: Arc<Compiler>,
    toolkit: Toolkit,
    random: Random,
    /// How many [factors](Self::factor) there were.
    factors: Cell<u32>,
}

impl Gpu {
    /// The first device of the vendor's driver.
    pub fn new(vendor: Vendor) -> Result<Self, Box<dyn Error>> {
        let context = Driver::load(vendor)?.device(0)?.context()?;
        let toolkit = Toolkit::discover(&Search::from_variables(|name| std::env::var_os(name)));
        Ok(Self {
            stream: context.stream()?,
            compiler: Arc::new(Compiler::builder().toolkit(toolkit.clone()).build()),
            context,
            toolkit,
            random: Random::new()?,
            factors: Cell::new(0),
        })
    }

    /// What is checked, in a line.
    pub fn describe(&self) -> String {
        let device = self.context.device();
        let (major, minor) = device.driver().version();
        format!(
            "{}, {}, driver of {major}.{minor}, ptxas {}, seed {}",
            device.name().unwrap_or_else(|error| error.to_string()),
            device
                .target()
                .map_or_else(|error| error.to_string(), |target| target.to_string()),
            self.toolkit
                .require(gpulower::toolkit::PartKind::Ptxas)
                .map_or_else(|error| error.to_string(), |path| path.display().to_string()),
            self.random.seed()
        )
    }

    /// A compiler with other options.
    pub fn compiler(&self, options: Options) -> Compiler {
        Compiler::builder()
            .options(options)
            .toolkit(self.toolkit.clone())
            .build()
    }

    /// A session with the defaults, in the primary context.
    pub fn session(&self) -> Result<JitSession, Box<dyn Error>> {
        Ok(JitSession::new(Arc::clone(&self.compiler), &self.context)?)
    }

    /// A random number.
    pub fn random(&self) -> u64 {
        self.random.next()
    }

    /// A random number between -1 and 1, and not 0.
    pub fn float(&self) -> f32 {
        ((self.random() as i32) | 1) as f32 / i32::MAX as f32
    }

    /// A number that no kernel was made with before: of 10,000 random ones, two may be the same, and a session compiles one of them.
    pub fn factor(&self) -> f32 {
        let number = self.factors.get() + 1;
        self.factors.set(number);
        // Exact below 2^24.
        number as f32 / 4096.0
    }

    /// Launches a kernel of [`kernels::scale`](super::kernels::scale) on random numbers, and compares all that it writes.
    pub fn check_scale(&self, function: &Function, factor: f32, count: usize) -> Result<(), Box<dyn Error>> {
        let x: Vec<f32> = (0..count).map(|_| self.float()).collect();
        check_scale(&self.context, &self.stream, function, factor, &x)
    }
}

/// As [`Gpu::check_scale`], from any thread. The output and what lies around it is poisoned before.
pub fn check_scale(
    context: &Context,
    stream: &Stream,
    function: &Function,
    factor: f32,
    x: &[f32],
) -> Result<(), Box<dyn Error>> {
    const GUARD: usize = 64;
    const POISON: u32 = 0x7fc0_dead;
    let count = x.len();
    let input = context.allocate(size_of_val(x))?;
    input.upload(x, stream)?;
    let output = context.allocate(4 * (count + 2 * GUARD))?;
    output.all().fill(POISON, stream)?;
    let part = output.slice(4 * GUARD..4 * (GUARD + count))?;
    let mut arguments = Arguments::new();
    arguments
        .memref(&MemRef::of::<f32>(&input, &[count as i64])?)
        .memref(&MemRef::contiguous(part.address(), &[count as i64]));
    launch(function, &LaunchShape::linear(count as u32, 128), &arguments, stream)?;
    let mut found = vec![0u32; count + 2 * GUARD];
    output.download(&mut found, stream)?;
    for (index, bits) in found.iter().enumerate() {
        let inside = index.checked_sub(GUARD).and_then(|index| x.get(index));
        let expected = inside.map_or(POISON, |value| (value * factor).to_bits());
        ensure!(
            *bits == expected,
            "word {index}, {GUARD} before {count} elements: {bits:#x} instead of {expected:#x}"
        );
    }
    Ok(())
}

/// A message without its line breaks.
pub fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
