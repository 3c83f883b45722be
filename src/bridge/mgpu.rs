//! MLIR's `mgpu` functions, which programs call for the GPU, and the launches of gpulower's own stubs.
//!
//! Names and signatures are those of `mlir/lib/ExecutionEngine/CudaRuntimeWrappers.cpp` and `RocmRuntimeWrappers.cpp` of LLVM
//! 22, without the cuSPARSE ones, and what `offload::host` calls beyond them. What they do is decided above, behind [`Gpu`].
//!
//! A call that fails does not return: the program is left (`cpp/program.cpp`), since it would not look at an error. On a
//! thread that the program started itself there is nowhere to go: the call returns nothing of use, and the next call on the
//! first thread, or its end, stops the program.
#![allow(non_snake_case, reason = "the names are MLIR's")]

use std::{
    cell::RefCell,
    error::Error,
    ffi::{CStr, c_char, c_void},
    panic::{AssertUnwindSafe, catch_unwind},
    ptr::null_mut,
    sync::{Arc, Mutex, PoisonError},
};

use super::program_calls::{CopyCall, Element, FillCall, KernelCall, KernelHandle, PinCall, Vouched};
use super::tasks::Tasks;

unsafe extern "C-unwind" {
    fn gpulowerLeaveProgram();
}

/// Why a call for the GPU failed.
pub(crate) type CallError = Box<dyn Error + Send + Sync>;

