extern "C" __global__ void gemv_int4(int *RESTRICT w, __half *RESTRICT scale, __half *RESTRICT x, float *RESTRICT y,
    Index m, Index words, Index groups) {
  int thread = blockIdx.x * blockDim.x + threadIdx.x;
  int row = thread / 32, lane = thread % 32;
  if (row >= int(m))
    return;
  float sum = 0;
  for (int k = lane; k < int(words); k += 32) {
    unsigned word = w[row * words + k];
    float dot = 0;
    for (int e = 0; e < 8; ++e) {
      int q = int(word >> (4 * e) & 15) - 8;
      dot += float(q) * __half2float(x[k * 8 + e]);
    }
    sum += dot * __half2float(scale[row * groups + k / 16]);
  }
  for (int offset = 16; offset > 0; offset /= 2)
    sum += __shfl_down_sync(0xffffffffu, sum, offset);
  if (lane == 0)
    y[row] = sum;
}
