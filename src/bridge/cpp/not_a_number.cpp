// Comparisons of floats that hold for every number, or for none. ptxas knows what range a result has, and takes
// `setp.ge.f32` of what cannot be less to hold for NaN, too. They only ask whether there is a number.
//
// Seen with ptxas 13.0 for sm_90: `|x + 1| >= 0`, `|x| + 1 > 0.5`, `ex2(x) >= 0`, `sin(x) < 2`. Of an `abs` of what was
// loaded it assumes nothing where the comparison does not choose.

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

/// Sums and negations that are followed.
constexpr unsigned mostSteps = 4;

/// More than `sin.approx`, `cos.approx` and `tanh.approx` give, whose errors are 2^-8 at most: of `tanh.approx.bf16`
/// (PTX ISA).
constexpr double crest = 1.0 + 1.0 / 256;

/// What a number is between, unless it is NaN.
struct Range {
  APFloat least, most;
};

/// Ranges as ptxas knows them; that of them which LLVM knows, or is known of NVIDIA's own functions.
class Ranges {
public:
  /// With `flushes`, denormal numbers are zeros.
  Ranges(const SimplifyQuery &query, bool flushes) : query(query), flushes(flushes) {}

  APFloat flushed(const APFloat &number) const {
    return flushes && number.isDenormal() ? APFloat::getZero(number.getSemantics(), number.isNegative()) : number;
  }

  std::optional<Range> of(Value *number, unsigned steps = 0) const {
    const fltSemantics &semantics = number->getType()->getScalarType()->getFltSemantics();
    const APFloat *constant = nullptr;
    if (match(number, m_APFloat(constant)))
      return constant->isNaN() ? std::nullopt : std::optional(Range{flushed(*constant), flushed(*constant)});
    Value *other = nullptr, *second = nullptr;
    if (steps < mostSteps && match(number, m_FNeg(m_Value(other)))) {
      std::optional<Range> range = of(other, steps + 1);
      return range ? std::optional(Range{neg(range->most), neg(range->least)}) : std::nullopt;
    }
    if (steps < mostSteps && match(number, m_FAdd(m_Value(other), m_Value(second)))) {
      std::optional<Range> range = of(other, steps + 1), more = of(second, steps + 1);
      if (range && more)
        return Range{flushed(range->least + more->least), flushed(range->most + more->most)};
    }
    bool isNeverNegative = false;
    if (auto *call = dyn_cast<IntrinsicInst>(number)) {
      StringRef name = call->getCalledFunction()->getName();
      for (StringRef wave : {"llvm.nvvm.sin.approx", "llvm.nvvm.cos.approx", "llvm.nvvm.tanh.approx"})
        if (name.starts_with(wave)) {
          APFloat most(crest);
          bool isRounded = false;
          most.convert(semantics, APFloat::rmTowardPositive, &isRounded);
          return Range{neg(most), most};
        }
      isNeverNegative = name.starts_with("llvm.nvvm.fabs.") || name.starts_with("llvm.nvvm.ex2.approx");
    }
    if (isNeverNegative ||
        computeKnownFPClass(number, KnownFPClass::OrderedLessThanZeroMask, query).cannotBeOrderedLessThanZero())
      return Range{APFloat::getZero(semantics), APFloat::getInf(semantics)};
    return std::nullopt;
  }

private:
  const SimplifyQuery &query;
  bool flushes;
};

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

bool holdsForNumbers(Value *number, CmpInst::Predicate predicate, const APFloat &limit, const SimplifyQuery &query) {
  auto holds = [&](bool flushes) {
    Ranges ranges(query, flushes);
    std::optional<Range> range = ranges.of(number);
    return range && holdsWithin(*range, predicate, ranges.flushed(limit));
  };
  // Of halves instructions flush as those of f32 do, of bfloats some.
  const Function &function = *query.CxtI->getFunction();
  bool mayFlush = !number->getType()->getScalarType()->isDoubleTy() &&
                  function.getDenormalMode(APFloat::IEEEsingle()) != DenormalMode::getIEEE();
  return holds(/*flushes=*/false) && (!mayFlush || holds(/*flushes=*/true));
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
      // One that holds for NaN is the opposite of one that does not.
      bool isOpposite = CmpInst::isUnordered(predicate);
      CmpInst::Predicate asked = isOpposite ? CmpInst::getInversePredicate(predicate) : CmpInst::Predicate(predicate);
      if (!holdsForNumbers(number, asked, *constant, SimplifyQuery(module.getDataLayout(), &instruction)))
        continue;
      IRBuilder<> builder(&instruction);
      Value *ordered = isOpposite ? builder.CreateFCmpUNO(number, number) : builder.CreateFCmpORD(number, number);
      ordered->takeName(&instruction);
      instruction.replaceAllUsesWith(ordered);
      instruction.eraseFromParent();
    }
}

} // namespace gpulower
