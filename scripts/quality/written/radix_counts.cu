extern "C" __global__ void radix_counts(unsigned *RESTRICT keys, int *RESTRICT count, Index each, int shift, Index n, Index blocks) {
  __shared__ int part[8][16];
  Index tx = threadIdx.x;
  int warp = threadIdx.x / 32;
  if (tx < 128)
    part[threadIdx.x / 16][threadIdx.x % 16] = 0;
  __syncthreads();
  Index from = Index(blockIdx.x) * each, to = min(from + each, n);
  for (Index i = from + tx; i < to; i += blockDim.x)
    atomicAdd(&part[warp][(keys[i] >> shift) & 15], 1);
  __syncthreads();
  if (tx < 16) {
    int sum = 0;
    for (int w = 0; w < 8; ++w)
      sum += part[w][tx];
    count[tx * blocks + blockIdx.x] = sum;
  }
}
