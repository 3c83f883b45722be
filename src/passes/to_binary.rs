//! `gpulower-to-binary`: attach, lower and serialize in one pass.

use melior::ir::operation::OperationLike;

use super::{
    attach_targets::{AttachTargets, Attachment},
    serialize::{self, NOT_OUTLINED, Serialization},
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

const ATTACH: &[PassOption] = AttachTargets::OPTIONS;
const SERIALIZE: &[PassOption] = serialize::OPTIONS;

/// Options that both passes have: they are attached.
const SHARED: usize = 4;

/// The options of both passes, each once.
const BOTH: [PassOption; ATTACH.len() + SERIALIZE.len() - SHARED] = {
    let mut both = [ATTACH[0]; ATTACH.len() + SERIALIZE.len() - SHARED];
    let mut count = 0;
    let mut index = 0;
    while index < ATTACH.len() {
        both[count] = ATTACH[index];
        count += 1;
        index += 1;
    }
    index = 0;
    while index < SERIALIZE.len() {
        if !contains(ATTACH, SERIALIZE[index].name) {
            both[count] = SERIALIZE[index];
            count += 1;
        }
        index += 1;
    }
    both
};

const fn contains(options: &[PassOption], name: &str) -> bool {
    let mut index = 0;
    while index < options.len() {
        if equal(options[index].name.as_bytes(), name.as_bytes()) {
            return true;
        }
        index += 1;
    }
    false
}

const fn equal(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    let mut index = 0;
    while index < a.len() {
        if a[index] != b[index] {
            return false;
        }
        index += 1;
    }
    true
}

impl NamedPass for ToBinary {
    const ARGUMENT: &'static str = "gpulower-to-binary";
    const DESCRIPTION: &'static str = "Attach targets, lower and serialize gpu.modules";
    const OPTIONS: &'static [PassOption] = &BOTH;
    type Options = (Attachment, Serialization);

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
        serialization.apply(&mut operation, attachment.modules.as_ref())
    }
}
