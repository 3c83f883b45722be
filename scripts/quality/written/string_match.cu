extern "C" __global__ void string_match(unsigned char *RESTRICT text, unsigned char *RESTRICT pattern, unsigned char *RESTRICT length,
    int *RESTRICT total, Index n, Index m) {
  int i = int(blockIdx.x) * int(blockDim.x) + int(threadIdx.x);
  if (i > int(n) - int(m))
    return;
  int k = 0;
  while (k < int(m) && text[i + k] == pattern[k])
    ++k;
  length[i] = (unsigned char)k;
  if (k == int(m))
    atomicAdd(&total[0], 1);
}
