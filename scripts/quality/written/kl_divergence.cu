extern "C" __global__ void kl_divergence(float *RESTRICT p, float *RESTRICT logq, float *RESTRICT out, Index cols) {
  Index row = blockIdx.x;
  float sum = 0;
  for (Index j = threadIdx.x; j < cols; j += blockDim.x) {
    float t = p[row * cols + j], term = 0;
    if (t > 0)
      term = t * (logf(t) - logq[row * cols + j]);
    sum += term;
  }
  float all = sum_of_block<float>(sum, blockDim.x);
  if (threadIdx.x == 0)
    out[row] = all;
}
