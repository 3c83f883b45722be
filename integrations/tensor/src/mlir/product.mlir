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
#each = ["parallel", "parallel"]

module attributes {transform.with_named_sequence} {

func.func @$name($parameters) {
$views
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : !wide
  %fill = linalg.fill ins(%zero : f32) outs(%empty : !wide) -> !wide
  %x0 = linalg.generic {indexing_maps = [#a, #b, #sum], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%t0, %t1 : !a, !b) outs(%fill : !wide) {
  ^bb0(%x: f16, %y: f16, %acc: f32):
    %x32 = arith.extf %x : f16 to f32
    %y32 = arith.extf %y : f16 to f32
    %xy = arith.mulf %x32, %y32 : f32
    %next = arith.addf %acc, %xy : f32
    linalg.yield %next : f32
  } -> !wide
$each
  %rounded = func.call @rounded($last) : (!wide) -> !matrix
  bufferization.materialize_in_destination %rounded in restrict writable $out : (!matrix, !memory) -> ()
  return
}

// A block makes some rows and columns of the result. In it, each warp or thread sums up a part in registers; then the threads take
// the sums from the block's memory, and compute what follows.
transform.named_sequence @__transform_main(%module: !op) {
  %function = transform.structured.match ops{["func.func"]} in %module : (!op) -> !op
  %fused = transform.include @fuse failures(propagate) (%function) : (!op) -> !op
  %fill = transform.structured.match ops{["linalg.fill"]} in %fused : (!op) -> !op
  %generics = transform.structured.match ops{["linalg.generic"]} in %fused : (!op) -> !op
  %product, %last = transform.split_handle %generics : (!op) -> (!op, !op)

  %last1, %blocks0 = transform.structured.tile_using_forall %last tile_sizes [$block_rows, $block_columns]
      (mapping = [#gpu.block<y>, #gpu.block<x>]) : (!op) -> (!op, !op)
  %product1, %blocks1 = transform.structured.fuse_into_containing_op %product into %blocks0 : (!op, !op) -> (!op, !op)
  %fill1, %blocks = transform.structured.fuse_into_containing_op %fill into %blocks1 : (!op, !op) -> (!op, !op)

  transform.structured.tile_using_forall %fill1 num_threads [$threads_down, $threads_across]
      (mapping = [#gpu.thread<linear_dim_1>, #gpu.thread<linear_dim_0>]) : (!op) -> (!op, !op)
  %product2, %units = transform.structured.tile_using_forall %product1 num_threads [$down, $across]
      (mapping = [#gpu.$unit<linear_dim_1>, #gpu.$unit<linear_dim_0>]) : (!op) -> (!op, !op)
  %product3, %sum = transform.structured.tile_using_for %product2 tile_sizes [0, 0, $depth] : (!op) -> (!op, !op)
  transform.include @$unit_loops failures(propagate) (%product3) : (!op) -> ()
  %last2, %elements = transform.structured.tile_using_forall %last1 num_threads [$threads_down, $threads_across]
      (mapping = [#gpu.thread<linear_dim_1>, #gpu.thread<linear_dim_0>]) : (!op) -> (!op, !op)
  transform.structured.tile_using_for %last2 tile_sizes [1] : (!op) -> (!op, !op)

  %vectors = transform.include @vectorize failures(propagate) (%fused) : (!op) -> !op
  %lowered = transform.include @launch failures(propagate) (%vectors) : (!op) -> !op
  transform.include @$unit_instructions failures(propagate) (%lowered) : (!op) -> ()
  transform.yield
}

// What tensor cores take at once; the loops between are unrolled, so that every part of the sum is a register.
transform.named_sequence @warp_loops(%product: !op {transform.consumed}) {
  %matrices, %down, %across = transform.structured.tile_using_for %product tile_sizes [16, 16] : (!op) -> (!op, !op, !op)
  transform.loop.unroll %across {factor = $matrices_across} : !op
  transform.loop.unroll %down {factor = $matrices_down} : !op
  transform.yield
}

transform.named_sequence @warp_instructions(%function: !op {transform.consumed}) {
  transform.apply_registered_pass "convert-vector-to-gpu" to %function : (!op) -> !op
  transform.yield
}

transform.named_sequence @thread_loops(%product: !op {transform.readonly}) {
  transform.yield
}

transform.named_sequence @thread_instructions(%function: !op {transform.readonly}) {
  transform.apply_patterns to %function {
    transform.apply_patterns.vector.lower_contraction lowering_strategy = "outerproduct"
    transform.apply_patterns.vector.lower_outerproduct
    transform.apply_patterns.canonicalization
  } : !op
  transform.yield
}

$library
}
