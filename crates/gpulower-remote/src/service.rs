//! What OpenDAL needs to know of each service.

use std::env;

use opendal::{Builder, OperationContext, Operator};

use crate::{Address, Credentials, SettingError};

/// A service that is reached by HTTP, with a user and a password or a token. The builders of the two have no trait for that.
#[cfg(any(feature = "webdav", feature = "http"))]
macro_rules! over_http {
    ($service:expr, $builder:ty) => {{
        let mut builder = <$builder>::default()
            .endpoint(&$service.http_endpoint())
            .root(&$service.address.path);
        if let Some(user) = &$service.user {
            builder = builder.username(user);
        }
        if let Some(password) = &$service.password {
            builder = builder.password(password);
        } else if let Some(token) = &$service.token {
            builder = builder.token(token);
        }
        $service.over_http(builder)
    }};
}

/// A service and its credentials; connections are made of it.
pub(crate) struct Service {
    address: Address,
    credentials: Credentials,
    user: Option<String>,
    password: Option<String>,
    token: Option<String>,
}

/// The schemes that this build has.
const KNOWN: &[(&str, bool)] = &[
    ("s3", cfg!(feature = "s3")),
    ("webdav", cfg!(feature = "webdav")),
    ("webdavs", cfg!(feature = "webdav")),
    ("redis", cfg!(feature = "redis")),
    ("rediss", cfg!(feature = "redis")),
    ("redis+unix", cfg!(feature = "redis")),
    ("memcached", cfg!(feature = "memcached")),
    ("http", cfg!(feature = "http")),
    ("https", cfg!(feature = "http")),
    ("gs", cfg!(feature = "gcs")),
    ("azblob", cfg!(feature = "azblob")),
];

/// Variables that have secrets in them, which are in no message.
const SECRETS: &[&str] = &[
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AZURE_STORAGE_ACCOUNT_KEY",
    "AZURE_STORAGE_KEY",
    "AZURE_STORAGE_SAS_TOKEN",
    "AZURE_CLIENT_SECRET",
    "GOOGLE_OAUTH_ACCESS_TOKEN",
];

impl Service {
    pub(crate) fn of(address: &Address, credentials: Credentials) -> Result<Self, SettingError> {
        if !KNOWN.contains(&(address.scheme.as_str(), true)) {
            let known = KNOWN.iter().filter(|(_, is_built)| *is_built);
            let known: Vec<String> = known.map(|(scheme, _)| format!("{scheme}:")).collect();
            return Err(SettingError::new(format!(
                "there is no shared cache of the kind '{}:' in this build, which has {}",
                address.scheme,
                known.join(", ")
            )));
        }
        let variable = |name: &str| match credentials {
            Credentials::OfAddress => None,
            Credentials::OfEnvironment => env::var(name).ok().filter(|value| !value.is_empty()),
        };
        let is_redis = address.scheme.starts_with("redis");
        let of_redis = || variable("REDISCLI_AUTH").filter(|_| is_redis);
        let user = address.user.clone().or_else(|| variable("GPULOWER_CACHE_USER"));
        let password = address.password.clone();
        let password = password
            .or_else(of_redis)
            .or_else(|| variable("GPULOWER_CACHE_PASSWORD"));
        let service = Self {
            address: address.clone(),
            credentials,
            user,
            password,
            token: variable("GPULOWER_CACHE_TOKEN"),
        };
        Ok(service)
    }

    /// Everything that may be in no message.
    pub(crate) fn secrets(&self) -> Vec<String> {
        let of_environment = SECRETS.iter().filter_map(|name| match self.credentials {
            Credentials::OfAddress => None,
            Credentials::OfEnvironment => env::var(name).ok(),
        });
        let own = [&self.password, &self.token].into_iter().flatten().cloned();
        own.chain(of_environment).filter(|secret| !secret.is_empty()).collect()
    }

    /// The host and port that a connection needs, where it is a plain one.
    pub(crate) fn endpoint(&self) -> Option<(String, u16)> {
        let port = match self.address.scheme.as_str() {
            "redis" | "rediss" => 6379,
            "memcached" => 11211,
            _ => return None,
        };
        Some((self.host(), self.address.port.unwrap_or(port)))
    }

    #[cfg(feature = "redis")]
    /// Whether such a connection begins with a handshake of TLS.
    pub(crate) fn is_encrypted(&self) -> bool {
        self.address.scheme == "rediss"
    }

    fn host(&self) -> String {
        match self.address.host.as_str() {
            "" => "127.0.0.1".to_owned(),
            host => host.to_owned(),
        }
    }

    /// Makes connections, inside of the runtime that will use them.
    pub(crate) fn operator(&self) -> Result<Operator, opendal::Error> {
        match self.address.scheme.as_str() {
            #[cfg(feature = "s3")]
            "s3" => self.s3(),
            #[cfg(feature = "webdav")]
            "webdav" | "webdavs" => over_http!(self, opendal::services::Webdav),
            #[cfg(feature = "redis")]
            "redis" | "rediss" | "redis+unix" => self.redis(),
            #[cfg(feature = "memcached")]
            "memcached" => self.memcached(),
            #[cfg(feature = "http")]
            "http" | "https" => over_http!(self, opendal::services::Http),
            #[cfg(feature = "gcs")]
            "gs" => self.gcs(),
            #[cfg(feature = "azblob")]
            "azblob" => self.azblob(),
            _ => Err(opendal::Error::new(opendal::ErrorKind::Unsupported, "no such service")),
        }
    }

    fn reads_environment(&self) -> bool {
        self.credentials == Credentials::OfEnvironment
    }

