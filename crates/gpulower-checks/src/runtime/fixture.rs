//! What the checks share: a device with a context, images, random numbers.

use std::error::Error;
use std::path::{Path, PathBuf};

use gpulower::runtime::{Arguments, Context, DeviceBuffer, Driver, Function, LaunchShape, LoadOptions, Module, Stream};

use crate::gpu_checks::Random;
pub use crate::gpu_checks::{ONE, Outcome, launch};

/// A check, and what it is called.
pub type Check = (&'static str, fn(&Gpu) -> Outcome);

/// The kernels as text.
pub const PLAIN: &str = include_str!("plain.ptx");
/// Those that need clusters.
pub const CLUSTER: &str = include_str!("cluster.ptx");

/// What `cargo xtask gpu make` made.
#[derive(Clone)]
pub struct Images {
    /// `plain.ptx` for the GPU's chip.
    pub plain: Vec<u8>,
    /// `plain.ptx` for a chip that the GPU is not.
    pub other: Vec<u8>,
    /// `examples/saxpy.mlir` for the GPU's chip, as gpulower compiles it.
    pub saxpy: Vec<u8>,
    /// `strided.mlir` likewise.
    pub strided: Vec<u8>,
}

impl Images {
    /// Reads the images.
    pub fn read(directory: &Path) -> Result<Self, String> {
        let read = |name: &str| {
            let path = directory.join(name);
            std::fs::read(&path)
                .map_err(|error| format!("{}: {error}; `cargo xtask gpu make` makes it", path.display(),))
        };
        Ok(Self {
            plain: read("plain.cubin")?,
            other: read("other.cubin")?,
            saxpy: read("saxpy.cubin")?,
            strided: read("strided.cubin")?,
        })
    }
}

/// The device that is checked.
pub struct Gpu {
    /// Its primary context.
    pub context: Context,
    /// A stream in it.
    pub stream: Stream,
    /// The images.
    pub images: Images,
    /// Where they are.
    pub directory: PathBuf,
    random: Random,
}

impl Gpu {
    /// The first device of CUDA's driver.
    pub fn new(images: Images, directory: PathBuf) -> Result<Self, Box<dyn Error>> {
        let context = Driver::cuda()?.device(0)?.context()?;
        Ok(Self {
            stream: context.stream()?,
            context,
            images,
            directory,
            random: Random::new()?,
        })
    }

    /// What is checked, in a line.
    pub fn describe(&self) -> String {
        let device = self.context.device();
        let driver = device.driver();
        let (major, minor) = driver.version();
        format!(
            "{}, {}, driver {} for CUDA {major}.{minor}, seed {}",
            device.name().unwrap_or_else(|error| error.to_string()),
            device
                .target()
                .map_or_else(|error| error.to_string(), |target| target.to_string()),
            driver.path().display(),
            self.random.seed()
        )
    }

    /// A random number.
    pub fn random(&self) -> u64 {
        self.random.next()
    }

    /// Random numbers between -1 and 1.
    pub fn floats(&self, count: usize) -> Vec<f32> {
        (0..count)
            .map(|_| self.random() as i32 as f32 / i32::MAX as f32)
            .collect()
    }

    /// The plain kernels, as machine code.
    pub fn plain(&self) -> Result<Module, Box<dyn Error>> {
        Ok(Module::load(
            &self.context,
            "plain.cubin",
            &self.images.plain,
            &LoadOptions::default(),
        )?)
    }

    /// A buffer with these contents.
    pub fn buffer<T: bytemuck::NoUninit>(&self, data: &[T]) -> Result<DeviceBuffer, Box<dyn Error>> {
        let buffer = self.context.allocate(size_of_val(data))?;
        buffer.upload(data, &self.stream)?;
        Ok(buffer)
    }

    /// Launches saxpy on random vectors of `count` elements, and compares every element.
    pub fn saxpy(&self, function: &Function, count: usize) -> Result<(), Box<dyn Error>> {
        let (a, x, y) = (self.floats(1)[0], self.floats(count), self.floats(count));
        let (on_x, on_y) = (self.buffer(&x)?, self.buffer(&y)?);
        let mut arguments = Arguments::new();
        arguments.value(a).buffer(&on_x).buffer(&on_y).value(count as u32);
        launch(
            function,
            &LaunchShape::linear(count as u32, 256),
            &arguments,
            &self.stream,
        )?;
        let mut result = vec![f32::NAN; count];
        on_y.download(&mut result, &self.stream)?;
        for (index, found) in result.iter().enumerate() {
            let expected = a.mul_add(x[index], y[index]);
            ensure!(
                found.to_bits() == expected.to_bits(),
                "element {index} of {count}: {found} instead of {expected}"
            );
        }
        Ok(())
    }
}

/// One warp.
pub const WARP: LaunchShape = LaunchShape::new([1, 1, 1], [32, 1, 1]);
