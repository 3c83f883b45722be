// Minima and maxima of floats, which are others where zeros or NaN meet.

#include "code_generation.h"

#include "llvm/ADT/APFloat.h"
#include "llvm/Analysis/SimplifyQuery.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PatternMatch.h"
#include "llvm/Support/KnownFPClass.h"

#include <optional>

using namespace llvm;
using namespace llvm::PatternMatch;

namespace gpulower {
namespace {

/// Whether instruction selection makes a minimum or maximum of a choice, and that is another zero than the one chosen.
bool isOtherZeroAsExtreme(SelectInst &choice) {
  Value *left = nullptr, *right = nullptr;
  SelectPatternFlavor flavor = matchSelectPattern(&choice, left, right).Flavor;
  if ((flavor != SPF_FMINNUM && flavor != SPF_FMAXNUM) || choice.hasNoSignedZeros())
    return false;
  // A denormal number may be taken for a zero.
  FPClassTest lesser = fcNegZero | fcNegSubnormal, greater = fcPosZero | fcPosSubnormal;
  if (flavor == SPF_FMAXNUM)
    std::swap(lesser, greater);
  // Of two zeros the second is chosen.
  SimplifyQuery query(choice.getDataLayout(), &choice);
  return !computeKnownFPClass(choice.getTrueValue(), lesser, query).isKnownNever(lesser) &&
         !computeKnownFPClass(choice.getFalseValue(), greater, query).isKnownNever(greater);
}

/// The lesser or greater of a number and a constant. The constant stands for NaN, too, unless NaN is kept.
struct Extreme {
  bool isMinimum;
  bool keepsNaN;
  bool mayBeNaN;
  Value *number;
  const APFloat *limit;
};

std::optional<Extreme> extremeOfCall(IntrinsicInst &call) {
  Extreme extreme{/*isMinimum=*/false, /*keepsNaN=*/false, /*mayBeNaN=*/!call.hasNoNaNs(), nullptr, nullptr};
  switch (call.getIntrinsicID()) {
  // sm_75 has no instructions for these, and LLVM makes minima and maxima of them where nothing is NaN.
  case Intrinsic::minimum:
  case Intrinsic::maximum:
    if (call.getType()->getScalarType()->isHalfTy())
      return std::nullopt;
    extreme.isMinimum = call.getIntrinsicID() == Intrinsic::minimum;
    extreme.keepsNaN = true;
    break;
  case Intrinsic::minnum:
  case Intrinsic::minimumnum:
  case Intrinsic::nvvm_fmin_f:
  case Intrinsic::nvvm_fmin_ftz_f:
  case Intrinsic::nvvm_fmin_d:
  case Intrinsic::nvvm_fmin_f16:
  case Intrinsic::nvvm_fmin_ftz_f16:
    extreme.isMinimum = true;
    break;
  case Intrinsic::maxnum:
  case Intrinsic::maximumnum:
  case Intrinsic::nvvm_fmax_f:
  case Intrinsic::nvvm_fmax_ftz_f:
  case Intrinsic::nvvm_fmax_d:
  case Intrinsic::nvvm_fmax_f16:
  case Intrinsic::nvvm_fmax_ftz_f16:
    break;
  default:
    return std::nullopt;
  }
  extreme.number = call.getArgOperand(0);
  Value *limit = call.getArgOperand(1);
  if (isa<Constant>(extreme.number))
    std::swap(extreme.number, limit);
  return match(limit, m_APFloat(extreme.limit)) && !extreme.limit->isNaN() ? std::optional(extreme) : std::nullopt;
}

/// Of choices that are one, whoever makes an instruction of them.
std::optional<Extreme> extremeOfChoice(SelectInst &choice) {
  auto *compare = dyn_cast<FCmpInst>(choice.getCondition());
  if (!compare)
    return std::nullopt;
  Value *number = compare->getOperand(0), *compared = compare->getOperand(1);
  Value *first = choice.getTrueValue(), *second = choice.getFalseValue();
  CmpInst::Predicate predicate = compare->getPredicate();
  if (isa<Constant>(number)) {
    std::swap(number, compared);
    predicate = CmpInst::getSwappedPredicate(predicate);
  }
  if (first != number) {
    std::swap(first, second);
    predicate = CmpInst::getInversePredicate(predicate);
  }
  Extreme extreme{predicate == CmpInst::FCMP_OLT || predicate == CmpInst::FCMP_OLE, /*keepsNaN=*/false,
                  /*mayBeNaN=*/!choice.hasNoNaNs() && !compare->hasNoNaNs(), number, nullptr};
  const APFloat *compareLimit = nullptr;
  bool isMaximum = predicate == CmpInst::FCMP_OGT || predicate == CmpInst::FCMP_OGE;
  if ((!extreme.isMinimum && !isMaximum) || first != number || !match(second, m_APFloat(extreme.limit)) ||
      !match(compared, m_APFloat(compareLimit)) || *compareLimit != *extreme.limit)
    return std::nullopt;
  // The greater of two zeros is 0, if one is.
  CmpInst::Predicate ofZeros = extreme.limit->isNegative() ? CmpInst::FCMP_OGE : CmpInst::FCMP_OGT;
  return extreme.limit->isZero() && predicate != ofZeros ? std::nullopt : std::optional(extreme);
}

std::optional<Extreme> extremeOf(Value *value) {
  Type *element = value->getType()->getScalarType();
  if (!element->isFloatTy() && !element->isHalfTy() && !element->isDoubleTy())
    return std::nullopt;
  if (auto *call = dyn_cast<IntrinsicInst>(value))
    return extremeOfCall(*call);
  auto *choice = dyn_cast<SelectInst>(value);
  return choice ? extremeOfChoice(*choice) : std::nullopt;
}

/// Of a number that was limited in the same direction before, one for both, as ptxas has it.
Extreme together(Extreme extreme) {
  for (std::optional<Extreme> before; (before = extremeOf(extreme.number)) && before->isMinimum == extreme.isMinimum;) {
    // The second limit alone is that of NaN which the first keeps.
    if (before->keepsNaN && before->mayBeNaN && !extreme.keepsNaN)
      break;
    if (extreme.isMinimum ? *before->limit < *extreme.limit : *before->limit > *extreme.limit)
      extreme.limit = before->limit;
    // That the second gets no NaN says nothing of the first, if that makes its limit of one.
    extreme.mayBeNaN = before->mayBeNaN && (extreme.mayBeNaN || !before->keepsNaN);
    extreme.keepsNaN &= before->keepsNaN;
    extreme.number = before->number;
  }
  return extreme;
}

/// The lesser or greater of a constant and what is not NaN, in a way of which ptxas makes no part of a saturation.
Value *withoutSaturation(IRBuilder<> &builder, const Extreme &extreme) {
  Type *type = extreme.number->getType();
  Constant *limit = ConstantFP::get(type, *extreme.limit);
  if (type->getScalarType()->isHalfTy())
    return builder.CreateBinaryIntrinsic(extreme.isMinimum ? Intrinsic::minimum : Intrinsic::maximum, extreme.number,
                                         limit);
  // As integers, numbers from -0 on have the order that they have as floats; all that are less are negative, and as
  // integers without a sign greater than -0. (`max.NaN.f32` would do, but sm_75 has none.)
  Type *bits = type->getWithNewType(builder.getIntNTy(type->getScalarSizeInBits()));
  bool isNegativeZero = extreme.limit->isNegZero();
  Intrinsic::ID function = extreme.isMinimum ? Intrinsic::smin : isNegativeZero ? Intrinsic::umin : Intrinsic::smax;
  Value *result = builder.CreateBinaryIntrinsic(function, builder.CreateBitCast(extreme.number, bits),
                                                builder.CreateBitCast(limit, bits));
  return builder.CreateBitCast(result, type);
}

} // namespace

/// `x < 0 ? x : 0` is 0 for -0, of which a minimum with 0 is -0; so are its three likes, and choices between numbers
/// that are not NaN. (LLVM 22, `SelectionDAGBuilder::visitSelect`: `matchSelectPattern` takes both zeros for one where
/// a comparison is strict.) Of comparisons that are not strict it makes nothing.
void chooseZeros(Module &module) {
  for (Function &function : module)
    for (Instruction &instruction : make_early_inc_range(instructions(function))) {
      auto *choice = dyn_cast<SelectInst>(&instruction);
      auto *compare = choice ? dyn_cast<FCmpInst>(choice->getCondition()) : nullptr;
      if (!compare || !isOtherZeroAsExtreme(*choice))
        continue;
      IRBuilder<> builder(choice);
      choice->setCondition(builder.CreateFCmpFMF(compare->getInversePredicate(), compare->getOperand(0),
                                                 compare->getOperand(1), compare));
      choice->swapValues();
      choice->swapProfMetadata();
      if (compare->use_empty())
        compare->eraseFromParent();
    }
}

/// For ptxas `max(min(x, 1), 0)` and `min(max(x, 0), 1)` are a saturation (`FADD.SAT`, `FMUL.SAT`, `HFMA2.SAT`), which
/// is 0 for NaN, where the first is 1; and it takes -0 for 0. What becomes of `fptoui.sat` begins with such a `max(x,
/// 0)`. (Seen with ptxas 13.0 for sm_75 to sm_120, of f32, and from sm_90 on of single f16. Of f64 it makes `min(max(x,
/// 0), 1)`, which is 0 for NaN, too.)
void keepFromSaturating(Module &module) {
  for (Function &function : module) {
    // Numbers from 0 to 1: all that a conversion to an integer would do with NaN and what does not fit is a saturation
    // again.
    SmallPtrSet<Value *, 4> saturated;
    for (Instruction &instruction : make_early_inc_range(instructions(function))) {
      std::optional<Extreme> outer = extremeOf(&instruction);
      auto *toUnsigned = dyn_cast<IntrinsicInst>(&instruction);
      if (toUnsigned && toUnsigned->getIntrinsicID() != Intrinsic::fptoui_sat)
        toUnsigned = nullptr;
      std::optional<APFloat> zero;
      if (toUnsigned) {
        Value *number = toUnsigned->getArgOperand(0);
        zero = APFloat::getZero(number->getType()->getScalarType()->getFltSemantics());
        outer = Extreme{/*isMinimum=*/false, /*keepsNaN=*/false, /*mayBeNaN=*/true, number, &*zero};
      }
      if (!outer)
        continue;
      IRBuilder<> builder(&instruction);
      Value *result = saturated.contains(outer->number) ? outer->number : nullptr;
      if (!result) {
        Extreme last = together(*outer);
        std::optional<Extreme> inner = extremeOf(last.number);
        // What limits further was seen already.
        if (!inner || last.limit != outer->limit)
          continue;
        Extreme first = together(*inner);
        const APFloat &most = *(last.isMinimum ? last : first).limit, &least = *(last.isMinimum ? first : last).limit;
        if (!most.isExactlyValue(1.0) || !least.isZero())
          continue;
        SimplifyQuery query(module.getDataLayout(), &instruction);
        bool mayBeNaN = first.mayBeNaN && !isKnownNeverNaN(first.number, query);
        // A minimum that keeps NaN is none of a saturation; where there is no NaN, LLVM makes another one of it.
        if (mayBeNaN && first.keepsNaN)
          continue;
        bool isOneForNaN = first.isMinimum && mayBeNaN;
        if (!isOneForNaN && (!least.isNegative() || instruction.hasNoSignedZeros()))
          continue;
        result = withoutSaturation(builder, *outer);
        saturated.insert(result);
      } else if (!toUnsigned) {
        // What limits it once more changes -0 at most.
        bool isNothing = outer->isMinimum ? *outer->limit >= APFloat::getOne(outer->limit->getSemantics())
                                          : outer->limit->isNegative();
        if (!isNothing && !outer->limit->isZero())
          continue;
        result = isNothing ? result : withoutSaturation(builder, *outer);
        saturated.insert(result);
      }
      Value *made = toUnsigned ? builder.CreateFPToUI(result, instruction.getType()) : result;
      made->takeName(&instruction);
      instruction.replaceAllUsesWith(made);
      instruction.eraseFromParent();
    }
  }
}

} // namespace gpulower
