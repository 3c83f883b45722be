//! Pipeline strings from anywhere.

use melior::{pass::OperationPassManager, utility::parse_pass_pipeline};

use crate::{error::Error, options::OptionError, stage::Stage};

/// Most brackets inside of each other. Operations nest as deeply as their pipeline does, and few do four times.
const MOST_LEVELS: usize = 64;

/// Adds the passes of a pipeline string to a manager. MLIR's parser calls itself for each bracket, and its end would be that
/// of the stack: what nests too deeply is refused before.
///
/// # Errors
///
/// What is wrong with the string; a pass that nobody registered; what a pass says of its options.
pub fn parse_pipeline(manager: OperationPassManager<'_, '_>, pipeline: &str) -> Result<(), Error> {
    check_pipeline(pipeline)?;
    parse_pass_pipeline(manager, pipeline).map_err(|error| refused(error.to_string()))
}

/// Refuses a pipeline string on which MLIR's parser would end the process.
///
/// # Errors
///
/// It nests too deeply.
pub fn check_pipeline(pipeline: &str) -> Result<(), Error> {
    if levels(pipeline) > MOST_LEVELS {
        return Err(refused(format!(
            "the pass pipeline has more than {MOST_LEVELS} brackets inside of each other"
        )));
    }
    Ok(())
}

pub(super) fn refused(reason: String) -> Error {
    Error::new(Stage::Plan, OptionError::Pass(reason))
}

/// The most brackets that are open at once, whether or not they are closed as they should be. What stands in braces closes nothing
/// outside of them.
fn levels(pipeline: &str) -> usize {
    let (mut open, mut most) = (0usize, 0);
    // For each brace how many brackets were open before it.
    let mut braces = Vec::new();
    for byte in pipeline.bytes() {
        match byte {
            b'(' => open += 1,
            b')' => open = open.saturating_sub(1).max(braces.last().copied().unwrap_or(0)),
            b'{' => braces.push(open),
            b'}' => open = braces.pop().unwrap_or(open),
            _ => {}
        }
        most = most.max(open + braces.len());
    }
    most
}

#[cfg(test)]
mod tests {
    use melior::{Context, pass::PassManager};

    use super::*;

    fn parsed(pipeline: &str) -> Result<(), String> {
        melior::pass::transform::register_canonicalizer();
        let context = Context::new();
        let manager = PassManager::new(&context);
        parse_pipeline(manager.as_operation_pass_manager(), pipeline).map_err(|error| error.to_string())
    }

    #[test]
    fn brackets_without_end_are_refused() {
        assert_eq!(parsed("builtin.module(canonicalize)"), Ok(()));
        let nested = |count: usize| format!("{}canonicalize{}", "any(".repeat(count), ")".repeat(count));
        assert_eq!(parsed(&nested(60)), Ok(()));
        // MLIR looks for nothing but braces in braces.
        let hidden = format!(
            "{}canonicalize{}",
            "any(canonicalize{)},".repeat(1000),
            ")".repeat(1000)
        );
        for many in [
            nested(65),
            hidden,
            "any(".repeat(1_000_000),
            "canonicalize{".repeat(1_000_000),
        ] {
            let reason = parsed(&many).expect_err("too deep");
            assert!(
                reason.contains("more than 64 brackets inside of each other"),
                "{reason}"
            );
        }
        assert!(parsed("builtin.module(nothing)").is_err());
    }
}
