//! Entries as files: `FORMAT/ab/cdef...`, by the digits of their keys.

use std::{
    fs::{self, DirBuilder, File, Permissions},
    io::{self, Read, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, SystemTime},
};

use super::{
    entry,
    error::CacheError,
    key::Key,
    shared_with::SharedWith,
    usage::{self, Tally, Usage},
};

/// The folder of this format. Another format is another folder, so that versions do not meet.
const FORMAT: &str = "1";

/// The time of the last use is written at most this often.
const USE_RESOLUTION: Duration = Duration::from_secs(3600);

/// Bytes are added to the directory's total after this many entries.
const TALLY_AFTER: u32 = 256;

pub(super) struct Disk {
    directory: PathBuf,
    root: PathBuf,
    limit: u64,
    shared_with: Option<SharedWith>,
    tally: Tally,
    /// Written and not yet in the total: bytes, entries.
    pending: Mutex<(u64, u32)>,
    /// Whether the directory is ours and may be used.
    usable: OnceLock<bool>,
    /// Whether it exists.
    made: AtomicBool,
}

impl Disk {
    pub(super) fn new(directory: PathBuf, limit: u64, shared_with: Option<SharedWith>) -> Self {
        let root = directory.join(FORMAT);
        Self {
            tally: Tally::new(directory.join("size")),
            root,
            directory,
            limit,
            shared_with,
            pending: Mutex::default(),
            usable: OnceLock::new(),
            made: AtomicBool::new(false),
        }
    }

    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    pub(super) fn path(&self, key: &Key) -> PathBuf {
        let digits = key.to_string();
        let (folder, name) = digits.split_at(2);
        self.root.join(folder).join(name)
    }

    /// The content of an entry, if there is one.
    pub(super) fn read(&self, key: &Key) -> Result<Option<Arc<[u8]>>, CacheError> {
        if !self.is_usable(false)? {
            return Ok(None);
        }
        let path = self.path(key);
        let read = open_entry(&path).and_then(|(file, metadata)| {
            // No more than it had when it was opened: nobody has to ask again. What it claims to have may be more than there is memory.
            let mut bytes = Vec::new();
            bytes
                .try_reserve_exact(usize::try_from(metadata.len()).unwrap_or(usize::MAX))
                .map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
            (&file).take(metadata.len()).read_to_end(&mut bytes)?;
            Ok((file, metadata, bytes))
        });
        let (file, metadata, bytes) = match read {
            Ok(read) => read,
            Err(error) if is_miss(&error) => return Ok(None),
            Err(source) => return Err(CacheError::Unreadable { path, source }),
        };
        match entry::content(key, &bytes) {
            Ok(content) => {
                mark_as_used(&file, &metadata);
                Ok(Some(content.into()))
            }
            Err(damage) => {
                // Another process may have removed it already.
                let _ = fs::remove_file(&path);
                Err(CacheError::Damaged { path, damage })
            }
        }
    }

    /// Writes an entry, if there is a place for it, and says whether. A reader finds all of it or nothing.
    pub(super) fn write(&self, key: &Key, content: &[u8]) -> Result<bool, CacheError> {
        let header = entry::header(key, content);
        let bytes = (header.len() + content.len()) as u64;
        let may_write = self.shared_with.is_none_or(SharedWith::may_write);
        if bytes > self.limit || !may_write || !self.is_usable(true)? {
            return Ok(false);
        }
        let path = self.path(key);
        let write = |folder: &Path| {
            let mut file = tempfile::Builder::new().prefix(".").tempfile_in(folder)?;
            file.write_all(&header)?;
            file.write_all(content)?;
            match self.shared_with {
                Some(SharedWith::User(_)) => file.as_file().set_permissions(Permissions::from_mode(0o644))?,
                Some(SharedWith::Group(_)) => file.as_file().set_permissions(Permissions::from_mode(0o660))?,
                None => {}
            }
            file.persist(&path)?;
            Ok(())
        };
        // The folder is there but for the first time, and unless somebody removes it: twice, where that is just now.
        let folder = path.parent().unwrap_or(&self.root);
        let make_and_write = |error: io::Error| match is_miss(&error) {
            true => self.make(folder).and_then(|()| write(folder)),
            false => Err(error),
        };
        match write(folder).or_else(make_and_write).or_else(make_and_write) {
            Ok(()) => self
                .wrote(bytes)
                .map(|()| true)
                .map_err(|error| CacheError::Unbounded(Box::new(error))),
            Err(source) => Err(CacheError::Unwritten { path, source }),
        }
    }

