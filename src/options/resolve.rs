//! What the options mean for one target.

use super::{DESCRIPTIONS, DebugLevel, FpContract, OptimizationLevel, OptionError, Options, Speed};
use crate::target::{CodeObjectVersion, PtxIsa, Target};

impl Options {
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
        for option in DESCRIPTIONS {
            if let Some((vendor, reason)) = option.rules.only
                && vendor != target.vendor()
                && option.is_given(self)
            {
                return refuse(option.name(), &format!("{reason}; leave the option out"));
            }
        }
        if self.input_optimized && self.llvm_passes.is_some() {
            return refuse(
                "llvm-passes",
                "with input-optimized none are run; leave one of the two out",
            );
        }
        let vendor = match target {
            Target::Nvidia(chip) => {
                if self.debug == DebugLevel::Full
                    && self.optimization.is_some_and(|level| level > OptimizationLevel::O0)
                {
                    return refuse(
                        "debug",
                        "NVIDIA's compiler takes full debug info at -O0 alone; use O=0, or debug=line-tables",
                    );
                }
                for word in &self.ptxas_options {
                    if let Some(reason) = reserved_ptxas_option(word) {
                        return refuse("ptxas-options", &format!("`{word}`: {reason}"));
                    }
                }
                ResolvedVendor::Nvidia {
                    ptx: chip.resolve_ptx(self.ptx, newest_tool_ptx)?,
                    ptx_is_fixed: self.ptx.is_some() || chip.explicit_ptx().is_some(),
                }
            }
            Target::Amd(chip) => ResolvedVendor::Amd {
                wave_size: chip.resolve_wave_size(self.wave_size)?,
                coarse_grained_memory: self.coarse_grained_memory,
                features: chip.llvm_features(self.wave_size)?,
                code_object_version: chip.resolve_code_object_version(self.code_object_version)?,
            },
        };
        let unoptimised = matches!(target, Target::Nvidia(_)) && self.debug == DebugLevel::Full;
        let default_level = match self.speed {
            _ if unoptimised => OptimizationLevel::O0,
            Speed::Fast => OptimizationLevel::O1,
            Speed::Balanced | Speed::Best => OptimizationLevel::O3,
        };
        let optimization = self.optimization.unwrap_or(default_level);
        // Measured on NVIDIA's GPUs alone.
        let default_interleave = match target {
            Target::Nvidia(_) if optimization >= OptimizationLevel::O2 && self.speed != Speed::Fast => 4,
            _ => 1,
        };
        // A level that is asked for is kept to, by the vendor's compiler too.
        let is_nvidia = matches!(target, Target::Nvidia(_));
        let fast_compile = self.speed == Speed::Fast && self.optimization.is_none() && !unoptimised && is_nvidia;
        let default_contract = if self.fast { FpContract::Fast } else { FpContract::On };
        Ok(Resolved {
            target: *target,
            optimization,
            fast_compile,
            input_optimized: self.input_optimized,
            llvm_passes: self.llvm_passes.clone(),
            fast: self.fast,
            flush_denormals: self.ftz.unwrap_or(self.fast),
            precise_square_root: self.prec_sqrt.unwrap_or(!self.fast),
            precise_division: self.prec_div.unwrap_or(!self.fast),
            contract: self.fp_contract.unwrap_or(default_contract),
            max_registers: self.max_registers,
            debug: self.debug,
            debug_prefix_map: self.debug_prefix_map.clone(),
            index_bitwidth: self.index_bitwidth,
            bare_pointers: self.bare_pointers,
            interleave: self.interleave.unwrap_or(default_interleave),
            vendor,
        })
    }
}

/// Why a word of `ptxas` is not the caller's to give, if so.
pub(crate) fn reserved_ptxas_option(option: &str) -> Option<&'static str> {
    if option.contains('\0') {
        return Some("it contains a NUL byte");
    }
    let name = option.split('=').next().unwrap_or_default();
    match name.trim_start_matches('-') {
        "gpu-name" | "arch" => Some("the chip is given by the target"),
        "output-file" | "o" | "input-as-string" | "ias" => Some("input and output are in memory"),
        "options-file" | "optf" => Some("options do not come from files; give them one by one"),
        "help" | "h" | "version" | "V" | "dry-run" | "dryrun" => Some("it compiles nothing"),
        _ if !option.starts_with('-') && option.parse::<i64>().is_err() => {
            Some("it does not start with a dash, and would be taken for an input file")
        }
        _ => None,
    }
}

