extern "C" __global__ void unpack_bits(unsigned *RESTRICT packed, unsigned *RESTRICT out, long long width, Index n) {
  unsigned long long mask = (1ull << width) - 1;
  for (Index i = Index(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += Index(gridDim.x) * blockDim.x) {
    unsigned long long bit = (unsigned long long)i * (unsigned long long)width;
    Index word = Index(bit >> 5);
    unsigned long long both = (unsigned long long)packed[word + 1] << 32 | packed[word];
    out[i] = unsigned((both >> (bit & 31)) & mask);
  }
}
