//! The textual form of the options: names, help, and reading values.

use std::time::Duration;

use super::{Compression, DebugLevel, FpContract, Isolation, OptimizationLevel, OptionError, Options, PtxCompiler};

/// Name, one line of help, and the values of one option.
#[derive(Clone, Copy, Debug)]
pub struct OptionDescription {
    /// Name in kebab case.
    pub name: &'static str,
    /// One line of help.
    pub help: &'static str,
    /// What the value looks like.
    pub values: &'static str,
}

/// Every option that has a textual form, in the order of the documentation.
pub const DESCRIPTIONS: &[OptionDescription] = &[
    describe(
        "O",
        "Optimisation level of LLVM and the vendor's compiler (default 3)",
        "0|1|2|3",
    ),
    describe("fast", "Permit everything that loses precision for speed", "true|false"),
    describe("ftz", "Flush f32 denormals to zero (also: daz)", "true|false"),
    describe(
        "prec-sqrt",
        "Correctly rounded f32 square roots (default true)",
        "true|false",
    ),
    describe(
        "prec-div",
        "Correctly rounded f32 divisions (default true)",
        "true|false",
    ),
    describe(
        "fp-contract",
        "Fused multiply-add: never, where the IR allows it, everywhere (default on)",
        "off|on|fast",
    ),
    describe("max-registers", "Upper bound of registers (AMD: VGPRs) per thread", "N"),
    describe("wave-size", "Lanes in a wave (AMD; default: the chip's own)", "32|64"),
    describe(
        "code-object-version",
        "Code object version (AMD; default 5, generic targets 6)",
        "4|5|6",
    ),
    describe("debug", "Debug info (default none)", "none|line-tables|full"),
    describe(
        "debug-prefix-map",
        "Write NEW for paths that begin with OLD in debug info; may be repeated, the last that fits counts",
        "OLD=NEW[,..]",
    ),
    describe(
        "ptx",
        "PTX ISA (NVIDIA; default: the chip's minimum, raised when an instruction needs more)",
        "X.Y",
    ),
    describe(
        "ptx-compiler",
        "Who turns PTX into a cubin (NVIDIA; default: the first that can)",
        "nvptxcompiler|ptxas|nvjitlink",
    ),
    describe(
        "ptxas-options",
        "Further options for the PTX compiler (NVIDIA)",
        "WORDS",
    ),
    describe(
        "include-ptx",
        "PTX in a fat binary (NVIDIA; default lowest): of no target, of the lowest or newest portable one, of all, or of those named",
        "none|lowest|newest|all|sm_XX[,..]",
    ),
    describe(
        "compress",
        "How a container stores its images (default none, which every driver reads)",
        "none|lz4|zstd",
    ),
    describe("index-bitwidth", "Bits of index on the device (default 64)", "32|64"),
    describe(
        "bare-pointers",
        "Pass memrefs of static shape to kernels as bare pointers",
        "true|false",
    ),
    describe(
        "interleave",
        "Iterations of a loop that run at once, with their loads first (default: 4 for NVIDIA at -O2 and above, else 1)",
        "1|2|4|8",
    ),
    describe(
        "spill-warning",
        "Warn when a kernel spills more bytes (AMD: registers) than this (default 0)",
        "N",
    ),
    describe(
        "time-limit",
        "Longest time for a module and a target, in seconds (default: none)",
        "SECONDS",
    ),
    describe(
        "memory-limit",
        "Most memory of a worker process, in MiB (default: none)",
        "N",
    ),
    describe(
        "isolation",
        "Where lowering, LLVM and the vendor's compiler run (default in-process)",
        "in-process|worker",
    ),
];

const fn describe(name: &'static str, help: &'static str, values: &'static str) -> OptionDescription {
    OptionDescription { name, help, values }
}

