; LLVM says "unsupported cmpxchg", once for each, and nothing else.

; RUN: not gpulower compile %s --target sm_90 -o %t 2>&1 | FileCheck %s
; RUN: not gpulower compile %s --target gfx942 -o %t 2>&1 | FileCheck %s
; CHECK: unsupported cmpxchg; an atomic operation has 1, 2, 4 or 8 bytes, at an address that is known to be a multiple of them

define void @f(ptr %p, i128 %x) {
  %old = atomicrmw add ptr %p, i128 %x monotonic
  %other = atomicrmw max ptr %p, i128 %x monotonic
  ret void
}