    pub(super) fn usage(&self) -> Result<Usage, CacheError> {
        let found = usage::entries(&self.root)?;
        let entries = found.iter().filter(|entry| !entry.unfinished);
        Ok(entries.fold(Usage::default(), |usage, entry| Usage {
            entries: usage.entries + 1,
            bytes: usage.bytes + entry.bytes,
        }))
    }

    pub(super) fn keys(&self) -> Result<Vec<Key>, CacheError> {
        let found = usage::entries(&self.root)?;
        let keys = found.iter().filter_map(|entry| {
            let digits = entry.path.strip_prefix(&self.root).ok()?.to_str()?.replace('/', "");
            Some(Key::of_bytes(*blake3::Hash::from_hex(digits).ok()?.as_bytes()))
        });
        Ok(keys.collect())
    }

    pub(super) fn prune(&self, bytes: u64, older_than: Option<SystemTime>) -> Result<Usage, CacheError> {
        check_owner(&self.directory, self.shared_with)?;
        usage::prune(&self.root, bytes, older_than)?;
        // The next writer counts.
        let _ = fs::remove_file(self.directory.join("size"));
        self.usage()
    }

    /// Makes a directory for whoever is to use it.
    fn make(&self, directory: &Path) -> io::Result<()> {
        match self.shared_with {
            None => make_private(directory),
            Some(whom) => make_shared(directory, whom),
        }
    }

    pub(super) fn clear(&self) -> Result<Usage, CacheError> {
        check_owner(&self.directory, self.shared_with)?;
        let usage = self.usage()?;
        match fs::remove_dir_all(&self.root) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(CacheError::Directory {
                what: "cannot remove",
                path: self.root.clone(),
                source: error,
            }),
            _ => {
                // Without it the next writer counts.
                let _ = fs::remove_file(self.directory.join("size"));
                *self.pending.lock().unwrap_or_else(PoisonError::into_inner) = (0, 0);
                Ok(usage)
            }
        }
    }

    /// Whether the directory may be used. What speaks against it is told once.
    fn is_usable(&self, make: bool) -> Result<bool, CacheError> {
        let unusable = |error| CacheError::Unusable(Box::new(error));
        if make && !self.made.swap(true, Ordering::Relaxed) {
            let made = self.make(&self.directory).map_err(|source| CacheError::Directory {
                what: "cannot make",
                path: self.directory.clone(),
                source,
            });
            if let Err(error) = made {
                let told = self.usable.set(false).is_err();
                return if told { Ok(false) } else { Err(unusable(error)) };
            }
        }
        if let Some(usable) = self.usable.get() {
            return Ok(*usable);
        }
        match check_owner(&self.directory, self.shared_with) {
            // Not there yet: nothing to read, and somebody may make it.
            Ok(false) => Ok(false),
            Ok(true) => Ok(*self.usable.get_or_init(|| true)),
            Err(error) => match self.usable.set(false) {
                Ok(()) => Err(unusable(error)),
                Err(_) => Ok(false),
            },
        }
    }

    fn wrote(&self, bytes: u64) -> Result<(), CacheError> {
        if self.shared_with.is_some() {
            return Ok(());
        }
        let due = {
            let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
            pending.0 += bytes;
            pending.1 += 1;
            (pending.1 >= TALLY_AFTER || pending.0 > self.limit / 32).then(|| std::mem::take(&mut *pending))
        };
        due.map_or(Ok(()), |due| self.settle(due))
    }

    fn settle(&self, (bytes, entries): (u64, u32)) -> Result<(), CacheError> {
        if !self.tally.add(bytes, &self.root, self.limit)? {
            let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
            pending.0 += bytes;
            pending.1 += entries;
        }
        Ok(())
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let due = std::mem::take(self.pending.get_mut().unwrap_or_else(PoisonError::into_inner));
        if due.1 > 0
            && let Err(error) = self.settle(due)
        {
            tracing::debug!(%error, "the size of the cache could not be noted");
        }
    }
}

