//! Launches: a kernel with its arguments into a stream.

use std::ffi::{c_uint, c_void};
use std::fmt;
use std::ptr;

use super::error::DriverError;
use super::functions::{LaunchAttribute, LaunchConfiguration};
use super::library::Own;
use super::module::EntryPoint;
use super::stream::Stream;

/// `CU_LAUNCH_ATTRIBUTE_COOPERATIVE`.
const COOPERATIVE: c_uint = 2;
/// `CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION`.
const CLUSTER_DIMENSION: c_uint = 4;

/// Most arguments of which the addresses are put on the stack. Kernels with more are rare.
const FEW: usize = 64;

/// Numbers of blocks, of threads and of bytes of a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct LaunchShape {
    /// Blocks of the grid along each dimension.
    pub grid: [u32; 3],
    /// Threads of a block along each dimension.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory of a block.
    pub dynamic_shared: u32,
    /// Blocks of a cluster along each dimension, where the launch sets that and not the kernel.
    pub cluster: Option<[u32; 3]>,
    /// Whether the kernel waits for all blocks of its grid.
    pub cooperative: bool,
}

impl LaunchShape {
    /// A grid of blocks, without anything else.
    #[must_use]
    pub const fn new(grid: [u32; 3], block: [u32; 3]) -> Self {
        Self {
            grid,
            block,
            dynamic_shared: 0,
            cluster: None,
            cooperative: false,
        }
    }

    /// Blocks of `block` threads along one dimension, as many as it takes for `count` threads; one at least.
    #[must_use]
    pub const fn linear(count: u32, block: u32) -> Self {
        let blocks = if block == 0 { 1 } else { count.div_ceil(block) };
        let blocks = if blocks == 0 { 1 } else { blocks };
        Self::new([blocks, 1, 1], [block, 1, 1])
    }

    /// The same with so many bytes of dynamic shared memory.
    #[must_use]
    pub const fn with_dynamic_shared(mut self, bytes: u32) -> Self {
        self.dynamic_shared = bytes;
        self
    }

    /// The same in clusters of so many blocks along each dimension.
    #[must_use]
    pub const fn with_cluster(mut self, blocks: [u32; 3]) -> Self {
        self.cluster = Some(blocks);
        self
    }

    /// The same for a kernel whose blocks wait for each other.
    #[must_use]
    pub const fn with_cooperation(mut self) -> Self {
        self.cooperative = true;
        self
    }
}

/// The bytes of one argument.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ArgumentBytes<'a>(pub &'a [u8]);

/// A kernel with a shape and arguments that fit it.
#[must_use = "nothing runs before it is enqueued"]
pub struct Launch<'a> {
    entry: &'a EntryPoint,
    shape: LaunchShape,
    arguments: Addresses<'a>,
}

/// The address of each argument, as drivers take them.
struct Addresses<'a> {
    few: [*mut c_void; FEW],
    many: Vec<*mut c_void>,
    /// Keeps what the addresses are of.
    _of: std::marker::PhantomData<&'a [u8]>,
}

impl<'a> Addresses<'a> {
    fn of(arguments: impl ExactSizeIterator<Item = ArgumentBytes<'a>>) -> Self {
        let mut addresses = Self {
            few: [ptr::null_mut(); FEW],
            many: Vec::new(),
            _of: std::marker::PhantomData,
        };
        // Drivers only read through them.
        let address = |argument: ArgumentBytes<'a>| argument.0.as_ptr().cast_mut().cast::<c_void>();
        if arguments.len() > FEW {
            addresses.many = arguments.map(address).collect();
        } else {
            for (place, argument) in addresses.few.iter_mut().zip(arguments) {
                *place = address(argument);
            }
        }
        addresses
    }

    fn as_mut_ptr(&mut self) -> *mut *mut c_void {
        match self.many.is_empty() {
            true => self.few.as_mut_ptr(),
            false => self.many.as_mut_ptr(),
        }
    }
}

impl<'a> Launch<'a> {
    /// Puts a launch together, which the caller has checked: shape and arguments fit the kernel and the device.
    pub(crate) fn new(
        entry: &'a EntryPoint,
        shape: LaunchShape,
        arguments: impl ExactSizeIterator<Item = ArgumentBytes<'a>>,
    ) -> Self {
        Self {
            entry,
            shape,
            arguments: Addresses::of(arguments),
        }
    }

