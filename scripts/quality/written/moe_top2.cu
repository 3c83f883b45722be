extern "C" __global__ void moe_top2(float *RESTRICT logits, int *RESTRICT expert, float *RESTRICT weight, Index tokens, Index experts) {
  Index t = Index(blockIdx.x) * blockDim.x + threadIdx.x;
  if (t >= tokens)
    return;
  float v1 = -INFINITY, v2 = -INFINITY;
  int e1 = -1, e2 = -1;
  for (Index e = 0; e < experts; ++e) {
    float v = logits[t * experts + e];
    if (v > v1) {
      v2 = v1;
      e2 = e1;
      v1 = v;
      e1 = int(e);
    } else if (v > v2) {
      v2 = v;
      e2 = int(e);
    }
  }
  float x = expf(v2 - v1), s = x + 1.0f;
  expert[t * 2] = e1;
  expert[t * 2 + 1] = e2;
  weight[t * 2] = 1.0f / s;
  weight[t * 2 + 1] = x / s;
}
