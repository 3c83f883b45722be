extern "C" __global__ void kepler(double *RESTRICT mean, double *RESTRICT eccentricity, double *RESTRICT anomaly, int *RESTRICT steps, Index n) {
  Index i = Index(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  double m = mean[i], e = eccentricity[i], a = m, d;
  int k = 0;
  do {
    d = (a - e * sin(a) - m) / (1.0 - e * cos(a));
    a -= d;
    ++k;
  } while (fabs(d) > 1.0e-10 && k < 50);
  anomaly[i] = a;
  steps[i] = k;
}
