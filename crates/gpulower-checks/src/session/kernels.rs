//! The kernels, as MLIR text.

use gpulower::runtime::{DeviceBuffer, DriverError, Stream};

/// `out[i] = factor * x[i]`, for as many elements as `x` has.
pub fn scale(factor: f32) -> String {
    format!(
        "gpu.module @kernels {{ gpu.func @scale(%x: memref<?xf32>, %out: memref<?xf32>) kernel {{
           %factor = arith.constant {bits:#x} : f32
           %zero = arith.constant 0 : index
           %n = memref.dim %x, %zero : memref<?xf32>
           %i = gpu.global_id x
           %inside = arith.cmpi ult, %i, %n : index
           scf.if %inside {{
             %v = memref.load %x[%i] : memref<?xf32>
             %r = arith.mulf %v, %factor : f32
             memref.store %r, %out[%i] : memref<?xf32>
           }}
           gpu.return }} }}",
        bits = factor.to_bits()
    )
}

/// A variable, 5 at first, that a kernel adds its argument to.
pub const COUNTER: &str = "gpu.module @counter {
  memref.global @total : memref<1xi32> = dense<5>
  gpu.func @add(%by: i32) kernel {
    %zero = arith.constant 0 : index
    %total = memref.get_global @total : memref<1xi32>
    %old = memref.atomic_rmw addi %by, %total[%zero] : (i32, memref<1xi32>) -> i32
    gpu.return } }";

/// A kernel that doubles the first number of a variable, which it gets the address of.
pub const DOUBLE: &str = "gpu.module @double {
  gpu.func @double(%total: memref<1xi32>) kernel {
    %zero = arith.constant 0 : index
    %old = memref.load %total[%zero] : memref<1xi32>
    %new = arith.addi %old, %old : i32
    memref.store %new, %total[%zero] : memref<1xi32>
    gpu.return } }";

/// A kernel that wants the variable of [`COUNTER`] to be its own.
pub const WANTS_COUNTER: &str = "gpu.module @wants {
  memref.global @total : memref<1xi32>
  gpu.func @read(%out: memref<1xi32>) kernel {
    %zero = arith.constant 0 : index
    %total = memref.get_global @total : memref<1xi32>
    %value = memref.load %total[%zero] : memref<1xi32>
    memref.store %value, %out[%zero] : memref<1xi32>
    gpu.return } }";

/// A kernel whose module has a variable of so many MiB; it stores a number at its end, and loads it again.
pub fn large(mebibytes: usize, number: i32) -> String {
    let words = mebibytes << 18;
    format!(
        "gpu.module @large {{
           memref.global @space : memref<{words}xi32> = uninitialized
           gpu.func @keep(%out: memref<1xi32>) kernel {{
             %zero = arith.constant 0 : index
             %last = arith.constant {last} : index
             %number = arith.constant {number} : i32
             %space = memref.get_global @space : memref<{words}xi32>
             %old = memref.atomic_rmw assign %number, %space[%last] : (i32, memref<{words}xi32>) -> i32
             %new = memref.load %space[%last] : memref<{words}xi32>
             memref.store %new, %out[%zero] : memref<1xi32>
             gpu.return }} }}",
        last = words - 1
    )
}

/// Waits until a word, which may be the host's, is not 0, or for a number of nanoseconds; stores when it began and ended.
pub const WAITING: &str = "gpu.module @waiting {
  gpu.func @wait(%flag: !llvm.ptr, %limit: i64, %times: memref<2xi64>) kernel {
    %first = arith.constant 0 : index
    %second = arith.constant 1 : index
    %zero = arith.constant 0 : i32
    %begin = nvvm.read.ptx.sreg.globaltimer : i64
    %end = scf.while (%t = %begin) : (i64) -> i64 {
      %value = llvm.load volatile %flag : !llvm.ptr -> i32
      %now = nvvm.read.ptx.sreg.globaltimer : i64
      %spent = arith.subi %now, %begin : i64
      %unset = arith.cmpi eq, %value, %zero : i32
      %early = arith.cmpi ult, %spent, %limit : i64
      %more = arith.andi %unset, %early : i1
      scf.condition(%more) %now : i64
    } do {
    ^bb0(%t: i64):
      scf.yield %t : i64
    }
    memref.store %begin, %times[%first] : memref<2xi64>
    memref.store %end, %times[%second] : memref<2xi64>
    gpu.return } }";

/// A word of the device.
pub fn word(buffer: &DeviceBuffer, stream: &Stream) -> Result<i32, DriverError> {
    let mut word = [0i32];
    buffer.slice(0..4)?.download(&mut word, stream)?;
    Ok(word[0])
}
