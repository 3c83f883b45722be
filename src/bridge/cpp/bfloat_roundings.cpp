// Bfloats that are rounded to whole numbers and are constants. LLVM's passes fold no such rounding, and its code
// generation does, and with it what is computed of it: a choice between a constant 0 / 0 and 0 is NaN then, whatever
// the condition (LLVM 22 for NVIDIA, vectors of two bfloats). What the passes fold is right. Where none run (O=0), a
// quotient of constants in the input remains.

#include "code_generation.h"

#include "llvm/IR/Constants.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"

#include <optional>

using namespace llvm;

namespace gpulower {
namespace {

std::optional<APFloat::roundingMode> roundingOf(const IntrinsicInst &call) {
  switch (call.getIntrinsicID()) {
  case Intrinsic::trunc:
    return APFloat::rmTowardZero;
  case Intrinsic::floor:
    return APFloat::rmTowardNegative;
  case Intrinsic::ceil:
    return APFloat::rmTowardPositive;
  case Intrinsic::round:
    return APFloat::rmNearestTiesToAway;
  case Intrinsic::rint:
  case Intrinsic::nearbyint:
  case Intrinsic::roundeven:
    return APFloat::rmNearestTiesToEven;
  default:
    return std::nullopt;
  }
}

/// A constant, each of its elements rounded; nothing where one is no number.
Constant *rounded(Constant &constant, APFloat::roundingMode mode) {
  if (auto *number = dyn_cast<ConstantFP>(&constant); number && !number->getType()->isVectorTy()) {
    APFloat value = number->getValueAPF();
    value.roundToIntegral(mode);
    return ConstantFP::get(number->getContext(), value);
  }
  auto *type = dyn_cast<FixedVectorType>(constant.getType());
  SmallVector<Constant *> elements;
  for (unsigned index = 0; type && index < type->getNumElements(); ++index) {
    Constant *element = constant.getAggregateElement(index);
    element = element ? rounded(*element, mode) : nullptr;
    if (!element)
      return nullptr;
    elements.push_back(element);
  }
  return elements.empty() ? nullptr : ConstantVector::get(elements);
}

} // namespace

void foldBfloatRoundings(Module &module) {
  for (Function &function : module)
    for (Instruction &instruction : make_early_inc_range(instructions(function))) {
      auto *call = dyn_cast<IntrinsicInst>(&instruction);
      auto mode = call && call->getType()->getScalarType()->isBFloatTy() ? roundingOf(*call) : std::nullopt;
      auto *operand = mode ? dyn_cast<Constant>(call->getArgOperand(0)) : nullptr;
      Constant *result = operand ? rounded(*operand, *mode) : nullptr;
      if (!result)
        continue;
      call->replaceAllUsesWith(result);
      call->eraseFromParent();
    }
}

} // namespace gpulower
