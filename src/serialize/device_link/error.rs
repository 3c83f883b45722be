//! Why device code was not linked.

use std::fmt::{self, Write};

use crate::ReadError;
use crate::bridge::LlvmError;
use crate::image::symbols::SymbolKind;
use crate::serialize::amd::AmdLinkError;
use crate::serialize::nvidia::SerializeError;

/// What is wrong with the bytes of an input.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InputProblem {
    /// None of the formats that are linked.
    #[error(
        "it starts with [{0}], and is neither PTX, a cubin, LTO-IR, a fat binary, an AMDGPU object nor an archive of them"
    )]
    Unknown(String),
    /// A format that has to be turned into another one first.
    #[error("{0}")]
    NotLinkable(&'static str),
    /// Machine code that is linked already: nvJitLink would accept it and leave its kernels out.
    #[error("{what} is linked already, and cannot be linked again: make it relocatable ({advice})")]
    NotRelocatable {
        /// What it is.
        what: &'static str,
        /// How to get relocatable code instead.
        advice: &'static str,
    },
    /// Bytes that are damaged, or not of the format that they begin as.
    #[error(transparent)]
    Unreadable(#[from] ReadError),
    /// Code for GPUs of the other vendor.
    #[error("it is {what}, and {target} is a chip of {vendor}: leave it out of this link")]
    WrongVendor {
        /// What it is.
        what: &'static str,
        /// What is linked for.
        target: String,
        /// Whose chip that is.
        vendor: &'static str,
    },
    /// Code for another chip than the one that is linked for.
    #[error("it is for {found}, which does not fit {target}: {advice}")]
    WrongTarget {
        /// What it was compiled for.
        found: String,
        /// What is linked for.
        target: String,
        /// What to do.
        advice: String,
    },
    /// A container without anything for the target.
    #[error("it holds nothing for {target}; it has {}", if held.is_empty() { "no device code" } else { held.as_str() })]
    NothingForTarget {
        /// What is linked for.
        target: String,
        /// What it holds.
        held: String,
    },
}

/// Why device code was not linked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceLinkError {
    /// There was nothing to link.
    #[error("nothing to link: no input was given")]
    NoInput,
    /// The target is virtual.
    #[error("{target} is a virtual architecture, and linking makes machine code: name a chip, such as {chip}")]
    VirtualTarget {
        /// The target.
        target: String,
        /// The chip of the same number.
        chip: &'static str,
    },
    /// An input cannot be used.
    #[error("{name} cannot be linked: {problem}")]
    Input {
        /// Name of the input; of what is inside of a container, `CONTAINER(MEMBER)`.
        name: String,
        /// What is wrong with it.
        #[source]
        problem: Box<InputProblem>,
    },
    /// Two AMDGPU objects that no device could run together.
    #[error(
        "{first} is for {first_target} and {second} is for {second_target}: no device runs both; compile them for the \
         same target ID"
    )]
    Incompatible {
        /// Name of an input.
        first: String,
        /// Its target ID.
        first_target: String,
        /// Name of another.
        second: String,
        /// Its target ID.
        second_target: String,
    },
    /// Symbols that are defined more than once.
    #[error("{}", duplicates(.0))]
    Duplicates(Vec<DuplicateSymbol>),
    /// Symbols that nothing defines.
    #[error("{}", unresolved(.0))]
    Unresolved(Vec<MissingSymbol>),
    /// No input holds a kernel.
    #[error(
        "none of the inputs holds a kernel, so nothing of them could be launched: give the one that has the kernels"
    )]
    NoKernel,
    /// The linker left kernels out without saying so.
    #[error(
        "{tool} left out {}: report it, and link without the input that holds {}",
        kernels.iter().map(|(kernel, input)| format!("kernel {kernel} of {input}")).collect::<Vec<_>>().join(", "),
        if kernels.len() == 1 { "it" } else { "them" }
    )]
    LostKernels {
        /// The linker.
        tool: String,
        /// Kernels, each with the input that defines it.
        kernels: Vec<(String, String)>,
    },
    /// A kernel has more registers than was asked for.
    #[error(
        "kernel {kernel} uses {registers} registers, and {limit} were asked for at most: launch bounds in PTX count \
         for more than the limit, a kernel that calls functions has 24 at least, and machine code is compiled already"
    )]
    RegisterLimit {
        /// The kernel.
        kernel: String,
        /// What it uses.
        registers: u32,
        /// What was asked for.
        limit: u32,
    },
    /// There is no linker.
    #[error(
        "linking for NVIDIA GPUs needs nvJitLink, which cannot be used: {reason}; install the Python wheel \
         nvidia-nvjitlink or a CUDA toolkit from 12.0 on, or name its directory"
    )]
    NoLinker {
        /// Why not.
        reason: String,
    },
    /// Kernels that call functions which need more registers than the kernels were given.
    #[error("{}", too_few_registers(.0))]
    TooFewRegisters(Vec<RegisterShortage>),
    /// An option cannot be honoured.
    #[error(transparent)]
    Options(Box<SerializeError>),
    /// Options for the code of NVIDIA inputs in a link for AMD.
    #[error("options for code generation have no effect on AMDGPU objects, whose code is final: leave them out")]
    NoEffect,
    /// LLVM could not disassemble AMD code, to see which registers it uses.
    #[error("{name}: {source}")]
    Disassemble {
        /// Name of the input.
        name: String,
        /// LLVM's reason.
        #[source]
        source: LlvmError,
    },
    /// The linker refused.
    #[error("{tool} could not link {}: {log}", inputs.join(", "))]
    Tool {
        /// The linker and its version.
        tool: String,
        /// Names of the inputs.
        inputs: Vec<String>,
        /// What it said.
        log: String,
    },
    /// lld could not be run.
    #[error(transparent)]
    Amd(#[from] AmdLinkError),
    /// The linked cubin cannot be read.
    #[error("the cubin that {tool} made cannot be read: {source}")]
    UnreadableCubin {
        /// The linker and its version.
        tool: String,
        /// What is wrong with it.
        #[source]
        source: ReadError,
    },
    /// The linked code object cannot be read.
    #[error("the code object that lld made cannot be read: {0}")]
    UnreadableHsaco(#[source] ReadError),
}

impl DeviceLinkError {
    /// The error of an input.
    pub(super) fn input(name: &str, problem: impl Into<InputProblem>) -> Self {
        Self::Input {
            name: name.to_owned(),
            problem: Box::new(problem.into()),
        }
    }
}

/// A symbol with more than one definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DuplicateSymbol {
    /// Its name.
    pub name: String,
    /// What it is, where that is known.
    pub kind: Option<SymbolKind>,
    /// The inputs that define it, in their order.
    pub inputs: Vec<String>,
}

