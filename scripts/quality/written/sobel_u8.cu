extern "C" __global__ void sobel_u8(unsigned char *RESTRICT x, unsigned char *RESTRICT y, Index h, Index w) {
  Index j = Index(blockIdx.x) * blockDim.x + threadIdx.x;
  Index i = Index(blockIdx.y) * blockDim.y + threadIdx.y;
  if (i < 1 || i >= h - 1 || j < 1 || j >= w - 1)
    return;
  int v00 = x[(i - 1) * w + j - 1], v01 = x[(i - 1) * w + j], v02 = x[(i - 1) * w + j + 1];
  int v10 = x[i * w + j - 1], v12 = x[i * w + j + 1];
  int v20 = x[(i + 1) * w + j - 1], v21 = x[(i + 1) * w + j], v22 = x[(i + 1) * w + j + 1];
  int gx = v02 + 2 * v12 + v22 - v00 - 2 * v10 - v20;
  int gy = v20 + 2 * v21 + v22 - v00 - 2 * v01 - v02;
  y[i * w + j] = (unsigned char)min(int(sqrtf(float(gx * gx + gy * gy))), 255);
}
