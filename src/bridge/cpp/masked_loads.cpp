// Masked loads whose mask is constant. LLVM 22's code generator for NVIDIA loads the lanes of the mask as a vector, and forgets the
// values that the other lanes have without a load. They are put in afterwards.

#include "code_generation.h"

#include "llvm/IR/Constants.h"
#include "llvm/IR/DerivedTypes.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PatternMatch.h"

using namespace llvm;
using namespace llvm::PatternMatch;

namespace gpulower {

void separateMaskedLanes(Module &module) {
  for (Function &function : module)
    for (Instruction &instruction : make_early_inc_range(instructions(function))) {
      Constant *mask = nullptr;
      Value *others = nullptr;
      if (!match(&instruction, m_Intrinsic<Intrinsic::masked_load>(m_Value(), m_Constant(mask), m_Value(others))))
        continue;
      auto *type = dyn_cast<FixedVectorType>(instruction.getType());
      if (!type || isa<UndefValue>(others))
        continue;
      SmallVector<int, 8> lanes;
      for (unsigned lane = 0, count = type->getNumElements(); lane < count; ++lane) {
        Constant *loaded = mask->getAggregateElement(lane);
        lanes.push_back(loaded && loaded->isOneValue() ? lane : count + lane);
      }
      IRBuilder<> builder(instruction.getNextNode());
      instruction.replaceUsesOfWith(others, PoisonValue::get(type));
      auto *both = cast<Instruction>(builder.Insert(new ShuffleVectorInst(&instruction, others, lanes)));
      instruction.replaceUsesWithIf(both, [both](Use &use) { return use.getUser() != both; });
    }
}

} // namespace gpulower
