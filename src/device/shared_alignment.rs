//! Memory of workgroups, aligned as tensor copies, matrix instructions and barriers want it.

use super::{Decision, DeviceError, DeviceModule, Stage};
use crate::bridge::shared_alignment::{SharedAlignment, align_shared};

/// Raises the alignment of variables, and says so; refuses addresses that the hardware would refuse.
pub(super) fn align(module: &DeviceModule<'_>, decide: &dyn Fn(Decision)) -> Result<(), DeviceError> {
    for entry in align_shared(module)? {
        let SharedAlignment {
            variable,
            instruction,
            function,
            location,
            misfit,
            from,
            to,
        } = entry;
        match misfit {
            Some(offset) => {
                return Err(DeviceError::Misaligned {
                    instruction,
                    function,
                    variable,
                    offset,
                    wanted: to,
                    location,
                });
            }
            None => decide(Decision {
                stage: Stage::Link,
                choice: format!("alignment of {variable}"),
                outcome: format!("{to} bytes instead of {from}, for {instruction} in {function}"),
            }),
        }
    }
    Ok(())
}
