extern "C" __global__ void coo_spmv(int *RESTRICT row, int *RESTRICT column, float *RESTRICT value, float *RESTRICT x, float *RESTRICT y, Index nnz) {
  for (Index k = Index(blockIdx.x) * blockDim.x + threadIdx.x; k < nnz; k += Index(gridDim.x) * blockDim.x)
    atomicAdd(&y[row[k]], value[k] * x[column[k]]);
}
