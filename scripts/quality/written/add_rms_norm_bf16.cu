extern "C" __global__ void add_rms_norm_bf16(__nv_bfloat16 *RESTRICT x, __nv_bfloat16 *RESTRICT residual, __nv_bfloat16 *RESTRICT gamma,
    __nv_bfloat16 *RESTRICT h, __nv_bfloat16 *RESTRICT y, float eps, Index cols) {
  __shared__ float part[8];
  Index row = blockIdx.x;
  float squares = 0;
  for (Index j = threadIdx.x; j < cols; j += blockDim.x) {
    float v = __bfloat162float(x[row * cols + j]) + __bfloat162float(residual[row * cols + j]);
    h[row * cols + j] = __float2bfloat16(v);
    squares += v * v;
  }
  for (int offset = 16; offset > 0; offset /= 2)
    squares += __shfl_xor_sync(0xffffffffu, squares, offset);
  if (threadIdx.x % 32 == 0)
    part[threadIdx.x / 32] = squares;
  __syncthreads();
  float total = 0;
  for (int k = 0; k < 8; ++k)
    total += part[k];
  float scale = rsqrtf(total / float(cols) + eps);
  for (Index j = threadIdx.x; j < cols; j += blockDim.x)
    y[row * cols + j] = __float2bfloat16(__bfloat162float(h[row * cols + j]) * scale * __bfloat162float(gamma[j]));
}