impl Options {
    /// Sets one option by name from text, as pass options, target attributes and the command line do.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), OptionError> {
        match name {
            "O" | "optimization" => {
                self.optimization = Some(match value {
                    "0" => OptimizationLevel::O0,
                    "1" => OptimizationLevel::O1,
                    "2" => OptimizationLevel::O2,
                    "3" => OptimizationLevel::O3,
                    _ => return Err(unreadable("O", value)),
                });
            }
            "fast" => self.fast = boolean("fast", value)?,
            "ftz" | "daz" => self.ftz = Some(boolean("ftz", value)?),
            "prec-sqrt" => self.prec_sqrt = Some(boolean("prec-sqrt", value)?),
            "prec-div" => self.prec_div = Some(boolean("prec-div", value)?),
            "fp-contract" => {
                self.fp_contract = Some(match value {
                    "off" => FpContract::Off,
                    "on" => FpContract::On,
                    "fast" => FpContract::Fast,
                    _ => return Err(unreadable("fp-contract", value)),
                });
            }
            "max-registers" => match number("max-registers", value)? {
                0 => return Err(unreadable("max-registers", value)),
                registers => self.max_registers = Some(registers),
            },
            "wave-size" => match value {
                "32" => self.wave_size = Some(32),
                "64" => self.wave_size = Some(64),
                _ => return Err(unreadable("wave-size", value)),
            },
            "code-object-version" => {
                self.code_object_version = Some(value.parse().map_err(|_| unreadable("code-object-version", value))?);
            }
            "debug" => {
                self.debug = match value {
                    "none" => DebugLevel::None,
                    "line-tables" => DebugLevel::LineTables,
                    "full" => DebugLevel::Full,
                    _ => return Err(unreadable("debug", value)),
                };
            }
            "debug-prefix-map" => {
                for entry in value.split(',') {
                    match entry.split_once('=') {
                        Some((old, new)) if !old.is_empty() => {
                            self.debug_prefix_map.push((old.to_owned(), new.to_owned()));
                        }
                        _ => return Err(unreadable("debug-prefix-map", value)),
                    }
                }
            }
            "ptx" => self.ptx = Some(value.parse()?),
            "ptx-compiler" => {
                self.ptx_compiler =
                    Some(PtxCompiler::from_name(value).ok_or_else(|| unreadable("ptx-compiler", value))?);
            }
            "ptxas-options" => {
                self.ptxas_options.extend(value.split_whitespace().map(str::to_owned));
            }
            "include-ptx" => {
                self.include_ptx = Some(value.parse()?);
            }
            "compress" => {
                self.compression = Some(Compression::from_name(value).ok_or_else(|| unreadable("compress", value))?);
            }
            "index-bitwidth" => match value {
                "32" => self.index_bitwidth = 32,
                "64" => self.index_bitwidth = 64,
                _ => return Err(unreadable("index-bitwidth", value)),
            },
            "bare-pointers" => self.bare_pointers = boolean("bare-pointers", value)?,
            "interleave" => match value {
                "1" => self.interleave = Some(1),
                "2" => self.interleave = Some(2),
                "4" => self.interleave = Some(4),
                "8" => self.interleave = Some(8),
                _ => return Err(unreadable("interleave", value)),
            },
            "spill-warning" => self.spill_warning = number("spill-warning", value)?,
            "time-limit" => {
                let seconds = value
                    .parse()
                    .ok()
                    .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
                let limit = seconds.filter(|limit| !limit.is_zero());
                self.time_limit = Some(limit.ok_or_else(|| unreadable("time-limit", value))?);
            }
            "memory-limit" => match number("memory-limit", value)? {
                0 => return Err(unreadable("memory-limit", value)),
                mebibytes => self.memory_limit = Some(u64::from(mebibytes) << 20),
            },
            "isolation" => {
                self.isolation = match value {
                    "in-process" => Isolation::InProcess,
                    "worker" => Isolation::Worker,
                    _ => return Err(unreadable("isolation", value)),
                };
            }
            _ => {
                let names: Vec<&str> = DESCRIPTIONS.iter().map(|option| option.name).collect();
                return Err(OptionError::Unknown {
                    name: name.to_owned(),
                    nearest: names
                        .iter()
                        .filter(|known| strsim::damerau_levenshtein(known, name) <= 3)
                        .map(|known| (*known).to_owned())
                        .collect(),
                });
            }
        }
        Ok(())
    }

    /// The options that differ from the default and have a textual form, as [`Options::set`] takes them.
    pub fn to_pairs(&self) -> Vec<(&'static str, String)> {
        let default = Self::default();
        let mut pairs = Vec::new();
        if let Some(level) = self.optimization {
            pairs.push(("O", level.number().to_string()));
        }
        if self.fast {
            pairs.push(("fast", "true".to_owned()));
        }
        for (name, value) in [
            ("ftz", self.ftz),
            ("prec-sqrt", self.prec_sqrt),
            ("prec-div", self.prec_div),
        ] {
            pairs.extend(value.map(|value| (name, value.to_string())));
        }
        if let Some(contract) = self.fp_contract {
            let text = match contract {
                FpContract::Off => "off",
                FpContract::On => "on",
                FpContract::Fast => "fast",
            };
            pairs.push(("fp-contract", text.to_owned()));
        }
        for (name, value) in [("max-registers", self.max_registers), ("wave-size", self.wave_size)] {
            pairs.extend(value.map(|value| (name, value.to_string())));
        }
        if let Some(version) = self.code_object_version {
            pairs.push(("code-object-version", version.number().to_string()));
        }
        match self.debug {
            DebugLevel::None => {}
            DebugLevel::LineTables => pairs.push(("debug", "line-tables".to_owned())),
            DebugLevel::Full => pairs.push(("debug", "full".to_owned())),
        }
        if !self.debug_prefix_map.is_empty() {
            let entries = self.debug_prefix_map.iter().map(|(old, new)| format!("{old}={new}"));
            pairs.push(("debug-prefix-map", entries.collect::<Vec<_>>().join(",")));
        }
        pairs.extend(self.ptx.map(|ptx| ("ptx", ptx.to_string())));
        if let Some(compiler) = self.ptx_compiler {
            pairs.push(("ptx-compiler", compiler.name().to_owned()));
        }
        if !self.ptxas_options.is_empty() {
            pairs.push(("ptxas-options", self.ptxas_options.join(" ")));
        }
        if let Some(policy) = &self.include_ptx {
            pairs.push(("include-ptx", policy.to_string()));
        }
        if let Some(compression) = self.compression {
            pairs.push(("compress", compression.name().to_owned()));
        }
        if self.index_bitwidth != default.index_bitwidth {
            pairs.push(("index-bitwidth", self.index_bitwidth.to_string()));
        }
        if self.bare_pointers {
            pairs.push(("bare-pointers", "true".to_owned()));
        }
        pairs.extend(self.interleave.map(|count| ("interleave", count.to_string())));
        if self.spill_warning != default.spill_warning {
            pairs.push(("spill-warning", self.spill_warning.to_string()));
        }
        if let Some(limit) = self.time_limit {
            pairs.push(("time-limit", limit.as_secs_f64().to_string()));
        }
        if let Some(limit) = self.memory_limit {
            pairs.push(("memory-limit", limit.div_ceil(1 << 20).to_string()));
        }
        if self.isolation == Isolation::Worker {
            pairs.push(("isolation", "worker".to_owned()));
        }
        pairs
    }
}

