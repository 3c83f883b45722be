//! Host memory that devices reach: pinned, and on loan to a copy.

use std::alloc::{self, Layout};
use std::ffi::c_void;
use std::fmt;
use std::ptr::NonNull;

use bytemuck::{AnyBitPattern, NoUninit, PodCastError};

use super::context::Context;
use super::error::DriverError;

/// Pinned for every context (`CU_MEMHOSTREGISTER_PORTABLE`, `hipHostRegisterPortable`), and of use to kernels
/// (`CU_MEMHOSTREGISTER_DEVICEMAP`, `hipHostRegisterMapped`).
const PORTABLE_AND_MAPPED: u32 = 1 | 2;

/// Drivers pin whole pages: memory of ours shares none with anything else.
const PAGE: usize = 4096;

/// Host memory that stays where it is, so that a device copies it while the host goes on, and kernels can use it.
///
/// The memory is the process's own, and the driver only pins it: it outlives the context, also one that is reset. It is `Send`
/// and `Sync` as a `Vec` is; whoever lends it to a copy hands the value over.
pub struct PinnedBuffer {
    context: Context,
    memory: Memory,
}

/// The memory that is pinned.
enum Memory {
    /// Whole pages.
    Pages(Pages),
    /// The caller's.
    Vec(Vec<u8>),
}

/// Zeroed pages, at least one; `bytes` of them are asked for.
struct Pages {
    start: NonNull<u8>,
    bytes: usize,
    layout: Layout,
}

// SAFETY: it owns its memory, like a `Box<[u8]>`.
unsafe impl Send for Pages {}
// SAFETY: a shared reference only reads.
unsafe impl Sync for Pages {}

impl Pages {
    /// `None` if there is not so much memory.
    fn new(bytes: usize) -> Option<Self> {
        let size = bytes.max(1).checked_next_multiple_of(PAGE)?;
        let layout = Layout::from_size_align(size, PAGE).ok()?;
        // SAFETY: the size is not zero.
        let start = NonNull::new(unsafe { alloc::alloc_zeroed(layout) })?;
        Some(Self { start, bytes, layout })
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: it was allocated with this layout, and this is its end.
        unsafe { alloc::dealloc(self.start.as_ptr(), self.layout) };
    }
}

impl Context {
    /// Allocates pinned host memory, filled with zeros.
    ///
    /// # Errors
    ///
    /// [`DriverError::Range`] if the process cannot have so much memory, or the driver does not pin it.
    pub fn allocate_pinned(&self, bytes: usize) -> Result<PinnedBuffer, DriverError> {
        let pages = Pages::new(bytes).ok_or_else(|| DriverError::Range {
            what: "allocating pinned host memory",
            problem: format!("the system has no {bytes} bytes for it"),
        })?;
        self.pin(Memory::Pages(pages))
    }

    /// Pins memory of the caller's, which [`PinnedBuffer::into_vec`] gives back. Drivers pin whole pages, and may refuse
    /// memory that shares a page with other pinned memory.
    ///
    /// # Errors
    ///
    /// [`DriverError`]; the memory is freed then.
    pub fn register(&self, memory: Vec<u8>) -> Result<PinnedBuffer, DriverError> {
        self.pin(Memory::Vec(memory))
    }

    fn pin(&self, mut memory: Memory) -> Result<PinnedBuffer, DriverError> {
        let bytes = memory.as_bytes_mut();
        if !bytes.is_empty() {
            let entered = self.enter("pinning host memory")?;
            let (start, size) = (bytes.as_mut_ptr().cast::<c_void>(), bytes.len());
            // SAFETY: the memory has that size, and does not move as long as the value keeps it.
            let code = unsafe { (entered.functions().host_register)(start, size, PORTABLE_AND_MAPPED) };
            entered.check_allocation(code, size)?;
        }
        Ok(PinnedBuffer {
            context: self.clone(),
            memory,
        })
    }
}