    #[cfg(feature = "s3")]
    fn s3(&self) -> Result<Operator, opendal::Error> {
        let Self {
            address,
            user,
            password,
            ..
        } = self;
        let of_environment = ["AWS_REGION", "AWS_DEFAULT_REGION"]
            .iter()
            .find_map(|name| match self.credentials {
                Credentials::OfAddress => None,
                Credentials::OfEnvironment => env::var(name).ok(),
            });
        let region = address.values.get("region").cloned().or(of_environment);
        let mut builder = opendal::services::S3::default()
            .bucket(&address.host)
            .root(&address.path)
            .region(region.as_deref().unwrap_or("us-east-1"));
        if let Some(endpoint) = address.values.get("endpoint") {
            builder = builder.endpoint(endpoint);
        }
        // Those of the address alone: the user and password of other services are none of these.
        if let (Some(user), Some(password), true) = (user, password, address.user.is_some()) {
            builder = builder.access_key_id(user).secret_access_key(password);
        }
        if !self.reads_environment() {
            builder = builder.disable_config_load().disable_ec2_metadata();
        }
        self.over_http(builder)
    }

    #[cfg(feature = "redis")]
    fn redis(&self) -> Result<Operator, opendal::Error> {
        let is_socket = self.address.scheme == "redis+unix";
        let (endpoint, db, root) = if is_socket {
            // OpenDAL wants a host, and looks at the path alone.
            (format!("redis+unix://localhost/{}", self.address.path), None, "")
        } else {
            let (first, rest) = self.address.path.split_once('/').unwrap_or((&self.address.path, ""));
            let (host, port) = self.endpoint().unwrap_or_default();
            let endpoint = format!("{}://{host}:{port}", self.address.scheme);
            match first.parse() {
                Ok(db) => (endpoint, Some(db), rest),
                Err(_) => (endpoint, None, self.address.path.as_str()),
            }
        };
        if self.is_encrypted() {
            choose_cryptography();
        }
        let mut builder = opendal::services::Redis::default().endpoint(&endpoint).root(root);
        if let Some(db) = db {
            builder = builder.db(db);
        }
        if let Some(user) = &self.user {
            builder = builder.username(user);
        }
        if let Some(password) = &self.password {
            builder = builder.password(password);
        }
        if let Some(ttl) = self.address.ttl {
            builder = builder.default_ttl(ttl);
        }
        Operator::new(builder)
    }

    #[cfg(feature = "memcached")]
    fn memcached(&self) -> Result<Operator, opendal::Error> {
        let (host, port) = self.endpoint().unwrap_or_default();
        let mut builder = opendal::services::Memcached::default()
            .endpoint(&format!("tcp://{host}:{port}"))
            .root(&self.address.path);
        if let (Some(user), Some(password)) = (&self.user, &self.password) {
            builder = builder.username(user).password(password);
        }
        if let Some(ttl) = self.address.ttl {
            builder = builder.default_ttl(ttl);
        }
        Operator::new(builder)
    }

    #[cfg(feature = "gcs")]
    fn gcs(&self) -> Result<Operator, opendal::Error> {
        let mut builder = opendal::services::Gcs::default()
            .bucket(&self.address.host)
            .root(&self.address.path);
        if let Some(endpoint) = self.address.values.get("endpoint") {
            builder = builder.endpoint(endpoint);
        }
        if !self.reads_environment() {
            builder = builder.disable_config_load().disable_vm_metadata();
        }
        self.over_http(builder)
    }

    #[cfg(feature = "azblob")]
    fn azblob(&self) -> Result<Operator, opendal::Error> {
        let Self { address, password, .. } = self;
        let account = address.values.get("account").cloned().or_else(|| address.user.clone());
        let mut builder = opendal::services::Azblob::default()
            .container(&address.host)
            .root(&address.path);
        if let Some(account) = &account {
            builder = builder.account_name(account);
        }
        let endpoint = address.values.get("endpoint").cloned();
        let usual = account.map(|account| format!("https://{account}.blob.core.windows.net"));
        if let Some(endpoint) = endpoint.or(usual) {
            builder = builder.endpoint(&endpoint);
        }
        if let (Some(key), true) = (password, address.password.is_some()) {
            builder = builder.account_key(key);
        }
        self.over_http(builder)
    }

    #[cfg(any(feature = "webdav", feature = "http"))]
    fn http_endpoint(&self) -> String {
        let scheme = match self.address.scheme.as_str() {
            "webdavs" | "https" => "https",
            _ => "http",
        };
        let port = self.address.port.map(|port| format!(":{port}")).unwrap_or_default();
        format!("{scheme}://{}{port}", self.host())
    }

    /// An operator with an HTTP client of its own: one that is shared would keep connections of runtimes that have ended.
    #[cfg(feature = "http-client")]
    fn over_http(&self, builder: impl Builder) -> Result<Operator, opendal::Error> {
        use opendal::HttpTransporter;
        use opendal_http_transport_reqwest::ReqwestTransport;

        choose_cryptography();
        let mut client = reqwest::Client::builder().user_agent(concat!("gpulower/", env!("CARGO_PKG_VERSION")));
        if !self.reads_environment() {
            client = client.no_proxy();
        }
        let client = client.build().map_err(|error| {
            opendal::Error::new(opendal::ErrorKind::Unexpected, "there is no HTTP client")
                .set_source(error.without_url())
        })?;
        let transport = HttpTransporter::new(ReqwestTransport::new(client));
        Ok(Operator::new(builder)?.with_context(OperationContext::new().with_http_transport(transport)))
    }
}

/// Where nobody has chosen an implementation of cryptography for the process, it is ring.
#[cfg(any(feature = "http-client", feature = "redis"))]
fn choose_cryptography() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // Another thread may have been quicker.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
}
