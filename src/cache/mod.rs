//! What was compiled before: results in memory and on disk, by what they were made of.
//!
//! A cache maps a [`Key`], a hash over everything that goes into a result, to bytes. It knows nothing of compilation. An
//! entry on disk is written to a file of its own and published by one rename, names its key, and carries a hash of its
//! content, so that a reader sees a whole entry or none. Where a cache fails, the answer is that it has nothing, and a
//! [`CacheError`] is kept for whoever asks.
//!
//! ```no_run
//! use gpulower::{Compiler, cache::Cache};
//!
//! let cache = Cache::builder().directory("/var/cache/kernels").build();
//! let compiler = Compiler::builder().cache(cache).build();
//! # drop(compiler);
//! ```

mod disk;
mod entry;
mod error;
mod key;
mod shared_with;
mod turns;
mod usage;

#[cfg(test)]
mod tests;

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use gpulower_cache::Answer;
pub use gpulower_cache::{
    Held, PublicKey, Refusal, Remote, RemoteBuilder, RemoteProblem, RemoteStatistics, SecretKey, SettingError, Store,
    StoreError, Written,
};
use quick_cache::{Weighter, sync::Cache as Memory};

use self::{
    disk::Disk,
    turns::{Turn, Turns},
};
pub use self::{
    error::CacheError,
    key::{Key, KeyBuilder},
    shared_with::SharedWith,
    usage::Usage,
};

/// Size of a cache on disk when nothing else is said: 4 GiB.
pub const DEFAULT_DISK_BYTES: u64 = 4 << 30;

/// Size of a cache in memory when nothing else is said: 256 MiB.
pub const DEFAULT_MEMORY_BYTES: u64 = 256 << 20;

/// A handle on a cache. Clones share it; it may be used from any thread, and its directory by any number of processes.
#[derive(Clone)]
pub struct Cache {
    shared: Arc<Shared>,
}

struct Shared {
    memory: Option<Memory<Key, Arc<[u8]>, ByBytes>>,
    disk: Option<Disk>,
    remote: Option<Remote>,
    turns: Turns,
    verify: bool,
    counts: Counts,
    problems: Mutex<Vec<CacheError>>,
}

#[derive(Default)]
struct Counts {
    memory: AtomicU64,
    disk: AtomicU64,
    missed: AtomicU64,
    stored: AtomicU64,
}

/// How often a cache was asked, and what it had.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Statistics {
    /// Answers from memory.
    pub memory_hits: u64,
    /// Answers from disk.
    pub disk_hits: u64,
    /// Questions without an answer.
    pub misses: u64,
    /// Entries that were stored.
    pub stored: u64,
    /// What was asked of the shared tier.
    pub remote: RemoteStatistics,
}

gpulower_image::table! {
    /// Where an answer came from.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Source: &'static str {
        /// From memory.
        Memory = "memory";
        /// From disk.
        Disk = "disk";
        /// From the tier that machines share.
        Remote = "remote";
    }
}

impl Source {
    /// The name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.row()
    }
}

/// Entries in memory weigh what they hold.
#[derive(Clone)]
struct ByBytes;

impl Weighter<Key, Arc<[u8]>> for ByBytes {
    fn weight(&self, _: &Key, bytes: &Arc<[u8]>) -> u64 {
        u64::try_from(bytes.len()).unwrap_or(u64::MAX).saturating_add(64)
    }
}

/// Gathers what a [`Cache`] is made with.
#[derive(Clone, Debug)]
pub struct CacheBuilder {
    directory: Option<PathBuf>,
    disk_bytes: u64,
    memory_bytes: u64,
    shared_with: Option<SharedWith>,
    remote: Option<Remote>,
    verify: bool,
}

impl Default for CacheBuilder {
    fn default() -> Self {
        Self {
            directory: None,
            disk_bytes: DEFAULT_DISK_BYTES,
            memory_bytes: DEFAULT_MEMORY_BYTES,
            shared_with: None,
            remote: None,
            verify: false,
        }
    }
}

