// Sums of the bytes of a vector. LLVM 22 halves the vector for them until one byte is left; where the bytes are
// products, and the chip can multiply and add four at once, its AMDGPU selection crashes on that.

#include "code_generation.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"

using namespace llvm;

void gpulower::addBytesInTurn(Module &module) {
  for (Function &function : module)
    for (Instruction &instruction : make_early_inc_range(instructions(function))) {
      auto *call = dyn_cast<IntrinsicInst>(&instruction);
      if (!call || call->getIntrinsicID() != Intrinsic::vector_reduce_add || !call->getType()->isIntegerTy(8))
        continue;
      auto *type = dyn_cast<FixedVectorType>(call->getArgOperand(0)->getType());
      if (!type)
        continue;
      IRBuilder<> builder(call);
      Value *sum = builder.CreateExtractElement(call->getArgOperand(0), uint64_t(0));
      for (unsigned i = 1; i < type->getNumElements(); ++i)
        sum = builder.CreateAdd(sum, builder.CreateExtractElement(call->getArgOperand(0), i));
      call->replaceAllUsesWith(sum);
      call->eraseFromParent();
    }
}
