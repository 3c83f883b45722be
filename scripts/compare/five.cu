// The kernels of five.mlir, in what CUDA C++ and HIP have in common. Compilers without their own headers define NO_HEADERS.
#ifdef NO_HEADERS
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __launch_bounds__(n) __attribute__((launch_bounds(n)))
typedef unsigned long size_t;
extern "C" __device__ float ERF(float);
extern "C" __device__ float EXP(float);
#define erff ERF
#define expf EXP
#define fmaf __builtin_fmaf
#define fmaxf __builtin_fmaxf
#define INFINITY __builtin_inff()
struct Index { unsigned x, y; };
#ifdef __NVPTX__
#define threadIdx (Index{(unsigned)__nvvm_read_ptx_sreg_tid_x(), (unsigned)__nvvm_read_ptx_sreg_tid_y()})
#define blockIdx (Index{(unsigned)__nvvm_read_ptx_sreg_ctaid_x(), (unsigned)__nvvm_read_ptx_sreg_ctaid_y()})
#define blockDim (Index{(unsigned)__nvvm_read_ptx_sreg_ntid_x(), (unsigned)__nvvm_read_ptx_sreg_ntid_y()})
#define gridDim (Index{(unsigned)__nvvm_read_ptx_sreg_nctaid_x(), (unsigned)__nvvm_read_ptx_sreg_nctaid_y()})
#else
static __device__ void __syncthreads() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
#define threadIdx (Index{__builtin_amdgcn_workitem_id_x(), __builtin_amdgcn_workitem_id_y()})
#define blockIdx (Index{__builtin_amdgcn_workgroup_id_x(), __builtin_amdgcn_workgroup_id_y()})
#define blockDim (Index{__builtin_amdgcn_workgroup_size_x(), __builtin_amdgcn_workgroup_size_y()})
#define gridDim                                                                                                        \
  (Index{__builtin_amdgcn_grid_size_x() / __builtin_amdgcn_workgroup_size_x(),                                         \
         __builtin_amdgcn_grid_size_y() / __builtin_amdgcn_workgroup_size_y()})
#endif
#elif defined(__CUDACC_RTC__)
#define INFINITY __int_as_float(0x7f800000)
#endif

extern "C" __global__ void __launch_bounds__(256)
    saxpy_SEED(float a, const float *x, float *y, size_t n) {
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    y[i] = fmaf(a, x[i], y[i] + SEED.0f);
}

extern "C" __global__ void __launch_bounds__(256) gelu_SEED(const float *x, float *y, size_t n) {
  size_t stride = (size_t)blockDim.x * gridDim.x;
  for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) {
    float v = x[i];
    y[i] = v * 0.5f * (erff((v + SEED.0f) * 0.707106781f) + 1.0f);
  }
}

extern "C" __global__ void __launch_bounds__(256) softmax_SEED(const float *x, float *y, size_t cols) {
  __shared__ float part[256];
  const float *in = x + (size_t)blockIdx.x * cols;
  float *out = y + (size_t)blockIdx.x * cols;
  unsigned t = threadIdx.x;
  float m = -INFINITY;
  for (size_t j = t; j < cols; j += blockDim.x)
    m = fmaxf(m, in[j]);
  part[t] = m;
  __syncthreads();
  for (unsigned half = 128; half > 0; half >>= 1) {
    if (t < half)
      part[t] = fmaxf(part[t], part[t + half]);
    __syncthreads();
  }
  float max = part[0];
  __syncthreads();
  float sum = 0.0f;
  for (size_t j = t; j < cols; j += blockDim.x) {
    float e = expf(in[j] - max);
    out[j] = e;
    sum += e;
  }
  part[t] = sum;
  __syncthreads();
  for (unsigned half = 128; half > 0; half >>= 1) {
    if (t < half)
      part[t] += part[t + half];
    __syncthreads();
  }
  float total = part[0] + SEED.0f;
  for (size_t j = t; j < cols; j += blockDim.x)
    out[j] = out[j] / total;
}

extern "C" __global__ void __launch_bounds__(256)
    transpose_SEED(const float *in, float *out, size_t rows, size_t cols) {
  __shared__ float tile[32][33];
  unsigned tx = threadIdx.x, ty = threadIdx.y;
  size_t row0 = (size_t)blockIdx.y * 32, col0 = (size_t)blockIdx.x * 32;
  for (unsigned k = ty; k < 32; k += 8)
    if (row0 + k < rows && col0 + tx < cols)
      tile[k][tx] = in[(row0 + k) * cols + col0 + tx] + SEED.0f;
  __syncthreads();
  for (unsigned k = ty; k < 32; k += 8)
    if (col0 + k < cols && row0 + tx < rows)
      out[(col0 + k) * rows + row0 + tx] = tile[tx][k];
}

extern "C" __global__ void __launch_bounds__(256)
    matmul_SEED(const float *A, const float *B, float *C, size_t M, size_t N, size_t K) {
  __shared__ float As[16][16], Bs[16][16];
  unsigned tx = threadIdx.x, ty = threadIdx.y;
  size_t row = (size_t)blockIdx.y * 16 + ty, col = (size_t)blockIdx.x * 16 + tx;
  float sum = SEED.0f;
  for (size_t k0 = 0; k0 < K; k0 += 16) {
    As[ty][tx] = row < M && k0 + tx < K ? A[row * K + k0 + tx] : 0.0f;
    Bs[ty][tx] = k0 + ty < K && col < N ? B[(k0 + ty) * N + col] : 0.0f;
    __syncthreads();
    for (unsigned k = 0; k < 16; k++)
      sum = fmaf(As[ty][k], Bs[k][tx], sum);
    __syncthreads();
  }
  if (row < M && col < N)
    C[row * N + col] = sum;
}
