//! What kinds of failures there are, and which of them a cause is.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Cause;
use crate::{
    bridge::LlvmError,
    compiler::{InputError, worker::WorkerError},
    options::OptionError,
    serialize::{device_link::DeviceLinkError, nvidia::SerializeError},
};

gpulower_image::table! {
    /// What kind of failure an [`Error`](super::Error) is: what a program tells apart.
    ///
    /// It is the same in this process and from a worker. `docs/errors.md` lists the codes, with what to do.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    #[non_exhaustive]
    pub enum ErrorKind: (&'static str, &'static str, &'static str) {
        /// E0101: the input cannot be read, or holds nothing to compile.
        Input = ("E0101", "the input cannot be read, or holds nothing to compile", "look at the place that is named");
        /// E0201: the target does not exist, or cannot do what is asked.
        Target = (
            "E0201",
            "the target does not exist, or cannot do what is asked",
            "name another target or format: `gpulower targets`",
        );
        /// E0202: an option cannot be read, or not be honoured.
        Option = (
            "E0202",
            "an option cannot be read, or not be honoured for a target",
            "change or leave out the option: docs/options.md",
        );
        /// E0301: something in the MLIR cannot be lowered.
        Lowering = (
            "E0301",
            "something in the MLIR cannot be lowered",
            "change the operation at the place that is named",
        );
        /// E0401: symbols that no library defines, or several modules: [`Error::symbols`](super::Error::symbols).
        Symbols = (
            "E0401",
            "symbols that nothing defines, or that are defined twice",
            "give the library that defines them (`-l`), or rename",
        );
        /// E0402: code could not be linked.
        Link = ("E0402", "code could not be linked", "give code for one target, relocatable: docs/linking.md");
        /// E0501: LLVM has no code for something.
        CodeGeneration = (
            "E0501",
            "LLVM has no code for something",
            "compile for another chip, or replace the operation",
        );
        /// E0502: the vendor's compiler refused the code.
        Assembly = (
            "E0502",
            "NVIDIA's compiler refused the PTX, or a limit of registers was not kept",
            "read what it said",
        );
        /// E0601: a part of CUDA or ROCm is missing, or too old.
        Toolkit = (
            "E0601",
            "a part of CUDA or ROCm is missing, or too old",
            "install it, or say where it is: `gpulower doctor`",
        );
        /// E0701: an image cannot be read, or not be put into a container.
        Image = ("E0701", "an image cannot be read, or not be put into a container", "`gpulower inspect`");
        /// E0801: a program cannot be exported.
        Export = ("E0801", "a program cannot be exported", "docs/export.md");
        /// E0901: what was compiled differs from what the cache has.
        Cache = ("E0901", "what was compiled differs from what the cache has", "`gpulower cache clear`; report it");
        /// E1001: a listener ended it.
        Listener = ("E1001", "a listener of the embedding program ended it", "ask that program");
        /// E1101: it was cancelled.
        Cancelled = ("E1101", "it was cancelled", "");
        /// E1102: it was not done within its time limit.
        TimeLimit = ("E1102", "it was not done within its time limit", "raise `time-limit`, or compile less at once");
        /// E1103: there was not enough memory.
        Memory = ("E1103", "there was not enough memory", "raise `memory-limit`, or compile less at once");
        /// E1201: a compiler crashed, in this process or in a worker. Other compilations are not affected.
        Crash = (
            "E1201",
            "a compiler crashed, in this process or in a worker; other compilations are not affected",
            "report the input: docs/reliability.md",
        );
        /// E1202: the worker program cannot be used.
        Worker = ("E1202", "the worker program cannot be used", "name the `gpulower` that belongs to this program");
        /// E9901: a bug in gpulower.
        Internal = ("E9901", "a bug in gpulower", "report it");
    }
}

