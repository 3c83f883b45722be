//! Contexts: what memory, streams and modules on a device belong to.

use std::fmt;
use std::ptr;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, Weak};

use super::attributes::DeviceLimits;
use super::device::Device;
use super::entered::{Entered, log_code, log_release, make_current};
use super::error::DriverError;
use super::functions;
use super::library::Own;
use super::status::SUCCESS;
use gpulower_image::target::Vendor;

/// A context on one device. Everything that is made in it keeps it alive; clones share it.
///
/// It is `Send` and `Sync`. Each call makes the context current to the calling thread for as long as it lasts and leaves what
/// was current before, so that other users of CUDA in the process do not notice.
#[derive(Clone)]
pub struct Context(Arc<ContextInner>);

pub(super) struct ContextInner {
    device: Device,
    kind: Kind,
    handle: Handle,
    limits: DeviceLimits,
    /// Whether it was reset. Calls hold it for reading, so that a reset waits for those that other threads are in.
    gone: RwLock<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The device's primary context, which the driver counts the users of.
    Primary,
    /// One of its own.
    Separate,
}

/// What a driver calls one of its objects.
///
/// It is an opaque name: nothing here follows the pointer. Only the driver does, within calls that it allows from any thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Handle(pub(super) *mut std::ffi::c_void);

// SAFETY: the pointer is never followed here, and both drivers document their interface as safe to call from any thread.
unsafe impl Send for Handle {}
// SAFETY: as above.
unsafe impl Sync for Handle {}

impl Context {
    /// Takes part in the device's primary context.
    pub(super) fn primary(device: &Device) -> Result<Self, DriverError> {
        let limits = device.limits()?;
        let mut handle: functions::Context = ptr::null_mut();
        if let Own::Cuda(cuda) = device.driver().own() {
            // SAFETY: the pointer is valid for one write.
            let code = unsafe { (cuda.primary_retain)(&raw mut handle, device.number()) };
            device.driver().check("cuDevicePrimaryCtxRetain", code)?;
        }
        Ok(Self::new(device, Kind::Primary, handle, limits))
    }

    /// Creates a context.
    pub(super) fn separate(device: &Device) -> Result<Self, DriverError> {
        let Own::Cuda(cuda) = device.driver().own() else {
            return Err(DriverError::Unsupported {
                vendor: Vendor::Amd,
                what: "create a context of its own",
                needs: "HIP has one context for each device, Device::context",
            });
        };
        let limits = device.limits()?;
        let mut handle: functions::Context = ptr::null_mut();
        // SAFETY: the pointer is valid for one write.
        let code = unsafe { (cuda.context_create)(&raw mut handle, 0, device.number()) };
        device.driver().check("cuCtxCreate", code)?;
        let mut popped = ptr::null_mut();
        // A new context becomes current. Nothing here relies on that, and the caller's must be current again.
        // SAFETY: the pointer is valid for one write.
        let code = unsafe { (cuda.context_pop)(&raw mut popped) };
        let context = Self::new(device, Kind::Separate, handle, limits);
        device.driver().check("cuCtxPopCurrent", code)?;
        Ok(context)
    }

    fn new(device: &Device, kind: Kind, handle: functions::Context, limits: DeviceLimits) -> Self {
        Self(Arc::new(ContextInner {
            device: device.clone(),
            kind,
            handle: Handle(handle),
            limits,
            gone: RwLock::new(false),
        }))
    }

    /// The context, unless it was reset.
    pub(super) fn living(inner: Arc<ContextInner>) -> Option<Self> {
        let gone = *inner.gone.read().unwrap_or_else(PoisonError::into_inner);
        (!gone).then_some(Self(inner))
    }

    pub(super) fn downgrade(&self) -> Weak<ContextInner> {
        Arc::downgrade(&self.0)
    }

