// Parts of both schedules.

// All that is done to each element becomes one operation, the last, which writes to the result's memory.
transform.named_sequence @fuse(%function: !op {transform.consumed}) -> !op {
  %generic = transform.apply_registered_pass "convert-elementwise-to-linalg" to %function : (!op) -> !op
  %fused = transform.apply_registered_pass "linalg-fuse-elementwise-ops" to %generic : (!op) -> !op
  transform.bufferization.eliminate_empty_tensors %fused : !op
  transform.yield %fused : !op
}

// To vectors on tensors, which stay in registers.
transform.named_sequence @vectorize(%function: !op {transform.consumed}) -> !op {
  transform.apply_patterns to %function {
    transform.apply_patterns.canonicalization
    transform.apply_patterns.tensor.fold_tensor_empty
    transform.apply_patterns.linalg.tiling_canonicalization
    transform.apply_patterns.scf.for_loop_canonicalization
  } : !op
  %vectors = transform.structured.vectorize_children_and_apply_patterns %function {fold_type_extensions_into_contract}
      : (!op) -> !op
  transform.apply_cse to %vectors : !op
  %loops = transform.structured.match ops{["scf.for"]} in %vectors : (!op) -> !op
  transform.loop.hoist_loop_invariant_subsets %loops : !op
  transform.apply_patterns to %vectors {
    transform.apply_patterns.canonicalization
  } : !op
  transform.yield %vectors : !op
}

// Tensors to memory, that of the block for what threads share; loops of blocks and threads to a launch.
transform.named_sequence @launch(%function: !op {transform.consumed}) -> !op {
  %empty = transform.structured.match ops{["tensor.empty"]} in %function : (!op) -> !transform.op<"tensor.empty">
  %allocated = transform.bufferization.empty_tensor_to_alloc_tensor %empty
      : (!transform.op<"tensor.empty">) -> !transform.op<"bufferization.alloc_tensor">
  transform.structured.bufferize_to_allocation %allocated {memory_space = #gpu.address_space<workgroup>}
      : !transform.op<"bufferization.alloc_tensor">
  %buffers = transform.bufferization.one_shot_bufferize layout{IdentityLayoutMap} %function : (!op) -> !op
  %blocks = transform.gpu.map_forall_to_blocks %buffers {generate_gpu_launch} : (!op) -> !op
  %threads = transform.gpu.map_nested_forall_to_threads %blocks block_dims = [$block_size, 1, 1] : (!op) -> !op
  %lowered = transform.get_parent_op %threads {op_name = "func.func"} : (!op) -> !op
  transform.apply_patterns to %lowered {
    transform.apply_patterns.canonicalization
    transform.apply_patterns.memref.fold_memref_alias_ops
  } : !op
  transform.apply_cse to %lowered : !op
  transform.yield %lowered : !op
}
