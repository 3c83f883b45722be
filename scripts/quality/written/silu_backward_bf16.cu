extern "C" __global__ void silu_backward_bf16(__nv_bfloat16 *RESTRICT x, __nv_bfloat16 *RESTRICT dy, __nv_bfloat16 *RESTRICT dx, Index n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < int(n); i += gridDim.x * blockDim.x) {
    float v = __bfloat162float(x[i]), d = __bfloat162float(dy[i]);
    float s = 1.0f / (1.0f + expf(-v));
    dx[i] = __float2bfloat16(d * s * (1.0f + v * (1.0f - s)));
  }
}
