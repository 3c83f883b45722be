//! MLIR's `mlirAsyncRuntime` functions, which programs with the `async` dialect call, and the threads that carry tasks out.
//!
//! Names and signatures are those of `mlir/lib/ExecutionEngine/AsyncRuntime.cpp` of LLVM 22. A task is a coroutine of the
//! program's; a token, a value or a group is a handle that is looked up, so that a wrong one is an error. Different from
//! MLIR's: a task that waits for something in a function that is no coroutine does not take a thread from the others, a
//! value is aligned as its size asks for, and a program that is stopped stops on every thread.
#![allow(non_snake_case, reason = "the names are MLIR's")]

use std::{
    alloc::{Layout, alloc_zeroed, dealloc},
    collections::{HashMap, VecDeque},
    ffi::{c_int, c_void},
    ptr::NonNull,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::{Builder, JoinHandle, available_parallelism},
};

use super::mgpu::{
    CallError, Gpu, Nothing, TOO_LARGE, address, attempt, caller, enter, finish, negative, pointer, program_functions,
};

unsafe extern "C-unwind" {
    fn gpulowerResumeTask(resume: *mut c_void, handle: *mut c_void) -> c_int;
}

/// Values are aligned to a power of two of their size, up to a page.
const LARGEST_ALIGNMENT: usize = 4096;

/// What a task is resumed with.
#[derive(Clone, Copy, Debug)]
struct Task {
    /// The coroutine's handle.
    handle: usize,
    /// A function that takes it.
    resume: usize,
}

