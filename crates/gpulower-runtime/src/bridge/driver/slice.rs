//! Parts of a device's memory, and what is copied to and from them.

use std::fmt;

use bytemuck::{AnyBitPattern, NoUninit};

use super::context::Context;
use super::error::DriverError;
use super::functions::Address;
use super::pinned::PinnedBuffer;
use super::stream::Stream;
use super::transfer::Transfer;

/// A part of a [`DeviceBuffer`](super::DeviceBuffer), or a variable of a module.
#[derive(Clone, Copy)]
pub struct DeviceSlice<'owner> {
    context: &'owner Context,
    address: Address,
    bytes: usize,
}

impl<'owner> DeviceSlice<'owner> {
    /// Memory that the owner of the reference keeps allocated in its context.
    pub(super) const fn of(context: &'owner Context, address: Address, bytes: usize) -> Self {
        Self {
            context,
            address,
            bytes,
        }
    }

    /// The address of the first byte on the device.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Its size in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Copies `data` to the device, behind what was enqueued in `stream`, and waits until it is there.
    ///
    /// # Errors
    ///
    /// [`DriverError::Range`] if the sizes differ, or the driver failed; also with the error of a kernel before it.
    pub fn upload<T: NoUninit>(&self, data: &[T], stream: &Stream) -> Result<(), DriverError> {
        let bytes: &[u8] = bytemuck::cast_slice(data);
        let call = "copying to the device";
        self.check_size(call, bytes.len())?;
        self.check_stream(call, stream)?;
        if bytes.is_empty() {
            return Ok(());
        }
        let entered = self.context.enter(call)?;
        let functions = entered.functions();
        // SAFETY: the source has that size and is borrowed until the copy is done, for which the next call waits; so has the
        // destination, within an allocation that lives.
        entered.check(unsafe {
            (functions.copy_to_device)(self.address(), bytes.as_ptr().cast(), bytes.len(), stream.raw())
        })?;
        // SAFETY: the stream lives.
        entered.check(unsafe { (functions.stream_synchronize)(stream.raw()) })
    }

    /// Copies the bytes of the device to `data`, behind what was enqueued in `stream`, and waits until they are there.
    ///
    /// # Errors
    ///
    /// As [`upload`](Self::upload).
    pub fn download<T: NoUninit + AnyBitPattern>(&self, data: &mut [T], stream: &Stream) -> Result<(), DriverError> {
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(data);
        let call = "copying from the device";
        self.check_size(call, bytes.len())?;
        self.check_stream(call, stream)?;
        if bytes.is_empty() {
            return Ok(());
        }
        let entered = self.context.enter(call)?;
        let functions = entered.functions();
        // SAFETY: as for `upload`; the destination takes any bytes.
        entered.check(unsafe {
            (functions.copy_to_host)(bytes.as_mut_ptr().cast(), self.address(), bytes.len(), stream.raw())
        })?;
        // SAFETY: the stream lives.
        entered.check(unsafe { (functions.stream_synchronize)(stream.raw()) })
    }

    /// Enqueues a copy of pinned host memory to the device, and does not wait: the memory comes back from the
    /// [`Transfer`] when it was read.
    ///
    /// # Errors
    ///
    /// As [`upload`](Self::upload), but for the waiting. The pinned memory is given back then, too, when the value is dropped.
    pub fn upload_pinned(&self, data: PinnedBuffer, stream: &Stream) -> Result<Transfer, DriverError> {
        let call = "copying pinned memory to the device";
        self.check_pinned(call, &data, stream)?;
        Transfer::start(data, stream, call, |entered, host| {
            // SAFETY: both sides have that size, and the transfer keeps the host's until the copy is done. The device's is given
            // back behind the copy. Only what was allocated in another stream may be given back before it: the copy then meets
            // other bytes of the device, or fails, and no memory of the host's.
            unsafe { (entered.functions().copy_to_device)(self.address(), host.cast_const(), self.bytes, stream.raw()) }
        })
    }

