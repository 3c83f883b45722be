//! What a user may ask of a compilation, and what a target makes of it.
//!
//! The same names serve everywhere: fields here, `--kebab-case` flags of `gpulower compile`, options of the
//! `gpulower-*` passes, and entries of a target attribute's `flags` dictionary.

use std::{path::PathBuf, sync::Arc, time::Duration};

use crate::target::{CodeObjectVersion, PtxIsa, Target, TargetError};

/// How much LLVM and the vendor's compiler optimise: `-O0` to `-O3`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum OptimizationLevel {
    /// None.
    O0,
    /// Little.
    O1,
    /// Most of it.
    O2,
    /// All of it.
    O3,
}

impl OptimizationLevel {
    /// 0 to 3.
    pub const fn number(self) -> u8 {
        self as u8
    }
}

/// How much the output lets a debugger or profiler see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DebugLevel {
    /// Nothing.
    #[default]
    None,
    /// Source lines, at any optimisation level: `.loc` directives for NVIDIA, a line table for AMD.
    LineTables,
    /// Everything. NVIDIA's compiler accepts that at `-O0` alone, which is then the default.
    Full,
}

/// When a multiplication and an addition may become one fused operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FpContract {
    /// Never, whatever the IR says.
    Off,
    /// Where the IR carries the `contract` flag.
    On,
    /// Everywhere.
    Fast,
}

/// Who turns PTX into a cubin.
pub use crate::serialize::nvidia::PtxCompiler;

/// A bitcode library to link: only what is needed of it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Library {
    /// A file of bitcode or textual LLVM IR.
    File(PathBuf),
    /// Bitcode or textual LLVM IR in memory, with a name for messages.
    Memory {
        /// Name for messages.
        name: String,
        /// The library.
        bytes: Arc<[u8]>,
    },
}

impl Library {
    /// The name for messages: the path, or the given name.
    pub fn name(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::Memory { name, .. } => name.clone(),
        }
    }
}

/// What is asked of a compilation. [`Options::default`] asks for `-O3` and code that computes what the IR says.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Optimisation level; `None` means 3, or 0 where full debug info asks for it.
    pub optimization: Option<OptimizationLevel>,
    /// Permits everything that loses precision for speed: all fast-math flags, flushed denormals, approximate division
    /// and square root, contraction. A more specific option wins over it.
    pub fast: bool,
    /// Flushes f32 denormals to zero (`ftz`, also called `daz`). `None` follows `fast`.
    pub ftz: Option<bool>,
    /// Correctly rounded f32 square roots. `None` means yes, unless `fast`.
    pub prec_sqrt: Option<bool>,
    /// Correctly rounded f32 divisions. `None` means yes, unless `fast`.
    pub prec_div: Option<bool>,
    /// Fused multiply-add. `None` means on, or fast with `fast`.
    pub fp_contract: Option<FpContract>,
    /// Upper bound of registers a thread may use (NVIDIA: registers, AMD: VGPRs).
    pub max_registers: Option<u32>,
    /// Lanes in a wave, 32 or 64 (AMD). `None` means the chip's own.
    pub wave_size: Option<u32>,
    /// Code object version (AMD). `None` means 5, or 6 for generic targets.
    pub code_object_version: Option<CodeObjectVersion>,
    /// Debug info.
    pub debug: DebugLevel,
    /// PTX ISA (NVIDIA). `None` means the chip's minimum, raised when an instruction needs more.
    pub ptx: Option<PtxIsa>,
    /// Who turns PTX into a cubin (NVIDIA). `None` means the first that can.
    pub ptx_compiler: Option<PtxCompiler>,
    /// Further options for NVIDIA's PTX compiler, one per word.
    pub ptxas_options: Vec<String>,
    /// Libraries to link before the vendor's.
    pub libraries: Vec<Library>,
    /// Bits of `index` on the device, 32 or 64.
    pub index_bitwidth: u32,
    /// Passes memrefs of static shape to kernels as bare pointers.
    pub bare_pointers: bool,
    /// A warning is given for each kernel that spills more bytes (NVIDIA) or registers (AMD) than this.
    pub spill_warning: u32,
    /// Longest run of a vendor tool. `None` means no limit.
    pub time_limit: Option<Duration>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            optimization: None,
            fast: false,
            ftz: None,
            prec_sqrt: None,
            prec_div: None,
            fp_contract: None,
            max_registers: None,
            wave_size: None,
            code_object_version: None,
            debug: DebugLevel::None,
            ptx: None,
            ptx_compiler: None,
            ptxas_options: Vec::new(),
            libraries: Vec::new(),
            index_bitwidth: 64,
            bare_pointers: false,
            spill_warning: 0,
            time_limit: None,
        }
    }
}

