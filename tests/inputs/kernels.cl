// What every release of clang makes device IR of, for both vendors: constants, memory of a work-group, a barrier, an atomic, a
// loop, a call.
#ifdef __NVPTX__
#define THREAD __nvvm_read_ptx_sreg_tid_x()
#define BARRIER __syncthreads()
#else
#define THREAD __builtin_amdgcn_workitem_id_x()
#define BARRIER __builtin_amdgcn_s_barrier()
#endif

kernel void scale(global float *x, float a, int n) {
  int i = THREAD;
  if (i < n)
    x[i] = x[i] * a + 0.1f;
}

kernel void total(global int *x, global int *sum) {
  local int parts[64];
  parts[THREAD] = x[THREAD];
  BARRIER;
  for (int step = 32; step > 0; step /= 2) {
    if (THREAD < step)
      parts[THREAD] += parts[THREAD + step];
    BARRIER;
  }
  if (THREAD == 0)
    *sum = parts[0];
}

static __attribute__((noinline)) float largest(float a, float b) { return a > b ? a : b; }

kernel void limits(global float *x, global double *y) {
  x[THREAD] = largest(x[THREAD], -__builtin_inff());
  y[THREAD] += 1.0e-300;
}
