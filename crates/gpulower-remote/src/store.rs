//! OpenDAL's operations, which are asynchronous, as calls that return by a deadline.

use std::{
    error::Error as _,
    fmt,
    future::Future,
    process,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

use gpulower_cache::{Listed, Refusal, SettingError, Store, StoreError, Written};
use opendal::{Buffer, ErrorKind, Operator};
use tokio::{net::TcpStream, runtime, sync::oneshot};

use crate::service::Service;

/// How much longer than its deadline a caller waits for the runtime to say so.
const GRACE: Duration = Duration::from_millis(100);

/// A service at an address.
pub(crate) struct Served {
    place: String,
    service: Service,
    secrets: Vec<String>,
    is_conditional: bool,
    running: Mutex<Option<Running>>,
    /// Whether the last operation had an answer.
    is_connected: AtomicBool,
}

/// A thread that does everything.
struct Running {
    /// The process that it belongs to: a fork has no threads.
    process: u32,
    handle: runtime::Handle,
    operator: Operator,
    /// Ends the thread when it is dropped.
    _end: oneshot::Sender<()>,
}

impl Served {
    /// What is wrong with the address is found out now, without a connection.
    pub(crate) fn new(place: String, service: Service) -> Result<Self, SettingError> {
        let secrets = service.secrets();
        let refused = |what: String| {
            let what = redacted(&what, &secrets);
            SettingError::new(format!("the address of the shared cache {place}: {what}"))
        };
        let runtime = runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| refused(error.to_string()))?;
        let guard = runtime.enter();
        let operator = service.operator().map_err(|error| refused(in_words(&error)))?;
        drop(guard);
        Ok(Self {
            is_conditional: operator.info().capability().write_with_if_not_exists,
            place,
            service,
            secrets,
            running: Mutex::default(),
            is_connected: AtomicBool::new(false),
        })
    }

    /// The runtime's handle and the operator, started when they are first needed, in a fork anew.
    fn running(&self) -> Result<(runtime::Handle, Operator), StoreError> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = running.as_ref().filter(|running| running.process == process::id()) {
            return Ok((known.handle.clone(), known.operator.clone()));
        }
        let failed = |what: String| StoreError::new(Refusal::Unreachable, redacted(&what, &self.secrets));
        let runtime = runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| failed(error.to_string()))?;
        let handle = runtime.handle().clone();
        let guard = handle.enter();
        let operator = self.service.operator().map_err(|error| failed(in_words(&error)))?;
        drop(guard);
        let (end, ended) = oneshot::channel::<()>();
        thread::Builder::new()
            .name("gpulower-remote".to_owned())
            .spawn(move || {
                let _ = runtime.block_on(ended);
                // Names that are being looked up cannot be waited for.
                runtime.shutdown_background();
            })
            .map_err(|error| failed(error.to_string()))?;
        // What a fork has of its parent is not to be touched: its threads are not there.
        std::mem::forget(running.take());
        *running = Some(Running {
            process: process::id(),
            handle: handle.clone(),
            operator: operator.clone(),
            _end: end,
        });
        Ok((handle, operator))
    }

    /// Carries out an operation, and waits for it until its deadline.
    fn wait<T, F>(
        &self,
        deadline: Instant,
        operation: impl FnOnce(Operator) -> F,
    ) -> Result<Result<T, opendal::Error>, StoreError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, opendal::Error>> + Send + 'static,
    {
        let (handle, operator) = self.running()?;
        let (answer, answered) = mpsc::sync_channel(1);
        let operation = operation(operator);
        let task = handle.spawn(async move {
            let _ = answer.send(tokio::time::timeout_at(deadline.into(), operation).await);
        });
        let left = deadline.saturating_duration_since(Instant::now());
        match answered.recv_timeout(left + GRACE) {
            Ok(Ok(result)) => {
                let is_answer = |error: &opendal::Error| error.kind() == ErrorKind::NotFound || status(error).is_some();
                self.is_connected
                    .store(result.as_ref().err().is_none_or(is_answer), Ordering::Relaxed);
                Ok(result)
            }
            Ok(Err(_)) | Err(_) => {
                self.is_connected.store(false, Ordering::Relaxed);
                task.abort();
                let message = format!("no answer within {} ms", left.as_millis());
                Err(StoreError::new(Refusal::TimedOut, message))
            }
        }
    }

    /// Carries out an operation that may be repeated. A service may end a connection that it kept open just when it is used
    /// again, which says nothing of the service: then a new connection is tried.
    fn ask<T, F>(
        &self,
        deadline: Instant,
        operation: impl Fn(Operator) -> F,
    ) -> Result<Result<T, opendal::Error>, StoreError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, opendal::Error>> + Send + 'static,
    {
        let had_connection = self.is_connected.load(Ordering::Relaxed);
        let first = self.wait(deadline, &operation)?;
        match &first {
            Err(error) if had_connection && error.kind() == ErrorKind::Unexpected && status(error).is_none() => {
                self.wait(deadline, operation)
            }
            _ => Ok(first),
        }
    }

    /// Whether anybody listens whom this machine trusts, which a client that tries again and again would not say soon.
    fn check_connection(&self, deadline: Instant) -> Result<(), StoreError> {
        let Some(endpoint) = self.service.endpoint() else {
            return Ok(());
        };
        if self.is_connected.load(Ordering::Relaxed) {
            return Ok(());
        }
        #[cfg(feature = "redis")]
        let is_encrypted = self.service.is_encrypted();
        let connected = self.wait(deadline, |_| async move {
            let connected = TcpStream::connect((endpoint.0.as_str(), endpoint.1)).await;
            let greeted = match connected {
                #[cfg(feature = "redis")]
                Ok(connection) if is_encrypted => crate::tls::greet(connection, endpoint.0).await,
                connected => connected.map(drop),
            };
            greeted.map_err(|error| opendal::Error::new(ErrorKind::Unexpected, "cannot connect").set_source(error))
        })?;
        connected.map_err(|error| self.failed(&error))?;
        Ok(())
    }

    fn failed(&self, error: &opendal::Error) -> StoreError {
        let words = in_words(error);
        let is_of_password = [
            "NOAUTH",
            "WRONGPASS",
            "Password authentication failed",
            "AuthenticationFailed",
            "NOPERM",
        ]
        .iter()
        .any(|sign| words.contains(sign))
            || matches!(status(error), Some(401 | 403));
        let refusal = match error.kind() {
            ErrorKind::PermissionDenied | ErrorKind::ConfigInvalid => Refusal::Denied,
            ErrorKind::Unsupported => Refusal::Unsupported,
            _ if is_of_password => Refusal::Denied,
            _ if words.contains("too large") || words.contains("Too large") => Refusal::TooLarge,
            _ => Refusal::Unreachable,
        };
        StoreError::new(refusal, redacted(&words, &self.secrets))
    }
}

