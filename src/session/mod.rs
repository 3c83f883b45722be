//! Sessions: kernels that are compiled and loaded one by one while a program runs.
//!
//! ```no_run
//! use gpulower::{Compiler, runtime::Driver, session::JitSession};
//!
//! let context = Driver::cuda()?.device(0)?.context()?;
//! let session = JitSession::new(Compiler::builder().build(), &context)?;
//!
//! session.add("saxpy", std::fs::read("saxpy.mlir")?)?;
//! let saxpy = session.function("saxpy", "saxpy")?;
//! // ... launch it, as any function of `gpulower::runtime` ...
//!
//! // Replaced: `saxpy` stays what it was. Only what changed is compiled and loaded.
//! session.add("saxpy", std::fs::read("saxpy2.mlir")?)?;
//!
//! // Compiled ahead, on another thread.
//! let gelu = session.prepare("gelu", std::fs::read("gelu.mlir")?)?;
//! gelu.wait()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A name stands for one image: that of one `gpu.module`, or of several that are joined ([`Options::device_link`]). Each is
//! loaded on its own, so that adding one costs the same however many there are. `docs/sessions.md` tells more.
//!
//! [`Options::device_link`]: crate::Options::device_link

mod better;
mod book;
mod builder;
mod compile;
mod content;
mod error;
mod image;
mod module;
mod pending;
mod target;

#[cfg(test)]
mod tests;

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, mpsc},
};

use self::{
    better::{Better, has_variables},
    book::Book,
    compile::{Compiled, SessionCompiler, Source, explain, internal},
    pending::State,
};
pub use self::{
    book::Change,
    builder::JitSessionBuilder,
    error::{SessionError, UndefinedSymbol},
    module::SessionModule,
    pending::Pending,
};
use crate::{
    compiler::{Compiler, JobMaker},
    runtime::{self, Context, Function, LoadOptions},
    target::Target,
};

/// Kernels that are compiled and loaded one by one, by name.
///
/// It is `Send` and `Sync`: any thread may add, replace and look up. What fails leaves it as it was.
pub struct JitSession {
    shared: Arc<Shared>,
    better: Mutex<Better>,
    ahead: JobMaker,
}

/// What a session and its pending modules have in common.
struct Shared {
    compiler: SessionCompiler,
    /// What compiles first, where better code comes later.
    fast: Option<SessionCompiler>,
    load: LoadOptions,
    book: Mutex<Book<SessionModule>>,
    /// Held for reading while a module is loaded, so that a session is rebuilt with all of them or without.
    device: RwLock<Option<Context>>,
}

/// A module that was added.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Added {
    /// The module.
    pub module: SessionModule,
    /// What that did to the session.
    pub change: Change,
    /// Whether it was compiled for this. If not, its content was known: from the module of that name, from one of another
    /// name, or from one that somebody still has a handle of.
    pub compiled: bool,
}

impl JitSession {
    /// A session that compiles for the context's device, and loads into the context.
    ///
    /// # Errors
    ///
    /// [`SessionError::Device`] or [`SessionError::UnknownDevice`].
    pub fn new(compiler: impl Into<Arc<Compiler>>, context: &Context) -> Result<Self, SessionError> {
        Self::builder(compiler).context(context).build()
    }

    /// Starts to make a session with other settings.
    #[must_use]
    pub fn builder(compiler: impl Into<Arc<Compiler>>) -> JitSessionBuilder {
        JitSessionBuilder::new(compiler.into())
    }

    /// Adds a module, or replaces the one of that name: MLIR (text or bytecode), device LLVM IR or PTX, as
    /// [`Compiler::compile_source`] takes it. It is compiled on this thread.
    ///
    /// Where the content is that of the module which has the name, nothing is done. Where another module of the session has
    /// it, the image is loaded a second time, with variables of its own, and nothing is compiled.
    ///
    /// # Errors
    ///
    /// [`SessionError`]. The session is as it was then.
    pub fn add(&self, name: &str, source: impl AsRef<[u8]>) -> Result<Added, SessionError> {
        self.add_source(name, Source::bytes(source.as_ref()))
    }

