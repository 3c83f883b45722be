// Atomic operations that older releases do not have.

#include "downgrade.h"

#include "llvm/CodeGen/AtomicExpandUtils.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"

using namespace llvm;

namespace gpulower {

/// Compare-and-swap takes integers and pointers: floats and vectors are handed over as bits.
static void compareAndSwap(IRBuilderBase &builder, Value *address, Value *expected,
                           Value *replacement, Align alignment,
                           AtomicOrdering ordering, SyncScope::ID scope,
                           Value *&success, Value *&loaded,
                           Instruction * /*source of metadata*/) {
  Type *type = replacement->getType();
  bool asBits = !type->isIntegerTy() && !type->isPointerTy();
  if (asBits) {
    Type *bits = builder.getIntNTy(type->getPrimitiveSizeInBits());
    expected = builder.CreateBitCast(expected, bits);
    replacement = builder.CreateBitCast(replacement, bits);
  }
  Value *result = builder.CreateAtomicCmpXchg(
      address, expected, replacement, alignment, ordering,
      AtomicCmpXchgInst::getStrongestFailureOrdering(ordering), scope);
  success = builder.CreateExtractValue(result, 1);
  loaded = builder.CreateExtractValue(result, 0);
  if (asBits)
    loaded = builder.CreateBitCast(loaded, type);
}

void expandAtomics(Module &module, Reader &reader) {
  SmallVector<AtomicRMWInst *> unknown;
  for (Function &function : module)
    for (Instruction &instruction : instructions(function))
      if (auto *atomic = dyn_cast<AtomicRMWInst>(&instruction))
        if (!reader.knows(GpulowerAtomicOperation,
                          AtomicRMWInst::getOperationName(atomic->getOperation())) ||
            (atomic->getType()->isVectorTy() &&
             !reader.reads("atomicrmw on vectors")))
          unknown.push_back(atomic);
  for (AtomicRMWInst *atomic : unknown) {
    StringRef name = AtomicRMWInst::getOperationName(atomic->getOperation());
    // Wider ones need not have a compare-and-swap on the target.
    if (atomic->getType()->getPrimitiveSizeInBits() > 64)
      reader.refuse(GpulowerAtomicOperation, name, atomic);
    else
      expandAtomicRMWToCmpXchg(atomic, compareAndSwap);
  }
}

} // namespace gpulower
