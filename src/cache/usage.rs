//! How much a cache holds, and keeping it within its size.

use std::{
    fs,
    io::{self, Read, Seek, Write},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use super::error::CacheError;

/// What is left behind by a process that was killed while it wrote is removed after this time.
const LEFTOVER: Duration = Duration::from_secs(24 * 3600);

/// Everything is counted anew after this many seconds: a process that is killed has not added all that it wrote.
const COUNT_AFTER: u64 = 24 * 3600;

/// What a cache holds on disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Usage {
    /// The number of entries.
    pub entries: u64,
    /// Their size in bytes.
    pub bytes: u64,
}

/// An entry in a directory.
pub(super) struct Found {
    pub path: PathBuf,
    pub bytes: u64,
    pub used: SystemTime,
    /// Not an entry yet: it is being written, or was left behind.
    pub unfinished: bool,
}

/// Every file below the directory's folders of entries. Those that vanish meanwhile are left out.
pub(super) fn entries(root: &Path) -> Result<Vec<Found>, CacheError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| CacheError::Directory {
            what: "cannot list",
            path,
            source,
        }
    };
    let mut found = Vec::new();
    let folders = match fs::read_dir(root) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(found),
        other => other.map_err(failed(root))?,
    };
    for folder in folders.filter_map(Result::ok).map(|entry| entry.path()) {
        // `read_dir` refuses what is no folder.
        let Ok(files) = fs::read_dir(&folder) else { continue };
        for file in files.filter_map(Result::ok) {
            let Ok(metadata) = file.metadata() else { continue };
            found.push(Found {
                unfinished: file.file_name().to_string_lossy().starts_with('.'),
                path: file.path(),
                bytes: metadata.len(),
                used: metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH),
            });
        }
    }
    Ok(found)
}

/// Removes what was used longest ago until at most `limit` bytes are left, and returns how many are.
pub(super) fn prune(root: &Path, limit: u64, older_than: Option<SystemTime>) -> Result<u64, CacheError> {
    let mut found = entries(root)?;
    found.sort_by(|one, other| one.used.cmp(&other.used).then_with(|| one.path.cmp(&other.path)));
    let mut total: u64 = found.iter().map(|entry| entry.bytes).sum();
    let now = SystemTime::now();
    for entry in &found {
        let leftover = entry.unfinished && now.duration_since(entry.used).is_ok_and(|age| age > LEFTOVER);
        let is_old = older_than.is_some_and(|time| entry.used < time);
        let removable = if entry.unfinished {
            leftover
        } else {
            is_old || total > limit
        };
        // One that cannot be removed is passed over: the next may be.
        if removable && fs::remove_file(&entry.path).is_ok() {
            total -= entry.bytes;
        }
    }
    Ok(total)
}

/// The running total of what processes wrote: one number in a file, which one process at a time changes.
pub(super) struct Tally {
    path: PathBuf,
}

impl Tally {
    pub(super) const fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Adds bytes, and prunes where the total passes the limit. `false` where another process is at it: the bytes are to be
    /// added later.
    pub(super) fn add(&self, bytes: u64, root: &Path, limit: u64) -> Result<bool, CacheError> {
        let failed = |source| CacheError::Directory {
            what: "cannot note its size in",
            path: self.path.clone(),
            source,
        };
        let mut file = fs::OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&self.path)
            .map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => return Ok(false),
            // A file system without locks: the total may miss what two processes add at once, until it is counted anew.
            Err(fs::TryLockError::Error(_)) => {}
        }
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(failed)?;
        let now = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .map_or(0, |age| age.as_secs());
        let (total, counted) = match tally(&text) {
            Some((total, counted))
                if now.saturating_sub(counted) < COUNT_AFTER && total.saturating_add(bytes) <= limit =>
            {
                (total.saturating_add(bytes), counted)
            }
            // A tenth is freed at once, so that it is not done for every entry.
            Some((total, _)) if total.saturating_add(bytes) > limit => (prune(root, limit - limit / 10, None)?, now),
            _ => (prune(root, limit, None)?, now),
        };
        file.set_len(0).map_err(failed)?;
        file.rewind().map_err(failed)?;
        writeln!(file, "{total} {counted}").map_err(failed)?;
        Ok(true)
    }
}

/// The total, and when everything was counted last, in seconds since 1970.
fn tally(text: &str) -> Option<(u64, u64)> {
    let (total, counted) = text.trim().split_once(' ')?;
    Some((total.parse().ok()?, counted.parse().ok()?))
}
