// What both schedules end with.
transform.named_sequence @launch(%function: !op {transform.consumed}) {
  // To vectors on tensors, which stay in registers.
  transform.apply_patterns to %function {
    transform.apply_patterns.canonicalization
    transform.apply_patterns.tensor.fold_tensor_empty
  } : !op
  %vectors = transform.structured.vectorize_children_and_apply_patterns %function {fold_type_extensions_into_contract}
      : (!op) -> !op
  %loops = transform.structured.match ops{["scf.for"]} in %vectors : (!op) -> !op
  transform.loop.hoist_loop_invariant_subsets %loops : !op

  // Tensors to memory, that of the block for what threads share; loops of blocks and threads to a launch.
  %allocated = transform.apply_registered_pass "empty-tensor-to-alloc-tensor" to %vectors : (!op) -> !op
  %shared = transform.structured.match ops{["bufferization.alloc_tensor"]} in %allocated : (!op) -> !op
  transform.structured.bufferize_to_allocation %shared {memory_space = #gpu.address_space<workgroup>} : !op
  %buffers = transform.bufferization.one_shot_bufferize layout{IdentityLayoutMap} %allocated : (!op) -> !op
  %blocks = transform.gpu.map_forall_to_blocks %buffers {generate_gpu_launch} : (!op) -> !op
  %threads = transform.gpu.map_nested_forall_to_threads %blocks block_dims = [$block_size, 1, 1] : (!op) -> !op
  %lowered = transform.get_parent_op %threads {op_name = "func.func"} : (!op) -> !op
  transform.apply_patterns to %lowered {
    transform.apply_patterns.canonicalization
    transform.apply_patterns.memref.fold_memref_alias_ops
    transform.apply_patterns.vector.lower_multi_reduction lowering_strategy = "innerreduction"
  } : !op
  transform.yield
}
