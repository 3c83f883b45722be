//! A context while a call is in it.

use std::ptr;
use std::sync::RwLockReadGuard;

use super::context::Handle;
use super::device::Device;
use super::error::DriverError;
use super::functions::{self, Code};
use super::library::Own;
use super::status::{SUCCESS, code};
use gpulower_image::target::Vendor;

/// A context that is current to this thread, and is not reset meanwhile.
pub(super) struct Entered<'context> {
    device: &'context Device,
    call: &'static str,
    restore: Restore,
    _held: RwLockReadGuard<'context, bool>,
    /// Another context that takes part in the call.
    _beside: Option<RwLockReadGuard<'context, bool>>,
}

impl<'context> Entered<'context> {
    pub(super) const fn new(
        device: &'context Device,
        call: &'static str,
        restore: Restore,
        held: RwLockReadGuard<'context, bool>,
        beside: Option<RwLockReadGuard<'context, bool>>,
    ) -> Self {
        Self {
            device,
            call,
            restore,
            _held: held,
            _beside: beside,
        }
    }

    pub(super) fn functions(&self) -> &functions::Functions {
        self.device.driver().functions()
    }

    pub(super) fn own(&self) -> &Own {
        self.device.driver().own()
    }

    pub(super) fn vendor(&self) -> Vendor {
        self.device.driver().vendor()
    }

    /// What a code means; `Ok` for success.
    pub(super) fn check(&self, code: Code) -> Result<(), DriverError> {
        self.device.driver().check(self.call, code)
    }

    /// As [`check`](Self::check), for an allocation: an error says how much was asked for, and how much there is.
    pub(super) fn check_allocation(&self, code: Code, asked: usize) -> Result<(), DriverError> {
        self.check(code).map_err(|error| match error {
            DriverError::OutOfMemory { call, status, .. } => {
                let (mut free, mut total) = (0, 0);
                // SAFETY: the pointers are valid for one write each.
                let code = unsafe { (self.functions().memory_info)(&raw mut free, &raw mut total) };
                DriverError::OutOfMemory {
                    call,
                    bytes: Some(asked),
                    free: (code == SUCCESS).then_some((free, total)),
                    status,
                }
            }
            other => other,
        })
    }

    /// Whether something is done: "not ready" is no error.
    pub(super) fn check_done(&self, code: Code) -> Result<bool, DriverError> {
        match code {
            code::NOT_READY => Ok(false),
            code => self.check(code).map(|()| true),
        }
    }

    /// Logs the failure to release something.
    pub(super) fn log(&self, code: Code) {
        if let Err(error) = self.check(code) {
            log_release(&error);
        }
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        std::mem::replace(&mut self.restore, Restore::Nothing).now(self.device);
    }
}

/// Makes a context current to this thread. It lives: it is retained or owned, and not reset.
pub(super) fn make_current(device: &Device, handle: Handle) -> Result<Restore, DriverError> {
    let driver = device.driver();
    match driver.own() {
        Own::Cuda(cuda) => {
            let mut current = ptr::null_mut();
            // SAFETY: the pointer is valid for one write.
            let code = unsafe { (cuda.context_current)(&raw mut current) };
            driver.check("cuCtxGetCurrent", code)?;
            if current == handle.0 {
                return Ok(Restore::Nothing);
            }
            // SAFETY: the caller vouches for the context.
            let code = unsafe { (cuda.context_push)(handle.0) };
            driver.check("cuCtxPushCurrent", code)?;
            Ok(Restore::Pop)
        }
        Own::Hip(hip, _) => {
            let mut current = 0;
            // SAFETY: the pointer is valid for one write.
            let code = unsafe { (hip.current_device)(&raw mut current) };
            driver.check("hipGetDevice", code)?;
            if current == device.number() {
                return Ok(Restore::Nothing);
            }
            // SAFETY: it takes any number.
            let code = unsafe { (hip.set_device)(device.number()) };
            driver.check("hipSetDevice", code)?;
            Ok(Restore::Device(current))
        }
    }
}

/// What makes current again what was before.
pub(super) enum Restore {
    Nothing,
    Pop,
    Device(functions::DeviceNumber),
}

impl Restore {
    pub(super) fn now(self, device: &Device) {
        match (self, device.driver().own()) {
            (Self::Pop, Own::Cuda(cuda)) => {
                let mut popped = ptr::null_mut();
                // SAFETY: the pointer is valid for one write, and this thread pushed a context.
                log_code(device, "cuCtxPopCurrent", unsafe {
                    (cuda.context_pop)(&raw mut popped)
                });
            }
            (Self::Device(number), Own::Hip(hip, _)) => {
                // SAFETY: it takes any number.
                log_code(device, "hipSetDevice", unsafe { (hip.set_device)(number) });
            }
            _ => {}
        }
    }
}

pub(super) fn log_code(device: &Device, call: &'static str, code: Code) {
    if let Err(error) = device.driver().check(call, code) {
        log_release(&error);
    }
}

/// A failure to release something. In a context that is lost, or in a process that is ending, there is nothing to release.
pub(super) fn log_release(error: &DriverError) {
    let expected = matches!(
        error,
        DriverError::ContextLost { .. } | DriverError::ContextReset { .. } | DriverError::ShuttingDown { .. }
    ) || error
        .status()
        .is_some_and(|status| matches!(status.code, code::INVALID_CONTEXT | code::CONTEXT_IS_DESTROYED));
    if expected {
        tracing::debug!("not released, for it is gone already: {error}");
    } else {
        tracing::warn!("not released: {error}");
    }
}