/// What [`Options`] mean for one target: nothing is left open.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolved {
    /// The target.
    pub target: Target,
    /// Optimisation level.
    pub optimization: OptimizationLevel,
    /// Passes and the vendor's compiler do what is needed, and little more.
    pub fast_compile: bool,
    /// LLVM's passes are left out.
    pub input_optimized: bool,
    /// LLVM's passes, where they are not those of the level.
    pub llvm_passes: Option<String>,
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
    /// What paths in debug info begin with, and what is written instead.
    pub debug_prefix_map: Vec<(String, String)>,
    /// Bits of `index`.
    pub index_bitwidth: u32,
    /// Memrefs of static shape are bare pointers in kernels.
    pub bare_pointers: bool,
    /// How many iterations of a loop run at once, with their loads first.
    pub interleave: u32,
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
        /// No atomic operation of a kernel is on memory that the host sees at the same time.
        coarse_grained_memory: bool,
        /// LLVM's feature string.
        features: String,
        /// Code object version.
        code_object_version: CodeObjectVersion,
    },
}

impl Resolved {
    /// What a speed that `options` ask for stands for, and what they say otherwise.
    pub(crate) fn meaning_of_speed(&self, options: &Options) -> Option<String> {
        if options.speed != Speed::Fast {
            return None;
        }
        let asked = |given: bool| if given { " (as asked for)" } else { "" };
        Some(format!(
            "O={}{}, interleave={}{}{}",
            self.optimization.number(),
            asked(options.optimization.is_some()),
            self.interleave,
            asked(options.interleave.is_some()),
            if self.fast_compile && !options.input_optimized {
                ", the fewest passes"
            } else {
                ""
            }
        ))
    }

    /// LLVM's feature string.
    pub fn llvm_features(&self) -> String {
        match &self.vendor {
            ResolvedVendor::Nvidia { ptx, .. } => ptx.llvm_feature(),
            ResolvedVendor::Amd { features, .. } => features.clone(),
        }
    }
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
    fn a_target_refuses_what_it_cannot_honour() {
        for (name, value, chip, reason) in [
            ("wave-size", "64", "sm_90", "warps have 32 threads"),
            ("code-object-version", "5", "sm_90", "only AMD's code objects"),
            ("ptx", "8.0", "gfx942", "only NVIDIA's targets"),
            ("ptx-compiler", "ptxas", "gfx942", "only NVIDIA's targets"),
            ("ptxas-options", "-v", "gfx942", "only NVIDIA's targets"),
            (
                "ptxas-options",
                r"a\ b",
                "sm_90",
                "`a b`: it does not start with a dash, and would be taken for an input file",
            ),
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
        let error = options(&[("input-optimized", "true"), ("llvm-passes", "sroa")])
            .resolve(&target("sm_90"), None)
            .expect_err("refused");
        assert!(error.to_string().contains("none are run"), "{error}");
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
    fn a_speed_stands_for_options_that_are_not_given() {
        let resolve = |pairs: &[(&str, &str)], chip| options(pairs).resolve(&target(chip), None).expect("resolves");
        for chip in ["sm_90", "gfx942"] {
            let fast = resolve(&[("speed", "fast")], chip);
            assert_eq!((fast.optimization, fast.interleave), (OptimizationLevel::O1, 1));
            assert_eq!(fast.fast_compile, chip == "sm_90");
            let asked = resolve(&[("speed", "fast"), ("O", "2"), ("interleave", "2")], chip);
            assert_eq!((asked.optimization, asked.interleave), (OptimizationLevel::O2, 2));
            assert!(!asked.fast_compile);
            assert_eq!(resolve(&[("speed", "balanced")], chip), resolve(&[], chip));
        }
        assert_eq!(resolve(&[("speed", "fast"), ("O", "3")], "sm_90").interleave, 1);
        let debug = resolve(&[("speed", "fast"), ("debug", "full")], "sm_90");
        assert_eq!((debug.optimization, debug.fast_compile), (OptimizationLevel::O0, false));
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