/// An option that cannot be read, or that a target cannot honour.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OptionError {
    /// No option has this name.
    #[error("unknown option '{name}'{}", did_you_mean(.nearest))]
    Unknown {
        /// The name.
        name: String,
        /// Similar names.
        nearest: Vec<String>,
    },
    /// The value is none that the option takes.
    #[error("option '{name}' cannot be '{value}': expected {expected}")]
    Value {
        /// The option.
        name: &'static str,
        /// The value.
        value: String,
        /// What it takes.
        expected: &'static str,
    },
    /// The target cannot do what the option asks.
    #[error("option '{name}' cannot be honoured for {target}: {reason}")]
    NotHonoured {
        /// The option.
        name: &'static str,
        /// The target.
        target: String,
        /// Why, and what to do.
        reason: String,
    },
    /// The value does not fit the target.
    #[error(transparent)]
    Target(#[from] TargetError),
}

fn did_you_mean(names: &[String]) -> String {
    if names.is_empty() {
        String::new()
    } else {
        format!(" (did you mean {}?)", names.join(", "))
    }
}

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
    describe("index-bitwidth", "Bits of index on the device (default 64)", "32|64"),
    describe(
        "bare-pointers",
        "Pass memrefs of static shape to kernels as bare pointers",
        "true|false",
    ),
    describe(
        "spill-warning",
        "Warn when a kernel spills more bytes (AMD: registers) than this (default 0)",
        "N",
    ),
    describe(
        "time-limit",
        "Longest run of a vendor tool, in seconds (default: none)",
        "SECONDS",
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
            "ptx" => self.ptx = Some(value.parse()?),
            "ptx-compiler" => {
                self.ptx_compiler =
                    Some(PtxCompiler::from_name(value).ok_or_else(|| unreadable("ptx-compiler", value))?);
            }
            "ptxas-options" => {
                self.ptxas_options.extend(value.split_whitespace().map(str::to_owned));
            }
            "index-bitwidth" => match value {
                "32" => self.index_bitwidth = 32,
                "64" => self.index_bitwidth = 64,
                _ => return Err(unreadable("index-bitwidth", value)),
            },
            "bare-pointers" => self.bare_pointers = boolean("bare-pointers", value)?,
            "spill-warning" => self.spill_warning = number("spill-warning", value)?,
            "time-limit" => match number("time-limit", value)? {
                0 => return Err(unreadable("time-limit", value)),
                seconds => self.time_limit = Some(Duration::from_secs(seconds.into())),
            },
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
        pairs.extend(self.ptx.map(|ptx| ("ptx", ptx.to_string())));
        if let Some(compiler) = self.ptx_compiler {
            pairs.push(("ptx-compiler", compiler.name().to_owned()));
        }
        if !self.ptxas_options.is_empty() {
            pairs.push(("ptxas-options", self.ptxas_options.join(" ")));
        }
        if self.index_bitwidth != default.index_bitwidth {
            pairs.push(("index-bitwidth", self.index_bitwidth.to_string()));
        }
        if self.bare_pointers {
            pairs.push(("bare-pointers", "true".to_owned()));
        }
        if self.spill_warning != default.spill_warning {
            pairs.push(("spill-warning", self.spill_warning.to_string()));
        }
        if let Some(limit) = self.time_limit {
            pairs.push(("time-limit", limit.as_secs().to_string()));
        }
        pairs
    }

    /// What the options mean for one target, or which of them it cannot honour. `newest_tool_ptx` is the newest PTX
    /// ISA that the serializer at hand reads; `None` when none takes part.
    pub fn resolve(&self, target: &Target, newest_tool_ptx: Option<PtxIsa>) -> Result<Resolved, OptionError> {
        let refuse = |name, reason: &str| {
            Err(OptionError::NotHonoured {
                name,
                target: target.to_string(),
                reason: reason.to_owned(),
            })
        };
        let vendor = match target {
            Target::Nvidia(chip) => {
                if self.wave_size.is_some() {
                    return refuse("wave-size", "NVIDIA's warps have 32 threads; leave the option out");
                }
                if self.code_object_version.is_some() {
                    return refuse(
                        "code-object-version",
                        "only AMD's code objects have one; leave the option out",
                    );
                }
                if self.debug == DebugLevel::Full
                    && self.optimization.is_some_and(|level| level > OptimizationLevel::O0)
                {
                    return refuse(
                        "debug",
                        "NVIDIA's compiler takes full debug info at -O0 alone; use O=0, or debug=line-tables",
                    );
                }
                if self.ptxas_options.iter().any(|word| word.contains('\0')) {
                    return refuse("ptxas-options", "a word contains a NUL character");
                }
                ResolvedVendor::Nvidia {
                    ptx: chip.resolve_ptx(self.ptx, newest_tool_ptx)?,
                    ptx_is_fixed: self.ptx.is_some() || chip.explicit_ptx().is_some(),
                }
            }
            Target::Amd(chip) => {
                let nvidia_only = "only NVIDIA's targets have it; leave the option out";
                if self.ptx.is_some() {
                    return refuse("ptx", nvidia_only);
                }
                if self.ptx_compiler.is_some() {
                    return refuse("ptx-compiler", nvidia_only);
                }
                if !self.ptxas_options.is_empty() {
                    return refuse("ptxas-options", nvidia_only);
                }
                ResolvedVendor::Amd {
                    wave_size: chip.resolve_wave_size(self.wave_size)?,
                    features: chip.llvm_features(self.wave_size)?,
                    code_object_version: chip.resolve_code_object_version(self.code_object_version)?,
                }
            }
        };
        let unoptimised = matches!(target, Target::Nvidia(_)) && self.debug == DebugLevel::Full;
        let default_level = if unoptimised {
            OptimizationLevel::O0
        } else {
            OptimizationLevel::O3
        };
        let default_contract = if self.fast { FpContract::Fast } else { FpContract::On };
        Ok(Resolved {
            target: *target,
            optimization: self.optimization.unwrap_or(default_level),
            fast: self.fast,
            flush_denormals: self.ftz.unwrap_or(self.fast),
            precise_square_root: self.prec_sqrt.unwrap_or(!self.fast),
            precise_division: self.prec_div.unwrap_or(!self.fast),
            contract: self.fp_contract.unwrap_or(default_contract),
            max_registers: self.max_registers,
            debug: self.debug,
            index_bitwidth: self.index_bitwidth,
            bare_pointers: self.bare_pointers,
            vendor,
        })
    }
}

