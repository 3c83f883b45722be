// block 32 8
// sizes h = state 0; w = state 1
gpu.module @hysteresis {
  gpu.func @hysteresis(%state: memref<?x?xi8>, %next: memref<?x?xi8>, %changed: memref<1xi32>) kernel attributes {BLOCK} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %weak = arith.constant 1 : i8
    %strong = arith.constant 2 : i8
    %i1 = arith.constant 1 : i32
    %false = arith.constant false
    %h = memref.dim %state, %c0 : memref<?x?xi8>
    %w = memref.dim %state, %c1 : memref<?x?xi8>
    %bx = gpu.block_id x
    %by = gpu.block_id y
    %wx = gpu.block_dim x
    %wy = gpu.block_dim y
    %tx = gpu.thread_id x
    %ty = gpu.thread_id y
    %ox = arith.muli %bx, %wx : index
    %oy = arith.muli %by, %wy : index
    %j = arith.addi %ox, %tx : index
    %i = arith.addi %oy, %ty : index
    %jw = arith.cmpi slt, %j, %w : index
    %ih = arith.cmpi slt, %i, %h : index
    %in = arith.andi %jw, %ih : i1
    scf.if %in {
      %s = memref.load %state[%i, %j] : memref<?x?xi8>
      %is = arith.cmpi eq, %s, %weak : i8
      %new = scf.if %is -> (i8) {
        %in1 = arith.subi %i, %c1 : index
        %ip1 = arith.addi %i, %c1 : index
        %jn1 = arith.subi %j, %c1 : index
        %jp1 = arith.addi %j, %c1 : index
        %hl = arith.subi %h, %c1 : index
        %wl = arith.subi %w, %c1 : index
        %r0 = arith.maxsi %in1, %c0 : index
        %r1 = arith.minsi %ip1, %hl : index
        %q0 = arith.maxsi %jn1, %c0 : index
        %q1 = arith.minsi %jp1, %wl : index
        %rows:2 = scf.while (%r = %r0, %found = %false) : (index, i1) -> (index, i1) {
          %inside = arith.cmpi sle, %r, %r1 : index
          %true = arith.constant true
          %not = arith.xori %found, %true : i1
          %go = arith.andi %inside, %not : i1
          scf.condition(%go) %r, %found : index, i1
        } do {
        ^bb0(%r: index, %found: i1):
          %columns:2 = scf.while (%q = %q0, %f = %found) : (index, i1) -> (index, i1) {
            %inside = arith.cmpi sle, %q, %q1 : index
            %true = arith.constant true
            %not = arith.xori %f, %true : i1
            %go = arith.andi %inside, %not : i1
            scf.condition(%go) %q, %f : index, i1
          } do {
          ^bb0(%q: index, %f: i1):
            %v = memref.load %state[%r, %q] : memref<?x?xi8>
            %hit = arith.cmpi eq, %v, %strong : i8
            %qn = arith.addi %q, %c1 : index
            scf.yield %qn, %hit : index, i1
          }
          %rn = arith.addi %r, %c1 : index
          scf.yield %rn, %columns#1 : index, i1
        }
        scf.if %rows#1 {
          %old = memref.atomic_rmw ori %i1, %changed[%c0] : (i32, memref<1xi32>) -> i32
        }
        %result = arith.select %rows#1, %strong, %s : i8
        scf.yield %result : i8
      } else {
        scf.yield %s : i8
      }
      memref.store %new, %next[%i, %j] : memref<?x?xi8>
    }
    gpu.return
  }
}
