; What is not needed does not get into the kernel.
@factor = internal addrspace(1) constant float 2.5

define float @scale(float %x) {
  %f = load float, ptr addrspace(1) @factor
  %y = fmul float %x, %f
  ret float %y
}

define float @not_needed(float %x) {
  %y = call float @nobody_has_this(float %x)
  ret float %y
}

declare float @nobody_has_this(float)
