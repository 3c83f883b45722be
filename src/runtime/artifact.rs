//! Artifacts of a compilation, as something to load.

use super::choose::ChooseError;
use crate::report::{Artifact, Format};

/// Refuses an artifact of a form that no driver loads.
pub(super) fn check(artifact: &Artifact) -> Result<(), ChooseError> {
    match artifact.format {
        Format::Ptx | Format::Cubin | Format::Hsaco | Format::Fatbin | Format::Bundle | Format::Offload => Ok(()),
        // The driver links a relocatable cubin; of AMD's objects the reader says that they are to be linked.
        Format::Object => Ok(()),
        Format::Mlir | Format::Llvm | Format::Bitcode | Format::Asm => Err(ChooseError::NotMachineCode {
            name: artifact.module.clone(),
            title: artifact.format.title(),
        }),
    }
}
