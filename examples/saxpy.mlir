// saxpy: y[i] = a * x[i] + y[i]
//
// Launch: block (256, 1, 1), grid (ceil(n / 256), 1, 1).
// gpulower-targets: sm_80,sm_90,gfx90a,gfx942,gfx1100

gpu.module @saxpy {
  gpu.func @saxpy(%a: f32, %x: memref<?xf32>, %y: memref<?xf32>) kernel
      attributes {known_block_size = array<i32: 256, 1, 1>} {
    %c0 = arith.constant 0 : index
    %n = memref.dim %y, %c0 : memref<?xf32>
    %i = gpu.global_id x

    // The last block may reach past the end.
    %in_bounds = arith.cmpi ult, %i, %n : index
    scf.if %in_bounds {
      %xi = memref.load %x[%i] : memref<?xf32>
      %yi = memref.load %y[%i] : memref<?xf32>
      %r = math.fma %a, %xi, %yi : f32
      memref.store %r, %y[%i] : memref<?xf32>
    }
    gpu.return
  }
}