impl ErrorKind {
    /// The code, which stays the same in all releases: `E0401`.
    #[must_use]
    pub const fn code(self) -> &'static str {
        self.row().0
    }

    /// What it says, in a line.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        self.row().1
    }

    /// What to do, in Markdown; empty where there is nothing to say.
    #[must_use]
    pub const fn advice(self) -> &'static str {
        self.row().2
    }

    /// The kind of what LLVM said.
    pub(crate) fn of_llvm(error: &LlvmError) -> Self {
        match error {
            LlvmError::Crashed(_) => Self::Crash,
            _ => Self::CodeGeneration,
        }
    }

    /// The kind of a cause.
    pub(super) fn of(cause: &Cause) -> Self {
        match cause {
            Cause::Input(error) => of_input(error),
            Cause::Target(_) | Cause::Option(OptionError::Format(_)) => Self::Target,
            Cause::Option(_) => Self::Option,
            Cause::Llvm(error) => ErrorKind::of_llvm(error),
            Cause::Device(error) => error.kind(),
            Cause::Toolkit(_) => Self::Toolkit,
            Cause::Serialize(error) => of_ptx_compiler(error),
            Cause::Cubin(_) | Cause::Hsaco(_) | Cause::Pack(_) => Self::Image,
            Cause::DeviceLink(DeviceLinkError::Refused { kind, .. }) => *kind,
            Cause::DeviceLink(DeviceLinkError::Tool { .. }) => Self::Link,
            Cause::Offload(error) => error.kind,
            Cause::Cache(_) => Self::Cache,
            Cause::Listener { .. } | Cause::Gate(_) => Self::Listener,
            Cause::Interrupted(error) => error.kind(),
            Cause::Worker(error) => match error {
                WorkerError::Crashed { .. } => Self::Crash,
                WorkerError::Memory { .. } => Self::Memory,
                _ => Self::Worker,
            },
            Cause::Internal(_) => Self::Internal,
        }
    }
}

fn of_input(error: &InputError) -> ErrorKind {
    match error {
        InputError::Fatal { error, .. } => match ErrorKind::of_llvm(error) {
            ErrorKind::CodeGeneration => ErrorKind::Input,
            other => other,
        },
        InputError::Stack { .. } => ErrorKind::Memory,
        InputError::NoTarget { .. } | InputError::UnknownTargetAttribute { .. } | InputError::PtxForAmd { .. } => {
            ErrorKind::Target
        }
        _ => ErrorKind::Input,
    }
}

fn of_ptx_compiler(error: &SerializeError) -> ErrorKind {
    match error {
        SerializeError::Refused { kind, .. } => *kind,
        SerializeError::Compile { .. } => ErrorKind::Assembly,
        SerializeError::Timeout { .. } => ErrorKind::TimeLimit,
        SerializeError::Cancelled { .. } => ErrorKind::Cancelled,
    }
}

/// The code.
impl fmt::Display for ErrorKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.code())
    }
}

#[cfg(test)]
mod tests {
    use std::{env, fs, path::Path};

    use super::*;

    #[test]
    fn codes_are_unique_in_order_and_documented() {
        let codes: Vec<&str> = ErrorKind::ALL.iter().map(|kind| kind.code()).collect();
        assert!(codes.is_sorted_by(|a, b| a < b), "{codes:?}");
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/errors.md");
        let text = fs::read_to_string(&page).expect("the page");
        // Where a page is named, the page links to it.
        let linked = |advice: &str| {
            let words = advice.split(' ').map(|word| match word.strip_prefix("docs/") {
                Some(name) => format!("[{}]({})", name.trim_end_matches(')'), name),
                None => word.to_owned(),
            });
            words.collect::<Vec<_>>().join(" ")
        };
        let rows: String = ErrorKind::ALL
            .iter()
            .map(|kind| {
                let row = format!("| {kind} | `{kind:?}` | {} | {}", kind.meaning(), linked(kind.advice()));
                format!("{} |\n", row.trim_end())
            })
            .collect();
        let first = text.find("| E0101 |").expect("the table");
        let end = first + text[first..].find("\n\n").expect("the end of the table") + 1;
        if env::var_os("GPULOWER_BLESS").is_some() {
            fs::write(&page, [&text[..first], &rows, &text[end..]].concat()).expect("written");
        } else {
            assert_eq!(&text[first..end], rows, "GPULOWER_BLESS=1 writes the table");
        }
    }
}
