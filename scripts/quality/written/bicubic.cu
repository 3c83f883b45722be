static __device__ float cubic(float t) {
  float d = fabsf(t);
  if (d < 1.0f)
    return (1.5f * d - 2.5f) * d * d + 1.0f;
  if (d < 2.0f)
    return ((-0.5f * d + 2.5f) * d - 4.0f) * d + 2.0f;
  return 0.0f;
}

extern "C" __global__ void bicubic(float *RESTRICT x, float *RESTRICT y, float sy, float sx, Index h, Index w, Index oh, Index ow) {
  Index col = Index(blockIdx.x) * blockDim.x + threadIdx.x;
  Index row = Index(blockIdx.y) * blockDim.y + threadIdx.y;
  if (col >= ow || row >= oh)
    return;
  float cx = (float(int(col)) + 0.5f) * sx - 0.5f, cy = (float(int(row)) + 0.5f) * sy - 0.5f;
  int x0 = int(floorf(cx)), y0 = int(floorf(cy));
  float fx = cx - floorf(cx), fy = cy - floorf(cy);
  float sum = 0;
  for (int m = -1; m < 3; ++m) {
    float wy = cubic(float(m) - fy);
    int yc = min(max(y0 + m, 0), int(h) - 1);
    float line = 0;
    for (int n = -1; n < 3; ++n) {
      float wx = cubic(float(n) - fx);
      int xc = min(max(x0 + n, 0), int(w) - 1);
      line += wx * x[yc * w + xc];
    }
    sum += wy * line;
  }
  y[row * ow + col] = sum;
}
