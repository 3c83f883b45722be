extern "C" __global__ void crc32_rows(unsigned char *RESTRICT data, int *RESTRICT length, unsigned *RESTRICT table, unsigned *RESTRICT out,
    Index n, Index most) {
  __shared__ unsigned mine[256];
  for (Index k = threadIdx.x; k < 256; k += blockDim.x)
    mine[k] = table[k];
  __syncthreads();
  Index row = Index(blockIdx.x) * blockDim.x + threadIdx.x;
  if (row >= n)
    return;
  int len = length[row];
  unsigned crc = 0xffffffffu;
  for (int k = 0; k < len; ++k)
    crc = mine[(crc ^ data[row * most + k]) & 255] ^ (crc >> 8);
  out[row] = ~crc;
}
