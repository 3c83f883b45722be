//! Memory of workgroups, aligned as tensor copies, matrix instructions and barriers want it.

use super::{Decision, DeviceError, DeviceModule, Stage};
use crate::bridge::shared_alignment::{SharedAlignment, align_shared};

/// Raises the alignment of variables, and says so; refuses addresses that the hardware would refuse.
pub(super) fn align(module: &DeviceModule<'_>, decide: &dyn Fn(Decision)) -> Result<(), DeviceError> {
    let mut raised: Vec<SharedAlignment> = Vec::new();
    for entry in align_shared(module)? {
        if let Some(offset) = entry.misfit {
            return Err(DeviceError::Misaligned {
                instruction: entry.instruction,
                function: entry.function,
                variable: entry.variable,
                offset,
                wanted: entry.to,
                location: entry.location,
            });
        }
        // Of several instructions that want more and more, the last is the reason.
        match raised.iter_mut().find(|earlier| earlier.variable == entry.variable) {
            Some(earlier) => {
                let from = earlier.from;
                *earlier = SharedAlignment { from, ..entry };
            }
            None => raised.push(entry),
        }
    }
    for entry in raised {
        decide(Decision {
            stage: Stage::Link,
            choice: format!("alignment of {}", entry.variable),
            outcome: format!(
                "{} bytes instead of {}, for {} in {}",
                entry.to, entry.from, entry.instruction, entry.function
            ),
        });
    }
    Ok(())
}