impl CacheBuilder {
    /// Keeps entries in this directory too. It is made, for the user alone, when the first entry is stored. Without one the
    /// cache is in memory only.
    #[must_use]
    pub fn directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = Some(directory.into());
        self
    }

    /// Most bytes on disk. What was not used for longest is removed beyond that. Default: [`DEFAULT_DISK_BYTES`].
    #[must_use]
    pub const fn disk_bytes(mut self, bytes: u64) -> Self {
        self.disk_bytes = bytes;
        self
    }

    /// Most bytes in memory; 0 for none. Default: [`DEFAULT_MEMORY_BYTES`].
    #[must_use]
    pub const fn memory_bytes(mut self, bytes: u64) -> Self {
        self.memory_bytes = bytes;
        self
    }

    /// Takes a directory that others write into: this group's, or this user's. Without it such a directory is not used. Its size is
    /// not bounded on the way, since that would need locks that network file systems do not have: see [`Cache::prune`].
    #[must_use]
    pub const fn shared_with(mut self, whom: SharedWith) -> Self {
        self.shared_with = Some(whom);
        self
    }

    /// Keeps entries in a tier that machines share, too: `gpulower_remote::open` makes one of a URL, and
    /// [`gpulower_cache::Remote`] of any store.
    #[must_use]
    pub fn remote(mut self, remote: Remote) -> Self {
        self.remote = Some(remote);
        self
    }

    /// Compiles in spite of a hit, and compares: a check of the cache, not a way to use it.
    #[must_use]
    pub const fn verify(mut self, verify: bool) -> Self {
        self.verify = verify;
        self
    }

    /// Makes the cache. Nothing is read or written yet.
    #[must_use]
    pub fn build(self) -> Cache {
        /// An entry holds the images of a module: some ten kilobytes.
        const USUAL_ENTRY_BYTES: u64 = 16 << 10;
        let memory = (self.memory_bytes > 0).then(|| {
            let entries = usize::try_from((self.memory_bytes / USUAL_ENTRY_BYTES).max(16)).unwrap_or(usize::MAX);
            Memory::with_weighter(entries, self.memory_bytes, ByBytes)
        });
        Cache {
            shared: Arc::new(Shared {
                memory,
                disk: self
                    .directory
                    .map(|directory| Disk::new(directory, self.disk_bytes, self.shared_with)),
                remote: self.remote,
                turns: Turns::default(),
                verify: self.verify,
                counts: Counts::default(),
                problems: Mutex::default(),
            }),
        }
    }
}

/// An entry, and where it was.
pub(crate) type Found = (Arc<[u8]>, Source);

impl Cache {
    /// Starts to make a cache.
    #[must_use]
    pub fn builder() -> CacheBuilder {
        CacheBuilder::default()
    }

    /// Whether hits are compiled again and compared.
    #[must_use]
    pub fn verifies(&self) -> bool {
        self.shared.verify
    }

    /// The directory, if there is one.
    #[must_use]
    pub fn directory(&self) -> Option<&Path> {
        self.shared.disk.as_ref().map(Disk::directory)
    }

    /// The tier that machines share, if there is one.
    #[must_use]
    pub fn remote(&self) -> Option<&Remote> {
        self.shared.remote.as_ref()
    }

    /// What is stored under a key.
    #[must_use]
    pub fn get(&self, key: &Key) -> Option<(Arc<[u8]>, Source)> {
        let found = self.get_here(key).or_else(|| self.get_there(key));
        self.count(found.is_some());
        found
    }

    /// What is stored under each of several keys. A service is asked for many at once.
    #[must_use]
    pub fn get_all(&self, keys: &[Option<Key>]) -> Vec<Option<(Arc<[u8]>, Source)>> {
        /// As many as a service answers at once without effort.
        const MOST_AT_ONCE: usize = 16;
        let here = keys.iter().map(|key| self.get_here(key.as_ref()?));
        let mut found: Vec<_> = here.collect();
        if self.shared.remote.is_some() {
            let missing: Vec<(&Option<Key>, &mut Option<_>)> = keys
                .iter()
                .zip(&mut found)
                .filter(|(key, found)| key.is_some() && found.is_none())
                .collect();
            let threads = missing.len().min(MOST_AT_ONCE);
            let queue = Mutex::new(missing.into_iter());
            let work = || {
                let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
                while let Some((key, found)) = next() {
                    *found = key.as_ref().and_then(|key| self.get_there(key));
                }
            };
            std::thread::scope(|scope| {
                for _ in 1..threads {
                    // What cannot be started is done here.
                    let _ = std::thread::Builder::new().spawn_scoped(scope, work);
                }
                work();
            });
        }
        for (_, found) in keys.iter().zip(&found).filter(|(key, _)| key.is_some()) {
            self.count(found.is_some());
        }
        found
    }

