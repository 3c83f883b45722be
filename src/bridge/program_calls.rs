//! What a running program asks of the GPU, with plain addresses that nothing here can check. Whoever runs the program vouches
//! for what it asks for, and for nothing else: each request can be carried out once, as it was made, and only while the
//! program waits for it.

use std::marker::PhantomData;

use gpulower_runtime::{Arguments, Context, Function, LaunchShape, Registration, Stream};

use super::mgpu::{CallError, TOO_LARGE, negative, null};

/// A program is running, and this is one of its calls.
#[derive(Debug)]
pub(super) struct Vouched<'call>(PhantomData<&'call mut ()>);

impl Vouched<'_> {
    /// # Safety
    ///
    /// A program that the caller was told to run is in a call, and waits for it.
    pub(super) const unsafe fn new() -> Self {
        Self(PhantomData)
    }
}

/// A copy between any two addresses, of the device or of the host.
#[derive(Debug)]
pub(crate) struct CopyCall<'call> {
    to: usize,
    from: usize,
    bytes: i64,
    stream: usize,
    _call: PhantomData<&'call ()>,
}

/// Memory of the device that is to be filled with copies of a value.
#[derive(Debug)]
pub(crate) struct FillCall<'call> {
    to: usize,
    element: Element,
    count: i64,
    stream: usize,
    _call: PhantomData<&'call ()>,
}

/// Host memory of the program's that is to be pinned.
#[derive(Debug)]
pub(crate) struct PinCall<'call> {
    start: usize,
    bytes: i64,
    _call: PhantomData<&'call ()>,
}

/// A launch.
#[derive(Debug)]
pub(crate) struct KernelCall<'call> {
    pub(super) kernel: KernelHandle,
    /// Blocks of the grid.
    pub(super) grid: [i64; 3],
    /// Blocks of a cluster.
    pub(super) cluster: Option<[i64; 3]>,
    /// Threads of a block.
    pub(super) block: [i64; 3],
    /// Bytes of dynamic shared memory.
    pub(super) shared: i64,
    pub(super) stream: usize,
    /// Whether to wait for it.
    pub(super) wait: bool,
    /// The arguments' number, where the program says it.
    pub(super) argument_count: Option<u64>,
    /// Whether it passes arguments in the way that is not supported here (`extra`).
    pub(super) has_extra: bool,
    pub(super) arguments: *const *const u8,
    pub(super) _call: &'call Vouched<'call>,
}

/// An element that memory is filled with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Element {
    Bits8(u8),
    Bits16(u16),
    Bits32(u32),
    Bits64(u64),
}

/// Which kernel is launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KernelHandle {
    /// What [`Gpu::function`](super::mgpu::Gpu::function) gave.
    Function(usize),
    /// The address of the stub that stands for it.
    Stub(usize),
}

/// Something else than what the program named was looked up.
fn other_handle(what: &str) -> String {
    format!("{what} is not the one that the program named (this is a bug in gpulower)")
}

/// The handles of streams are the driver's.
fn check_stream(stream: &Stream, handle: usize) -> Result<(), String> {
    match stream.raw().addr() == handle {
        true => Ok(()),
        false => Err(other_handle("the stream")),
    }
}

fn length(what: &'static str, size: i64) -> Result<usize, String> {
    usize::try_from(size).map_err(|_| negative(what, size))
}

impl<'call> CopyCall<'call> {
    pub(super) const fn new(to: usize, from: usize, bytes: i64, stream: usize, _: &'call Vouched<'call>) -> Self {
        Self {
            to,
            from,
            bytes,
            stream,
            _call: PhantomData,
        }
    }

    /// The stream's handle.
    pub(crate) const fn stream(&self) -> usize {
        self.stream
    }

    /// Enqueues it in its stream.
    pub(crate) fn enqueue(self, stream: &Stream) -> Result<(), CallError> {
        check_stream(stream, self.stream)?;
        let bytes = length("the size", self.bytes)?;
        if bytes == 0 {
            return Ok(());
        }
        if self.to == 0 {
            return Err(null("the target of the copy").into());
        }
        if self.from == 0 {
            return Err(null("the source of the copy").into());
        }
        // SAFETY: the program asked for it, and is vouched for.
        Ok(unsafe { stream.copy(self.to as u64, self.from as u64, bytes) }?)
    }
}

impl<'call> FillCall<'call> {
    pub(super) const fn new(to: usize, element: Element, count: i64, stream: usize, _: &'call Vouched<'call>) -> Self {
        Self {
            to,
            element,
            count,
            stream,
            _call: PhantomData,
        }
    }

    /// The stream's handle.
    pub(crate) const fn stream(&self) -> usize {
        self.stream
    }

