extern "C" __global__ void focal_loss(float *RESTRICT x, signed char *RESTRICT label, float *RESTRICT loss, float *RESTRICT total, float alpha, Index n) {
  float sum = 0;
  for (Index i = Index(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += Index(gridDim.x) * blockDim.x) {
    float v = x[i];
    bool yes = label[i] != 0;
    float p = 1.0f / (1.0f + expf(-v));
    float miss = yes ? 1.0f - p : p;
    float weight = yes ? alpha : 1.0f - alpha;
    float bce = fmaxf(v, 0.0f) - (yes ? v : 0.0f) + log1pf(expf(-fabsf(v)));
    float f = weight * miss * miss * bce;
    loss[i] = f;
    sum += f;
  }
  float all = sum_of_block<float>(sum, blockDim.x);
  if (threadIdx.x == 0)
    atomicAdd(&total[0], all);
}
