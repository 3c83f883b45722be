//! Conditional writes, where a service has them.

use std::{sync::Barrier, thread, time::Duration};

use gpulower_cache::{Answer, Written};

use super::{Kind, content, fill, id};

#[test]
fn of_machines_that_want_the_same_entry_one_makes_it() {
    let server = Kind::S3.server();
    let machines = 4;
    let barrier = Barrier::new(machines);
    let made: usize = thread::scope(|scope| {
        let threads: Vec<_> = (0..machines)
            .map(|_| {
                scope.spawn(|| {
                    let remote = Kind::S3.builder(server.port, "").wait(Duration::from_secs(60)).build();
                    barrier.wait();
                    let mut made = 0;
                    for number in 0..5 {
                        if remote.get(&id(number)) != Answer::Miss {
                            continue;
                        }
                        match remote.claim(&id(number), &|| false) {
                            Some(bytes) => assert_eq!(bytes, content(number)),
                            None => {
                                made += 1;
                                remote.put(&id(number), content(number).into());
                            }
                        }
                        remote.abandon(&id(number));
                    }
                    made
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("ended")).sum()
    });
    // A machine may claim what was made between its question and its claim.
    assert!((5..20).contains(&made), "{made}");
    let remote = Kind::S3.remote(server.port, "");
    let held = remote.list().unwrap();
    assert!(held.len() == 5 && held.iter().all(|held| held.id.is_some()), "{held:?}");
}

#[test]
fn what_is_there_is_not_written_again() {
    let server = Kind::S3.server();
    let remote = Kind::S3.remote(server.port, "");
    assert_eq!(remote.send(&id(0), b"one"), Ok(Written::New));
    assert_eq!(remote.send(&id(0), b"two"), Ok(Written::Existed));
    assert_eq!(remote.get(&id(0)), Answer::Hit(b"one".to_vec()));
    fill(&remote, 0..1);
    assert_eq!(remote.statistics().known, 1);
}
