use std::{
    fs,
    os::unix::{
        fs::{PermissionsExt, chown},
        process::ExitStatusExt,
    },
    path::Path,
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use super::*;

fn key(name: impl AsRef<[u8]>) -> Key {
    KeyBuilder::new("test").field("name", name).finish()
}

fn on_disk(directory: &Path) -> Cache {
    Cache::builder().directory(directory).memory_bytes(0).build()
}

fn problems(cache: &Cache) -> Vec<String> {
    cache.take_problems().iter().map(ToString::to_string).collect()
}

fn content(cache: &Cache, name: &str) -> Option<Vec<u8>> {
    cache.get(&key(name)).map(|(bytes, _)| bytes.to_vec())
}

#[test]
fn what_is_stored_is_found_in_memory_then_on_disk() {
    let directory = tempfile::tempdir().expect("a directory");
    let place = directory.path().join("cache");
    let cache = Cache::builder().directory(&place).build();
    assert_eq!(cache.get(&key("a")), None);
    cache.put(&key("a"), b"one".to_vec());
    let found = |cache: &Cache| cache.get(&key("a")).map(|(bytes, from)| (bytes.to_vec(), from));
    assert_eq!(found(&cache), Some((b"one".to_vec(), Source::Memory)));
    let other = Cache::builder().directory(&place).build();
    assert_eq!(found(&other), Some((b"one".to_vec(), Source::Disk)));
    assert_eq!(found(&other), Some((b"one".to_vec(), Source::Memory)));
    let statistics = other.statistics();
    assert_eq!(
        (statistics.memory_hits, statistics.disk_hits, statistics.misses),
        (1, 1, 0)
    );
    assert_eq!(problems(&cache), Vec::<String>::new());
    let mode = fs::metadata(&place).expect("made").permissions().mode() & 0o777;
    assert_eq!(mode, 0o700);
}

#[test]
fn keys_of_other_fields_and_kinds_differ() {
    let field = |name, value: &str| KeyBuilder::new("test").field(name, value).finish();
    let keys = [
        field("ab", "c"),
        field("a", "bc"),
        KeyBuilder::new("tes").field("tab", "c").finish(),
        KeyBuilder::new("test").field("a", "").field("bc", "").finish(),
        KeyBuilder::new("test").finish(),
    ];
    for (index, one) in keys.iter().enumerate() {
        assert!(!keys[..index].contains(one), "{index}");
    }
}

#[test]
fn what_is_no_file_is_not_opened() {
    let directory = tempfile::tempdir().expect("a directory");
    let cache = on_disk(directory.path());
    let path = cache.path(&key("pipe")).expect("on disk");
    fs::create_dir_all(path.parent().expect("a folder")).expect("made");
    let elsewhere = directory.path().join("elsewhere");
    fs::write(&elsewhere, b"private").expect("written");
    let pipe = |path: &Path| rustix::fs::mkfifoat(rustix::fs::CWD, path, rustix::fs::Mode::from_raw_mode(0o600));
    type Replacement<'a> = (&'a str, &'a dyn Fn(&Path));
    let replacements: [Replacement<'_>; 4] = [
        // Whoever opens it waits for a writer.
        ("a pipe", &|path| pipe(path).expect("made")),
        ("a socket", &|path| {
            drop(std::os::unix::net::UnixListener::bind(path).expect("made"))
        }),
        ("a device", &|path| {
            std::os::unix::fs::symlink("/dev/zero", path).expect("made")
        }),
        ("a link", &|path| {
            std::os::unix::fs::symlink(&elsewhere, path).expect("made")
        }),
    ];
    for (name, make) in replacements {
        make(&path);
        assert_eq!(content(&cache, "pipe"), None, "{name}");
        let told = problems(&cache);
        assert!(
            told.len() == 1 && told[0].contains("it is not a file"),
            "{name}: {told:?}"
        );
        // What is made anew takes its place.
        cache.put(&key("pipe"), b"content".to_vec());
        assert_eq!(content(&cache, "pipe"), Some(b"content".to_vec()), "{name}");
        fs::remove_file(&path).expect("removed");
    }
    fs::create_dir(&path).expect("made");
    assert_eq!(content(&cache, "pipe"), None);
    assert_eq!(problems(&cache).len(), 1);
    assert_eq!(fs::read(&elsewhere).expect("there"), b"private");
}

#[test]
fn damaged_entries_are_misses_that_are_told_and_removed() {
    let directory = tempfile::tempdir().expect("a directory");
    let cache = on_disk(directory.path());
    let path = |name: &str| cache.path(&key(name)).expect("on disk");
    type Case<'a> = (&'a str, &'a dyn Fn(&Path), &'a str);
    let cases: [Case<'_>; 3] = [
        (
            "truncated",
            &|path| {
                let bytes = fs::read(path).expect("an entry");
                fs::write(path, &bytes[..bytes.len() - 1]).expect("written");
            },
            "instead of",
        ),
        (
            "flipped",
            &|path| {
                let mut bytes = fs::read(path).expect("an entry");
                *bytes.last_mut().expect("not empty") ^= 1;
                fs::write(path, bytes).expect("written");
            },
            "its content has changed since it was written",
        ),
        (
            "swapped",
            &|path| {
                cache.put(&key("other"), b"other".to_vec());
                fs::copy(cache.path(&key("other")).expect("on disk"), path).expect("copied");
            },
            "it is the entry of another key",
        ),
    ];
    for (name, damage, message) in cases {
        cache.put(&key(name), b"content".to_vec());
        damage(&path(name));
        assert_eq!(content(&cache, name), None, "{name}");
        let told = problems(&cache);
        assert!(
            told.len() == 1 && told[0].contains(message) && told[0].contains("made anew"),
            "{told:?}"
        );
        assert!(!path(name).exists(), "{name}");
        cache.put(&key(name), b"content".to_vec());
        assert_eq!(content(&cache, name), Some(b"content".to_vec()), "{name}");
    }
}

