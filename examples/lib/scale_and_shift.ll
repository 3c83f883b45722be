; float scale_and_shift(float x) { return 3.0f * x + 0.5f; }
;
; The user's own device library of examples/user_library.mlir. It names neither
; a target triple nor a data layout, so one file serves both vendors: the linker
; takes those of the module that it is linked into.

define float @scale_and_shift(float %x) {
  %r = call float @llvm.fma.f32(float %x, float 3.0, float 0.5)
  ret float %r
}

declare float @llvm.fma.f32(float, float, float)
