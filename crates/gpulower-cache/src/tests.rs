//! The tier over a store in memory.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use crate::{testing::InMemory, *};

const ID: Id = [5; 32];

fn with(build: impl FnOnce(RemoteBuilder) -> RemoteBuilder) -> (Arc<InMemory>, Remote) {
    let store = Arc::new(InMemory::default());
    let remote = build(Remote::builder(Arc::clone(&store) as _)).build();
    (store, remote)
}

fn finish(remote: &Remote) {
    remote.finish(Duration::from_secs(60));
}

#[test]
fn another_machine_finds_what_was_put() {
    let (store, one) = with(|builder| builder);
    one.put(&ID, (*b"content").into());
    drop(one);
    let other = Remote::builder(store).build();
    assert_eq!(other.get(&ID), Answer::Hit(b"content".to_vec()));
    assert_eq!(other.get(&[6; 32]), Answer::Miss);
    let statistics = other.statistics();
    assert_eq!((statistics.hits, statistics.misses), (1, 1));
}

/// A store whose writes wait for a word.
#[derive(Debug, Default)]
struct Waiting {
    store: InMemory,
    writes: std::sync::Mutex<()>,
    /// What was asked, and how much time it was given.
    asked: std::sync::Mutex<Vec<(&'static str, Duration)>>,
}

impl Waiting {
    fn note(&self, what: &'static str, deadline: Instant) {
        let time = deadline.saturating_duration_since(Instant::now());
        self.asked.lock().expect("nobody panicked").push((what, time));
    }
}

impl Store for Waiting {
    fn place(&self) -> &str {
        self.store.place()
    }

    fn get(&self, name: &str, most: u64, deadline: Instant) -> Result<Option<Vec<u8>>, StoreError> {
        self.note("get", deadline);
        self.store.get(name, most, deadline)
    }

    fn put(&self, name: &str, bytes: Vec<u8>, only_new: bool, deadline: Instant) -> Result<Written, StoreError> {
        self.note("put", deadline);
        drop(self.writes.lock());
        self.store.put(name, bytes, only_new, deadline)
    }

    fn is_conditional(&self) -> bool {
        true
    }

    fn remove(&self, name: &str, deadline: Instant) -> Result<(), StoreError> {
        self.note("remove", deadline);
        self.store.remove(name, deadline)
    }

    fn list(&self, prefix: &str, deadline: Instant) -> Result<Vec<Listed>, StoreError> {
        self.note("list", deadline);
        self.store.list(prefix, deadline)
    }
}

#[test]
fn uploads_are_waited_for_and_given_up_after_a_time() {
    let store = Arc::new(Waiting::default());
    let remote = Remote::builder(Arc::clone(&store) as _).build();
    let held = store.writes.lock().unwrap();
    for number in 0..40 {
        remote.put(&[number; 32], (*b"content").into());
    }
    remote.finish(Duration::from_millis(50));
    let told = remote.take_problems();
    // A thread that had not begun yet counts beside what it was to do.
    let [RemoteProblem::Unfinished { count, .. }] = told[..] else {
        panic!("{told:?}")
    };
    assert!((40..=48).contains(&count), "{told:?}");
    assert!(
        told[0]
            .to_string()
            .ends_with("results were not uploaded to the shared cache memory: within 0.05 s")
    );
    assert_eq!(remote.statistics().not_uploaded, count as u64);
    assert_eq!(remote.get(&[0; 32]), Answer::Miss);
    drop(held);
    remote.put(&[50; 32], (*b"content").into());
    // The end of the last handle waits.
    drop(remote);
    let other = Remote::builder(store).build();
    assert_eq!(other.get(&[50; 32]), Answer::Hit(b"content".to_vec()));
}

#[test]
fn a_client_that_only_reads_sends_no_write() {
    let (store, remote) = with(|builder| builder.read_only(true).wait(Duration::from_secs(1)));
    assert_eq!(remote.get(&ID), Answer::Miss);
    assert_eq!(remote.claim(&ID, &|| false), None);
    remote.put(&ID, (*b"content").into());
    remote.abandon(&ID);
    assert!(remote.send(&ID, b"content").is_err());
    drop(remote);
    let requests = store.take_requests();
    assert!(
        requests.len() == 1 && requests[0].starts_with("get 1/05/"),
        "{requests:?}"
    );
}

#[test]
fn an_outage_is_no_miss_and_is_told_once() {
    let (store, remote) = with(|builder| builder);
    store.fail(Some(StoreError::new(Refusal::Unreachable, "connection refused")));
    let answers: Vec<Answer> = (0..10).map(|_| remote.get(&ID)).collect();
    assert_eq!(answers, vec![Answer::Out; 10]);
    assert_eq!(store.take_requests().len(), 3, "then it is left alone");
    for _ in 0..5 {
        remote.put(&ID, (*b"content").into());
    }
    finish(&remote);
    assert_eq!(store.take_requests(), Vec::<String>::new());
    let told: Vec<String> = remote.take_problems().iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        ["the shared cache memory: is out, and is done without for now: connection refused"]
    );
    let statistics = remote.statistics();
    assert_eq!((statistics.failures, statistics.skipped, statistics.misses), (3, 7, 0));
    assert_eq!(statistics.not_uploaded, 5);
}