/// What a program's calls for the GPU do. Handles are what the methods gave before, or anything else: they are checked.
pub(crate) trait Gpu: Send + Sync {
    /// Notes that a call failed, for good. The first one counts.
    fn stop(&self, call: &'static str, error: CallError);
    /// Whether a call failed.
    fn is_stopped(&self) -> bool;
    /// The tasks that the program started.
    fn tasks(&self) -> &Tasks;
    /// Loads an image; its handle.
    fn load(&self, image: &[u8]) -> Result<usize, CallError>;
    /// Lets the driver compile PTX, and loads the result; its handle.
    fn compile(&self, ptx: &[u8], level: i32) -> Result<usize, CallError>;
    /// Unloads an image.
    fn unload(&self, module: usize) -> Result<(), CallError>;
    /// A kernel of an image; its handle.
    fn function(&self, module: usize, name: &str) -> Result<usize, CallError>;
    /// Launches a kernel.
    fn launch(&self, call: KernelCall<'_>) -> Result<(), CallError>;
    /// A stream; its handle.
    fn stream(&self) -> Result<usize, CallError>;
    /// The program does not need a stream any more.
    fn end_stream(&self, stream: usize) -> Result<(), CallError>;
    /// Waits for a stream; 0 is the default stream.
    fn wait(&self, stream: usize) -> Result<(), CallError>;
    /// Lets a stream wait for an event.
    fn stream_waits(&self, stream: usize, event: usize) -> Result<(), CallError>;
    /// An event; its handle.
    fn event(&self) -> Result<usize, CallError>;
    /// The program does not need an event any more.
    fn end_event(&self, event: usize) -> Result<(), CallError>;
    /// Waits for an event.
    fn wait_event(&self, event: usize) -> Result<(), CallError>;
    /// Puts an event behind what is in a stream.
    fn record(&self, event: usize, stream: usize) -> Result<(), CallError>;
    /// Memory of the device, or of device and host; its address.
    fn allocate(&self, bytes: i64, shared_with_host: bool) -> Result<usize, CallError>;
    /// Gives memory back, when the stream is done.
    fn free(&self, address: usize, stream: usize) -> Result<(), CallError>;
    /// Copies from anywhere to anywhere.
    fn copy(&self, call: CopyCall<'_>) -> Result<(), CallError>;
    /// Fills memory with so many elements.
    fn fill(&self, call: FillCall<'_>) -> Result<(), CallError>;
    /// Pins host memory.
    fn register(&self, call: PinCall<'_>) -> Result<(), CallError>;
    /// Ends that.
    fn unregister(&self, address: usize) -> Result<(), CallError>;
    /// The address on the device of pinned host memory.
    fn device_address(&self, host: usize) -> Result<usize, CallError>;
    /// The device of the calls that follow.
    fn set_device(&self, device: i32) -> Result<(), CallError>;
    /// A descriptor for NVIDIA's tensor memory accelerator.
    fn tensor_map(&self, map: &TensorMap) -> Result<[u64; 16], CallError>;
    /// The same in memory of the device; its address.
    fn tensor_map_on_device(&self, map: &TensorMap) -> Result<usize, CallError>;
}

/// What a tensor map describes, as `cuTensorMapEncodeTiled` takes it: dimensions from the innermost on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TensorMap {
    /// `CUtensorMapDataType`
    pub(crate) data_type: u32,
    /// Dimensions, 1 to 5; larger or smaller numbers are refused.
    pub(crate) rank: i64,
    /// The first element on the device.
    pub(crate) address: u64,
    /// Elements along each dimension.
    pub(crate) sizes: [u64; 5],
    /// Bytes from one element to the next along each dimension but the innermost.
    pub(crate) strides: [u64; 5],
    /// Elements of a box along each dimension.
    pub(crate) boxes: [u32; 5],
    /// Steps between elements of a box.
    pub(crate) steps: [u32; 5],
    /// `CUtensorMapInterleave`
    pub(crate) interleave: u32,
    /// `CUtensorMapSwizzle`
    pub(crate) swizzle: u32,
    /// `CUtensorMapL2promotion`
    pub(crate) promotion: u32,
    /// `CUtensorMapFloatOOBfill`
    pub(crate) fill: u32,
}

/// A size for which there are not so many addresses.
pub(super) const TOO_LARGE: &str = "the memref has more bytes than there are addresses";

pub(super) fn null(what: &str) -> String {
    format!("{what} is null")
}

pub(crate) fn tensor_rank(rank: i64) -> String {
    format!("a tensor of {rank} dimensions: a tensor map has 1 to 5")
}

pub(crate) fn negative(what: &str, number: i64) -> String {
    format!("{what} is negative ({number})")
}

thread_local! {
    /// The programs that this thread is running, the innermost last.
    static CURRENT: RefCell<Vec<Arc<dyn Gpu>>> = const { RefCell::new(Vec::new()) };
}

/// All programs that are running.
static RUNNING: Mutex<Vec<Arc<dyn Gpu>>> = Mutex::new(Vec::new());

/// A program is running on this thread as long as the value lives.
pub(super) struct Running(Arc<dyn Gpu>);

/// Lets calls of this thread mean `gpu`.
pub(super) fn enter(gpu: &Arc<dyn Gpu>) -> Running {
    CURRENT.with_borrow_mut(|programs| programs.push(Arc::clone(gpu)));
    let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
    running.push(Arc::clone(gpu));
    Running(Arc::clone(gpu))
}

impl Drop for Running {
    fn drop(&mut self) {
        CURRENT.with_borrow_mut(Vec::pop);
        let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = running.iter().rposition(|other| Arc::ptr_eq(other, &self.0)) {
            running.remove(place);
        }
    }
}

/// The program that a call comes from: that of this thread, or of whatever thread if there is one alone.
pub(super) fn caller() -> Option<Arc<dyn Gpu>> {
    if let Some(gpu) = CURRENT.with_borrow(|programs| programs.last().cloned()) {
        return Some(gpu);
    }
    let running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
    match running.as_slice() {
        [first, rest @ ..] if rest.iter().all(|other| Arc::ptr_eq(first, other)) => Some(Arc::clone(first)),
        _ => None,
    }
}

/// Carries a call out. `None` if the program has to stop.
pub(super) fn attempt<R>(
    call: &'static str,
    work: impl FnOnce(&dyn Gpu, &Vouched<'_>) -> Result<R, CallError>,
) -> Option<R> {
    // Nobody wrote a call of the stubs' functions.
    let call = match call {
        "__gpulower_launch" | "__gpulower_launch_clusters" => "gpu.launch_func",
        call => call,
    };
    let gpu = caller()?;
    if gpu.is_stopped() {
        return None;
    }
    // SAFETY: a program is running, and whoever runs it vouches for what it does to memory.
    let vouched = unsafe { Vouched::new() };
    let error: CallError = match catch_unwind(AssertUnwindSafe(|| work(&*gpu, &vouched))) {
        Ok(Ok(result)) => return Some(result),
        Ok(Err(error)) => error,
        Err(_) => "internal error: a panic (this is a bug in gpulower)".into(),
    };
    gpu.stop(call, error);
    gpu.tasks().wake();
    None
}

/// What a call returns on a thread that cannot leave the program.
pub(super) trait Nothing: Copy {
    const NOTHING: Self;
}

impl Nothing for () {
    const NOTHING: Self = ();
}

impl Nothing for *mut c_void {
    const NOTHING: Self = null_mut();
}

/// `StridedMemRefType` of rank 1, which is returned as a structure.
#[derive(Clone, Copy)]
#[repr(C)]
struct MemRef1 {
    allocated: *mut c_void,
    aligned: *mut c_void,
    offset: i64,
    size: i64,
    stride: i64,
}

impl Nothing for MemRef1 {
    const NOTHING: Self = Self {
        allocated: null_mut(),
        aligned: null_mut(),
        offset: 0,
        size: 0,
        stride: 0,
    };
}

/// Leaves the program unless a call succeeded. Everything that the call had is dropped: [`attempt`] has returned.
pub(super) fn finish<R: Nothing>(result: Option<R>) -> R {
    // What is jumped over may own nothing, not even what the compiler thinks up: all that is alive is a value that is `Copy`.
    const { assert!(!std::mem::needs_drop::<R>()) };
    match result {
        Some(result) => result,
        None => {
            // SAFETY: if this does not return, the frames that are left are this one, that of a function below, whose
            // arguments are numbers and pointers, and the program's own, for which whoever runs it vouches.
            unsafe { gpulowerLeaveProgram() };
            R::NOTHING
        }
    }
}

pub(super) fn pointer(address: usize) -> *mut c_void {
    std::ptr::with_exposed_provenance_mut(address)
}

pub(super) fn address<T>(pointer: *const T) -> usize {
    pointer.expose_provenance()
}

/// Declares the functions, and the table of their addresses.
macro_rules! program_functions {
    ($(fn $name:ident($($argument:ident: $kind:ty),* $(,)?) $(-> $result:ty)? = |$gpu:ident, $vouched:pat_param| $work:expr;)*) => {
        $(
            extern "C" fn $name($($argument: $kind),*) $(-> $result)? {
                finish(attempt(stringify!($name), |$gpu, $vouched| $work))
            }
        )*

        /// Names, types of the arguments, and type of the result, as they are written below.
        #[cfg(test)]
        fn signatures() -> Vec<(&'static str, Vec<&'static str>, &'static str)> {
            vec![$((stringify!($name), vec![$(stringify!($kind)),*], concat!("", $(stringify!($result))?)),)*]
        }

        /// The functions that programs may call, with their addresses.
        pub(crate) fn functions() -> Vec<(&'static str, usize)> {
            vec![$((stringify!($name), address($name as *const c_void)),)*]
        }
    };
}

pub(super) use program_functions;

program_functions! {
    fn mgpuModuleLoad(image: *const u8, bytes: i64) -> *mut c_void = |gpu, _| {
        // SAFETY: the program passes an image of that size.
        Ok(pointer(gpu.load(unsafe { slice(image, bytes, "the image")? })?))
    };
    fn mgpuModuleLoadJIT(ptx: *const c_char, level: i32) -> *mut c_void = |gpu, _| {
        // SAFETY: MLIR embeds assembly with a NUL at its end.
        Ok(pointer(gpu.compile(unsafe { text(ptx, "the PTX")? }.to_bytes(), level)?))
    };
    fn mgpuModuleUnload(module: *mut c_void) = |gpu, _| gpu.unload(address(module));
    fn mgpuModuleGetFunction(module: *mut c_void, name: *const c_char) -> *mut c_void = |gpu, _| {
        let what = "the kernel's name";
        // SAFETY: the program passes a name with a NUL at its end.
        let name = unsafe { text(name, what)? }.to_str().map_err(|_| format!("{what} is not text in UTF-8"))?;
        Ok(pointer(gpu.function(address(module), name)?))
    };
    fn mgpuLaunchKernel(
        function: *mut c_void, gx: i64, gy: i64, gz: i64, bx: i64, by: i64, bz: i64, shared: i32, stream: *mut c_void,
        arguments: *const *const u8, extra: *const *const u8, count: u64,
    ) = |gpu, vouched| gpu.launch(KernelCall {
        kernel: KernelHandle::Function(address(function)),
        grid: [gx, gy, gz],
        cluster: None,
        block: [bx, by, bz],
        shared: shared.into(),
        stream: address(stream),
        wait: false,
        argument_count: Some(count),
        has_extra: !extra.is_null(),
        arguments,
        _call: vouched,
    });
    // MLIR's translation does not say how many arguments there are (SelectObjectAttr.cpp).
    fn mgpuLaunchClusterKernel(
        function: *mut c_void, cx: i64, cy: i64, cz: i64, gx: i64, gy: i64, gz: i64, bx: i64, by: i64, bz: i64,
        shared: i32, stream: *mut c_void, arguments: *const *const u8, extra: *const *const u8,
    ) = |gpu, vouched| gpu.launch(KernelCall {
        kernel: KernelHandle::Function(address(function)),
        grid: [gx, gy, gz],
        cluster: Some([cx, cy, cz]),
        block: [bx, by, bz],
        shared: shared.into(),
        stream: address(stream),
        wait: false,
        argument_count: None,
        has_extra: !extra.is_null(),
        arguments,
        _call: vouched,
    });
    fn __gpulower_launch(
        stub: *mut c_void, _name: *const c_char, gx: i64, gy: i64, gz: i64, bx: i64, by: i64, bz: i64, shared: i64,
        stream: *mut c_void, wait: bool, arguments: *const *const u8,
    ) = |gpu, vouched| gpu.launch(KernelCall {
        kernel: KernelHandle::Stub(address(stub)),
        grid: [gx, gy, gz],
        cluster: None,
        block: [bx, by, bz],
        shared,
        stream: address(stream),
        wait,
        argument_count: None,
        has_extra: false,
        arguments,
        _call: vouched,
    });
    fn __gpulower_launch_clusters(
        stub: *mut c_void, _name: *const c_char, gx: i64, gy: i64, gz: i64, cx: i64, cy: i64, cz: i64, bx: i64, by: i64,
        bz: i64, shared: i64, stream: *mut c_void, wait: bool, arguments: *const *const u8,
    ) = |gpu, vouched| gpu.launch(KernelCall {
        kernel: KernelHandle::Stub(address(stub)),
        grid: [gx, gy, gz],
        cluster: Some([cx, cy, cz]),
        block: [bx, by, bz],
        shared,
        stream: address(stream),
        wait,
        argument_count: None,
        has_extra: false,
        arguments,
        _call: vouched,
    });
    fn mgpuStreamCreate() -> *mut c_void = |gpu, _| Ok(pointer(gpu.stream()?));
    fn mgpuStreamDestroy(stream: *mut c_void) = |gpu, _| gpu.end_stream(address(stream));
    fn mgpuStreamSynchronize(stream: *mut c_void) = |gpu, _| gpu.wait(address(stream));
    fn mgpuStreamWaitEvent(stream: *mut c_void, event: *mut c_void) = |gpu, _| {
        gpu.stream_waits(address(stream), address(event))
    };
    fn mgpuEventCreate() -> *mut c_void = |gpu, _| Ok(pointer(gpu.event()?));
    fn mgpuEventDestroy(event: *mut c_void) = |gpu, _| gpu.end_event(address(event));
    fn mgpuEventSynchronize(event: *mut c_void) = |gpu, _| gpu.wait_event(address(event));
    fn mgpuEventRecord(event: *mut c_void, stream: *mut c_void) = |gpu, _| gpu.record(address(event), address(stream));
    fn mgpuMemAlloc(bytes: i64, _stream: *mut c_void, shared: i8) -> *mut c_void = |gpu, _| {
        // MLIR passes an i8, and upstream reads a C `bool` from it.
        Ok(pointer(gpu.allocate(not_negative("the size", bytes)?, shared & 1 == 1)?))
    };
    fn mgpuMemFree(memory: *mut c_void, stream: *mut c_void) = |gpu, _| gpu.free(address(memory), address(stream));
    fn mgpuMemcpy(to: *mut c_void, from: *mut c_void, bytes: i64, stream: *mut c_void) = |gpu, vouched| {
        gpu.copy(CopyCall::new(address(to), address(from), bytes, address(stream), vouched))
    };
    fn mgpuMemset8(to: *mut c_void, value: u8, count: i64, stream: *mut c_void) = |gpu, vouched| {
        gpu.fill(FillCall::new(address(to), Element::Bits8(value), count, address(stream), vouched))
    };
    fn mgpuMemset16(to: *mut c_void, value: u16, count: i64, stream: *mut c_void) = |gpu, vouched| {
        gpu.fill(FillCall::new(address(to), Element::Bits16(value), count, address(stream), vouched))
    };
    fn mgpuMemset32(to: *mut c_void, value: u32, count: i64, stream: *mut c_void) = |gpu, vouched| {
        gpu.fill(FillCall::new(address(to), Element::Bits32(value), count, address(stream), vouched))
    };
    fn mgpuMemset64(to: *mut c_void, value: u64, count: i64, stream: *mut c_void) = |gpu, vouched| {
        gpu.fill(FillCall::new(address(to), Element::Bits64(value), count, address(stream), vouched))
    };
    fn mgpuMemHostRegister(memory: *mut c_void, bytes: i64) = |gpu, vouched| {
        gpu.register(PinCall::new(address(memory), bytes, vouched))
    };
    fn mgpuMemHostUnregister(memory: *mut c_void) = |gpu, _| gpu.unregister(address(memory));
    fn mgpuMemHostRegisterMemRef(rank: i64, descriptor: *const i64, element: i64) = |gpu, vouched| {
        // SAFETY: the program passes a descriptor of that rank.
        let memref = unsafe { Descriptor::read(rank, descriptor)? };
        gpu.register(PinCall::new(memref.start(element), memref.dense_bytes(element)?, vouched))
    };
    fn mgpuMemHostUnregisterMemRef(rank: i64, descriptor: *const i64, element: i64) = |gpu, _| {
        // SAFETY: as above.
        gpu.unregister(unsafe { Descriptor::read(rank, descriptor)? }.start(element))
    };
    fn mgpuMemGetDeviceMemRef1dFloat(
        _allocated: *mut c_void, aligned: *mut c_void, offset: i64, size: i64, stride: i64,
    ) -> MemRef1 = |gpu, _| {
        let memory = pointer(gpu.device_address(address(aligned))?);
        Ok(MemRef1 { allocated: memory, aligned: memory, offset, size, stride })
    };
    fn mgpuMemGetDeviceMemRef1dInt32(
        _allocated: *mut c_void, aligned: *mut c_void, offset: i64, size: i64, stride: i64,
    ) -> MemRef1 = |gpu, _| {
        let memory = pointer(gpu.device_address(address(aligned))?);
        Ok(MemRef1 { allocated: memory, aligned: memory, offset, size, stride })
    };
    fn mgpuSetDefaultDevice(device: i32) = |gpu, _| gpu.set_device(device);
    fn mgpuTensorMapEncodeTiled(
        map: *mut [u64; 16], data_type: u32, rank: u32, memory: *mut c_void, sizes: *const u64, strides: *const u64,
        boxes: *const u32, steps: *const u32, interleave: u32, swizzle: u32, promotion: u32, fill: u32,
    ) = |gpu, _| {
        if map.is_null() {
            return Err(null("the tensor map").into());
        }
        // SAFETY: the program passes arrays of the tensor's rank (one less for the strides).
        let (sizes, strides, boxes, steps) = unsafe {
            (
                array(sizes, rank, "the sizes")?,
                array(strides, rank.saturating_sub(1), "the strides")?,
                array(boxes, rank, "the sizes of the box")?,
                array(steps, rank, "the steps")?,
            )
        };
        let encoded = gpu.tensor_map(&TensorMap {
            data_type, rank: rank.into(), address: address(memory) as u64, sizes, strides, boxes, steps, interleave,
            swizzle, promotion, fill,
        })?;
        // SAFETY: the program passes room for a tensor map.
        unsafe { map.write(encoded) };
        Ok(())
    };
    fn mgpuTensorMapEncodeTiledMemref(
        rank: i64, descriptor: *const i64, data_type: i64, interleave: i64, swizzle: i64, promotion: i64, fill: i64,
        boxes: *const i64,
    ) -> *mut c_void = |gpu, _| {
        // SAFETY: the program passes a descriptor and an array of that rank.
        let map = unsafe {
            let memref = Descriptor::read(rank, descriptor)?;
            memref.tensor_map([data_type, interleave, swizzle, promotion, fill], boxes)?
        };
        Ok(pointer(gpu.tensor_map_on_device(&map)?))
    };
}

fn not_negative(what: &'static str, value: i64) -> Result<i64, String> {
    match value {
        0.. => Ok(value),
        _ => Err(negative(what, value)),
    }
}

/// # Safety
///
/// What is not null has so many bytes, as long as the slice is used.
unsafe fn slice<'a>(start: *const u8, bytes: i64, what: &'static str) -> Result<&'a [u8], String> {
    if start.is_null() {
        return Err(null(what));
    }
    let bytes = usize::try_from(bytes).map_err(|_| negative("the size of the image", bytes))?;
    // SAFETY: forwarded to the caller.
    Ok(unsafe { std::slice::from_raw_parts(start, bytes) })
}

/// # Safety
///
/// What is not null ends in a NUL, and lives as long as the text is used.
unsafe fn text<'a>(start: *const c_char, what: &'static str) -> Result<&'a CStr, String> {
    if start.is_null() {
        return Err(null(what));
    }
    // SAFETY: forwarded to the caller.
    Ok(unsafe { CStr::from_ptr(start) })
}

/// The first `count` numbers, at most 5, and ones behind them.
///
/// # Safety
///
/// What is not null has so many elements.
unsafe fn array<T: Copy + From<u8>>(start: *const T, count: u32, what: &'static str) -> Result<[T; 5], String> {
    let mut numbers = [T::from(1); 5];
    if start.is_null() && count > 0 {
        return Err(null(what));
    }
    for (index, number) in numbers.iter_mut().enumerate().take(count as usize) {
        // SAFETY: forwarded to the caller.
        *number = unsafe { start.add(index).read_unaligned() };
    }
    Ok(numbers)
}

/// A memref's descriptor in memory: allocated and aligned pointer, offset, sizes, strides.
struct Descriptor<'a> {
    aligned: usize,
    offset: i64,
    sizes: &'a [i64],
    strides: &'a [i64],
}

