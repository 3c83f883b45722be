extern "C" __global__ void run_heads(short *RESTRICT x, unsigned char *RESTRICT head, int *RESTRICT count, Index n) {
  Index i = Index(blockIdx.x) * blockDim.x + threadIdx.x;
  int mine = 0;
  if (i < n) {
    bool isnew = i == 0 || x[i] != x[i - 1];
    head[i] = isnew;
    mine = isnew;
  }
  int all = sum_of_block<int>(mine, blockDim.x);
  if (threadIdx.x == 0)
    count[blockIdx.x] = all;
}
