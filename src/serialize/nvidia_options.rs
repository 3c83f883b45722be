//! Options of a PTX compilation, in the words of each of NVIDIA's compilers.

use super::nvidia_error::SerializeError;
use crate::options::reserved_ptxas_option;

/// What to ask of a PTX compiler.
///
/// There is no option for flushing denormals or for fused multiplication and addition of whole operations:
/// PTX instructions carry that themselves.
#[derive(Debug, Clone, PartialEq, Eq, Hash, serde::Serialize)]
pub struct PtxOptions {
    /// Optimisation level, 0 to 3. Default 3.
    pub opt_level: u8,
    /// Most registers a thread may use. Default: the compiler's own choice.
    pub max_registers: Option<u32>,
    /// Keep line numbers in the cubin.
    pub line_info: bool,
    /// Full debug information. The PTX has to be unoptimised, and `opt_level` 0: the caller sees to it.
    pub device_debug: bool,
    /// Make relocatable code, to be linked with nvlink or nvJitLink. nvJitLink itself cannot stop there.
    pub relocatable: bool,
    /// Threads on which ptxas or nvPTXCompiler compiles the kernels of one module. The code is the same with any number; from 2
    /// on the whole cubin is, but for the note that holds the options. `None` for one.
    pub threads: Option<u8>,
    /// Further options in the words of ptxas, one argument each ("--fmad=false").
    pub extra: Vec<String>,
}

impl Default for PtxOptions {
    fn default() -> Self {
        Self {
            opt_level: 3,
            max_registers: None,
            line_info: false,
            device_debug: false,
            relocatable: false,
            threads: None,
            extra: Vec::new(),
        }
    }
}

impl PtxOptions {
    /// Refuses what no compiler could honour.
    pub(super) fn check(&self) -> Result<(), SerializeError> {
        let refuse = |option: String, reason: &str| Err(SerializeError::option(&option, reason));
        if self.opt_level > 3 {
            // ptxas takes any number without a word.
            return refuse(format!("-O{}", self.opt_level), "levels are 0 to 3");
        }
        if self.device_debug && self.opt_level > 0 {
            return refuse(
                format!("--device-debug with -O{}", self.opt_level),
                "full debug information needs -O0; for optimised code ask for line information instead",
            );
        }
        if self.max_registers == Some(0) {
            return refuse("--maxrregcount=0".to_owned(), "leave the limit out for no limit");
        }
        for option in &self.extra {
            if let Some(reason) = reserved_ptxas_option(option) {
                return refuse(format!("`{option}`"), reason);
            }
        }
        Ok(())
    }
}

/// The options for ptxas and nvPTXCompiler, which share them.
pub(super) fn ptxas_options(chip: &str, options: &PtxOptions) -> Vec<String> {
    // -v: spills are told nowhere else.
    let mut words = vec![
        format!("--gpu-name={chip}"),
        format!("-O{}", options.opt_level),
        "-v".to_owned(),
    ];
    if let Some(limit) = options.max_registers {
        words.push(format!("--maxrregcount={limit}"));
    }
    if options.line_info {
        words.push("--generate-line-info".to_owned());
    }
    if options.device_debug {
        words.push("--device-debug".to_owned());
    }
    if options.relocatable {
        words.push("--compile-only".to_owned());
    }
    if let Some(threads) = options.threads {
        words.push(format!("--split-compile={threads}"));
    }
    words.extend(options.extra.iter().cloned());
    words
}

/// The options for nvJitLink.
pub(super) fn nvjitlink_options(chip: &str, options: &PtxOptions) -> Vec<String> {
    let mut words = vec![format!("-arch={chip}"), "-verbose".to_owned()];
    words.push(match options.opt_level {
        // nvJitLink itself knows the first and the last level only (observed with 13.0.88).
        level @ (0 | 3) => format!("-O{level}"),
        level => format!("-Xptxas=-O{level}"),
    });
    if let Some(limit) = options.max_registers {
        words.push(format!("-maxrregcount={limit}"));
    }
    if options.line_info {
        words.push("-lineinfo".to_owned());
    }
    if options.device_debug {
        words.push("-g".to_owned());
    }
    words.extend(options.extra.iter().map(|option| format!("-Xptxas={option}")));
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(options: PtxOptions) -> String {
        options.check().unwrap_err().to_string()
    }

    #[test]
    fn what_cannot_be_honoured_is_refused() {
        let text = refused(PtxOptions {
            opt_level: 4,
            ..PtxOptions::default()
        });
        assert!(text.contains("-O4") && text.contains("levels are 0 to 3"), "{text}");
        let text = refused(PtxOptions {
            device_debug: true,
            ..PtxOptions::default()
        });
        assert!(text.contains("needs -O0"), "{text}");
        let text = refused(PtxOptions {
            max_registers: Some(0),
            ..PtxOptions::default()
        });
        assert!(text.contains("--maxrregcount=0"), "{text}");
        for (option, reason) in [
            ("-arch=sm_80", "given by the target"),
            ("--output-file=x", "in memory"),
            ("-optf", "do not come from files"),
            ("input.ptx", "does not start with a dash"),
            ("--version", "compiles nothing"),
            ("a\0b", "NUL"),
        ] {
            let extra = vec![option.to_owned()];
            let text = refused(PtxOptions {
                extra,
                ..PtxOptions::default()
            });
            assert!(text.contains(reason), "{text}");
        }
        let extra = vec!["--fmad=false".to_owned(), "--maxntid".to_owned(), "128".to_owned()];
        assert!(
            PtxOptions {
                extra,
                ..PtxOptions::default()
            }
            .check()
            .is_ok()
        );
    }

    #[test]
    fn words_of_each_compiler() {
        let options = PtxOptions {
            opt_level: 2,
            max_registers: Some(32),
            line_info: true,
            relocatable: true,
            threads: Some(4),
            extra: vec!["--fmad=false".to_owned()],
            ..PtxOptions::default()
        };
        assert_eq!(
            ptxas_options("sm_90a", &options).join(" "),
            "--gpu-name=sm_90a -O2 -v --maxrregcount=32 --generate-line-info --compile-only --split-compile=4 --fmad=false"
        );
        assert_eq!(
            nvjitlink_options("sm_90a", &options).join(" "),
            "-arch=sm_90a -verbose -Xptxas=-O2 -maxrregcount=32 -lineinfo -Xptxas=--fmad=false"
        );
    }
}