    /// Enqueues it in its stream.
    pub(crate) fn enqueue(self, stream: &Stream) -> Result<(), CallError> {
        check_stream(stream, self.stream)?;
        let (count, to) = (length("the count", self.count)?, self.to as u64);
        if count == 0 {
            return Ok(());
        }
        if to == 0 {
            return Err(null("the memory to set").into());
        }
        // SAFETY: the program asked for it, and is vouched for: the memory has so many elements.
        unsafe {
            match self.element {
                Element::Bits8(value) => stream.fill_8(to, value, count)?,
                Element::Bits16(value) => stream.fill_16(to, value, count)?,
                Element::Bits32(value) => stream.fill_32(to, value, count)?,
                Element::Bits64(value) => {
                    let (low, high) = (value as u32, (value >> 32) as u32);
                    let words = count.checked_mul(2).ok_or(TOO_LARGE)?;
                    let bytes = count.checked_mul(8).ok_or(TOO_LARGE)?;
                    if low == high {
                        return Ok(stream.fill_32(to, low, words)?);
                    }
                    // The first element, and then what is there behind itself, twice as much each time.
                    stream.fill_32(to, low, 1)?;
                    stream.fill_32(to.wrapping_add(4), high, 1)?;
                    let mut done = 8;
                    while done < bytes {
                        let amount = done.min(bytes - done);
                        stream.copy(to.wrapping_add(done as u64), to, amount)?;
                        done += amount;
                    }
                }
            }
        }
        Ok(())
    }
}

impl<'call> PinCall<'call> {
    pub(super) const fn new(start: usize, bytes: i64, _: &'call Vouched<'call>) -> Self {
        Self {
            start,
            bytes,
            _call: PhantomData,
        }
    }

    /// The address.
    pub(crate) const fn start(&self) -> usize {
        self.start
    }

    /// Pins the memory; `None` for no bytes.
    pub(crate) fn pin(self, context: &Context) -> Result<Option<Registration>, CallError> {
        let bytes = length("the size", self.bytes)?;
        if bytes == 0 {
            return Ok(None);
        }
        if self.start == 0 {
            return Err(null("the host memory").into());
        }
        // SAFETY: the program asked for it, and is vouched for: the memory stays as long as it is pinned.
        Ok(Some(unsafe { context.register_memory(self.start, bytes) }?))
    }
}

impl KernelCall<'_> {
    /// Which kernel.
    pub(crate) const fn kernel(&self) -> KernelHandle {
        self.kernel
    }

    /// The stream's handle.
    pub(crate) const fn stream(&self) -> usize {
        self.stream
    }

    /// Enqueues the launch in its stream, and waits for it where the program does.
    pub(crate) fn enqueue(self, function: &Function, stream: &Stream) -> Result<(), CallError> {
        check_stream(stream, self.stream)?;
        if matches!(self.kernel, KernelHandle::Function(handle) if handle != function.raw().addr()) {
            return Err(other_handle("the kernel").into());
        }
        let mut shape = LaunchShape::new(
            sizes("a size of the grid", self.grid)?,
            sizes("a size of the block", self.block)?,
        )
        .with_dynamic_shared(size("bytes of dynamic shared memory", self.shared)?);
        if let Some(cluster) = self.cluster {
            shape = shape.with_cluster(sizes("a size of the cluster", cluster)?);
        }
        let arguments = self.arguments(function)?;
        let launch = function.launch(&shape, &arguments)?;
        // SAFETY: the program asked for it, and is vouched for, with what its kernels do.
        unsafe { launch.enqueue(stream) }?;
        if self.wait {
            stream.synchronize()?;
        }
        Ok(())
    }

    /// The values that the launch passes, of the sizes that the kernel's image says.
    fn arguments(&self, function: &Function) -> Result<Arguments, String> {
        let kernel = function.kernel();
        let name = &kernel.name;
        if self.has_extra {
            return Err(
                "arguments of a kernel in one buffer (the parameter `extra`) are not supported: pass an array of pointers"
                    .to_owned(),
            );
        }
        let mut arguments = Arguments::new();
        let Some(parameters) = &kernel.parameters else {
            return match self.argument_count {
                Some(0) => Ok(arguments),
                _ => Err(format!(
                    "the image does not say which parameters kernel {name} has, so that its arguments cannot be read"
                )),
            };
        };
        if let Some(given) = self.argument_count.filter(|given| *given != parameters.len() as u64) {
            return Err(format!(
                "kernel {name} takes {} arguments, and {given} are given; was it compiled with other options than the host code?",
                parameters.len()
            ));
        }
        for (index, parameter) in parameters.iter().enumerate() {
            let null = || null(&format!("the pointer to argument {index} of kernel {name}"));
            if self.arguments.is_null() {
                return Err(null());
            }
            // SAFETY: the program passes an array of pointers, one for each parameter of the kernel, to values of the
            // parameters' sizes; whoever runs it vouches for that. They live until the call returns.
            let bytes = unsafe {
                let argument = *self.arguments.add(index);
                (!argument.is_null()).then(|| std::slice::from_raw_parts(argument, parameter.size as usize))
            };
            arguments.raw(bytes.ok_or_else(null)?);
        }
        Ok(arguments)
    }
}

fn size(what: &'static str, size: i64) -> Result<u32, String> {
    u32::try_from(size).map_err(|_| format!("{what} of {size}: it has to be from 0 to 4294967295"))
}

fn sizes(what: &'static str, all: [i64; 3]) -> Result<[u32; 3], String> {
    let [x, y, z] = all;
    Ok([size(what, x)?, size(what, y)?, size(what, z)?])
}
