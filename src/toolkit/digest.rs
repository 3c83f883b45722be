//! Hashes of the files that tools and libraries are: what a result was made with, by content and not by path.

use std::collections::HashMap;
use std::fs::{self, File, Metadata};
use std::io::{self, BufRead};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

/// A file changed more recently than this may change again within the resolution of its time stamps.
const SETTLED: Duration = Duration::from_secs(2);

/// BLAKE3 of a file's content, in hexadecimal.
pub(crate) fn of_file(path: &Path) -> io::Result<String> {
    let mut hasher = blake3::Hasher::new();
    let file = File::open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("not a file"));
    }
    let mut reader = io::BufReader::with_capacity(1 << 20, file);
    loop {
        let bytes = reader.fill_buf()?;
        if bytes.is_empty() {
            return Ok(hasher.finalize().to_hex().to_string());
        }
        let length = bytes.len();
        hasher.update(bytes);
        reader.consume(length);
    }
}

/// Whether the file has the content that was written. A cache that lost bytes is a miss, not an error: the
/// dynamic loader would end the process on a truncated file. The content is read where [`noted`] reads it: 35 MB at each start
/// of a program are a tenth of its time.
pub(crate) fn is_intact(path: &Path, digest_path: &Path, notes: &Path) -> bool {
    match (noted(path, notes), fs::read_to_string(digest_path)) {
        (Ok(actual), Ok(expected)) => actual == expected,
        _ => false,
    }
}

/// As [`of_file`], for files that are large and stay: while the file's inode, size and times are as they were, the hash that
/// is noted in the directory `notes` is taken.
pub(crate) fn noted(path: &Path, notes: &Path) -> io::Result<String> {
    let before = identity(&fs::metadata(path)?);
    let note = note_of(path, notes)?;
    if let Ok(text) = fs::read_to_string(&note)
        && let Some((identity, digest)) = text.split_once('\n')
        && identity == before
        && digest.len() == 64
        && digest.bytes().all(|digit| digit.is_ascii_hexdigit())
    {
        return Ok(digest.to_owned());
    }
    let digest = of_file(path)?;
    if is_settled_as(path, &before)? {
        write_note(&note, &before, &digest);
    }
    Ok(digest)
}

fn note_of(path: &Path, notes: &Path) -> io::Result<PathBuf> {
    let name = blake3::hash(fs::canonicalize(path)?.as_os_str().as_bytes()).to_hex();
    Ok(notes.join(format!("digest-{}.key", name.get(..16).unwrap_or(&name))))
}

/// Without a note the hash is computed again the next time: nothing to report.
fn write_note(note: &Path, identity: &str, digest: &str) {
    let folder = note.parent().unwrap_or(note);
    let written = tempfile::NamedTempFile::new_in(folder).and_then(|file| {
        fs::write(file.path(), format!("{identity}\n{digest}"))?;
        file.persist(note).map_err(io::Error::from)
    });
    if let Err(error) = written {
        tracing::debug!(%error, note = %note.display(), "the hash of a file could not be noted");
    }
}

/// The hashes of the files that this process asked for, each computed again when the file has changed.
#[derive(Debug, Default)]
pub(crate) struct FileDigests {
    /// Where hashes are noted for other processes.
    notes: Option<PathBuf>,
    known: Mutex<HashMap<PathBuf, Known>>,
}

/// What is known of a file that is settled.
#[derive(Clone, Debug)]
struct Known {
    /// What the file was.
    identity: String,
    digest: String,
    /// Whether there was a folder for a note. That of a cache is made when the first result is kept.
    is_noted: bool,
}

impl FileDigests {
    pub(crate) fn new(notes: Option<PathBuf>) -> Self {
        Self {
            notes,
            known: Mutex::default(),
        }
    }

