static __device__ double acceleration(double x, double v, double mu) { return mu * (1.0 - x * x) * v - x; }

extern "C" __global__ void runge_kutta(double *RESTRICT x, double *RESTRICT v, double *RESTRICT mu, double dt, Index steps, Index n) {
  Index i = Index(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  double m = mu[i], a = x[i], b = v[i];
  double h2 = 0.5 * dt, h6 = dt / 6.0;
  for (Index s = 0; s < steps; ++s) {
    double k1 = acceleration(a, b, m);
    double a2 = a + h2 * b, b2 = b + h2 * k1;
    double k2 = acceleration(a2, b2, m);
    double a3 = a + h2 * b2, b3 = b + h2 * k2;
    double k3 = acceleration(a3, b3, m);
    double a4 = a + dt * b3, b4 = b + dt * k3;
    double k4 = acceleration(a4, b4, m);
    a = a + h6 * (b + 2.0 * (b2 + b3) + b4);
    b = b + h6 * (k1 + 2.0 * (k2 + k3) + k4);
  }
  x[i] = a;
  v[i] = b;
}
