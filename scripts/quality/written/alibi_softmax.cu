extern "C" __global__ void alibi_softmax(float *RESTRICT score, float *RESTRICT y, float scale, Index heads, Index rows, Index keys) {
  Index row = Index(blockIdx.x) * blockDim.y + threadIdx.y, head = blockIdx.y;
  if (row >= rows)
    return;
  float slope = exp2f(float(head + 1) * -8.0f / float(heads));
  float m = -3.0e38f, s = 0;
  for (Index j = threadIdx.x; j < row + 1; j += 32) {
    float v = score[(head * rows + row) * keys + j] * scale - slope * float(int(row - j));
    float mn = fmaxf(m, v);
    s = s * expf(m - mn) + expf(v - mn);
    m = mn;
  }
  for (int offset = 16; offset > 0; offset /= 2) {
    float om = __shfl_xor_sync(0xffffffffu, m, offset);
    float os = __shfl_xor_sync(0xffffffffu, s, offset);
    float mn = fmaxf(m, om);
    s = s * expf(m - mn) + os * expf(om - mn);
    m = mn;
  }
  float inverse = 1.0f / s;
  for (Index j = threadIdx.x; j < keys; j += 32) {
    float r = 0;
    if (j <= row) {
      float v = score[(head * rows + row) * keys + j] * scale - slope * float(int(row - j));
      r = expf(v - m) * inverse;
    }
    y[(head * rows + row) * keys + j] = r;
  }
}
