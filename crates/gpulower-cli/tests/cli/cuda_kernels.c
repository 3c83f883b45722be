// What the kernels of the tests do, for cuda_driver.c. An index and each word of a memref is an argument of eight bytes:
// allocated and aligned pointer, offset, sizes, strides.
static float *floats(uint64_t address) { return host(address); }

static void saxpy(sizes grid, sizes block, unsigned shared, const uint64_t *a) {
  float factor, *x = floats(a[3]), *y = floats(a[8]);
  memcpy(&factor, &a[1], 4);
  for (uint64_t i = 0; i < a[0] && i < (uint64_t)grid.x * block.x; ++i)
    y[i] = factor * x[i] + y[i];
}

static void turn_blocks(sizes grid, sizes block, unsigned shared, const uint64_t *a) {
  float *from = floats(a[2]), *to = floats(a[7]);
  for (uint64_t k = 0; k < grid.x; ++k) {
    uint64_t start = k * block.x, count = a[0] - start < block.x ? a[0] - start : block.x;
    for (uint64_t t = 0; t < count; ++t)
      to[start + t] = from[start + count - 1 - t];
  }
}

// Arguments of one, two, four and eight bytes: i1, i16, i32, bf16, f64, and memory.
static void narrow(sizes grid, sizes block, unsigned shared, const uint64_t *a) {
  double value;
  memcpy(&value, &a[4], 8);
  printf("narrow %llx %llx %llx %llx %g\n", (unsigned long long)a[0], (unsigned long long)a[1],
         (unsigned long long)a[2], (unsigned long long)a[3], value);
}

// Clang's own region in openmp_regions.c: a number, and two pointers.
static void region(sizes grid, sizes block, unsigned shared, const uint64_t *a) {
  float *y = floats(a[1]), *x = floats(a[2]);
  for (uint64_t i = 0; i < a[0]; ++i)
    y[i] += x[i];
}

static const kernel kernels[] = {
    {"saxpy", 12, saxpy}, {"turn_blocks", 11, turn_blocks}, {"narrow", 10, narrow}, {"__omp_offloading_", 3, region}};