/// A symbol that nothing defines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingSymbol {
    /// Its name.
    pub name: String,
    /// Who needs it.
    pub needed_by: Vec<Need>,
}

/// Who needs a symbol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Need {
    /// The input.
    pub input: String,
    /// Its functions, or sections of data, that use the symbol, where that is known.
    pub users: Vec<String>,
}

impl fmt::Display for Need {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.users.is_empty() {
            write!(formatter, "{} of ", self.users.join(", "))?;
        }
        formatter.write_str(&self.input)
    }
}

/// A kernel that was given fewer registers than a function needs that it calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegisterShortage {
    /// The kernel.
    pub kernel: String,
    /// The input that defines it.
    pub kernel_input: String,
    /// The function.
    pub function: String,
    /// The input that defines it.
    pub function_input: String,
    /// Which registers: "vector", "accumulation" or "scalar".
    pub registers: &'static str,
    /// How many the kernel has.
    pub has: u32,
    /// How many the function uses.
    pub needs: u32,
}

fn duplicates(symbols: &[DuplicateSymbol]) -> String {
    let mut text = match symbols.len() {
        1 => "a symbol is defined more than once:".to_owned(),
        count => format!("{count} symbols are defined more than once:"),
    };
    for symbol in symbols {
        let kind = symbol.kind.map_or("symbol", SymbolKind::name);
        let _ = write!(text, "\n  {kind} {} in {}", symbol.name, symbol.inputs.join(" and "));
    }
    text.push_str(
        "\nKeep one definition and declare it elsewhere, or make those private that only their own file uses.",
    );
    text
}

fn unresolved(symbols: &[MissingSymbol]) -> String {
    let mut text = match symbols.len() {
        1 => "unresolved symbol:".to_owned(),
        count => format!("{count} unresolved symbols:"),
    };
    for symbol in symbols {
        let _ = write!(text, "\n  {}", symbol.name);
        let needs: Vec<String> = symbol.needed_by.iter().map(ToString::to_string).collect();
        if !needs.is_empty() {
            let _ = write!(text, " (needed by {})", needs.join("; by "));
        }
    }
    text.push_str("\nGive the file that defines ");
    text.push_str(if symbols.len() == 1 { "it." } else { "them." });
    text
}

fn too_few_registers(shortages: &[RegisterShortage]) -> String {
    let mut text = "kernels have fewer registers than functions need that they call:".to_owned();
    for shortage in shortages {
        let RegisterShortage {
            kernel,
            kernel_input,
            function,
            function_input,
            registers,
            has,
            needs,
        } = shortage;
        let _ = write!(
            text,
            "\n  kernel {kernel} of {kernel_input} has {has} {registers} registers, function {function} of {function_input} \
             uses {needs}"
        );
    }
    text.push_str(
        "\nThe compiler of a kernel cannot see what functions of other objects need. Link LLVM bitcode instead of objects, \
         or compile the kernels with gpulower and these objects.",
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_name_everything() {
        let duplicate = |name: &str, kind| DuplicateSymbol {
            name: name.to_owned(),
            kind,
            inputs: vec!["a.cubin".to_owned(), "b.ptx".to_owned()],
        };
        assert_eq!(
            DeviceLinkError::Duplicates(vec![duplicate("f", Some(SymbolKind::Function)), duplicate("x", None)])
                .to_string(),
            "2 symbols are defined more than once:\n  function f in a.cubin and b.ptx\n  symbol x in a.cubin and b.ptx\n\
             Keep one definition and declare it elsewhere, or make those private that only their own file uses."
        );
        let need = |input: &str, users: &[&str]| Need {
            input: input.to_owned(),
            users: users.iter().map(ToString::to_string).collect(),
        };
        let missing = MissingSymbol {
            name: "scale".to_owned(),
            needed_by: vec![need("a.ptx", &["k", "l"]), need("b.cubin", &[])],
        };
        assert_eq!(
            DeviceLinkError::Unresolved(vec![missing]).to_string(),
            "unresolved symbol:\n  scale (needed by k, l of a.ptx; by b.cubin)\nGive the file that defines it."
        );
        let lost = DeviceLinkError::LostKernels {
            tool: "nvJitLink 13.0".to_owned(),
            kernels: vec![("k".to_owned(), "a.cubin".to_owned())],
        };
        assert_eq!(
            lost.to_string(),
            "nvJitLink 13.0 left out kernel k of a.cubin: report it, and link without the input that holds it"
        );
    }
}