fn unreadable(name: &'static str, value: &str) -> OptionError {
    let expected = DESCRIPTIONS
        .iter()
        .find(|option| option.name == name)
        .map_or("another value", |option| option.values);
    OptionError::Value {
        name,
        value: value.to_owned(),
        expected,
    }
}

fn boolean(name: &'static str, value: &str) -> Result<bool, OptionError> {
    match value {
        "true" | "1" | "" => Ok(true),
        "false" | "0" => Ok(false),
        _ => Err(unreadable(name, value)),
    }
}

fn number(name: &'static str, value: &str) -> Result<u32, OptionError> {
    value.parse().map_err(|_| unreadable(name, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(pairs: &[(&str, &str)]) -> Options {
        let mut options = Options::default();
        for (name, value) in pairs {
            options.set(name, value).expect("a valid option");
        }
        options
    }

    #[test]
    fn every_described_option_survives_the_textual_form() {
        let values = [
            ("O", "1"),
            ("fast", "true"),
            ("ftz", "false"),
            ("prec-sqrt", "false"),
            ("prec-div", "true"),
            ("fp-contract", "off"),
            ("max-registers", "64"),
            ("wave-size", "32"),
            ("code-object-version", "6"),
            ("debug", "line-tables"),
            ("debug-prefix-map", "/home/me/=,/a=/b"),
            ("ptx", "8.3"),
            ("ptx-compiler", "ptxas"),
            ("ptxas-options", "-v --def-load-cache=cg"),
            ("include-ptx", "newest"),
            ("compress", "zstd"),
            ("index-bitwidth", "32"),
            ("bare-pointers", "true"),
            ("interleave", "8"),
            ("spill-warning", "16"),
            ("time-limit", "30"),
            ("memory-limit", "2048"),
            ("isolation", "worker"),
        ];
        let described: Vec<&str> = DESCRIPTIONS.iter().map(|option| option.name).collect();
        let listed: Vec<&str> = values.iter().map(|(name, _)| *name).collect();
        assert_eq!(described, listed, "the test covers every option");
        let set = options(&values);
        let pairs = set.to_pairs();
        let again: Vec<(&str, &str)> = pairs.iter().map(|(name, value)| (*name, value.as_str())).collect();
        assert_eq!(options(&again), set);
        assert_eq!(again, values);
    }

    #[test]
    fn wrong_names_and_values_are_refused() {
        let mut options = Options::default();
        let message = |result: Result<(), OptionError>| result.expect_err("refused").to_string();
        assert_eq!(
            message(options.set("max-register", "3")),
            "unknown option 'max-register' (did you mean max-registers?)"
        );
        assert_eq!(
            message(options.set("O", "4")),
            "option 'O' cannot be '4': expected 0|1|2|3"
        );
        assert_eq!(
            message(options.set("debug", "yes")),
            "option 'debug' cannot be 'yes': expected none|line-tables|full"
        );
        for value in ["", "/a", "=/b", "/a=/b,"] {
            let expected = format!("option 'debug-prefix-map' cannot be '{value}': expected OLD=NEW[,..]");
            assert_eq!(message(options.set("debug-prefix-map", value)), expected);
        }
        assert_eq!(
            message(options.set("max-registers", "0")),
            "option 'max-registers' cannot be '0': expected N"
        );
        for wrong in ["0", "-1", "soon", "inf", "NaN"] {
            assert_eq!(
                message(options.set("time-limit", wrong)),
                format!("option 'time-limit' cannot be '{wrong}': expected SECONDS")
            );
        }
        assert_eq!(
            message(options.set("memory-limit", "0")),
            "option 'memory-limit' cannot be '0': expected N"
        );
        assert_eq!(
            message(options.set("isolation", "jail")),
            "option 'isolation' cannot be 'jail': expected in-process|worker"
        );
    }
}
