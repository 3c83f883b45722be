//! Modules of a session, as handles.

use std::{fmt, sync::Arc};

use super::{error::SessionError, image::Image};
use crate::{
    report::Artifact,
    runtime::{self, DeviceSlice, Function},
};

/// A module of a session. Clones share it.
///
/// It stays what it is when the session replaces or removes the module of its name, and when the session is dropped. It is
/// unloaded when the session has given it up, and the last handle and the last [`Function`] of it are dropped.
#[derive(Clone)]
pub struct SessionModule(Arc<Inner>);

struct Inner {
    name: String,
    generation: u64,
    image: Arc<Image>,
    loaded: Option<runtime::Module>,
}

impl SessionModule {
    pub(super) fn new(name: &str, generation: u64, image: Arc<Image>, loaded: Option<runtime::Module>) -> Self {
        Self(Arc::new(Inner {
            name: name.to_owned(),
            generation,
            image,
            loaded,
        }))
    }

    /// The same, loaded anew.
    pub(super) fn reloaded(&self, loaded: runtime::Module) -> Self {
        Self::new(&self.0.name, self.0.generation, Arc::clone(&self.0.image), Some(loaded))
    }

    pub(super) fn image(&self) -> &Arc<Image> {
        &self.0.image
    }

    /// The name in the session.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// A number that grows with each module that the session takes in; no two modules of a session have the same one. It is
    /// kept when the session is rebuilt.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.0.generation
    }

    /// What was compiled: its bytes, the resources of its kernels, the warnings. Modules of the same content share it, so
    /// that its name is that of the `gpu.module` that was compiled first.
    #[must_use]
    pub fn artifact(&self) -> &Artifact {
        &self.0.image.artifact
    }

    /// What is loaded; `None` in a session without a device.
    #[must_use]
    pub fn loaded(&self) -> Option<&runtime::Module> {
        self.0.loaded.as_ref()
    }

    /// A kernel, to be launched any number of times. It keeps the module loaded.
    ///
    /// # Errors
    ///
    /// [`SessionError::NoDevice`], or [`SessionError::Load`] if there is no such kernel or the context is lost.
    pub fn function(&self, kernel: &str) -> Result<Function, SessionError> {
        Ok(self.on_device()?.function(kernel)?)
    }

    /// A variable of the module, as memory of the device. Its address may be given to the kernels of other modules, as long
    /// as a handle of this one is kept.
    ///
    /// # Errors
    ///
    /// [`SessionError::NoDevice`], or [`SessionError::Load`] if there is no such variable or the context is lost.
    pub fn global(&self, variable: &str) -> Result<DeviceSlice<'_>, SessionError> {
        Ok(self.on_device()?.global(variable)?)
    }

    fn on_device(&self) -> Result<&runtime::Module, SessionError> {
        self.0.loaded.as_ref().ok_or_else(|| SessionError::NoDevice {
            module: self.0.name.clone(),
        })
    }
}

impl fmt::Debug for SessionModule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("SessionModule")
            .field("name", &self.0.name)
            .field("generation", &self.0.generation)
            .field("loaded", &self.0.loaded)
            .finish_non_exhaustive()
    }
}
