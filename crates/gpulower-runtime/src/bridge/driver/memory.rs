//! Memory of a device.

use std::fmt;
use std::ops::Range;

use bytemuck::{AnyBitPattern, NoUninit};

use super::context::Context;
use super::error::DriverError;
use super::functions::Address;
use super::slice::DeviceSlice;
use super::stream::Stream;

/// Bytes of a device's memory, given back when the value is dropped.
///
/// Work on it is enqueued in a stream. Only [`upload`](DeviceSlice::upload) and [`download`](DeviceSlice::download) wait, for
/// they lend host memory to the device. It is `Send` and `Sync`; what kernels and copies of several streams do to the same
/// bytes is ordered by nothing but streams and events.
pub struct DeviceBuffer {
    context: Context,
    address: Address,
    bytes: usize,
    /// The stream that it was allocated in, if it was, and is given back in.
    stream: Option<Stream>,
}

impl Context {
    /// Allocates memory of the device. The contents are not defined.
    ///
    /// Giving it back waits for the device, as drivers do (`cuMemFree`, `hipFree`); memory that is
    /// [allocated in a stream](Stream::allocate) waits for nothing.
    ///
    /// # Errors
    ///
    /// [`DriverError::OutOfMemory`], or the driver failed otherwise.
    pub fn allocate(&self, bytes: usize) -> Result<DeviceBuffer, DriverError> {
        let mut address = 0;
        if bytes > 0 {
            let entered = self.enter("allocating device memory")?;
            // SAFETY: the pointer is valid for one write.
            let code = unsafe { (entered.functions().allocate)(&raw mut address, bytes) };
            entered.check_allocation(code, bytes)?;
        }
        Ok(DeviceBuffer {
            context: self.clone(),
            address,
            bytes,
            stream: None,
        })
    }
}

impl Stream {
    /// Allocates memory of the device in the order of the stream: it may be used in what is enqueued there from here on, and
    /// in other streams behind an event. It is given back in the same order when the value is dropped, without waiting.
    ///
    /// # Errors
    ///
    /// [`DriverError::Unsupported`] before CUDA 11.2 and ROCm 5.1 and on devices without memory pools,
    /// [`DriverError::OutOfMemory`], or the driver failed otherwise.
    pub fn allocate(&self, bytes: usize) -> Result<DeviceBuffer, DriverError> {
        let mut address = 0;
        if bytes > 0 {
            let entered = self.context().enter("allocating device memory in a stream")?;
            let functions = entered.functions();
            let (Some(allocate), Some(_), true) = (
                functions.allocate_async,
                functions.free_async,
                self.context().limits().memory_pools,
            ) else {
                return Err(DriverError::Unsupported {
                    vendor: entered.vendor(),
                    what: "allocate memory in the order of a stream",
                    needs: "that takes CUDA 11.2 or ROCm 5.1 and a device with memory pools; Context::allocate needs neither",
                });
            };
            // SAFETY: the pointer is valid for one write, and the stream lives.
            entered.check_allocation(unsafe { allocate(&raw mut address, bytes, self.raw()) }, bytes)?;
        }
        Ok(DeviceBuffer {
            context: self.context().clone(),
            address,
            bytes,
            stream: Some(self.clone()),
        })
    }
}

impl DeviceBuffer {
    /// Memory that the driver allocated in no stream, which becomes the value's own.
    pub(super) fn of(context: &Context, address: Address, bytes: usize) -> Self {
        Self {
            context: context.clone(),
            address,
            bytes,
            stream: None,
        }
    }

    /// The context.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// The address of the first byte on the device; 0 for a buffer without bytes.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Its size in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// All of it.
    #[must_use]
    pub fn all(&self) -> DeviceSlice<'_> {
        DeviceSlice::of(&self.context, self.address, self.bytes)
    }

    /// A part of it, in bytes.
    ///
    /// # Errors
    ///
    /// [`DriverError::Range`] if the buffer ends before.
    pub fn slice(&self, range: Range<usize>) -> Result<DeviceSlice<'_>, DriverError> {
        if range.start > range.end || range.end > self.bytes {
            return Err(DriverError::Range {
                what: "a part of a device buffer",
                problem: format!(
                    "bytes {} to {} of a buffer of {} bytes",
                    range.start, range.end, self.bytes
                ),
            });
        }
        Ok(DeviceSlice::of(
            &self.context,
            self.address + range.start as u64,
            range.end - range.start,
        ))
    }

    /// As [`DeviceSlice::upload`], of the whole buffer.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn upload<T: NoUninit>(&self, data: &[T], stream: &Stream) -> Result<(), DriverError> {
        self.all().upload(data, stream)
    }

    /// As [`DeviceSlice::download`], of the whole buffer.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn download<T: NoUninit + AnyBitPattern>(&self, data: &mut [T], stream: &Stream) -> Result<(), DriverError> {
        self.all().download(data, stream)
    }
}

impl Drop for DeviceBuffer {
    fn drop(&mut self) {
        if self.bytes == 0 {
            return;
        }
        let Some(entered) = self.context.enter_to_release("giving device memory back") else {
            return;
        };
        let functions = entered.functions();
        let code = match (&self.stream, functions.free_async) {
            // SAFETY: it is ours, and this is its end; the driver keeps the memory until what is in the stream is done.
            (Some(stream), Some(free)) => unsafe { free(self.address, stream.raw()) },
            // SAFETY: it is ours, and this is its end; the call waits for what is enqueued.
            _ => unsafe { (functions.free)(self.address) },
        };
        entered.log(code);
    }
}

impl fmt::Debug for DeviceBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeviceBuffer({} bytes at {:#x})", self.bytes, self.address)
    }
}
