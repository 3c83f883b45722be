extern "C" __global__ void softmax_backward_f16(__half *RESTRICT y, __half *RESTRICT dy, __half *RESTRICT dx, Index cols) {
  Index row = blockIdx.x;
  float sum = 0;
  for (Index j = threadIdx.x; j < cols; j += blockDim.x)
    sum += __half2float(y[row * cols + j]) * __half2float(dy[row * cols + j]);
  float dot = sum_of_block<float>(sum, blockDim.x);
  for (Index j = threadIdx.x; j < cols; j += blockDim.x) {
    float a = __half2float(y[row * cols + j]);
    dx[row * cols + j] = __float2half(a * (__half2float(dy[row * cols + j]) - dot));
  }
}
