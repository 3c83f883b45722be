extern "C" __global__ void fft_256(float *RESTRICT x, float *RESTRICT y) {
  __shared__ float re[256], im[256];
  Index batch = blockIdx.x, t = threadIdx.x;
  for (Index i = t; i < 256; i += 64) {
    re[i] = x[(batch * 256 + i) * 2];
    im[i] = x[(batch * 256 + i) * 2 + 1];
  }
  __syncthreads();
  for (Index ns = 1; ns < 256; ns *= 4) {
    Index k = t % ns, group = t / ns;
    float angle = -6.28318548f * float(int(k)) / float(int(ns * 4));
    float w1r = cosf(angle), w1i = sinf(angle);
    float w2r = w1r * w1r - w1i * w1i, w2i = w1r * w1i + w1r * w1i;
    float w3r = w2r * w1r - w2i * w1i, w3i = w2r * w1i + w2i * w1r;
    float v0r = re[t], v0i = im[t], l1r = re[t + 64], l1i = im[t + 64];
    float l2r = re[t + 128], l2i = im[t + 128], l3r = re[t + 192], l3i = im[t + 192];
    __syncthreads();
    float v1r = l1r * w1r - l1i * w1i, v1i = l1r * w1i + l1i * w1r;
    float v2r = l2r * w2r - l2i * w2i, v2i = l2r * w2i + l2i * w2r;
    float v3r = l3r * w3r - l3i * w3i, v3i = l3r * w3i + l3i * w3r;
    float s0r = v0r + v2r, s0i = v0i + v2i, s1r = v0r - v2r, s1i = v0i - v2i;
    float s2r = v1r + v3r, s2i = v1i + v3i, s3r = v1r - v3r, s3i = v1i - v3i;
    Index p = group * ns * 4 + k;
    re[p] = s0r + s2r;
    im[p] = s0i + s2i;
    re[p + ns] = s1r + s3i;
    im[p + ns] = s1i - s3r;
    re[p + 2 * ns] = s0r - s2r;
    im[p + 2 * ns] = s0i - s2i;
    re[p + 3 * ns] = s1r - s3i;
    im[p + 3 * ns] = s1i + s3r;
    __syncthreads();
  }
  for (Index i = t; i < 256; i += 64) {
    y[(batch * 256 + i) * 2] = re[i];
    y[(batch * 256 + i) * 2 + 1] = im[i];
  }
}
