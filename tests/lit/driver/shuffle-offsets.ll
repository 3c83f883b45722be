; RUN: gpulower compile %s --target sm_90 --emit ptx -o - | FileCheck %s
; RUN: gpulower compile %s --target sm_90 --emit ptx -O0 -o - | FileCheck %s --check-prefix=UNREACHED

; Lanes that are computed from the own one, in any way, are read by their offset; others are not.

target triple = "nvptx64-nvidia-cuda"

declare i32 @llvm.nvvm.read.ptx.sreg.laneid()
declare { i32, i1 } @llvm.nvvm.shfl.sync.idx.i32p(i32, i32, i32, i32)
declare float @llvm.nvvm.shfl.sync.idx.f32(i32, float, i32, i32)

; CHECK-LABEL: .entry below(
; CHECK-NOT: laneid
; CHECK: shfl.sync.up.b32 {{.*}}, 4, 0, -1;
; CHECK: ret;
define ptx_kernel void @below(ptr %x) {
  %lane = call i32 @llvm.nvvm.read.ptx.sreg.laneid()
  %source = sub i32 %lane, 4
  %is = icmp ult i32 %source, 32
  %from = select i1 %is, i32 %source, i32 %lane
  %v = load i32, ptr %x, align 4
  %pair = call { i32, i1 } @llvm.nvvm.shfl.sync.idx.i32p(i32 -1, i32 %v, i32 %from, i32 31)
  %word = extractvalue { i32, i1 } %pair, 0
  store i32 %word, ptr %x, align 4
  ret void
}

; The lane is there in any case, so that the predicate holds in lanes that read themselves.
; CHECK-LABEL: .entry above(
; CHECK: shfl.sync.down.b32 {{.*}}, 16, 31, -1;
; CHECK-NOT: selp
; CHECK: ret;
define ptx_kernel void @above(ptr %x) {
  %lane = call i32 @llvm.nvvm.read.ptx.sreg.laneid()
  %source = add i32 %lane, 16
  %is = icmp ult i32 %lane, 16
  %from = select i1 %is, i32 %source, i32 %lane
  %v = load i32, ptr %x, align 4
  %pair = call { i32, i1 } @llvm.nvvm.shfl.sync.idx.i32p(i32 -1, i32 %v, i32 %from, i32 31)
  %word = extractvalue { i32, i1 } %pair, 0
  %valid = extractvalue { i32, i1 } %pair, 1
  %r = select i1 %valid, i32 %word, i32 7
  store i32 %r, ptr %x, align 4
  ret void
}

; CHECK-LABEL: .entry across(
; CHECK: shfl.sync.bfly.b32 {{.*}}, 3, 31, -1;
; CHECK: ret;
define ptx_kernel void @across(ptr %x) {
  %lane = call i32 @llvm.nvvm.read.ptx.sreg.laneid()
  %from = xor i32 %lane, 3
  %v = load float, ptr %x, align 4
  %w = call float @llvm.nvvm.shfl.sync.idx.f32(i32 -1, float %v, i32 %from, i32 31)
  store float %w, ptr %x, align 4
  ret void
}

; The lanes below 4 read lane 0, as no offset does.
; CHECK-LABEL: .entry other(
; CHECK: shfl.sync.idx.b32
; CHECK: ret;
define ptx_kernel void @other(ptr %x) {
  %lane = call i32 @llvm.nvvm.read.ptx.sreg.laneid()
  %source = sub i32 %lane, 4
  %is = icmp ult i32 %source, 32
  %from = select i1 %is, i32 %source, i32 0
  %v = load float, ptr %x, align 4
  %w = call float @llvm.nvvm.shfl.sync.idx.f32(i32 -1, float %v, i32 %from, i32 31)
  store float %w, ptr %x, align 4
  ret void
}

; Nothing leads there, and the lane is computed behind the shuffle.
; UNREACHED-LABEL: .entry unreached(
; UNREACHED: ret;
define ptx_kernel void @unreached(ptr %x) {
entry:
  ret void
dead:
  %r = call float @llvm.nvvm.shfl.sync.idx.f32(i32 -1, float 0.0, i32 %source, i32 31)
  %lane = call i32 @llvm.nvvm.read.ptx.sreg.laneid()
  %source = xor i32 %lane, 1
  store float %r, ptr %x, align 4
  br label %dead
}
