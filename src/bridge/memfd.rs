//! Anonymous files in memory, to hand bytes to tools that want a file name.
//!
//! A descriptor made here is close-on-exec: a child process started by another thread at the same
//! moment never inherits it. Give it to a child as one of its three standard streams, or to code in
//! this process under [`path`].

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::path::PathBuf;

/// Creates an empty file in memory. `name` only serves debugging (it shows in `/proc/PID/fd`).
///
/// # Errors
///
/// The error of `memfd_create(2)`.
pub(crate) fn create(name: &str) -> io::Result<File> {
    let descriptor = rustix::fs::memfd_create(name, rustix::fs::MemfdFlags::CLOEXEC)?;
    Ok(File::from(descriptor))
}

/// Creates a file in memory that holds `bytes`, positioned at its start.
///
/// # Errors
///
/// The error of `memfd_create(2)` or of the write.
pub(crate) fn with_bytes(name: &str, bytes: &[u8]) -> io::Result<File> {
    let mut file = create(name)?;
    file.write_all(bytes)?;
    file.seek(SeekFrom::Start(0))?;
    Ok(file)
}

/// The whole content of `file`, whatever its position is.
///
/// # Errors
///
/// The error of the seek or of the read.
pub(crate) fn read_all(file: &mut File) -> io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(0))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// A path under which this process (only) can open `file` again while it is open.
#[must_use]
pub(crate) fn path(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back_through_file_and_path() {
        let mut file = with_bytes("test", b"one two").unwrap();
        assert_eq!(std::fs::read(path(&file)).unwrap(), b"one two");
        assert_eq!(read_all(&mut file).unwrap(), b"one two");
        assert_eq!(read_all(&mut file).unwrap(), b"one two");
    }

    #[test]
    fn descriptors_are_close_on_exec() {
        let file = create("test").unwrap();
        let flags = rustix::io::fcntl_getfd(&file).unwrap();
        assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
    }
}
