//! Why a worker process gave no answer.

use std::{fmt::Write, io, path::PathBuf};

use crate::stage::Stage;

/// Why a worker process gave no answer. The compilation that it was busy with is lost, and nothing else: the next one gets
/// another worker.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkerError {
    /// No program was named.
    #[error(
        "isolation=worker needs a program that does the work; name one with CompilerBuilder::worker, such as \
         Worker::program(\"/usr/bin/gpulower\") (the program gpulower names itself, for which /proc has to be mounted)"
    )]
    NoProgram,
    /// The program was named by a path that depends on the current directory.
    #[error(
        "the worker program {} is named by a relative path; give an absolute one, so that no program of the current \
         directory is run", .path.display()
    )]
    Relative {
        /// The path.
        path: PathBuf,
    },
    /// The program could not be started.
    #[error("the worker {} could not be started: {source}", .program.display())]
    Start {
        /// The program.
        program: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The program ran, and did not answer as a worker does.
    #[error(
        "{} did not answer as a worker of gpulower does ({what}){}; name the program `gpulower`, or one that calls \
         gpulower::worker::serve", .program.display(), printed(.output)
    )]
    NotAWorker {
        /// The program.
        program: PathBuf,
        /// What it did instead.
        what: String,
        /// The end of what it printed.
        output: String,
    },
    /// The program was built from another version of this library.
    #[error(
        "the worker {} is of another build ({theirs}) than this program ({ours}), and could give other results; use the \
         gpulower that belongs to this program", .program.display()
    )]
    OtherBuild {
        /// The program.
        program: PathBuf,
        /// Its build.
        theirs: String,
        /// The build of this program.
        ours: String,
    },
    /// The worker crashed.
    #[error(
        "the worker process ended unexpectedly{} ({how}){}; other compilations are not affected. If nobody stopped it, the \
         input crashes LLVM or a vendor's compiler: please report it", in_stage(*.stage), printed(.output)
    )]
    Crashed {
        /// How it ended: the signal, or the exit status.
        how: String,
        /// The stage that it was in, if it had reported one.
        stage: Option<Stage>,
        /// The end of what it printed.
        output: String,
    },
    /// The worker ran out of memory.
    #[error("the worker process ran out of memory{}{}{}", in_stage(*.stage), limited(*.limit), printed(.output))]
    Memory {
        /// The limit in bytes, if there was one.
        limit: Option<u64>,
        /// The stage that it was in, if it had reported one.
        stage: Option<Stage>,
        /// The end of what it printed.
        output: String,
    },
    /// What the worker sent makes no sense, or cannot be sent or received.
    #[error("this process and its worker cannot talk to each other: {what}")]
    Protocol {
        /// What was wrong.
        what: String,
    },
}

fn in_stage(stage: Option<Stage>) -> String {
    stage.map_or_else(String::new, |stage| format!(" in the stage {stage}"))
}

fn limited(limit: Option<u64>) -> String {
    limit.map_or_else(
        || "; compile less at once, or on a machine with more".to_owned(),
        |limit| {
            format!(
                ", which is limited to {} MiB; raise the limit (memory-limit), or compile less at once",
                limit >> 20
            )
        },
    )
}

/// The last lines of what a process printed.
fn printed(output: &str) -> String {
    const LINES: usize = 8;
    let lines: Vec<&str> = output.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = lines.get(lines.len().saturating_sub(LINES)..).unwrap_or_default();
    let mut text = String::new();
    for (index, line) in last.iter().enumerate() {
        let start = if index == 0 { "; it printed:" } else { "" };
        let _ = write!(text, "{start}\n  {line}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_stage_cause_and_what_was_printed() {
        let crashed = WorkerError::Crashed {
            how: "signal 11, SIGSEGV".to_owned(),
            stage: Some(Stage::Optimize),
            output: "one\n\ntwo\n".to_owned(),
        };
        assert_eq!(
            crashed.to_string(),
            "the worker process ended unexpectedly in the stage optimize (signal 11, SIGSEGV); it printed:\n  one\n  two; \
             other compilations are not affected. If nobody stopped it, the input crashes LLVM or a vendor's compiler: \
             please report it"
        );
        let memory = WorkerError::Memory {
            limit: Some(512 << 20),
            stage: None,
            output: String::new(),
        };
        assert_eq!(
            memory.to_string(),
            "the worker process ran out of memory, which is limited to 512 MiB; raise the limit (memory-limit), or compile \
             less at once"
        );
        let many: String = (0..100).map(|line| format!("line {line}\n")).collect();
        let text = printed(&many);
        assert!(
            text.contains("line 99") && text.contains("line 92") && !text.contains("line 91"),
            "{text}"
        );
    }
}
