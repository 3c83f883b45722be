//! What a session compiles, keeps, replaces and refuses. None of it needs a device: loading is checked on one.

use std::{
    collections::HashSet,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
};

use super::*;
use crate::{
    Emit, Options, StageListener, Subject,
    runtime::{DriverError, ModuleError, PtxFallback, choose},
};

/// Counts what is lowered, and keeps the names.
#[derive(Default)]
struct Counter {
    lowered: AtomicUsize,
    names: Mutex<Vec<String>>,
}

impl Counter {
    fn count(&self) -> usize {
        self.lowered.load(Ordering::SeqCst)
    }
}

impl StageListener for Counter {
    fn checkpoints(&self) -> &[crate::Checkpoint] {
        &[crate::Checkpoint::Lowered]
    }

    fn lowered(&self, subject: Subject<'_>, _: &dyn Fn() -> String) -> Result<Option<String>, String> {
        self.lowered.fetch_add(1, Ordering::SeqCst);
        lock(&self.names).push(subject.module.to_owned());
        Ok(None)
    }
}

fn session_with(options: Options, listener: Arc<dyn StageListener>, threads: usize) -> JitSession {
    let compiler = Compiler::builder()
        .options(options)
        .listener(listener)
        .threads(1)
        .build();
    JitSession::builder(compiler)
        .target("sm_90".parse().expect("a target"))
        .emit(Emit::Ptx)
        .threads(threads)
        .build()
        .expect("a session")
}

fn session() -> (JitSession, Arc<Counter>) {
    let counter = Arc::new(Counter::default());
    (session_with(Options::default(), counter.clone(), 3), counter)
}

/// A kernel that stores a constant.
fn kernel(module: &str, constant: u32) -> String {
    format!(
        "gpu.module @{module} {{ gpu.func @k(%p: memref<4xi32>) kernel {{
           %c = arith.constant {constant} : i32
           %i = gpu.thread_id x
           memref.store %c, %p[%i] : memref<4xi32>
           gpu.return }} }}"
    )
}

fn message(result: Result<Added, SessionError>) -> String {
    result.expect_err("refused").to_string()
}

#[test]
fn values_may_go_to_other_threads() {
    fn shared<T: Send + Sync + 'static>() {}
    fn sent<T: Send + 'static>() {}
    shared::<JitSession>();
    shared::<SessionModule>();
    shared::<Added>();
    shared::<SessionError>();
    sent::<Pending>();
}

#[test]
fn only_new_content_is_compiled() {
    let (session, counter) = session();
    let text = kernel("m", 1);
    let first = session.add("a", &text).expect("compiles");
    assert!(first.change == Change::New && first.compiled);

    // The same text is not even parsed; other text of the same content is not lowered.
    let again = session.add("a", &text).expect("known");
    let commented = session.add("a", format!("// changed\n\n{text}")).expect("known");
    for same in [again, commented] {
        assert!(same.change == Change::Unchanged && !same.compiled);
        assert_eq!(same.module.generation(), first.module.generation());
    }
    // Nor is it under another name, of the session or of the gpu.module.
    let twin = session.add("b", kernel("other", 1)).expect("known");
    assert!(twin.change == Change::New && !twin.compiled);
    assert!(twin.module.generation() > first.module.generation());
    assert_eq!(counter.count(), 1);

    let changed = session.add("a", kernel("m", 2)).expect("compiles");
    assert!(changed.change == Change::Replaced && changed.compiled);
    assert_eq!(counter.count(), 2);
    assert_eq!(session.len(), 2);
}