#[test]
fn a_directory_that_others_can_change_is_not_used() {
    let directory = tempfile::tempdir().expect("a directory");
    on_disk(directory.path()).put(&key("a"), b"one".to_vec());
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o777)).expect("permitted");
    let cache = on_disk(directory.path());
    assert_eq!(content(&cache, "a"), None);
    cache.put(&key("b"), b"two".to_vec());
    let told = problems(&cache);
    assert!(
        told.len() == 1 && told[0].contains("(mode 777): entries there could be anybody's; run chmod go-w"),
        "{told:?}"
    );
}

#[test]
fn a_directory_of_somebody_else_is_not_used() {
    let directory = tempfile::tempdir().expect("a directory");
    // Root may give a directory away; anybody else finds one of root's.
    let foreign = if rustix::process::geteuid().is_root() {
        chown(directory.path(), Some(12345), None).expect("root may");
        directory.path()
    } else {
        Path::new("/usr")
    };
    let cache = on_disk(foreign);
    assert_eq!(content(&cache, "a"), None);
    cache.put(&key("a"), b"one".to_vec());
    let told = problems(&cache);
    assert!(
        told.len() == 1 && told[0].contains("belongs to user") && told[0].contains("name a directory of your own"),
        "{told:?}"
    );
}

#[test]
fn a_directory_that_cannot_be_made_is_told_once() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    // The second is one of those that are kept on disk alone.
    for bytes in [3, 2 << 20] {
        let cache = on_disk(&file.path().join("cache"));
        for _ in 0..3 {
            cache.put(&key("a"), vec![1; bytes]);
        }
        let told = problems(&cache);
        assert!(told.len() == 1 && told[0].contains("cannot make"), "{told:?}");
        assert_eq!(content(&cache, "a"), None);
    }
}

#[test]
fn an_entry_that_cannot_be_written_is_told() {
    let directory = tempfile::tempdir().expect("a directory");
    let cache = on_disk(directory.path());
    cache.put(&key("a"), b"one".to_vec());
    let folder = cache.path(&key("a")).expect("on disk");
    let folder = folder.parent().expect("a folder");
    fs::remove_dir_all(folder).expect("removed");
    // What stands where the folder should be cannot be written into.
    fs::write(folder, "").expect("written");
    cache.put(&key("a"), b"two".to_vec());
    let told = problems(&cache);
    assert!(
        told.len() == 1 && told[0].contains("could not be kept in the cache"),
        "{told:?}"
    );
    assert_eq!(content(&cache, "a"), None);
}

#[test]
fn the_size_is_bounded_and_the_oldest_go_first() {
    let directory = tempfile::tempdir().expect("a directory");
    let limit = 100_000;
    let cache = Cache::builder()
        .directory(directory.path())
        .memory_bytes(0)
        .disk_bytes(limit)
        .build();
    for index in 0..200 {
        cache.put(&key(format!("{index}")), vec![0; 1000]);
        let path = cache.path(&key(format!("{index}"))).expect("on disk");
        let time = std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000 + index);
        let file = fs::File::options().write(true).open(path).expect("an entry");
        file.set_modified(time).expect("a time");
    }
    assert_eq!(problems(&cache), Vec::<String>::new());
    // What was written since the last count may lie above the limit: a 32nd of it. The count waits for its lock, which a
    // process that another test starts may hold for the moment in which it begins.
    let mut usage = cache.usage().expect("listed");
    for more in 0..100 {
        if usage.bytes <= limit + limit / 32 + 2000 {
            break;
        }
        thread::sleep(Duration::from_millis(20));
        cache.put(&key(format!("more {more}")), vec![0; 4000]);
        usage = cache.usage().expect("listed");
    }
    assert!(usage.bytes <= limit + limit / 32 + 6000, "{usage:?}");
    assert!(usage.entries > 50, "{usage:?}");
    assert_eq!(content(&cache, "0"), None);
    assert!(content(&cache, "199").is_some());
}