/// Memory for a value that a task makes.
#[derive(Debug)]
struct Storage {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: it owns its memory, and nothing here reads or writes that.
unsafe impl Send for Storage {}

impl Storage {
    fn new(bytes: i64) -> Result<Self, CallError> {
        let bytes = usize::try_from(bytes).map_err(|_| negative("the size of the value", bytes))?;
        let size = bytes.max(1);
        let alignment = size.min(LARGEST_ALIGNMENT).next_power_of_two().max(align_of::<u128>());
        let layout = Layout::from_size_align(size, alignment).map_err(|_| TOO_LARGE)?;
        // SAFETY: the size is not zero.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or("there is no memory for a value")?;
        Ok(Self { start, layout })
    }
}

impl Drop for Storage {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, and given back once.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}

/// A token, a value or a group.
#[derive(Debug)]
struct Object {
    references: i64,
    /// What has to be ready before it is: itself, or the members of a group.
    pending: i64,
    errors: usize,
    /// Members that a group had so far.
    members: i64,
    storage: Option<Storage>,
    /// Tasks to resume, and groups to tell, when it is ready.
    tasks: Vec<Task>,
    groups: Vec<usize>,
}

impl Object {
    fn new(references: i64, pending: i64, storage: Option<Storage>) -> Self {
        Self {
            references,
            pending,
            errors: 0,
            members: 0,
            storage,
            tasks: Vec::new(),
            groups: Vec::new(),
        }
    }
}

#[derive(Debug, Default)]
struct State {
    last: usize,
    objects: HashMap<usize, Object>,
    queue: VecDeque<Task>,
    threads: Vec<JoinHandle<()>>,
    /// Threads that have not come to their end.
    alive: usize,
    /// Those of them that wait for a task,
    idle: usize,
    /// and those that wait within one.
    blocked: usize,
    closing: bool,
}

/// The tasks of one program.
#[derive(Debug, Default)]
pub(crate) struct Tasks {
    state: Mutex<State>,
    changed: Condvar,
}

thread_local! {
    /// Whether this thread is one of those that carry tasks out.
    static CARRIES_OUT: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

fn unknown(handle: usize) -> CallError {
    format!("{handle:#x} is no token, value or group that this program has: its last reference was dropped").into()
}

impl State {
    fn object(&mut self, handle: usize) -> Result<&mut Object, CallError> {
        self.objects.get_mut(&handle).ok_or_else(|| unknown(handle))
    }

    fn insert(&mut self, object: Object) -> usize {
        // Handles of pointers' form, which are never null.
        self.last += align_of::<u128>();
        self.objects.insert(self.last, object);
        self.last
    }

    fn drop_references(&mut self, handle: usize, count: i64) -> Result<(), CallError> {
        let object = self.object(handle)?;
        object.references -= count;
        if object.references <= 0 {
            self.objects.remove(&handle);
        }
        Ok(())
    }

    /// One thing that it waits for is ready. Groups have no groups.
    fn advance(&mut self, handle: usize, failed: bool) -> Result<(), CallError> {
        let object = self.object(handle)?;
        if object.pending <= 0 {
            return Err(
                "a token or value is made ready twice, or a group has more members than it was made for".into(),
            );
        }
        object.pending -= 1;
        object.errors += usize::from(failed);
        if object.pending > 0 {
            return Ok(());
        }
        let (tasks, groups) = (std::mem::take(&mut object.tasks), std::mem::take(&mut object.groups));
        self.queue.extend(tasks);
        for group in groups {
            self.advance(group, failed)?;
            self.drop_references(group, 1)?;
        }
        Ok(())
    }
}

impl Tasks {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks again at what threads wait for.
    pub(super) fn wake(&self) {
        // Whoever has looked already waits when the lock is free.
        drop(self.lock());
        self.changed.notify_all();
    }

    fn create(&self, object: Object) -> usize {
        self.lock().insert(object)
    }

    fn emplace(&self, handle: usize, failed: bool) -> Result<(), CallError> {
        let mut state = self.lock();
        state.advance(handle, failed)?;
        // The reference of the task that made it ready.
        state.drop_references(handle, 1)?;
        self.start(state)
    }

    fn is_error(&self, handle: usize) -> Result<bool, CallError> {
        Ok(self.lock().object(handle)?.errors > 0)
    }

    fn storage(&self, handle: usize) -> Result<*mut c_void, CallError> {
        let mut state = self.lock();
        let storage = state.object(handle)?.storage.as_ref();
        storage
            .map(|storage| storage.start.as_ptr().cast())
            .ok_or_else(|| "a token has no value".into())
    }

    fn add_to_group(&self, token: usize, group: usize) -> Result<i64, CallError> {
        let mut state = self.lock();
        let member = state.object(group)?;
        let rank = member.members;
        member.members += 1;
        let token = state.object(token)?;
        if token.pending > 0 {
            token.groups.push(group);
            state.object(group)?.references += 1;
        } else {
            let failed = token.errors > 0;
            state.advance(group, failed)?;
        }
        self.start(state)?;
        Ok(rank)
    }

    fn wait(&self, gpu: &dyn Gpu, handle: usize) -> Result<(), CallError> {
        let mut state = self.lock();
        let blocks = CARRIES_OUT.get() && state.object(handle)?.pending > 0;
        if blocks {
            // Another thread may be needed for what this one waits for.
            state.blocked += 1;
            let started = self.start(state);
            state = self.lock();
            if started.is_err() {
                state.blocked -= 1;
                return started;
            }
        }
        let result = loop {
            match state.object(handle).map(|object| object.pending) {
                Ok(1..) if gpu.is_stopped() => break Err("the program was stopped".into()),
                Ok(1..) => state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Ok(_) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        state.blocked -= usize::from(blocks);
        result
    }

    fn when_ready(&self, handle: usize, task: Task) -> Result<(), CallError> {
        let mut state = self.lock();
        let object = state.object(handle)?;
        if object.pending > 0 {
            object.tasks.push(task);
            return Ok(());
        }
        state.queue.push_back(task);
        self.start(state)
    }

    /// Sees to it that threads carry out what is in the queue, and that whoever waits looks again.
    fn start(&self, mut state: MutexGuard<'_, State>) -> Result<(), CallError> {
        let running = state.alive.saturating_sub(state.blocked);
        let missing = state
            .queue
            .len()
            .saturating_sub(state.idle)
            .min(parallelism().saturating_sub(running));
        for _ in 0..missing {
            let Some(program) = caller() else { break };
            match Builder::new()
                .name("async".to_owned())
                .spawn(move || carry_out(&program))
            {
                Ok(thread) => {
                    state.alive += 1;
                    state.threads.push(thread);
                }
                Err(_) if running > 0 => break,
                Err(error) => return Err(format!("no thread can be started for a task: {error}").into()),
            }
        }
        drop(state);
        self.changed.notify_all();
        Ok(())
    }

    /// The next task, as soon as there is one; `None` when there is nothing more to do.
    fn next(&self) -> Option<Task> {
        let mut state = self.lock();
        loop {
            if let Some(task) = state.queue.pop_front() {
                return Some(task);
            }
            if state.closing {
                state.alive -= 1;
                return None;
            }
            state.idle += 1;
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
        }
    }

    /// Waits for the tasks that can be carried out, and for the threads. What tokens and values there are stay.
    pub(crate) fn settle(&self) {
        loop {
            let mut state = self.lock();
            state.closing = true;
            let threads = std::mem::take(&mut state.threads);
            drop(state);
            self.changed.notify_all();
            if threads.is_empty() {
                break;
            }
            for thread in threads {
                // It does not panic: what the program does is no unwinding of Rust's.
                let _ = thread.join();
            }
        }
        self.lock().closing = false;
    }

    /// Forgets everything; nothing of the program runs any more.
    pub(crate) fn clear(&self) {
        let old = std::mem::take(&mut *self.lock());
        drop(old);
    }
}

fn parallelism() -> usize {
    available_parallelism().map_or(1, usize::from)
}

fn carry_out(program: &Arc<dyn Gpu>) {
    let _running = enter(program);
    CARRIES_OUT.set(true);
    while let Some(task) = program.tasks().next() {
        if program.is_stopped() {
            continue;
        }
        // SAFETY: a task of a program that is running; whoever runs it vouches for what it does. The program's memory
        // stays until its threads have ended.
        let ended = unsafe { gpulowerResumeTask(pointer(task.resume), pointer(task.handle)) };
        if ended == 2 {
            program.stop(
                "async.execute",
                "an exception of C++ left it, which nothing in it caught".into(),
            );
            program.tasks().wake();
        }
    }
}

fn task(handle: *mut c_void, resume: *mut c_void) -> Task {
    Task {
        handle: address(handle),
        resume: address(resume),
    }
}

impl Nothing for bool {
    const NOTHING: Self = true;
}

impl Nothing for i64 {
    const NOTHING: Self = 0;
}

program_functions! {
    fn mlirAsyncRuntimeAddRef(object: *mut c_void, count: i64) = |gpu, _| {
        gpu.tasks().lock().object(address(object))?.references += count;
        Ok(())
    };
    fn mlirAsyncRuntimeDropRef(object: *mut c_void, count: i64) = |gpu, _| {
        gpu.tasks().lock().drop_references(address(object), count)
    };
    // One reference is the task's that makes it ready.
    fn mlirAsyncRuntimeCreateToken() -> *mut c_void = |gpu, _| {
        Ok(pointer(gpu.tasks().create(Object::new(2, 1, None))))
    };
    fn mlirAsyncRuntimeCreateValue(bytes: i64) -> *mut c_void = |gpu, _| {
        Ok(pointer(gpu.tasks().create(Object::new(2, 1, Some(Storage::new(bytes)?)))))
    };
    fn mlirAsyncRuntimeCreateGroup(members: i64) -> *mut c_void = |gpu, _| {
        Ok(pointer(gpu.tasks().create(Object::new(1, members, None))))
    };
    fn mlirAsyncRuntimeEmplaceToken(token: *mut c_void) = |gpu, _| gpu.tasks().emplace(address(token), false);
    fn mlirAsyncRuntimeEmplaceValue(value: *mut c_void) = |gpu, _| gpu.tasks().emplace(address(value), false);
    fn mlirAsyncRuntimeSetTokenError(token: *mut c_void) = |gpu, _| gpu.tasks().emplace(address(token), true);
    fn mlirAsyncRuntimeSetValueError(value: *mut c_void) = |gpu, _| gpu.tasks().emplace(address(value), true);
    fn mlirAsyncRuntimeIsTokenError(token: *mut c_void) -> bool = |gpu, _| gpu.tasks().is_error(address(token));
    fn mlirAsyncRuntimeIsValueError(value: *mut c_void) -> bool = |gpu, _| gpu.tasks().is_error(address(value));
    fn mlirAsyncRuntimeIsGroupError(group: *mut c_void) -> bool = |gpu, _| gpu.tasks().is_error(address(group));
    fn mlirAsyncRuntimeAwaitToken(token: *mut c_void) = |gpu, _| gpu.tasks().wait(gpu, address(token));
    fn mlirAsyncRuntimeAwaitValue(value: *mut c_void) = |gpu, _| gpu.tasks().wait(gpu, address(value));
    fn mlirAsyncRuntimeAwaitAllInGroup(group: *mut c_void) = |gpu, _| gpu.tasks().wait(gpu, address(group));
    fn mlirAsyncRuntimeGetValueStorage(value: *mut c_void) -> *mut c_void = |gpu, _| gpu.tasks().storage(address(value));
    fn mlirAsyncRuntimeAddTokenToGroup(token: *mut c_void, group: *mut c_void) -> i64 = |gpu, _| {
        gpu.tasks().add_to_group(address(token), address(group))
    };
    fn mlirAsyncRuntimeExecute(handle: *mut c_void, resume: *mut c_void) = |gpu, _| {
        let mut state = gpu.tasks().lock();
        state.queue.push_back(task(handle, resume));
        gpu.tasks().start(state)
    };
    fn mlirAsyncRuntimeAwaitTokenAndExecute(token: *mut c_void, handle: *mut c_void, resume: *mut c_void) = |gpu, _| {
        gpu.tasks().when_ready(address(token), task(handle, resume))
    };
    fn mlirAsyncRuntimeAwaitValueAndExecute(value: *mut c_void, handle: *mut c_void, resume: *mut c_void) = |gpu, _| {
        gpu.tasks().when_ready(address(value), task(handle, resume))
    };
    fn mlirAsyncRuntimeAwaitAllInGroupAndExecute(
        group: *mut c_void, handle: *mut c_void, resume: *mut c_void,
    ) = |gpu, _| gpu.tasks().when_ready(address(group), task(handle, resume));
    // MLIR's spelling.
    fn mlirAsyncRuntimGetNumWorkerThreads() -> i64 = |_gpu, _| Ok(parallelism() as i64);
}

#[cfg(test)]
#[path = "../../tests/bridge/tasks.rs"]
mod tests;
