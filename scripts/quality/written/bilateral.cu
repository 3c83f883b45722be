extern "C" __global__ void bilateral(float *RESTRICT x, float *RESTRICT y, Index radius, float space, float range, Index h, Index w) {
  Index j = Index(blockIdx.x) * blockDim.x + threadIdx.x;
  Index i = Index(blockIdx.y) * blockDim.y + threadIdx.y;
  if (j >= w || i >= h)
    return;
  float centre = x[i * w + j], sum = 0, total = 0;
  for (Index p = -radius; p < radius + 1; ++p) {
    Index r = min(max(i + p, Index(0)), h - 1);
    for (Index q = -radius; q < radius + 1; ++q) {
      Index c = min(max(j + q, Index(0)), w - 1);
      float v = x[r * w + c], diff = v - centre;
      float weight = expf(-(float(int(p * p + q * q)) * space + diff * diff * range));
      sum += weight * v;
      total += weight;
    }
  }
  y[i * w + j] = sum / total;
}
