// What upstream's lowering makes kernels of, for make.py: each function becomes one kernel, by linalg.py. A comment before it has the tile,
// which is the block.

// 32, 8
func.func @linalg_matmul(%a: memref<?x?xf32>, %b: memref<?x?xf32>, %c: memref<?x?xf32>) {
  linalg.matmul ins(%a, %b : memref<?x?xf32>, memref<?x?xf32>) outs(%c : memref<?x?xf32>)
  return
}

// 8, 32
func.func @linalg_matmul_f16(%a: memref<?x?xf16>, %b: memref<?x?xf16>, %c: memref<?x?xf32>) {
  linalg.matmul ins(%a, %b : memref<?x?xf16>, memref<?x?xf16>) outs(%c : memref<?x?xf32>)
  return
}

// 8, 32
func.func @linalg_matmul_i8(%a: memref<?x?xi8>, %b: memref<?x?xi8>, %c: memref<?x?xi32>) {
  linalg.matmul ins(%a, %b : memref<?x?xi8>, memref<?x?xi8>) outs(%c : memref<?x?xi32>)
  return
}

// 2, 8, 16
func.func @linalg_batch_matmul(%a: memref<?x?x?xf32>, %b: memref<?x?x?xf32>, %c: memref<?x?x?xf32>) {
  linalg.batch_matmul ins(%a, %b : memref<?x?x?xf32>, memref<?x?x?xf32>) outs(%c : memref<?x?x?xf32>)
  return
}

// 128
func.func @linalg_matvec(%a: memref<?x?xf32>, %x: memref<?xf32>, %y: memref<?xf32>) {
  linalg.matvec ins(%a, %x : memref<?x?xf32>, memref<?xf32>) outs(%y : memref<?xf32>)
  return
}

// 128
func.func @linalg_vecmat(%x: memref<?xf32>, %a: memref<?x?xf32>, %y: memref<?xf32>) {
  linalg.vecmat ins(%x, %a : memref<?xf32>, memref<?x?xf32>) outs(%y : memref<?xf32>)
  return
}

// 128
func.func @linalg_conv_1d(%x: memref<?xf32>, %f: memref<?xf32>, %y: memref<?xf32>) {
  linalg.conv_1d ins(%x, %f : memref<?xf32>, memref<?xf32>) outs(%y : memref<?xf32>)
  return
}

// 8, 32
func.func @linalg_conv_2d(%x: memref<?x?xf32>, %f: memref<3x3xf32>, %y: memref<?x?xf32>) {
  linalg.conv_2d ins(%x, %f : memref<?x?xf32>, memref<3x3xf32>) outs(%y : memref<?x?xf32>)
  return
}

// 1, 4, 32, 64
func.func @linalg_conv_nhwc(%x: memref<1x66x66x32xf32>, %f: memref<3x3x32x64xf32>, %y: memref<1x64x64x64xf32>) {
  linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>}
    ins(%x, %f : memref<1x66x66x32xf32>, memref<3x3x32x64xf32>) outs(%y : memref<1x64x64x64xf32>)
  return
}

// 1, 8, 32, 64
func.func @linalg_depthwise(%x: memref<?x?x?x?xf32>, %f: memref<3x3x?xf32>, %y: memref<?x?x?x?xf32>) {
  linalg.depthwise_conv_2d_nhwc_hwc {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>}
    ins(%x, %f : memref<?x?x?x?xf32>, memref<3x3x?xf32>) outs(%y : memref<?x?x?x?xf32>)
  return
}

// 1, 8, 32, 64
func.func @linalg_max_pool(%x: memref<?x?x?x?xf32>, %w: memref<3x3xf32>, %y: memref<?x?x?x?xf32>) {
  linalg.pooling_nhwc_max {dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>}
    ins(%x, %w : memref<?x?x?x?xf32>, memref<3x3xf32>) outs(%y : memref<?x?x?x?xf32>)
  return
}

// 128
func.func @linalg_row_sums(%x: memref<?x?xf32>, %y: memref<?xf32>) {
  linalg.reduce ins(%x : memref<?x?xf32>) outs(%y : memref<?xf32>) dimensions = [1]
    (%v: f32, %sum: f32) { %s = arith.addf %v, %sum : f32  linalg.yield %s : f32 }
  return
}

// 128
func.func @linalg_column_sums(%x: memref<?x?xf32>, %y: memref<?xf32>) {
  linalg.generic {indexing_maps = [affine_map<(j, i) -> (i, j)>, affine_map<(j, i) -> (j)>], iterator_types = ["parallel", "reduction"]}
    ins(%x : memref<?x?xf32>) outs(%y : memref<?xf32>) {
  ^bb0(%v: f32, %old: f32):
    %s = arith.addf %v, %old : f32
    linalg.yield %s : f32
  }
  return
}

