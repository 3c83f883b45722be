//! Many processes at once, and processes that are killed.

use std::{
    env,
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use gpulower_cache::{Answer, Remote};
use gpulower_testing::servers::{Certificate, PASSWORD, Server, USER};

use super::{Kind, content, id, opened};

const URL: &str = "GPULOWER_TEST_URL";

fn start(test: &str, url: &str) -> Child {
    Command::new(env::current_exe().expect("this program"))
        .args(["--exact", test, "--ignored"])
        .env(URL, url)
        .stdout(Stdio::null())
        .spawn()
        .expect("started")
}

fn remote() -> Option<Remote> {
    Some(opened(&env::var(URL).ok()?).build())
}

#[test]
#[ignore = "a part of `sixteen_processes_share_a_server`"]
fn one_of_many() {
    let Some(remote) = remote() else { return };
    for number in 0..40 {
        match remote.get(&id(number)) {
            Answer::Hit(bytes) => assert!(bytes == content(number), "{number}"),
            Answer::Miss => remote.put(&id(number), content(number).into()),
            Answer::Out => panic!("out: {:?}", remote.take_problems()),
        }
    }
    remote.finish(Duration::from_secs(120));
    assert_eq!(remote.take_problems(), []);
}

#[test]
fn sixteen_processes_share_a_server() {
    for kind in [Kind::Redis, Kind::Webdav, Kind::S3] {
        let server = kind.server();
        let url = kind.url(server.port, "many", super::PASSWORD, "");
        let children: Vec<Child> = (0..16).map(|_| start("processes::one_of_many", &url)).collect();
        for mut child in children {
            assert!(child.wait().expect("ended").success(), "{kind:?}");
        }
        let remote = opened(&url).build();
        for number in 0..40 {
            assert_eq!(
                remote.get(&id(number)),
                Answer::Hit(content(number)),
                "{kind:?}: {number}"
            );
        }
    }
}

#[test]
#[ignore = "a part of `authorities_are_those_that_the_machine_trusts`"]
fn by_tls() {
    let Some(remote) = remote() else { return };
    remote.put(&id(3), content(3).into());
    remote.finish(Duration::from_secs(120));
    let answer = remote.get(&id(3));
    match env::var("GPULOWER_TEST_TRUSTED").is_ok() {
        true => assert_eq!((answer, remote.take_problems()), (Answer::Hit(content(3)), vec![])),
        false => {
            assert_eq!(answer, Answer::Out);
            let told = super::told(&remote);
            assert!(told.iter().any(|text| text.contains("ertificate")), "{told:?}");
        }
    }
}

/// An authority of one's own is named as for other programs: in SSL_CERT_FILE, or the system's store.
#[test]
fn authorities_are_those_that_the_machine_trusts() {
    let certificate = Certificate::new();
    let (redis, webdav) = (
        Server::redis_with_tls(&certificate),
        Server::webdav_with_tls(&certificate),
    );
    for url in [
        format!("rediss://127.0.0.1:{}/0/tls", redis.port),
        format!("webdavs://{USER}:{PASSWORD}@127.0.0.1:{}/tls", webdav.port),
    ] {
        for is_trusted in [true, false] {
            let mut child = Command::new(env::current_exe().expect("this program"));
            child.args(["--exact", "processes::by_tls", "--ignored"]).env(URL, &url);
            child.env_remove("SSL_CERT_FILE").env_remove("SSL_CERT_DIR");
            if is_trusted {
                child
                    .env("GPULOWER_TEST_TRUSTED", "1")
                    .env("SSL_CERT_FILE", certificate.authority());
            }
            let output = child.output().expect("started");
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(
                output.status.success(),
                "{}: {is_trusted}: {text}",
                url.replace(PASSWORD, "...")
            );
            assert!(text.contains("1 passed"), "{text}");
        }
    }
}

#[test]
#[ignore = "a part of `a_writer_that_is_killed_leaves_whole_entries`"]
fn writer() {
    let Some(remote) = remote() else { return };
    loop {
        for number in 0..20 {
            // Sent again and again, over what is there.
            remote.put(&id(number), content(number).into());
        }
        remote.finish(Duration::from_secs(60));
    }
}

/// As often as `GPULOWER_TEST_KILLS` says, 30 times without it, on each service.
#[test]
fn a_writer_that_is_killed_leaves_whole_entries() {
    let kills: u64 = env::var("GPULOWER_TEST_KILLS").map_or(30, |text| text.parse().expect("a number"));
    for kind in [Kind::Redis, Kind::Webdav] {
        let server = kind.server();
        let url = kind.url(server.port, "killed", super::PASSWORD, "");
        let reader = opened(&url).build();
        let mut seen = 0;
        for round in 0..kills {
            let mut child = start("processes::writer", &url);
            // Until it writes, and then some of the time that an entry takes.
            while round == 0 && reader.get(&id(19)) == Answer::Miss {
                thread::sleep(Duration::from_millis(1));
            }
            thread::sleep(Duration::from_micros(5_000 + round % 97 * 300));
            child.kill().expect("killed");
            child.wait().expect("ended");
            for number in 0..20 {
                match reader.get(&id(number)) {
                    Answer::Hit(bytes) => {
                        assert!(bytes == content(number), "{kind:?} round {round}: {number}");
                        seen += 1;
                    }
                    Answer::Miss => {}
                    Answer::Out => panic!("{kind:?}: {:?}", reader.take_problems()),
                }
            }
            assert_eq!(
                reader.statistics().refused,
                0,
                "{kind:?} round {round}: {:?}",
                reader.take_problems()
            );
        }
        assert!(seen > 0, "{kind:?}: nothing was ever read");
    }
}
