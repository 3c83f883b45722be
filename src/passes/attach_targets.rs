//! `gpulower-attach-targets`: target attributes from names.

use std::sync::OnceLock;

use melior::ir::{
    Attribute,
    attribute::ArrayAttribute,
    operation::{OperationLike, OperationRef},
};
use regex_lite::Regex;

use super::{collect_option, option, options_of, read_options, read_switch};
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

/// What to attach, and where.
#[derive(Debug)]
pub(super) struct Attachment {
    pub targets: Vec<Target>,
    pub options: Options,
    /// Modules to leave out are those whose name this does not match.
    pub modules: Option<Regex>,
    /// Whether what the PTX compiler says is kept with the object.
    collect: bool,
}

impl Attachment {
    /// Reads the options of [`AttachTargets`].
    pub(super) fn read(values: &OptionValues) -> Result<Self, String> {
        let text = values.get("targets");
        let targets = if text.is_empty() {
            Vec::new()
        } else {
            Target::parse_list(text).map_err(|error| error.to_string())?
        };
        let options = read_options(AttachTargets::ARGUMENT, values)?;
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
            collect: read_switch(values, attribute::COLLECT)?,
        })
    }

    /// Adds the targets to every matching `gpu.module` inside `root`; each target stands once, in the order of its
    /// first mention.
    pub(super) fn apply<'c>(&self, root: OperationRef<'c, '_>) -> Result<(), DiagnosticEmitted> {
        let context = context_of(root.context());
        let mut attributes = Vec::new();
        for target in &self.targets {
            match attribute::make(context, target, &self.options, self.collect) {
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
    type Options = Attachment;

    fn options() -> &'static [PassOption] {
        static OPTIONS: OnceLock<Vec<PassOption>> = OnceLock::new();
        OPTIONS.get_or_init(|| {
            let own = [
                option("targets", "Chips, such as sm_80,sm_90a,gfx942:xnack- (required)"),
                option(
                    "module",
                    "Regular expression: only modules whose whole name matches (default: all)",
                ),
                option("l", "Bitcode libraries to link, comma-separated paths"),
                collect_option(),
            ];
            options_of(Self::ARGUMENT, &own)
        })
    }

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