#[test]
fn clearing_leaves_nothing_and_says_what_there_was() {
    let directory = tempfile::tempdir().expect("a directory");
    let cache = Cache::builder().directory(directory.path()).build();
    cache.put(&key("a"), b"one".to_vec());
    cache.put(&key("b"), b"two".to_vec());
    let usage = cache.clear().expect("cleared");
    assert_eq!(usage.entries, 2);
    assert_eq!(cache.usage().expect("listed"), Usage::default());
    assert_eq!(content(&cache, "a"), None);
    cache.put(&key("a"), b"three".to_vec());
    assert_eq!(content(&cache, "a"), Some(b"three".to_vec()));
}

/// An entry that tells whether it is whole: its name, many times.
fn large(name: &str) -> Vec<u8> {
    name.repeat(20_000).into_bytes()
}

/// Writes entries until it is killed; started by the test below.
#[test]
#[ignore = "a part of `no_reader_sees_part_of_an_entry_whose_writer_was_killed`"]
fn writer() {
    let Some(directory) = std::env::var_os("GPULOWER_TEST_CACHE") else {
        return;
    };
    let cache = on_disk(Path::new(&directory));
    loop {
        for name in ["one", "two", "three"] {
            cache.put(&key(name), large(name));
        }
    }
}

/// As often as `GPULOWER_TEST_KILLS` says, 1,000 times without it.
#[test]
fn no_reader_sees_part_of_an_entry_whose_writer_was_killed() {
    let directory = tempfile::tempdir().expect("a directory");
    let kills: u32 = std::env::var("GPULOWER_TEST_KILLS").map_or(1000, |text| text.parse().expect("a number"));
    let mut seen = 0;
    for round in 0..kills {
        let mut child = Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "cache::tests::writer", "--ignored"])
            .env("GPULOWER_TEST_CACHE", directory.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("started");
        let cache = on_disk(directory.path());
        // Until it writes, and then some of the time that one entry takes.
        while !directory.path().exists() || cache.usage().is_ok_and(|usage| usage.entries == 0) {
            thread::sleep(Duration::from_millis(1));
        }
        thread::sleep(Duration::from_micros(u64::from(round % 97) * 200));
        child.kill().expect("killed");
        assert_eq!(child.wait().expect("ended").signal(), Some(9));
        for name in ["one", "two", "three"] {
            if let Some(bytes) = content(&cache, name) {
                assert!(bytes == large(name), "round {round}: {name}");
                seen += 1;
            }
        }
        assert_eq!(problems(&cache), Vec::<String>::new(), "round {round}");
        if round % 7 == 0 {
            cache.clear().expect("cleared");
        }
    }
    assert!(seen > 0, "nothing was ever read");
}

#[test]
fn threads_and_handles_share_a_directory() {
    let directory = tempfile::tempdir().expect("a directory");
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let cache = Cache::builder()
                    .directory(directory.path())
                    .memory_bytes(0)
                    .disk_bytes(300_000)
                    .build();
                for round in 0..200 {
                    let name = format!("{}", round % 20);
                    match content(&cache, &name) {
                        Some(bytes) => assert!(bytes == name.repeat(5000).into_bytes(), "{name}"),
                        None => cache.put(&key(&name), name.repeat(5000).into_bytes()),
                    }
                }
                assert_eq!(problems(&cache), Vec::<String>::new());
            });
        }
    });
}

/// What is large is not copied into memory as long as it is on disk.
#[test]
fn large_entries_are_in_memory_where_there_is_no_other_place() {
    let folder = tempfile::tempdir().expect("a folder");
    let large = vec![7; 2 << 20];
    let from = |cache: &Cache| {
        let key = KeyBuilder::new("test").finish();
        cache.put(&key, large.clone());
        let (bytes, from) = cache.get(&key).expect("is there");
        assert!(*bytes == *large);
        from
    };
    assert_eq!(from(&Cache::builder().build()), Source::Memory);
    let on_disk = || Cache::builder().directory(folder.path());
    assert_eq!(from(&on_disk().build()), Source::Disk);
    // The disk takes nothing of this size.
    assert_eq!(from(&on_disk().disk_bytes(1 << 20).build()), Source::Memory);
}
