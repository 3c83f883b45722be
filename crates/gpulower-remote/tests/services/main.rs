//! Shared caches on real servers: Redis, memcached, nginx with WebDAV, and an S3 server; and what goes wrong with them.
//!
//! `cargo xtask test cache` runs these.
#![allow(clippy::unwrap_used, reason = "tests end so")]

mod claims;
mod faults;
mod processes;

use std::time::Duration;

use gpulower_cache::{Answer, Id, Remote, RemoteBuilder};
use gpulower_remote::{Address, Credentials, open};
use gpulower_testing::servers::{PASSWORD, Proxy, Server, USER};

/// A kind of service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Redis,
    Memcached,
    Webdav,
    S3,
}

const ALL: [Kind; 4] = [Kind::Redis, Kind::Memcached, Kind::Webdav, Kind::S3];

impl Kind {
    fn server(self) -> Server {
        match self {
            Self::Redis => Server::redis(Some(PASSWORD)),
            Self::Memcached => Server::memcached(),
            Self::Webdav => Server::webdav(),
            Self::S3 => Server::s3(),
        }
    }

    /// The URL of a server, or of a proxy before it.
    fn url(self, port: u16, prefix: &str, password: &str, more: &str) -> String {
        let more = if more.is_empty() {
            String::new()
        } else {
            format!("&{more}")
        };
        match self {
            Self::Redis => format!("redis://:{password}@127.0.0.1:{port}/0/{prefix}?ttl=1h{more}"),
            Self::Memcached => format!("memcached://127.0.0.1:{port}/{prefix}?ttl=1h{more}"),
            Self::Webdav => format!("webdav://{USER}:{password}@127.0.0.1:{port}/{prefix}?ttl=1h{more}"),
            Self::S3 => format!(
                "s3://{USER}:{password}@kernels/{prefix}?region=us-east-1&endpoint=http://127.0.0.1:{port}{more}"
            ),
        }
    }

    fn builder(self, port: u16, more: &str) -> RemoteBuilder {
        opened(&self.url(port, "prefix/of/ours", PASSWORD, more))
    }

    fn remote(self, port: u16, more: &str) -> Remote {
        self.builder(port, more).build()
    }
}

fn opened(url: &str) -> RemoteBuilder {
    let address: Address = url.parse().expect("an address");
    // As long as a test may take on a machine with other things to do.
    let builder = open(&address, Credentials::OfAddress)
        .expect("a service")
        .deadline(Duration::from_secs(30));
    match url.split_once("deadline=") {
        Some(_) => open(&address, Credentials::OfAddress).expect("a service"),
        None => builder,
    }
}

fn id(number: u32) -> Id {
    *blake3::hash(&number.to_le_bytes()).as_bytes()
}

/// The content of an entry: nothing, text that can be compressed, and bytes that cannot.
fn content(number: u32) -> Vec<u8> {
    let length = [0, 1, 100, 30_000, 300_000][number as usize % 5];
    let mut bytes = vec![0; length];
    if number.is_multiple_of(2) {
        blake3::Hasher::new()
            .update(&number.to_le_bytes())
            .finalize_xof()
            .fill(&mut bytes);
    } else {
        bytes.fill(number as u8);
    }
    bytes
}

fn fill(remote: &Remote, numbers: std::ops::Range<u32>) {
    for number in numbers {
        remote.put(&id(number), content(number).into());
    }
    remote.finish(Duration::from_secs(120));
}

fn told(remote: &Remote) -> Vec<String> {
    let told: Vec<String> = remote.take_problems().iter().map(ToString::to_string).collect();
    for text in &told {
        assert!(!text.contains(PASSWORD), "{text}");
    }
    told
}

#[test]
fn one_machine_fills_and_another_finds_the_same_bytes() {
    for kind in ALL {
        let server = kind.server();
        let one = kind.remote(server.port, "");
        assert_eq!(one.get(&id(0)), Answer::Miss, "{kind:?}: {:?}", one.take_problems());
        fill(&one, 0..20);
        assert_eq!(told(&one), Vec::<String>::new(), "{kind:?}");
        assert_eq!(one.statistics().uploaded, 20, "{kind:?}");
        let other = kind.remote(server.port, "read-only=true");
        for number in 0..20 {
            assert_eq!(
                other.get(&id(number)),
                Answer::Hit(content(number)),
                "{kind:?}: {number}"
            );
        }
        assert_eq!(other.get(&id(20)), Answer::Miss);
        assert_eq!(
            (other.statistics().hits, other.statistics().misses),
            (20, 1),
            "{kind:?}"
        );
        // The prefix is a namespace.
        let elsewhere = opened(&kind.url(server.port, "another/prefix", PASSWORD, "")).build();
        assert_eq!(elsewhere.get(&id(0)), Answer::Miss, "{kind:?}");
        // The client that only reads cannot be made to write.
        fill(&other, 30..31);
        assert_eq!(one.get(&id(30)), Answer::Miss, "{kind:?}");
        assert!(!format!("{one:?}").contains(PASSWORD));
    }
}

