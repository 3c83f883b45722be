extern "C" __global__ void philox(float *RESTRICT out, int seed, int stream, Index n) {
  Index i = Index(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  unsigned x0 = unsigned(i), x1 = 0, x2 = 0, x3 = 0, k0 = seed, k1 = stream;
  for (int round = 0; round < 10; ++round) {
    unsigned long long p0 = (unsigned long long)x0 * 0xD2511F53u, p1 = (unsigned long long)x2 * 0xCD9E8D57u;
    x0 = unsigned(p1 >> 32) ^ x1 ^ k0;
    x1 = unsigned(p1);
    x2 = unsigned(p0 >> 32) ^ x3 ^ k1;
    x3 = unsigned(p0);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  out[i * 4] = float(x0 >> 8) * 5.9604644775390625e-08f;
  out[i * 4 + 1] = float(x1 >> 8) * 5.9604644775390625e-08f;
  out[i * 4 + 2] = float(x2 >> 8) * 5.9604644775390625e-08f;
  out[i * 4 + 3] = float(x3 >> 8) * 5.9604644775390625e-08f;
}