/// What [`Options`] mean for one target: nothing is left open.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolved {
    /// The target.
    pub target: Target,
    /// Optimisation level.
    pub optimization: OptimizationLevel,
    /// All fast-math flags.
    pub fast: bool,
    /// f32 denormals become zero.
    pub flush_denormals: bool,
    /// f32 square roots are correctly rounded.
    pub precise_square_root: bool,
    /// f32 divisions are correctly rounded.
    pub precise_division: bool,
    /// Fused multiply-add.
    pub contract: FpContract,
    /// Upper bound of registers.
    pub max_registers: Option<u32>,
    /// Debug info.
    pub debug: DebugLevel,
    /// Bits of `index`.
    pub index_bitwidth: u32,
    /// Memrefs of static shape are bare pointers in kernels.
    pub bare_pointers: bool,
    /// What only one vendor has.
    pub vendor: ResolvedVendor,
}

/// The part of [`Resolved`] that only one vendor has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResolvedVendor {
    /// NVIDIA
    Nvidia {
        /// The PTX ISA to write.
        ptx: PtxIsa,
        /// Whether the user chose it; otherwise it may be raised when an instruction needs it.
        ptx_is_fixed: bool,
    },
    /// AMD
    Amd {
        /// Lanes in a wave.
        wave_size: u32,
        /// LLVM's feature string.
        features: String,
        /// Code object version.
        code_object_version: CodeObjectVersion,
    },
}