// 128
func.func @linalg_column_max(%x: memref<?x?xf16>, %y: memref<?xf16>) {
  linalg.generic {indexing_maps = [affine_map<(j, i) -> (i, j)>, affine_map<(j, i) -> (j)>], iterator_types = ["parallel", "reduction"]}
    ins(%x : memref<?x?xf16>) outs(%y : memref<?xf16>) {
  ^bb0(%v: f16, %old: f16):
    %s = arith.maximumf %v, %old : f16
    linalg.yield %s : f16
  }
  return
}

// 32, 8
func.func @linalg_transpose(%x: memref<?x?xf32>, %y: memref<?x?xf32>) {
  linalg.transpose ins(%x : memref<?x?xf32>) outs(%y : memref<?x?xf32>) permutation = [1, 0]
  return
}

// 1, 256
func.func @linalg_exp_rows(%x: memref<?x?xf32>, %top: memref<?xf32>, %y: memref<?x?xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
                  iterator_types = ["parallel", "parallel"]}
    ins(%x, %top : memref<?x?xf32>, memref<?xf32>) outs(%y : memref<?x?xf32>) {
  ^bb0(%v: f32, %t: f32, %old: f32):
    %d = arith.subf %v, %t : f32
    %e = math.exp %d : f32
    linalg.yield %e : f32
  }
  return
}

// 8, 32
func.func @linalg_normalise(%x: memref<?x?xf32>, %mean: memref<?xf32>, %var: memref<?xf32>, %g: memref<?xf32>, %b: memref<?xf32>,
                            %y: memref<?x?xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i)>,
                                   affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>],
                  iterator_types = ["parallel", "parallel"]}
    ins(%x, %mean, %var, %g, %b : memref<?x?xf32>, memref<?xf32>, memref<?xf32>, memref<?xf32>, memref<?xf32>)
    outs(%y : memref<?x?xf32>) {
  ^bb0(%v: f32, %m: f32, %s: f32, %scale: f32, %shift: f32, %old: f32):
    %eps = arith.constant 1.0e-5 : f32
    %d = arith.subf %v, %m : f32
    %se = arith.addf %s, %eps : f32
    %r = math.sqrt %se : f32
    %q = arith.divf %d, %r : f32
    %p = arith.mulf %q, %scale : f32
    %o = arith.addf %p, %shift : f32
    linalg.yield %o : f32
  }
  return
}

// 256
func.func @linalg_gelu(%x: memref<?xf32>, %y: memref<?xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
    ins(%x : memref<?xf32>) outs(%y : memref<?xf32>) {
  ^bb0(%v: f32, %old: f32):
    %a = arith.constant 0.797884583 : f32
    %c = arith.constant 4.471500e-02 : f32
    %half = arith.constant 0.5 : f32
    %one = arith.constant 1.0 : f32
    %v2 = arith.mulf %v, %v : f32
    %v3 = arith.mulf %v2, %v : f32
    %p = arith.mulf %v3, %c : f32
    %s = arith.addf %v, %p : f32
    %z = arith.mulf %s, %a : f32
    %t = math.tanh %z : f32
    %u = arith.addf %t, %one : f32
    %h = arith.mulf %v, %half : f32
    %o = arith.mulf %h, %u : f32
    linalg.yield %o : f32
  }
  return
}

// 8, 32
func.func @linalg_bias_relu(%x: memref<?x?xf16>, %b: memref<?xf16>, %y: memref<?x?xf16>) {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>],
                  iterator_types = ["parallel", "parallel"]}
    ins(%x, %b : memref<?x?xf16>, memref<?xf16>) outs(%y : memref<?x?xf16>) {
  ^bb0(%v: f16, %c: f16, %old: f16):
    %zero = arith.constant 0.0 : f32
    %v32 = arith.extf %v : f16 to f32
    %c32 = arith.extf %c : f16 to f32
    %s = arith.addf %v32, %c32 : f32
    %r = arith.maximumf %s, %zero : f32
    %o = arith.truncf %r : f32 to f16
    linalg.yield %o : f16
  }
  return
}

// 8, 32
func.func @linalg_distances(%x: memref<?x?xf32>, %z: memref<?x?xf32>, %y: memref<?x?xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (j, k)>, affine_map<(i, j, k) -> (i, j)>],
                  iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%x, %z : memref<?x?xf32>, memref<?x?xf32>) outs(%y : memref<?x?xf32>) {
  ^bb0(%u: f32, %v: f32, %sum: f32):
    %d = arith.subf %u, %v : f32
    %q = arith.mulf %d, %d : f32
    %s = arith.addf %sum, %q : f32
    linalg.yield %s : f32
  }
  return
}
