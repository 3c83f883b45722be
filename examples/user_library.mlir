// user_library: y[i] = scale_and_shift(x[i]), a function that is not in this file.
//
// It is defined in lib/scale_and_shift.ll and arrives as bitcode:
//
//   llvm-as lib/scale_and_shift.ll -o scale_and_shift.bc
//
// The linker joins the two modules and the optimiser inlines the call. Without the
// library, the symbol stays undefined, and that is an error in every output
// format.
//
// Launch: block (256, 1, 1), grid (ceil(n / 256), 1, 1).
// gpulower-targets: sm_80,sm_90,gfx90a,gfx942,gfx1100
// gpulower-link: lib/scale_and_shift.ll

gpu.module @user_library {
  func.func private @scale_and_shift(f32) -> f32

  gpu.func @user_library(%x: memref<?xf32>, %y: memref<?xf32>) kernel
      attributes {known_block_size = array<i32: 256, 1, 1>} {
    %c0 = arith.constant 0 : index
    %n = memref.dim %x, %c0 : memref<?xf32>
    %i = gpu.global_id x
    %in_bounds = arith.cmpi ult, %i, %n : index
    scf.if %in_bounds {
      %v = memref.load %x[%i] : memref<?xf32>
      %r = func.call @scale_and_shift(%v) : (f32) -> f32
      memref.store %r, %y[%i] : memref<?xf32>
    }
    gpu.return
  }
}
