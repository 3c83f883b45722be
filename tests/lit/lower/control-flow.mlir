// RUN: gpulower compile %s --target sm_90 --emit ptx -o - | FileCheck %s --check-prefix=PTX
// RUN: gpulower compile %s --target gfx942 --emit hsaco -o %t.hsaco
// RUN: %llvm/llvm-readelf --symbols %t.hsaco | FileCheck %s --check-prefix=HSACO

// scf, cf, affine, index and ub.

// HSACO-DAG: affine_loops.kd
// HSACO-DAG: structured.kd
// HSACO-DAG: unstructured.kd
// HSACO-DAG: indices.kd
gpu.module @kernels {
  // PTX-LABEL: .entry structured(
  gpu.func @structured(%m: memref<?xf32>, %n: index, %i: i32) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : f32
    %sum = scf.parallel (%a) = (%c0) to (%n) step (%c1) init (%zero) -> f32 {
      %v = memref.load %m[%a] : memref<?xf32>
      scf.reduce(%v : f32) {
      ^bb0(%x: f32, %y: f32):
        %z = arith.addf %x, %y : f32
        scf.reduce.return %z : f32
      }
    }
    scf.forall (%a) in (%n) {
      memref.store %sum, %m[%a] : memref<?xf32>
    }
    %last = scf.while (%a = %i) : (i32) -> i32 {
      %more = arith.cmpi slt, %a, %i : i32
      scf.condition(%more) %a : i32
    } do {
    ^bb0(%a: i32):
      %b = arith.addi %a, %a : i32
      scf.yield %b : i32
    }
    %picked = scf.index_switch %n -> f32
    case 1 { scf.yield %sum : f32 }
    default { scf.yield %zero : f32 }
    %at = arith.index_cast %last : i32 to index
    memref.store %picked, %m[%at] : memref<?xf32>
    gpu.return
  }

  // PTX-LABEL: .entry unstructured(
  gpu.func @unstructured(%m: memref<?xf32>, %i: i32, %v: f32, %at: index) kernel {
    cf.switch %i : i32, [default: ^end, 1: ^store]
  ^store:
    memref.store %v, %m[%at] : memref<?xf32>
    cf.br ^end
  ^end:
    gpu.return
  }

  // PTX-LABEL: .entry affine_loops(
  gpu.func @affine_loops(%m: memref<?xf32>, %v: f32, %i: index) kernel {
    affine.for %a = 0 to 8 {
      affine.if affine_set<(d0) : (d0 - 2 >= 0)>(%a) {
        affine.store %v, %m[%a + 1] : memref<?xf32>
      }
    }
    affine.parallel (%a) = (0) to (8) {
      affine.store %v, %m[%a + 16] : memref<?xf32>
    }
    %p:2 = affine.delinearize_index %i into (4, 8) : index, index
    %q = affine.linearize_index [%p#1, %p#0] by (8, 4) : index
    %r = affine.min affine_map<(d0) -> (d0 floordiv 3, 5)>(%q)
    memref.store %v, %m[%r] : memref<?xf32>
    gpu.return
  }

  // PTX-LABEL: .entry indices(
  gpu.func @indices(%m: memref<?xindex>, %i: index, %j: index) kernel {
    %a = index.ceildivs %i, %j
    %b = index.floordivs %a, %j
    %c = index.maxu %a, %b
    %poison = ub.poison : index
    %d = arith.ceildivui %c, %j : index
    memref.store %d, %m[%i] : memref<?xindex>
    gpu.return
  }
}
