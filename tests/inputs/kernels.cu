// What each release of NVRTC compiles to PTX: for `cargo xtask inputs`.
__device__ float table[4] = {1.0f, 2.0f, 3.0f, 4.0f};

__device__ __noinline__ float weigh(float value, int lane) { return value * table[lane & 3]; }

extern "C" __global__ void __launch_bounds__(128, 2) sums(const float *x, float *y, int n) {
  __shared__ float parts[128];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  parts[threadIdx.x] = i < n ? weigh(x[i], i) : 0.0f;
  __syncthreads();
  for (int half = 64; half > 0; half /= 2) {
    if (threadIdx.x < half) parts[threadIdx.x] += parts[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) atomicAdd(y, parts[0]);
}

template <typename T> __global__ void copy(const T *x, T *y) { y[threadIdx.x] = x[threadIdx.x]; }
template __global__ void copy<double>(const double *, double *);
