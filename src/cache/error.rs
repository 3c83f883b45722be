//! What may go wrong with a cache.

use std::{io, path::PathBuf};

/// Why a cache's directory cannot be used, looked at, or emptied, or what is wrong with what was in it.
///
/// What cost an entry, and nothing else, since the result was compiled, is kept: [`Cache::take_problems`](super::Cache::take_problems).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CacheError {
    /// The directory cannot be made or looked at.
    #[error("{what} {path}: {source}; name another directory, or switch the cache off")]
    Directory {
        /// What was tried.
        what: &'static str,
        /// The directory.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// Somebody else owns the directory, and could put anything into it.
    #[error(
        "{path} belongs to user {owner}, and this process runs as user {user}: entries there could be anybody's; name a \
         directory of your own"
    )]
    Owner {
        /// The directory.
        path: PathBuf,
        /// User ID of the owner.
        owner: u32,
        /// User ID of this process.
        user: u32,
    },
    /// Others may write into the directory.
    #[error(
        "{path} may be written by others (mode {mode:03o}): entries there could be anybody's; run chmod go-w on it"
    )]
    Mode {
        /// The directory.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// The directory is not shared as was said.
    #[error("{path} is to be the cache of {expected}, and has owner {owner}, group {group}, mode {mode:03o}")]
    NotShared {
        /// The directory.
        path: PathBuf,
        /// What was said.
        expected: String,
        /// User ID of the owner.
        owner: u32,
        /// Group ID.
        group: u32,
        /// Its permissions.
        mode: u32,
    },
    /// What was compiled anew differs from the entry.
    #[error(
        "the cache holds {what} that differs from what is compiled now{}: entry {entry}; \
         remove it with `gpulower cache clear`, and please report this",
        module.as_ref().map(|name| format!(", for module {name}")).unwrap_or_default()
    )]
    Mismatch {
        /// What it is.
        what: &'static str,
        /// The module.
        module: Option<String>,
        /// The entry: its file, or its key in memory.
        entry: String,
    },
    /// An entry was damaged. It was removed.
    #[error("an entry of the cache was damaged and is made anew: {path}: {damage}")]
    Damaged {
        /// The entry.
        path: PathBuf,
        /// What was wrong with it.
        damage: String,
    },
    /// An entry could not be read.
    #[error("an entry of the cache cannot be read and is made anew: {path}: {source}")]
    Unreadable {
        /// The entry.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// An entry could not be written.
    #[error("a result could not be kept in the cache: {path}: {source}")]
    Unwritten {
        /// The entry.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// An entry is whole, and means nothing to this version.
    #[error("an entry of the cache is not what this version writes and is made anew: {what}")]
    Undecodable {
        /// What was to be read from it.
        what: &'static str,
    },
    /// Something about the tier that machines share.
    #[error("{0}")]
    Remote(gpulower_cache::RemoteProblem),
    /// The directory cannot be used.
    #[error("the cache is not used: {0}")]
    Unusable(#[source] Box<Self>),
    /// The cache could not be kept within its size.
    #[error("the cache could not be kept within its size: {0}")]
    Unbounded(#[source] Box<Self>),
}
