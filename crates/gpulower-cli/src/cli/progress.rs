//! A sign of life on a terminal while a compilation takes longer than a moment.

use std::{
    io::{self, IsTerminal},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc::{self, RecvTimeoutError, Sender},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use gpulower::inkwell::module::Module;
use gpulower::{Checkpoint, StageListener, Subject};
use indicatif::{ProgressBar, ProgressStyle};

/// What is over sooner than this needs no sign of life.
const PATIENCE: Duration = Duration::from_secs(1);

const REDRAW: Duration = Duration::from_millis(120);

/// Counts modules, and shows the count on a terminal.
#[derive(Debug)]
pub struct Progress {
    count: Arc<Count>,
    display: Option<(Sender<()>, JoinHandle<()>)>,
}

/// How many modules have begun and how many have been linked: from then on LLVM is at work.
#[derive(Debug, Default)]
struct Count {
    begun: AtomicUsize,
    linked: AtomicUsize,
}

impl Progress {
    /// Starts to watch the compilation of `input`.
    pub fn start(input: &Path) -> Self {
        let count = Arc::new(Count::default());
        let display = io::stderr().is_terminal().then(|| {
            let (sender, receiver) = mpsc::channel();
            let (name, count) = (input.display().to_string(), Arc::clone(&count));
            let start = Instant::now();
            let thread = thread::spawn(move || {
                let goes_on = |limit| receiver.recv_timeout(limit) == Err(RecvTimeoutError::Timeout);
                if !goes_on(PATIENCE) {
                    return;
                }
                let spinner = ProgressBar::new_spinner().with_elapsed(start.elapsed());
                if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} [{elapsed}]") {
                    spinner.set_style(style);
                }
                while goes_on(REDRAW) {
                    spinner.set_message(count.message(&name));
                    spinner.tick();
                }
                spinner.finish_and_clear();
            });
            (sender, thread)
        });
        Self { count, display }
    }

    /// What counts the modules.
    pub fn listener(&self) -> Arc<dyn StageListener> {
        Arc::clone(&self.count) as _
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

impl Count {
    fn message(&self, name: &str) -> String {
        let begun = self.begun.load(Ordering::Relaxed);
        let linked = self.linked.load(Ordering::Relaxed);
        format!("compiling {name}: modules begun {begun}, linked {linked}")
    }
}

impl StageListener for Count {
    fn only_watches(&self) -> bool {
        true
    }

    fn wants_optimized(&self) -> bool {
        false
    }

    fn llvm(&self, _: Subject<'_>, checkpoint: Checkpoint, _: &Module<'_>) -> Result<Option<Vec<u8>>, String> {
        match checkpoint {
            Checkpoint::Initial => self.begun.fetch_add(1, Ordering::Relaxed),
            Checkpoint::Linked => self.linked.fetch_add(1, Ordering::Relaxed),
            _ => 0,
        };
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_counted() {
        let count = Count::default();
        let context = gpulower::inkwell::context::Context::create();
        let module = context.create_module("m");
        let target = "sm_90".parse().expect("a target");
        let subject = Subject {
            module: "m",
            target: &target,
        };
        for checkpoint in [
            Checkpoint::Initial,
            Checkpoint::Linked,
            Checkpoint::Optimized,
            Checkpoint::Initial,
        ] {
            assert_eq!(count.llvm(subject, checkpoint, &module), Ok(None));
        }
        assert_eq!(count.message("a.mlir"), "compiling a.mlir: modules begun 2, linked 1");
    }
}