    /// What is in memory or on disk.
    pub(crate) fn get_here(&self, key: &Key) -> Option<(Arc<[u8]>, Source)> {
        let Shared {
            memory, disk, counts, ..
        } = &*self.shared;
        if let Some(bytes) = memory.as_ref().and_then(|memory| memory.get(key)) {
            counts.memory.fetch_add(1, Ordering::Relaxed);
            return Some((bytes, Source::Memory));
        }
        let bytes = disk.as_ref().and_then(|disk| {
            disk.read(key).unwrap_or_else(|problem| {
                self.note(problem);
                None
            })
        })?;
        counts.disk.fetch_add(1, Ordering::Relaxed);
        if let Some(memory) = memory {
            memory.insert(*key, Arc::clone(&bytes));
        }
        Some((bytes, Source::Disk))
    }

    /// In the shared tier.
    fn get_there(&self, key: &Key) -> Option<(Arc<[u8]>, Source)> {
        match self.shared.remote.as_ref()?.get(key.as_bytes()) {
            Answer::Hit(bytes) => Some((self.keep_here(key, bytes.into()), Source::Remote)),
            Answer::Miss | Answer::Out => None,
        }
    }

    fn count(&self, is_found: bool) {
        if !is_found {
            self.shared.counts.missed.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Stores bytes under a key. What was there is replaced. Other machines find it some time later.
    pub fn put(&self, key: &Key, bytes: Vec<u8>) {
        /// Copying what is larger costs more than reading it again from the disk's cache, if anybody asks for it.
        const MOST_BYTES_OF_A_COPY: usize = 1 << 20;
        let Shared {
            disk, remote, counts, ..
        } = &*self.shared;
        counts.stored.fetch_add(1, Ordering::Relaxed);
        if let (Some(disk), None, true) = (disk, remote, bytes.len() > MOST_BYTES_OF_A_COPY) {
            match disk.write(key, &bytes) {
                Ok(true) => {
                    if let Some(memory) = &self.shared.memory {
                        memory.remove(key);
                    }
                    return;
                }
                Ok(false) => {}
                Err(problem) => self.note(problem),
            }
        }
        let bytes = self.keep_here(key, bytes.into());
        if let Some(remote) = &self.shared.remote {
            remote.put(key.as_bytes(), bytes);
        }
    }

    fn keep_here(&self, key: &Key, bytes: Arc<[u8]>) -> Arc<[u8]> {
        let Shared { memory, disk, .. } = &*self.shared;
        if let Some(disk) = disk
            && let Err(problem) = disk.write(key, &bytes)
        {
            self.note(problem);
        }
        if let Some(memory) = memory {
            memory.insert(*key, Arc::clone(&bytes));
        }
        bytes
    }

    /// The turn to make an entry that is not there. Where another thread makes it, or a machine that said so, waits for that:
    /// then the entry is returned. `stop` ends the waiting. Unless `is_claimed`, other machines are not told.
    pub(crate) fn turn(&self, key: &Key, is_claimed: bool, stop: &dyn Fn() -> bool) -> (Making<'_>, Option<Found>) {
        let (turn, has_waited) = self.shared.turns.take(key, stop);
        let making = Making {
            cache: self,
            key: *key,
            _turn: turn,
        };
        let known = if has_waited { self.get_here(key) } else { None };
        let known = known.or_else(|| {
            let remote = self
                .shared
                .remote
                .as_ref()
                .filter(|_| is_claimed && making._turn.is_some())?;
            let bytes = remote.claim(key.as_bytes(), stop)?;
            Some((self.keep_here(key, bytes.into()), Source::Remote))
        });
        (making, known)
    }

    /// Waits until what was stored is where other machines find it, at most as long as the shared tier was told.
    pub fn finish(&self) {
        if let Some(remote) = &self.shared.remote {
            remote.finish(remote.upload_limit());
        }
    }

    /// Where the entry of a key is, or would be. `None` for a cache in memory.
    #[must_use]
    pub fn path(&self, key: &Key) -> Option<PathBuf> {
        self.shared.disk.as_ref().map(|disk| disk.path(key))
    }

    /// Removes all entries, from memory and from disk, and says what there was on disk.
    ///
    /// # Errors
    ///
    /// [`CacheError`] where something on disk cannot be removed. Memory is empty in any case.
    pub fn clear(&self) -> Result<Usage, CacheError> {
        if let Some(memory) = &self.shared.memory {
            memory.clear();
        }
        self.shared.disk.as_ref().map_or(Ok(Usage::default()), Disk::clear)
    }

    /// Removes from disk what was not used for longest, until at most so many bytes are left, and what was not used since
    /// `older_than`. What is left is returned.
    ///
    /// # Errors
    ///
    /// [`CacheError`] where the directory cannot be read, or is not to be used.
    pub fn prune(&self, bytes: u64, older_than: Option<std::time::SystemTime>) -> Result<Usage, CacheError> {
        let disk = self.shared.disk.as_ref();
        disk.map_or(Ok(Usage::default()), |disk| disk.prune(bytes, older_than))
    }

    /// The keys of all entries on disk.
    ///
    /// # Errors
    ///
    /// [`CacheError`] where the directory cannot be read.
    pub fn keys(&self) -> Result<Vec<Key>, CacheError> {
        self.shared.disk.as_ref().map_or(Ok(Vec::new()), Disk::keys)
    }

    /// Keeps an entry in memory and on disk alone: one of the shared tier, or what is sooner made than asked for there.
    pub fn put_here(&self, key: &Key, bytes: Vec<u8>) {
        self.keep_here(key, bytes.into());
    }

    /// What is in memory or on disk.
    #[must_use]
    pub fn peek_here(&self, key: &Key) -> Option<Arc<[u8]>> {
        self.get_here(key).map(|(bytes, _)| bytes)
    }

    /// What there is on disk.
    ///
    /// # Errors
    ///
    /// [`CacheError`] where the directory cannot be read.
    pub fn usage(&self) -> Result<Usage, CacheError> {
        self.shared.disk.as_ref().map_or(Ok(Usage::default()), Disk::usage)
    }

    /// How often this cache was asked, and what it had, since it was made.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        let Counts {
            memory,
            disk,
            missed,
            stored,
        } = &self.shared.counts;
        let remote = self.shared.remote.as_ref();
        Statistics {
            memory_hits: memory.load(Ordering::Relaxed),
            disk_hits: disk.load(Ordering::Relaxed),
            misses: missed.load(Ordering::Relaxed),
            stored: stored.load(Ordering::Relaxed),
            remote: remote.map(Remote::statistics).unwrap_or_default(),
        }
    }

