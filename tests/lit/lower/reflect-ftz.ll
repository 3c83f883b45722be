; Whoever made a module says by a flag what __nvvm_reflect("__CUDA_FTZ") gives, as Triton does.
; RUN: gpulower compile %s --target sm_90 --emit ptx -o - | FileCheck %s --check-prefix=FLUSH
; RUN: gpulower compile %s --target sm_90 --emit ptx --input-optimized -o - | FileCheck %s --check-prefix=FLUSH
; RUN: grep -v nvvm-reflect-ftz %s | sed 's/llvm.module.flags = .*/other = !{}/' > %t.ll
; RUN: gpulower compile %t.ll --target sm_90 --emit ptx -o - | FileCheck %s --check-prefix=KEEP
; RUN: gpulower compile %t.ll --target sm_90 --ftz --emit ptx -o - | FileCheck %s --check-prefix=FLUSH

; FLUSH: ex2.approx.ftz.f32
; KEEP: ex2.approx.f32

@name = private unnamed_addr constant [11 x i8] c"__CUDA_FTZ\00"

define ptx_kernel void @power(ptr addrspace(1) %p) {
  %x = load float, ptr addrspace(1) %p
  %ftz = call i32 @__nvvm_reflect(ptr @name)
  %flush = icmp ne i32 %ftz, 0
  br i1 %flush, label %flushed, label %kept
flushed:
  %a = call float @llvm.nvvm.ex2.approx.ftz.f(float %x)
  br label %end
kept:
  %b = call float @llvm.nvvm.ex2.approx.f(float %x)
  br label %end
end:
  %y = phi float [ %a, %flushed ], [ %b, %kept ]
  store float %y, ptr addrspace(1) %p
  ret void
}
declare i32 @__nvvm_reflect(ptr)
declare float @llvm.nvvm.ex2.approx.ftz.f(float)
declare float @llvm.nvvm.ex2.approx.f(float)

!llvm.module.flags = !{!0}
!0 = !{i32 4, !"nvvm-reflect-ftz", i32 1}
