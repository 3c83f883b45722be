//! What a whole program does with plain addresses: copies, fills and launches that nothing here can check.

use std::ffi::c_void;

use super::context::Context;
use super::error::DriverError;
use super::launch::Launch;
use super::library::Own;
use super::memory::DeviceBuffer;
use super::stream::Stream;
use crate::target::Vendor;

/// `CU_MEM_ATTACH_GLOBAL`, `hipMemAttachGlobal`.
const ATTACH_GLOBAL: u32 = 1;
/// `hipMemcpyDefault`.
const COPY_DEFAULT: u32 = 4;

/// Somebody vouches for the addresses of a call: they are memory of the size that is used, as long as it is used. Only a
/// running program's calls have one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vouched(());

impl Vouched {
    /// # Safety
    ///
    /// The caller vouches for the addresses of whatever call the value is passed to.
    pub(in crate::bridge) const unsafe fn new() -> Self {
        Self(())
    }
}

impl Launch<'_> {
    /// As [`enqueue`](Self::enqueue).
    pub(crate) fn enqueue_vouched(self, stream: &Stream, _: Vouched) -> Result<(), DriverError> {
        // SAFETY: the program that launches is vouched for, with what its kernels do.
        unsafe { self.enqueue(stream) }
    }
}

impl Stream {
    /// Enqueues a copy between any two addresses, of the device or of the host. Memory that is not pinned may be waited for.
    pub(crate) fn copy_vouched(&self, to: u64, from: u64, bytes: usize, _: Vouched) -> Result<(), DriverError> {
        let entered = self.context().enter("copying memory")?;
        entered.check(match entered.own() {
            // SAFETY: the addresses are vouched for, and the stream lives.
            Own::Cuda(cuda) => unsafe { (cuda.copy)(to, from, bytes, self.raw()) },
            // SAFETY: as above.
            Own::Hip(hip, _) => unsafe { (hip.copy)(to, from, bytes, COPY_DEFAULT, self.raw()) },
        })
    }

    /// Enqueues setting `count` bytes.
    pub(crate) fn fill_8_vouched(&self, to: u64, value: u8, count: usize, _: Vouched) -> Result<(), DriverError> {
        let entered = self.context().enter("setting memory")?;
        // SAFETY: the addresses are vouched for, and the stream lives.
        entered.check(unsafe { (entered.functions().fill_8)(to, value, count, self.raw()) })
    }

    /// Enqueues setting `count` elements of 16 bits.
    pub(crate) fn fill_16_vouched(&self, to: u64, value: u16, count: usize, _: Vouched) -> Result<(), DriverError> {
        let entered = self.context().enter("setting memory")?;
        // SAFETY: as above.
        entered.check(unsafe { (entered.functions().fill_16)(to, value, count, self.raw()) })
    }

    /// Enqueues setting `count` elements of 32 bits.
    pub(crate) fn fill_32_vouched(&self, to: u64, value: u32, count: usize, _: Vouched) -> Result<(), DriverError> {
        let entered = self.context().enter("setting memory")?;
        // SAFETY: as above.
        entered.check(unsafe { (entered.functions().fill_32)(to, value, count, self.raw()) })
    }
}

impl Context {
    /// Allocates memory that device and host share. It is given back like any other.
    pub(crate) fn allocate_managed(&self, bytes: usize) -> Result<DeviceBuffer, DriverError> {
        let mut address = 0;
        if bytes > 0 {
            let entered = self.enter("allocating memory that device and host share")?;
            let Some(allocate) = entered.functions().allocate_managed else {
                return Err(DriverError::Unsupported {
                    vendor: entered.vendor(),
                    what: "allocate memory that device and host share",
                    needs: "that takes a newer driver",
                });
            };
            // SAFETY: the pointer is valid for one write.
            let code = unsafe { allocate(&raw mut address, bytes, ATTACH_GLOBAL) };
            entered.check_allocation(code, bytes)?;
        }
        Ok(DeviceBuffer::of(self, address, bytes))
    }

    /// Pins host memory that belongs to somebody else.
    pub(crate) fn register_vouched(&self, start: usize, bytes: usize, _: Vouched) -> Result<(), DriverError> {
        let entered = self.enter("pinning host memory")?;
        let start = std::ptr::with_exposed_provenance_mut::<c_void>(start);
        // SAFETY: the memory is vouched for.
        let code = unsafe { (entered.functions().host_register)(start, bytes, 0) };
        entered.check_allocation(code, bytes)
    }

    /// Ends that.
    pub(crate) fn unregister(&self, start: usize) -> Result<(), DriverError> {
        let entered = self.enter("releasing pinned host memory")?;
        let start = std::ptr::with_exposed_provenance_mut::<c_void>(start);
        // SAFETY: an address that is not pinned is an error of the driver's.
        entered.check(unsafe { (entered.functions().host_unregister)(start) })
    }

    /// The address on the device of pinned host memory.
    pub(crate) fn device_address(&self, host: usize) -> Result<u64, DriverError> {
        let entered = self.enter("the device's address of pinned host memory")?;
        let (mut address, host) = (0, std::ptr::with_exposed_provenance_mut::<c_void>(host));
        // SAFETY: the pointer is valid for one write; an address that is not pinned is an error of the driver's.
        entered.check(unsafe { (entered.functions().host_device_address)(&raw mut address, host, 0) })?;
        Ok(address)
    }

    /// Encodes a tensor map (`cuTensorMapEncodeTiled`): its 128 bytes.
    pub(crate) fn tensor_map(&self, map: &TensorShape) -> Result<[u64; 16], DriverError> {
        /// `CUtensorMap`, aligned as the driver wants it.
        #[repr(C, align(64))]
        struct Encoded([u64; 16]);
        let entered = self.enter("encoding a tensor map")?;
        let encode = match entered.own() {
            Own::Cuda(cuda) => cuda.tensor_map,
            Own::Hip(..) => None,
        };
        let Some(encode) = encode else {
            return Err(DriverError::Unsupported {
                vendor: entered.vendor(),
                what: "encode a tensor map",
                needs: match entered.vendor() {
                    Vendor::Nvidia => "that takes CUDA 12.0 and a device of 9.0 or later",
                    Vendor::Amd => "AMD's GPUs have none",
                },
            });
        };
        let mut encoded = Encoded([0; 16]);
        // SAFETY: the map has its size and alignment; the arrays have 5 elements, and the driver refuses a rank above that.
        // It looks at the address, and does not follow it.
        entered.check(unsafe {
            encode(
                (&raw mut encoded.0).cast(),
                map.data_type,
                map.rank,
                std::ptr::with_exposed_provenance_mut(map.address as usize),
                map.sizes.as_ptr(),
                map.strides.as_ptr(),
                map.boxes.as_ptr(),
                map.steps.as_ptr(),
                map.interleave,
                map.swizzle,
                map.promotion,
                map.fill,
            )
        })?;
        Ok(encoded.0)
    }
}

/// What a tensor map describes: dimensions from the innermost on. Numbers without a name are enumerators of `cuda.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TensorShape {
    pub(crate) data_type: u32,
    /// Dimensions, 1 to 5.
    pub(crate) rank: u32,
    pub(crate) address: u64,
    pub(crate) sizes: [u64; 5],
    /// Bytes, one less than there are dimensions.
    pub(crate) strides: [u64; 5],
    pub(crate) boxes: [u32; 5],
    pub(crate) steps: [u32; 5],
    pub(crate) interleave: u32,
    pub(crate) swizzle: u32,
    pub(crate) promotion: u32,
    pub(crate) fill: u32,
}
