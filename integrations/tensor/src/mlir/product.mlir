// A product in f32 of matrices of f16, what follows it for each element, and how it is divided.

!a = tensor<$rows x $sum x f16>
!b = tensor<$rows_of_b x $columns_of_b x f16>
!vector = tensor<$columns x f16>
!matrix = tensor<$rows x $columns x f16>
!memory = memref<$rows x $columns x f16>
!wide = tensor<$rows x $columns x f32>
!op = !transform.any_op
#a = affine_map<(i, j, k) -> (i, k)>
#b = affine_map<(i, j, k) -> $map_of_b>
#sum = affine_map<(i, j, k) -> (i, j)>
#element = affine_map<(i, j) -> (i, j)>
#columns = affine_map<(i, j) -> (j)>
#threads = [#gpu.thread<linear_dim_1>, #gpu.thread<linear_dim_0>]
#each = ["parallel", "parallel"]

module attributes {transform.with_named_sequence} {
func.func @$name($parameters) attributes {unit = "$unit"} {
$views
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : !wide
  %fill = linalg.fill ins(%zero : f32) outs(%empty : !wide) -> !wide
  %x0 = linalg.matmul indexing_maps = [#a, #b, #sum] ins(%t0, %t1 : !a, !b) outs(%fill : !wide) -> !wide
$each
  %rounded = arith.truncf $last : !wide to !matrix
  bufferization.materialize_in_destination %rounded in restrict writable $out : (!matrix, !memory) -> ()
  return
}

// A block makes some rows and columns of the result. In it, each warp or thread sums up a part in registers; then the threads take
// the sums from the block's memory, and compute what follows.
transform.named_sequence @__transform_main(%module: !op) {
  %function = transform.structured.match ops{["func.func"]} in %module : (!op) -> !op
  %fill = transform.structured.match ops{["linalg.fill"]} in %function : (!op) -> !op
  %product = transform.structured.match ops{["linalg.matmul"]} in %function : (!op) -> !op
  %last = transform.structured.match ops{["linalg.generic"]} in %function : (!op) -> !op

  %last1, %blocks0 = transform.structured.tile_using_forall %last tile_sizes [$block_rows, $block_columns]
      (mapping = [#gpu.block<y>, #gpu.block<x>]) : (!op) -> (!op, !op)
  %product1, %blocks1 = transform.structured.fuse_into_containing_op %product into %blocks0 : (!op, !op) -> (!op, !op)
  %fill1, %blocks = transform.structured.fuse_into_containing_op %fill into %blocks1 : (!op, !op) -> (!op, !op)

  transform.structured.tile_using_forall %fill1 num_threads [$threads_down, $threads_across]
      (mapping = #threads) : (!op) -> (!op, !op)
  %product2, %units = transform.structured.tile_using_forall %product1 num_threads [$down, $across]
      (mapping = [#gpu.$unit<linear_dim_1>, #gpu.$unit<linear_dim_0>]) : (!op) -> (!op, !op)
  %product3, %sum = transform.structured.tile_using_for %product2 tile_sizes [0, 0, $depth] : (!op) -> (!op, !op)
  // What tensor cores take at once (a thread has less); the loops between are unrolled, so that every part of the sum is a register.
  %matrices, %down, %across = transform.structured.tile_using_for %product3 tile_sizes [16, 16] : (!op) -> (!op, !op, !op)
  transform.loop.unroll %across {factor = $matrices_across} : !op
  transform.loop.unroll %down {factor = $matrices_down} : !op
  %last2, %elements = transform.structured.tile_using_forall %last1 num_threads [$threads_down, $threads_across]
      (mapping = #threads) : (!op) -> (!op, !op)
  transform.structured.tile_using_for %last2 tile_sizes [1] : (!op) -> (!op, !op)

  transform.include @launch failures(propagate) (%function) : (!op) -> ()
  %warps = transform.structured.match attributes{unit = "warp"} in %module : (!op) -> !op
  transform.apply_registered_pass "convert-vector-to-gpu" to %warps : (!op) -> !op
  %threads = transform.structured.match attributes{unit = "thread"} in %module : (!op) -> !op
  transform.apply_patterns to %threads {
    transform.apply_patterns.vector.lower_contraction lowering_strategy = "outerproduct"
    transform.apply_patterns.vector.lower_outerproduct
  } : !op
  transform.yield
}

$library
}
