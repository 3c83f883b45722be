//! What a program's calls for the GPU do: handles looked up, and the rest done by [`runtime`](crate::runtime).

use std::{
    collections::{HashMap, VecDeque, hash_map::Entry},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::error::RunError;
use crate::{
    bridge::{
        mgpu::{CallError, Gpu, TensorMap, negative, tensor_rank},
        program_calls::{CopyCall, FillCall, KernelCall, KernelHandle, PinCall},
        tasks::Tasks,
    },
    runtime::{
        Context, DeviceBuffer, Driver, DriverLoadError, Event, Function, LoadOptions, Module, Registration, Stream,
        TensorShape,
    },
    target::Vendor,
};

/// Streams of one device. More share these: work waits only for work that was enqueued before, so that nothing locks up.
const STREAMS: usize = 32;

/// Events that still mean something after they were given back.
const ENDED_EVENTS: usize = 1024;

/// A kernel of the program, known by the address of its stub.
#[derive(Clone, Debug)]
pub(super) struct StubKernel {
    /// The place of its image.
    pub image: usize,
    /// Its name in the image.
    pub name: String,
}

/// What the kernels of one module are loaded from: the first of several that the device takes.
#[derive(Debug)]
pub(super) struct KernelImages {
    /// What messages call the module.
    pub name: String,
    /// The bytes.
    pub images: Vec<Vec<u8>>,
}

impl KernelImages {
    fn load(&self, context: &Context) -> Result<Module, CallError> {
        let mut result: Option<Result<Module, CallError>> = None;
        for image in &self.images {
            match Module::load(context, &self.name, image, &LoadOptions::default()) {
                Ok(module) => return Ok(module),
                Err(error) => {
                    result.get_or_insert(Err(error.into()));
                }
            }
        }
        result.unwrap_or_else(|| Err("the module has no image".into()))
    }
}

/// The GPU of one program.
pub(super) struct ProgramGpu {
    /// Whose driver is loaded when it is first needed.
    vendor: Option<Vendor>,
    first_device: u32,
    images: Vec<KernelImages>,
    stubs: HashMap<usize, StubKernel>,
    stopped: Mutex<Option<(&'static str, CallError)>>,
    tasks: Tasks,
    state: Mutex<State>,
}

/// What the program has at present. Handles are those of the driver.
#[derive(Default)]
struct State {
    driver: Option<Driver>,
    device: u32,
    devices: HashMap<u32, OneDevice>,
    modules: HashMap<usize, LoadedModule>,
    functions: HashMap<usize, Function>,
    streams: HashMap<usize, Stream>,
    events: HashMap<usize, Arc<Event>>,
    /// Events that were given back last.
    ended_events: VecDeque<usize>,
    memory: HashMap<usize, DeviceBuffer>,
    registered: HashMap<usize, Registration>,
}

struct OneDevice {
    context: Context,
    pool: Vec<Stream>,
    next: usize,
    /// The images of the program that are loaded, by their place.
    images: HashMap<usize, Module>,
    /// The kernels behind stubs that were launched.
    kernels: HashMap<usize, Function>,
}

struct LoadedModule {
    module: Module,
    functions: HashMap<String, usize>,
}

/// The driver of a vendor, or of whichever vendor has one.
pub(super) fn driver(vendor: Option<Vendor>) -> Result<Driver, DriverLoadError> {
    match vendor {
        Some(vendor) => Driver::load(vendor),
        // Without a GPU, or a word in the module, NVIDIA's is what is said to be absent.
        None => Driver::cuda().or_else(|error| Driver::hip().map_err(|_| error)),
    }
}

impl State {
    fn current(&mut self, vendor: Option<Vendor>) -> Result<&mut OneDevice, CallError> {
        let driver = match &self.driver {
            Some(driver) => driver.clone(),
            None => self.driver.insert(driver(vendor)?).clone(),
        };
        match self.devices.entry(self.device) {
            Entry::Occupied(known) => Ok(known.into_mut()),
            Entry::Vacant(place) => {
                let context = driver.device(self.device)?.context()?;
                Ok(place.insert(OneDevice {
                    context,
                    pool: Vec::new(),
                    next: 0,
                    images: HashMap::new(),
                    kernels: HashMap::new(),
                }))
            }
        }
    }

    /// A stream by its handle; 0 is the default stream of the present device.
    fn stream(&mut self, handle: usize, vendor: Option<Vendor>) -> Result<Stream, CallError> {
        if handle == 0 {
            return Ok(self.current(vendor)?.context.default_stream());
        }
        let stream = self.streams.get(&handle).cloned();
        stream.ok_or_else(|| unknown("stream", handle))
    }
}

fn unknown(kind: &'static str, handle: usize) -> CallError {
    format!("{handle:#x} is no {kind} that this program has: none was made with this handle, or it was given back")
        .into()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn length(size: i64) -> Result<usize, String> {
    usize::try_from(size).map_err(|_| negative("the size", size))
}

impl ProgramGpu {
    pub(super) fn new(vendor: Option<Vendor>, device: u32, images: Vec<KernelImages>) -> Self {
        Self {
            vendor,
            first_device: device,
            images,
            stubs: HashMap::new(),
            stopped: Mutex::default(),
            tasks: Tasks::default(),
            state: Mutex::new(State {
                device,
                ..State::default()
            }),
        }
    }

    pub(super) fn set_stubs(&mut self, stubs: HashMap<usize, StubKernel>) {
        self.stubs = stubs;
    }

    /// Gives everything back that the program has.
    pub(super) fn clear(&self) {
        *lock(&self.stopped) = None;
        self.tasks.clear();
        let fresh = State {
            device: self.first_device,
            ..State::default()
        };
        let old = std::mem::replace(&mut *lock(&self.state), fresh);
        drop(old);
    }

    /// Loads the driver, and all kernels onto the first device, before anything of the program runs.
    pub(super) fn load_all(&self) -> Result<(), CallError> {
        let mut state = lock(&self.state);
        state.current(self.vendor)?;
        for place in 0..self.images.len() {
            self.image(state.current(self.vendor)?, place)?;
        }
        for (&stub, kernel) in &self.stubs {
            let device = state.current(self.vendor)?;
            let function = self.image(device, kernel.image)?.function(&kernel.name)?;
            device.kernels.insert(stub, function);
        }
        Ok(())
    }

    /// Waits for all devices: what a kernel did wrong is found here at the latest.
    pub(super) fn finish(&self) -> Result<(), CallError> {
        let contexts: Vec<Context> = lock(&self.state)
            .devices
            .values()
            .map(|device| device.context.clone())
            .collect();
        for context in contexts {
            context.synchronize()?;
        }
        Ok(())
    }

    /// Why the program was stopped, if it was.
    pub(super) fn take_stop(&self) -> Option<RunError> {
        let (call, source) = lock(&self.stopped).take()?;
        Some(RunError::Stopped { call, source })
    }

    fn image<'d>(&self, device: &'d mut OneDevice, place: usize) -> Result<&'d Module, CallError> {
        match device.images.entry(place) {
            Entry::Occupied(known) => Ok(known.into_mut()),
            Entry::Vacant(free) => {
                let images = self.images.get(place).ok_or_else(|| unknown("module", place))?;
                Ok(free.insert(images.load(&device.context)?))
            }
        }
    }

    fn kernel(&self, handle: KernelHandle) -> Result<Function, CallError> {
        let mut state = lock(&self.state);
        match handle {
            KernelHandle::Function(handle) => {
                let function = state.functions.get(&handle).cloned();
                function.ok_or_else(|| unknown("kernel", handle))
            }
            KernelHandle::Stub(stub) => {
                let device = state.current(self.vendor)?;
                if let Some(function) = device.kernels.get(&stub) {
                    return Ok(function.clone());
                }
                let kernel = self.stubs.get(&stub).ok_or_else(|| unknown("kernel", stub))?;
                let function = self.image(device, kernel.image)?.function(&kernel.name)?;
                device.kernels.insert(stub, function.clone());
                Ok(function)
            }
        }
    }

    fn stream_of(&self, handle: usize) -> Result<Stream, CallError> {
        lock(&self.state).stream(handle, self.vendor)
    }

    fn event_of(&self, handle: usize) -> Result<Arc<Event>, CallError> {
        let event = lock(&self.state).events.get(&handle).cloned();
        event.ok_or_else(|| unknown("event", handle))
    }

    /// What a wait for a handle waits for. MLIR 22 lowers `async.yield` of values and tokens to the token's stream where an event
    /// behind what is in it is meant, and waits for that: LLVM's `Integration/GPU/CUDA/async.mlir` is such a program.
    fn waited_for(&self, handle: usize) -> Result<Arc<Event>, CallError> {
        let stream = lock(&self.state).streams.get(&handle).cloned();
        let Some(stream) = stream else {
            return self.event_of(handle);
        };
        // Of the stream's device, which need not be the current one.
        let event = stream.context().event()?;
        event.record(&stream)?;
        Ok(Arc::new(event))
    }

    fn context(&self) -> Result<Context, CallError> {
        Ok(lock(&self.state).current(self.vendor)?.context.clone())
    }

    fn insert_module(&self, module: Module) -> usize {
        let handle = module.raw().addr();
        let functions = HashMap::new();
        lock(&self.state)
            .modules
            .insert(handle, LoadedModule { module, functions });
        handle
    }

    /// Memory whose address is its handle.
    fn keep(&self, buffer: DeviceBuffer) -> Result<usize, CallError> {
        let address = usize::try_from(buffer.address())?;
        if address != 0 {
            lock(&self.state).memory.insert(address, buffer);
        }
        Ok(address)
    }
}

impl Drop for ProgramGpu {
    fn drop(&mut self) {
        self.clear();
    }
}

fn tensor_shape(map: &TensorMap) -> Result<TensorShape, String> {
    let rank = u32::try_from(map.rank).ok().filter(|rank| (1..=5).contains(rank));
    Ok(TensorShape {
        data_type: map.data_type,
        rank: rank.ok_or_else(|| tensor_rank(map.rank))?,
        address: map.address,
        sizes: map.sizes,
        strides: map.strides,
        boxes: map.boxes,
        steps: map.steps,
        interleave: map.interleave,
        swizzle: map.swizzle,
        promotion: map.promotion,
        fill: map.fill,
    })
}

impl Gpu for ProgramGpu {
    fn stop(&self, call: &'static str, error: CallError) {
        lock(&self.stopped).get_or_insert((call, error));
    }

    fn is_stopped(&self) -> bool {
        lock(&self.stopped).is_some()
    }

    fn tasks(&self) -> &Tasks {
        &self.tasks
    }

    fn load(&self, image: &[u8]) -> Result<usize, CallError> {
        let module = Module::load(&self.context()?, "the embedded module", image, &LoadOptions::default())?;
        Ok(self.insert_module(module))
    }

    fn compile(&self, ptx: &[u8], level: i32) -> Result<usize, CallError> {
        let mut options = LoadOptions::default();
        options.jit.optimization = u32::try_from(level).ok();
        let module = Module::load(&self.context()?, "the embedded module", ptx, &options)?;
        Ok(self.insert_module(module))
    }

    fn unload(&self, module: usize) -> Result<(), CallError> {
        let mut state = lock(&self.state);
        let removed = state.modules.remove(&module).ok_or_else(|| unknown("module", module))?;
        for function in removed.functions.values() {
            state.functions.remove(function);
        }
        drop(state);
        drop(removed);
        Ok(())
    }

    fn function(&self, module: usize, name: &str) -> Result<usize, CallError> {
        let mut state = lock(&self.state);
        let loaded = state
            .modules
            .get_mut(&module)
            .ok_or_else(|| unknown("module", module))?;
        if let Some(&handle) = loaded.functions.get(name) {
            return Ok(handle);
        }
        let function = loaded.module.function(name)?;
        let handle = function.raw().addr();
        loaded.functions.insert(name.to_owned(), handle);
        state.functions.insert(handle, function);
        Ok(handle)
    }

    fn launch(&self, call: KernelCall<'_>) -> Result<(), CallError> {
        let (function, stream) = (self.kernel(call.kernel())?, self.stream_of(call.stream())?);
        call.enqueue(&function, &stream)
    }

    fn stream(&self) -> Result<usize, CallError> {
        let mut state = lock(&self.state);
        let device = state.current(self.vendor)?;
        let stream = match device.pool.get(device.next % STREAMS) {
            Some(stream) => stream.clone(),
            None => {
                let stream = device.context.stream()?;
                device.pool.push(stream.clone());
                stream
            }
        };
        device.next = (device.next + 1) % STREAMS;
        let handle = stream.raw().addr();
        state.streams.insert(handle, stream);
        Ok(handle)
    }

    fn end_stream(&self, stream: usize) -> Result<(), CallError> {
        // It stays in the pool. MLIR's lowering ends some streams twice.
        self.stream_of(stream).map(drop)
    }

    fn wait(&self, stream: usize) -> Result<(), CallError> {
        Ok(self.stream_of(stream)?.synchronize()?)
    }

    fn stream_waits(&self, stream: usize, event: usize) -> Result<(), CallError> {
        Ok(self.stream_of(stream)?.wait_for(&*self.waited_for(event)?)?)
    }

    fn event(&self) -> Result<usize, CallError> {
        let event = self.context()?.event()?;
        let handle = event.raw().addr();
        lock(&self.state).events.insert(handle, Arc::new(event));
        Ok(handle)
    }

    fn end_event(&self, event: usize) -> Result<(), CallError> {
        // MLIR's lowering gives an event back for each of several tasks that wait for it, and waits afterwards.
        let mut state = lock(&self.state);
        if state.streams.contains_key(&event) {
            return Ok(());
        }
        if !state.events.contains_key(&event) {
            return Err(unknown("event", event));
        }
        state.ended_events.push_back(event);
        let oldest = match state.ended_events.len() > ENDED_EVENTS {
            true => state.ended_events.pop_front(),
            false => None,
        };
        let removed = oldest.and_then(|oldest| state.events.remove(&oldest));
        drop(state);
        drop(removed);
        Ok(())
    }

    fn wait_event(&self, event: usize) -> Result<(), CallError> {
        Ok(self.waited_for(event)?.synchronize()?)
    }

    fn record(&self, event: usize, stream: usize) -> Result<(), CallError> {
        Ok(self.event_of(event)?.record(&self.stream_of(stream)?)?)
    }

    fn allocate(&self, bytes: i64, shared_with_host: bool) -> Result<usize, CallError> {
        let (context, bytes) = (self.context()?, length(bytes)?);
        let buffer = match shared_with_host {
            true => context.allocate_managed(bytes)?,
            false => context.allocate(bytes)?,
        };
        self.keep(buffer)
    }

    fn free(&self, address: usize, stream: usize) -> Result<(), CallError> {
        if address == 0 {
            // What an allocation of no bytes gave.
            return Ok(());
        }
        // What is in the stream may use the memory, and its failure is the program's.
        self.stream_of(stream)?.synchronize()?;
        let removed = lock(&self.state).memory.remove(&address);
        removed.map(drop).ok_or_else(|| unknown("memory", address))
    }

    fn copy(&self, call: CopyCall<'_>) -> Result<(), CallError> {
        let stream = self.stream_of(call.stream())?;
        call.enqueue(&stream)
    }

    fn fill(&self, call: FillCall<'_>) -> Result<(), CallError> {
        let stream = self.stream_of(call.stream())?;
        call.enqueue(&stream)
    }

    fn register(&self, call: PinCall<'_>) -> Result<(), CallError> {
        let (context, start) = (self.context()?, call.start());
        if let Some(registration) = call.pin(&context)? {
            lock(&self.state).registered.insert(start, registration);
        }
        Ok(())
    }

    fn unregister(&self, address: usize) -> Result<(), CallError> {
        let removed = lock(&self.state).registered.remove(&address);
        let registration = removed.ok_or_else(|| unknown("registered host memory", address))?;
        Ok(registration.end()?)
    }

    fn device_address(&self, host: usize) -> Result<usize, CallError> {
        Ok(usize::try_from(self.context()?.device_address(host)?)?)
    }

    fn set_device(&self, device: i32) -> Result<(), CallError> {
        let index =
            u32::try_from(device).map_err(|_| format!("there is no device {device}: devices are counted from 0"))?;
        let mut state = lock(&self.state);
        let before = std::mem::replace(&mut state.device, index);
        if let Err(error) = state.current(self.vendor) {
            state.device = before;
            return Err(error);
        }
        Ok(())
    }

    fn tensor_map(&self, map: &TensorMap) -> Result<[u64; 16], CallError> {
        Ok(self.context()?.tensor_map(&tensor_shape(map)?)?)
    }

    fn tensor_map_on_device(&self, map: &TensorMap) -> Result<usize, CallError> {
        let encoded = self.tensor_map(map)?;
        let context = self.context()?;
        let buffer = context.allocate(size_of_val(&encoded))?;
        buffer.upload(&encoded, &context.default_stream())?;
        self.keep(buffer)
    }
}
