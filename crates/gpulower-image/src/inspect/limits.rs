//! How much is read of a file that nobody vouches for.
//!
//! Containers may nest, and may name the same bytes more than once; a small file could stand for a large result. What is
//! read, decompressed and listed stays in proportion to the file.

/// Most containers in one another. An archive with an object with a bundle with a code object has four.
const DEPTH: usize = 12;

/// What is left to be read.
#[derive(Debug, Clone)]
pub(super) struct Limits {
    /// Bytes that may still be read. Every level of nesting reads the bytes inside of it again.
    bytes: u64,
    /// Bytes that may still be decompressed.
    unpacked: u64,
    /// Containers and images that may still be listed.
    parts: u64,
}

impl Limits {
    pub(super) fn of(file: &[u8]) -> Self {
        let size = file.len() as u64;
        Self {
            bytes: size.saturating_mul(16).saturating_add(1 << 20),
            unpacked: size.saturating_mul(64).saturating_add(64 << 20),
            // An empty entry of a fat binary, the smallest part there is, has 64 bytes.
            parts: size / 32 + 1024,
        }
    }

    /// Counts one more part of `bytes` bytes at a depth.
    pub(super) fn part(&mut self, bytes: usize, depth: usize) -> Result<(), String> {
        if depth > DEPTH {
            return Err(format!("not read: more than {DEPTH} containers in one another"));
        }
        self.parts = self
            .parts
            .checked_sub(1)
            .ok_or("not read: more parts than a file of this size can have")?;
        self.read(bytes)
    }

    /// Counts bytes that are read once more.
    pub(super) fn read(&mut self, bytes: usize) -> Result<(), String> {
        let left = self.bytes.checked_sub(bytes as u64);
        self.bytes = left.ok_or("not read: containers name the same bytes too often")?;
        Ok(())
    }

    /// Bytes that may still be decompressed.
    pub(super) fn unpacked_left(&self) -> u64 {
        self.unpacked
    }

    /// Counts bytes that are going to be decompressed, by the size that the container states.
    pub(super) fn unpack(&mut self, bytes: u64) -> Result<(), String> {
        let left = self.unpacked.checked_sub(bytes);
        self.unpacked = left.ok_or_else(|| {
            format!(
                "not read: it says that it has {bytes} bytes when decompressed, and {} more are read of this file",
                self.unpacked
            )
        })?;
        self.bytes = self.bytes.saturating_add(bytes.saturating_mul(16));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_limit_is_named() {
        let mut limits = Limits::of(b"");
        assert!(limits.part(1 << 20, 0).is_ok());
        assert_eq!(
            limits.read(1).unwrap_err(),
            "not read: containers name the same bytes too often"
        );
        assert!(Limits::of(&[]).part(0, 12).is_ok());
        assert_eq!(Limits::of(&[0; 65]).parts, 1026);
        assert!(
            limits
                .part(0, 13)
                .unwrap_err()
                .contains("more than 12 containers in one another")
        );
        let message = limits.unpack(1 << 30).unwrap_err();
        assert!(
            message.contains("1073741824 bytes when decompressed, and 67108864 more"),
            "{message}"
        );
        assert!(limits.unpack(1 << 20).is_ok() && limits.read(1).is_ok());
        for _ in 0..1023 {
            limits.part(0, 0).unwrap();
        }
        assert!(
            limits
                .part(0, 0)
                .unwrap_err()
                .contains("more parts than a file of this size")
        );
    }
}
