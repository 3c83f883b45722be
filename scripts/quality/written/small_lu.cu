extern "C" __global__ void small_lu(float *RESTRICT a, float *RESTRICT b, float *RESTRICT x, Index n) {
  Index t = Index(blockIdx.x) * blockDim.x + threadIdx.x;
  if (t >= n)
    return;
  float m[6][6], v[6];
  for (Index i = 0; i < 6; ++i) {
    for (Index j = 0; j < 6; ++j)
      m[i][j] = a[t * 36 + i * 6 + j];
    v[i] = b[t * 6 + i];
  }
  for (Index k = 0; k < 6; ++k) {
    float inverse = 1.0f / m[k][k];
    for (Index i = k + 1; i < 6; ++i) {
      float f = m[i][k] * inverse;
      for (Index j = k + 1; j < 6; ++j)
        m[i][j] -= f * m[k][j];
      v[i] -= f * v[k];
    }
  }
  for (Index r = 0; r < 6; ++r) {
    Index i = 5 - r;
    float s = v[i];
    for (Index j = i + 1; j < 6; ++j)
      s -= m[i][j] * v[j];
    v[i] = s / m[i][i];
    x[t * 6 + i] = v[i];
  }
}
