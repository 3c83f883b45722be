extern "C" __global__ void rgb_to_yuv(unsigned char *RESTRICT rgb, unsigned char *RESTRICT luma, unsigned char *RESTRICT cb,
    unsigned char *RESTRICT cr, Index n) {
  Index stride = Index(gridDim.x) * blockDim.x;
  for (Index i = Index(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += stride) {
    int r = rgb[i * 3], g = rgb[i * 3 + 1], b = rgb[i * 3 + 2];
    luma[i] = (unsigned char)(((r * 66 + g * 129 + b * 25 + 128) >> 8) + 16);
    cb[i] = (unsigned char)(((r * -38 + g * -74 + b * 112 + 128) >> 8) + 128);
    cr[i] = (unsigned char)(((r * 112 + g * -94 + b * -18 + 128) >> 8) + 128);
  }
}
