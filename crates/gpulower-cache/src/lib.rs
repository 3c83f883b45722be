//! The part of gpulower's cache that several machines share.
//!
//! A [`Remote`] keeps entries in a [`Store`]: S3, Redis, whatever maps names to bytes (`gpulower-remote` has them). It never fails
//! a compilation, and never holds one up for long: each operation has a deadline, a circuit opens after a few failures, and uploads
//! happen in the background. An answer says whether there was no entry or no service.
//!
//! Whoever can write to a store can put machine code into the processes of those who read from it. Entries can be signed
//! ([`SecretKey`]), and a remote that [accepts](RemoteBuilder::accept) keys takes nothing else.
//!
//! ```
//! use std::sync::Arc;
//! use gpulower_cache::{Answer, Remote, testing::InMemory};
//!
//! let remote = Remote::builder(Arc::new(InMemory::default())).build();
//! let key = [7; 32];
//! assert_eq!(remote.get(&key), Answer::Miss);
//! remote.put(&key, b"an object".as_slice().into());
//! remote.finish(remote.upload_limit());
//! assert_eq!(remote.get(&key), Answer::Hit(b"an object".to_vec()));
//! ```

#![forbid(unsafe_code)]

mod circuit;
mod claims;
mod entry;
mod remote;
mod sign;
mod store;
pub mod testing;
#[cfg(test)]
mod tests;
mod uploads;

pub use self::{
    entry::MOST_BYTES,
    remote::{Answer, Held, Remote, RemoteBuilder, RemoteProblem, RemoteStatistics},
    sign::{PublicKey, SecretKey, SettingError},
    store::{Listed, Refusal, Store, StoreError, Written},
};

/// What identifies an entry: a hash over everything that its content was made of.
pub type Id = [u8; 32];