impl Resolved {
    /// LLVM's feature string.
    pub fn llvm_features(&self) -> String {
        match &self.vendor {
            ResolvedVendor::Nvidia { ptx, .. } => ptx.llvm_feature(),
            ResolvedVendor::Amd { features, .. } => features.clone(),
        }
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

    fn target(name: &str) -> Target {
        name.parse().expect("a valid target")
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
            ("ptx", "8.3"),
            ("ptx-compiler", "ptxas"),
            ("ptxas-options", "-v --def-load-cache=cg"),
            ("index-bitwidth", "32"),
            ("bare-pointers", "true"),
            ("spill-warning", "16"),
            ("time-limit", "30"),
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
        assert_eq!(
            message(options.set("max-registers", "0")),
            "option 'max-registers' cannot be '0': expected N"
        );
    }

    #[test]
    fn a_target_refuses_what_it_cannot_honour() {
        for (name, value, chip, reason) in [
            ("wave-size", "64", "sm_90", "warps have 32 threads"),
            ("code-object-version", "5", "sm_90", "only AMD's code objects"),
            ("ptx", "8.0", "gfx942", "only NVIDIA's targets"),
            ("ptx-compiler", "ptxas", "gfx942", "only NVIDIA's targets"),
            ("ptxas-options", "-v", "gfx942", "only NVIDIA's targets"),
        ] {
            let error = options(&[(name, value)])
                .resolve(&target(chip), None)
                .expect_err("refused")
                .to_string();
            assert!(
                error.starts_with(&format!("option '{name}' cannot be honoured for {chip}: "))
                    && error.contains(reason),
                "{error}"
            );
        }
        let error = options(&[("wave-size", "32")])
            .resolve(&target("gfx942"), None)
            .expect_err("refused");
        assert!(error.to_string().contains("gfx942"), "{error}");
    }

    #[test]
    fn full_debug_info_means_o0_for_nvidia_alone() {
        let debug = options(&[("debug", "full")]);
        let level = |chip| debug.resolve(&target(chip), None).expect("resolves").optimization;
        assert_eq!(level("sm_90"), OptimizationLevel::O0);
        assert_eq!(level("gfx942"), OptimizationLevel::O3);
        let error = options(&[("debug", "full"), ("O", "2")])
            .resolve(&target("sm_90"), None)
            .expect_err("refused");
        assert!(error.to_string().contains("at -O0 alone"), "{error}");
    }

    #[test]
    fn a_specific_option_wins_over_fast() {
        let resolved = options(&[("fast", "true"), ("prec-sqrt", "true"), ("fp-contract", "on")])
            .resolve(&target("sm_90"), None)
            .expect("resolves");
        assert!(resolved.flush_denormals && !resolved.precise_division);
        assert!(resolved.precise_square_root);
        assert_eq!(resolved.contract, FpContract::On);
    }
}
