extern "C" __global__ void hysteresis(unsigned char *RESTRICT state, unsigned char *RESTRICT next, int *RESTRICT changed, Index h, Index w) {
  Index j = Index(blockIdx.x) * blockDim.x + threadIdx.x;
  Index i = Index(blockIdx.y) * blockDim.y + threadIdx.y;
  if (j >= w || i >= h)
    return;
  unsigned char s = state[i * w + j];
  if (s == 1) {
    Index r0 = max(i - 1, Index(0)), r1 = min(i + 1, h - 1), q0 = max(j - 1, Index(0)), q1 = min(j + 1, w - 1);
    bool found = false;
    for (Index r = r0; r <= r1 && !found; ++r)
      for (Index q = q0; q <= q1 && !found; ++q)
        found = state[r * w + q] == 2;
    if (found) {
      atomicOr(&changed[0], 1);
      s = 2;
    }
  }
  next[i * w + j] = s;
}
