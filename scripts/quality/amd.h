// What HIP's headers would declare, as they do it for code object version 5; without them, since they are not in any registry.
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __forceinline__ __inline__ __attribute__((always_inline))
#define __launch_bounds__(n) __attribute__((amdgpu_flat_work_group_size(1, n)))
#define INFINITY __builtin_inff()
#define THREE(type, x_, y_, z_)                                                                                          \
  struct type {                                                                                                          \
    __declspec(property(get = X)) unsigned x;                                                                            \
    __declspec(property(get = Y)) unsigned y;                                                                            \
    __declspec(property(get = Z)) unsigned z;                                                                            \
    __device__ unsigned X() const { return x_; }                                                                         \
    __device__ unsigned Y() const { return y_; }                                                                         \
    __device__ unsigned Z() const { return z_; }                                                                         \
  };
#define IMPLICIT ((const __attribute__((address_space(4))) unsigned *)__builtin_amdgcn_implicitarg_ptr())
THREE(ThreadIdx, __builtin_amdgcn_workitem_id_x(), __builtin_amdgcn_workitem_id_y(), __builtin_amdgcn_workitem_id_z())
THREE(BlockIdx, __builtin_amdgcn_workgroup_id_x(), __builtin_amdgcn_workgroup_id_y(), __builtin_amdgcn_workgroup_id_z())
THREE(BlockDim, __builtin_amdgcn_workgroup_size_x(), __builtin_amdgcn_workgroup_size_y(), __builtin_amdgcn_workgroup_size_z())
THREE(GridDim, IMPLICIT[0], IMPLICIT[1], IMPLICIT[2])
extern const __device__ __attribute__((weak)) ThreadIdx threadIdx;
extern const __device__ __attribute__((weak)) BlockIdx blockIdx;
extern const __device__ __attribute__((weak)) BlockDim blockDim;
extern const __device__ __attribute__((weak)) GridDim gridDim;
using __half = _Float16;
__device__ inline float __half2float(__half h) { return h; }
__device__ inline __half __float2half(float f) { return f; }
using __nv_bfloat16 = __bf16;
__device__ inline float __bfloat162float(__nv_bfloat16 h) { return h; }
__device__ inline __nv_bfloat16 __float2bfloat16(float f) { return f; }
extern "C" {
__device__ __attribute__((const)) float __ocml_exp_f32(float), __ocml_log_f32(float), __ocml_tanh_f32(float);
__device__ __attribute__((const)) float __ocml_erf_f32(float), __ocml_rsqrt_f32(float);
__device__ __attribute__((const)) float __ocml_log1p_f32(float), __ocml_exp2_f32(float);
__device__ float __ocml_sin_f32(float), __ocml_cos_f32(float);
__device__ double __ocml_sin_f64(double), __ocml_cos_f64(double);
}
#define expf __ocml_exp_f32
#define logf __ocml_log_f32
#define tanhf __ocml_tanh_f32
#define erff __ocml_erf_f32
#define sinf __ocml_sin_f32
#define cosf __ocml_cos_f32
#define rsqrtf __ocml_rsqrt_f32
#define log1pf __ocml_log1p_f32
#define exp2f __ocml_exp2_f32
#define sin __ocml_sin_f64
#define cos __ocml_cos_f64
#define sqrtf __builtin_sqrtf
#define fabsf __builtin_fabsf
#define floorf __builtin_floorf
#define fmaxf __builtin_fmaxf
#define fminf __builtin_fminf
#define fmaf __builtin_fmaf
#define rintf __builtin_rintf
#define fabs __builtin_fabs
#define __syncthreads()                                                                                                  \
  do {                                                                                                                   \
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");                                                               \
    __builtin_amdgcn_s_barrier();                                                                                        \
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");                                                               \
  } while (false)
template <typename T> __device__ inline T min(T a, T b) { return a < b ? a : b; }
template <typename T> __device__ inline T max(T a, T b) { return a < b ? b : a; }
__device__ inline int __lane() { return __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0)); }
__device__ inline int __shfl_xor_sync(unsigned, int v, int d) {
  int self = __lane(), index = self ^ d;
  index = index >= ((self + 32) & ~31) ? self : index;
  return __builtin_amdgcn_ds_bpermute(index << 2, v);
}
__device__ inline int __shfl_up_sync(unsigned, int v, int d) {
  int self = __lane(), index = self - d;
  index = index < (self & ~31) ? self : index;
  return __builtin_amdgcn_ds_bpermute(index << 2, v);
}
__device__ inline int __shfl_down_sync(unsigned, int v, int d) {
  int self = __lane(), index = self + d;
  index = (self & 31) + d > 31 ? self : index;
  return __builtin_amdgcn_ds_bpermute(index << 2, v);
}
__device__ inline float __shfl_xor_sync(unsigned m, float v, int d) {
  return __builtin_bit_cast(float, __shfl_xor_sync(m, __builtin_bit_cast(int, v), d));
}
__device__ inline float __shfl_down_sync(unsigned m, float v, int d) {
  return __builtin_bit_cast(float, __shfl_down_sync(m, __builtin_bit_cast(int, v), d));
}
__device__ inline long long __shfl_up_sync(unsigned m, long long v, int d) {
  union { long long l; int i[2]; } u{v};
  u.i[0] = __shfl_up_sync(m, u.i[0], d);
  u.i[1] = __shfl_up_sync(m, u.i[1], d);
  return u.l;
}
__device__ inline double __shfl_xor_sync(unsigned m, double v, int d) {
  union { double d; int i[2]; } u{v};
  u.i[0] = __shfl_xor_sync(m, u.i[0], d);
  u.i[1] = __shfl_xor_sync(m, u.i[1], d);
  return u.d;
}
template <typename T> __device__ inline void atomicAdd(T *at, T v) {
  __scoped_atomic_fetch_add(at, v, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
}
template <typename T> __device__ inline void atomicOr(T *at, T v) {
  __scoped_atomic_fetch_or(at, v, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
}
