; RUN: gpulower compile %s --target sm_90 --emit ptx -o - | FileCheck %s
; RUN: gpulower compile %s --target sm_90 --emit ptx --interleave 1 -o - | FileCheck %s --check-prefix=ONE
; RUN: gpulower compile %s --target sm_90 --emit ptx --interleave 2 -o - | FileCheck %s --check-prefix=TWO

; Which loops that only read, with a known step, run several iterations at once before the PTX compiler unrolls them, and how
; they ask whether they go on. (driver/interleave.ll has loops with other steps and with stores.)

target triple = "nvptx64-nvidia-cuda"

; Every thread goes to the same end in small steps: four at once, and then the PTX compiler's four. A counter stays below its end.
; From address to address it is one number, which is not known.
; CHECK-LABEL: .entry long(
; CHECK: ld.global.b32
; CHECK-NEXT: add.s64 [[A:%rd[0-9]+]], {{%rd[0-9]+}}, [[STRIDE:%rd[0-9]+]];
; CHECK-NEXT: ld.global.b32 {{%r[0-9]+}}, {{\[}}[[A]]{{\]}};
; CHECK-NEXT: add.s64 [[B:%rd[0-9]+]], [[A]], [[STRIDE]];
; CHECK-NEXT: ld.global.b32 {{%r[0-9]+}}, {{\[}}[[B]]{{\]}};
; CHECK-NEXT: add.s64 [[C:%rd[0-9]+]], [[B]], [[STRIDE]];
; CHECK-NEXT: ld.global.b32 {{%r[0-9]+}}, {{\[}}[[C]]{{\]}};
; CHECK: setp.lt.{{[su]}}64
; CHECK: .pragma "nounroll";
; CHECK: ld.global.b32
; CHECK: setp.lt.{{[su]}}64
; CHECK-NOT: ld.global
; CHECK: ret;
; ONE-LABEL: .entry long(
; ONE: ld.global.b32
; ONE-NOT: ld.global
; ONE-NOT: setp.ne
; ONE: setp.lt.{{[su]}}64
; ONE: ret;
define ptx_kernel void @long(ptr addrspace(1) %x, ptr addrspace(1) %out, i64 %n, i64 %pitch) {
entry:
  %any = icmp sgt i64 %n, 0
  br i1 %any, label %loop, label %end
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %s = phi float [ 0.0, %entry ], [ %t, %loop ]
  %at = mul i64 %i, %pitch
  %p = getelementptr float, ptr addrspace(1) %x, i64 %at
  %v = load float, ptr addrspace(1) %p, align 4
  %t = fadd float %s, %v
  %next = add nuw nsw i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %end
end:
  %r = phi float [ 0.0, %entry ], [ %t, %loop ]
  store float %r, ptr addrspace(1) %out, align 4
  ret void
}

; The end is in memory, one for each row: not known to be far, as it is for the size of an array.
; CHECK-LABEL: .entry of_a_row(
; CHECK-COUNT-2: ld.global.b32
; CHECK-NOT: ld.global
; CHECK: ret;
define ptx_kernel void @of_a_row(ptr addrspace(1) %x, ptr addrspace(1) %ends, ptr addrspace(1) %out) {
entry:
  %n = load i32, ptr addrspace(1) %ends, align 4
  %any = icmp sgt i32 %n, 0
  br i1 %any, label %loop, label %end
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %s = phi float [ 0.0, %entry ], [ %t, %loop ]
  %p = getelementptr float, ptr addrspace(1) %x, i32 %i
  %v = load float, ptr addrspace(1) %p, align 4
  %t = fadd float %s, %v
  %next = add nuw nsw i32 %i, 1
  %more = icmp slt i32 %next, %n
  br i1 %more, label %loop, label %end
end:
  %r = phi float [ 0.0, %entry ], [ %t, %loop ]
  store float %r, ptr addrspace(1) %out, align 4
  ret void
}

; Threads share a row: left to the PTX compiler, but for halves, of which four are few bytes.
; CHECK-LABEL: .entry shared_row(
; CHECK-COUNT-1: ld.global.b32
; CHECK-NOT: ld.global
; CHECK: ret;
define ptx_kernel void @shared_row(ptr addrspace(1) %x, ptr addrspace(1) %out, i64 %n) {
entry:
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %first = zext i32 %tid to i64
  %any = icmp slt i64 %first, %n
  br i1 %any, label %loop, label %end
loop:
  %i = phi i64 [ %first, %entry ], [ %next, %loop ]
  %s = phi float [ 0.0, %entry ], [ %t, %loop ]
  %p = getelementptr float, ptr addrspace(1) %x, i64 %i
  %v = load float, ptr addrspace(1) %p, align 4
  %t = fadd float %s, %v
  %next = add nuw nsw i64 %i, 256
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %end
end:
  %r = phi float [ 0.0, %entry ], [ %t, %loop ]
  store float %r, ptr addrspace(1) %out, align 4
  ret void
}

; CHECK-LABEL: .entry shared_row_of_halves(
; CHECK-COUNT-2: ld.global.b16
; CHECK: .pragma "nounroll";
; CHECK-COUNT-1: ld.global.b16
; CHECK-NOT: ld.global
; CHECK: ret;
define ptx_kernel void @shared_row_of_halves(ptr addrspace(1) %x, ptr addrspace(1) %out, i64 %n) {
entry:
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %first = zext i32 %tid to i64
  %any = icmp slt i64 %first, %n
  br i1 %any, label %loop, label %end
loop:
  %i = phi i64 [ %first, %entry ], [ %next, %loop ]
  %s = phi float [ 0.0, %entry ], [ %t, %loop ]
  %p = getelementptr half, ptr addrspace(1) %x, i64 %i
  %v = load half, ptr addrspace(1) %p, align 2
  %wide = fpext half %v to float
  %t = fadd float %s, %wide
  %next = add nuw nsw i64 %i, 256
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %end
end:
  %r = phi float [ 0.0, %entry ], [ %t, %loop ]
  store float %r, ptr addrspace(1) %out, align 4
  ret void
}

; Much is done with each load, nine operations and more: four iterations, which the PTX compiler does not unroll again.
; CHECK-LABEL: .entry works_long(
; CHECK: .pragma "nounroll";
; CHECK-COUNT-4: ld.global.b32
; CHECK-NOT: ld.global
; CHECK-COUNT-4: rsqrt.approx.f32
; CHECK: setp.lt.{{[su]}}64
; CHECK: .pragma "nounroll";
; CHECK: ld.global.b32
; CHECK-NOT: ld.global
; CHECK: ret;
; ONE-LABEL: .entry works_long(
; ONE: ld.global.b32
; ONE-NOT: ld.global
; ONE: ret;
define ptx_kernel void @works_long(ptr addrspace(1) %x, ptr addrspace(1) %out, i64 %n, float %mine) {
entry:
  %any = icmp sgt i64 %n, 0
  br i1 %any, label %loop, label %end
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %s = phi float [ 0.0, %entry ], [ %t, %loop ]
  %p = getelementptr float, ptr addrspace(1) %x, i64 %i
  %v = load float, ptr addrspace(1) %p, align 4
  %d = fsub float %v, %mine
  %square = fmul float %d, %d
  %some = fadd float %square, 1.0
  %r = call float @llvm.nvvm.rsqrt.approx.f(float %some)
  %cube = fmul float %r, %square
  %other = fsub float %cube, %mine
  %again = fmul float %other, %r
  %more_of_it = fmul float %again, %d
  %t = fadd float %s, %more_of_it
  %next = add nuw nsw i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %end
end:
  %sum = phi float [ 0.0, %entry ], [ %t, %loop ]
  store float %sum, ptr addrspace(1) %out, align 4
  ret void
}

; It is left to the PTX compiler where fewer than four iterations at once are asked for.
; TWO-LABEL: .entry works_long(
; TWO-COUNT-1: ld.global.b32
; TWO-NOT: ld.global
; TWO: ret;

; Little is done with each load: loads come first, and the PTX compiler may unroll it again.
; CHECK-LABEL: .entry counts(
; CHECK: ld.global.b32
; CHECK-NOT: selp
; CHECK-COUNT-3: ld.global.b32
; CHECK: selp
; CHECK: ret;
define ptx_kernel void @counts(ptr addrspace(1) %x, ptr addrspace(1) %out, i64 %n, float %least) {
entry:
  %any = icmp sgt i64 %n, 0
  br i1 %any, label %loop, label %end
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %s = phi float [ 0.0, %entry ], [ %t, %loop ]
  %p = getelementptr float, ptr addrspace(1) %x, i64 %i
  %v = load float, ptr addrspace(1) %p, align 4
  %is_more = fcmp ogt float %v, %least
  %sum = fadd float %s, %v
  %t = select i1 %is_more, float %sum, float %s
  %next = add nuw nsw i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %end
end:
  %r = phi float [ 0.0, %entry ], [ %t, %loop ]
  store float %r, ptr addrspace(1) %out, align 4
  ret void
}

; The PTX compiler moves no load over a division: four loads come first in a long loop, two in one with a step for the threads of a block.
; CHECK-LABEL: .entry divides(
; CHECK: ld.global.b32
; CHECK-NOT: div.rn
; CHECK-COUNT-3: ld.global.b32
; CHECK-NOT: ld.global
; CHECK-COUNT-4: div.rn.f32
; CHECK: ld.global.b32
; CHECK-NOT: ld.global
; CHECK: ret;
; CHECK-LABEL: .entry divides_shared(
; CHECK: ld.global.b32
; CHECK-NOT: div.rn
; CHECK: ld.global.b32
; CHECK-NOT: ld.global
; CHECK-COUNT-2: div.rn.f32
; CHECK: ld.global.b32
; CHECK-NOT: ld.global
; CHECK: ret;
define ptx_kernel void @divides(ptr addrspace(1) %x, ptr addrspace(1) %out, i64 %n, float %mine) {
entry:
  %any = icmp sgt i64 %n, 0
  br i1 %any, label %loop, label %end
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %s = phi float [ 0.0, %entry ], [ %t, %loop ]
  %p = getelementptr float, ptr addrspace(1) %x, i64 %i
  %v = load float, ptr addrspace(1) %p, align 4
  %d = fsub float %v, %mine
  %square = fmul float %d, %d
  %some = fadd float %square, 1.0
  %r = fdiv float %d, %some
  %t = fadd float %s, %r
  %next = add nuw nsw i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %end
end:
  %sum = phi float [ 0.0, %entry ], [ %t, %loop ]
  store float %sum, ptr addrspace(1) %out, align 4
  ret void
}

define ptx_kernel void @divides_shared(ptr addrspace(1) %x, ptr addrspace(1) %out, i64 %n, float %mine) {
entry:
  %id = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %thread = zext i32 %id to i64
  %any = icmp sgt i64 %n, %thread
  br i1 %any, label %loop, label %end
loop:
  %i = phi i64 [ %thread, %entry ], [ %next, %loop ]
  %s = phi float [ 0.0, %entry ], [ %t, %loop ]
  %p = getelementptr float, ptr addrspace(1) %x, i64 %i
  %v = load float, ptr addrspace(1) %p, align 4
  %d = fsub float %v, %mine
  %square = fmul float %d, %d
  %some = fadd float %square, 1.0
  %r = fdiv float %d, %some
  %t = fadd float %s, %r
  %next = add nuw nsw i64 %i, 256
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %end
end:
  %sum = phi float [ 0.0, %entry ], [ %t, %loop ]
  store float %sum, ptr addrspace(1) %out, align 4
  ret void
}

; Two loads that are four bytes apart: one address for both, and one number from iteration to iteration.
; CHECK-LABEL: .entry pairs(
; CHECK: ld.global.b32 {{%r[0-9]+}}, {{\[}}[[P:%rd[0-9]+]]{{\]}};
; CHECK-NEXT: ld.global.b32 {{%r[0-9]+}}, {{\[}}[[P]]+4{{\]}};
; CHECK-NEXT: add.s64 [[Q:%rd[0-9]+]], [[P]], [[STEP:%rd[0-9]+]];
; CHECK-NEXT: ld.global.b32 {{%r[0-9]+}}, {{\[}}[[Q]]{{\]}};
; CHECK-NEXT: ld.global.b32 {{%r[0-9]+}}, {{\[}}[[Q]]+4{{\]}};
; CHECK-NEXT: add.s64 {{%rd[0-9]+}}, [[Q]], [[STEP]];
; CHECK: ret;
define ptx_kernel void @pairs(ptr addrspace(1) %x, ptr addrspace(1) %out, i64 %n, i64 %pitch) {
entry:
  %any = icmp sgt i64 %n, 0
  br i1 %any, label %loop, label %end
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %s = phi float [ 0.0, %entry ], [ %u, %loop ]
  %at = mul i64 %i, %pitch
  %p = getelementptr float, ptr addrspace(1) %x, i64 %at
  %q = getelementptr i8, ptr addrspace(1) %p, i64 4
  %v = load float, ptr addrspace(1) %p, align 4
  %w = load float, ptr addrspace(1) %q, align 4
  %t = fadd float %s, %v
  %u = fadd float %t, %w
  %next = add nuw nsw i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %end
end:
  %r = phi float [ 0.0, %entry ], [ %u, %loop ]
  store float %r, ptr addrspace(1) %out, align 4
  ret void
}

; Never more than three iterations: there is no loop for four, nor one at all.
; CHECK-LABEL: .entry few(
; CHECK-COUNT-3: ld.global.b32
; CHECK-NOT: ld.global
; CHECK: ret;
define ptx_kernel void @few(ptr addrspace(1) %x, ptr addrspace(1) %out, i64 %pitch, i64 %many) {
entry:
  %n = and i64 %many, 3
  %any = icmp ne i64 %n, 0
  br i1 %any, label %loop, label %end
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %s = phi float [ 0.0, %entry ], [ %t, %loop ]
  %at = mul i64 %i, %pitch
  %p = getelementptr float, ptr addrspace(1) %x, i64 %at
  %v = load float, ptr addrspace(1) %p, align 4
  %t = fadd float %s, %v
  %next = add nuw nsw i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %end
end:
  %r = phi float [ 0.0, %entry ], [ %t, %loop ]
  store float %r, ptr addrspace(1) %out, align 4
  ret void
}

; The number of steps is wanted behind the loop: it is counted in place, without a copy.
; CHECK-LABEL: .entry steps(
; CHECK: add.s32 [[N:%r[0-9]+]], [[N]], 1;
; CHECK-NOT: mov.b32 [[N]]
; CHECK: ret;
define ptx_kernel void @steps(ptr addrspace(1) %out, float %by) {
entry:
  br label %loop
loop:
  %n = phi i32 [ 0, %entry ], [ %next, %loop ]
  %x = phi float [ 1.0, %entry ], [ %y, %loop ]
  %y = fmul float %x, %by
  %next = add nuw nsw i32 %n, 1
  %few = icmp ult i32 %n, 255
  %small = fcmp olt float %y, 4.0
  %more = and i1 %few, %small
  br i1 %more, label %loop, label %end
end:
  store i32 %next, ptr addrspace(1) %out, align 4
  ret void
}

; LLVM makes `i < 24` of `i + 8 < 32`, of unsigned numbers. Eight rows of threads have four iterations each: all of them at once,
; which is not a loop to unroll. The load is under a condition, and of other memory than what is written.
; CHECK-LABEL: .entry tile(
; CHECK-COUNT-4: ld.global.b32
; CHECK: .pragma "nounroll";
; CHECK-COUNT-1: ld.global.b32
; CHECK-NOT: ld.global
; CHECK: {{^[}]}}
@tile_of = internal addrspace(3) global [1024 x float] poison
define ptx_kernel void @tile(ptr addrspace(1) %x, ptr addrspace(1) %out, i64 %rows, i64 %pitch) {
entry:
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.y()
  %first = zext i32 %tid to i64
  %any = icmp ult i64 %first, 32
  br i1 %any, label %loop, label %end
loop:
  %r = phi i64 [ %first, %entry ], [ %next, %next_row ]
  %inside = icmp slt i64 %r, %rows
  br i1 %inside, label %copy, label %next_row
copy:
  %at = mul i64 %r, %pitch
  %p = getelementptr float, ptr addrspace(1) %x, i64 %at
  %v = load float, ptr addrspace(1) %p, align 4
  %to = getelementptr float, ptr addrspace(3) @tile_of, i64 %r
  store float %v, ptr addrspace(3) %to, align 4
  br label %next_row
next_row:
  %next = add nuw nsw i64 %r, 8
  %more = icmp ult i64 %next, 32
  br i1 %more, label %loop, label %end
end:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %q = getelementptr float, ptr addrspace(3) @tile_of, i64 %first
  %w = load float, ptr addrspace(3) %q, align 4
  store float %w, ptr addrspace(1) %out, align 4
  ret void
}

declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.tid.y()
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)
declare float @llvm.nvvm.rsqrt.approx.f(float)
