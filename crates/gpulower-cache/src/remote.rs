//! A store as a tier of a cache: what it costs is bounded, and what goes wrong with it is told once.

use std::{
    collections::HashSet,
    fmt,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant, SystemTime},
};

use crate::{
    Id, Listed, MOST_BYTES, PublicKey, Refusal, SecretKey, Store, StoreError, Written,
    circuit::{Circuit, Ended},
    claims::Claims,
    entry,
    uploads::Uploads,
};

/// How long one operation may take when nothing else is said.
const DEADLINE: Duration = Duration::from_secs(2);

/// How long the end of a process waits for uploads when nothing else is said.
const UPLOAD_LIMIT: Duration = Duration::from_secs(10);

/// How long a service that is out is left alone.
const PAUSE: Duration = Duration::from_secs(30);

/// How long looking at a whole store may take: it is nothing that a compilation waits for.
const ADMINISTRATION: Duration = Duration::from_secs(600);

/// The first wait for another machine's result, and the longest between two questions.
const POLLS: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(500));

/// A handle on a shared tier. Clones share it. When the last one is dropped, uploads are finished, or given up after
/// [`Remote::upload_limit`].
#[derive(Clone)]
pub struct Remote {
    handle: Arc<Handle>,
}

struct Handle {
    inner: Arc<Inner>,
}

struct Inner {
    store: Arc<dyn Store>,
    deadline: Duration,
    upload_limit: Duration,
    read_only: bool,
    signer: Option<SecretKey>,
    accepted: Vec<PublicKey>,
    /// Whether the service has answered once.
    is_alive: AtomicBool,
    reads: Circuit,
    writes: Circuit,
    uploads: Arc<Uploads>,
    claims: Claims,
    /// What was there and could not be used: it is to be replaced.
    damaged: Mutex<HashSet<Id>>,
    counts: Counts,
    problems: Mutex<Vec<RemoteProblem>>,
}

#[derive(Default)]
struct Counts {
    hits: AtomicU64,
    misses: AtomicU64,
    failures: AtomicU64,
    skipped: AtomicU64,
    refused: AtomicU64,
    uploaded: AtomicU64,
    known: AtomicU64,
    not_uploaded: AtomicU64,
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// What a question came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The content of the entry.
    Hit(Vec<u8>),
    /// The service has none that can be used.
    Miss,
    /// The service did not answer, or was not asked, since it is out.
    Out,
}

/// How often a shared tier was asked, and what came of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RemoteStatistics {
    /// Entries that were there.
    pub hits: u64,
    /// Entries that were not there.
    pub misses: u64,
    /// Questions that the service did not answer.
    pub failures: u64,
    /// Questions that were not asked, because the service was out.
    pub skipped: u64,
    /// Entries that were damaged, or not signed by an accepted key.
    pub refused: u64,
    /// Entries that were uploaded.
    pub uploaded: u64,
    /// Entries that another machine had uploaded meanwhile.
    pub known: u64,
    /// Entries that were not uploaded: the service was out, refused them, or time was up.
    pub not_uploaded: u64,
}

/// What went wrong with a shared tier. It cost time, and nothing else.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RemoteProblem {
    /// The service is not asked any more, for a while.
    #[error("the shared cache {place} is out, and is done without for now: {cause}")]
    Out {
        /// The service.
        place: String,
        /// The last failure.
        cause: StoreError,
    },
    /// The service takes no entries any more, for a while.
    #[error("the shared cache {place} takes no results, and is only read for now: {cause}")]
    NotWritten {
        /// The service.
        place: String,
        /// The last failure.
        cause: StoreError,
    },
    /// An entry cannot be used.
    #[error("an entry of the shared cache {place} is not taken: {name}: {damage}")]
    Refused {
        /// The service.
        place: String,
        /// The entry.
        name: String,
        /// Why.
        damage: String,
    },
    /// Uploads were given up.
    #[error("{count} results were not uploaded to the shared cache {place} within {} s", limit.as_secs_f64())]
    Unfinished {
        /// The service.
        place: String,
        /// How many.
        count: usize,
        /// The time that there was.
        limit: Duration,
    },
}

