extern "C" __global__ void scan_i64_rows(long long *RESTRICT x, long long *RESTRICT y, Index cols) {
  __shared__ long long part[8];
  Index row = blockIdx.x;
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  long long carry = 0;
  for (Index base = 0; base < cols; base += blockDim.x) {
    Index j = base + threadIdx.x;
    long long s = 0;
    if (j < cols)
      s = x[row * cols + j];
    for (int step = 1; step < 32; step *= 2) {
      long long other = __shfl_up_sync(0xffffffffu, s, step);
      s += lane >= step ? other : 0;
    }
    if (lane == 31)
      part[warp] = s;
    __syncthreads();
    long long before = carry;
    for (int k = 0; k < 8; ++k) {
      long long p = part[k];
      before += k < warp ? p : 0;
      carry += p;
    }
    if (j < cols)
      y[row * cols + j] = before + s;
    __syncthreads();
  }
}
