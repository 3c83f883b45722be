//! Why a kernel is not launched.

use crate::bridge::driver::DriverError;
use gpulower_image::image::resource::Parameter;

/// Why a launch is refused, before or by the driver.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// More or fewer arguments than the kernel has parameters.
    #[error("kernel {kernel} takes {}, and {given} {} given{}", counted(.wanted), are(*.given), memref_hint(.wanted.len(), *.given))]
    ArgumentCount {
        /// The kernel.
        kernel: String,
        /// Bytes of each parameter.
        wanted: Vec<u32>,
        /// The number of arguments.
        given: usize,
    },
    /// An argument of another size than the parameter.
    #[error(
        "kernel {kernel}: argument {index} has {given} bytes, and the parameter{} has {}",
        described(.parameter), .parameter.size
    )]
    ArgumentSize {
        /// The kernel.
        kernel: String,
        /// The argument, from 0.
        index: usize,
        /// The parameter.
        parameter: Parameter,
        /// Bytes of the argument.
        given: usize,
    },
    /// Nothing along a dimension of the grid or of a block.
    #[error("kernel {kernel}: {what} of {}: every dimension is 1 or more", shape(*.given))]
    Nothing {
        /// The kernel.
        kernel: String,
        /// "a grid", "a block" or "a cluster".
        what: &'static str,
        /// The shape.
        given: [u32; 3],
    },
    /// The grid is larger than the device takes.
    #[error("kernel {kernel}: a grid of {} blocks: the device takes at most {}{}", shape(*.given), shape(*.limit), threads_hint(*.threads))]
    Grid {
        /// The kernel.
        kernel: String,
        /// The grid.
        given: [u32; 3],
        /// Most blocks along each dimension.
        limit: [u32; 3],
        /// Most threads along a dimension, if it is that which is too much.
        threads: Option<u64>,
    },
    /// The block is larger than the device takes.
    #[error("kernel {kernel}: a block of {} threads: the device takes at most {} along the dimensions, and {threads} in all", shape(*.given), shape(*.limit))]
    Block {
        /// The kernel.
        kernel: String,
        /// The block.
        given: [u32; 3],
        /// Most threads along each dimension.
        limit: [u32; 3],
        /// Most threads in all.
        threads: u32,
    },
    /// The block has more threads than the kernel was compiled for, or than there are registers for.
    #[error(
        "kernel {kernel}: a block of {} threads, {threads} in all: the kernel runs with at most {limit}, {}",
        shape(*.given),
        match .compiled_for {
            Some(threads) => format!("for it was compiled for blocks of up to {threads} threads (known_block_size in MLIR)"),
            None => format!("for each thread uses {registers} registers"),
        }
    )]
    Threads {
        /// The kernel.
        kernel: String,
        /// The block.
        given: [u32; 3],
        /// Its threads.
        threads: u64,
        /// Most threads of a block.
        limit: u32,
        /// The number that it was compiled for, if that is the reason.
        compiled_for: Option<u32>,
        /// Registers per thread.
        registers: u32,
    },
    /// The kernel requires another shape of block.
    #[error("kernel {kernel}: a block of {} threads: the kernel was compiled for blocks of exactly {} (known_block_size in MLIR)", shape(*.given), shape(*.required))]
    RequiredBlock {
        /// The kernel.
        kernel: String,
        /// The block.
        given: [u32; 3],
        /// What it requires.
        required: [u32; 3],
    },
    /// More shared memory than a block can have.
    #[error(
        "kernel {kernel}: {dynamic} bytes of dynamic shared memory: at most {most} are left of the {limit} that the device has for \
         a block, beside {declared} that the kernel declares"
    )]
    SharedMemory {
        /// The kernel.
        kernel: String,
        /// Bytes that the launch asks for.
        dynamic: u32,
        /// Bytes that it may ask for at most.
        most: u32,
        /// Bytes that the kernel declares.
        declared: u32,
        /// Bytes that a block can have.
        limit: u32,
    },
    /// The device has no clusters.
    #[error(
        "kernel {kernel}: the device has no clusters of thread blocks: they take one of compute capability 9.0 or later"
    )]
    NoClusters {
        /// The kernel.
        kernel: String,
    },
    /// The kernel requires another shape of cluster.
    #[error("kernel {kernel}: clusters of {} blocks: the kernel was compiled for clusters of exactly {}", shape(*.given), shape(*.required))]
    RequiredCluster {
        /// The kernel.
        kernel: String,
        /// The cluster.
        given: [u32; 3],
        /// What it requires.
        required: [u32; 3],
    },
    /// The cluster has too many blocks.
    #[error("kernel {kernel}: clusters of {} blocks, {blocks} in all: {}", shape(*.given), cluster_limit(*.limit, *.compiled_for))]
    Cluster {
        /// The kernel.
        kernel: String,
        /// The cluster.
        given: [u32; 3],
        /// Its blocks.
        blocks: u64,
        /// Most blocks of a cluster.
        limit: u32,
        /// Whether the kernel sets that limit, and not the devices.
        compiled_for: bool,
    },
    /// The grid does not consist of whole clusters.
    #[error("kernel {kernel}: a grid of {} blocks is not made of whole clusters of {}", shape(*.grid), shape(*.cluster))]
    PartOfCluster {
        /// The kernel.
        kernel: String,
        /// The grid.
        grid: [u32; 3],
        /// The cluster.
        cluster: [u32; 3],
    },
    /// Not one cluster fits on the device.
    #[error(
        "kernel {kernel}: not one cluster of {} blocks fits on the device with {threads} threads and {dynamic} bytes of dynamic \
         shared memory for each block: ask for less of either, or for smaller clusters",
        shape(*.cluster)
    )]
    ClusterDoesNotFit {
        /// The kernel.
        kernel: String,
        /// The cluster.
        cluster: [u32; 3],
        /// Threads of a block.
        threads: u64,
        /// Bytes of dynamic shared memory of a block.
        dynamic: u32,
    },
    /// The device cannot run kernels whose blocks wait for each other.
    #[error("kernel {kernel}: the device runs no kernels whose blocks wait for each other (cooperative launches)")]
    NotCooperative {
        /// The kernel.
        kernel: String,
    },
    /// Blocks that wait for each other do not fit on the device together.
    #[error(
        "kernel {kernel}: {blocks} blocks that wait for each other: {fit} fit on the device together, {} on each of its {} \
         multiprocessors",
        .per_multiprocessor, .multiprocessors
    )]
    TooManyTogether {
        /// The kernel.
        kernel: String,
        /// Blocks of the grid.
        blocks: u64,
        /// Blocks that fit together.
        fit: u64,
        /// Blocks that fit on one multiprocessor.
        per_multiprocessor: u32,
        /// Multiprocessors of the device.
        multiprocessors: u32,
    },
    /// The driver failed.
    #[error(transparent)]
    Driver(#[from] DriverError),
}

