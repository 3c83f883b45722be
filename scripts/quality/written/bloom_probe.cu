extern "C" __global__ void bloom_probe(unsigned long long *RESTRICT keys, unsigned *RESTRICT bits, unsigned char *RESTRICT found, int hashes,
    Index n, Index words) {
  unsigned mask = unsigned(words) * 32u - 1u;
  for (Index i = Index(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += Index(gridDim.x) * blockDim.x) {
    unsigned long long k = keys[i];
    k ^= k >> 33;
    k *= 0xff51afd7ed558ccdull;
    k ^= k >> 33;
    k *= 0xc4ceb9fe1a85ec53ull;
    k ^= k >> 33;
    unsigned h = unsigned(k), step = unsigned(k >> 32) | 1u;
    bool yes = true;
    for (int j = 0; j < hashes && yes; ++j) {
      unsigned p = h & mask;
      yes = (bits[p >> 5] >> (p & 31)) & 1;
      h += step;
    }
    found[i] = yes;
  }
}