#[test]
fn what_is_replaced_lives_as_long_as_its_handles() {
    let (session, counter) = session();
    let old = session.add("a", kernel("m", 7)).expect("compiles").module;
    let new = session.add("a", kernel("m", 8)).expect("compiles").module;
    assert!(new.generation() > old.generation());
    assert_ne!(old.artifact().bytes, new.artifact().bytes);
    assert_eq!(session.module("a").expect("there").generation(), new.generation());

    // The old image is still there, and goes when the last handle does.
    assert!(!session.add("back", kernel("m", 7)).expect("known").compiled);
    session.remove("back").expect("there");
    drop(old);
    assert_eq!(counter.count(), 2);
    assert!(session.add("a", kernel("m", 7)).expect("compiles").compiled);
    assert_eq!(counter.count(), 3);

    drop(session);
    assert!(!new.artifact().bytes.is_empty(), "a handle outlives its session");
}

#[test]
fn a_failure_leaves_the_session_as_it_was() {
    let (session, _) = session();
    let good = session.add("a", kernel("m", 1)).expect("compiles").module;
    let text = message(session.add("a", "gpu.module @m { gpu.func @k() kernel { gpu.retrun } }"));
    assert!(text.starts_with("a:1:") && text.contains("input, module a"), "{text}");
    // It parses, and cannot be lowered.
    let refused = "gpu.module @m { gpu.func @k(%p: memref<4xi32>) kernel {
        \"memref.dealloc\"(%p) : (memref<4xi32>) -> ()
        \"test.unknown\"() : () -> ()
        gpu.return } }";
    assert!(matches!(session.add("a", refused), Err(SessionError::Compile(_))));
    let ahead = session.prepare("a", refused).expect("enqueued");
    assert!(matches!(ahead.wait(), Err(SessionError::Compile(_))));
    assert!(matches!(session.add("new", refused), Err(SessionError::Compile(_))));
    assert_eq!(session.len(), 1);
    assert_eq!(session.module("a").expect("there").generation(), good.generation());
    session.add("a", kernel("m", 2)).expect("works on");
}

/// Each addition lowers the one module that is new, the last as the first.
#[test]
fn the_two_hundredth_addition_does_what_the_first_did() {
    let (session, counter) = session();
    for index in 0..200 {
        let added = session
            .add(&format!("k{index}"), kernel(&format!("m{index}"), index))
            .expect("compiles");
        assert!(added.change == Change::New && added.compiled);
        assert_eq!(std::mem::take(&mut *lock(&counter.names)), [format!("m{index}")]);
    }
    assert_eq!((session.len(), counter.count()), (200, 200));
    let generations: HashSet<u64> = session.modules().iter().map(SessionModule::generation).collect();
    assert_eq!(generations.len(), 200);
}

#[test]
fn compiling_ahead_gives_what_adding_gives() {
    let (one_by_one, _) = session();
    let (ahead, counter) = session();
    let pending: Vec<Pending> = (0..12)
        .map(|index| {
            ahead
                .prepare(&format!("k{index}"), kernel("m", index))
                .expect("enqueued")
        })
        .collect();
    assert!(ahead.is_empty(), "nothing is added before it is waited for");
    for pending in pending.into_iter().rev() {
        assert_eq!(pending.wait().expect("compiles").change, Change::New);
    }
    assert_eq!(counter.count(), 12);
    for index in 0..12 {
        let name = format!("k{index}");
        let expected = one_by_one.add(&name, kernel("m", index)).expect("compiles").module;
        let found = ahead.module(&name).expect("there");
        assert_eq!(found.artifact().bytes, expected.artifact().bytes, "{name}");
    }
}

#[test]
fn the_same_content_ahead_is_compiled_once() {
    let (session, counter) = session();
    let pending: Vec<Pending> = (0..6)
        .map(|index| session.prepare(&format!("k{index}"), kernel("m", 1)).expect("enqueued"))
        .collect();
    let compiled = pending
        .into_iter()
        .map(|pending| pending.wait().expect("compiles"))
        .filter(|added| added.compiled)
        .count();
    assert_eq!((compiled, counter.count(), session.len()), (1, 1, 6));
}

/// Says that it is inside of a compilation, and waits to be let on.
struct Gate {
    inside: Mutex<mpsc::Sender<String>>,
    go: Mutex<mpsc::Receiver<()>>,
}