    /// Enqueues a copy to pinned host memory, and does not wait: the memory comes back from the [`Transfer`] when it was
    /// written.
    ///
    /// # Errors
    ///
    /// As [`upload_pinned`](Self::upload_pinned).
    pub fn download_pinned(&self, data: PinnedBuffer, stream: &Stream) -> Result<Transfer, DriverError> {
        let call = "copying from the device to pinned memory";
        self.check_pinned(call, &data, stream)?;
        Transfer::start(data, stream, call, |entered, host| {
            // SAFETY: as for `upload_pinned`.
            unsafe { (entered.functions().copy_to_host)(host, self.address(), self.bytes, stream.raw()) }
        })
    }

    /// Enqueues a copy of `source`, which has the same size. Does not wait.
    ///
    /// # Errors
    ///
    /// [`DriverError::Range`] if the sizes differ, or the driver failed.
    pub fn copy_from(&self, source: DeviceSlice<'_>, stream: &Stream) -> Result<(), DriverError> {
        let call = "copying on the device";
        self.check_size(call, source.bytes)?;
        self.check_stream(call, stream)?;
        source.check_stream(call, stream)?;
        if self.bytes == 0 {
            return Ok(());
        }
        let entered = self.context.enter(call)?;
        // SAFETY: both sides have that size, within allocations that live.
        entered.check(unsafe {
            (entered.functions().copy_on_device)(self.address(), source.address(), self.bytes, stream.raw())
        })
    }

    /// Enqueues filling with copies of a value of 1, 2 or 4 bytes. Does not wait.
    ///
    /// # Errors
    ///
    /// [`DriverError::Range`] if the value has another size or does not divide the bytes evenly, or the driver failed.
    pub fn fill<T: NoUninit>(&self, value: T, stream: &Stream) -> Result<(), DriverError> {
        let call = "filling device memory";
        let size = size_of::<T>();
        if !matches!(size, 1 | 2 | 4) || !self.bytes.is_multiple_of(size) || !self.address().is_multiple_of(size as u64)
        {
            return Err(DriverError::Range {
                what: call,
                problem: format!(
                    "a value of {size} bytes for {} bytes at {:#x}: values have 1, 2 or 4 bytes, and bytes and address are \
                     multiples of that",
                    self.bytes,
                    self.address()
                ),
            });
        }
        self.check_stream(call, stream)?;
        if self.bytes == 0 {
            return Ok(());
        }
        let entered = self.context.enter(call)?;
        let functions = entered.functions();
        let (address, count) = (self.address(), self.bytes / size);
        // SAFETY: `count` values of that size are the bytes of this part, within an allocation that lives.
        let code = unsafe {
            match *bytemuck::bytes_of(&value) {
                [byte] => (functions.fill_8)(address, byte, count, stream.raw()),
                [a, b] => (functions.fill_16)(address, u16::from_ne_bytes([a, b]), count, stream.raw()),
                [a, b, c, d] => (functions.fill_32)(address, u32::from_ne_bytes([a, b, c, d]), count, stream.raw()),
                _ => super::status::SUCCESS,
            }
        };
        entered.check(code)
    }

    fn check_size(&self, what: &'static str, bytes: usize) -> Result<(), DriverError> {
        if bytes == self.bytes {
            return Ok(());
        }
        Err(DriverError::Range {
            what,
            problem: format!("{bytes} bytes on one side, and {} on the other", self.bytes),
        })
    }

    fn check_stream(&self, call: &'static str, stream: &Stream) -> Result<(), DriverError> {
        if stream.context().is(self.context) {
            return Ok(());
        }
        Err(DriverError::OtherContext {
            call,
            first: "the memory",
            second: "the stream",
        })
    }

    fn check_pinned(&self, call: &'static str, data: &PinnedBuffer, stream: &Stream) -> Result<(), DriverError> {
        self.check_size(call, data.bytes())?;
        self.check_stream(call, stream)
    }
}

impl fmt::Debug for DeviceSlice<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeviceSlice({} bytes at {:#x})", self.bytes, self.address())
    }
}
