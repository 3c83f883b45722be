; ptxas makes a saturation of `max(min(x, 1), 0)`, which is 0 for NaN, where this is 1, and of such with -0, which it takes for 0.

; RUN: gpulower compile %s --target sm_90 --emit ptx -o - | FileCheck %s
; RUN: gpulower compile %s --target sm_90 --emit cubin -o %t.cubin
; RUN: %cuda/bin/nvdisasm -c %t.cubin | FileCheck %s --check-prefix=SASS
; RUN: gpulower compile %s --target sm_75 --emit cubin -o %t.75.cubin
; RUN: %cuda/bin/nvdisasm -c %t.75.cubin | FileCheck %s --check-prefix=SASS

; Those of the last kernel.
; SASS-COUNT-2: .SAT
; SASS-NOT: .SAT

target triple = "nvptx64-nvidia-cuda"

; CHECK-LABEL: .entry one_for_nan(
; CHECK: min.f32 [[MOST:%r[0-9]+]], %r{{[0-9]+}}, 0f3F800000
; CHECK: max.s32 %r{{[0-9]+}}, [[MOST]], 0
define ptx_kernel void @one_for_nan(ptr addrspace(1) %p) {
  %x = load float, ptr addrspace(1) %p
  %most = call float @llvm.minnum.f32(float %x, float 1.0)
  %y = call float @llvm.maxnum.f32(float %most, float 0.0)
  store float %y, ptr addrspace(1) %p
  ret void
}

; As choices, which are the same.
; CHECK-LABEL: .entry chosen(
; CHECK: max.s32
define ptx_kernel void @chosen(ptr addrspace(1) %p, float %a) {
  %x = load float, ptr addrspace(1) %p
  %product = fmul float %x, %a
  %is.less = fcmp ole float %product, 1.0
  %most = select i1 %is.less, float %product, float 1.0
  %is.none = fcmp ule float %most, 0.0
  %y = select i1 %is.none, float 0.0, float %most
  store float %y, ptr addrspace(1) %p
  ret void
}

; CHECK-LABEL: .entry halves(
; CHECK: max.NaN.f16
define ptx_kernel void @halves(ptr addrspace(1) %p, half %a) {
  %x = load half, ptr addrspace(1) %p
  %sum = fadd half %x, %a
  %most = call half @llvm.minimumnum.f16(half %sum, half 1.0)
  %y = call half @llvm.maximumnum.f16(half %most, half 0.0)
  store half %y, ptr addrspace(1) %p
  ret void
}

; CHECK-LABEL: .entry doubles(
; CHECK: min.f64 [[MOST:%rd[0-9]+]], %rd{{[0-9]+}}, 0d3FF0000000000000
; CHECK: max.s64 %rd{{[0-9]+}}, [[MOST]], 0
define ptx_kernel void @doubles(ptr addrspace(1) %p) {
  %x = load double, ptr addrspace(1) %p
  %most = call double @llvm.minimumnum.f64(double %x, double 1.0)
  %y = call double @llvm.maximumnum.f64(double %most, double 0.0)
  store double %y, ptr addrspace(1) %p
  ret void
}

; -0 stays, in both orders.
; CHECK-LABEL: .entry minus_zero(
; CHECK: min.s32 %r{{[0-9]+}}, %r{{[0-9]+}}, 1065353216
; CHECK: min.u32 %r{{[0-9]+}}, %r{{[0-9]+}}, -2147483648
define ptx_kernel void @minus_zero(ptr addrspace(1) %p, ptr addrspace(1) %q) {
  %x = load float, ptr addrspace(1) %p
  %x.least = call float @llvm.maxnum.f32(float %x, float -0.0)
  %x.y = call float @llvm.minnum.f32(float %x.least, float 1.0)
  store float %x.y, ptr addrspace(1) %p
  %z = load float, ptr addrspace(1) %q
  %z.most = call nnan float @llvm.minnum.f32(float %z, float 1.0)
  %z.y = call float @llvm.maxnum.f32(float %z.most, float -0.0)
  store float %z.y, ptr addrspace(1) %q
  ret void
}

; LLVM makes a maximum with 0 of a conversion that saturates.
; CHECK-LABEL: .entry converted(
; CHECK: min.f64 [[MOST:%rd[0-9]+]], {{.*}}, 0d3FF0000000000000
; CHECK-NOT: max.f64 {{.*}}, [[MOST]],
define ptx_kernel void @converted(ptr addrspace(1) %p, ptr addrspace(1) %q) {
  %x = load double, ptr addrspace(1) %q
  %most = call double @llvm.minimumnum.f64(double %x, double 1.0)
  %y = call i16 @llvm.fptoui.sat.i16.f64(double %most)
  store i16 %y, ptr addrspace(1) %p
  ret void
}

; Neither what LLVM knows of the sign of a number nor a maximum before the conversion makes one again.
; CHECK-LABEL: .entry converted_later(
; CHECK: min.f64 [[MOST:%rd[0-9]+]], {{.*}}, 0d3FF0000000000000
; CHECK-NEXT: cvt.rzi.u16.f64 %rs{{[0-9]+}}, [[MOST]]
; CHECK: min.f32 [[MOST:%r[0-9]+]], {{.*}}, 0f3F800000
; CHECK-NEXT: max.s32 [[Y:%r[0-9]+]], [[MOST]], 0
; CHECK-NEXT: cvt.rzi.u16.f32 %rs{{[0-9]+}}, [[Y]]
define ptx_kernel void @converted_later(ptr addrspace(1) %p, ptr addrspace(1) %q, ptr addrspace(1) %r) {
  %x = load double, ptr addrspace(1) %q
  %x.positive = call double @llvm.fabs.f64(double %x)
  %x.most = call double @llvm.minimumnum.f64(double %x.positive, double 1.0)
  %x.whole = call i16 @llvm.fptoui.sat.i16.f64(double %x.most)
  store i16 %x.whole, ptr addrspace(1) %p
  %z = load float, ptr addrspace(1) %r
  %is.more = fcmp ugt float %z, 1.0
  %z.most = select i1 %is.more, float 1.0, float %z
  %z.y = call float @llvm.maximum.f32(float %z.most, float 0.0)
  %z.whole = call i16 @llvm.fptoui.sat.i16.f32(float %z.y)
  %p1 = getelementptr i16, ptr addrspace(1) %p, i64 1
  store i16 %z.whole, ptr addrspace(1) %p1
  ret void
}

; A limit that another one is behind, and a minimum that would keep NaN, if there were any.
; CHECK-LABEL: .entry limited_before(
; CHECK: max.NaN.f16
; CHECK: cvt.rn.f64.s16
; CHECK-NOT: max.f64
; CHECK: min.u64
define ptx_kernel void @limited_before(ptr addrspace(1) %p, ptr addrspace(1) %q, i16 %i) {
  %x = load half, ptr addrspace(1) %p
  %one = call half @llvm.minimumnum.f16(half %x, half 1.0)
  %three = call half @llvm.minimumnum.f16(half %one, half 3.0)
  %y = call half @llvm.maximumnum.f16(half %three, half -0.0)
  store half %y, ptr addrspace(1) %p
  %whole = sitofp i16 %i to double
  %most = call double @llvm.minimum.f64(double %whole, double 1.0)
  %z = call double @llvm.maximum.f64(double %most, double -0.0)
  store double %z, ptr addrspace(1) %q
  ret void
}

; What is limited already is not limited again.
; CHECK-LABEL: .entry limited_again(
; CHECK: max.f64 [[LEAST:%rd[0-9]+]], %rd{{[0-9]+}}, 0d8000000000000000
; CHECK-NEXT: min.s64 [[Y:%rd[0-9]+]], [[LEAST]], 4607182418800017408
; CHECK-NEXT: st.global.b64 [%rd{{[0-9]+}}], [[Y]]
define ptx_kernel void @limited_again(ptr addrspace(1) %p) {
  %x = load double, ptr addrspace(1) %p
  %least = call double @llvm.maximumnum.f64(double %x, double -0.0)
  %y = call double @llvm.minimum.f64(double %least, double 1.0)
  %again = call double @llvm.maximum.f64(double %y, double -0.0)
  store double %again, ptr addrspace(1) %p
  ret void
}

; That the second minimum gets no NaN does not say that the first gets none: it is 2 for NaN, and then 1.
; CHECK-LABEL: .entry no_nan_later(
; CHECK: min.f32
; CHECK: min.f32
; CHECK: max.s32
define ptx_kernel void @no_nan_later(ptr addrspace(1) %p) {
  %x = load float, ptr addrspace(1) %p
  %sum = fadd float %x, 2.0
  %two = call float @llvm.minimumnum.f32(float %sum, float 2.0)
  %one = call nnan float @llvm.minnum.f32(float %two, float 1.0)
  %y = call float @llvm.maxnum.f32(float %one, float 0.0)
  store float %y, ptr addrspace(1) %p
  ret void
}

; These are saturations: 0 for NaN, or there is none.
; CHECK-LABEL: .entry saturated(
; CHECK: max.f32
; CHECK: min.f32
; CHECK: min.f32
; CHECK: max.f32
define ptx_kernel void @saturated(ptr addrspace(1) %p, ptr addrspace(1) %q) {
  %x = load float, ptr addrspace(1) %p
  %least = call float @llvm.maxnum.f32(float %x, float 0.0)
  %x.y = call float @llvm.minnum.f32(float %least, float 1.0)
  store float %x.y, ptr addrspace(1) %p
  %z = load float, ptr addrspace(1) %q
  %most = call nnan float @llvm.minnum.f32(float %z, float 1.0)
  %z.y = call float @llvm.maxnum.f32(float %most, float 0.0)
  store float %z.y, ptr addrspace(1) %q
  ret void
}

declare float @llvm.minnum.f32(float, float)
declare float @llvm.maxnum.f32(float, float)
declare half @llvm.minimumnum.f16(half, half)
declare half @llvm.maximumnum.f16(half, half)
