//! `gpulower-to-binary`: attach, lower and serialize in one pass.

use std::sync::OnceLock;

use melior::ir::operation::OperationLike;

use super::{
    attach_targets::{AttachTargets, Attachment},
    serialize::{NOT_OUTLINED, Serialization, Serialize},
};
use crate::{
    bridge::{
        edit::Exclusive,
        external_pass::{DiagnosticEmitted, NamedPass, OptionValues, PassOption},
        mlir::{Severity, emit, operations_below},
    },
    device::lower::name_of,
};

/// The pass.
pub(super) struct ToBinary;

impl NamedPass for ToBinary {
    const ARGUMENT: &'static str = "gpulower-to-binary";
    const DESCRIPTION: &'static str = "Attach targets, lower and serialize gpu.modules";
    type Options = (Attachment, Serialization);

    /// The options of both passes, each once.
    fn options() -> &'static [PassOption] {
        static OPTIONS: OnceLock<Vec<PassOption>> = OnceLock::new();
        OPTIONS.get_or_init(|| {
            let mut both = AttachTargets::options().to_vec();
            for option in Serialize::options() {
                if both.iter().all(|other| other.name != option.name) {
                    both.push(option.clone());
                }
            }
            both
        })
    }

    fn parse(values: &OptionValues) -> Result<Self::Options, String> {
        let attachment = Attachment::read(values)?;
        let mut serialization = Serialization::read(values)?;
        // What is attached need not be given twice; what a target attribute brings already stays.
        if !attachment.targets.is_empty() {
            serialization.leave_to_targets();
        }
        Ok((attachment, serialization))
    }

    fn can_schedule_on(_operation_name: &str) -> bool {
        true
    }

    fn run(
        (attachment, serialization): &Self::Options,
        mut operation: Exclusive<'_, '_>,
    ) -> Result<(), DiagnosticEmitted> {
        let root = operation.get();
        if let Some(launch) = operations_below(root)
            .into_iter()
            .find(|operation| name_of(operation) == "gpu.launch")
        {
            emit(launch.location(), Severity::Error, NOT_OUTLINED);
            return Err(DiagnosticEmitted);
        }
        attachment.apply(root)?;
        serialization.apply(&mut operation, attachment.modules.as_ref(), Self::ARGUMENT)
    }
}
