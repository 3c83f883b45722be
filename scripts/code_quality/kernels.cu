// The kernels of examples/ in CUDA C++: the same block sizes, the same loads and stores, the same order of additions.
//
// INDEX is the type of sizes and indices: `long long` by default, which is what MLIR's `index` is. BLOCK is the number of
// threads in a block of the kernels that work on 256 of them: the constant that the kernels of examples/ state as
// `known_block_size`, or `blockDim.x`. RESTRICT is `__restrict__` or nothing: the kernels of examples/ do not promise
// that their memrefs are apart.

#include <mma.h>

#ifndef INDEX
#define INDEX long long
#endif
#ifndef BLOCK
#define BLOCK 256
#endif
#ifndef RESTRICT
#define RESTRICT
#endif

using Index = INDEX;

namespace {

constexpr unsigned kAll = 0xffffffffu;
constexpr int kWarps = 8;

struct Add {
  __device__ float operator()(float a, float b) const { return a + b; }
};
struct Max {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

/// gpu.all_reduce: warps by shuffles, then the warps' results by the first warp.
template <typename Operation>
__device__ float allReduce(float value, float *partial, Operation operation) {
  for (int step = 1; step < 32; step *= 2)
    value = operation(value, __shfl_xor_sync(kAll, value, step));
  if (threadIdx.x % 32 == 0)
    partial[threadIdx.x / 32] = value;
  __syncthreads();
  if (threadIdx.x < kWarps) {
    float joined = partial[threadIdx.x];
    for (int step = 1; step < kWarps; step *= 2)
      joined = operation(joined, __shfl_xor_sync((1u << kWarps) - 1, joined, step));
    if (threadIdx.x == 0)
      partial[0] = joined;
  }
  __syncthreads();
  return partial[0];
}

} // namespace

extern "C" __global__ void __launch_bounds__(256)
saxpy(float a, const float *RESTRICT x, float *RESTRICT y, Index n) {
  Index i = static_cast<Index>(blockIdx.x) * BLOCK + threadIdx.x;
  if (i < n)
    y[i] = fmaf(a, x[i], y[i]);
}

extern "C" __global__ void __launch_bounds__(256)
gelu(const float *RESTRICT x, float *RESTRICT y, Index n) {
  Index stride = static_cast<Index>(BLOCK) * gridDim.x;
  for (Index i = static_cast<Index>(blockIdx.x) * BLOCK + threadIdx.x; i < n; i += stride) {
    float v = x[i];
    y[i] = (v * 0.5f) * (erff(v * 0.707106781f) + 1.0f);
  }
}

extern "C" __global__ void __launch_bounds__(256)
softmax(const float *RESTRICT x, float *RESTRICT y, Index cols) {
  __shared__ float maxima[32], sums[32];
  Index row = blockIdx.x;
  Index thread = threadIdx.x;
  float threadMax = -INFINITY;
  for (Index j = thread; j < cols; j += BLOCK)
    threadMax = fmaxf(threadMax, x[row * cols + j]);
  float max = allReduce(threadMax, maxima, Max());
  float threadSum = 0.0f;
  for (Index j = thread; j < cols; j += BLOCK) {
    float e = expf(x[row * cols + j] - max);
    y[row * cols + j] = e;
    threadSum += e;
  }
  float scale = 1.0f / allReduce(threadSum, sums, Add());
  for (Index j = thread; j < cols; j += BLOCK)
    y[row * cols + j] = y[row * cols + j] * scale;
}

extern "C" __global__ void __launch_bounds__(256)
layer_norm(const float *RESTRICT x, const float *RESTRICT gamma, const float *RESTRICT beta, float eps,
           float *RESTRICT y, Index cols) {
  __shared__ float sums[32], squares[32];
  Index row = blockIdx.x;
  Index thread = threadIdx.x;
  float count = static_cast<float>(cols);
  float threadSum = 0.0f;
  for (Index j = thread; j < cols; j += BLOCK)
    threadSum += x[row * cols + j];
  float mean = allReduce(threadSum, sums, Add()) / count;
  float threadSquares = 0.0f;
  for (Index j = thread; j < cols; j += BLOCK) {
    float d = x[row * cols + j] - mean;
    threadSquares = fmaf(d, d, threadSquares);
  }
  float variance = allReduce(threadSquares, squares, Add()) / count;
  float invStd = rsqrtf(variance + eps);
  for (Index j = thread; j < cols; j += BLOCK) {
    float d = x[row * cols + j] - mean;
    y[row * cols + j] = fmaf(d * invStd, gamma[j], beta[j]);
  }
}

extern "C" __global__ void __launch_bounds__(256)
transpose(const float *RESTRICT in, float *RESTRICT out, Index rows, Index cols) {
  __shared__ float tile[32][33];
  Index row0 = static_cast<Index>(blockIdx.y) * 32;
  Index col0 = static_cast<Index>(blockIdx.x) * 32;
  Index tx = threadIdx.x, ty = threadIdx.y;
  for (Index k = ty; k < 32; k += 8)
    if (row0 + k < rows && col0 + tx < cols)
      tile[k][tx] = in[(row0 + k) * cols + col0 + tx];
  __syncthreads();
  for (Index k = ty; k < 32; k += 8)
    if (col0 + k < cols && row0 + tx < rows)
      out[(col0 + k) * rows + row0 + tx] = tile[tx][k];
}

extern "C" __global__ void __launch_bounds__(256)
matmul_tiled(const float *RESTRICT a, const float *RESTRICT b, float *RESTRICT c, Index m, Index n, Index k) {
  __shared__ float as[16][16], bs[16][16];
  Index tx = threadIdx.x, ty = threadIdx.y;
  Index row = static_cast<Index>(blockIdx.y) * 16 + ty;
  Index col = static_cast<Index>(blockIdx.x) * 16 + tx;
  float sum = 0.0f;
  for (Index k0 = 0; k0 < k; k0 += 16) {
    as[ty][tx] = row < m && k0 + tx < k ? a[row * k + k0 + tx] : 0.0f;
    bs[ty][tx] = k0 + ty < k && col < n ? b[(k0 + ty) * n + col] : 0.0f;
    __syncthreads();
    for (int i = 0; i < 16; ++i)
      sum = fmaf(as[ty][i], bs[i][tx], sum);
    __syncthreads();
  }
  if (row < m && col < n)
    c[row * n + col] = sum;
}

extern "C" __global__ void __launch_bounds__(128)
matmul_subgroup_mma(const __half *RESTRICT a, const __half *RESTRICT b, float *RESTRICT c, Index m, Index n, Index k) {
  using namespace nvcuda::wmma;
  __shared__ __align__(32) __half as[32 * 16];
  __shared__ __align__(32) __half bs[16 * 32];
  __shared__ __align__(32) float cs[32 * 32];
  Index thread = threadIdx.x;
  Index row0 = static_cast<Index>(blockIdx.y) * 32;
  Index col0 = static_cast<Index>(blockIdx.x) * 32;
  Index warp = thread / 32;
  Index subRow = warp / 2 * 16, subCol = warp % 2 * 16;
  const __half zero = __float2half(0.0f);
  fragment<accumulator, 16, 16, 16, float> sum;
  fill_fragment(sum, 0.0f);
  for (Index k0 = 0; k0 < k; k0 += 16) {
    for (Index e = thread; e < 512; e += 128) {
      Index aRow = row0 + e / 16, aCol = k0 + e % 16;
      as[e] = aRow < m && aCol < k ? a[aRow * k + aCol] : zero;
      Index bRow = k0 + e / 32, bCol = col0 + e % 32;
      bs[e] = bRow < k && bCol < n ? b[bRow * n + bCol] : zero;
    }
    __syncthreads();
    fragment<matrix_a, 16, 16, 16, __half, row_major> aPart;
    fragment<matrix_b, 16, 16, 16, __half, row_major> bPart;
    load_matrix_sync(aPart, as + subRow * 16, 16);
    load_matrix_sync(bPart, bs + subCol, 32);
    mma_sync(sum, aPart, bPart, sum);
    __syncthreads();
  }
  store_matrix_sync(cs + subRow * 32 + subCol, sum, 32, mem_row_major);
  __syncthreads();
  for (Index e = thread; e < 1024; e += 128) {
    Index row = row0 + e / 32, col = col0 + e % 32;
    if (row < m && col < n)
      c[row * n + col] = cs[e];
  }
}

extern "C" __global__ void __launch_bounds__(256)
reduction(const float *RESTRICT x, float *RESTRICT out, Index n) {
  __shared__ float partial[32];
  Index stride = static_cast<Index>(BLOCK) * gridDim.x;
  float sum = 0.0f;
  for (Index i = static_cast<Index>(blockIdx.x) * BLOCK + threadIdx.x; i < n; i += stride)
    sum += x[i];
  float blockSum = allReduce(sum, partial, Add());
  if (threadIdx.x == 0)
    atomicAdd(out, blockSum);
}

extern "C" __global__ void __launch_bounds__(256)
histogram(const int *RESTRICT values, int *RESTRICT bins, Index n) {
  __shared__ int local[256];
  local[threadIdx.x] = 0;
  __syncthreads();
  Index stride = static_cast<Index>(BLOCK) * gridDim.x;
  for (Index i = static_cast<Index>(blockIdx.x) * BLOCK + threadIdx.x; i < n; i += stride) {
    int v = values[i];
    if (static_cast<unsigned>(v) < 256u)
      atomicAdd(&local[v], 1);
  }
  __syncthreads();
  atomicAdd(&bins[threadIdx.x], local[threadIdx.x]);
}
