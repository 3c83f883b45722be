; `middle` needs both another function of AMD's library and, again, the library that calls it.
declare float @__ocml_atan_f32(float)
declare i64 @__ockl_get_global_id(i32)

define float @middle(float %x) {
  %a = call float @__ocml_atan_f32(float %x)
  %i = call i64 @__ockl_get_global_id(i32 0)
  %f = uitofp i64 %i to float
  %b = fadd float %a, %f
  ret float %b
}