    /// The device.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.0.device
    }

    /// The device's limits, asked for once.
    #[must_use]
    pub fn limits(&self) -> &DeviceLimits {
        &self.0.limits
    }

    /// `CUcontext`, for other libraries; null for AMD. It is valid as long as a clone of this lives and is not reset.
    #[must_use]
    pub fn raw(&self) -> *mut std::ffi::c_void {
        self.0.handle.0
    }

    /// Whether both are the same context.
    #[must_use]
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Bytes of the device's memory that are free, and all of them.
    ///
    /// # Errors
    ///
    /// [`DriverError`].
    pub fn memory(&self) -> Result<(usize, usize), DriverError> {
        let entered = self.enter("the free memory of a device")?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: the pointers are valid for one write each.
        entered.check(unsafe { (entered.functions().memory_info)(&raw mut free, &raw mut total) })?;
        Ok((free, total))
    }

    /// Waits until the device has done everything that was enqueued in this context, in whatever stream.
    ///
    /// # Errors
    ///
    /// [`DriverError`]; that of a kernel that failed, mostly [`DriverError::ContextLost`].
    pub fn synchronize(&self) -> Result<(), DriverError> {
        let entered = self.enter("waiting for the device")?;
        // SAFETY: it takes no arguments, and the context is current.
        entered.check(unsafe { (entered.functions().synchronize)() })
    }

    /// Ends the context, with everything in it, and makes a new one on the same device.
    ///
    /// Without a fault, that is a way to be rid of everything at once: calls that other threads are in are waited for; what was
    /// made in the old context stays a valid Rust value, its use is [`DriverError::ContextReset`], and dropping it does
    /// nothing. Of the primary context, this takes the memory and the modules of every other library in the process as well.
    ///
    /// After [`DriverError::ContextLost`] it tries whether the device still works. With NVIDIA's driver it does not, whatever
    /// the fault and whichever contexts are ended (an H200 of driver 580; `cuda.h` promises nothing else): the process has to
    /// be started anew. Kernels that may fail belong in a child process.
    ///
    /// # Errors
    ///
    /// [`DriverError::NotRecovered`] if the new context does not work either.
    pub fn reset(&self) -> Result<Self, DriverError> {
        let inner = &self.0;
        {
            let mut gone = inner.gone.write().unwrap_or_else(PoisonError::into_inner);
            if *gone {
                return Err(DriverError::ContextReset {
                    call: "resetting the context",
                });
            }
            *gone = true;
            inner.end();
        }
        let fresh = match inner.kind {
            Kind::Primary => inner.device.context(),
            Kind::Separate => inner.device.separate_context(),
        };
        fresh
            .and_then(|fresh| fresh.works().map(|()| fresh))
            .map_err(|error| match error.status() {
                Some(status) => DriverError::NotRecovered {
                    call: "a new context",
                    status: status.clone(),
                },
                None => error,
            })
    }

    /// Tries what fails in a context that is lost.
    fn works(&self) -> Result<(), DriverError> {
        drop(self.allocate(1)?);
        self.synchronize()
    }

    /// Makes the context current to this thread until the value is dropped.
    ///
    /// Nothing that enters a context calls anything else that enters it: a reset that waits in between would let neither go
    /// on.
    pub(super) fn enter(&self, call: &'static str) -> Result<Entered<'_>, DriverError> {
        self.0.enter(call)
    }

    /// As [`enter`](Self::enter), and keeps `other` from being reset meanwhile.
    pub(super) fn enter_beside<'a>(&'a self, other: &'a Self, call: &'static str) -> Result<Entered<'a>, DriverError> {
        if self.is(other) {
            return self.enter(call);
        }
        // In one order everywhere, or two threads and two resets could wait for each other.
        let other_first = Arc::as_ptr(&other.0) < Arc::as_ptr(&self.0);
        let (own, beside) = if other_first {
            let beside = other.0.hold(call)?;
            (self.0.hold(call)?, beside)
        } else {
            let own = self.0.hold(call)?;
            (own, other.0.hold(call)?)
        };
        self.0.entered(call, own, Some(beside))
    }

    /// As [`enter`](Self::enter), to release something: `None` if it is gone with the context already. Failures are logged,
    /// for nobody could be told.
    pub(super) fn enter_to_release(&self, call: &'static str) -> Option<Entered<'_>> {
        match self.0.enter(call) {
            Ok(entered) => Some(entered),
            Err(DriverError::ContextReset { .. }) => None,
            Err(error) => {
                log_release(&error);
                None
            }
        }
    }
}

