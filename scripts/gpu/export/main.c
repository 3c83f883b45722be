// Calls the functions that saxpy.mlir and softmax.mlir export, and compares what they compute with the host's double
// precision. Exit status 0 when all is right.
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

// Memrefs as MLIR's functions take them: allocated and aligned pointer, offset, sizes, strides.
void run_saxpy(float a, float *, float *, int64_t, int64_t, int64_t, float *, float *, int64_t, int64_t, int64_t);
void run_softmax(float *, float *, int64_t, int64_t, int64_t, int64_t, int64_t, float *, float *, int64_t, int64_t,
                 int64_t, int64_t, int64_t);

static float random_float(void) { return (float)rand() / (float)RAND_MAX * 2 - 1; }

static int saxpy(int64_t n) {
  float *x = malloc(n * sizeof *x), *y = malloc(n * sizeof *y), *old = malloc(n * sizeof *y), a = random_float();
  for (int64_t i = 0; i < n; ++i) {
    x[i] = random_float();
    old[i] = y[i] = random_float();
  }
  run_saxpy(a, x, x, 0, n, 1, y, y, 0, n, 1);
  double worst = 0;
  for (int64_t i = 0; i < n; ++i)
    worst = fmax(worst, fabs(y[i] - ((double)a * x[i] + old[i])));
  int right = worst <= 1.2e-7;
  printf("saxpy %lld: worst error %.2g %s\n", (long long)n, worst, right ? "right" : "WRONG");
  free(x), free(y), free(old);
  return right;
}

static int softmax(int64_t rows, int64_t columns) {
  float *x = malloc(rows * columns * sizeof *x), *y = malloc(rows * columns * sizeof *y);
  for (int64_t i = 0; i < rows * columns; ++i) {
    x[i] = 50 * random_float();
    y[i] = NAN;
  }
  run_softmax(x, x, 0, rows, columns, columns, 1, y, y, 0, rows, columns, columns, 1);
  double error = 0, size = 0;
  for (int64_t row = 0; row < rows; ++row) {
    const float *from = x + row * columns, *to = y + row * columns;
    double most = -INFINITY, sum = 0;
    for (int64_t i = 0; i < columns; ++i)
      most = fmax(most, from[i]);
    for (int64_t i = 0; i < columns; ++i)
      sum += exp(from[i] - most);
    for (int64_t i = 0; i < columns; ++i) {
      double wanted = exp(from[i] - most) / sum;
      error += (to[i] - wanted) * (to[i] - wanted);
      size += wanted * wanted;
    }
  }
  // A NaN is not within the bound.
  double relative = sqrt(error / size);
  int right = relative <= 5e-6;
  printf("softmax %lldx%lld: error %.2g %s\n", (long long)rows, (long long)columns, relative, right ? "right" : "WRONG");
  free(x), free(y);
  return right;
}

int main(void) {
  int right = saxpy(1) & saxpy(1000003) & softmax(1, 1) & softmax(129, 1001) & softmax(513, 4097);
  return !right;
}