/// `32 x 8 x 1`.
fn shape([x, y, z]: [u32; 3]) -> String {
    format!("{x} x {y} x {z}")
}

/// `no arguments`, `one argument, of 4 bytes`, `3 arguments, of 4, 8 and 8 bytes`.
fn counted(sizes: &[u32]) -> String {
    match sizes {
        [] => "no arguments".to_owned(),
        [size] => format!("one argument, of {size} bytes"),
        [most @ .., last] => {
            let most: Vec<String> = most.iter().map(ToString::to_string).collect();
            format!("{} arguments, of {} and {last} bytes", sizes.len(), most.join(", "))
        }
    }
}

const fn are(count: usize) -> &'static str {
    if count == 1 { "is" } else { "are" }
}

/// Fewer arguments than parameters are often memrefs that were taken for pointers.
const fn memref_hint(wanted: usize, given: usize) -> &'static str {
    if wanted > given + 1 {
        "; a memref of MLIR counts as 3 + 2 * rank arguments (Arguments::memref), or as one where the kernel was compiled with \
         bare pointers"
    } else {
        ""
    }
}

/// ` (u32 k_param_1)`, as far as the image says.
fn described(parameter: &Parameter) -> String {
    match (parameter.kind.as_deref(), parameter.name.as_deref()) {
        (None, None) => String::new(),
        (kind, name) => {
            let words: Vec<&str> = kind.into_iter().chain(name).collect();
            format!(" ({})", words.join(" "))
        }
    }
}

fn threads_hint(threads: Option<u64>) -> String {
    threads.map_or_else(String::new, |threads| {
        format!(", and {threads} threads along a dimension")
    })
}

fn cluster_limit(limit: u32, compiled_for: bool) -> String {
    if compiled_for {
        format!("the kernel was compiled for clusters of up to {limit}")
    } else {
        format!("no device has clusters of more than {limit}")
    }
}