#[test]
fn what_is_held_is_listed_and_removed_where_the_service_can() {
    for kind in ALL {
        let server = kind.server();
        let remote = kind.remote(server.port, "");
        fill(&remote, 0..5);
        let listed = remote.list();
        if matches!(kind, Kind::Redis | Kind::Memcached) {
            assert_eq!(
                listed.expect_err("not listed").refusal,
                gpulower_cache::Refusal::Unsupported
            );
            continue;
        }
        let mut listed = listed.unwrap_or_else(|error| panic!("{kind:?}: {error}"));
        assert_eq!(listed.len(), 5, "{kind:?}: {listed:?}");
        assert!(
            listed
                .iter()
                .all(|held| held.id.is_some() && held.bytes > 80 && held.modified.is_some()),
            "{listed:?}"
        );
        let last = listed.pop().unwrap();
        remote.remove(&last).unwrap();
        assert_eq!(remote.get(&last.id.unwrap()), Answer::Miss, "{kind:?}");
        assert_eq!(remote.list().unwrap().len(), 4, "{kind:?}");
    }
}

#[test]
fn what_is_too_large_for_the_service_does_not_end_the_rest() {
    let server = Kind::Memcached.server();
    let remote = Kind::Memcached.remote(server.port, "");
    let mut large = vec![0; 3 << 20];
    blake3::Hasher::new().finalize_xof().fill(&mut large);
    for number in 100..105 {
        remote.put(&id(number), large.clone().into());
    }
    fill(&remote, 0..5);
    assert_eq!(remote.statistics().uploaded, 5, "{:?}", remote.take_problems());
    assert_eq!(remote.get(&id(0)), Answer::Hit(content(0)));
}

#[test]
fn refused_credentials_are_told_once_and_not_shown() {
    for kind in [Kind::Redis, Kind::Webdav] {
        let server = kind.server();
        fill(&kind.remote(server.port, ""), 0..1);
        for wrong in ["wrong-and-secret", ""] {
            let remote = opened(&kind.url(server.port, "prefix/of/ours", wrong, "")).build();
            for _ in 0..10 {
                assert_eq!(remote.get(&id(0)), Answer::Out, "{kind:?}");
            }
            fill(&remote, 0..5);
            let statistics = remote.statistics();
            assert_eq!(
                (statistics.failures, statistics.skipped),
                (1, 9),
                "{kind:?}: {:?}",
                told(&remote)
            );
            let told = told(&remote);
            assert!(told.len() == 1 && told[0].contains("is out"), "{kind:?}: {told:?}");
            assert!(wrong.is_empty() || !told[0].contains(wrong), "{told:?}");
        }
    }
    // Whoever reads only is not kept from reading.
    let server = Kind::S3.server();
    fill(&Kind::S3.remote(server.port, ""), 0..1);
    let proxy = Proxy::before(server.port);
    let remote = Kind::S3.remote(proxy.port, "");
    let denied = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n".to_vec();
    proxy.spoil(gpulower_testing::servers::Fault::Answer(denied));
    fill(&remote, 0..5);
    let told = told(&remote);
    assert!(told.len() == 1 && told[0].contains("is only read for now"), "{told:?}");
    proxy.spoil(gpulower_testing::servers::Fault::None);
    assert_eq!(remote.get(&id(0)), Answer::Hit(content(0)));
}

#[test]
fn wrong_addresses_are_refused_in_words() {
    let cases = [
        ("ftp://host/x", "there is no shared cache of the kind 'ftp:'"),
        ("s3:///prefix", "bucket"),
        ("redis://:hunter2@host/0?region=x&deadline=never", "'deadline'"),
    ];
    for (url, expected) in cases {
        let address = url.parse::<Address>();
        let message = match address.and_then(|address| open(&address, Credentials::OfAddress)) {
            Ok(_) => panic!("{url} is taken"),
            Err(error) => error.to_string(),
        };
        assert!(
            message.contains(expected) && !message.contains("hunter2"),
            "{url}: {message}"
        );
    }
}
