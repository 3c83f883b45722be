// Vectors of an odd number of halves or bfloats. LLVM 22's NVPTX back end computes with pairs of them, and the last pair has one lane
// alone. Of an insertion, or of a bitcast to integers, it may then make `scalar_to_vector`, which it cannot select
// (`ExpandINSERT_VECTOR_ELT` where other lanes turn out unused behind a reduction, and the widening of bitcasts for sm_100).
// Such vectors are put together of their elements.

#include "code_generation.h"

#include "llvm/IR/Constants.h"
#include "llvm/IR/DerivedTypes.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace {

bool isOddVectorOf16Bits(Type *type) {
  auto *vector = dyn_cast<FixedVectorType>(type);
  return vector && vector->getNumElements() % 2 != 0 && vector->getScalarSizeInBits() == 16;
}

/// Whether a vector is put together of nothing but elements, one after the other.
bool isPutTogether(Value *vector) {
  while (auto *insertion = dyn_cast<InsertElementInst>(vector))
    vector = insertion->getOperand(0);
  return isa<UndefValue>(vector);
}

} // namespace

void gpulower::putOddVectorsTogether(Module &module) {
  for (Function &function : module)
    for (Instruction &instruction : make_early_inc_range(instructions(function))) {
      if (!isOddVectorOf16Bits(instruction.getType()))
        continue;
      auto *type = cast<FixedVectorType>(instruction.getType());
      Value *vector = instruction.getNumOperands() > 0 ? instruction.getOperand(0) : nullptr;
      ConstantInt *place = nullptr;
      if (isa<InsertElementInst>(instruction))
        place = dyn_cast<ConstantInt>(instruction.getOperand(2));
      bool changes = place ? type->getElementType()->isFloatingPointTy() && !isPutTogether(vector)
                           : isa<BitCastInst>(instruction) && isOddVectorOf16Bits(vector->getType());
      if (!changes)
        continue;
      IRBuilder<> builder(&instruction);
      Value *result = PoisonValue::get(type);
      for (uint64_t lane = 0; lane < type->getNumElements(); ++lane) {
        Value *element = place && place->equalsInt(lane) ? instruction.getOperand(1) : builder.CreateExtractElement(vector, lane);
        element = builder.CreateBitCast(element, type->getElementType());
        result = builder.CreateInsertElement(result, element, lane);
      }
      result->takeName(&instruction);
      instruction.replaceAllUsesWith(result);
      instruction.eraseFromParent();
    }
}
