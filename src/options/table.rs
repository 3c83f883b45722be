//! The options, each declared once: field, default, names, texts, values, passes, rules.
//!
//! Fields and defaults of [`Options`], flags of the command line, options of passes, entries of target attributes, the cache's
//! keys, the fuzzer's inputs and the tables of `docs/options.md` are made from these rows.

use std::time::Duration;

use super::{
    Compression, DebugLevel, DeviceLink, FpContract, Isolation, Library, OptimizationLevel, PtxCompiler, Speed,
    form::{
        ABOVE_ZERO, COMPRESSION, Form, MEBIBYTES, NUMBER, OPEN_SWITCH, PATH_PREFIXES, PIPELINE, PTX_ISA, PTX_POLICY,
        SECONDS, SWITCH, WORDS, Wrong, choice,
    },
};
use crate::target::{CodeObjectVersion, PtxIsa, PtxPolicy, Vendor};

/// What is known of one option that has a textual form.
#[derive(Clone, Copy, Debug)]
pub struct OptionDescription {
    /// Its names, in kebab case. The first is the one that counts.
    pub names: &'static [&'static str],
    /// What it is for, in one line.
    pub summary: &'static str,
    /// What its values look like: `off|on|fast`, `N`.
    pub values: &'static str,
    /// What its values are, in words.
    pub meaning: &'static str,
    /// Values that it takes.
    pub examples: &'static [&'static str],
    /// What it is when it is not given.
    pub default: &'static str,
    /// What it does for NVIDIA's targets, in Markdown.
    pub nvidia: &'static str,
    /// What it does for AMD's targets, in Markdown; empty for the same as for NVIDIA's.
    pub amd: &'static str,
    /// The passes that have it.
    pub passes: &'static [&'static str],
    /// What sets it apart from others.
    pub rules: Rules,
    pub(super) access: Access,
}

/// What sets an option apart from others.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Whose targets alone have it, and why others refuse it.
    pub only: Option<(Vendor, &'static str)>,
    /// Whether it adds up when it is given several times; otherwise the last one counts.
    pub adds_up: bool,
    /// Whether it is for the caller alone to say, and not for a module.
    pub is_the_callers: bool,
    /// Whether another value may give another result; otherwise it decides at most whether there is one.
    pub changes_result: bool,
}

/// How an option is read, printed and carried over.
#[derive(Clone, Copy, Debug)]
pub(super) struct Access {
    pub read: fn(&str, &mut Options) -> Result<(), Wrong>,
    pub print: fn(&Options) -> String,
    /// Whether it is not what it is by default.
    pub is_given: fn(&Options) -> bool,
    /// Sets it in the first to what it is in the second, or adds that.
    pub carry_over: fn(&mut Options, &Options),
    /// Its value as bytes; no two values have the same.
    pub encode: fn(&Options) -> Result<Vec<u8>, postcard::Error>,
}

const ORDINARY: Rules = Rules {
    only: None,
    adds_up: false,
    is_the_callers: false,
    changes_result: true,
};
const ADDS_UP: Rules = Rules {
    adds_up: true,
    ..ORDINARY
};
const NVIDIA_ONLY: Rules = Rules {
    only: Some((Vendor::Nvidia, "only NVIDIA's targets have it")),
    ..ORDINARY
};

const ATTACH: &str = "gpulower-attach-targets";
const LOWER: &str = "gpulower-lower";
const SERIALIZE: &str = "gpulower-serialize";
const EMBED: &str = "gpulower-embed-offload";

