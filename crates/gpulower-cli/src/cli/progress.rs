//! A sign of life on a terminal while a compilation takes longer than a moment.

use std::{
    io::{self, IsTerminal},
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{self, RecvTimeoutError, Sender},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use gpulower::{self as library, ProgressCallback, Stage};
use indicatif::{ProgressBar, ProgressStyle};

/// What is over sooner than this needs no sign of life.
const PATIENCE: Duration = Duration::from_secs(1);

const REDRAW: Duration = Duration::from_millis(120);

/// Counts modules, and shows the count on a terminal.
#[derive(Debug)]
pub struct Progress {
    state: Arc<Mutex<State>>,
    display: Option<(Sender<()>, JoinHandle<()>)>,
}

/// How far the compilation is.
#[derive(Debug, Default)]
struct State {
    total: usize,
    done: usize,
    from_cache: usize,
    /// The last that was heard of: module, target, stage.
    last: Option<(String, String, Stage)>,
}

impl Progress {
    /// Starts to watch the compilation of `inputs`.
    pub fn start(inputs: &[PathBuf]) -> Self {
        let state = Arc::new(Mutex::new(State::default()));
        let display = io::stderr().is_terminal().then(|| {
            let (sender, receiver) = mpsc::channel();
            let name = match inputs {
                [input] => input.display().to_string(),
                inputs => format!("{} inputs", inputs.len()),
            };
            let state = Arc::clone(&state);
            let start = Instant::now();
            let thread = thread::spawn(move || {
                let goes_on = |limit| receiver.recv_timeout(limit) == Err(RecvTimeoutError::Timeout);
                if !goes_on(PATIENCE) {
                    return;
                }
                let spinner = ProgressBar::new_spinner().with_elapsed(start.elapsed());
                if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg} [{elapsed}]") {
                    spinner.set_style(style);
                }
                while goes_on(REDRAW) {
                    let message = state.lock().unwrap_or_else(PoisonError::into_inner).message(&name);
                    spinner.set_message(message);
                    spinner.tick();
                }
                spinner.finish_and_clear();
            });
            (sender, thread)
        });
        Self { state, display }
    }

    /// What the compiler tells of its progress.
    pub fn callback(&self) -> ProgressCallback {
        let state = Arc::clone(&self.state);
        Arc::new(move |progress| state.lock().unwrap_or_else(PoisonError::into_inner).note(progress))
    }

    /// Removes the display.
    pub fn end(self) {
        if let Some((sender, thread)) = self.display {
            drop(sender);
            // A panic of the display is no reason to fail.
            let _ = thread.join();
        }
    }
}

impl State {
    fn note(&mut self, progress: &library::Progress<'_>) {
        match *progress {
            library::Progress::Planned { more } => self.total += more,
            library::Progress::Stage { subject, stage } => {
                self.last = Some((subject.module.to_owned(), subject.target.to_string(), stage));
            }
            library::Progress::Finished { from_cache, .. } => {
                self.done += 1;
                self.from_cache += usize::from(from_cache);
            }
            _ => {}
        }
    }

    fn message(&self, name: &str) -> String {
        let mut text = format!("compiling {}: ", super::message::printable(name));
        match self.total {
            0 => text.push_str("reading"),
            total => text.push_str(&format!("{} of {total} done", self.done)),
        }
        if self.from_cache > 0 {
            text.push_str(&format!(" ({} from the cache)", self.from_cache));
        }
        if let Some((module, target, stage)) = &self.last {
            text.push_str(&format!(
                ", {} for {target}: {stage}",
                super::message::printable(module)
            ));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use gpulower::Subject;

    use super::*;

    #[test]
    fn modules_are_counted() {
        let mut state = State::default();
        assert_eq!(state.message("a.mlir"), "compiling a.mlir: reading");
        let target = "sm_90".parse().expect("a target");
        let subject = Subject {
            module: "m",
            target: &target,
        };
        let finished = |from_cache| library::Progress::Finished {
            subject,
            from_cache,
            failed: false,
            done: 1,
            total: 3,
        };
        let stage = Stage::Optimize;
        for progress in [
            library::Progress::Planned { more: 3 },
            finished(true),
            library::Progress::Begun { subject },
            library::Progress::Stage { subject, stage },
            finished(false),
        ] {
            state.note(&progress);
        }
        assert_eq!(
            state.message("a.mlir"),
            "compiling a.mlir: 2 of 3 done (1 from the cache), m for sm_90: optimize"
        );
    }
}