#[test]
fn a_service_that_comes_back_is_used_again() {
    let (store, remote) = with(|builder| builder.pause(Duration::ZERO));
    store.fail(Some(StoreError::new(Refusal::Denied, "no")));
    assert_eq!(remote.get(&ID), Answer::Out);
    assert_eq!(remote.get(&ID), Answer::Out);
    store.fail(None);
    assert_eq!(remote.get(&ID), Answer::Miss);
    remote.put(&ID, (*b"content").into());
    finish(&remote);
    assert_eq!(remote.get(&ID), Answer::Hit(b"content".to_vec()));
    assert_eq!(remote.take_problems().len(), 1);
}

#[test]
fn what_cannot_be_written_is_still_read() {
    let (store, remote) = with(|builder| builder);
    remote.put(&ID, (*b"content").into());
    finish(&remote);
    store.fail(Some(StoreError::new(Refusal::Denied, "read-only credentials")));
    for id in 0..5 {
        remote.put(&[id; 32], (*b"content").into());
        finish(&remote);
    }
    store.fail(None);
    assert_eq!(remote.get(&ID), Answer::Hit(b"content".to_vec()));
    let told: Vec<String> = remote.take_problems().iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        ["the shared cache memory: takes no results, and is only read for now: read-only credentials"]
    );
    assert_eq!(remote.statistics().not_uploaded, 5);
}

#[test]
fn damaged_entries_are_misses_that_are_told_and_replaced() {
    let (store, remote) = with(|builder| builder);
    type Spoil = fn(&mut Vec<u8>);
    let damages: [Spoil; 4] = [
        |bytes| bytes.truncate(bytes.len() - 1),
        |bytes| bytes.iter_mut().for_each(|byte| *byte ^= 1),
        |bytes| *bytes.last_mut().expect("not empty") ^= 1,
        Vec::clear,
    ];
    for damage in damages {
        remote.put(&ID, (*b"content").into());
        finish(&remote);
        assert_eq!(remote.get(&ID), Answer::Hit(b"content".to_vec()));
        store.change(damage);
        assert_eq!(remote.get(&ID), Answer::Miss);
        assert_eq!(remote.take_problems().len(), 1);
    }
    assert_eq!(remote.statistics().refused, 4);
}

#[test]
fn a_client_that_demands_signatures_takes_nothing_else() {
    let (ours, theirs) = (SecretKey::of_bytes([1; 32]), SecretKey::of_bytes([2; 32]));
    let store = Arc::new(InMemory::default());
    let client =
        |build: &dyn Fn(RemoteBuilder) -> RemoteBuilder| build(Remote::builder(Arc::clone(&store) as _)).build();
    let fill = |key: Option<&SecretKey>| {
        store.change(Vec::clear);
        let remote = client(&|builder| match key {
            Some(key) => builder.sign_with(key.clone()),
            None => builder,
        });
        let _ = remote.get(&ID);
        remote.put(&ID, (*b"content").into());
        finish(&remote);
    };
    let demanding = client(&|builder| builder.accept(ours.public()));
    fill(None);
    assert_eq!(demanding.get(&ID), Answer::Miss);
    fill(Some(&theirs));
    assert_eq!(demanding.get(&ID), Answer::Miss);
    assert_eq!(demanding.statistics().refused, 2);
    fill(Some(&ours));
    // What it made itself is not signed, and comes late: what is signed stays.
    demanding.put(&ID, (*b"content").into());
    finish(&demanding);
    assert_eq!(demanding.statistics().uploaded, 0);
    assert!(
        demanding
            .send(&ID, b"content")
            .is_err_and(|error| error.refusal == Refusal::Denied)
    );
    assert_eq!(demanding.get(&ID), Answer::Hit(b"content".to_vec()));
    // Who demands nothing takes all of them.
    fill(Some(&theirs));
    assert_eq!(client(&|builder| builder).get(&ID), Answer::Hit(b"content".to_vec()));
}

