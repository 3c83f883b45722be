//! What a whole program does with plain addresses: copies, fills, pinning and launches that nothing here can check.

use std::marker::PhantomData;

use gpulower_runtime::{Context, DriverError, Launch, Stream};

/// Whoever runs a program vouches for the addresses that its calls pass: they are memory of the size that is used, as long as
/// it is used. There is one for each call of a running program, and it does not outlive that call.
#[derive(Debug)]
pub struct Vouched<'call>(PhantomData<&'call ()>);

impl Vouched<'_> {
    /// # Safety
    ///
    /// The caller vouches for the addresses and the launch of the one call that the value is made for.
    pub(super) const unsafe fn new() -> Self {
        Self(PhantomData)
    }

    /// As [`Launch::enqueue`].
    pub fn enqueue(&self, launch: Launch<'_>, stream: &Stream) -> Result<(), DriverError> {
        // SAFETY: the program that launches is vouched for, with what its kernels do.
        unsafe { launch.enqueue(stream) }
    }

    /// Enqueues a copy between any two addresses, of the device or of the host.
    pub fn copy(&self, stream: &Stream, to: u64, from: u64, bytes: usize) -> Result<(), DriverError> {
        // SAFETY: the addresses are vouched for.
        unsafe { stream.copy(to, from, bytes) }
    }

    /// Enqueues setting `count` bytes.
    pub fn fill_8(&self, stream: &Stream, to: u64, value: u8, count: usize) -> Result<(), DriverError> {
        // SAFETY: the address is vouched for.
        unsafe { stream.fill_8(to, value, count) }
    }

    /// Enqueues setting `count` elements of 16 bits.
    pub fn fill_16(&self, stream: &Stream, to: u64, value: u16, count: usize) -> Result<(), DriverError> {
        // SAFETY: the address is vouched for.
        unsafe { stream.fill_16(to, value, count) }
    }

    /// Enqueues setting `count` elements of 32 bits.
    pub fn fill_32(&self, stream: &Stream, to: u64, value: u32, count: usize) -> Result<(), DriverError> {
        // SAFETY: the address is vouched for.
        unsafe { stream.fill_32(to, value, count) }
    }

    /// Pins host memory that belongs to the program.
    pub fn register(&self, context: &Context, start: usize, bytes: usize) -> Result<(), DriverError> {
        // SAFETY: the memory is vouched for.
        unsafe { context.register_memory(start, bytes) }
    }
}
