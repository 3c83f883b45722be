; A choice between 1 and 0 is a truth value for ptxas, and what converts or rounds it gets the integer, not the float of these bits.

; RUN: gpulower compile %s --target sm_90 --input-optimized --emit ptx -o - | FileCheck %s
; RUN: gpulower compile %s --target sm_90 --input-optimized --emit cubin -o %t.cubin
; RUN: %cuda/bin/nvdisasm -c %t.cubin | FileCheck --check-prefix=SASS %s

; SASS: .section .text.number
; SASS: FSEL R{{[0-9]+}}, RZ, 1,
; SASS: .section .text.extended
; SASS: HADD2.F32
; SASS: .section .text.rounded
; SASS: FRND

target triple = "nvptx64-nvidia-cuda"

; CHECK-LABEL: .entry rounded(
; CHECK: selp.b32 [[CHOICE:%r[0-9]+]], 0x80000001, 0x80000000, %p
; CHECK: xor.b32 [[CHOICE]], [[CHOICE]], 0x80000000
; CHECK: cvt.rni.f32.f32 %r{{[0-9]+}}, [[CHOICE]]
define ptx_kernel void @rounded(ptr addrspace(1) %p, i32 %n) {
  %none = icmp eq i32 %n, 0
  br i1 %none, label %end, label %some

some:
  %lower = add i32 %n, -1
  %count = call i32 @llvm.ctpop.i32(i32 %lower)
  br label %end

end:
  %found = phi i32 [ 32, %0 ], [ %count, %some ]
  %any = icmp ne i32 %found, 0
  %bits = zext i1 %any to i32
  %x = bitcast i32 %bits to float
  %y = call float @llvm.roundeven.f32(float %x)
  store float %y, ptr addrspace(1) %p
  ret void
}

; CHECK-LABEL: .entry extended(
; CHECK: selp.b16 [[CHOICE:%rs[0-9]+]], 0x8001, 0x8000, %p
; CHECK: xor.b16 [[CHOICE]], [[CHOICE]], 0x8000
; CHECK: cvt.f32.f16 %r{{[0-9]+}}, [[CHOICE]]
define ptx_kernel void @extended(ptr addrspace(1) %p, i32 %n) {
  %none = icmp eq i32 %n, 0
  br i1 %none, label %end, label %some

some:
  %lower = add i32 %n, -1
  %count = call i32 @llvm.ctpop.i32(i32 %lower)
  br label %end

end:
  %found = phi i32 [ 32, %0 ], [ %count, %some ]
  %any = icmp ne i32 %found, 0
  %bits = zext i1 %any to i16
  %x = bitcast i16 %bits to half
  %y = fpext half %x to float
  store float %y, ptr addrspace(1) %p
  ret void
}

; Of a half by way of the register that it is in.
; CHECK-LABEL: .entry lower_half(
; CHECK: xor.b32 [[CHOICE:%r[0-9]+]], [[CHOICE]], 0x80000000
; CHECK: mov.b32 {%rs{{[0-9]+}}, _}, [[CHOICE]]
define ptx_kernel void @lower_half(ptr addrspace(1) %p, i32 %n) {
  %none = icmp eq i32 %n, 0
  br i1 %none, label %end, label %some

some:
  %lower = add i32 %n, -1
  %count = call i32 @llvm.ctpop.i32(i32 %lower)
  br label %end

end:
  %found = phi i32 [ 32, %0 ], [ %count, %some ]
  %any = icmp ne i32 %found, 0
  %bits = zext i1 %any to i32
  %halves = bitcast i32 %bits to <2 x half>
  %x = extractelement <2 x half> %halves, i32 0
  %y = fpext half %x to float
  store float %y, ptr addrspace(1) %p
  ret void
}

; Of one of two conditions, joined as numbers.
; CHECK-LABEL: .entry joined(
; CHECK-COUNT-2: xor.b32 %r{{[0-9]+}}, %r{{[0-9]+}}, 0x80000000
; CHECK: or.b32 [[BITS:%r[0-9]+]],
; CHECK: cvt.rni.f32.f32 %r{{[0-9]+}}, [[BITS]]
define ptx_kernel void @joined(ptr addrspace(1) %p, i32 %n) {
  %first = icmp ne i32 %n, 7
  %one = zext i1 %first to i32
  %none = icmp eq i32 %n, 0
  br i1 %none, label %end, label %some

some:
  %lower = add i32 %n, -1
  %count = call i32 @llvm.ctpop.i32(i32 %lower)
  br label %end

end:
  %found = phi i32 [ 32, %0 ], [ %count, %some ]
  %any = icmp ne i32 %found, 0
  %other = zext i1 %any to i32
  %kept = freeze i32 %other
  %bits = or i32 %one, %kept
  %x = bitcast i32 %bits to float
  %y = call float @llvm.roundeven.f32(float %x)
  store float %y, ptr addrspace(1) %p
  ret void
}

; As a number it is what it should be, and stays as it is.
; CHECK-LABEL: .entry number(
; CHECK-NOT: xor.b
; CHECK: ret;
define ptx_kernel void @number(ptr addrspace(1) %p, i32 %n) {
  %any = icmp ne i32 %n, 7
  %y = uitofp i1 %any to float
  store float %y, ptr addrspace(1) %p
  ret void
}

declare float @llvm.roundeven.f32(float)
declare i32 @llvm.ctpop.i32(i32)
