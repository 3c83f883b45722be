//! What the checks share: a device with a context, a compiler, random numbers.

use std::cell::Cell;
use std::error::Error;
use std::sync::Arc;

use gpulower::runtime::{Arguments, Context, Driver, Function, LaunchShape, MemRef, Stream};
use gpulower::session::JitSession;
use gpulower::{Compiler, Options, Search, Toolkit};

/// What a check found out, in a few words; or what is wrong.
pub type Outcome = Result<String, Box<dyn Error>>;

/// A check, and what it is called.
pub type Check = (&'static str, fn(&Gpu) -> Outcome);

/// Ends a check unless something holds.
#[macro_export]
macro_rules! ensure {
    ($condition:expr, $($text:tt)*) => {
        if !$condition {
            return Err(format!($($text)*).into());
        }
    };
}

/// One thread.
pub const ONE: LaunchShape = LaunchShape::new([1, 1, 1], [1, 1, 1]);

/// The device that is checked.
pub struct Gpu {
    /// Its primary context.
    pub context: Context,
    /// A stream in it.
    pub stream: Stream,
    /// What compiles, with the default options.
    pub compiler: Arc<Compiler>,
    toolkit: Toolkit,
    random: Cell<u64>,
}

impl Gpu {
    /// The first device of CUDA's driver.
    pub fn new() -> Result<Self, Box<dyn Error>> {
        let context = Driver::cuda()?.device(0)?.context()?;
        let clock = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?;
        let toolkit = Toolkit::discover(&Search::from_variables(|name| std::env::var_os(name)));
        Ok(Self {
            stream: context.stream()?,
            compiler: Arc::new(Compiler::builder().toolkit(toolkit.clone()).build()),
            context,
            toolkit,
            random: Cell::new(clock.as_nanos() as u64 | 1),
        })
    }

    /// What is checked, in a line.
    pub fn describe(&self) -> String {
        let device = self.context.device();
        let (major, minor) = device.driver().version();
        format!(
            "{}, {}, driver for CUDA {major}.{minor}, ptxas {}, seed {}",
            device.name().unwrap_or_else(|error| error.to_string()),
            device
                .target()
                .map_or_else(|error| error.to_string(), |target| target.to_string()),
            self.toolkit
                .require_ptxas()
                .map_or_else(|error| error.to_string(), |path| path.display().to_string()),
            self.random.get()
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
        // xorshift64.
        let mut next = self.random.get();
        next ^= next << 13;
        next ^= next >> 7;
        next ^= next << 17;
        self.random.set(next);
        next
    }

    /// A random number between -1 and 1, and not 0.
    pub fn float(&self) -> f32 {
        ((self.random() as i32) | 1) as f32 / i32::MAX as f32
    }

    /// Launches a kernel of [`kernels::scale`](crate::kernels::scale) on random numbers, and compares all that it writes.
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

/// Checks a launch, and enqueues it.
pub fn launch(
    function: &Function,
    shape: &LaunchShape,
    arguments: &Arguments,
    stream: &Stream,
) -> Result<(), Box<dyn Error>> {
    let launch = function.launch(shape, arguments)?;
    // SAFETY: the kernels of this program stay within the buffers that its checks give them, which live until the results are
    // read; those that do not are given addresses that are no memory at all.
    unsafe { launch.enqueue(stream) }?;
    Ok(())
}

/// A message without its line breaks.
pub fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
