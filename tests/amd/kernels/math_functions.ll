; LLVM's own mathematical operations, of which its back end knows few. The parameters are those of a memref of one dimension and
; of one of two: each row of the output is of one operation.

target triple = "amdgcn-amd-amdhsa"

define amdgpu_kernel void @intrinsics(ptr addrspace(1) %xa, ptr addrspace(1) %x, i64 %xo, i64 %xs, i64 %xt, ptr addrspace(1) %ya,
                                      ptr addrspace(1) %y, i64 %yo, i64 %rows, i64 %row, i64 %yt, i64 %yu) {
  %i = call i32 @llvm.amdgcn.workitem.id.x()
  %wide = zext i32 %i to i64
  %from = getelementptr double, ptr addrspace(1) %x, i64 %wide
  %value = load double, ptr addrspace(1) %from
  %single = fptrunc double %value to float

  %to0 = getelementptr double, ptr addrspace(1) %y, i64 %wide
  %sin = call double @llvm.sin.f64(double %value)
  store double %sin, ptr addrspace(1) %to0

  %to1 = getelementptr double, ptr addrspace(1) %to0, i64 %row
  %sin32 = call float @llvm.sin.f32(float %single)
  %wide1 = fpext float %sin32 to double
  store double %wide1, ptr addrspace(1) %to1

  %to2 = getelementptr double, ptr addrspace(1) %to1, i64 %row
  %magnitude = call double @llvm.fabs.f64(double %value)
  %power = call double @llvm.pow.f64(double %magnitude, double 2.75)
  store double %power, ptr addrspace(1) %to2

  %to3 = getelementptr double, ptr addrspace(1) %to2, i64 %row
  %exp2 = call double @llvm.exp2.f64(double %value)
  store double %exp2, ptr addrspace(1) %to3

  ; Exact: x - y * trunc(x / y) has no digits left where the quotient is large.
  %to4 = getelementptr double, ptr addrspace(1) %to3, i64 %row
  %large = fmul double %value, 0x4270000000000000
  %rest = frem double %large, 0.3
  store double %rest, ptr addrspace(1) %to4

  %to5 = getelementptr double, ptr addrspace(1) %to4, i64 %row
  %rounded = call i64 @llvm.lround.i64.f64(double %value)
  %wide5 = sitofp i64 %rounded to double
  store double %wide5, ptr addrspace(1) %to5

  %to6 = getelementptr double, ptr addrspace(1) %to5, i64 %row
  %number = fptosi double %value to i32
  %powi = call double @llvm.powi.f64.i32(double -1.25, i32 %number)
  store double %powi, ptr addrspace(1) %to6

  %to7 = getelementptr double, ptr addrspace(1) %to6, i64 %row
  %parts = call { double, double } @llvm.modf.f64(double %value)
  %fraction = extractvalue { double, double } %parts, 0
  store double %fraction, ptr addrspace(1) %to7
  ret void
}
