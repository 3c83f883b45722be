//! What a service has to do: bytes under names.

use std::{
    fmt,
    time::{Instant, SystemTime},
};

/// A map from names to bytes that several machines use. Names are made of `a-z`, `0-9` and `/`.
///
/// Every call returns by its deadline, or soon after: the caller waits for it. A value is written whole or not at all.
pub trait Store: Send + Sync + fmt::Debug {
    /// Where it is, for messages: no credentials.
    fn place(&self) -> &str;

    /// The bytes under a name, `None` where there are none. More bytes than `most` are an error.
    ///
    /// # Errors
    ///
    /// [`StoreError`] where the service did not answer, or answered with an error.
    fn get(&self, name: &str, most: u64, deadline: Instant) -> Result<Option<Vec<u8>>, StoreError>;

    /// Writes bytes under a name. With `only_new`, and where [`Store::is_conditional`], what is there already stays.
    ///
    /// # Errors
    ///
    /// As of [`Store::get`].
    fn put(&self, name: &str, bytes: Vec<u8>, only_new: bool, deadline: Instant) -> Result<Written, StoreError>;

    /// Whether `only_new` holds between machines.
    fn is_conditional(&self) -> bool;

    /// Removes what is under a name. That there is nothing is no error.
    ///
    /// # Errors
    ///
    /// As of [`Store::get`].
    fn remove(&self, name: &str, deadline: Instant) -> Result<(), StoreError>;

    /// Every name that begins with `prefix`, which ends in `/`.
    ///
    /// # Errors
    ///
    /// As of [`Store::get`]; with [`Refusal::Unsupported`] where the service cannot list.
    fn list(&self, prefix: &str, deadline: Instant) -> Result<Vec<Listed>, StoreError>;
}

/// What became of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// It was written.
    New,
    /// Something was there already, and stays.
    Existed,
}

/// One name of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The name.
    pub name: String,
    /// The size of its bytes.
    pub bytes: u64,
    /// When it was written, where the service says so.
    pub modified: Option<SystemTime>,
}

/// Why a store did not do what it was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// No answer before the deadline.
    TimedOut,
    /// No connection, or an answer that is none.
    Unreachable,
    /// The credentials are missing or wrong, or do not allow this.
    Denied,
    /// These bytes are too many for the service, others may not be.
    TooLarge,
    /// The service has no such operation.
    Unsupported,
}

/// A failure of a store, in words without credentials.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct StoreError {
    /// What kind of failure it is.
    pub refusal: Refusal,
    /// What was wrong.
    pub message: String,
}

impl StoreError {
    /// A failure.
    #[must_use]
    pub fn new(refusal: Refusal, message: impl Into<String>) -> Self {
        Self {
            refusal,
            message: message.into(),
        }
    }
}