impl StageListener for Gate {
    fn checkpoints(&self) -> &[crate::Checkpoint] {
        &[crate::Checkpoint::Lowered]
    }

    fn lowered(&self, subject: Subject<'_>, _: &dyn Fn() -> String) -> Result<Option<String>, String> {
        let _ = lock(&self.inside).send(subject.module.to_owned());
        let _ = lock(&self.go).recv();
        Ok(None)
    }
}

fn gated() -> (JitSession, mpsc::Receiver<String>, mpsc::Sender<()>) {
    let (inside, entered) = mpsc::channel();
    let (go, wait) = mpsc::channel();
    let gate = Gate {
        inside: Mutex::new(inside),
        go: Mutex::new(wait),
    };
    (session_with(Options::default(), Arc::new(gate), 1), entered, go)
}

#[test]
fn what_nobody_waits_for_any_more_is_not_compiled() {
    let (session, entered, go) = gated();
    let mut first = session.prepare("a", kernel("first", 1)).expect("enqueued");
    assert_eq!(entered.recv().as_deref(), Ok("first"));
    assert!(!first.is_ready());
    drop(session.prepare("b", kernel("second", 2)).expect("enqueued"));
    let third = session.prepare("c", kernel("third", 3)).expect("enqueued");
    for _ in 0..2 {
        go.send(()).expect("somebody waits");
    }
    third.wait().expect("compiles");
    assert!(first.is_ready(), "there is one thread, and the third came after it");
    first.wait().expect("compiles");
    assert_eq!(entered.try_iter().collect::<Vec<_>>(), ["third"]);
}

#[test]
fn a_session_that_ends_says_so_to_what_it_did_not_begin() {
    let (session, entered, go) = gated();
    let begun = session.prepare("a", kernel("first", 1)).expect("enqueued");
    let never = session.prepare("b", kernel("second", 2)).expect("enqueued");
    assert_eq!(entered.recv().as_deref(), Ok("first"));
    let ending = std::thread::spawn(move || drop(session));
    assert_eq!(
        message(never.wait()),
        "b was not compiled: its session was dropped before its turn came"
    );
    drop(go);
    ending.join().expect("ends");
    assert!(
        !begun
            .wait()
            .expect("it was compiled")
            .module
            .artifact()
            .bytes
            .is_empty()
    );
}

/// Without debug info places do not matter; with it they are part of the code.
#[test]
fn places_count_where_they_get_into_the_code() {
    for (level, compiled) in [("none", false), ("line-tables", true)] {
        let mut options = Options::default();
        options.set("debug", level).expect("an option");
        let session = session_with(options, Arc::new(Counter::default()), 1);
        session.add("a", kernel("m", 1)).expect("compiles");
        let moved = session.add("a", format!("\n{}", kernel("m", 1))).expect("compiles");
        assert_eq!(moved.compiled, compiled, "{level}");
    }
}

#[test]
fn a_module_of_the_callers_own_context_is_the_same_as_its_text() {
    let (session, counter) = session();
    session.add("a", kernel("m", 1)).expect("compiles");
    let context = crate::compiler::context();
    let module = crate::compiler::parse(&context, "x.mlir", kernel("m", 1).as_bytes()).expect("parses");
    let before = module.as_operation().to_string();
    assert_eq!(
        session.add_module("a", &module).expect("known").change,
        Change::Unchanged
    );
    assert_eq!(module.as_operation().to_string(), before);
    let ahead = session.prepare_module("b", &module).expect("enqueued");
    // Nothing of the caller's is needed any more.
    drop(module);
    drop(context);
    assert!(!ahead.wait().expect("known").compiled);
    assert_eq!(counter.count(), 1);
}

