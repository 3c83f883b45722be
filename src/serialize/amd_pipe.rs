//! A file name whose contents arrive in memory: lld's output without a file.
//!
//! lld writes a regular output file under a temporary name and renames it, which fails for an anonymous
//! file in memory. Anything that is not a regular file it writes in place: a pipe works, and leaves
//! nothing behind whatever happens to the process.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};

/// Bytes read at once: the capacity of a pipe on Linux (pipe(7)).
const CHUNK: usize = 64 * 1024;

/// Calls `write` with a path, and returns its result with everything written to that path meanwhile.
///
/// The path is only valid in this process and during the call. The end of the output is when `write`
/// returns, not when all writers have closed the pipe: `write` may leave descriptors of it open.
///
/// # Errors
///
/// The error of making or reading the pipe, or of starting the thread that reads it.
pub(super) fn capture<T>(write: impl FnOnce(&str) -> T) -> io::Result<(T, Vec<u8>)> {
    let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
    rustix::io::ioctl_fionbio(&reader, true)?;
    let finished = eventfd(0, EventfdFlags::CLOEXEC)?;
    let path = format!("/proc/self/fd/{}", writer.as_raw_fd());
    if !Path::new(&path).exists() {
        return Err(io::Error::other(
            "/proc is not mounted, and lld opens its files by their names there: mount it, or make an object (emit=object)",
        ));
    }
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .name("pipe reader".to_owned())
            .spawn_scoped(scope, || read_until(&reader, &finished))?;
        let result = {
            let _finished = SignalOnDrop(&finished);
            write(&path)
        };
        let bytes = thread
            .join()
            .map_err(|_| io::Error::other("the thread that reads the pipe panicked"))??;
        Ok((result, bytes))
    })
}

/// Tells the reading thread that nothing more will be written, also when the writer panics: otherwise
/// the scope would wait for the thread for ever.
struct SignalOnDrop<'fd>(&'fd OwnedFd);

impl Drop for SignalOnDrop<'_> {
    fn drop(&mut self) {
        // Cannot fail: the counter is far from its maximum, and the descriptor is open.
        let _ = rustix::io::write(self.0, &1u64.to_ne_bytes());
    }
}

/// Reads `pipe`, which is in non-blocking mode, until `finished` is signalled and the pipe is empty.
fn read_until(pipe: &OwnedFd, finished: &OwnedFd) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut chunk = vec![0; CHUNK];
    loop {
        let mut waiting = [
            PollFd::from_borrowed_fd(pipe.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(finished.as_fd(), PollFlags::IN),
        ];
        match poll(&mut waiting, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        // Asked for before the pipe is emptied: what was written before the signal is then read below.
        let last = !waiting[1].revents().is_empty();
        loop {
            match rustix::io::read(pipe, chunk.as_mut_slice()) {
                Ok(0) | Err(Errno::AGAIN) => break,
                Ok(count) => bytes.extend_from_slice(chunk.get(..count).unwrap_or(&chunk)),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        if last {
            return Ok(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_a_pipe_holds_comes_through() {
        let sent: Vec<u8> = (0..1_000_003u32).map(|index| index as u8).collect();
        let (result, received) = capture(|path| std::fs::write(path, &sent)).unwrap();
        result.unwrap();
        assert!(received == sent);
    }

    #[test]
    fn nothing_written_is_nothing_read() {
        assert_eq!(capture(|_| 7).unwrap(), (7, Vec::new()));
    }

    #[test]
    fn a_writer_left_open_does_not_block() {
        let (file, received) = capture(|path| {
            use std::io::Write;
            let mut file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
            file.write_all(b"half").unwrap();
            file
        })
        .unwrap();
        assert_eq!(received, b"half");
        drop(file);
    }

    #[test]
    fn a_panicking_writer_does_not_block() {
        let caught = std::panic::catch_unwind(|| capture(|_| panic!("on purpose")));
        assert!(caught.is_err());
    }
}
