//! Services for the shared tier of gpulower's cache, by URL, through Apache OpenDAL.
//!
//! ```no_run
//! use gpulower_remote::{Address, open};
//!
//! let address: Address = "redis://cache.example/0/kernels?read-only=true".parse()?;
//! let remote = open(&address, gpulower_remote::Credentials::OfAddress)?.build();
//! # Ok::<(), gpulower_remote::SettingError>(())
//! ```
//!
//! Credentials are in no message, and in the `Debug` form of nothing here.

#![forbid(unsafe_code)]

mod address;
mod service;
mod store;
#[cfg(feature = "redis")]
mod tls;

use std::sync::Arc;

pub use gpulower_cache::SettingError;
use gpulower_cache::{Remote, RemoteBuilder};

pub use self::address::Address;
use self::{service::Service, store::Served};

/// Where credentials come from that are not in the address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Credentials {
    /// There are none. The environment is not read, no file, and no metadata service is asked.
    OfAddress,
    /// From where each service's own tools take them: AWS's variables, profiles and metadata service; Google's and Azure's;
    /// `REDISCLI_AUTH`; and, for services without such a convention, `GPULOWER_CACHE_USER`, `GPULOWER_CACHE_PASSWORD` and
    /// `GPULOWER_CACHE_TOKEN`. Proxies are those of the environment, too.
    OfEnvironment,
}

/// A shared tier at an address. Nothing is sent before the first question.
///
/// # Errors
///
/// [`SettingError`] where the address lacks something, or its service is not part of this build.
pub fn open(address: &Address, credentials: Credentials) -> Result<RemoteBuilder, SettingError> {
    let service = Service::of(address, credentials)?;
    let mut builder = Remote::builder(Arc::new(Served::new(address.place(), service)?));
    if let Some(deadline) = address.deadline {
        builder = builder.deadline(deadline);
    }
    if let Some(limit) = address.upload_limit {
        builder = builder.upload_limit(limit);
    }
    if let Some(wait) = address.wait {
        builder = builder.wait(wait);
    }
    Ok(builder.read_only(address.read_only))
}
