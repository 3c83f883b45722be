extern "C" __global__ void stencil_27(float *RESTRICT x, float *RESTRICT weight, float *RESTRICT y, Index d, Index h, Index w) {
  Index j = Index(blockIdx.x) * blockDim.x + threadIdx.x;
  Index i = Index(blockIdx.y) * blockDim.y + threadIdx.y;
  Index k = Index(blockIdx.z) * blockDim.z + threadIdx.z;
  if (k > 0 && k < d - 1 && i > 0 && i < h - 1 && j > 0 && j < w - 1) {
    float sum = 0;
    for (Index dk = -1; dk < 2; ++dk)
      for (Index di = -1; di < 2; ++di)
        for (Index dj = -1; dj < 2; ++dj)
          sum += x[((k + dk) * h + i + di) * w + j + dj] * weight[(dk + 1) * 9 + (di + 1) * 3 + dj + 1];
    y[(k * h + i) * w + j] = sum;
  }
}
