declare float @__nv_erff(float)

define float @outer(float %x) {
  %a = call float @__nv_erff(float %x)
  ret float %a
}