impl ContextInner {
    fn enter(&self, call: &'static str) -> Result<Entered<'_>, DriverError> {
        self.entered(call, self.hold(call)?, None)
    }

    /// Keeps the context from being reset as long as the guard lives.
    fn hold(&self, call: &'static str) -> Result<RwLockReadGuard<'_, bool>, DriverError> {
        let gone = self.gone.read().unwrap_or_else(PoisonError::into_inner);
        match *gone {
            true => Err(DriverError::ContextReset { call }),
            false => Ok(gone),
        }
    }

    fn entered<'a>(
        &'a self,
        call: &'static str,
        held: RwLockReadGuard<'a, bool>,
        beside: Option<RwLockReadGuard<'a, bool>>,
    ) -> Result<Entered<'a>, DriverError> {
        let restore = make_current(&self.device, self.handle)?;
        Ok(Entered::new(&self.device, call, restore, held, beside))
    }

    /// Ends the context in the driver. What fails is logged: whether the device works afterwards is found out with a new
    /// context.
    fn end(&self) {
        let driver = self.device.driver();
        let number = self.device.number();
        match driver.own() {
            Own::Cuda(cuda) if self.kind == Kind::Separate => {
                // SAFETY: the context is ours alone, and no call is in it.
                log_code(&self.device, "cuCtxDestroy", unsafe {
                    (cuda.context_destroy)(self.handle.0)
                });
            }
            Own::Cuda(cuda) => {
                // Where this is the only user, that ends it. A reset instead would make the driver forget how often the
                // context is retained (JuliaGPU/CUDAdrv.jl#45).
                // SAFETY: it was retained once, and this gives it back once.
                log_code(&self.device, "cuDevicePrimaryCtxRelease", unsafe {
                    (cuda.primary_release)(number)
                });
                let (mut flags, mut active) = (0, 0);
                // SAFETY: the pointers are valid for one write each.
                let code = unsafe { (cuda.primary_state)(number, &raw mut flags, &raw mut active) };
                if code != SUCCESS || active != 0 {
                    // SAFETY: no call of ours is in the context. What others do in it fails from here on, as documented.
                    log_code(&self.device, "cuDevicePrimaryCtxReset", unsafe {
                        (cuda.primary_reset)(number)
                    });
                }
            }
            Own::Hip(hip, _) => match make_current(&self.device, self.handle) {
                Ok(restore) => {
                    // SAFETY: the device is current, and no call of ours is in its context.
                    log_code(&self.device, "hipDeviceReset", unsafe { (hip.reset_device)() });
                    restore.now(&self.device);
                }
                Err(error) => log_release(&error),
            },
        }
    }
}

impl Drop for ContextInner {
    fn drop(&mut self) {
        if *self.gone.get_mut().unwrap_or_else(PoisonError::into_inner) {
            return;
        }
        let Own::Cuda(cuda) = self.device.driver().own() else {
            return;
        };
        match self.kind {
            // SAFETY: it was retained once, and everything that used it held a clone.
            Kind::Primary => log_code(&self.device, "cuDevicePrimaryCtxRelease", unsafe {
                (cuda.primary_release)(self.device.number())
            }),
            // SAFETY: it is ours alone, and everything that used it held a clone.
            Kind::Separate => log_code(&self.device, "cuCtxDestroy", unsafe {
                (cuda.context_destroy)(self.handle.0)
            }),
        }
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("device", &self.0.device)
            .field("kind", &self.0.kind)
            .finish_non_exhaustive()
    }
}
