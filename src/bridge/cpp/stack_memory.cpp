// Memory of a thread that a kernel takes under a condition or in a loop. Upstream's conversions leave it where it
// stands, and LLVM takes what stands in the first block of a function alone for part of its frame: the rest grows the
// stack each time, on AMD by as much as somebody reserved for it, and is never in registers.

#include "code_generation.h"

#include "llvm/Analysis/CFG.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace gpulower {
namespace {

/// Whether a block may come after itself.
bool isInCycle(BasicBlock &block) {
  SmallVector<BasicBlock *> next(successors(&block));
  return !next.empty() && isPotentiallyReachableFromMany(next, &block, /*ExclusionSet=*/nullptr);
}

/// Whether an address is used in one iteration alone: it is nowhere that the next one could find it. What is there
/// before it is written is of no interest then.
bool endsWithIteration(AllocaInst &alloca) {
  SmallVector<Value *> aliases{&alloca};
  SmallPtrSet<Value *, 16> seen;
  while (!aliases.empty()) {
    Value *address = aliases.pop_back_val();
    if (!seen.insert(address).second)
      continue;
    for (User *user : address->users()) {
      if (isa<LoadInst, MemIntrinsic, LifetimeIntrinsic>(user))
        continue;
      if (auto *store = dyn_cast<StoreInst>(user); store && store->getValueOperand() != address)
        continue;
      if (auto *atomic = dyn_cast<AtomicRMWInst>(user); atomic && atomic->getValOperand() != address)
        continue;
      // Memrefs are structures with an address and sizes.
      bool isAlias = isa<GetElementPtrInst, AddrSpaceCastInst, InsertValueInst, SelectInst>(user);
      auto *taken = dyn_cast<ExtractValueInst>(user);
      if (!isAlias && !taken)
        return false;
      if (isAlias || !taken->getType()->isIntegerTy())
        aliases.push_back(user);
    }
  }
  return true;
}

} // namespace

void takeStackOnce(Module &module) {
  for (Function &function : module) {
    if (function.isDeclaration())
      continue;
    BasicBlock &entry = function.getEntryBlock();
    for (BasicBlock &block : drop_begin(function))
      for (Instruction &instruction : make_early_inc_range(block)) {
        auto *alloca = dyn_cast<AllocaInst>(&instruction);
        if (alloca && isa<Constant>(alloca->getArraySize()) && (!isInCycle(block) || endsWithIteration(*alloca)))
          alloca->moveBefore(entry, entry.getFirstInsertionPt());
      }
  }
}

} // namespace gpulower
