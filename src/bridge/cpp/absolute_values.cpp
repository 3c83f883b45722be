// Absolute values of integers. For ptxas the result of `abs.s32` is never negative, though that of the least number is
// the least number, in PTX as in LLVM: it drops comparisons with zero, such as those of a division that rounds down.
// (Seen with ptxas 13.0 for sm_90: `setp.lt.s32` of an absolute value is false.) Of the greater of a number and its
// negation it assumes nothing.
//
// Of the absolute difference of numbers that were extended to 32 bits LLVM makes that of the narrow ones: the greater
// less the smaller, in 16 bits, which ptxas extends again and again. The greater of the difference and its negation is
// left as it is.

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

/// Whether a number is the difference of two of at most 16 bits that were extended to 32.
bool isOfNarrow(const Value *number) {
  const Value *left, *right;
  if (!number->getType()->isIntOrIntVectorTy(32) ||
      !(match(number, m_Sub(m_ZExt(m_Value(left)), m_ZExt(m_Value(right)))) ||
        match(number, m_Sub(m_SExt(m_Value(left)), m_SExt(m_Value(right))))))
    return false;
  return std::max(left->getType()->getScalarSizeInBits(), right->getType()->getScalarSizeInBits()) <= 16;
}

/// What an absolute value is of, and whether that of the least number is left open.
std::pair<Value *, bool> numberOfAbsolute(Instruction &instruction) {
  Value *number = nullptr;
  if (match(&instruction, m_Intrinsic<Intrinsic::abs>(m_Value(number))))
    return {number, match(instruction.getOperand(1), m_One())};
  if (!isa<SelectInst>(instruction) || !instruction.getType()->isIntOrIntVectorTy())
    return {};
  Value *negated = nullptr;
  // LLVM makes an absolute value of such a choice.
  if (matchSelectPattern(&instruction, number, negated).Flavor != SPF_ABS)
    return {};
  return {number, match(negated, m_NSWSub(m_ZeroInt(), m_Specific(number)))};
}

} // namespace

void computeAbsoluteValues(Module &module) {
  for (Function &function : module)
    for (Instruction &instruction : make_early_inc_range(instructions(function))) {
      auto [number, isOpen] = numberOfAbsolute(instruction);
      if (!number || !(isOfNarrow(number) || (!isOpen && mayBeLeast(number))))
        continue;
      IRBuilder<> builder(&instruction);
      Value *greater = builder.CreateBinaryIntrinsic(Intrinsic::smax, number, builder.CreateNeg(number));
      greater->takeName(&instruction);
      instruction.replaceAllUsesWith(greater);
      instruction.eraseFromParent();
    }
}

} // namespace gpulower
