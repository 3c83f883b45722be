// An operation on rows in three passes over them: two reductions, and a result for each element. A row is seen as rows of as many
// elements as a block has threads: a thread reduces a column, so that neighbours read neighbours, and then all columns' results.

!vector = tensor<$parts x $block_size x f16>
!matrix = tensor<$rows x $parts x $block_size x f16>
!memory = memref<$rows x $parts x $block_size x f16>
!wide = tensor<$rows x $parts x $block_size x f32>
!first = tensor<$rows x $block_size x f32>
!second = tensor<$block_size x $rows x f32> // The other way round, so that the two are not taken for the same memory.
!row = tensor<$rows x f32>
!op = !transform.any_op
#element = affine_map<(r, t, c) -> (r, c, t)>
#columns = affine_map<(r, t, c) -> (c, t)>
#row = affine_map<(r, t, c) -> (r)>
#each = ["parallel", "parallel", "parallel"]
#reduction = ["parallel", "parallel", "reduction"]

module attributes {transform.with_named_sequence} {
// What two passes use of a reduction over threads is computed in both: once for each thread, in registers.
func.func @$name($parameters) {
$views
  %start = arith.constant $start : f32
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : !first
  %e1 = tensor.empty() : !second
  %e2 = tensor.empty() : !row
  %empty = tensor.empty() : !wide

  %i0 = linalg.fill {before = "first"} ins(%start : f32) outs(%e0 : !first) -> !first
  %first = linalg.generic {tag = "first", indexing_maps = [#element, affine_map<(r, t, c) -> (r, t)>],
      iterator_types = #reduction} ins(%t0 : !matrix) outs(%i0 : !first) {
  ^bb0(%h: f16, %acc: f32):
    %x = arith.extf %h : f16 to f32
    %next = $combine %acc, %x : f32
    linalg.yield %next : f32
  } -> !first

  %i1 = linalg.fill {before = "second"} ins(%start : f32) outs(%e2 : !row) -> !row
  %a1 = linalg.reduce {$combine} ins(%first : !first) outs(%i1 : !row) dimensions = [1] {before = "second"}
  %i2 = linalg.fill {before = "second"} ins(%zero : f32) outs(%e1 : !second) -> !second
  %second = linalg.generic {tag = "second", indexing_maps = [#element, #row, affine_map<(r, t, c) -> (t, r)>],
      iterator_types = #reduction} ins(%t0, %a1 : !matrix, !row) outs(%i2 : !second) {
  ^bb0(%h: f16, %a: f32, %acc: f32):
    %x = arith.extf %h : f16 to f32
    %term = func.call @$function_term(%x, %a) : (f32, f32) -> f32
    %next = arith.addf %acc, %term : f32
    linalg.yield %next : f32
  } -> !second

  %i3 = linalg.fill {before = "result"} ins(%start : f32) outs(%e2 : !row) -> !row
  %a2 = linalg.reduce {$combine} ins(%first : !first) outs(%i3 : !row) dimensions = [1] {before = "result"}
  %i4 = linalg.fill {before = "result"} ins(%zero : f32) outs(%e2 : !row) -> !row
  %sum = linalg.reduce {arith.addf} ins(%second : !second) outs(%i4 : !row) dimensions = [0] {before = "result"}
  %x0 = linalg.generic {indexing_maps = [#element, #row, #row, #element], iterator_types = #each}
      ins(%t0, %a2, %sum : !matrix, !row, !row) outs(%empty : !wide) {
  ^bb0(%h: f16, %a: f32, %b: f32, %old: f32):
    %x = arith.extf %h : f16 to f32
    %y = func.call @$function_result(%x, %a, %b) : (f32, f32, f32) -> f32
    linalg.yield %y : f32
  } -> !wide
$each
  %rounded = arith.truncf $last : !wide to !matrix
  bufferization.materialize_in_destination %rounded in restrict writable $out : (!matrix, !memory) -> ()
  return
}

// A block for each row, and in it a loop of its threads for each pass.
transform.named_sequence @__transform_main(%module: !op) {
  %function = transform.structured.match ops{["func.func"]} in %module : (!op) -> !op
  %fills = transform.structured.match ops{["linalg.fill"]} in %function : (!op) -> !op
  %reductions = transform.structured.match ops{["linalg.reduce"]} in %function : (!op) -> !op
  %generics = transform.structured.match ops{["linalg.generic"]} in %function : (!op) -> !op
  %first, %second, %last = transform.split_handle %generics : (!op) -> (!op, !op, !op)
  // Rows, threads, parts: as the reductions.
  %last1 = transform.structured.interchange %last iterator_interchange = [0, 2, 1] : (!op) -> !op
  %row, %blocks = transform.structured.tile_using_forall %last1 tile_sizes [1] (mapping = [#gpu.block<x>]) : (!op) -> (!op, !op)
  %parts = transform.merge_handles %reductions, %second, %first, %fills : !op
  transform.structured.fuse_into_containing_op %parts into %blocks : (!op, !op) -> (!op, !op)
  // Fusion leaves the operations as they were, and makes one for each use.
  transform.apply_dce to %function : !op
  transform.apply_cse to %function : !op

  %result, %results = transform.structured.tile_using_forall %row num_threads [0, $block_size]
      (mapping = [#gpu.thread<linear_dim_0>]) : (!op) -> (!op, !op)
  %before_result = transform.structured.match attributes{before = "result"} in %function : (!op) -> !op
  transform.structured.fuse_into_containing_op %before_result into %results : (!op, !op) -> (!op, !op)
  %second1 = transform.structured.match attributes{tag = "second"} in %function : (!op) -> !op
  %second2, %seconds = transform.structured.tile_using_forall %second1 num_threads [0, $block_size]
      (mapping = [#gpu.thread<linear_dim_0>]) : (!op) -> (!op, !op)
  %before_second = transform.structured.match attributes{before = "second"} in %function : (!op) -> !op
  transform.structured.fuse_into_containing_op %before_second into %seconds : (!op, !op) -> (!op, !op)
  %first1 = transform.structured.match attributes{tag = "first"} in %function : (!op) -> !op
  %first2, %firsts = transform.structured.tile_using_forall %first1 num_threads [0, $block_size]
      (mapping = [#gpu.thread<linear_dim_0>]) : (!op) -> (!op, !op)
  %before_first = transform.structured.match attributes{before = "first"} in %function : (!op) -> !op
  transform.structured.fuse_into_containing_op %before_first into %firsts : (!op, !op) -> (!op, !op)

  transform.include @launch failures(propagate) (%function) : (!op) -> ()
  transform.yield
}

$library
}
