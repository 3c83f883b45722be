//! What a session is made with.

use std::sync::{Arc, Mutex, RwLock};
use std::thread::available_parallelism;

use super::{
    JitSession, Shared,
    book::Book,
    compile::SessionCompiler,
    error::SessionError,
    target::{check_emit, target_of},
};
use crate::{
    compiler::{Compiler, Emit},
    options::{Options, Speed},
    runtime::{Context, LoadOptions},
    target::Target,
};

/// Gathers what a [`JitSession`] is made with.
#[derive(Debug)]
pub struct JitSessionBuilder {
    compiler: Arc<Compiler>,
    context: Option<Context>,
    target: Option<Target>,
    emit: Emit,
    load: LoadOptions,
    threads: Option<usize>,
    fast_first: bool,
}

impl JitSessionBuilder {
    pub(super) fn new(compiler: Arc<Compiler>) -> Self {
        Self {
            compiler,
            context: None,
            target: None,
            emit: Emit::Binary,
            load: LoadOptions::default(),
            threads: None,
            fast_first: false,
        }
    }

    /// Where modules are loaded. Without one, the session only compiles.
    #[must_use]
    pub fn context(mut self, context: &Context) -> Self {
        self.context = Some(context.clone());
        self
    }

    /// What to compile for. Default: the context's device, with all that its chip has (`sm_90a` for 9.0).
    #[must_use]
    pub fn target(mut self, target: Target) -> Self {
        self.target = Some(target);
        self
    }

    /// What to make. Default: [`Emit::Binary`], machine code. With [`Emit::Ptx`] the driver compiles, and nothing of CUDA's
    /// toolkit is needed.
    #[must_use]
    pub fn emit(mut self, emit: Emit) -> Self {
        self.emit = emit;
        self
    }

    /// How images are loaded.
    #[must_use]
    pub fn load_options(mut self, options: LoadOptions) -> Self {
        self.load = options;
        self
    }

    /// How many modules to compile ahead at once, at most. Default: one for each processor.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// Whether what is added is compiled with `speed=fast` first, and on another thread at the speed of the compiler's options.
    /// The better code takes the name when the module or one of its functions is looked up next and it is ready: look
    /// functions up for each launch, and no launch ever changes under way. A module with variables is compiled once, at the
    /// compiler's speed, since other code has variables of its own; so is what is made into a container.
    /// [`JitSession::finish_better`] tells what went wrong. Default: no.
    #[must_use]
    pub fn fast_first(mut self, fast_first: bool) -> Self {
        self.fast_first = fast_first;
        self
    }

    /// Makes the session. No thread is started yet.
    ///
    /// # Errors
    ///
    /// [`SessionError::NoTarget`], [`SessionError::UnknownDevice`], [`SessionError::NotLoadable`] or [`SessionError::Emit`].
    pub fn build(self) -> Result<JitSession, SessionError> {
        let target = match (self.target, &self.context) {
            (Some(target), _) => target,
            (None, Some(context)) => target_of(context.device().target()?)?,
            (None, None) => return Err(SessionError::NoTarget),
        };
        check_emit(self.emit, &target)?;
        let threads = self
            .threads
            .unwrap_or_else(|| available_parallelism().map_or(1, usize::from));
        let ahead = self.compiler.pool().maker(threads);
        let fast = (self.fast_first && self.compiler.options().speed != Speed::Fast).then(|| {
            let options = Options {
                speed: Speed::Fast,
                ..self.compiler.options().clone()
            };
            let compiler = Arc::new(self.compiler.with_options(options));
            SessionCompiler::new(compiler, target, self.emit, threads.max(1))
        });
        Ok(JitSession {
            shared: Arc::new(Shared {
                compiler: SessionCompiler::new(self.compiler, target, self.emit, threads.max(1)),
                fast,
                load: self.load,
                book: Mutex::new(Book::new()),
                device: RwLock::new(self.context),
            }),
            better: Mutex::default(),
            ahead,
        })
    }
}