    /// What went wrong since this was last asked, each thing once.
    #[must_use]
    pub fn take_problems(&self) -> Vec<CacheError> {
        let own = std::mem::take(&mut *self.shared.problems.lock().unwrap_or_else(PoisonError::into_inner));
        let of_remote = self.shared.remote.iter().flat_map(Remote::take_problems);
        own.into_iter().chain(of_remote.map(CacheError::Remote)).collect()
    }

    /// Keeps a problem, unless it is known.
    pub(crate) fn note(&self, problem: CacheError) {
        tracing::debug!(%problem, "cache");
        let mut problems = self.shared.problems.lock().unwrap_or_else(PoisonError::into_inner);
        if !problems.iter().any(|known| known.to_string() == problem.to_string()) {
            problems.push(problem);
        }
    }
}

/// While this lives, an entry is being made.
pub(crate) struct Making<'a> {
    cache: &'a Cache,
    key: Key,
    _turn: Option<Turn<'a>>,
}

impl Drop for Making<'_> {
    fn drop(&mut self) {
        // What was made is on its way, with the claim; nothing is left of the claim otherwise.
        if let Some(remote) = &self.cache.shared.remote {
            remote.abandon(self.key.as_bytes());
        }
    }
}

impl fmt::Debug for Cache {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Cache")
            .field("directory", &self.directory())
            .field("statistics", &self.statistics())
            .finish_non_exhaustive()
    }
}