impl Store for Served {
    fn place(&self) -> &str {
        &self.place
    }

    fn get(&self, name: &str, most: u64, deadline: Instant) -> Result<Option<Vec<u8>>, StoreError> {
        self.check_connection(deadline)?;
        let got = self.ask(deadline, |operator| {
            let path = name.to_owned();
            async move { operator.read(&path).await }
        })?;
        match got {
            Ok(bytes) if bytes.len() as u64 > most => {
                Err(StoreError::new(Refusal::TooLarge, "more bytes than an entry has"))
            }
            Ok(bytes) => Ok(Some(bytes.to_vec())),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.failed(&error)),
        }
    }

    fn put(&self, name: &str, bytes: Vec<u8>, only_new: bool, deadline: Instant) -> Result<Written, StoreError> {
        self.check_connection(deadline)?;
        let only_new = only_new && self.is_conditional;
        let bytes = Buffer::from(bytes);
        let written = self.ask(deadline, |operator| {
            let (path, bytes) = (name.to_owned(), bytes.clone());
            async move { operator.write_with(&path, bytes).if_not_exists(only_new).await }
        })?;
        match written {
            Ok(_) => Ok(Written::New),
            Err(error) if matches!(error.kind(), ErrorKind::ConditionNotMatch | ErrorKind::AlreadyExists) => {
                Ok(Written::Existed)
            }
            Err(error) => Err(self.failed(&error)),
        }
    }

    fn is_conditional(&self) -> bool {
        self.is_conditional
    }

    fn remove(&self, name: &str, deadline: Instant) -> Result<(), StoreError> {
        let path = name.to_owned();
        let removed = self.wait(deadline, |operator| async move { operator.delete(&path).await })?;
        removed.map_err(|error| self.failed(&error))
    }

    fn list(&self, prefix: &str, deadline: Instant) -> Result<Vec<Listed>, StoreError> {
        let path = prefix.to_owned();
        let listed = self.wait(deadline, |operator| async move {
            operator.list_with(&path).recursive(true).await
        })?;
        let entries = match listed {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(self.failed(&error)),
        };
        let files = entries.into_iter().filter(|entry| entry.metadata().is_file());
        Ok(files
            .map(|entry| Listed {
                bytes: entry.metadata().content_length(),
                modified: entry.metadata().last_modified().map(Into::into),
                name: entry.path().to_owned(),
            })
            .collect())
    }
}

impl fmt::Debug for Served {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Served({})", self.place)
    }
}

/// The status of an answer over HTTP, which is in the error's context alone.
fn status(error: &opendal::Error) -> Option<u16> {
    let text = format!("{error:?}");
    let (_, rest) = text.split_once("status: ")?;
    rest.get(..3)?.parse().ok()
}

/// What an error says, and what caused it, in one line.
fn in_words(error: &opendal::Error) -> String {
    let mut words = error.message().lines().next().unwrap_or_default().to_owned();
    // What a proxy or server shows to people in a browser.
    if words.is_empty() || words.starts_with('<') {
        words = status(error).map_or_else(String::new, |status| format!("the answer has status {status}"));
    }
    let mut cause = error.source();
    while let Some(error) = cause {
        let text = error.to_string();
        if !words.contains(&text) {
            words = format!("{words}: {text}");
        }
        cause = error.source();
    }
    if words.is_empty() {
        words = error.kind().to_string();
    }
    const MOST: usize = 400;
    words
        .chars()
        .map(|character| if character.is_control() { ' ' } else { character })
        .take(MOST)
        .collect()
}

fn redacted(words: &str, secrets: &[String]) -> String {
    secrets
        .iter()
        .fold(words.to_owned(), |words, secret| words.replace(secret, "***"))
}
