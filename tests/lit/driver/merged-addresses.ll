; RUN: gpulower compile %s --target sm_90 --emit ptx -o - | FileCheck %s

; Structures of which one is chosen by its address are in registers all the same: kernels have no memory of each thread.
target triple = "nvptx64-nvidia-cuda"

%pair = type { i32, float, i32 }

; Three choices, one after the other, and a field that is read from the chosen one: what becomes of `cub::ArgMax`.
; CHECK-LABEL: .entry greatest(
; CHECK-NOT: .local
; CHECK: selp
; CHECK-NOT: .local
define ptx_kernel void @greatest(ptr noalias %p, float %a, i32 %i, float %b, i32 %j) {
entry:
  %x = alloca %pair, align 4
  %y = alloca %pair, align 4
  call void @llvm.lifetime.start.p0(ptr %x)
  call void @llvm.lifetime.start.p0(ptr %y)
  %x.value = getelementptr inbounds i8, ptr %x, i64 4
  %y.value = getelementptr inbounds i8, ptr %y, i64 4
  store float %a, ptr %x.value
  store float %b, ptr %y.value
  %x.index = getelementptr inbounds i8, ptr %x, i64 8
  %y.index = getelementptr inbounds i8, ptr %y, i64 8
  store i32 %i, ptr %x.index
  store i32 %j, ptr %y.index
  %less = fcmp ogt float %b, %a
  br i1 %less, label %end, label %not.less

not.less:
  %greater = fcmp olt float %b, %a
  br i1 %greater, label %end, label %equal

equal:
  %first = icmp ult i32 %j, %i
  %one = select i1 %first, ptr %y.value, ptr %x.value
  br label %end

end:
  %chosen = phi ptr [ %one, %equal ], [ %y.value, %entry ], [ %x.value, %not.less ]
  %field = getelementptr inbounds nuw i8, ptr %chosen, i64 4
  %index = load i32, ptr %field, align 4
  store i32 %index, ptr %p
  %value = load float, ptr %chosen, align 4
  %behind = getelementptr i8, ptr %p, i64 4
  store float %value, ptr %behind
  call void @llvm.lifetime.end.p0(ptr %x)
  call void @llvm.lifetime.end.p0(ptr %y)
  ret void
}

; Three variables, of which a loop chooses one in every iteration, and reads it later.
; CHECK-LABEL: .entry one_of_three(
; CHECK-NOT: .local
; CHECK: ret;
define ptx_kernel void @one_of_three(ptr noalias %p, i32 %n, i32 %m) {
entry:
  %a = alloca i32
  %b = alloca i32
  %c = alloca i32
  store i32 1, ptr %a
  store i32 2, ptr %b
  store i32 3, ptr %c
  br label %loop

loop:
  %i = phi i32 [ 0, %entry ], [ %i.next, %later ]
  %at = phi ptr [ %a, %entry ], [ %next, %later ]
  %old = load i32, ptr %at
  %new = add i32 %old, %i
  store i32 %new, ptr %a
  %bits = xor i32 %new, %m
  %odd = trunc i32 %bits to i1
  %other = select i1 %odd, ptr %b, ptr %c
  %is.small = icmp ult i32 %bits, 100
  br i1 %is.small, label %small, label %later

small:
  store i32 %bits, ptr %b
  br label %later

later:
  %next = phi ptr [ %other, %loop ], [ %a, %small ]
  %seen = load i32, ptr %other
  %place = getelementptr i32, ptr %p, i32 %i
  store i32 %seen, ptr %place
  %i.next = add nuw nsw i32 %i, 1
  %more = icmp slt i32 %i.next, %n
  br i1 %more, label %loop, label %end

end:
  ret void
}

; The greatest of an array of structures of 16 bytes, as `best = max(best, next)` copies it.
; CHECK-LABEL: .entry copied(
; CHECK-NOT: .local
; CHECK: ret;
define ptx_kernel void @copied(ptr noalias %p, ptr noalias %q, i32 %n) {
entry:
  %best = alloca { i32, float, i64 }
  %candidate = alloca { i32, float, i64 }
  call void @llvm.memcpy.p0.p0.i64(ptr align 8 %best, ptr align 8 %p, i64 16, i1 false)
  %best.value = getelementptr i8, ptr %best, i64 4
  %candidate.value = getelementptr i8, ptr %candidate, i64 4
  br label %loop

loop:
  %i = phi i32 [ 1, %entry ], [ %i.next, %loop ]
  %from = getelementptr { i32, float, i64 }, ptr %p, i32 %i
  call void @llvm.lifetime.start.p0(ptr %candidate)
  call void @llvm.memcpy.p0.p0.i64(ptr align 8 %candidate, ptr align 8 %from, i64 16, i1 false)
  store i32 %i, ptr %candidate
  %a = load float, ptr %best.value
  %b = load float, ptr %candidate.value
  %less = fcmp olt float %a, %b
  %greater = select i1 %less, ptr %candidate, ptr %best
  call void @llvm.memcpy.p0.p0.i64(ptr align 8 %best, ptr align 8 %greater, i64 16, i1 false)
  call void @llvm.lifetime.end.p0(ptr %candidate)
  %i.next = add nuw nsw i32 %i, 1
  %more = icmp slt i32 %i.next, %n
  br i1 %more, label %loop, label %end

end:
  call void @llvm.memcpy.p0.p0.i64(ptr align 8 %q, ptr align 8 %best, i64 16, i1 false)
  ret void
}

; What is written to a chosen place stays in memory; single bits of a byte among it.
; CHECK-LABEL: .entry written(
; CHECK: .local
; CHECK: ret;
define ptx_kernel void @written(ptr noalias %p, ptr noalias %q, i8 %v, i1 %bit, i1 %which) {
entry:
  %x = alloca i8
  %y = alloca i8
  store i8 %v, ptr %x
  store i8 %v, ptr %y
  %chosen = select i1 %which, ptr %x, ptr %y
  store i1 %bit, ptr %chosen
  %one = load i8, ptr %x
  %other = load i8, ptr %y
  store i8 %one, ptr %p
  store i8 %other, ptr %q
  ret void
}

; Not one element of an array of nothing is looked at.
; CHECK-LABEL: .entry empty(
define ptx_kernel void @empty(ptr noalias %p, i32 %v, i1 %which) {
entry:
  %x = alloca { i32, [400000000000 x {}], i32, i32 }
  %y = alloca { i32, [400000000000 x {}], i32, i32 }
  store i32 %v, ptr %x
  store i32 1, ptr %y
  %chosen = select i1 %which, ptr %x, ptr %y
  call void @llvm.memcpy.p0.p0.i64(ptr align 4 %p, ptr align 4 %chosen, i64 12, i1 false)
  ret void
}
