//! Errors and warnings with their words ready for C.

use std::ffi::{CString, c_char};

use gpulower::{Error, ErrorKind, Location, Stage, Warning};
use serde::{Serialize, Serializer};

/// What a function returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(i32)]
pub enum Status {
    /// It did what it is for.
    #[default]
    Ok = 0,
    /// It was tried, and failed: the errors say why.
    Failed = 1,
    /// An argument is NULL where it must not be, or has a length that cannot be.
    InvalidArgument = 2,
    /// A handle is NULL, of another kind, freed, or was never made by this library.
    InvalidHandle = 3,
    /// There is no element of this number.
    OutOfRange = 4,
    /// The buffer is too small; nothing was copied.
    BufferTooSmall = 5,
    /// A bug in gpulower: something was caught that should not have been thrown.
    Internal = 6,
}

/// The code of a call that the interface cannot make sense of.
const MISUSE: &str = "E0001";

/// Text that C can be given. A NUL inside becomes U+FFFD.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Text(CString);

impl Text {
    /// Valid as long as this value.
    pub(crate) fn as_ptr(&self) -> *const c_char {
        self.0.as_ptr()
    }
}

impl<T: AsRef<str>> From<T> for Text {
    fn from(text: T) -> Self {
        let text = text.as_ref().replace('\0', "\u{FFFD}");
        Self(CString::new(text).unwrap_or_default())
    }
}

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0.to_string_lossy())
    }
}

/// What went wrong, or deserves attention. Its JSON is that of reports.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Problem {
    #[serde(skip)]
    pub status: Status,
    pub stage: Text,
    pub input: Option<usize>,
    pub module: Option<Text>,
    pub target: Option<Text>,
    pub kernels: Vec<Text>,
    pub code: Option<Text>,
    pub location: Option<Text>,
    pub file: Option<Text>,
    pub line: Option<u32>,
    pub column: Option<u32>,
    pub symbols: Vec<String>,
    pub message: Text,
    pub notes: Vec<Note>,
    #[serde(skip)]
    pub text: Text,
}

/// A further remark about an error.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Note {
    location: String,
    message: String,
}

impl Problem {
    /// A failure of a function that has an error of its own.
    pub(crate) fn new(stage: Stage, kind: ErrorKind, message: impl AsRef<str>) -> Self {
        Self {
            status: Status::Failed,
            stage: stage.name().into(),
            code: Some(kind.code().into()),
            text: format!("{stage}: {}", message.as_ref()).into(),
            message: message.into(),
            ..Self::default()
        }
    }

    /// A call that makes no sense.
    pub(crate) fn misuse(status: Status, message: impl AsRef<str>) -> Self {
        Self {
            status,
            code: Some(MISUSE.into()),
            ..Self::new(Stage::Plan, ErrorKind::Internal, message)
        }
    }

    pub(crate) fn argument(message: impl AsRef<str>) -> Self {
        Self::misuse(Status::InvalidArgument, message)
    }

    fn at(mut self, location: Option<&Location>) -> Self {
        self.location = location.map(|location| location.as_mlir().into());
        self.file = location.and_then(Location::file).map(Text::from);
        self.line = location.and_then(Location::line);
        self.column = location.and_then(Location::column);
        self
    }
}

impl From<&Error> for Problem {
    fn from(error: &Error) -> Self {
        let note = |note: &gpulower::Note| Note {
            location: note.location.to_string(),
            message: note.message.clone(),
        };
        Self {
            status: Status::Failed,
            stage: error.stage.name().into(),
            input: error.input.as_ref().map(|input| input.index),
            module: error.module.as_ref().map(Text::from),
            target: error.target.map(|target| target.to_string().into()),
            kernels: error.kernels.iter().map(Text::from).collect(),
            code: Some(error.kind.code().into()),
            symbols: error.symbols.iter().map(|symbol| symbol.name.clone()).collect(),
            message: Text::from(&error.message),
            notes: error.notes.iter().map(note).collect(),
            text: error.to_string().into(),
            ..Self::default()
        }
        .at(error.location.as_ref())
    }
}

impl Problem {
    /// A warning, of what was made of this input.
    pub(crate) fn warning(warning: &Warning, input: Option<usize>) -> Self {
        let place = warning.place().map(|place| format!("{place}: ")).unwrap_or_default();
        Self {
            stage: warning.stage.name().into(),
            input,
            module: warning.module.as_ref().map(Text::from),
            target: warning.target.map(|target| target.to_string().into()),
            message: Text::from(&warning.message),
            text: format!("{place}{warning}").into(),
            ..Self::default()
        }
        .at(warning.location.as_ref())
    }
}
