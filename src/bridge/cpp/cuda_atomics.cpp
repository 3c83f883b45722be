// The atomic operations of CUDA C++ as clang writes them. `atomicAdd`, `atomicCAS` and their like are relaxed and of
// the device (CUDA C++ Programming Guide, "Atomic Functions"). clang 22 makes of them an `atomicrmw` or a `cmpxchg`
// that is sequentially consistent and of the whole system, and counts on LLVM's code generation, which writes
// `atom.add` for the first; the second becomes a fence of the system and an acquiring `atom.cas`. Those that name a
// scope are intrinsics.

#include "code_generation.h"

#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include "llvm/TargetParser/Triple.h"

using namespace llvm;

namespace gpulower {

/// What clang says of every module of a language with C's types.
constexpr StringLiteral ofClang = "wchar_size";

/// Whether clang made the module of CUDA C++: it sets both flags (clang/lib/CodeGen/CodeGenModule.cpp), for OpenMP as
/// well.
static bool isOfCuda(const Module &module) {
  return module.getModuleFlag(ofClang) && module.getModuleFlag("nvvm-reflect-ftz") && !module.getModuleFlag("openmp") &&
         !module.getModuleFlag("openmp-device");
}

/// What was asked once is not asked again: the module may be joined with others, whose operations mean what they say.
static void forget(Module &module, StringRef name) {
  NamedMDNode *flags = module.getModuleFlagsMetadata();
  if (!flags)
    return;
  SmallVector<MDNode *> others;
  for (MDNode *flag : flags->operands())
    if (cast<MDString>(flag->getOperand(1))->getString() != name)
      others.push_back(flag);
  flags->clearOperands();
  for (MDNode *flag : others)
    flags->addOperand(flag);
}

void relaxCudaAtomics(Module &module) {
  if (!module.getTargetTriple().isNVPTX())
    return;
  bool isOfCuda = gpulower::isOfCuda(module);
  // Of a compare-and-swap, LLVM's code generation keeps the ordering: it is taken for `atomicCAS` only with CUDA's
  // headers, whose version is noted.
  bool hasHeaders = module.getModuleFlag("SDK Version");
  forget(module, ofClang);
  if (!isOfCuda)
    return;
  SyncScope::ID device = module.getContext().getOrInsertSyncScopeID("device");
  auto isUnspecific = [](AtomicOrdering ordering, SyncScope::ID scope) {
    return ordering == AtomicOrdering::SequentiallyConsistent && scope == SyncScope::System;
  };
  for (Function &function : module)
    for (Instruction &instruction : instructions(function)) {
      if (auto *atomic = dyn_cast<AtomicRMWInst>(&instruction)) {
        // What CUDA's functions become is never volatile, and no swap of theirs is weak.
        if (!atomic->isVolatile() && isUnspecific(atomic->getOrdering(), atomic->getSyncScopeID())) {
          atomic->setOrdering(AtomicOrdering::Monotonic);
          atomic->setSyncScopeID(device);
        }
      } else if (auto *swap = dyn_cast<AtomicCmpXchgInst>(&instruction)) {
        if (hasHeaders && !swap->isVolatile() && !swap->isWeak() &&
            isUnspecific(swap->getSuccessOrdering(), swap->getSyncScopeID()) &&
            swap->getFailureOrdering() == AtomicOrdering::SequentiallyConsistent) {
          swap->setSuccessOrdering(AtomicOrdering::Monotonic);
          swap->setFailureOrdering(AtomicOrdering::Monotonic);
          swap->setSyncScopeID(device);
        }
      }
    }
}

} // namespace gpulower
