//! What a whole program does with plain addresses: copies, fills and pinning that nothing here can check, and tensor maps.

use std::ffi::c_void;

use super::context::Context;
use super::error::DriverError;
use super::library::Own;
use super::memory::DeviceBuffer;
use super::stream::Stream;
use gpulower_image::target::Vendor;

/// `CU_MEM_ATTACH_GLOBAL`, `hipMemAttachGlobal`.
const ATTACH_GLOBAL: u32 = 1;
/// `hipMemcpyDefault`.
const COPY_DEFAULT: u32 = 4;

impl Stream {
    /// Enqueues a copy between any two addresses, of the device or of the host. Memory that is not pinned may be waited for.
    ///
    /// # Errors
    ///
    /// [`DriverError`].
    ///
    /// # Safety
    ///
    /// Both addresses are memory of that many bytes, until the stream has come past the copy.
    pub unsafe fn copy(&self, to: u64, from: u64, bytes: usize) -> Result<(), DriverError> {
        let entered = self.context().enter("copying memory")?;
        entered.check(match entered.own() {
            // SAFETY: the addresses are memory, as the caller promises, and the stream lives.
            Own::Cuda(cuda) => unsafe { (cuda.copy)(to, from, bytes, self.raw()) },
            // SAFETY: as above.
            Own::Hip(hip, _) => unsafe { (hip.copy)(to, from, bytes, COPY_DEFAULT, self.raw()) },
        })
    }

    /// Enqueues setting `count` bytes.
    ///
    /// # Errors
    ///
    /// [`DriverError`].
    ///
    /// # Safety
    ///
    /// The address is memory of the device of that many elements, until the stream has come past the call.
    pub unsafe fn fill_8(&self, to: u64, value: u8, count: usize) -> Result<(), DriverError> {
        let entered = self.context().enter("setting memory")?;
        // SAFETY: the addresses are memory, as the caller promises, and the stream lives.
        entered.check(unsafe { (entered.functions().fill_8)(to, value, count, self.raw()) })
    }

    /// Enqueues setting `count` elements of 16 bits.
    ///
    /// # Errors
    ///
    /// [`DriverError`].
    ///
    /// # Safety
    ///
    /// The address is memory of the device of that many elements, until the stream has come past the call.
    pub unsafe fn fill_16(&self, to: u64, value: u16, count: usize) -> Result<(), DriverError> {
        let entered = self.context().enter("setting memory")?;
        // SAFETY: as above.
        entered.check(unsafe { (entered.functions().fill_16)(to, value, count, self.raw()) })
    }

    /// Enqueues setting `count` elements of 32 bits.
    ///
    /// # Errors
    ///
    /// [`DriverError`].
    ///
    /// # Safety
    ///
    /// The address is memory of the device of that many elements, until the stream has come past the call.
    pub unsafe fn fill_32(&self, to: u64, value: u32, count: usize) -> Result<(), DriverError> {
        let entered = self.context().enter("setting memory")?;
        // SAFETY: as above.
        entered.check(unsafe { (entered.functions().fill_32)(to, value, count, self.raw()) })
    }
}

impl Context {
    /// Allocates memory that device and host share. It is given back like any other.
    ///
    /// # Errors
    ///
    /// [`DriverError`].
    pub fn allocate_managed(&self, bytes: usize) -> Result<DeviceBuffer, DriverError> {
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
    ///
    /// # Errors
    ///
    /// [`DriverError`].
    ///
    /// # Safety
    ///
    /// The address is host memory of that many bytes, which stays until the value is dropped; what is enqueued until then and
    /// uses the memory is done by then.
    pub unsafe fn register_memory(&self, start: usize, bytes: usize) -> Result<Registration, DriverError> {
        let entered = self.enter("pinning host memory")?;
        let start = std::ptr::with_exposed_provenance_mut::<c_void>(start);
        // SAFETY: the memory stays, as the caller promises.
        let code = unsafe { (entered.functions().host_register)(start, bytes, 0) };
        entered.check_allocation(code, bytes)?;
        Ok(Registration {
            context: self.clone(),
            start: start.expose_provenance(),
        })
    }

    /// The address on the device of pinned host memory.
    ///
    /// # Errors
    ///
    /// [`DriverError`].
    pub fn device_address(&self, host: usize) -> Result<u64, DriverError> {
        let entered = self.enter("the device's address of pinned host memory")?;
        let (mut address, host) = (0, std::ptr::with_exposed_provenance_mut::<c_void>(host));
        // SAFETY: the pointer is valid for one write; an address that is not pinned is an error of the driver's.
        entered.check(unsafe { (entered.functions().host_device_address)(&raw mut address, host, 0) })?;
        Ok(address)
    }

    /// Encodes a tensor map (`cuTensorMapEncodeTiled`): its 128 bytes.
    ///
    /// # Errors
    ///
    /// [`DriverError`].
    pub fn tensor_map(&self, map: &TensorShape) -> Result<[u64; 16], DriverError> {
        /// `CUtensorMap`, aligned as the driver wants it.
        #[repr(C, align(64))]
        struct Encoded([u64; 16]);
        if !(1..=5).contains(&map.rank) {
            return Err(DriverError::Range {
                what: "encoding a tensor map",
                problem: format!("a tensor of {} dimensions: a tensor map has 1 to 5", map.rank),
            });
        }
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
        // SAFETY: the map has its size and alignment; the arrays have 5 elements, which the rank is not above.
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

/// Host memory of somebody else's that is pinned, until the value is dropped.
#[derive(Debug)]
pub struct Registration {
    context: Context,
    start: usize,
}

impl Registration {
    /// Ends it.
    ///
    /// # Errors
    ///
    /// [`DriverError`].
    pub fn end(self) -> Result<(), DriverError> {
        let this = std::mem::ManuallyDrop::new(self);
        // SAFETY: the value is not used or dropped any more.
        let context = unsafe { std::ptr::read(&raw const this.context) };
        let entered = context.enter("releasing pinned host memory")?;
        // SAFETY: it was registered, and is so until here.
        entered.check(unsafe { (entered.functions().host_unregister)(pointer(this.start)) })
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        if let Some(entered) = self.context.enter_to_release("releasing pinned host memory") {
            // SAFETY: it was registered, and is so until here.
            entered.log(unsafe { (entered.functions().host_unregister)(pointer(self.start)) });
        }
    }
}

fn pointer(address: usize) -> *mut c_void {
    std::ptr::with_exposed_provenance_mut(address)
}

/// What a tensor map describes: dimensions from the innermost on. Numbers without a name are enumerators of `cuda.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TensorShape {
    /// `CUtensorMapDataType`
    pub data_type: u32,
    /// Dimensions, 1 to 5.
    pub rank: u32,
    /// The first element on the device.
    pub address: u64,
    /// Elements along each dimension.
    pub sizes: [u64; 5],
    /// Bytes, one less than there are dimensions.
    pub strides: [u64; 5],
    /// Elements of a box along each dimension.
    pub boxes: [u32; 5],
    /// Steps between elements of a box.
    pub steps: [u32; 5],
    /// `CUtensorMapInterleave`
    pub interleave: u32,
    /// `CUtensorMapSwizzle`
    pub swizzle: u32,
    /// `CUtensorMapL2promotion`
    pub promotion: u32,
    /// `CUtensorMapFloatOOBfill`
    pub fill: u32,
}
