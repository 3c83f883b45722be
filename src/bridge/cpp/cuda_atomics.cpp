// The atomic operations of CUDA C++ as clang writes them. `atomicAdd` and its like are relaxed and of the device (CUDA C++
// Programming Guide, "Atomic Functions"); clang 22 makes of them an `atomicrmw` or a `cmpxchg` that is sequentially consistent
// and of the whole system, and counts on its own code generation, which writes `atom.add` for every one.

#include "code_generation.h"

#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include "llvm/TargetParser/Triple.h"

using namespace llvm;

namespace gpulower {

/// Whether clang made the module of CUDA C++: of all languages and front ends, its CUDA alone sets both flags
/// (clang/lib/CodeGen/CodeGenModule.cpp).
static bool isOfCuda(const Module &module) {
  return module.getTargetTriple().isNVPTX() && module.getModuleFlag("wchar_size") &&
         module.getModuleFlag("nvvm-reflect-ftz");
}

void relaxCudaAtomics(Module &module) {
  if (!isOfCuda(module))
    return;
  SyncScope::ID device = module.getContext().getOrInsertSyncScopeID("device");
  auto isUnspecific = [](AtomicOrdering ordering, SyncScope::ID scope) {
    return ordering == AtomicOrdering::SequentiallyConsistent && scope == SyncScope::System;
  };
  for (Function &function : module)
    for (Instruction &instruction : instructions(function)) {
      if (auto *atomic = dyn_cast<AtomicRMWInst>(&instruction)) {
        if (isUnspecific(atomic->getOrdering(), atomic->getSyncScopeID())) {
          atomic->setOrdering(AtomicOrdering::Monotonic);
          atomic->setSyncScopeID(device);
        }
      } else if (auto *swap = dyn_cast<AtomicCmpXchgInst>(&instruction)) {
        if (isUnspecific(swap->getSuccessOrdering(), swap->getSyncScopeID()) &&
            swap->getFailureOrdering() == AtomicOrdering::SequentiallyConsistent) {
          swap->setSuccessOrdering(AtomicOrdering::Monotonic);
          swap->setFailureOrdering(AtomicOrdering::Monotonic);
          swap->setSyncScopeID(device);
        }
      }
    }
}

} // namespace gpulower