    /// Enqueues the launch, and does not wait. The arguments are copied before this returns; what their pointers lead to is
    /// used when the kernel runs.
    ///
    /// # Errors
    ///
    /// [`DriverError`]. What goes wrong while the kernel runs is reported by a later call in the context, at the latest when
    /// the stream is [synchronized](Stream::synchronize).
    ///
    /// # Safety
    ///
    /// A kernel does what its code says with the addresses that it is given. The caller vouches that it stays within memory
    /// that it may use, that this memory lives until the kernel is done, and that nothing else uses it meanwhile in a way
    /// that conflicts; and, of a kernel whose image does not say its parameters (`KernelInterface::parameters` is `None`), that
    /// the arguments are those. An address that is no memory of the device's ends the context; but one of pinned host memory, or on
    /// machines where devices reach all memory any address of the process, is memory of this program.
    pub unsafe fn enqueue(mut self, stream: &Stream) -> Result<(), DriverError> {
        let call = "launching a kernel";
        let context = self.entry.context();
        if !stream.context().is(context) {
            return Err(DriverError::OtherContext {
                call,
                first: "the kernel",
                second: "the stream",
            });
        }
        let entered = context.enter(call)?;
        let functions = entered.functions();
        let shape = self.shape;
        let ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]) = (shape.grid, shape.block);
        let (function, parameters) = (self.entry.raw(), self.arguments.as_mut_ptr());
        let unsupported = |what, needs| DriverError::Unsupported {
            vendor: entered.vendor(),
            what,
            needs,
        };
        if shape.cluster.is_some() {
            let launch = match entered.own() {
                Own::Cuda(cuda) => cuda.launch_extended,
                Own::Hip(..) => None,
            };
            let launch = launch
                .ok_or_else(|| unsupported("launch clusters", "that takes CUDA 11.8 and a device of 9.0 or later"))?;
            let mut attributes = attributes(&shape);
            let configuration = configuration(&shape, stream.raw(), &mut attributes);
            // SAFETY: the configuration and its attributes live until the call returns; otherwise as below.
            return entered.check(unsafe { launch(&raw const configuration, function, parameters, ptr::null_mut()) });
        }
        let code = if shape.cooperative {
            let launch = functions.launch_cooperative.ok_or_else(|| {
                unsupported(
                    "launch kernels whose blocks wait for each other",
                    "that takes ROCm 5.5 or later",
                )
            })?;
            // SAFETY: as below.
            unsafe {
                launch(
                    function,
                    grid_x,
                    grid_y,
                    grid_z,
                    block_x,
                    block_y,
                    block_z,
                    shape.dynamic_shared,
                    stream.raw(),
                    parameters,
                )
            }
        } else {
            // SAFETY: function and stream live, and their context is current; there is an address for each parameter, of as many
            // bytes as the kernel's code says (the maker of the value checked that where the image says it, else the caller
            // vouches for it), and what the kernel does with them the
            // caller vouches for.
            unsafe {
                (functions.launch)(
                    function,
                    grid_x,
                    grid_y,
                    grid_z,
                    block_x,
                    block_y,
                    block_z,
                    shape.dynamic_shared,
                    stream.raw(),
                    parameters,
                    ptr::null_mut(),
                )
            }
        };
        entered.check(code)
    }
}

impl EntryPoint {
    /// How many clusters of such a launch fit on the device at once; 0 if not even one does.
    ///
    /// # Errors
    ///
    /// [`DriverError`].
    pub(crate) fn clusters_that_fit(&self, shape: &LaunchShape) -> Result<u32, DriverError> {
        let mut attributes = attributes(shape);
        self.clusters_on_device(&configuration(shape, ptr::null_mut(), &mut attributes))
    }
}

/// The attributes of a launch: those that are set come first.
fn attributes(shape: &LaunchShape) -> Vec<LaunchAttribute> {
    let mut attributes = Vec::with_capacity(2);
    let mut add = |id, numbers: &[c_uint]| {
        let mut value = [0; 16];
        for (place, number) in value.iter_mut().zip(numbers) {
            *place = *number;
        }
        attributes.push(LaunchAttribute { id, padding: 0, value });
    };
    if let Some(cluster) = shape.cluster {
        add(CLUSTER_DIMENSION, &cluster);
    }
    if shape.cooperative {
        add(COOPERATIVE, &[1]);
    }
    attributes
}

fn configuration(shape: &LaunchShape, stream: *mut c_void, attributes: &mut [LaunchAttribute]) -> LaunchConfiguration {
    LaunchConfiguration {
        grid: shape.grid,
        block: shape.block,
        shared_bytes: shape.dynamic_shared,
        stream,
        attribute_count: attributes.len() as c_uint,
        attributes: attributes.as_mut_ptr(),
    }
}

impl fmt::Debug for Launch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Launch")
            .field("entry", &self.entry)
            .field("shape", &self.shape)
            .finish_non_exhaustive()
    }
}