    /// The hash of the file as it is now.
    pub(crate) fn of(&self, path: &Path) -> io::Result<String> {
        let now = identity(&fs::metadata(path)?);
        let has_folder = || self.notes.as_deref().is_none_or(Path::is_dir);
        let is_there = has_folder();
        let known = self
            .lock()
            .get_mut(path)
            .filter(|known| known.identity == now)
            .map(|known| {
                let is_to_be_noted = is_there && !known.is_noted;
                known.is_noted |= is_there;
                (known.digest.clone(), is_to_be_noted)
            });
        if let Some((digest, is_to_be_noted)) = known {
            if let Some(notes) = self.notes.as_deref().filter(|_| is_to_be_noted)
                && let Ok(note) = note_of(path, notes)
            {
                write_note(&note, &now, &digest);
            }
            return Ok(digest);
        }
        let digest = match &self.notes {
            Some(notes) => noted(path, notes)?,
            None => of_file(path)?,
        };
        if is_settled_as(path, &now)? {
            let known = Known {
                identity: now,
                digest: digest.clone(),
                is_noted: is_there,
            };
            self.lock().insert(path.to_owned(), known);
        }
        Ok(digest)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<PathBuf, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn identity(metadata: &Metadata) -> String {
    format!(
        "{}:{} {} {}.{:09} {}.{:09}",
        metadata.dev(),
        metadata.ino(),
        metadata.size(),
        metadata.mtime(),
        metadata.mtime_nsec(),
        metadata.ctime(),
        metadata.ctime_nsec()
    )
}

/// Whether the file is what it was, and for long enough that a later change will show.
fn is_settled_as(path: &Path, before: &str) -> io::Result<bool> {
    let metadata = fs::metadata(path)?;
    Ok(identity(&metadata) == before && is_settled(&metadata))
}

fn is_settled(metadata: &Metadata) -> bool {
    u64::try_from(metadata.ctime())
        .ok()
        .and_then(|seconds| SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds)))
        .and_then(|changed| SystemTime::now().duration_since(changed).ok())
        .is_some_and(|age| age > SETTLED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_file_has_another_hash() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("a");
        let digests = FileDigests::new(None);
        for content in ["one", "two"] {
            fs::write(&file, content).unwrap();
            let expected = blake3::hash(content.as_bytes()).to_hex().to_string();
            // Too young for a note, so that a change within the clock's resolution is seen.
            assert_eq!(noted(&file, directory.path()).unwrap(), expected);
            assert_eq!(digests.of(&file).unwrap(), expected);
        }
        assert!(noted(Path::new("/nowhere/a"), directory.path()).is_err());
        assert!(digests.of(Path::new("/nowhere/a")).is_err());
    }

    #[test]
    fn a_note_is_written_once_there_is_a_folder_for_it() {
        let directory = tempfile::tempdir().unwrap();
        let notes = directory.path().join("made later");
        let digests = FileDigests::new(Some(notes.clone()));
        let settled = Path::new("/bin/sh");
        let digest = digests.of(settled).unwrap();
        assert!(!notes.exists());
        fs::create_dir(&notes).unwrap();
        assert_eq!(digests.of(settled).unwrap(), digest);
        let note = fs::read_dir(&notes).unwrap().next().expect("a note").unwrap();
        assert!(fs::read_to_string(note.path()).unwrap().ends_with(&digest));
    }

    #[test]
    fn a_note_is_believed_only_for_the_same_file() {
        let directory = tempfile::tempdir().unwrap();
        let other_file = std::env::current_exe().unwrap();
        let settled = Path::new("/bin/sh");
        let digest = noted(settled, directory.path()).unwrap();
        let notes: Vec<_> = fs::read_dir(directory.path())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        assert_eq!(notes.len(), 1, "{notes:?}");
        let note = fs::read_to_string(&notes[0]).unwrap();
        let other = "0".repeat(64);
        fs::write(&notes[0], note.replace(&digest, &other)).unwrap();
        assert_eq!(noted(settled, directory.path()).unwrap(), other);
        fs::write(&notes[0], format!("1{}", note.replace(&digest, &other))).unwrap();
        assert_eq!(noted(settled, directory.path()).unwrap(), digest);
        assert_ne!(noted(&other_file, directory.path()).unwrap(), digest);
    }
}