#[test]
fn one_machine_makes_what_others_wait_for() {
    let store = Arc::new(InMemory::default());
    let machine = |wait| Remote::builder(Arc::clone(&store) as _).wait(wait).build();
    let (one, other) = (machine(Duration::from_secs(60)), machine(Duration::from_secs(60)));
    assert_eq!(one.claim(&ID, &|| false), None);
    let _ = store.take_requests();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| other.claim(&ID, &|| false));
        // It knows of the claim before that is gone.
        while store.take_requests().is_empty() {
            std::thread::yield_now();
        }
        one.put(&ID, (*b"content").into());
        finish(&one);
        assert_eq!(waiting.join().expect("ended"), Some(b"content".to_vec()));
    });
    // Nothing of the claim is left.
    assert!(one.list().expect("listed").iter().all(|held| held.id == Some(ID)));
    // Of a machine that is gone nobody waits for longer than was said, in all.
    let patience = Duration::from_millis(50);
    let late = machine(patience);
    for id in [[1; 32], [2; 32], [3; 32]] {
        assert_eq!(one.claim(&id, &|| false), None);
        assert_eq!(late.claim(&id, &|| false), None);
    }
    let _ = store.take_requests();
    assert_eq!(late.claim(&[1; 32], &|| false), None);
    assert_eq!(store.take_requests(), Vec::<String>::new(), "its patience is at an end");
    assert_eq!(
        machine(Duration::from_secs(60)).claim(&[1; 32], &|| true),
        None,
        "told to stop"
    );
}

#[test]
fn what_a_client_was_built_with_is_what_it_says() {
    let (_, remote) = with(|builder| builder.upload_limit(Duration::from_secs(7)).read_only(true));
    assert_eq!(
        (remote.place(), remote.upload_limit()),
        ("memory:", Duration::from_secs(7))
    );
    assert!(remote.is_read_only());
    let (_, other) = with(|builder| builder);
    assert!(!other.is_read_only() && other.upload_limit() > Duration::ZERO);
    let text = format!("{other:?}");
    assert!(text.contains("memory:") && text.contains("hits: 0"), "{text}");
}

#[test]
fn an_entry_that_is_too_large_says_nothing_of_others() {
    let (store, remote) = with(|builder| builder);
    store.fail(Some(StoreError::new(Refusal::TooLarge, "too large")));
    for _ in 0..5 {
        assert_eq!(remote.get(&ID), Answer::Miss);
        remote.put(&ID, (*b"content").into());
        finish(&remote);
    }
    assert_eq!(remote.take_problems(), []);
    let statistics = remote.statistics();
    assert_eq!(
        (statistics.misses, statistics.not_uploaded, statistics.failures),
        (5, 5, 0)
    );
    store.fail(None);
    remote.put(&ID, (*b"content").into());
    finish(&remote);
    assert_eq!(remote.get(&ID), Answer::Hit(b"content".to_vec()));
}

#[test]
fn uploads_are_counted_by_whether_they_were_known() {
    let (_, remote) = with(|builder| builder);
    for _ in 0..3 {
        remote.put(&ID, (*b"content").into());
        finish(&remote);
    }
    let statistics = remote.statistics();
    assert_eq!(
        (statistics.uploaded, statistics.known, statistics.not_uploaded),
        (1, 2, 0)
    );
    assert_eq!(remote.send(&[7; 32], b"now"), Ok(Written::New));
    assert_eq!(remote.send(&[7; 32], b"now"), Ok(Written::Existed));
    assert_eq!(remote.fetch(&[7; 32]), Ok(Some(b"now".to_vec())));
    assert_eq!(remote.fetch(&[8; 32]), Ok(None));
}