/// Opens a file and nothing else: a pipe would make who reads wait for ever, and a device may do anything.
fn open_entry(path: &Path) -> io::Result<(File, fs::Metadata)> {
    let is_file = |metadata: &fs::Metadata| match metadata.is_file() {
        true => Ok(()),
        false => Err(io::Error::other("it is not a file: remove it")),
    };
    is_file(&fs::symlink_metadata(path)?)?;
    let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOFOLLOW;
    let flags = i32::try_from(flags.bits()).map_err(io::Error::other)?;
    let file = File::options().read(true).custom_flags(flags).open(path)?;
    // It may be another one by now.
    let metadata = file.metadata()?;
    is_file(&metadata)?;
    Ok((file, metadata))
}

/// Makes a directory, and those above it, for the user alone.
fn make_private(directory: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(directory)
}

/// Makes a directory, and those above it, for others too, whatever this process's mask is.
fn make_shared(directory: &Path, whom: SharedWith) -> io::Result<()> {
    match fs::create_dir(directory) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
        Err(error) => match directory.parent().filter(|_| error.kind() == io::ErrorKind::NotFound) {
            Some(parent) => {
                make_shared(parent, whom)?;
                return make_shared(directory, whom);
            }
            None => return Err(error),
        },
    }
    match whom {
        SharedWith::User(_) => fs::set_permissions(directory, Permissions::from_mode(0o755)),
        SharedWith::Group(group) => {
            std::os::unix::fs::chown(directory, None, Some(group))?;
            // What is made in it is the group's.
            fs::set_permissions(directory, Permissions::from_mode(0o2770))
        }
    }
}

/// Whether the directory is there; an error where it is not the user's own.
fn check_owner(directory: &Path, shared_with: Option<SharedWith>) -> Result<bool, CacheError> {
    let metadata = match fs::metadata(directory) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(source) => {
            return Err(CacheError::Directory {
                what: "cannot look at",
                path: directory.to_owned(),
                source,
            });
        }
    };
    let path = || directory.to_owned();
    if !metadata.is_dir() {
        return Err(CacheError::Directory {
            what: "cannot use",
            path: path(),
            source: io::ErrorKind::NotADirectory.into(),
        });
    }
    if let Some(whom) = shared_with {
        return match whom.fits(&metadata) {
            true => Ok(true),
            false => Err(CacheError::NotShared {
                path: path(),
                expected: whom.to_string(),
                owner: metadata.uid(),
                group: metadata.gid(),
                mode: metadata.mode() & 0o777,
            }),
        };
    }
    let user = rustix::process::geteuid().as_raw();
    if metadata.uid() != user {
        return Err(CacheError::Owner {
            path: path(),
            owner: metadata.uid(),
            user,
        });
    }
    // Group and others may write.
    if metadata.mode() & 0o022 != 0 {
        return Err(CacheError::Mode {
            path: path(),
            mode: metadata.mode() & 0o777,
        });
    }
    Ok(true)
}

/// Whether an error means that there is no such entry: it never was, or another machine has removed it from a network file
/// system that this one still had open.
fn is_miss(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::StaleNetworkFileHandle | io::ErrorKind::ResourceBusy
    )
}

/// Notes when an entry was used last. Where that fails the entry is merely older than it could be.
fn mark_as_used(file: &File, metadata: &fs::Metadata) {
    let now = SystemTime::now();
    let is_recent = metadata
        .modified()
        .is_ok_and(|used| now.duration_since(used).is_ok_and(|age| age < USE_RESOLUTION));
    if !is_recent {
        // Whoever may write to a file may say that it is used now, also where it is somebody else's.
        let now = rustix::fs::Timespec {
            tv_sec: 0,
            tv_nsec: rustix::fs::UTIME_NOW,
        };
        let times = rustix::fs::Timestamps {
            last_access: now,
            last_modification: now,
        };
        let _ = rustix::fs::futimens(file, &times);
    }
}