/// Gathers what a [`Remote`] is made with.
#[derive(Clone, Debug)]
pub struct RemoteBuilder {
    store: Arc<dyn Store>,
    deadline: Duration,
    upload_limit: Duration,
    pause: Duration,
    wait: Duration,
    read_only: bool,
    signer: Option<SecretKey>,
    accepted: Vec<PublicKey>,
}

impl RemoteBuilder {
    /// The most time for one operation. Default: 2 s.
    #[must_use]
    pub const fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// How long dropping the last handle waits for uploads. Default: 10 s.
    #[must_use]
    pub const fn upload_limit(mut self, limit: Duration) -> Self {
        self.upload_limit = limit;
        self
    }

    /// How long a service that is out is left alone before one question tries it again; twice as long each time that fails.
    /// Default: 30 s.
    #[must_use]
    pub const fn pause(mut self, pause: Duration) -> Self {
        self.pause = pause;
        self
    }

    /// Sends no write. Default: `false`.
    #[must_use]
    pub const fn read_only(mut self, read_only: bool) -> Self {
        self.read_only = read_only;
        self
    }

    /// Signs what is uploaded, and accepts what this key has signed where keys are asked for.
    #[must_use]
    pub fn sign_with(mut self, key: SecretKey) -> Self {
        self.signer = Some(key);
        self
    }

    /// Takes nothing but what this key, or another that was named so, has signed. Without a key of its own to sign with, it
    /// uploads nothing: clients like it would refuse that, and it would take the place of what is signed.
    #[must_use]
    pub fn accept(mut self, key: PublicKey) -> Self {
        self.accepted.push(key);
        self
    }

    /// How long this process may wait, in all, for results that other machines say they are making and that do not come. Works
    /// where the service has conditional writes (S3, GCS, Azure), and costs a request for each module that is compiled.
    /// Default: not at all.
    #[must_use]
    pub const fn wait(mut self, wait: Duration) -> Self {
        self.wait = wait;
        self
    }

    /// Makes the handle. Nothing is sent yet.
    #[must_use]
    pub fn build(self) -> Remote {
        let mut accepted = self.accepted;
        if let (Some(signer), false) = (&self.signer, accepted.is_empty()) {
            accepted.push(signer.public());
        }
        let inner = Inner {
            store: self.store,
            deadline: self.deadline,
            upload_limit: self.upload_limit,
            read_only: self.read_only,
            signer: self.signer,
            accepted,
            is_alive: AtomicBool::new(false),
            reads: Circuit::new(self.deadline, self.pause),
            writes: Circuit::new(self.deadline, self.pause),
            uploads: Arc::default(),
            claims: Claims::new(self.wait),
            damaged: Mutex::default(),
            counts: Counts::default(),
            problems: Mutex::default(),
        };
        Remote {
            handle: Arc::new(Handle { inner: Arc::new(inner) }),
        }
    }
}

impl Remote {
    /// Starts to make one.
    #[must_use]
    pub fn builder(store: Arc<dyn Store>) -> RemoteBuilder {
        RemoteBuilder {
            store,
            deadline: DEADLINE,
            upload_limit: UPLOAD_LIMIT,
            pause: PAUSE,
            wait: Duration::ZERO,
            read_only: false,
            signer: None,
            accepted: Vec::new(),
        }
    }

    fn inner(&self) -> &Arc<Inner> {
        &self.handle.inner
    }

    /// Where it is, without credentials.
    #[must_use]
    pub fn place(&self) -> &str {
        self.inner().store.place()
    }

    /// How long dropping it waits for uploads.
    #[must_use]
    pub fn upload_limit(&self) -> Duration {
        self.inner().upload_limit
    }