/// Each in a context of its own: in one, the second content would get another name.
#[test]
fn the_contents_of_resources_tell_modules_apart() {
    let (session, counter) = session();
    for (name, content) in [("one", "0000803F00000040"), ("other", "0000803F00004040")] {
        let source = format!(
            "gpu.module @m {{
               memref.global constant @table : memref<2xf32> = dense_resource<content>
               gpu.func @k(%p: memref<2xf32>) kernel {{
                 %t = memref.get_global @table : memref<2xf32>
                 %i = gpu.thread_id x
                 %v = memref.load %t[%i] : memref<2xf32>
                 memref.store %v, %p[%i] : memref<2xf32>
                 gpu.return }} }}
             {{-# dialect_resources: {{ builtin: {{ content: \"0x04000000{content}\" }} }} #-}}"
        );
        let context = crate::compiler::context();
        let module = crate::compiler::parse(&context, "x.mlir", source.as_bytes()).expect("parses");
        session.add_module(name, &module).expect("compiles");
    }
    assert_eq!(counter.count(), 2);
}

const TABLE: &str = "gpu.module @tables { memref.global @table : memref<4xi32> = dense<[1, 2, 3, 4]>
    gpu.func @k(%p: memref<4xi32>) kernel {
      %t = memref.get_global @table : memref<4xi32>
      %i = gpu.thread_id x
      %v = memref.load %t[%i] : memref<4xi32>
      memref.store %v, %p[%i] : memref<4xi32>
      gpu.return } }";

const USER: &str = "gpu.module @user { memref.global @table : memref<4xi32>
    gpu.func @k(%p: memref<4xi32>) kernel {
      %t = memref.get_global @table : memref<4xi32>
      %i = gpu.thread_id x
      %v = memref.load %t[%i] : memref<4xi32>
      memref.store %v, %p[%i] : memref<4xi32>
      gpu.return } }";

#[test]
fn a_variable_of_another_module_is_refused_with_the_way_around() {
    let (session, _) = session();
    let unknown = message(session.add("user", USER));
    assert!(
        unknown.contains("unresolved symbol:") && unknown.contains("table"),
        "{unknown}"
    );
    assert!(!unknown.contains("this session defines"), "{unknown}");

    session.add("tables", TABLE).expect("compiles");
    let error = session.add("user", USER).expect_err("refused");
    let SessionError::Undefined { symbols, .. } = &error else {
        panic!("{error}")
    };
    assert_eq!(symbols[0].defined_by.as_deref(), Some("tables"));
    assert!(
        error.to_string().ends_with(
            "The module \"tables\" of this session defines table, for itself alone: drivers cannot link new code to a module \
             that is loaded. If it is a variable, give user's kernel its address as an argument \
             (session.module(\"tables\")?.global(\"table\")?.address()); or put both into one gpu.module, or have them joined \
             (Options::device_link)"
        ),
        "{error}"
    );
    assert_eq!(session.len(), 1);
}

#[test]
fn several_modules_under_one_name_have_to_be_joined() {
    let source = format!("{TABLE}\n{}", USER.replace("@k", "@other"));
    let (session, _) = session();
    assert_eq!(
        message(session.add("both", &source)),
        "both holds 2 gpu.modules (tables, user), and a name of a session stands for one: add each under a name of its own, or \
         have them joined (Options::device_link)"
    );
    let mut options = Options::default();
    options.device_link = Some(crate::options::DeviceLink::default());
    let session = session_with(options, Arc::new(Counter::default()), 1);
    let added = session.add("both", &source).expect("they are joined");
    assert_eq!(kernels(&added.module), ["k", "other"]);
    assert_eq!(session.add("both", source).expect("known").change, Change::Unchanged);
}

/// The kernels that a driver would find in the image of a module.
fn kernels(module: &SessionModule) -> Vec<String> {
    let device = "9.0".parse().expect("a device");
    let chosen = choose(
        module.name(),
        &module.artifact().bytes,
        device,
        None,
        PtxFallback::Allowed,
    )
    .expect("loads");
    let mut names: Vec<String> = chosen.kernels.into_iter().map(|kernel| kernel.name).collect();
    names.sort();
    names
}

