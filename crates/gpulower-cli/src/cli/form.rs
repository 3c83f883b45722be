//! What `--emit` asks for: a format of the library's, or SASS, which a disassembler makes of cubins.

use std::str::FromStr;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use gpulower::{Artifact, Emit, FileKind, Format, options::OptionError};

use super::{disassembly::Disassemblers, message::Problem};

/// A form of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// What the library makes.
    Of(Emit),
    /// The code of cubins as text.
    Sass,
}

impl Form {
    /// What reads the name of one.
    pub fn parser() -> impl TypedValueParser<Value = Self> {
        let names = Emit::names().chain(["sass"]).collect::<Vec<_>>();
        PossibleValuesParser::new(names).try_map(|name| name.parse())
    }

    /// What the library is asked for.
    pub const fn emit(self) -> Emit {
        match self {
            Self::Of(emit) => emit,
            Self::Sass => Emit::Cubin,
        }
    }

    /// Makes what is wanted of what the library made.
    pub fn finish(self, artifacts: &mut [Artifact], disassemblers: &Disassemblers) -> Result<(), Problem> {
        if self == Self::Sass {
            for artifact in artifacts {
                let text = disassemblers.text(&artifact.module, FileKind::Cubin, &artifact.bytes)?;
                artifact.bytes = text.into_bytes();
                artifact.format = Format::Sass;
            }
        }
        Ok(())
    }
}

impl FromStr for Form {
    type Err = OptionError;

    fn from_str(name: &str) -> Result<Self, OptionError> {
        match name {
            "sass" => Ok(Self::Sass),
            _ => name.parse().map(Self::Of),
        }
    }
}