impl Memory {
    fn as_bytes(&self) -> &[u8] {
        match self {
            // SAFETY: the allocation has that size and is initialised, and no copy writes to it while there is a reference: a
            // copy takes the value. Kernels that are given its address are the concern of who launches them.
            Self::Pages(pages) => unsafe { std::slice::from_raw_parts(pages.start.as_ptr(), pages.bytes) },
            Self::Vec(vector) => vector,
        }
    }

    fn as_bytes_mut(&mut self) -> &mut [u8] {
        match self {
            // SAFETY: as above, and the reference is the only one.
            Self::Pages(pages) => unsafe { std::slice::from_raw_parts_mut(pages.start.as_ptr(), pages.bytes) },
            Self::Vec(vector) => vector,
        }
    }

    fn start(&mut self) -> *mut c_void {
        self.as_bytes_mut().as_mut_ptr().cast()
    }
}

impl PinnedBuffer {
    /// Its size in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.as_bytes().len()
    }

    /// The memory.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.memory.as_bytes()
    }

    /// The memory, to write.
    #[must_use]
    pub fn as_bytes_mut(&mut self) -> &mut [u8] {
        self.memory.as_bytes_mut()
    }

    /// The memory as values.
    ///
    /// # Errors
    ///
    /// [`DriverError::Range`] if the size is no multiple of the values', or registered memory is not aligned to them.
    pub fn as_slice<T: AnyBitPattern>(&self) -> Result<&[T], DriverError> {
        bytemuck::try_cast_slice(self.as_bytes()).map_err(|problem| self.no_values::<T>(problem))
    }

    /// The memory as values, to write.
    ///
    /// # Errors
    ///
    /// As [`as_slice`](Self::as_slice).
    pub fn as_slice_mut<T: AnyBitPattern + NoUninit>(&mut self) -> Result<&mut [T], DriverError> {
        // Asked first without writing, for an error borrows nothing then.
        self.as_slice::<T>()?;
        Ok(bytemuck::try_cast_slice_mut(self.as_bytes_mut()).unwrap_or_default())
    }

    fn no_values<T>(&self, problem: PodCastError) -> DriverError {
        DriverError::Range {
            what: "pinned host memory as values",
            problem: format!(
                "{} bytes at {:p} as values of {}: {problem}",
                self.bytes(),
                self.as_bytes(),
                size_of::<T>()
            ),
        }
    }

    pub(super) const fn context(&self) -> &Context {
        &self.context
    }

    pub(super) fn start(&mut self) -> *mut c_void {
        self.memory.start()
    }

    /// The address under which kernels of its context use it; 0 for a buffer without bytes.
    ///
    /// # Errors
    ///
    /// [`DriverError`].
    pub fn device_address(&mut self) -> Result<u64, DriverError> {
        let mut address = 0;
        if self.bytes() > 0 {
            let start = self.memory.start();
            let entered = self.context.enter("the device's address of pinned host memory")?;
            // SAFETY: the first pointer is valid for one write, and the second is that of a registration.
            entered.check(unsafe { (entered.functions().host_device_address)(&raw mut address, start, 0) })?;
        }
        Ok(address)
    }

    /// The memory of [`Context::register`], pinned no more; a copy of it otherwise.
    #[must_use]
    pub fn into_vec(mut self) -> Vec<u8> {
        match &mut self.memory {
            Memory::Pages(_) => self.as_bytes().to_vec(),
            Memory::Vec(_) => {
                self.unpin();
                match &mut self.memory {
                    // What is left, an empty vector, is not pinned.
                    Memory::Vec(vector) => std::mem::take(vector),
                    Memory::Pages(_) => Vec::new(),
                }
            }
        }
    }

    fn unpin(&mut self) {
        if self.bytes() == 0 {
            return;
        }
        let start = self.memory.start();
        if let Some(entered) = self.context.enter_to_release("unpinning host memory") {
            // SAFETY: it was registered, and no copy uses it: one that did had taken the value.
            entered.log(unsafe { (entered.functions().host_unregister)(start) });
        }
    }
}

impl Drop for PinnedBuffer {
    fn drop(&mut self) {
        self.unpin();
    }
}

impl fmt::Debug for PinnedBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PinnedBuffer({} bytes at {:p})", self.bytes(), self.as_bytes())
    }
}