impl<'a> Descriptor<'a> {
    /// # Safety
    ///
    /// What is not null is a descriptor of that rank, as long as the value is used.
    unsafe fn read(rank: i64, descriptor: *const i64) -> Result<Self, String> {
        if descriptor.is_null() {
            return Err(null("the memref's descriptor"));
        }
        let dimensions = usize::try_from(rank).map_err(|_| negative("the memref's rank", rank))?;
        // SAFETY: forwarded to the caller.
        let words: &'a [i64] = unsafe { std::slice::from_raw_parts(descriptor, 3 + 2 * dimensions) };
        let (head, rest) = words.split_at(3);
        let (sizes, strides) = rest.split_at(dimensions);
        let &[_, aligned, offset] = head else {
            return Err(null("the memref's descriptor"));
        };
        Ok(Self {
            aligned: aligned as usize,
            offset,
            sizes,
            strides,
        })
    }

    /// The address of the first element.
    fn start(&self, element: i64) -> usize {
        self.aligned
            .wrapping_add_signed(self.offset.wrapping_mul(element) as isize)
    }

    /// Bytes of all elements, which have to follow each other.
    fn dense_bytes(&self, element: i64) -> Result<i64, String> {
        let mut count = 1i64;
        for (&size, &stride) in self.sizes.iter().zip(self.strides).rev() {
            not_negative("a size of the memref", size)?;
            if size > 1 && stride != count {
                return Err("the elements of the memref do not follow each other".to_owned());
            }
            count = count.checked_mul(size).ok_or(TOO_LARGE)?;
        }
        Ok(count.checked_mul(element).ok_or(TOO_LARGE)?)
    }

