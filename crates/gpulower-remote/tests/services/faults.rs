//! Everything that a network does: no wrong byte, no long wait, one message.

use std::time::Duration;

use gpulower_cache::Answer;
use gpulower_testing::servers::{Fault, Proxy};

use super::{ALL, Kind, content, fill, id, told};

/// Errors in the words of each service.
fn errors(kind: Kind) -> Vec<u8> {
    match kind {
        Kind::Redis => b"-ERR out of order\r\n".to_vec(),
        Kind::Memcached => b"SERVER_ERROR out of order\r\n".repeat(4),
        Kind::Webdav | Kind::S3 => b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n".to_vec(),
    }
}

#[test]
fn whatever_the_network_does_no_wrong_byte_comes_and_one_message_says_so() {
    for kind in ALL {
        let server = kind.server();
        let proxy = Proxy::before(server.port);
        fill(&kind.remote(server.port, ""), 0..10);
        let faults = [
            Fault::Hang,
            Fault::Reset,
            Fault::Slow(Duration::from_secs(20)),
            Fault::Truncate(40),
            Fault::Truncate(700),
            Fault::Truncate(20_000),
            Fault::Flip(1),
            Fault::Flip(211),
            Fault::Flip(9_973),
            Fault::Answer(errors(kind)),
            Fault::Answer(b"\0\xff nonsense \r\n\r\n".to_vec()),
        ];
        for fault in faults {
            let case = format!("{kind:?} {fault:?}");
            let is_silent = matches!(fault, Fault::Hang | Fault::Slow(_));
            proxy.spoil(fault);
            let remote = kind.remote(proxy.port, "deadline=400ms");
            for number in 0..10 {
                match remote.get(&id(number)) {
                    Answer::Hit(bytes) => assert!(bytes == content(number), "{case}: {number}"),
                    Answer::Miss | Answer::Out => {}
                }
            }
            fill(&remote, 1000..1010);
            let (statistics, told) = (remote.statistics(), told(&remote));
            assert!(told.len() <= 3, "{case}: {told:?}");
            if is_silent {
                // One deadline passed, and nothing was asked any more.
                assert_eq!((statistics.failures, statistics.skipped), (1, 9), "{case}: {told:?}");
                assert_eq!((statistics.misses, statistics.not_uploaded), (0, 10), "{case}");
                assert!(told.len() == 1 && told[0].contains("is out"), "{case}: {told:?}");
            }
        }
        // What was written meanwhile is whole, or is not there.
        proxy.spoil(Fault::None);
        let after = kind.remote(proxy.port, "");
        for number in (0..10).chain(1000..1010) {
            match after.get(&id(number)) {
                Answer::Hit(bytes) => assert!(bytes == content(number), "{kind:?} {number}"),
                // Of what was sent with other bytes, the server has these.
                Answer::Miss => assert!(number >= 1000, "{kind:?} {number}"),
                Answer::Out => panic!("{kind:?}: {:?}", told(&after)),
            }
        }
    }
}

#[test]
fn a_server_that_stops_in_the_middle_is_done_without_until_it_is_back() {
    for kind in ALL {
        let mut server = kind.server();
        let remote = kind.builder(server.port, "").pause(Duration::ZERO).build();
        fill(&remote, 0..5);
        assert_eq!(remote.get(&id(1)), Answer::Hit(content(1)), "{kind:?}");
        server.stop();
        for number in 0..10 {
            assert_eq!(remote.get(&id(number)), Answer::Out, "{kind:?}");
        }
        assert_eq!(told(&remote).len(), 1, "{kind:?}");
        server.restart();
        if kind == Kind::S3 {
            server.make_bucket();
        }
        // Its connections are of the server that is gone: the next ones are not.
        let is_back = (0..10).any(|_| remote.get(&id(1)) != Answer::Out);
        assert!(is_back, "{kind:?}: {:?}", told(&remote));
        fill(&remote, 5..10);
        assert_eq!(
            remote.get(&id(6)),
            Answer::Hit(content(6)),
            "{kind:?}: {:?}",
            remote.statistics()
        );
    }
}

#[test]
fn a_connection_that_ended_between_two_questions_is_no_failure() {
    for kind in ALL {
        let server = kind.server();
        let proxy = Proxy::before(server.port);
        let remote = kind.remote(proxy.port, "");
        fill(&remote, 0..1);
        for round in 0..50 {
            // Ends the connections that there are; new ones work.
            proxy.spoil(Fault::None);
            let answer = remote.get(&id(0));
            assert_eq!(answer, Answer::Hit(content(0)), "{kind:?} {round}: {:?}", told(&remote));
        }
        assert_eq!(remote.statistics().failures, 0, "{kind:?}");
    }
}

#[test]
fn nobody_listens() {
    let port = gpulower_testing::servers::free_port();
    for kind in ALL {
        let remote = kind.remote(port, "");
        for number in 0..10 {
            assert_eq!(remote.get(&id(number)), Answer::Out);
        }
        let statistics = remote.statistics();
        assert!(
            statistics.failures <= 3 && statistics.failures + statistics.skipped == 10,
            "{kind:?}: {statistics:?}"
        );
        assert_eq!(told(&remote).len(), 1, "{kind:?}");
    }
}