#[test]
fn images_are_what_a_device_loads() {
    let (session, _) = session();
    session.add("mlir", kernel("m", 1)).expect("compiles");
    let ptx = session.modules()[0].artifact().bytes.clone();
    session.add("ptx", &ptx).expect("is taken");
    session
        .add(
            "llvm",
            "define ptx_kernel void @from_llvm(ptr %p) { store i32 1, ptr %p ret void }",
        )
        .expect("compiles");
    let listed: Vec<(String, Vec<String>)> = session
        .modules()
        .iter()
        .map(|module| (module.name().to_owned(), kernels(module)))
        .collect();
    let expected = [("mlir", "k"), ("ptx", "k"), ("llvm", "from_llvm")];
    assert_eq!(
        listed,
        expected.map(|(name, kernel)| (name.to_owned(), vec![kernel.to_owned()]))
    );
    // Machine code of AMD's needs no tool of a vendor.
    let amd = JitSession::builder(Compiler::builder().build())
        .target("gfx942".parse().expect("a target"))
        .build()
        .expect("a session");
    let bytes = amd
        .add("a", kernel("m", 1))
        .expect("compiles")
        .module
        .artifact()
        .bytes
        .clone();
    let chosen = choose(
        "a",
        &bytes,
        "gfx942".parse().expect("a device"),
        None,
        PtxFallback::Refused,
    )
    .expect("loads");
    assert_eq!(chosen.kernels[0].name, "k");
}

#[test]
fn without_a_device_nothing_is_loaded_and_that_is_said() {
    let untold = JitSession::builder(Compiler::builder().build()).build();
    assert_eq!(
        untold.expect_err("refused").to_string(),
        "a session without a device needs to be told what to compile for (JitSessionBuilder::target)"
    );
    let (session, _) = session();
    let module = session.add("saxpy", kernel("m", 1)).expect("compiles").module;
    assert!(module.loaded().is_none() && session.context().is_none());
    let expected = "saxpy is not loaded: the session has no device; make it with a context (JitSession::new, \
                    JitSessionBuilder::context), or give it one now (JitSession::rebuild)";
    assert_eq!(
        session.function("saxpy", "k").expect_err("refused").to_string(),
        expected
    );
    assert_eq!(module.global("v").expect_err("refused").to_string(), expected);
    assert_eq!(
        session.function("saxpi", "k").expect_err("refused").to_string(),
        "the session has no module \"saxpi\": did you mean saxpy?"
    );
    assert_eq!(
        session.module("gelu").expect_err("refused").to_string(),
        "the session has no module \"gelu\""
    );
}

#[test]
fn a_lost_context_is_told_from_other_failures() {
    let lost = || {
        ModuleError::Driver(DriverError::ContextReset {
            call: "loading a module",
        })
    };
    assert!(SessionError::Load(lost()).is_context_lost());
    let rebuilt = SessionError::NotRebuilt {
        module: "k".to_owned(),
        source: Box::new(lost()),
    };
    assert!(rebuilt.is_context_lost());
    assert!(
        rebuilt
            .to_string()
            .starts_with("the session was not rebuilt, and is as it was: k does not load: loading a module: ")
    );
    assert!(!SessionError::NoTarget.is_context_lost());
}

/// Fast code first, as somebody asks for it, and then what the compiler's options ask for.
fn fast_first(listener: Arc<dyn StageListener>) -> JitSession {
    let compiler = Compiler::builder().listener(listener).threads(1).build();
    JitSession::builder(compiler)
        .target("sm_90".parse().expect("a target"))
        .emit(Emit::Ptx)
        .threads(1)
        .fast_first(true)
        .build()
        .expect("a session")
}

fn summing(module: &str) -> String {
    format!(
        "gpu.module @{module} {{ gpu.func @k(%x: memref<?xf32>, %out: memref<?xf32>, %n: index) kernel {{
           %zero = arith.constant 0.0 : f32
           %t = gpu.thread_id x
           %d = gpu.block_dim x
           %sum = scf.for %i = %t to %n step %d iter_args(%before = %zero) -> (f32) {{
             %v = memref.load %x[%i] : memref<?xf32>
             %s = arith.addf %before, %v : f32
             scf.yield %s : f32
           }}
           memref.store %sum, %out[%t] : memref<?xf32>
           gpu.return }} }}"
    )
}

