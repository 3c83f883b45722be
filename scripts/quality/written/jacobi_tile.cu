extern "C" __global__ void jacobi_tile(double *RESTRICT x, double *RESTRICT b, double *RESTRICT y, Index h, Index w) {
  __shared__ double tile[18][18];
  Index col0 = Index(blockIdx.x) * 16, row0 = Index(blockIdx.y) * 16;
  Index tx = threadIdx.x, ty = threadIdx.y;
  for (Index t = ty * 16 + tx; t < 324; t += 256) {
    Index r = t / 18, c = t % 18;
    Index i = row0 + r - 1, j = col0 + c - 1;
    tile[r][c] = i >= 0 && i < h && j >= 0 && j < w ? x[i * w + j] : 0.0;
  }
  __syncthreads();
  Index i = row0 + ty, j = col0 + tx;
  if (i < h && j < w)
    y[i * w + j] = 0.25 * (tile[ty][tx + 1] + tile[ty + 2][tx + 1] + tile[ty + 1][tx] + tile[ty + 1][tx + 2] + b[i * w + j]);
}
