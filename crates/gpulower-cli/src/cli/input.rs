//! Reading what a command is about.

use std::{
    io,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use gpulower::{ErrorKind, MOST_BYTES, read_all, read_file};

use super::{Failed, message::Problem};

/// `--input-limit`, in bytes.
static MOST: AtomicU64 = AtomicU64::new(MOST_BYTES);

/// Sets the most bytes that an input may have, in MiB.
pub fn set_limit(mebibytes: u64) {
    MOST.store(mebibytes.saturating_mul(1 << 20), Ordering::Relaxed);
}

/// The names and bytes of several inputs, of which one at most is the standard input.
pub fn read_several(paths: &[PathBuf]) -> Result<Vec<(String, Vec<u8>)>, Failed> {
    for (index, path) in paths.iter().enumerate() {
        if paths.get(..index).is_some_and(|before| before.contains(path)) {
            return Err(Failed::Usage(format!("{} is named twice", path.display())));
        }
    }
    let named = |path: &PathBuf| Ok((path.to_string_lossy().into_owned(), read(path)?));
    paths.iter().map(named).collect()
}

/// The most bytes that an input may have.
pub fn limit() -> u64 {
    MOST.load(Ordering::Relaxed)
}

/// The bytes of a file, or of the standard input for `-`.
pub fn read(path: &Path) -> Result<Vec<u8>, Problem> {
    let most = limit();
    let result = if path == Path::new("-") {
        read_all(io::stdin().lock(), most)
    } else {
        read_file(path, most)
    };
    result.map_err(|error| {
        let what = match error.kind() {
            _ if path.is_dir() => "it is a directory; name a file in it".to_owned(),
            io::ErrorKind::FileTooLarge => format!("{error}; raise the limit with --input-limit=MIB"),
            _ => error.to_string(),
        };
        Problem::input(format!("cannot read {}: {what}", path.display())).of_kind(ErrorKind::Input)
    })
}
