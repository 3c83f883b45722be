//! One compilation with one of NVIDIA's compilers, and what its answer means for trying the next.

use std::path::Path;

use super::nvidia_options::{PtxOptions, nvjitlink_options, ptxas_options};
use super::ptxas;
use crate::bridge::{
    nvjitlink::{Input, InputKind, NvJitLink},
    nvptxcompiler::NvPtxCompiler,
    vendor_error::VendorError,
    watch,
};
use crate::interrupt::{Interrupt, InterruptError};

/// `NVJITLINK_ERROR_UNRECOGNIZED_ARCH` and `NVJITLINK_ERROR_UNSUPPORTED_ARCH`.
const LINK_UNKNOWN_ARCH: [i32; 2] = [16, 17];

/// What one compiler answered.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Attempt {
    /// A cubin.
    Done { bytes: Vec<u8>, log: String },
    /// It could not be started after all.
    Unavailable(String),
    /// It does not know the chip.
    UnknownArch(String),
    /// It does not read this version of PTX.
    UnknownPtxVersion {
        reason: String,
        /// The newest version that it reads, if it said.
        newest: Option<(u32, u32)>,
    },
    /// It has no way to do what the options ask.
    Impossible(String),
    /// The PTX is wrong.
    Refused(String),
    /// It was stopped before it was done.
    Interrupted(InterruptError),
}

pub(super) fn nvptxcompiler(
    library: &NvPtxCompiler,
    ptx: &str,
    chip: &str,
    options: &PtxOptions,
    interrupt: &Interrupt,
) -> Attempt {
    if let Err(reason) = interrupt.check() {
        return Attempt::Interrupted(reason);
    }
    let compiled = watch::uninterruptible("nvPTXCompiler", || library.compile(ptx, &ptxas_options(chip, options)));
    if let Err(reason) = interrupt.check() {
        return Attempt::Interrupted(reason);
    }
    match compiled {
        Ok(compiled) => Attempt::Done {
            bytes: compiled.cubin,
            log: compiled.log,
        },
        // An empty module is refused at creation, which leaves no log.
        Err(VendorError::Failed { log, .. }) if !log.is_empty() => judge(log),
        Err(error) => Attempt::Refused(error.to_string()),
    }
}

pub(super) fn ptxas(program: &Path, ptx: &str, chip: &str, options: &PtxOptions, interrupt: &Interrupt) -> Attempt {
    match ptxas::assemble_until(program, ptx, &ptxas_options(chip, options), interrupt) {
        Ok(assembled) => Attempt::Done {
            bytes: assembled.cubin,
            log: assembled.log,
        },
        Err(VendorError::Interrupted { interrupt, .. }) => Attempt::Interrupted(interrupt),
        Err(VendorError::Ended { log, .. }) if !log.trim().is_empty() => judge(log),
        // Killed by a signal, for example: its status is all there is.
        Err(error @ VendorError::Ended { .. }) => Attempt::Refused(error.to_string()),
        Err(error) => Attempt::Unavailable(error.to_string()),
    }
}

pub(super) fn nvjitlink(library: &NvJitLink, ptx: &str, chip: &str, options: &PtxOptions) -> Attempt {
    if options.relocatable {
        return Attempt::Impossible("it links, and cannot give relocatable code".to_owned());
    }
    let input = Input {
        kind: InputKind::Ptx,
        bytes: ptx.as_bytes(),
        name: "kernels.ptx",
    };
    match watch::uninterruptible("nvJitLink", || {
        library.link(&[input], &nvjitlink_options(chip, options))
    }) {
        Ok(linked) => Attempt::Done {
            bytes: linked.cubin,
            log: linked.info_log,
        },
        Err(VendorError::Failed { code, .. }) if LINK_UNKNOWN_ARCH.contains(&code) => {
            Attempt::UnknownArch(format!("it does not know {chip}"))
        }
        Err(VendorError::Failed { log, .. }) if !log.is_empty() => judge(log),
        Err(error) => Attempt::Refused(error.to_string()),
    }
}

/// Tells a compiler that is too old or too new from PTX that is wrong, by the text that all three share
/// (observed with 13.0.88).
fn judge(log: String) -> Attempt {
    for line in log.lines() {
        // "Value 'sm_70' is not defined for option 'gpu-name'"
        if line.contains("is not defined for option 'gpu-name'") {
            let chip = line.split('\'').nth(1).unwrap_or("this chip");
            return Attempt::UnknownArch(format!("it does not know {chip}"));
        }
        // "Unsupported .version 9.9; current version is '9.0'"
        if let Some((_, rest)) = line.split_once("Unsupported .version ") {
            let newest = rest.split('\'').nth(1).and_then(|version| {
                let (major, minor) = version.split_once('.')?;
                Some((major.parse().ok()?, minor.parse().ok()?))
            });
            let reason = match newest {
                Some((major, minor)) => format!("it reads PTX up to {major}.{minor}"),
                None => "it does not read this version of PTX".to_owned(),
            };
            return Attempt::UnknownPtxVersion { reason, newest };
        }
    }
    Attempt::Refused(log)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_told_apart() {
        assert_eq!(
            judge("ptxas fatal   : Value 'sm_70' is not defined for option 'gpu-name'\n".to_owned()),
            Attempt::UnknownArch("it does not know sm_70".to_owned())
        );
        assert_eq!(
            judge("ptxas a.ptx, line 1; fatal   : Unsupported .version 9.9; current version is '9.0'".to_owned()),
            Attempt::UnknownPtxVersion {
                reason: "it reads PTX up to 9.0".to_owned(),
                newest: Some((9, 0))
            }
        );
        let other = "ptxas fatal   : Ptx assembly aborted due to errors".to_owned();
        assert_eq!(judge(other.clone()), Attempt::Refused(other));
    }
}
