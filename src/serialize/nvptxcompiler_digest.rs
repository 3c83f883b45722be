//! Hashes of the nvPTXCompiler archive and of the shared object made from it.

use std::fs::{self, File, Metadata};
use std::io::{self, BufRead};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// A file changed more recently than this may change again within the resolution of its time stamps.
const SETTLED: Duration = Duration::from_secs(2);

/// BLAKE3 of a file's content, in hexadecimal.
pub(super) fn of_file(path: &Path) -> io::Result<String> {
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
/// dynamic loader would end the process on a truncated file.
pub(super) fn is_intact(path: &Path, digest_path: &Path) -> bool {
    match (of_file(path), fs::read_to_string(digest_path)) {
        (Ok(actual), Ok(expected)) => actual == expected,
        _ => false,
    }
}

/// As [`of_file`] for the archive, which is large: while its inode, size and times stay as they were, the hash
/// noted in `cache` is taken. The hash of the content remains what the shared object is named by.
pub(super) fn of_archive(archive: &Path, cache: &Path) -> io::Result<String> {
    let before = identity(&fs::metadata(archive)?);
    let name = blake3::hash(fs::canonicalize(archive)?.as_os_str().as_bytes()).to_hex();
    let note = cache.join(format!("nvptxcompiler-{}.key", name.get(..16).unwrap_or(&name)));
    if let Ok(text) = fs::read_to_string(&note)
        && let Some((identity, digest)) = text.split_once('\n')
        && identity == before
        && digest.len() == 64
        && digest.bytes().all(|digit| digit.is_ascii_hexdigit())
    {
        return Ok(digest.to_owned());
    }
    let digest = of_file(archive)?;
    let metadata = fs::metadata(archive)?;
    if identity(&metadata) == before && is_settled(&metadata) {
        // Without a note the hash is computed again the next time: nothing to report.
        let noted = tempfile::NamedTempFile::new_in(cache).and_then(|file| {
            fs::write(file.path(), format!("{before}\n{digest}"))?;
            file.persist(&note).map_err(io::Error::from)
        });
        if let Err(error) = noted {
            tracing::debug!(%error, "the hash of the archive could not be noted");
        }
    }
    Ok(digest)
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
    fn a_changed_archive_has_another_hash() {
        let directory = tempfile::tempdir().unwrap();
        let archive = directory.path().join("a");
        fs::write(&archive, "one").unwrap();
        let of = || of_archive(&archive, directory.path()).unwrap();
        let one = of();
        assert_eq!(one, blake3::hash(b"one").to_hex().to_string());
        // Too young for a note, so that a change within the clock's resolution is seen.
        fs::write(&archive, "two").unwrap();
        assert_eq!(of(), blake3::hash(b"two").to_hex().to_string());
        assert!(of_archive(Path::new("/nowhere/a"), directory.path()).is_err());
    }

    #[test]
    fn a_note_is_believed_only_for_the_same_file() {
        let directory = tempfile::tempdir().unwrap();
        let archive = std::env::current_exe().unwrap();
        let settled = Path::new("/bin/sh");
        let digest = of_archive(settled, directory.path()).unwrap();
        let notes: Vec<_> = fs::read_dir(directory.path())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        assert_eq!(notes.len(), 1, "{notes:?}");
        let note = fs::read_to_string(&notes[0]).unwrap();
        let other = "0".repeat(64);
        fs::write(&notes[0], note.replace(&digest, &other)).unwrap();
        assert_eq!(of_archive(settled, directory.path()).unwrap(), other);
        fs::write(&notes[0], format!("1{}", note.replace(&digest, &other))).unwrap();
        assert_eq!(of_archive(settled, directory.path()).unwrap(), digest);
        assert_ne!(of_archive(&archive, directory.path()).unwrap(), digest);
    }
}
