//! Many threads: failures among kernels that compile, in this process and in workers, some of which are killed.

use std::{
    collections::BTreeMap,
    error::Error,
    fs,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use gpulower::Compiler;
use rustix::process::{Pid, Signal, kill_process};

use super::{
    Budget,
    cases::{BAD, CUBINS, Case, GOOD, Outcome},
};

/// Nothing that is compiled here takes this long, on any machine.
const DEADLOCK: Duration = Duration::from_secs(600);

/// The name under which references are made.
const NAME: &str = "reference";

#[derive(Default)]
struct Tally {
    /// How often each kind of case came out as it should.
    counts: Mutex<BTreeMap<&'static str, usize>>,
    wrong: Mutex<Vec<String>>,
    compiles: AtomicUsize,
    killed: AtomicUsize,
    done: AtomicBool,
}

impl Tally {
    fn count(&self, kind: &'static str) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        *counts.entry(kind).or_default() += 1;
        self.compiles.fetch_add(1, Ordering::SeqCst);
    }

    fn wrong(&self, text: String) {
        self.wrong.lock().unwrap_or_else(PoisonError::into_inner).push(text);
    }
}

/// Compiles on `threads` threads; each result has to be that of the same case alone.
pub fn run(here: &Compiler, there: &Compiler, threads: usize, budget: Budget) -> Result<(), Box<dyn Error>> {
    let cases: Vec<&Case> = GOOD.iter().chain(CUBINS).chain(BAD).collect();
    let references: Vec<Outcome> = cases.iter().map(|case| case.compile(here, NAME)).collect();
    for (case, reference) in cases.iter().zip(&references) {
        if reference.is_ok() != (case.kind == "compiles") {
            return Err(format!("the case is not what it should be: {case:?}: {reference:?}").into());
        }
    }
    let tally = Tally::default();
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|thread| {
                let (cases, references, tally) = (&cases, &references, &tally);
                scope.spawn(move || work(thread, here, there, cases, references, budget, tally))
            })
            .collect();
        scope.spawn(|| kill(there, &tally));
        scope.spawn(|| watch(&tally));
        for worker in workers {
            if worker.join().is_err() {
                tally.wrong("a thread panicked".to_owned());
            }
        }
        tally.done.store(true, Ordering::SeqCst);
    });
    let counts = tally.counts.into_inner().unwrap_or_else(PoisonError::into_inner);
    for (kind, count) in &counts {
        println!("{count:7}  {kind}");
    }
    let killed = tally.killed.into_inner();
    println!("{killed:7}  workers killed");
    let wrong = tally.wrong.into_inner().unwrap_or_else(PoisonError::into_inner);
    for text in wrong.iter().take(10) {
        eprintln!("wrong: {text}");
    }
    match wrong.len() {
        0 => Ok(()),
        count => Err(format!("{count} results were not what they should be").into()),
    }
}

fn work(
    thread: usize,
    here: &Compiler,
    there: &Compiler,
    cases: &[&Case],
    references: &[Outcome],
    budget: Budget,
    tally: &Tally,
) {
    // A step that has no factor in common with the number of cases visits all of them, in another order on each thread.
    let mut next = thread;
    let mut round = 0usize;
    while !budget.is_spent(tally.compiles.load(Ordering::SeqCst)) {
        next = (next + 7 + thread) % cases.len();
        round += 1;
        let (Some(case), Some(reference)) = (cases.get(next), references.get(next)) else {
            continue;
        };
        let name = format!("thread{thread}round{round}");
        let expected = match reference {
            Ok(bytes) => Ok(bytes.clone()),
            Err(text) => Err(text.replace(NAME, &name)),
        };
        let isolated = round.is_multiple_of(2);
        let compiler = if isolated { there } else { here };
        loop {
            let outcome = case.compile(compiler, &name);
            if outcome == expected {
                tally.count(case.kind);
                break;
            }
            // A good kernel has the name that its file gives it, in all but the stage that reads.
            let is_own = |text: &String| case.kind == "compiles" || text.contains(&name);
            let is_crash =
                |text: &String| isolated && is_own(text) && text.contains("the worker process ended unexpectedly");
            match outcome {
                Err(text) if is_crash(&text) && tally.killed.load(Ordering::SeqCst) > 0 => {
                    tally.count("lost with a worker that was killed, and repeated");
                }
                Err(text) => {
                    tally.wrong(format!("{case:?} as {name}: {text}\nand not {expected:?}"));
                    break;
                }
                Ok(_) => {
                    tally.wrong(format!("{case:?} as {name} gave other bytes"));
                    break;
                }
            }
        }
    }
}

/// Compilations between two workers that are killed. A clock would not do: on a machine under load none would get done.
const BETWEEN_KILLS: usize = 16;

/// Kills a worker now and then.
fn kill(there: &Compiler, tally: &Tally) {
    let mut turn = 0usize;
    let mut next = BETWEEN_KILLS;
    while !tally.done.load(Ordering::SeqCst) {
        thread::sleep(Duration::from_millis(5));
        let compiles = tally.compiles.load(Ordering::SeqCst);
        if compiles < next {
            continue;
        }
        next = compiles + BETWEEN_KILLS;
        let ids = there.worker_ids();
        turn += 1;
        let Some(id) = ids.get(turn % ids.len().max(1)).copied() else {
            continue;
        };
        if !is_child(id) {
            continue;
        }
        if let Some(process) = i32::try_from(id).ok().and_then(Pid::from_raw) {
            tally.killed.fetch_add(1, Ordering::SeqCst);
            let _ = kill_process(process, Signal::KILL);
        }
    }
}

/// Whether a process was started by this one.
fn is_child(id: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    // proc(5): the parent is the second field after the name.
    let parent = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(1));
    parent.is_some_and(|parent| parent == std::process::id().to_string())
}

/// Ends the process when nothing moves any more: no thread could.
fn watch(tally: &Tally) {
    let mut before = (Instant::now(), 0);
    while !tally.done.load(Ordering::SeqCst) {
        thread::sleep(Duration::from_millis(500));
        let compiles = tally.compiles.load(Ordering::SeqCst);
        if compiles != before.1 {
            before = (Instant::now(), compiles);
        }
        if before.0.elapsed() > DEADLOCK {
            eprintln!("deadlock: no compilation has ended for {DEADLOCK:?}, after {compiles}");
            std::process::exit(1);
        }
    }
}
