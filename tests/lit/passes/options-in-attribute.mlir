// Every option of gpulower-attach-targets ends in the attribute, and gpulower-serialize reads it from there.

// RUN: gpulower-opt %s --gpulower-attach-targets="targets=sm_90,gfx942 O=1 fast=true ftz=false prec-sqrt=true prec-div=true fp-contract=on max-registers=64 debug=line-tables index-bitwidth=32 bare-pointers=true spill-warning=16 time-limit=30 l=a.bc,b.bc" \
// RUN:   | FileCheck %s --check-prefix=BOTH
// RUN: gpulower-opt %s --gpulower-attach-targets="targets=sm_90,sm_80 ptx=8.3 ptx-compiler=ptxas ptxas-options='-v --def-load-cache=cg'" | FileCheck %s --check-prefix=NVIDIA
// RUN: gpulower-opt %s --gpulower-attach-targets="targets=gfx1100,gfx1030 wave-size=64 code-object-version=4 daz=true" | FileCheck %s --check-prefix=AMD
// RUN: gpulower-opt %s --gpulower-attach-targets="targets=gfx942 code-object-version=6" | FileCheck %s --check-prefix=SIX
// RUN: gpulower-opt %s --gpulower-attach-targets="targets=sm_90a,sm_100f,compute_90,gfx90a:sramecc+:xnack-,gfx9-4-generic" | FileCheck %s --check-prefix=NAMES
// RUN: gpulower-opt %s --gpulower-attach-targets="targets=sm_90 O=2" | FileCheck %s --check-prefix=DEFAULT
// What is attached is what upstream's passes and its verifier take:
// RUN: gpulower-opt %s --gpulower-attach-targets="targets=sm_90,gfx942 fast=true fp-contract=off" | mlir-opt | FileCheck %s --check-prefix=UPSTREAM

// BOTH: #nvvm.target<O = 1, chip = "sm_90", flags = {"bare-pointers" = "true", debug = "line-tables", fast, "fp-contract" = "on", ftz = "false", "index-bitwidth" = "32", "max-registers" = "64", "prec-div" = "true", "prec-sqrt" = "true", "spill-warning" = "16", "time-limit" = "30"}, link = ["a.bc", "b.bc"]>
// BOTH-SAME: #rocdl.target<O = 1, chip = "gfx942", features = "+wavefrontsize64", abi = "500", flags = {"bare-pointers" = "true", debug = "line-tables", fast, "fp-contract" = "on", ftz = "false", "index-bitwidth" = "32", "max-registers" = "64", "prec-div" = "true", "prec-sqrt" = "true", "spill-warning" = "16", "time-limit" = "30"}, link = ["a.bc", "b.bc"]>
// NVIDIA: #nvvm.target<O = 3, chip = "sm_90", features = "+ptx83", flags = {"ptx-compiler" = "ptxas", "ptxas-options" = "-v --def-load-cache=cg"}>
// AMD: #rocdl.target<O = 3, chip = "gfx1100", features = "+wavefrontsize64", abi = "400", flags = {ftz}>, #rocdl.target<O = 3, chip = "gfx1030", features = "+wavefrontsize64", abi = "400", flags = {ftz}>
// SIX: #rocdl.target<O = 3, chip = "gfx942", features = "+wavefrontsize64", flags = {"code-object-version" = "6"}>
// NAMES: #nvvm.target<O = 3, chip = "sm_90a">, #nvvm.target<O = 3, chip = "sm_100f">, #nvvm.target<O = 3, chip = "sm_90", flags = {virtual}>, #rocdl.target<O = 3, chip = "gfx90a", features = "+sramecc,-xnack,+wavefrontsize64", abi = "500">, #rocdl.target<O = 3, chip = "gfx9-4-generic", features = "+wavefrontsize64">
// DEFAULT: #nvvm.target<chip = "sm_90">
// UPSTREAM: gpu.module @m [#nvvm.target<{{.*}}>, #rocdl.target<{{.*}}>]
gpu.module @m {
  gpu.func @k() kernel {
    gpu.return
  }
}
