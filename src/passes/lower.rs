//! `gpulower-lower`: `gpu.module`s into the dialects of their targets.

use std::sync::OnceLock;

use melior::{
    Context,
    ir::{
        Attribute, BlockLike, Module,
        attribute::{ArrayAttribute, DenseI64ArrayAttribute, StringAttribute},
        operation::{OperationLike, OperationRef},
    },
};

use super::{options_of, read_options, report};
use crate::{
    bridge::{
        edit::{Edits, Exclusive, into_operations, module_around},
        external_pass::{DiagnosticEmitted, NamedPass, OptionValues, PassOption},
        mlir::{
            Severity, context_of, emit, location_of, remove_attribute, set_attribute, shown, symbol_attribute_name,
        },
    },
    compiler::{InputError, attribute, gpu_modules_below, symbol_name, target_attributes},
    device::lower,
    error::Error,
    options::Options,
    stage::Stage,
    target::Target,
};

/// Names the module that a variant stands for, on every `gpu.module` but the first that one module was lowered to.
pub(super) const VARIANT_OF: &str = "gpulower.variant_of";
/// Positions of a variant's targets among all targets of the module it stands for.
pub(super) const POSITIONS: &str = "gpulower.target_positions";

/// The pass.
pub(super) struct Lower;

impl NamedPass for Lower {
    const ARGUMENT: &'static str = "gpulower-lower";
    const DESCRIPTION: &'static str =
        "Lower gpu.modules to the dialects of their targets, once for each target that differs";
    type Options = Options;

    fn options() -> &'static [PassOption] {
        static OPTIONS: OnceLock<Vec<PassOption>> = OnceLock::new();
        OPTIONS.get_or_init(|| options_of(Self::ARGUMENT, &[]))
    }

    fn parse(values: &OptionValues) -> Result<Options, String> {
        read_options(Self::ARGUMENT, values)
    }

    fn can_schedule_on(operation_name: &str) -> bool {
        operation_name != "gpu.module"
    }

    fn run(options: &Options, mut operation: Exclusive<'_, '_>) -> Result<(), DiagnosticEmitted> {
        operation.edit(|root, edits| {
            let mut failed = false;
            for module in gpu_modules_below(root) {
                failed |= lower_module(module, edits, options).is_err();
            }
            if failed { Err(DiagnosticEmitted) } else { Ok(()) }
        })
    }
}

/// A module lowered for targets for which lowering makes no difference.
struct Variant<'c> {
    module: Module<'c>,
    text: String,
    targets: Vec<Attribute<'c>>,
    positions: Vec<i64>,
}

/// Lowers one `gpu.module` for each of its targets, and puts the results in its place: one module where all targets
/// agree, otherwise one for each group of targets that do.
fn lower_module<'c, 'b>(
    module: OperationRef<'c, 'b>,
    edits: &mut Edits<'c, 'b>,
    base: &Options,
) -> Result<(), DiagnosticEmitted> {
    let name = symbol_name(module);
    let fail = |error: Error| report(&error.in_module(&name), module.location());
    let attributes = target_attributes(module);
    if attributes.is_empty() {
        return Err(fail(Error::new(Stage::Plan, InputError::NoTarget { location: None })));
    }
    let context = context_of(module.context());
    let mut variants: Vec<Variant<'_>> = Vec::new();
    for (position, attribute) in (0..).zip(attributes) {
        let (target, options) =
            attribute::read(attribute, base).map_err(|cause| fail(Error::new(Stage::Plan, cause)))?;
        let lowered = lower_for(context, module, &target, &options).map_err(|error| fail(error.for_target(&target)))?;
        let text = shown(&lowered.as_operation());
        match variants.iter_mut().find(|variant| variant.text == text) {
            Some(variant) => {
                variant.targets.push(attribute);
                variant.positions.push(position);
            }
            None => variants.push(Variant {
                module: lowered,
                text,
                targets: vec![attribute],
                positions: vec![position],
            }),
        }
    }
    let several = variants.len() > 1;
    for (index, variant) in variants.into_iter().enumerate() {
        let lowered = into_operations(variant.module)
            .ok()
            .and_then(|all| all.into_iter().next());
        let (Some(lowered), Some(block)) = (lowered, module.block()) else {
            continue;
        };
        let placed = block.insert_operation_before(module, lowered);
        set_attribute(placed, "targets", ArrayAttribute::new(context, &variant.targets).into());
        if let Some((_, level)) = base.to_pairs().into_iter().find(|(name, _)| *name == "debug") {
            set_attribute(placed, attribute::DEBUG, StringAttribute::new(context, &level).into());
        }
        if several {
            set_attribute(
                placed,
                POSITIONS,
                DenseI64ArrayAttribute::new(context, &variant.positions).into(),
            );
        }
        if index > 0 {
            set_attribute(placed, VARIANT_OF, StringAttribute::new(context, &name).into());
            let own = format!("{name}_variant_{index}");
            set_attribute(
                placed,
                symbol_attribute_name(),
                StringAttribute::new(context, &own).into(),
            );
        }
    }
    edits.remove(module);
    Ok(())
}

/// A lowered copy of a `gpu.module`, without target attributes.
fn lower_for<'c>(
    context: &'c Context,
    module: OperationRef<'c, '_>,
    target: &Target,
    options: &Options,
) -> Result<Module<'c>, Error> {
    let resolved = options
        .resolve(target, None)
        .map_err(|error| Error::new(Stage::Plan, error))?;
    let mut copy = module_around(module).map_err(|error| Error::new(Stage::Lower, error))?;
    if let Some(inner) = copy.body().first_operation() {
        remove_attribute(inner, "targets");
    }
    let warnings = lower::lower(&mut copy, &resolved).map_err(|error| Error::new(Stage::Lower, error))?;
    for warning in warnings {
        emit(
            location_of(context, &warning.location),
            Severity::Warning,
            &warning.message,
        );
    }
    Ok(copy)
}
