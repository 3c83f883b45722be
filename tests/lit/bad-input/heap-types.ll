; The heap of AMD's chips is that of C: other functions of these names are the module's own, and nobody defines them.

; RUN: not gpulower compile %s --target gfx942 -o %t 2>&1 | FileCheck %s
; CHECK: unresolved symbols:
; CHECK-DAG: free (needed by kernel k)
; CHECK-DAG: malloc (needed by kernel k)

declare ptr @malloc(i64)
declare i32 @free(i64, ptr)

define amdgpu_kernel void @k(ptr addrspace(1) %p) {
  %memory = call ptr @malloc(i64 8)
  %freed = call i32 @free(i64 4, ptr %memory)
  store i32 %freed, ptr addrspace(1) %p
  ret void
}
