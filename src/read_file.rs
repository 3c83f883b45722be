//! Files of others, which may have no end.

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

/// The most bytes of a file that are read where nobody said another number: 1 GiB.
pub const MOST_BYTES: u64 = 1 << 30;

/// All of a file, or of a pipe.
///
/// # Errors
///
/// Those of the system, and one for what has more than `most` bytes, such as `/dev/zero`.
pub fn read_file(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    read_all(File::open(path)?, most)
}

/// All that a reader has to give.
///
/// # Errors
///
/// As for [`read_file`].
pub fn read_all(reader: impl Read, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    match u64::try_from(bytes.len()) {
        Ok(length) if length <= most => Ok(bytes),
        _ => Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("it has more than {most} bytes"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_end_is_refused() {
        let error = read_file(Path::new("/dev/zero"), 1000).expect_err("no end");
        assert_eq!(error.to_string(), "it has more than 1000 bytes");
        assert_eq!(read_all(&b"abc"[..], 3).expect("short"), b"abc");
        assert!(read_all(&b"abcd"[..], 3).is_err());
        assert_eq!(read_all(&b"abc"[..], u64::MAX).expect("short"), b"abc");
    }
}