    /// `numbers`: type of the elements, interleave, swizzle, promotion, fill.
    ///
    /// # Safety
    ///
    /// What is not null has a number for each dimension.
    unsafe fn tensor_map(&self, numbers: [i64; 5], boxes: *const i64) -> Result<TensorMap, String> {
        /// Bytes of an element, by `CUtensorMapDataType`.
        const BYTES: [u64; 13] = [1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4];
        let rank = self.sizes.len();
        if rank == 0 || rank > 5 {
            return Err(tensor_rank(rank as i64));
        }
        if boxes.is_null() {
            return Err(null("the sizes of the box"));
        }
        // Callers pass i32 or i64: the lower half is what counts.
        let [data_type, interleave, swizzle, promotion, fill] = numbers.map(|number| number as u32);
        let bytes = BYTES.get(data_type as usize).copied();
        let bytes = bytes.ok_or_else(|| format!("{data_type} is no data type of tensor maps (CUtensorMapDataType)"))?;
        let mut map = TensorMap {
            data_type,
            rank: rank as i64,
            address: self.start(bytes as i64) as u64,
            sizes: [1; 5],
            strides: [0; 5],
            boxes: [1; 5],
            steps: [1; 5],
            interleave,
            swizzle,
            promotion,
            fill,
        };
        for (place, &size) in map.sizes.iter_mut().zip(self.sizes.iter().rev()) {
            *place = not_negative("a size of the memref", size)? as u64;
        }
        for (place, &stride) in map.strides.iter_mut().zip(self.strides.iter().rev().skip(1)) {
            let stride = not_negative("a stride of the memref", stride)? as u64;
            *place = stride.checked_mul(bytes).ok_or(TOO_LARGE)?;
        }
        // SAFETY: forwarded to the caller.
        let boxes = unsafe { std::slice::from_raw_parts(boxes, rank) };
        for (place, &size) in map.boxes.iter_mut().zip(boxes.iter().rev()) {
            *place = u32::try_from(size).map_err(|_| negative("a size of the box", size))?;
        }
        Ok(map)
    }
}

#[cfg(test)]
#[path = "../../tests/bridge/mgpu.rs"]
mod tests;
