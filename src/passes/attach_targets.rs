//! `gpulower-attach-targets`: target attributes from names.

use melior::ir::{
    Attribute,
    attribute::ArrayAttribute,
    operation::{OperationLike, OperationRef},
};
use regex_lite::Regex;

use super::{option, read_libraries, read_options};
use crate::{
    bridge::{
        edit::Exclusive,
        external_pass::{DiagnosticEmitted, NamedPass, OptionValues, PassOption},
        mlir::{Severity, context_of, emit, set_attribute},
    },
    compiler::{attribute, gpu_modules_below, symbol_name, target_attributes},
    options::Options,
    target::Target,
};

/// The pass.
pub(super) struct AttachTargets;

/// Options of a target attribute, in the order of `--help`.
pub(super) const TARGET_OPTIONS: &[&str] = &[
    "O",
    "fast",
    "ftz",
    "daz",
    "prec-sqrt",
    "prec-div",
    "fp-contract",
    "max-registers",
    "wave-size",
    "code-object-version",
    "debug",
    "debug-prefix-map",
    "ptx",
    "ptx-compiler",
    "ptxas-options",
    "index-bitwidth",
    "bare-pointers",
    "interleave",
    "spill-warning",
    "time-limit",
];

/// What to attach, and where.
#[derive(Debug)]
pub(super) struct Attachment {
    pub targets: Vec<Target>,
    pub options: Options,
    /// Modules to leave out are those whose name this does not match.
    pub modules: Option<Regex>,
}

impl Attachment {
    /// Reads `targets`, `module`, `l` and [`TARGET_OPTIONS`].
    pub(super) fn read(values: &OptionValues) -> Result<Self, String> {
        let text = values.get("targets");
        let targets = if text.is_empty() {
            Vec::new()
        } else {
            Target::parse_list(text).map_err(|error| error.to_string())?
        };
        let mut options = Options::default();
        read_options(&mut options, values, TARGET_OPTIONS)?;
        options.libraries.extend(read_libraries(values));
        for target in &targets {
            options.resolve(target, None).map_err(|error| error.to_string())?;
        }
        let modules = match values.get("module") {
            "" => None,
            pattern => Some(
                Regex::new(&format!("^(?:{pattern})$"))
                    .map_err(|error| format!("option 'module' is not a regular expression: {error}"))?,
            ),
        };
        Ok(Self {
            targets,
            options,
            modules,
        })
    }

    /// Adds the targets to every matching `gpu.module` inside `root`; each target stands once, in the order of its
    /// first mention.
    pub(super) fn apply<'c>(&self, root: OperationRef<'c, '_>) -> Result<(), DiagnosticEmitted> {
        let context = context_of(root.context());
        let mut attributes = Vec::new();
        for target in &self.targets {
            match attribute::make(context, target, &self.options) {
                Ok(made) => attributes.push(made),
                Err(error) => {
                    emit(root.location(), Severity::Error, &error.to_string());
                    return Err(DiagnosticEmitted);
                }
            }
        }
        for module in gpu_modules_below(root) {
            if self
                .modules
                .as_ref()
                .is_some_and(|pattern| !pattern.is_match(&symbol_name(module)))
            {
                continue;
            }
            let mut all: Vec<Attribute<'c>> = target_attributes(module);
            all.extend(attributes.iter().copied());
            let mut unique: Vec<Attribute<'c>> = Vec::new();
            for attribute in all {
                if !unique.contains(&attribute) {
                    unique.push(attribute);
                }
            }
            set_attribute(module, "targets", ArrayAttribute::new(context, &unique).into());
        }
        Ok(())
    }
}

impl NamedPass for AttachTargets {
    const ARGUMENT: &'static str = "gpulower-attach-targets";
    const DESCRIPTION: &'static str = "Attach target attributes to gpu.modules by the names of chips";
    const OPTIONS: &'static [PassOption] = &[
        option("targets", "Chips, such as sm_80,sm_90a,gfx942:xnack- (required)"),
        option(
            "module",
            "Regular expression: only modules whose whole name matches (default: all)",
        ),
        option("l", "Bitcode libraries to link, comma-separated paths"),
        option("O", "Optimisation level 0 to 3 (default 3)"),
        option("fast", "Permit everything that loses precision for speed: true|false"),
        option("ftz", "Flush f32 denormals to zero: true|false"),
        option("daz", "The same as ftz"),
        option(
            "prec-sqrt",
            "Correctly rounded f32 square roots: true|false (default true)",
        ),
        option("prec-div", "Correctly rounded f32 divisions: true|false (default true)"),
        option("fp-contract", "Fused multiply-add: off|on|fast (default on)"),
        option("max-registers", "Upper bound of registers (AMD: VGPRs) per thread"),
        option("wave-size", "Lanes in a wave, 32|64 (AMD; default: the chip's own)"),
        option("code-object-version", "4|5|6 (AMD; default 5, generic targets 6)"),
        option("debug", "Debug info: none|line-tables|full (default none)"),
        option(
            "debug-prefix-map",
            "OLD=NEW[,..]: write NEW for paths that begin with OLD in debug info",
        ),
        option(
            "ptx",
            "PTX ISA, such as 8.3 (NVIDIA; default: the chip's minimum, raised as needed)",
        ),
        option(
            "ptx-compiler",
            "nvptxcompiler|ptxas|nvjitlink (NVIDIA; default: the first that can)",
        ),
        option("ptxas-options", "Further options for the PTX compiler (NVIDIA)"),
        option("index-bitwidth", "Bits of index on the device: 32|64 (default 64)"),
        option(
            "bare-pointers",
            "Pass memrefs of static shape as bare pointers: true|false",
        ),
        option(
            "interleave",
            "Iterations of a loop that run at once: 1|2|4|8 (default: 4 for NVIDIA at O=2 and above, else 1)",
        ),
        option(
            "spill-warning",
            "Warn when a kernel spills more bytes (AMD: registers) than this (default 0)",
        ),
        option(
            "time-limit",
            "Longest time for a module and a target, in seconds (default: none)",
        ),
    ];
    type Options = Attachment;

    fn parse(values: &OptionValues) -> Result<Attachment, String> {
        let attachment = Attachment::read(values)?;
        if attachment.targets.is_empty() {
            return Err("option 'targets' is missing: name the chips to compile for, such as targets=sm_90,gfx942; there is no default".to_owned());
        }
        Ok(attachment)
    }

    fn can_schedule_on(_operation_name: &str) -> bool {
        true
    }

    fn run(options: &Attachment, operation: Exclusive<'_, '_>) -> Result<(), DiagnosticEmitted> {
        options.apply(operation.get())
    }
}
