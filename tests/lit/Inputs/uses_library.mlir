// A kernel that calls a function of a library.
gpu.module @user {
  func.func private @twice(f32) -> f32
  gpu.func @kernel(%m: memref<?xf32>) kernel {
    %i = gpu.thread_id x
    %a = memref.load %m[%i] : memref<?xf32>
    %b = func.call @twice(%a) : (f32) -> f32
    memref.store %b, %m[%i] : memref<?xf32>
    gpu.return
  }
}
