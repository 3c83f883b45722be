//! What passes between this process and a worker: frames of a length and a value.

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::wire::WireRequest;
use crate::error::Error;
use crate::{compiler::request::Outcome, stage::Stage, toolkit::Toolkit};

/// How frames look and what may follow what.
const VERSION: u32 = 1;

/// A frame that claims to be longer than this is not one.
const LONGEST: usize = 1 << 30;

/// The first thing that a worker says.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Hello {
    pub magic: String,
    pub build: String,
}

impl Hello {
    const MAGIC: &'static str = "gpulower worker";

    pub fn ours() -> Self {
        Self {
            magic: Self::MAGIC.to_owned(),
            build: build(),
        }
    }

    pub fn is_one(&self) -> bool {
        self.magic == Self::MAGIC
    }
}

/// What a build is told from another by: its version, LLVM's version, and its sources.
fn build() -> String {
    format!(
        "gpulower {}, {}, protocol {VERSION}, sources {}",
        env!("CARGO_PKG_VERSION"),
        super::super::phases::llvm_part("LLVM"),
        env!("GPULOWER_SOURCE_HASH")
    )
}

/// What this process says to a worker.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum ToWorker {
    /// What is the same for all requests. Comes first.
    Configure(Box<Configuration>),
    /// Read MLIR as this process is about to.
    Read(ReadInputs),
    /// Carry out a request.
    Compile(Box<WireRequest>),
}

/// What is the same for all requests of a compiler.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Configuration {
    pub toolkit: Toolkit,
    pub cache: Option<std::path::PathBuf>,
}

/// Inputs, by name.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ReadInputs {
    pub inputs: Vec<(String, Vec<u8>)>,
    pub memory_limit: Option<u64>,
}

/// What a worker says.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum FromWorker {
    /// It has begun with the request.
    Accepted,
    /// The request has come to this stage.
    Stage(Stage),
    /// The end of a request.
    Done {
        answer: Answer,
        /// Memory that the worker holds now, in bytes.
        resident: u64,
    },
}

/// What became of a request.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Answer {
    /// Reading came to an end, with an error or without. For each input what this process is to read in its place, if that
    /// is another: see [`Reread`].
    Read(Vec<Option<Reread>>),
    /// Compiling did.
    Compiled(Result<Outcome, Box<Error>>),
}

/// What stands for MLIR bytecode, whose reader trusts what it reads: the module as the worker has written it anew, or the
/// error that it was refused with.
pub(super) type Reread = Result<Vec<u8>, Box<Error>>;

/// A value as a frame.
pub(super) fn encode(value: &impl Serialize) -> Result<Vec<u8>, String> {
    let bytes = postcard::to_stdvec(value).map_err(|error| error.to_string())?;
    let length = u32::try_from(bytes.len()).ok().filter(|_| bytes.len() <= LONGEST);
    let length = length.ok_or_else(|| format!("{} bytes are more than one message takes ({LONGEST})", bytes.len()))?;
    let mut frame = Vec::with_capacity(bytes.len() + 4);
    frame.extend(length.to_le_bytes());
    frame.extend(bytes);
    Ok(frame)
}

/// The value in a frame.
pub(super) fn decode<T: DeserializeOwned>(frame: &[u8]) -> Result<T, String> {
    let (value, rest) = postcard::take_from_bytes(frame).map_err(|error| error.to_string())?;
    if rest.is_empty() {
        Ok(value)
    } else {
        Err(format!("{} bytes are left over at the end of a message", rest.len()))
    }
}

/// Bytes as they come, and the frames in them.
#[derive(Debug, Default)]
pub(super) struct Incoming(Vec<u8>);

impl Incoming {
    pub fn push(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// The content of the next frame, if all of it is there.
    pub fn next_frame(&mut self) -> Result<Option<Vec<u8>>, String> {
        let Some((head, rest)) = self.0.split_first_chunk::<4>() else {
            return Ok(None);
        };
        let length = u32::from_le_bytes(*head) as usize;
        if length > LONGEST {
            return Err(format!("a message claims to be {length} bytes long"));
        }
        let Some(content) = rest.get(..length) else {
            return Ok(None);
        };
        let content = content.to_vec();
        self.0.drain(..length + 4);
        Ok(Some(content))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_out_as_they_went_in() {
        let first = encode(&FromWorker::Stage(Stage::Optimize)).expect("encoded");
        let second = encode(&Hello::ours()).expect("encoded");
        let mut incoming = Incoming::default();
        for byte in first.iter().chain(&second) {
            assert!(incoming.next_frame().expect("no frame yet").is_none() || byte == &second[0]);
            incoming.push(&[*byte]);
            if let Some(frame) = incoming.next_frame().expect("a frame") {
                match decode::<FromWorker>(&frame) {
                    Ok(FromWorker::Stage(stage)) => assert_eq!(stage, Stage::Optimize),
                    _ => assert_eq!(decode::<Hello>(&frame), Ok(Hello::ours())),
                }
            }
        }
        assert!(incoming.0.is_empty());
    }

    #[test]
    fn nonsense_is_refused() {
        let mut incoming = Incoming::default();
        incoming.push(&u32::MAX.to_le_bytes());
        assert_eq!(
            incoming.next_frame(),
            Err("a message claims to be 4294967295 bytes long".to_owned())
        );
        assert!(decode::<FromWorker>(&[99]).is_err());
        assert!(decode::<FromWorker>(&[]).is_err());
        let mut longer = encode(&FromWorker::Accepted).expect("encoded");
        longer.push(0);
        assert!(decode::<FromWorker>(&longer[4..]).is_err_and(|text| text.contains("left over")));
    }

    #[test]
    fn a_build_names_what_it_was_made_of() {
        let build = build();
        assert!(
            build.starts_with(concat!("gpulower ", env!("CARGO_PKG_VERSION"))),
            "{build}"
        );
        assert!(
            build.contains("LLVM 22") && build.contains("protocol 1, sources "),
            "{build}"
        );
    }
}