    /// As [`add`](Self::add), for a module of the caller's own MLIR context. Nothing of it is kept.
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add).
    pub fn add_module(&self, name: &str, module: &melior::ir::Module<'_>) -> Result<Added, SessionError> {
        self.add_source(name, Source::module(module))
    }

    fn add_source(&self, name: &str, source: Source) -> Result<Added, SessionError> {
        let Some(fast) = &self.shared.fast else {
            return self.shared.add(name, &source);
        };
        let known = lock(&self.shared.book).made_from(name, source.hash);
        if let Some(module) = known {
            return Ok(Added::unchanged(module));
        }
        let compiled = fast.compile(name, &source);
        let compiled = compiled.map_err(|error| explain(name, error, |symbol| self.shared.defines(symbol)))?;
        if has_variables(&compiled.image.artifact) {
            let added = self.shared.add(name, &source)?;
            drop(lock(&self.better).forget(name));
            return Ok(added);
        }
        let added = self.shared.install(name, compiled)?;
        if added.change != Change::Unchanged {
            let pending = self.ahead(name, source, Shared::compile_better);
            let generation = added.module.generation();
            let old = match pending {
                Ok(pending) => lock(&self.better).expect(name, generation, pending),
                Err(error) => {
                    let mut better = lock(&self.better);
                    better.fail(error);
                    better.forget(name)
                }
            };
            // With no lock held.
            drop(old);
        }
        Ok(added)
    }

    /// Waits until everything that was added is compiled at the session's own speed and has taken its name
    /// ([`JitSessionBuilder::fast_first`]), and says what went wrong with that since it was last asked. Where better code could
    /// not be made or loaded, the fast code has kept the name. For one thread: of two that call it at once, the second does not wait for
    /// what the first one took.
    pub fn finish_better(&self) -> Vec<SessionError> {
        let all = lock(&self.better).all();
        for (name, (generation, pending)) in all {
            self.take_better(&name, generation, pending);
        }
        lock(&self.better).failures()
    }

    /// Gives a name to the better image, if that has come.
    fn swap(&self, name: &str) {
        let ready = match &self.shared.fast {
            Some(_) => lock(&self.better).ready(name),
            None => None,
        };
        if let Some((generation, pending)) = ready {
            self.take_better(name, generation, pending);
        }
    }

    fn take_better(&self, name: &str, generation: u64, pending: Pending) {
        let taken = pending
            .outcome()
            .and_then(|compiled| self.shared.replace(name, generation, compiled));
        if let Err(error) = taken {
            tracing::warn!(module = name, %error, "the fast code stays");
            lock(&self.better).fail(error);
        }
    }

    /// Begins to compile a module on another thread, to be added by [`Pending::wait`]. What is added does not depend on which
    /// compilation ends first.
    ///
    /// # Errors
    ///
    /// [`SessionError::NoThread`]. What fails later is told by [`Pending::wait`].
    pub fn prepare(&self, name: &str, source: impl AsRef<[u8]>) -> Result<Pending, SessionError> {
        self.compile_ahead(name, Source::bytes(source.as_ref()))
    }

    /// As [`prepare`](Self::prepare), for a module of the caller's own MLIR context.
    ///
    /// # Errors
    ///
    /// As [`prepare`](Self::prepare).
    pub fn prepare_module(&self, name: &str, module: &melior::ir::Module<'_>) -> Result<Pending, SessionError> {
        self.compile_ahead(name, Source::module(module))
    }

    fn compile_ahead(&self, name: &str, source: Source) -> Result<Pending, SessionError> {
        self.ahead(name, source, Shared::compile)
    }

    fn ahead(
        &self,
        name: &str,
        source: Source,
        compile: fn(&Shared, &str, &Source) -> Result<Compiled, SessionError>,
    ) -> Result<Pending, SessionError> {
        let (sender, receiver) = mpsc::channel();
        let wanted = Arc::new(());
        let still_wanted = Arc::downgrade(&wanted);
        let (shared, owned) = (Arc::clone(&self.shared), name.to_owned());
        let job = move || {
            if still_wanted.strong_count() == 0 {
                return;
            }
            let outcome = catch_unwind(AssertUnwindSafe(|| compile(&shared, &owned, &source)))
                .unwrap_or_else(|panic| Err(internal(&owned, &*panic)));
            // Nobody listens where it was dropped meanwhile.
            let _ = sender.send(outcome);
        };
        self.ahead.run(job).map_err(|source| SessionError::NoThread {
            module: name.to_owned(),
            source,
        })?;
        Ok(Pending {
            shared: Arc::clone(&self.shared),
            name: name.to_owned(),
            state: State::Waiting(receiver),
            _wanted: wanted,
        })
    }

    /// The module of that name.
    ///
    /// # Errors
    ///
    /// [`SessionError::NoSuchModule`].
    pub fn module(&self, name: &str) -> Result<SessionModule, SessionError> {
        self.swap(name);
        let book = lock(&self.shared.book);
        book.get(name).ok_or_else(|| SessionError::NoSuchModule {
            name: name.to_owned(),
            near: {
                // No order of a hash table gets into a message.
                let names: std::collections::BTreeSet<&str> = book.names().collect();
                gpulower_image::nearest(name, names).into_iter().next()
            },
        })
    }

    /// A kernel of the module of that name. It stays valid until it is dropped, whatever becomes of the name.
    ///
    /// # Errors
    ///
    /// [`SessionError::NoSuchModule`], and as [`SessionModule::function`].
    pub fn function(&self, module: &str, kernel: &str) -> Result<Function, SessionError> {
        self.module(module)?.function(kernel)
    }

    /// Takes the module of that name out of the session, if there is one.
    pub fn remove(&self, name: &str) -> Option<SessionModule> {
        drop(lock(&self.better).forget(name));
        lock(&self.shared.book).remove(name)
    }

    /// All modules, in the order in which they were added or replaced. Their [artifacts](SessionModule::artifact) are the
    /// images, to be kept or to be loaded elsewhere.
    #[must_use]
    pub fn modules(&self) -> Vec<SessionModule> {
        lock(&self.shared.book).in_order()
    }

    /// The number of modules.
    #[must_use]
    pub fn len(&self) -> usize {
        lock(&self.shared.book).len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What is compiled for.
    #[must_use]
    pub fn target(&self) -> &Target {
        &self.shared.compiler.target
    }

    /// What compiles.
    #[must_use]
    pub fn compiler(&self) -> &Compiler {
        &self.shared.compiler.compiler
    }

    /// Where modules are loaded; `None` in a session without a device.
    #[must_use]
    pub fn context(&self) -> Option<Context> {
        let device = self.shared.device.read().unwrap_or_else(PoisonError::into_inner);
        device.clone()
    }

    /// Loads all images into another context, without compiling anything, and goes on there: after [`Context::reset`], or on
    /// another device that takes the same images. Variables have their initial values again.
    ///
    /// Handles from before stay with the old context: functions and modules are to be looked up anew.
    ///
    /// # Errors
    ///
    /// [`SessionError::NotRebuilt`] with the first module that does not load. The session is as it was then.
    pub fn rebuild(&self, context: &Context) -> Result<(), SessionError> {
        let shared = &self.shared;
        let mut device = shared.device.write().unwrap_or_else(PoisonError::into_inner);
        let old = lock(&shared.book).remake(|module| {
            let loaded = shared
                .load(context, module.name(), &module.artifact().bytes)
                .map_err(|source| SessionError::NotRebuilt {
                    module: module.name().to_owned(),
                    source: Box::new(source),
                })?;
            Ok::<_, SessionError>(module.reloaded(loaded))
        })?;
        *device = Some(context.clone());
        drop(device);
        // Unloads what nobody has a handle of, with no lock held.
        drop(old);
        Ok(())
    }
}

