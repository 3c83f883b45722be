//! Why a container could not be written.

use crate::{ReadError, target::TargetError};

/// Why images could not be put into a container. The message names the image or the option, and says what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// There is no image.
    #[error("{0}")]
    Empty(&'static str),
    /// Nothing says what an image is for.
    #[error("{0}")]
    NoTarget(String),
    /// An image, a name or an option that the container cannot hold.
    #[error("{0}")]
    Refused(String),
    /// An image, or a container to be embedded, that cannot be read.
    #[error("{place}: {source}")]
    Input {
        /// The file, the section, or what the image is.
        place: String,
        /// What is wrong with it.
        source: ReadError,
    },
    /// Targets that cannot be in one container, or two inputs that ask for different PTX.
    #[error(transparent)]
    Target(#[from] TargetError),
}
