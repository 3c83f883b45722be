; A library of the user's that needs AMD's: `outer` calls `middle` of another library.
declare float @middle(float)
declare float @__ocml_erf_f32(float)

define float @outer(float %x) {
  %a = call float @__ocml_erf_f32(float %x)
  %b = call float @middle(float %a)
  ret float %b
}