impl Shared {
    fn add(&self, name: &str, source: &Source) -> Result<Added, SessionError> {
        // No statement's temporary holds the lock beyond this line.
        let known = lock(&self.book).made_from(name, source.hash);
        match known {
            Some(module) => Ok(Added::unchanged(module)),
            None => self.install(name, self.compile(name, source)?),
        }
    }

    fn compile(&self, name: &str, source: &Source) -> Result<Compiled, SessionError> {
        let known = lock(&self.book).made_from(name, source.hash);
        if let Some(module) = known {
            return Ok(Compiled {
                source: source.hash,
                image: Arc::clone(module.image()),
                fresh: false,
            });
        }
        self.compile_better(name, source)
    }

    /// Compiles at the session's own speed, whatever has the name.
    fn compile_better(&self, name: &str, source: &Source) -> Result<Compiled, SessionError> {
        self.compiler
            .compile(name, source)
            .map_err(|error| explain(name, error, |symbol| self.defines(symbol)))
    }

    /// Gives a name to another image of the same source, unless somebody else has taken it or given it up.
    fn replace(&self, name: &str, generation: u64, compiled: Compiled) -> Result<(), SessionError> {
        let is_there = || {
            lock(&self.book)
                .get(name)
                .is_some_and(|module| module.generation() == generation)
        };
        if !is_there() {
            return Ok(());
        }
        let device = self.device.read().unwrap_or_else(PoisonError::into_inner);
        let loaded = match device.as_ref() {
            Some(context) => Some(self.load(context, name, &compiled.image.artifact.bytes)?),
            None => None,
        };
        let mut book = lock(&self.book);
        let old = match book.get(name).filter(|module| module.generation() == generation) {
            Some(_) => {
                let next = book.next_generation();
                let content = compiled.image.content;
                let module = SessionModule::new(name, next, compiled.image, loaded);
                book.put(name, compiled.source, content, next, module)
            }
            None => None,
        };
        drop(book);
        drop(device);
        // Unloads what nobody has a handle of, with no lock held.
        drop(old);
        Ok(())
    }

