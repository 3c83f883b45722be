; Vectors of an odd number of halves or bfloats, of whose last pair LLVM's NVPTX back end finds out late that it has one lane:
; "Cannot select: scalar_to_vector".

; RUN: gpulower compile %s --target sm_90 --emit ptx -o - | FileCheck %s
; RUN: gpulower compile %s --target sm_90 -O0 --emit ptx -o - | FileCheck %s
; RUN: gpulower compile %s --target sm_100 --emit ptx -o - | FileCheck %s

target triple = "nvptx64-nvidia-cuda"

; CHECK-LABEL: .entry last(
define ptx_kernel void @last(ptr addrspace(1) %p) {
  %x = load <3 x half>, ptr addrspace(1) %p, align 2
  %twice = fsub <3 x half> %x, %x
  %inserted = insertelement <3 x half> %twice, half 0xH025B, i64 2
  %more = fadd <3 x half> %inserted, splat (half 0xHCCE0)
  %is = fcmp ord <3 x half> %more, zeroinitializer
  %chosen = select <3 x i1> %is, <3 x half> %more, <3 x half> zeroinitializer
  %bits = bitcast <3 x half> %chosen to <3 x i16>
  %sum = call i16 @llvm.vector.reduce.add.v3i16(<3 x i16> %bits)
  store i16 %sum, ptr addrspace(1) %p
  %is2 = fcmp ord <3 x half> %inserted, zeroinitializer
  %chosen2 = select <3 x i1> %is2, <3 x half> %inserted, <3 x half> zeroinitializer
  %bits2 = bitcast <3 x half> %chosen2 to <3 x i16>
  %sum2 = call i16 @llvm.vector.reduce.add.v3i16(<3 x i16> %bits2)
  %q = getelementptr i8, ptr addrspace(1) %p, i64 16
  store i16 %sum2, ptr addrspace(1) %q
  ret void
}

; CHECK-LABEL: .entry first(
; CHECK-DAG: or.b16
define ptx_kernel void @first(ptr addrspace(1) %p, bfloat %y) {
  %x = load <3 x bfloat>, ptr addrspace(1) %p, align 2
  %inserted = insertelement <3 x bfloat> %x, bfloat %y, i64 0
  %bits = bitcast <3 x bfloat> %inserted to <3 x i16>
  %any = call i16 @llvm.vector.reduce.or.v3i16(<3 x i16> %bits)
  store i16 %any, ptr addrspace(1) %p
  ret void
}

; LLVM refuses this for sm_100 alone.
; CHECK-LABEL: .entry as_integers(
; CHECK-DAG: xor.b16
define ptx_kernel void @as_integers(ptr addrspace(1) %p, ptr addrspace(1) %q) {
  %x = load <3 x half>, ptr addrspace(1) %p, align 2
  %y = load <3 x half>, ptr addrspace(1) %q, align 2
  %is = fcmp ord <3 x half> %x, zeroinitializer
  %chosen = select <3 x i1> %is, <3 x half> %y, <3 x half> <half 0xH3C00, half poison, half 0xH8000>
  %bits = bitcast <3 x half> %chosen to <3 x i16>
  store <3 x i16> %bits, ptr addrspace(1) %p, align 2
  %all = call i16 @llvm.vector.reduce.xor.v3i16(<3 x i16> %bits)
  store i16 %all, ptr addrspace(1) %q
  ret void
}

declare i16 @llvm.vector.reduce.add.v3i16(<3 x i16>)
declare i16 @llvm.vector.reduce.or.v3i16(<3 x i16>)
declare i16 @llvm.vector.reduce.xor.v3i16(<3 x i16>)
