//! What goes wrong with images and modules.

use gpulower_image::{ReadError, nearest};

use crate::bridge::driver::{DriverError, JitLog};

/// Why nothing was loaded, or why there is no such kernel.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ModuleError {
    /// The bytes are no image, and no container of images.
    #[error("{name} cannot be loaded: {source}")]
    Unreadable {
        /// What the bytes are called.
        name: String,
        /// What they are instead.
        source: ReadError,
    },
    /// An artifact is of a form that a compiler takes, and no driver.
    #[error(
        "{name} is {title}, which no driver loads: compile to machine code (Emit::Binary), or to a container (Emit::Fatbin, \
         Emit::Bundle, Emit::Offload)"
    )]
    NotMachineCode {
        /// The artifact.
        name: String,
        /// Its format.
        title: &'static str,
    },
    /// There is no image in it.
    #[error("{name} has no image for a GPU in it")]
    Empty {
        /// What the bytes are called.
        name: String,
    },
    /// What is in it has to be linked first.
    #[error(
        "{name} holds the input of a link, which no driver loads: link it first (`gpulower link`, or \
         serialize::device_link::link)"
    )]
    LinkFirst {
        /// What the bytes are called.
        name: String,
    },
    /// More than one module in it loads.
    #[error(
        "{name} holds {} modules that {device} loads ({}): take one of them out (`gpulower extract`), and load each on its own",
        .modules.len(), .modules.join("; ")
    )]
    Several {
        /// What the bytes are called.
        name: String,
        /// The device.
        device: String,
        /// Where each module is.
        modules: Vec<String>,
    },
    /// Nothing in it fits the device.
    #[error("nothing in {name} loads on {device}: {error} ({code}){}{}", reasons_text(.reasons), advice(.device, .code))]
    NothingFits {
        /// What the bytes are called.
        name: String,
        /// The device: `9.0`, `gfx90a:xnack+`.
        device: String,
        /// The driver's name for it.
        error: &'static str,
        /// The driver's number.
        code: u32,
        /// What is against each image.
        reasons: Vec<String>,
    },
    /// What the device would load is damaged, or all there is.
    #[error("{name} is damaged, and nothing in it loads on {device}:{}", reasons_text(.problems))]
    Damaged {
        /// What the bytes are called.
        name: String,
        /// The device.
        device: String,
        /// What is wrong, and where.
        problems: Vec<String>,
    },
    /// PTX fits, and is not allowed.
    #[error(
        "only {image} of {name} fits {device}, and the driver is not allowed to compile PTX (PtxFallback::Refused): compile \
         machine code for the device, or allow it"
    )]
    PtxRefused {
        /// What the bytes are called.
        name: String,
        /// The device.
        device: String,
        /// The PTX.
        image: String,
    },
    /// The driver's compiler refused the PTX.
    #[error(
        "the driver does not compile {image} of {name}: {source}{}{}",
        jit_advice(.source), log_lines(&.log.errors)
    )]
    Jit {
        /// What the bytes are called.
        name: String,
        /// The PTX.
        image: String,
        /// What the compiler said.
        log: Box<JitLog>,
        /// What the driver returned.
        source: Box<DriverError>,
    },
    /// The driver refused the machine code.
    #[error("the driver does not load {image} of {name}: {source}")]
    Refused {
        /// What the bytes are called.
        name: String,
        /// The image.
        image: String,
        /// What the driver returned.
        source: Box<DriverError>,
    },
    /// There is no such kernel.
    #[error("{module} has no kernel {kernel:?}{}", kernels_text(.kernels, .kernel))]
    NoSuchKernel {
        /// The module.
        module: String,
        /// The name that was asked for.
        kernel: String,
        /// The kernels that there are.
        kernels: Vec<String>,
    },
    /// The image has the kernel, and the driver left it out.
    #[error(
        "the driver left kernel {kernel:?} of {module} out: it needs a symbol that the module does not define; link it first \
         (`gpulower link`)"
    )]
    KernelLeftOut {
        /// The module.
        module: String,
        /// The kernel.
        kernel: String,
    },
    /// There is no such variable.
    #[error(
        "{module} has no global variable {variable:?} that a host can see: it has to be visible outside of its module"
    )]
    NoSuchVariable {
        /// The module.
        module: String,
        /// The name that was asked for.
        variable: String,
    },
    /// The driver failed.
    #[error(transparent)]
    Driver(#[from] DriverError),
}

/// What is known to stand in the compiler's way.
fn jit_advice(error: &DriverError) -> &'static str {
    match error.status().map(|status| status.code) {
        Some(221) => {
            "\nThe compiler is libnvidia-ptxjitcompiler.so.1, which comes with NVIDIA's driver; containers get it with \
             NVIDIA_DRIVER_CAPABILITIES=compute,utility"
        }
        Some(223) => "\nThe variable CUDA_DISABLE_PTX_JIT forbids it",
        Some(209) => "\nThe variable CUDA_DISABLE_PTX_JIT, if set, forbids it",
        _ => "",
    }
}

fn log_lines(log: &str) -> String {
    log.lines().map(|line| format!("\n  {line}")).collect()
}

fn kernels_text(kernels: &[String], wanted: &str) -> String {
    /// Names beyond these do not help.
    const MOST: usize = 8;
    if kernels.is_empty() {
        return ": it has none at all".to_owned();
    }
    if let Some(near) = nearest(wanted, kernels.iter().map(String::as_str)).first() {
        return format!(": did you mean {near}?");
    }
    let listed = kernels.get(..kernels.len().min(MOST)).unwrap_or_default().join(", ");
    match kernels.len().checked_sub(MOST).filter(|&more| more > 0) {
        None => format!(": it has {listed}"),
        Some(more) => format!(": it has {listed} and {more} more"),
    }
}

fn reasons_text(reasons: &[String]) -> String {
    reasons.iter().map(|reason| format!("\n  {reason}")).collect()
}

/// What to do about an image that does not fit.
fn advice(device: &str, code: &u32) -> String {
    let target = match device.split_once('.') {
        Some((major, minor)) => format!("sm_{major}{minor}"),
        None => device.to_owned(),
    };
    match code {
        209 | 218 => format!("\nCompile for the device: --target {target}"),
        222 => {
            format!("\nUpdate the driver, compile machine code (--target {target}), or ask for an older PTX (--ptx)")
        }
        _ => String::new(),
    }
}
