//! Ctrl-C, and what else asks a process to end: the line of progress goes, files are written whole or not at all, and a word says
//! what was kept. Then the signal does what it would have done.

use std::{
    fs,
    sync::{
        Arc, LazyLock, Mutex, MutexGuard, Once, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM},
    flag,
    iterator::Signals,
    low_level::emulate_default_handler,
};

use super::{message, progress::Work};

/// What is at work, if that takes long.
static WORK: Mutex<Option<Work>> = Mutex::new(None);

/// Held while files get their names: a signal that comes meanwhile has to wait.
static WRITING: Mutex<()> = Mutex::new(());

/// Whether a signal has come that will end the process.
static IS_ENDING: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// From now on `work` is what a signal interrupts.
pub fn watch(work: &Work) {
    static STARTED: Once = Once::new();
    *lock(&WORK) = Some(work.clone());
    STARTED.call_once(|| {
        let signals: Vec<i32> = [SIGINT, SIGTERM, SIGHUP]
            .into_iter()
            .filter(|&signal| !is_ignored(signal))
            .collect();
        // Without a handler a signal ends the process as ever.
        let _ = start(&signals);
    });
}

/// What was at work is over: a signal has nothing to say any more. One that has come already ends the process here: what the
/// same signal did to others, such as to the command that the input comes from, is nothing to be told of.
pub fn over() {
    while IS_ENDING.load(Ordering::SeqCst) {
        thread::park();
    }
    *lock(&WORK) = None;
}

/// Keeps signals from ending the process until it is dropped.
pub fn writing() -> MutexGuard<'static, ()> {
    lock(&WRITING)
}

fn lock<T>(mutex: &'static Mutex<T>) -> MutexGuard<'static, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn start(signals: &[i32]) -> std::io::Result<()> {
    let again = Arc::new(AtomicBool::new(false));
    for &signal in signals {
        // Whoever asks twice does not want to wait for a file.
        flag::register_conditional_default(signal, Arc::clone(&again))?;
    }
    let mut arriving = Signals::new(signals)?;
    thread::Builder::new()
        .name("gpulower-signals".to_owned())
        .spawn(move || {
            for signal in arriving.forever() {
                again.store(true, Ordering::SeqCst);
                let _files = writing();
                if let Some(work) = lock(&WORK).take() {
                    work.clear_line();
                    message::line(&format!("interrupted: no file was written; {}", work.kept()));
                }
                // It does not come back from what ends a process.
                let _ = emulate_default_handler(signal);
            }
        })?;
    for &signal in signals {
        flag::register(signal, Arc::clone(&IS_ENDING))?;
    }
    Ok(())
}

/// Whether the signal was ignored when the process began, as for commands that a shell runs in the background: it stays so.
fn is_ignored(signal: i32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_ignored_is_known() {
        // Rust's runtime ignores SIGPIPE.
        assert!(is_ignored(signal_hook::consts::SIGPIPE));
        assert!(!is_ignored(signal_hook::consts::SIGUSR1));
    }
}