    /// Whether it sends no write.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.inner().read_only
    }

    /// Asks for an entry.
    #[must_use]
    pub fn get(&self, id: &Id) -> Answer {
        self.inner().get(id)
    }

    /// Uploads an entry, some time from now. What another machine uploaded before stays, where the service can tell.
    pub fn put(&self, id: &Id, content: Arc<[u8]>) {
        let inner = self.inner();
        if !inner.uploads_entries() {
            return;
        }
        let is_claimed = inner.claims.take(id);
        if inner.reads.is_open() {
            count(&inner.counts.not_uploaded);
            return;
        }
        let (own, id, bytes) = (Arc::clone(inner), *id, content.len());
        let work = Box::new(move || {
            own.upload(&id, &content);
            if is_claimed {
                own.unclaim(&id);
            }
        });
        if !inner.uploads.push(bytes, work) {
            count(&inner.counts.not_uploaded);
        }
    }

    /// Says that this process makes an entry. Where another machine said so before, waits for it: what came of that.
    ///
    /// `stop` ends the waiting.
    #[must_use]
    pub fn claim(&self, id: &Id, stop: &dyn Fn() -> bool) -> Option<Vec<u8>> {
        self.inner().claim(id, stop)
    }

    /// Says that nothing more will come of a claim than what was put so far.
    pub fn abandon(&self, id: &Id) {
        let inner = self.inner();
        // An upload that is on its way has taken it along.
        if inner.claims.take(id) {
            let (own, id) = (Arc::clone(inner), *id);
            inner.uploads.push(0, Box::new(move || own.unclaim(&id)));
        }
    }

    /// Waits for uploads, at most so long.
    pub fn finish(&self, limit: Duration) {
        self.handle.finish(limit);
    }

    /// How often it was asked, and what came of it.
    #[must_use]
    pub fn statistics(&self) -> RemoteStatistics {
        let counts = &self.inner().counts;
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        RemoteStatistics {
            hits: of(&counts.hits),
            misses: of(&counts.misses),
            failures: of(&counts.failures),
            skipped: of(&counts.skipped),
            refused: of(&counts.refused),
            uploaded: of(&counts.uploaded),
            known: of(&counts.known),
            not_uploaded: of(&counts.not_uploaded),
        }
    }

    /// What went wrong since this was last asked.
    #[must_use]
    pub fn take_problems(&self) -> Vec<RemoteProblem> {
        let problems = &self.inner().problems;
        std::mem::take(&mut *problems.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Every entry, and what is left of claims.
    ///
    /// # Errors
    ///
    /// [`StoreError`] where the service cannot list, or did not answer.
    pub fn list(&self) -> Result<Vec<Held>, StoreError> {
        let inner = self.inner();
        let end = Instant::now() + ADMINISTRATION;
        let mut all = inner.store.list(entry::folder(), end)?;
        all.extend(inner.store.list(entry::CLAIMS, end)?);
        Ok(all.into_iter().map(Held::of).collect())
    }

    /// Removes what was listed.
    ///
    /// # Errors
    ///
    /// [`StoreError`] where the service refuses, or did not answer.
    pub fn remove(&self, held: &Held) -> Result<(), StoreError> {
        let inner = self.inner();
        if inner.read_only {
            return Err(StoreError::new(Refusal::Denied, "this client is read-only"));
        }
        inner.store.remove(&held.name, Instant::now() + inner.deadline)
    }

    /// Asks for an entry, whatever the circuit says, and says what was wrong.
    ///
    /// # Errors
    ///
    /// The failure in words.
    pub fn fetch(&self, id: &Id) -> Result<Option<Vec<u8>>, String> {
        let inner = self.inner();
        let name = entry::name(id);
        let bytes = inner
            .store
            .get(&name, MOST_BYTES, Instant::now() + inner.deadline)
            .map_err(|error| error.to_string())?;
        let Some(bytes) = bytes else { return Ok(None) };
        let content = entry::decode(id, &bytes, &inner.accepted);
        content.map(Some).map_err(|damage| format!("{name}: {damage}"))
    }

    /// Uploads an entry now.
    ///
    /// # Errors
    ///
    /// [`StoreError`] where the service refuses, or did not answer.
    pub fn send(&self, id: &Id, content: &[u8]) -> Result<Written, StoreError> {
        let inner = self.inner();
        if !inner.uploads_entries() {
            let why = match inner.read_only {
                true => "this client is read-only",
                false => "this client takes signed entries alone and has no key to sign with",
            };
            return Err(StoreError::new(Refusal::Denied, why));
        }
        let bytes = entry::encode(id, content, inner.signer.as_ref());
        let end = Instant::now() + inner.deadline;
        inner.store.put(&entry::name(id), bytes, true, end)
    }
}

/// Something that a store holds for a cache.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Held {
    name: String,
    /// The key, of an entry.
    pub id: Option<Id>,
    /// Its size in the store.
    pub bytes: u64,
    /// When it was written, where the service says so.
    pub modified: Option<SystemTime>,
}

