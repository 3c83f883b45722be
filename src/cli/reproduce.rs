//! First lines for the files of `--dump-dir`: the command that repeats the next stage with LLVM's and NVIDIA's own tools.

use gpulower::{Checkpoint, Options, Subject, Toolkit};

/// What the commands depend on.
#[derive(Debug)]
pub struct Reproduction {
    options: Options,
}

impl Reproduction {
    pub fn new(options: Options, _toolkit: &Toolkit) -> Self {
        Self { options }
    }

    pub fn header(&self, _s: Subject<'_>, _c: Checkpoint, _name: &str, _text: &str) -> String {
        let _ = &self.options;
        String::new()
    }
}
