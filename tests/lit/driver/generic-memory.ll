; LLVM IR that knows no address spaces: AMD's back end ends in "alloca on amdgpu must be in addrspace(5)" and "Cannot select: load".

; RUN: gpulower compile %s --target gfx942 --emit asm -o - | FileCheck %s
; RUN: gpulower compile %s --target gfx942,gfx1100,gfx1201 -o %t/

@table = internal constant [4 x float] [float 1.0, float 2.0, float 4.0, float 8.0]
@counter = global i32 0
@self = global ptr @self

; CHECK-LABEL: sum:
define float @sum(i32 %i, float %x) {
  %slots = alloca [4 x float]
  call void @llvm.lifetime.start.p0(ptr %slots)
  %slot = getelementptr [4 x float], ptr %slots, i32 0, i32 %i
  %entry = getelementptr [4 x float], ptr @table, i32 0, i32 %i
  %known = load float, ptr %entry
  call void @llvm.memset.p0.i64(ptr %slots, i8 0, i64 16, i1 false)
  store float %x, ptr %slot
  ; CHECK: global_atomic_add
  %old = atomicrmw add ptr @counter, i32 1 monotonic
  %number = sitofp i32 %old to float
  %other = load float, ptr %slots
  call void @llvm.lifetime.end.p0(ptr %slots)
  %first = fadd float %known, %other
  %all = fadd float %first, %number
  ret float %all
}

; CHECK: .quad self
