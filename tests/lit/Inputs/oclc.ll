; Shows AMD's control constants to a kernel.
@__oclc_ISA_version = external addrspace(4) constant i32
@__oclc_ABI_version = external addrspace(4) constant i32
@__oclc_wavefrontsize64 = external addrspace(4) constant i8
@__oclc_finite_only_opt = external addrspace(4) constant i8
@__oclc_unsafe_math_opt = external addrspace(4) constant i8
@__oclc_daz_opt = external addrspace(4) constant i8
@__oclc_correctly_rounded_sqrt32 = external addrspace(4) constant i8

define i32 @isa_version() {
  %value = load i32, ptr addrspace(4) @__oclc_ISA_version
  ret i32 %value
}

define i32 @abi_version() {
  %value = load i32, ptr addrspace(4) @__oclc_ABI_version
  ret i32 %value
}

define i32 @wave64() {
  %value = load i8, ptr addrspace(4) @__oclc_wavefrontsize64
  %wide = zext i8 %value to i32
  ret i32 %wide
}

; Finite only, unsafe math, flushed denormals, correctly rounded roots: one bit each, from the left.
define i32 @math() {
  %finite = load i8, ptr addrspace(4) @__oclc_finite_only_opt
  %unsafe = load i8, ptr addrspace(4) @__oclc_unsafe_math_opt
  %daz = load i8, ptr addrspace(4) @__oclc_daz_opt
  %sqrt = load i8, ptr addrspace(4) @__oclc_correctly_rounded_sqrt32
  %a = shl i8 %finite, 3
  %b = shl i8 %unsafe, 2
  %c = shl i8 %daz, 1
  %ab = or i8 %a, %b
  %cd = or i8 %c, %sqrt
  %all = or i8 %ab, %cd
  %wide = zext i8 %all to i32
  ret i32 %wide
}