fn compiled_with(speed: &str, text: &str) -> Vec<u8> {
    let mut options = Options::default();
    options.set("speed", speed).expect("an option");
    let session = session_with(options, Arc::new(Counter::default()), 1);
    session
        .add("a", text)
        .expect("compiles")
        .module
        .artifact()
        .bytes
        .clone()
}

#[test]
fn fast_code_comes_first_and_better_code_takes_its_name() {
    let (fast, better) = (
        compiled_with("fast", &summing("m")),
        compiled_with("balanced", &summing("m")),
    );
    assert_ne!(fast, better);
    let counter = Arc::new(Counter::default());
    let session = fast_first(counter.clone());
    let added = session.add("a", summing("m")).expect("compiles");
    assert!(added.compiled && added.change == Change::New);
    assert_eq!(added.module.artifact().bytes, fast);

    assert!(session.finish_better().is_empty());
    let now = session.module("a").expect("there");
    assert_eq!(now.artifact().bytes, better);
    assert!(now.generation() > added.module.generation());
    assert_eq!(added.module.artifact().bytes, fast, "a handle is what it was");
    assert_eq!(counter.count(), 2);

    // The same once more is known, and a lookup changes nothing.
    assert_eq!(session.add("a", summing("m")).expect("known").change, Change::Unchanged);
    assert!(session.finish_better().is_empty());
    assert_eq!(session.module("a").expect("there").generation(), now.generation());
    assert_eq!(counter.count(), 2);
}

#[test]
fn better_code_for_what_was_replaced_or_removed_is_dropped() {
    let session = fast_first(Arc::new(Counter::default()));
    session.add("a", kernel("m", 1)).expect("compiles");
    session.add("b", kernel("m", 2)).expect("compiles");
    session.add("a", summing("m")).expect("compiles");
    session.remove("b").expect("there");
    assert!(session.finish_better().is_empty());
    assert_eq!(
        session.module("a").expect("there").artifact().bytes,
        compiled_with("balanced", &summing("m"))
    );
    assert_eq!(session.len(), 1);
}

/// Refuses everything but what is lowered first.
struct Second(AtomicUsize);

impl StageListener for Second {
    fn checkpoints(&self) -> &[crate::Checkpoint] {
        &[crate::Checkpoint::Lowered]
    }

    fn lowered(&self, _: Subject<'_>, _: &dyn Fn() -> String) -> Result<Option<String>, String> {
        match self.0.fetch_add(1, Ordering::SeqCst) {
            0 => Ok(None),
            _ => Err("not twice".to_owned()),
        }
    }
}

#[test]
fn where_better_code_cannot_be_made_the_fast_code_stays() {
    let session = fast_first(Arc::new(Second(AtomicUsize::new(0))));
    let added = session.add("a", summing("m")).expect("compiles").module;
    let failed = session.finish_better();
    assert!(
        failed.len() == 1 && failed[0].to_string().contains("not twice"),
        "{failed:?}"
    );
    assert_eq!(session.module("a").expect("there").generation(), added.generation());
    assert!(session.finish_better().is_empty(), "it is told once");
}

#[test]
fn a_module_with_variables_is_compiled_once_at_the_sessions_speed() {
    let text = summing("m").replacen('{', "{ memref.global @table : memref<4xf32> = dense<1.0>", 1);
    let session = fast_first(Arc::new(Counter::default()));
    let added = session.add("a", &text).expect("compiles").module;
    assert_eq!(added.artifact().bytes, compiled_with("balanced", &text));
    assert!(session.finish_better().is_empty());
    assert_eq!(session.module("a").expect("there").generation(), added.generation());
}