impl Held {
    fn of(listed: Listed) -> Self {
        Self {
            id: entry::id(&listed.name),
            bytes: listed.bytes,
            modified: listed.modified,
            name: listed.name,
        }
    }
}

impl Inner {
    fn uploads_entries(&self) -> bool {
        !self.read_only && (self.accepted.is_empty() || self.signer.is_some())
    }

    /// The time for a question. A service that was never there is to cost less than a deadline in all.
    fn allowance(&self) -> Duration {
        match self.is_alive.load(Ordering::Relaxed) {
            true => self.deadline,
            false => self.deadline * 3 / 4,
        }
    }

    fn get(&self, id: &Id) -> Answer {
        if !self.reads.may_ask() {
            count(&self.counts.skipped);
            return Answer::Out;
        }
        let name = entry::name(id);
        let start = Instant::now();
        let got = self.store.get(&name, MOST_BYTES, start + self.allowance());
        let bytes = match got {
            Ok(bytes) => {
                self.is_alive.store(true, Ordering::Relaxed);
                if self.reads.note(Ended::Answered, start.elapsed()) {
                    let slow = "its answers take more than a quarter of the time that they may take";
                    self.is_out(StoreError::new(Refusal::TimedOut, slow));
                }
                bytes
            }
            Err(error) if error.refusal == Refusal::TooLarge => {
                let _ = self.reads.note(Ended::Answered, start.elapsed());
                count(&self.counts.misses);
                return Answer::Miss;
            }
            Err(error) => {
                count(&self.counts.failures);
                tracing::debug!(%name, %error, "the shared cache did not answer");
                if self.reads.note(ended(&error), start.elapsed()) {
                    self.is_out(error);
                }
                return Answer::Out;
            }
        };
        let Some(bytes) = bytes else {
            count(&self.counts.misses);
            return Answer::Miss;
        };
        match entry::decode(id, &bytes, &self.accepted) {
            Ok(content) => {
                count(&self.counts.hits);
                Answer::Hit(content)
            }
            Err(damage) => {
                count(&self.counts.refused);
                self.damaged.lock().unwrap_or_else(PoisonError::into_inner).insert(*id);
                let place = self.store.place().to_owned();
                let damage = damage.into_owned();
                self.tell(RemoteProblem::Refused { place, name, damage });
                Answer::Miss
            }
        }
    }

    fn upload(&self, id: &Id, content: &[u8]) {
        if self.reads.is_open() || !self.writes.may_ask() {
            count(&self.counts.not_uploaded);
            return;
        }
        let bytes = entry::encode(id, content, self.signer.as_ref());
        let is_damaged = self.damaged.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
        let start = Instant::now();
        let written = self
            .store
            .put(&entry::name(id), bytes, !is_damaged, start + self.deadline);
        match written {
            Ok(written) => {
                let _ = self.writes.note(Ended::Answered, start.elapsed());
                count(match written {
                    Written::New => &self.counts.uploaded,
                    Written::Existed => &self.counts.known,
                });
            }
            Err(error) => self.not_uploaded(error, start.elapsed()),
        }
    }