#[test]
fn what_is_held_is_listed_and_removed() {
    let (store, remote) = with(|builder| builder.wait(Duration::from_millis(1)));
    assert_eq!(remote.claim(&[9; 32], &|| false), None);
    remote.put(&ID, (*b"content").into());
    finish(&remote);
    let held = remote.list().expect("listed");
    let mut ids: Vec<Option<Id>> = held.iter().map(|held| held.id).collect();
    ids.sort();
    assert_eq!(ids, [None, Some(ID)], "a claim has no key of an entry");
    assert!(
        held.iter().all(|held| held.id.is_none() == (held.bytes == 0)),
        "{held:?}"
    );
    for one in &held {
        remote.remove(one).expect("removed");
    }
    assert_eq!(remote.list().expect("listed"), []);
    store.change(Vec::clear);
    assert_eq!(remote.get(&ID), Answer::Miss);
}

#[test]
fn who_fails_leaves_no_claim() {
    let (store, remote) = with(|builder| builder.wait(Duration::from_secs(60)));
    assert_eq!(remote.claim(&ID, &|| false), None);
    remote.abandon(&ID);
    remote.abandon(&[1; 32]);
    finish(&remote);
    assert_eq!(remote.list().expect("listed"), []);
    let requests = store.take_requests();
    let removed: Vec<&String> = requests.iter().filter(|line| line.starts_with("remove ")).collect();
    assert_eq!(removed.len(), 1, "{requests:?}");
}

#[test]
fn a_claim_needs_a_store_that_writes() {
    let (store, remote) = with(|builder| builder.wait(Duration::from_secs(60)));
    store.fail(Some(StoreError::new(Refusal::Denied, "no")));
    assert_eq!(remote.claim(&ID, &|| false), None);
    let told: Vec<String> = remote.take_problems().iter().map(ToString::to_string).collect();
    assert!(told.iter().any(|line| line.contains("takes no results")), "{told:?}");
    let asked = store.take_requests().len();
    assert_eq!(remote.claim(&ID, &|| false), None);
    assert_eq!(store.take_requests().len() + asked, asked, "it is left alone");
    // Without patience nobody claims anything.
    let (store, remote) = with(|builder| builder);
    assert_eq!(remote.claim(&ID, &|| false), None);
    assert_eq!(store.take_requests(), Vec::<String>::new());
}

#[test]
fn each_question_has_its_deadline() {
    let store = Arc::new(Waiting::default());
    let hours = |number: u64| Duration::from_secs(3600 * number);
    let remote = Remote::builder(Arc::clone(&store) as _)
        .deadline(hours(4))
        .wait(hours(1))
        .build();
    let _ = remote.get(&ID);
    let _ = remote.get(&ID);
    remote.put(&ID, (*b"content").into());
    finish(&remote);
    let held = remote.list().expect("it is there");
    remote.remove(&held[0]).expect("it is there");
    remote.fetch(&ID).expect("it answers");
    remote.send(&ID, b"content").expect("it answers");
    assert_eq!(remote.claim(&[7; 32], &|| false), None);
    remote.abandon(&[7; 32]);
    finish(&remote);
    let asked = store.asked.lock().expect("nobody panicked");
    let rounded = |time: &Duration| (time.as_secs_f64() / 3600.0).round() as u32;
    let asked: Vec<_> = asked.iter().map(|(what, time)| (*what, rounded(time))).collect();
    // As long as the service has not answered, less. Lists are short.
    let expected = [
        ("get", 3),
        ("get", 4),
        ("put", 4),
        ("list", 0),
        ("list", 0),
        ("remove", 4),
        ("get", 4),
        ("put", 4),
        // The claim.
        ("put", 4),
        ("remove", 4),
    ];
    assert_eq!(asked, expected);
}

#[test]
fn a_value_may_be_as_large_as_was_said() {
    let store = InMemory::default();
    let now = Instant::now();
    store.put("name", b"content".to_vec(), true, now).expect("memory");
    assert!(store.get("name", 7, now).is_ok_and(|found| found.is_some()));
    assert_eq!(
        store.get("name", 6, now).expect_err("too large").refusal,
        Refusal::TooLarge
    );
}