    /// The first module that defines a symbol. Only what failed to compile asks.
    fn defines(&self, symbol: &str) -> Option<String> {
        let modules = lock(&self.book).in_order();
        let module = modules
            .iter()
            .find(|module| module.image().definitions.iter().any(|name| name == symbol))?;
        Some(module.name().to_owned())
    }

    /// Loads what was compiled, and gives it its name.
    fn install(&self, name: &str, compiled: Compiled) -> Result<Added, SessionError> {
        let Compiled { source, image, fresh } = compiled;
        let device = self.device.read().unwrap_or_else(PoisonError::into_inner);
        let same = lock(&self.book).same(name, source, image.content);
        if let Some(module) = same {
            return Ok(Added::unchanged(module));
        }
        let loaded = match device.as_ref() {
            Some(context) => Some(self.load(context, name, &image.artifact.bytes)?),
            None => None,
        };
        let content = image.content;
        let mut book = lock(&self.book);
        let generation = book.next_generation();
        let module = SessionModule::new(name, generation, image, loaded);
        let old = book.put(name, source, content, generation, module.clone());
        drop(book);
        drop(device);
        let change = match old {
            Some(_) => Change::Replaced,
            None => Change::New,
        };
        // Unloads what nobody has a handle of, with no lock held.
        drop(old);
        Ok(Added {
            module,
            change,
            compiled: fresh,
        })
    }

    fn load(&self, context: &Context, name: &str, bytes: &[u8]) -> Result<runtime::Module, runtime::ModuleError> {
        runtime::Module::load(context, name, bytes, &self.load)
    }
}

impl Added {
    const fn unchanged(module: SessionModule) -> Self {
        Self {
            module,
            change: Change::Unchanged,
            compiled: false,
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for JitSession {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("JitSession")
            .field("target", &self.shared.compiler.target)
            .field("modules", &self.len())
            .field("context", &self.context())
            .finish_non_exhaustive()
    }
}
