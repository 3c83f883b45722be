extern "C" __global__ void quantize_absmax(float *RESTRICT x, signed char *RESTRICT q, float *RESTRICT scale, Index cols) {
  Index row = blockIdx.x;
  float mine = 0;
  for (Index j = threadIdx.x; j < cols; j += blockDim.x)
    mine = fmaxf(mine, fabsf(x[row * cols + j]));
  float most = fmaxf(max_of_block<float>(mine, blockDim.x), 1.0e-20f);
  float inverse = 127.0f / most;
  if (threadIdx.x == 0)
    scale[row] = most / 127.0f;
  for (Index j = threadIdx.x; j < cols; j += blockDim.x)
    q[row * cols + j] = (signed char)int(rintf(x[row * cols + j] * inverse));
}