    fn not_uploaded(&self, error: StoreError, took: Duration) {
        count(&self.counts.not_uploaded);
        tracing::debug!(%error, "not uploaded to the shared cache");
        // Of others that are smaller it says nothing.
        if error.refusal != Refusal::TooLarge && self.writes.note(ended(&error), took) {
            let place = self.store.place().to_owned();
            self.tell(RemoteProblem::NotWritten { place, cause: error });
        }
    }

    fn claim(&self, id: &Id, stop: &dyn Fn() -> bool) -> Option<Vec<u8>> {
        let patience = self.claims.patience();
        let is_out = self.reads.is_open() || self.writes.is_open();
        if patience.is_zero() || !self.uploads_entries() || is_out || !self.store.is_conditional() {
            return None;
        }
        let start = Instant::now();
        let claimed = self
            .store
            .put(&entry::claim_name(id), Vec::new(), true, start + self.deadline);
        match claimed {
            Ok(Written::New) => {
                self.claims.add(id);
                return None;
            }
            Ok(Written::Existed) => {}
            Err(error) => {
                if self.writes.note(ended(&error), start.elapsed()) {
                    let place = self.store.place().to_owned();
                    self.tell(RemoteProblem::NotWritten { place, cause: error });
                }
                return None;
            }
        }
        let (mut pause, longest) = POLLS;
        while start.elapsed() < patience && !stop() {
            thread::sleep(pause);
            pause = (pause * 2).min(longest);
            match self.get(id) {
                Answer::Hit(content) => return Some(content),
                Answer::Miss => {}
                Answer::Out => break,
            }
        }
        self.claims.waited_in_vain(start.elapsed());
        // Whoever claimed it is gone, or slower than we are: it is ours to take back.
        self.claims.add(id);
        None
    }

    fn unclaim(&self, id: &Id) {
        if self.writes.is_open() {
            return;
        }
        if let Err(error) = self
            .store
            .remove(&entry::claim_name(id), Instant::now() + self.deadline)
        {
            tracing::debug!(%error, "a claim is left in the shared cache");
        }
    }

    fn is_out(&self, cause: StoreError) {
        let place = self.store.place().to_owned();
        self.tell(RemoteProblem::Out { place, cause });
    }

    fn tell(&self, problem: RemoteProblem) {
        tracing::debug!(%problem, "shared cache");
        let mut problems = self.problems.lock().unwrap_or_else(PoisonError::into_inner);
        // One service with many strangers' entries is one problem.
        let is_known = problems
            .iter()
            .any(|known| std::mem::discriminant(known) == std::mem::discriminant(&problem));
        if !is_known {
            problems.push(problem);
        }
    }
}

impl Handle {
    fn finish(&self, limit: Duration) {
        let count = self.inner.uploads.finish(limit);
        if count > 0 {
            let counter = &self.inner.counts.not_uploaded;
            counter.fetch_add(count as u64, Ordering::Relaxed);
            let place = self.inner.store.place().to_owned();
            self.inner.tell(RemoteProblem::Unfinished { place, count, limit });
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.finish(self.inner.upload_limit);
    }
}

fn ended(error: &StoreError) -> Ended {
    match error.refusal {
        Refusal::Denied | Refusal::Unsupported => Ended::Refused,
        Refusal::TimedOut | Refusal::Unreachable | Refusal::TooLarge => Ended::Failed,
    }
}

impl fmt::Debug for Remote {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Remote")
            .field("place", &self.place())
            .field("statistics", &self.statistics())
            .finish_non_exhaustive()
    }
}
