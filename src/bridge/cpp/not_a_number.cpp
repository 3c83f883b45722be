// Comparisons of floats that hold for every number. ptxas knows what range a result has, and takes `setp.ge.f32` of
// what cannot be less to hold for NaN, too. (Seen with ptxas 13.0 for sm_90: `|x + 1| >= 0`, `|x + 1| > -1`, `ex2(x) >=
// 0`, `|x| + 1 > 0.5`, `sin(x) < 2`; of an `abs` of what was loaded it assumes nothing where the comparison does not
// choose.) They only ask whether there is a number.

#include "code_generation.h"

#include "llvm/ADT/APFloat.h"
#include "llvm/Analysis/SimplifyQuery.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PatternMatch.h"
#include "llvm/Support/KnownFPClass.h"

#include <optional>

using namespace llvm;
using namespace llvm::PatternMatch;

namespace gpulower {
namespace {

/// Sums that are followed.
constexpr unsigned mostSums = 4;

/// What a number is between, unless it is NaN.
struct Range {
  APFloat least, most;
};

/// What ptxas knows of a number; that of it which LLVM knows, or is known of NVIDIA's own functions.
std::optional<Range> rangeOf(Value *number, const SimplifyQuery &query, unsigned sums = 0) {
  const fltSemantics &semantics = number->getType()->getScalarType()->getFltSemantics();
  const APFloat *constant = nullptr;
  if (match(number, m_APFloat(constant)))
    return constant->isNaN() ? std::nullopt : std::optional(Range{*constant, *constant});
  Value *other = nullptr, *second = nullptr;
  if (match(number, m_FNeg(m_Value(other)))) {
    std::optional<Range> range = rangeOf(other, query, sums);
    return range ? std::optional(Range{neg(range->most), neg(range->least)}) : std::nullopt;
  }
  bool isNeverNegative = false;
  if (auto *call = dyn_cast<IntrinsicInst>(number)) {
    StringRef name = call->getCalledFunction()->getName();
    for (StringRef wave : {"llvm.nvvm.sin.approx", "llvm.nvvm.cos.approx", "llvm.nvvm.tanh.approx"})
      if (name.starts_with(wave))
        return Range{APFloat::getOne(semantics, /*Negative=*/true), APFloat::getOne(semantics)};
    isNeverNegative = name.starts_with("llvm.nvvm.fabs.") || name.starts_with("llvm.nvvm.ex2.approx");
  }
  if (sums < mostSums && match(number, m_FAdd(m_Value(other), m_Value(second)))) {
    std::optional<Range> range = rangeOf(other, query, sums + 1), more = rangeOf(second, query, sums + 1);
    if (range && more)
      return Range{range->least + more->least, range->most + more->most};
  }
  if (isNeverNegative ||
      computeKnownFPClass(number, KnownFPClass::OrderedLessThanZeroMask, query).cannotBeOrderedLessThanZero())
    return Range{APFloat::getZero(semantics), APFloat::getInf(semantics)};
  return std::nullopt;
}

/// Whether a comparison with a constant, which does not hold for NaN, holds for all numbers of a range.
bool holdsWithin(const Range &range, CmpInst::Predicate predicate, const APFloat &limit) {
  switch (predicate) {
  case CmpInst::FCMP_OGE:
    return range.least >= limit;
  case CmpInst::FCMP_OGT:
    return range.least > limit;
  case CmpInst::FCMP_OLE:
    return range.most <= limit;
  case CmpInst::FCMP_OLT:
    return range.most < limit;
  default:
    return false;
  }
}

} // namespace

void compareWithNaN(Module &module) {
  for (Function &function : module)
    for (Instruction &instruction : make_early_inc_range(instructions(function))) {
      CmpPredicate predicate;
      Value *number = nullptr, *limit = nullptr;
      if (!match(&instruction, m_FCmp(predicate, m_Value(number), m_Value(limit))))
        continue;
      if (isa<Constant>(number)) {
        std::swap(number, limit);
        predicate = CmpInst::getSwappedPredicate(predicate);
      }
      const APFloat *constant = nullptr;
      if (!match(limit, m_APFloat(constant)) || isa<Constant>(number))
        continue;
      std::optional<Range> range = rangeOf(number, SimplifyQuery(module.getDataLayout(), &instruction));
      if (!range || !holdsWithin(*range, predicate, *constant))
        continue;
      IRBuilder<> builder(&instruction);
      Value *ordered = builder.CreateFCmpORD(number, number);
      ordered->takeName(&instruction);
      instruction.replaceAllUsesWith(ordered);
      instruction.eraseFromParent();
    }
}

} // namespace gpulower
