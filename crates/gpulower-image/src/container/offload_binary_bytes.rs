//! Checked reads for the reader of [`super::offload_binary`].

use super::offload_binary_error::OffloadBinaryError;

/// A file or one binary of it, with checked reads at offsets from its start.
pub(super) struct Region<'data> {
    pub(super) bytes: &'data [u8],
    /// Where it starts in the file, to which errors refer.
    pub(super) start: u64,
    /// What it is, for errors: "file" or "binary".
    pub(super) container: &'static str,
}

impl<'data> Region<'data> {
    pub(super) fn end(&self) -> u64 {
        self.bytes.len() as u64
    }

    pub(super) fn damaged(&self, what: &'static str, offset: u64, problem: String) -> OffloadBinaryError {
        OffloadBinaryError::Damaged {
            what,
            offset: self.start.saturating_add(offset),
            problem,
        }
    }

    pub(super) fn slice(&self, what: &'static str, offset: u64, size: u64) -> Result<&'data [u8], OffloadBinaryError> {
        let range = || {
            let start = usize::try_from(offset).ok()?;
            let end = usize::try_from(offset.checked_add(size)?).ok()?;
            self.bytes.get(start..end)
        };
        range().ok_or(OffloadBinaryError::Truncated {
            what,
            offset: self.start.saturating_add(offset),
            size,
            container: self.container,
            end: self.start + self.end(),
        })
    }

    /// What follows `offset`; nothing if that lies behind the end.
    pub(super) fn rest(&self, offset: u64) -> &'data [u8] {
        usize::try_from(offset)
            .ok()
            .and_then(|start| self.bytes.get(start..))
            .unwrap_or_default()
    }

    fn array<const N: usize>(&self, offset: u64) -> Result<[u8; N], OffloadBinaryError> {
        let bytes = self.slice("a field", offset, N as u64)?;
        // `slice` returned N bytes, so that the default is never taken.
        Ok(bytes.try_into().unwrap_or([0; N]))
    }

    pub(super) fn u16(&self, offset: u64) -> Result<u16, OffloadBinaryError> {
        self.array(offset).map(u16::from_le_bytes)
    }

    pub(super) fn u32(&self, offset: u64) -> Result<u32, OffloadBinaryError> {
        self.array(offset).map(u32::from_le_bytes)
    }

    pub(super) fn u64(&self, offset: u64) -> Result<u64, OffloadBinaryError> {
        self.array(offset).map(u64::from_le_bytes)
    }

    /// Between two binaries there is nothing but zeros.
    pub(super) fn check_padding(&self, from: u64, to: u64) -> Result<(), OffloadBinaryError> {
        let padding = self.slice("the padding", from, to.saturating_sub(from))?;
        if padding.iter().all(|&byte| byte == 0) {
            return Ok(());
        }
        Err(self.damaged("the padding behind a binary", from, "it is not zero".to_owned()))
    }
}
