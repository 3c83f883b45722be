//! A sign of life on a terminal while a command takes longer than a moment.

use std::{
    io::{self, IsTerminal, Write},
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{self, RecvTimeoutError, Sender},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use gpulower::{self as library, ProgressCallback, Stage};

use super::interruption;

/// What is over sooner than this needs no sign of life.
const PATIENCE: Duration = Duration::from_secs(1);

const REDRAW: Duration = Duration::from_millis(120);

/// Columns that are left free, for the `^C` of whoever interrupts: on a line of its own it would stay.
const MARGIN: usize = 4;

/// Counts modules and kernels, and shows the counts on a terminal.
#[derive(Debug)]
pub struct Progress {
    work: Work,
    display: Option<(Sender<()>, JoinHandle<()>)>,
}

/// What is at work.
#[derive(Clone, Debug)]
pub struct Work {
    state: Arc<Mutex<State>>,
    line: Arc<Mutex<Line>>,
}

/// The line on the terminal.
#[derive(Debug, Default, PartialEq, Eq)]
enum Line {
    #[default]
    Empty,
    Shown,
    /// Nothing is written to it any more.
    Over,
}

/// How far it is.
#[derive(Debug, Default)]
struct State {
    /// What is done to what: `compiling a.mlir`.
    what: String,
    /// Whether results are kept as they come.
    keeps: bool,
    total: usize,
    done: usize,
    from_cache: usize,
    /// The last that was heard of: module, target, stage.
    last: Option<(String, String, Stage)>,
    /// Of this, so many kernels of so many are done.
    kernels: Option<(usize, usize)>,
}

impl Progress {
    /// Starts to watch a command that does something, such as `compiling`, to inputs. With a cache (`keeps`), what is done is
    /// not lost when the command is interrupted.
    pub fn start(doing: &str, inputs: &[PathBuf], keeps: bool) -> Self {
        let name = match inputs {
            [input] => super::message::printable(&input.display().to_string()),
            inputs => format!("{} inputs", inputs.len()),
        };
        let state = State {
            what: format!("{doing} {name}"),
            keeps,
            ..State::default()
        };
        let work = Work {
            state: Arc::new(Mutex::new(state)),
            line: Arc::default(),
        };
        let mut progress = Self { work, display: None };
        if io::stderr().is_terminal() {
            progress.show();
        }
        interruption::watch(&progress.work);
        progress
    }

    fn show(&mut self) {
        let (sender, receiver) = mpsc::channel();
        let start = Instant::now();
        let work = self.work.clone();
        let thread = thread::spawn(move || {
            let goes_on = |limit| receiver.recv_timeout(limit) == Err(RecvTimeoutError::Timeout);
            if !goes_on(PATIENCE) {
                return;
            }
            let mut turn = "|/-\\".chars().cycle();
            while goes_on(REDRAW) {
                let message = work.state().message(start.elapsed());
                work.draw(&format!("{} {message}", turn.next().unwrap_or(' ')));
            }
            work.clear_line();
        });
        self.display = Some((sender, thread));
    }

    /// What the compiler tells of its progress.
    pub fn callback(&self) -> ProgressCallback {
        let work = self.work.clone();
        Arc::new(move |progress| work.state().note(progress))
    }

    /// Removes the display.
    pub fn end(self) {
        interruption::over();
        if let Some((sender, thread)) = self.display {
            drop(sender);
            // A panic of the display is no reason to fail.
            let _ = thread.join();
        }
    }
}

impl Work {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Draws the line. When the terminal is gone, there is nobody to see it.
    fn draw(&self, text: &str) {
        let mut line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        if *line != Line::Over {
            *line = Line::Shown;
            let columns = rustix::termios::tcgetwinsize(io::stderr()).map_or(80, |size| size.ws_col);
            let text = cut(text, usize::from(columns).saturating_sub(MARGIN));
            let _ = write!(io::stderr().lock(), "\r\u{1b}[2K{text}");
        }
    }

    /// Removes the line for good.
    pub fn clear_line(&self) {
        let mut line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        if *line == Line::Shown {
            let _ = write!(io::stderr().lock(), "\r\u{1b}[2K");
        }
        *line = Line::Over;
    }

    /// What is left when it ends early.
    pub fn kept(&self) -> String {
        self.state().kept()
    }
}

impl State {
    fn note(&mut self, progress: &library::Progress<'_>) {
        match *progress {
            library::Progress::Planned { more } => self.total += more,
            library::Progress::Stage { subject, stage } => {
                self.last = Some((subject.module.to_owned(), subject.target.to_string(), stage));
                self.kernels = None;
            }
            library::Progress::Kernels { subject, done, total } => {
                self.last = Some((subject.module.to_owned(), subject.target.to_string(), Stage::PtxToCubin));
                self.kernels = Some((done, total));
            }
            library::Progress::Finished { from_cache, .. } => {
                self.done += 1;
                self.from_cache += usize::from(from_cache);
            }
            _ => {}
        }
    }

    fn message(&self, passed: Duration) -> String {
        let mut text = format!("{} [{}]", self.what, shown(passed));
        if self.total > 0 {
            text.push_str(&format!(": {} of {} done", self.done, self.total));
        }
        if self.from_cache > 0 {
            text.push_str(&format!(" ({} from the cache)", self.from_cache));
        }
        if let Some(left) = self.left(passed) {
            text.push_str(&format!(", about {} left", shown(left)));
        }
        if let Some((module, target, stage)) = &self.last {
            let module = super::message::printable(module);
            text.push_str(&format!(", {module} for {target}: {stage}"));
        }
        if let Some((done, total)) = self.kernels {
            text.push_str(&format!(", {done} of {total} kernels"));
        }
        text
    }

    /// The time that the rest takes if it takes as long as what was done. Not said of a first few, nor where what was done came
    /// from the cache.
    fn left(&self, passed: Duration) -> Option<Duration> {
        /// Results from which others are concluded.
        const ENOUGH: usize = 4;
        let made = self.done.checked_sub(self.from_cache).filter(|&made| made >= ENOUGH)?;
        let rest = self.total.checked_sub(self.done).filter(|&rest| rest > 0)?;
        // A tenth at least, and no more of the cache than was compiled.
        (self.done * 10 >= self.total && self.from_cache <= made).then(|| passed.mul_f64(rest as f64 / made as f64))
    }

    fn kept(&self) -> String {
        let results = |count| if count == 1 { "result" } else { "results" };
        let (done, total) = (self.done, self.total);
        match (self.keeps, done) {
            (true, 1..) => format!(
                "{done} of {total} {} are in the cache, and need not be compiled again",
                results(total)
            ),
            (true, 0) if self.kernels.is_some_and(|(done, _)| done > 0) => {
                "the kernels that were done are in the cache".to_owned()
            }
            _ => "nothing was kept".to_owned(),
        }
    }
}

fn cut(text: &str, width: usize) -> String {
    match text.char_indices().nth(width) {
        Some((end, _)) => text.get(..end).unwrap_or_default().to_owned(),
        None => text.to_owned(),
    }
}

fn shown(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..90 => format!("{} s", seconds.max(1)),
        seconds => format!("{} min", (seconds + 30) / 60),
    }
}

