// Absolute values of integers. For ptxas the result of `abs.s32` is never negative, though that of the least number is
// the least number, in PTX as in LLVM: it drops comparisons with zero, such as those of a division that rounds down.
// (Seen with ptxas 13.0 for sm_90: `setp.lt.s32` of an absolute value is false.) Of the greater of a number and its
// negation it assumes nothing.
//
// Of a number that was extended LLVM takes the absolute value before it extends it, for which ptxas extends it twice.
// It is extended first, as it was written.
//
// Absolute differences of 32 bits are one instruction, `sad`, and so is what one is added to. LLVM has none: of numbers
// that were extended it makes the greater less the smaller, in 16 bits, which ptxas extends again and again.

#include "code_generation.h"

#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/ConstantRange.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
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

/// Whether a number is a difference that does not come around.
bool isWholeDifference(Value *number) {
  auto *difference = dyn_cast<BinaryOperator>(number);
  if (!difference || difference->getOpcode() != Instruction::Sub)
    return false;
  SimplifyQuery query(difference->getDataLayout(), difference);
  return difference->hasNoSignedWrap() ||
         computeOverflowForSignedSub(difference->getOperand(0), difference->getOperand(1), query) ==
             OverflowResult::NeverOverflows;
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

/// Puts `sad` in place of the absolute value of a difference, and of the sum that it alone is part of.
void computeDifference(Instruction &absolute, Instruction &difference) {
  Instruction *result = &absolute;
  Value *other = nullptr;
  if (absolute.hasOneUse())
    if (auto *sum = dyn_cast<Instruction>(absolute.user_back());
        sum && sum->getParent() == absolute.getParent() && match(sum, m_c_Add(m_Specific(&absolute), m_Value(other))))
      result = sum;
  IRBuilder<> builder(result);
  Value *added = result == &absolute ? builder.getInt32(0) : other;
  Value *made =
      builder.CreateIntrinsic(Intrinsic::nvvm_sad_i, {}, {difference.getOperand(0), difference.getOperand(1), added});
  made->takeName(result);
  result->replaceAllUsesWith(made);
  result->eraseFromParent();
  if (result != &absolute)
    absolute.eraseFromParent();
}

/// Whether all that is done with the absolute value of a narrow number is to extend it.
bool isOnlyExtended(const Instruction &absolute) {
  return absolute.getType()->isIntegerTy() && absolute.getType()->getIntegerBitWidth() <= 16 && !absolute.use_empty() &&
         llvm::all_of(absolute.users(), [](const User *user) { return isa<ZExtInst>(user); });
}

/// Extends a number before its absolute value is taken: of 32 bits, it is never the least.
void extendFirst(Instruction &absolute, Value &number) {
  IRBuilder<> builder(&absolute);
  Value *wide = builder.CreateSExt(&number, builder.getInt32Ty());
  auto *made = cast<Instruction>(builder.CreateBinaryIntrinsic(Intrinsic::abs, wide, builder.getTrue()));
  for (User *user : make_early_inc_range(absolute.users())) {
    auto *extension = cast<Instruction>(user);
    builder.SetInsertPoint(extension);
    extension->replaceAllUsesWith(builder.CreateZExtOrTrunc(made, extension->getType()));
    extension->eraseFromParent();
  }
  made->takeName(&absolute);
  absolute.eraseFromParent();
}

} // namespace

void computeAbsoluteValues(Module &module) {
  for (Function &function : module) {
    // A sum that goes away may be what comes next in the function.
    SmallVector<Instruction *> absolutes;
    for (Instruction &instruction : instructions(function))
      if (numberOfAbsolute(instruction).first)
        absolutes.push_back(&instruction);
    for (Instruction *absolute : absolutes) {
      auto [number, isOpen] = numberOfAbsolute(*absolute);
      if (isOnlyExtended(*absolute)) {
        extendFirst(*absolute, *number);
        continue;
      }
      bool isFree = isOpen || !mayBeLeast(number);
      if (isFree && number->getType()->isIntegerTy(32) && isWholeDifference(number)) {
        computeDifference(*absolute, *cast<Instruction>(number));
        continue;
      }
      if (isFree && !isOfNarrow(number))
        continue;
      IRBuilder<> builder(absolute);
      Value *greater = builder.CreateBinaryIntrinsic(Intrinsic::smax, number, builder.CreateNeg(number));
      greater->takeName(absolute);
      absolute->replaceAllUsesWith(greater);
      absolute->eraseFromParent();
    }
  }
}

} // namespace gpulower
