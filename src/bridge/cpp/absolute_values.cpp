// Absolute values of integers. For ptxas the result of `abs.s32` is never negative, though that of the least number is the least
// number, in PTX as in LLVM: it drops comparisons with zero, such as those of a division that rounds down. (Seen with ptxas
// 13.0 for sm_90: `setp.lt.s32` of an absolute value is false.) Of the greater of a number and its negation it assumes nothing.

#include "code_generation.h"

#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/ConstantRange.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PatternMatch.h"

using namespace llvm;
using namespace llvm::PatternMatch;

namespace gpulower {
namespace {

/// Whether a number may be the least of its type.
bool mayBeLeast(Value *number) {
  ConstantRange range = computeConstantRange(number, /*ForSigned=*/true);
  return range.contains(APInt::getSignedMinValue(number->getType()->getScalarSizeInBits()));
}

/// The number whose absolute value an instruction is, unless that of the least number is left open.
Value *numberOfAbsolute(Instruction &instruction) {
  Value *number = nullptr;
  if (match(&instruction, m_Intrinsic<Intrinsic::abs>(m_Value(number), m_Zero())))
    return number;
  if (!isa<SelectInst>(instruction) || !instruction.getType()->isIntOrIntVectorTy())
    return nullptr;
  Value *negated = nullptr;
  // LLVM makes an absolute value of such a choice.
  bool chooses = matchSelectPattern(&instruction, number, negated).Flavor == SPF_ABS;
  return chooses && !match(negated, m_NSWSub(m_ZeroInt(), m_Specific(number))) ? number : nullptr;
}

} // namespace

void computeAbsoluteValues(Module &module) {
  for (Function &function : module)
    for (Instruction &instruction : make_early_inc_range(instructions(function))) {
      Value *number = numberOfAbsolute(instruction);
      if (!number || !mayBeLeast(number))
        continue;
      IRBuilder<> builder(&instruction);
      Value *greater = builder.CreateBinaryIntrinsic(Intrinsic::smax, number, builder.CreateNeg(number));
      greater->takeName(&instruction);
      instruction.replaceAllUsesWith(greater);
      instruction.eraseFromParent();
    }
}

} // namespace gpulower