/// Makes [`Options`] and [`DESCRIPTIONS`] of rows `field: type = default, form, { description };`. What has no textual form
/// has no form and no description.
macro_rules! options {
    ($(
        $(#[doc = $doc:literal])*
        $field:ident: $type:ty = $default:expr $(, $form:expr, { $($property:ident: $value:expr),* $(,)? })?;
    )*) => {
        /// What is asked of a compilation. [`Options::default`] asks for `-O3` and code that computes what the IR says.
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        pub struct Options {
            $($(#[doc = $doc])* pub $field: $type,)*
        }

        impl Default for Options {
            fn default() -> Self {
                Self { $($field: $default,)* }
            }
        }

        /// Every option that has a textual form, in the order of the documentation.
        pub const DESCRIPTIONS: &[OptionDescription] = &[$($({
            const FORM: Form<$type> = $form;
            OptionDescription {
                $($property: $value,)*
                values: FORM.values,
                meaning: FORM.meaning,
                examples: FORM.examples,
                access: Access {
                    read: |text, options| (FORM.read)(text, &mut options.$field),
                    print: |options| (FORM.print)(&options.$field),
                    is_given: |options| options.$field != Options::default().$field,
                    carry_over: |to, from| (FORM.carry_over)(&mut to.$field, &from.$field),
                    encode: |options| postcard::to_allocvec(&options.$field),
                },
            }
        },)?)*];
    };
}

options! {
    /// Optimisation level; `None` means 3, or 0 where full debug info asks for it.
    optimization: Option<OptimizationLevel> = None, choice!(
        "0" => Some(OptimizationLevel::O0),
        "1" => Some(OptimizationLevel::O1),
        "2" => Some(OptimizationLevel::O2),
        "3" => Some(OptimizationLevel::O3)
    ), {
        names: &["O", "optimization"], default: "3; 1 with speed=fast; 0 with debug=full on NVIDIA", passes: &[ATTACH], rules: ORDINARY,
        summary: "Optimisation level of LLVM and the vendor's compiler",
        nvidia: "LLVM's `default<On>`, for 3 [without what kernels do not need](code-quality.md#passes), and `-On` for the PTX compiler",
        amd: "LLVM's `default<On>`",
    };
    /// What time is spent on; a more specific option wins over it.
    speed: Speed = Speed::Balanced, choice!(
        "fast" => Speed::Fast,
        "balanced" => Speed::Balanced,
        "best" => Speed::Best
    ), {
        names: &["speed"], default: "balanced", passes: &[ATTACH, SERIALIZE], rules: ORDINARY,
        summary: "What time is spent on: fast is for first runs and tests, best tries variants of each kernel; other options win over what it stands for",
        nvidia: "see below", amd: "see below",
    };
    /// The input is LLVM IR that its producer has optimised for the target: LLVM's passes are not run over it again.
    input_optimized: bool = false, SWITCH, {
        names: &["input-optimized"], default: "off", passes: &[], rules: Rules { is_the_callers: true, ..ORDINARY },
        summary: "The input is LLVM IR that was optimised for the target: leave out LLVM's passes",
        nvidia: "only what is marked for it is inlined, and `__nvvm_reflect` is answered; code generation and the PTX             compiler keep the level of `O`. LLVM's passes do run where a library was linked into the input. Refused for             MLIR and PTX",
        amd: "the same, without the PTX compiler",
    };
    /// LLVM's passes for LLVM IR, in LLVM's textual form. `None` means those of the optimisation level, and gpulower's own.
    llvm_passes: Option<String> = None, PIPELINE, {
        names: &["llvm-passes"], default: "`default<On>`, and our own", passes: &[], rules: Rules { is_the_callers: true, ..ORDINARY },
        summary: "Passes of LLVM's to run in place of those of the optimisation level",
        nvidia: "run after libraries were linked, in place of `default<On>` and of interleaving loops; what prints or writes files is refused; code generation and the PTX compiler \
            keep the level of `O`. Refused for PTX, and with `input-optimized`",
        amd: "the same, without the PTX compiler",
    };
    /// Permits everything that loses precision for speed: all fast-math flags, flushed denormals, approximate division
    /// and square root, contraction. A more specific option wins over it.
    fast: bool = false, SWITCH, {
        names: &["fast"], default: "off", passes: &[ATTACH], rules: ORDINARY,
        summary: "Permit everything that loses precision for speed",
        nvidia: "see below", amd: "see below",
    };
    /// Flushes f32 denormals to zero (`ftz`, also called `daz`). `None` follows `fast`.
    ftz: Option<bool> = None, OPEN_SWITCH, {
        names: &["ftz", "daz"], default: "as fast", passes: &[ATTACH], rules: ORDINARY,
        summary: "Flush f32 denormals to zero",
        nvidia: "f32 instructions with `.ftz`, libdevice's `__CUDA_FTZ`",
        amd: "f32 denormal mode 0 in the kernel descriptor, ocml's `__oclc_daz_opt`",
    };
    /// Correctly rounded f32 square roots. `None` means yes, unless `fast`.
    prec_sqrt: Option<bool> = None, OPEN_SWITCH, {
        names: &["prec-sqrt"], default: "on; off with fast", passes: &[ATTACH], rules: ORDINARY,
        summary: "Correctly rounded f32 square roots",
        nvidia: "`sqrt.rn.f32`; off: `sqrt.approx.f32`",
        amd: "correctly rounded sequence; off: the 1 ulp `v_sqrt_f32`; ocml's `__oclc_correctly_rounded_sqrt32`",
    };
    /// Correctly rounded f32 divisions. `None` means yes, unless `fast`.
    prec_div: Option<bool> = None, OPEN_SWITCH, {
        names: &["prec-div"], default: "on; off with fast", passes: &[ATTACH], rules: ORDINARY,
        summary: "Correctly rounded f32 divisions",
        nvidia: "`div.rn.f32`; off: `div.full.f32`, 2 ulp over the full range; with `fast`: `div.approx.f32`",
        amd: "correctly rounded sequence; off: reciprocal and product",
    };
    /// Fused multiply-add. `None` means on, or fast with `fast`.
    fp_contract: Option<FpContract> = None, choice!(
        "off" => Some(FpContract::Off),
        "on" => Some(FpContract::On),
        "fast" => Some(FpContract::Fast)
    ), {
        names: &["fp-contract"], default: "on; fast with fast", passes: &[ATTACH], rules: ORDINARY,
        summary: "Fused multiply-add: never, where the IR allows it, everywhere",
        nvidia: "see below", amd: "see below",
    };
    /// Upper bound of registers a thread may use (NVIDIA: registers, AMD: VGPRs).
    max_registers: Option<u32> = None, ABOVE_ZERO, {
        names: &["max-registers"], default: "none", passes: &[ATTACH], rules: ORDINARY,
        summary: "Upper bound of registers (AMD: VGPRs) per thread",
        nvidia: "`.maxnreg` in the PTX of every kernel; an error when the PTX compiler cannot keep it (24 is the \
            least on `sm_90`)",
        amd: "LLVM's `amdgpu-num-vgpr` on every kernel; on gfx90a and later chips with MFMA the bound covers \
            accumulation registers too",
    };
    /// Lanes in a wave, 32 or 64 (AMD). `None` means the chip's own.
    wave_size: Option<u32> = None, choice!("32" => Some(32), "64" => Some(64)), {
        names: &["wave-size"], default: "the chip's own", passes: &[ATTACH],
        rules: Rules { only: Some((Vendor::Amd, "NVIDIA's warps have 32 threads")), ..ORDINARY },
        summary: "Lanes in a wave",
        nvidia: "refused",
        amd: "code, and ocml's and ockl's `__oclc_wavefrontsize64`; refused when the chip cannot run it",
    };
    /// No atomic operation of a kernel is on memory that host and device see at once: pinned, registered, or managed memory
    /// (AMD).
    coarse_grained_memory: bool = false, SWITCH, {
        names: &["coarse-grained-memory"], default: "off", passes: &[ATTACH],
        rules: Rules { only: Some((Vendor::Amd, "NVIDIA's atomic instructions reach all memory")), ..ORDINARY },
        summary: "No float atomic is on memory shared with the host or with another GPU",
        nvidia: "refused",
        amd: "`memref.atomic_rmw` and `llvm.atomicrmw` of floats: instructions that do nothing in memory shared with the host or \
            with other devices (f32 on gfx11, and on gfx90a with `ftz`; f64 and two f16 at once on gfx90a), in place of loops; \
            other chips have better ones",
    };
    /// Code object version (AMD). `None` means 5, or 6 for generic targets.
    code_object_version: Option<CodeObjectVersion> = None, choice!(
        "4" => Some(CodeObjectVersion::V4), "5" => Some(CodeObjectVersion::V5), "6" => Some(CodeObjectVersion::V6);
        "400" => Some(CodeObjectVersion::V4), "500" => Some(CodeObjectVersion::V5), "600" => Some(CodeObjectVersion::V6)
    ), {
        names: &["code-object-version"], default: "5; 6 for generic targets", passes: &[ATTACH],
        rules: Rules { only: Some((Vendor::Amd, "only AMD's code objects have one")), ..ORDINARY },
        summary: "Code object version",
        nvidia: "refused", amd: "module flag, `__oclc_ABI_version`, ELF header; below 6 refused for generic targets",
    };
    /// Debug info.
    debug: DebugLevel = DebugLevel::None, choice!(
        "none" => DebugLevel::None,
        "line-tables" => DebugLevel::LineTables,
        "full" => DebugLevel::Full
    ), {
        names: &["debug"], default: "none", passes: &[ATTACH, LOWER], rules: ORDINARY,
        summary: "Debug info",
        nvidia: "see below", amd: "see below",
    };
    /// What paths in debug info begin with, and what is written instead. The last that fits a path counts.
    debug_prefix_map: Vec<(String, String)> = Vec::new(), PATH_PREFIXES, {
        names: &["debug-prefix-map"], default: "none", passes: &[ATTACH], rules: ADDS_UP,
        summary: "Write NEW for paths that begin with OLD in debug info; may be repeated, the last that fits counts",
        nvidia: "files in debug info whose path begins with OLD get NEW in its place, so that artifacts do not depend \
            on where they were built; the last entry that fits counts",
        amd: "",
    };
    /// PTX ISA (NVIDIA). `None` means the chip's minimum, raised when an instruction needs more.
    ptx: Option<PtxIsa> = None, PTX_ISA, {
        names: &["ptx"], default: "the chip's first, raised when an instruction needs more", passes: &[ATTACH],
        rules: NVIDIA_ONLY,
        summary: "PTX ISA",
        nvidia: "`.version` of the PTX; refused below the chip's first, above LLVM's newest, above what the PTX \
            compiler reads: [targets.md](targets.md)",
        amd: "refused",
    };
    /// Who turns PTX into a cubin (NVIDIA). `None` means the first that can.
    ptx_compiler: Option<PtxCompiler> = None, choice!(
        "nvptxcompiler" => Some(PtxCompiler::NvPtxCompiler),
        "ptxas" => Some(PtxCompiler::Ptxas),
        "nvjitlink" => Some(PtxCompiler::NvJitLink)
    ), {
        names: &["ptx-compiler"], default: "the first that can", passes: &[ATTACH, SERIALIZE], rules: NVIDIA_ONLY,
        summary: "Who turns PTX into a cubin",
        nvidia: "that one and no other", amd: "refused",
    };
    /// Further options for NVIDIA's PTX compiler, one per word.
    ptxas_options: Vec<String> = Vec::new(), WORDS, {
        names: &["ptxas-options"], default: "none", passes: &[ATTACH], rules: Rules { adds_up: true, ..NVIDIA_ONLY },
        summary: "Further options for the PTX compiler; may be repeated",
        nvidia: "passed on, after our own. PTX of 256 KiB and more that cannot be divided by kernels gets \
            `--split-compile=4` from CUDA 13 on, whatever `-j` says, unless the words say something else: \
            [performance.md](performance.md)",
        amd: "refused",
    };
    /// Which PTX a container holds beside the machine code (NVIDIA). `None` is [`PtxPolicy::default`].
    include_ptx: Option<PtxPolicy> = None, PTX_POLICY, {
        names: &["include-ptx"], default: "lowest", passes: &[SERIALIZE], rules: ORDINARY,
        summary: "PTX in a fat binary: of no target, of the lowest or newest portable one, of all, or of those named",
        nvidia: "which PTX a container holds beside the cubins: [targets.md](targets.md)",
        amd: "nothing; refused without an NVIDIA target",
    };
    /// How a container stores its images. `None` means as they are, which every driver reads.
    compression: Option<Compression> = None, COMPRESSION, {
        names: &["compress"], default: "none, which every driver reads", passes: &[SERIALIZE], rules: ORDINARY,
        summary: "How a container stores its images",
        nvidia: "how a fat binary stores its images", amd: "`zstd`: a compressed bundle (`CCOB`, version 2)",
    };
    /// Joins the modules of one input into one image for each target, and links objects into it. `None` makes an image of
    /// each module.
    device_link: Option<DeviceLink> = None;
    /// Libraries to link before the vendor's.
    libraries: Vec<Library> = Vec::new();
    /// Bits of `index` on the device, 32 or 64.
    index_bitwidth: u32 = 64, choice!("32" => 32, "64" => 64), {
        names: &["index-bitwidth"], default: "64", passes: &[ATTACH, LOWER, EMBED], rules: ORDINARY,
        summary: "Bits of index on the device",
        nvidia: "bits of `index`, and of the sizes in memref descriptors", amd: "",
    };
    /// Passes memrefs of static shape to kernels as bare pointers.
    bare_pointers: bool = false, SWITCH, {
        names: &["bare-pointers"], default: "off", passes: &[ATTACH, LOWER, EMBED], rules: ORDINARY,
        summary: "Pass memrefs of static shape to kernels as bare pointers",
        nvidia: "memrefs of static shape are one pointer in kernels", amd: "",
    };
    /// How many iterations of a loop run at once, with their loads first: 1, 2, 4 or 8. `None` means 4 for NVIDIA from
    /// optimisation level 2 on, and 1 otherwise.
    interleave: Option<u32> = None, choice!("1" => Some(1), "2" => Some(2), "4" => Some(4), "8" => Some(8)), {
        names: &["interleave"], default: "4 for NVIDIA from O=2 on, but with speed=fast, else 1", passes: &[ATTACH, SERIALIZE], rules: ORDINARY,
        summary: "Iterations of a loop that run at once, with their loads first",
        nvidia: "how many iterations of a loop run at once, see below", amd: "",
    };
    /// A warning is given for each kernel that spills more bytes (NVIDIA) or registers (AMD) than this.
    spill_warning: u32 = 0, NUMBER, {
        names: &["spill-warning"], default: "0", passes: &[ATTACH, SERIALIZE], rules: ORDINARY,
        summary: "Warn when a kernel spills more bytes (AMD: registers) than this",
        nvidia: "a warning for each kernel that spills more bytes", amd: "more registers",
    };
    /// Longest time for a module and a target. A worker process is killed then; in this process it is looked at between
    /// passes, and `ptxas` is killed. `None` means no limit.
    time_limit: Option<Duration> = None, SECONDS, {
        names: &["time-limit"], default: "none", passes: &[ATTACH, SERIALIZE],
        rules: Rules { changes_result: false, ..ORDINARY },
        summary: "Longest time for a module and a target, in seconds",
        nvidia: "for each module and target. With `isolation=worker` the worker is killed; in process it is looked at \
            between passes, and `ptxas` is killed. A single pass, nvPTXCompiler and nvJitLink cannot be interrupted in \
            process, and are named",
        amd: "the same; a single pass and lld cannot be interrupted in process",
    };
    /// Most memory that a worker process may use, in bytes. `None` means no limit.
    memory_limit: Option<u64> = None, MEBIBYTES, {
        names: &["memory-limit"], default: "none", passes: &[],
        rules: Rules { is_the_callers: true, changes_result: false, ..ORDINARY },
        summary: "Most memory of a worker process, in MiB",
        nvidia: "with `isolation=worker`: the most that a worker may use; refused without", amd: "",
    };
    /// Where the risky part runs. What comes out is the same.
    isolation: Isolation = Isolation::InProcess, choice!(
        "in-process" => Isolation::InProcess,
        "worker" => Isolation::Worker
    ), {
        names: &["isolation"], default: "in-process", passes: &[],
        rules: Rules { is_the_callers: true, changes_result: false, ..ORDINARY },
        summary: "Where lowering, LLVM and the vendor's compiler run",
        nvidia: "where lowering, LLVM and the vendor's compiler run: [reliability.md](reliability.md)", amd: "",
    };
}

impl OptionDescription {
    /// The name that counts.
    pub fn name(&self) -> &'static str {
        self.names.first().copied().unwrap_or_default()
    }

    /// The option with this name, whichever of its names that is.
    pub fn named(name: &str) -> Option<&'static Self> {
        DESCRIPTIONS.iter().find(|option| option.names.contains(&name))
    }

    /// What its values are, for a person whose value is none.
    pub(super) const fn values_in_words(&self) -> &'static str {
        if self.meaning.is_empty() {
            self.values
        } else {
            self.meaning
        }
    }

    /// The options of a pass.
    pub fn of_pass(pass: &str) -> impl Iterator<Item = &'static Self> {
        DESCRIPTIONS.iter().filter(move |option| option.passes.contains(&pass))
    }

    /// Summary, vendor and default in one line.
    pub fn help(&self) -> String {
        let vendor = self
            .rules
            .only
            .map(|(vendor, _)| format!("{vendor}; "))
            .unwrap_or_default();
        format!("{} ({vendor}default: {})", self.summary, self.default)
    }

    /// Whether it is not what it is by default.
    pub fn is_given(&self, options: &Options) -> bool {
        (self.access.is_given)(options)
    }

    /// What the values of an option are, if it does not take this one; otherwise nothing.
    pub fn expected(name: &str, value: &str) -> &'static str {
        match Self::named(name) {
            Some(option) if Options::default().set(name, value).is_err() => option.values_in_words(),
            _ => "",
        }
    }

    /// Its value as bytes: no two values have the same.
    fn encode(&self, options: &Options) -> Vec<u8> {
        // Its text has everything too.
        let text = |_| (self.access.print)(options).into_bytes();
        (self.access.encode)(options).unwrap_or_else(text)
    }
}

impl Options {
    /// What may give another result, for keys: names and values of the options that differ from the default. What has no
    /// textual form is not among them.
    pub fn identity(&self) -> impl Iterator<Item = (&'static str, Vec<u8>)> {
        DESCRIPTIONS
            .iter()
            .filter(|option| option.rules.changes_result && option.is_given(self))
            .map(|option| (option.name(), option.encode(self)))
    }

    /// Sets what is given in others; what adds up is added.
    pub fn carry_over(&mut self, others: &Self) {
        for option in DESCRIPTIONS.iter().filter(|option| option.is_given(others)) {
            (option.access.carry_over)(self, others);
        }
    }
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