#[cfg(test)]
mod tests {
    use gpulower::Subject;

    use super::*;

    fn finished(from_cache: bool) -> library::Progress<'static> {
        // A leak of a test.
        let target = Box::leak(Box::new("sm_90".parse().expect("a target")));
        library::Progress::Finished {
            subject: Subject { module: "m", target },
            from_cache,
            failed: false,
            done: 1,
            total: 3,
        }
    }

    #[test]
    fn modules_and_kernels_are_counted() {
        let mut state = State {
            what: "compiling a.mlir".to_owned(),
            ..State::default()
        };
        assert_eq!(state.message(Duration::ZERO), "compiling a.mlir [1 s]");
        let target = "sm_90".parse().expect("a target");
        let subject = Subject {
            module: "m",
            target: &target,
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
            state.message(Duration::ZERO),
            "compiling a.mlir [1 s]: 2 of 3 done (1 from the cache), m for sm_90: optimize"
        );
        state.note(&library::Progress::Kernels {
            subject,
            done: 5,
            total: 64,
        });
        assert_eq!(
            state.message(Duration::ZERO),
            "compiling a.mlir [1 s]: 2 of 3 done (1 from the cache), m for sm_90: ptx-to-cubin, 5 of 64 kernels"
        );
    }

    #[test]
    fn the_time_left_is_said_when_it_can_be_known() {
        let mut state = State::default();
        state.note(&library::Progress::Planned { more: 20 });
        let second = Duration::from_secs(1);
        (0..3).for_each(|_| state.note(&finished(false)));
        assert_eq!(state.left(second), None, "of three, nothing can be concluded");
        state.note(&finished(false));
        assert_eq!(state.left(second), Some(Duration::from_secs(4)));
        assert!(state.message(second).contains("4 of 20 done, about 4 s left"));
        (0..5).for_each(|_| state.note(&finished(true)));
        assert_eq!(state.left(second), None, "the cache has more than was compiled");
        assert_eq!([shown(second / 2), shown(second * 200)], ["1 s", "3 min"]);
    }

    #[test]
    fn what_is_kept_is_said() {
        let mut state = State {
            keeps: true,
            ..State::default()
        };
        assert_eq!(state.kept(), "nothing was kept");
        state.note(&library::Progress::Planned { more: 8 });
        state.note(&finished(false));
        assert_eq!(
            state.kept(),
            "1 of 8 results are in the cache, and need not be compiled again"
        );
        state.keeps = false;
        assert_eq!(state.kept(), "nothing was kept");
    }
}
