extern "C" __global__ void wave_step(float *RESTRICT u, float *RESTRICT before, float *RESTRICT velocity, float *RESTRICT after, float dt,
    Index h, Index w) {
  int j = int(blockIdx.x) * int(blockDim.x) + int(threadIdx.x);
  int i = int(blockIdx.y) * int(blockDim.y) + int(threadIdx.y);
  if (i >= 2 && i < int(h) - 2 && j >= 2 && j < int(w) - 2) {
    float u0 = u[i * w + j];
    float near = u[(i - 1) * w + j] + u[(i + 1) * w + j] + u[i * w + (j - 1)] + u[i * w + (j + 1)];
    float far = u[(i - 2) * w + j] + u[(i + 2) * w + j] + u[i * w + (j - 2)] + u[i * w + (j + 2)];
    float laplace = -5.0f * u0 + 1.33333337f * near + -0.0833333358f * far;
    float vt = velocity[i * w + j] * dt;
    after[i * w + j] = 2.0f * u0 - before[i * w + j] + vt * vt * laplace;
  }
}
