// gelu: y[i] = 0.5 * x[i] * (1 + erf(x[i] / sqrt(2))), the exact form.
//
// erf has no instruction on either vendor's hardware: it becomes a call of
// libdevice's __nv_erff or ocml's __ocml_erf_f32, so this example does not
// build unless the vendor's device library is found and linked.
//
// Launch: block (256, 1, 1), any grid; ceil(n / 256) blocks give one element
// to each thread.
// gpulower-targets: sm_80,sm_90,gfx90a,gfx942,gfx1100

gpu.module @gelu {
  gpu.func @gelu(%x: memref<?xf32>, %y: memref<?xf32>) kernel
      attributes {known_block_size = array<i32: 256, 1, 1>} {
    %c0 = arith.constant 0 : index
    %half = arith.constant 0.5 : f32
    %one = arith.constant 1.0 : f32
    %inv_sqrt2 = arith.constant 0.707106781 : f32
    %n = memref.dim %x, %c0 : memref<?xf32>

    %first = gpu.global_id x
    %block = gpu.block_dim x
    %grid = gpu.grid_dim x
    %stride = arith.muli %block, %grid : index

    scf.for %i = %first to %n step %stride {
      %v = memref.load %x[%i] : memref<?xf32>
      %scaled = arith.mulf %v, %inv_sqrt2 : f32
      %erf = math.erf %scaled : f32
      %sum = arith.addf %erf, %one : f32
      %half_v = arith.mulf %v, %half : f32
      %r = arith.mulf %half_v, %sum : f32
      memref.store %r, %y[%i] : memref<?xf32>
    }
    gpu.return
  }
}
