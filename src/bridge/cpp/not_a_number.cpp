// Comparisons of floats that hold for every number. ptxas knows what range a result has, and takes `setp.ge.f32` of what cannot be
// negative with 0 or less to hold for NaN, too. (Seen with ptxas 13.0 for sm_90: `|x + 1| >= 0`, `|x + 1| > -1`, `ex2(x) >= 0`; of an
// `abs` of what was loaded it assumes nothing.)
// They only ask whether there is a number.

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

using namespace llvm;
using namespace llvm::PatternMatch;

namespace gpulower {
namespace {

/// Whether a comparison with a constant holds for all numbers that are not negative.
bool holdsUnlessNegative(CmpInst::Predicate predicate, Value *constant) {
  auto zeroOrLess = [](const APFloat &limit) { return limit.isZero() || (limit.isNegative() && !limit.isNaN()); };
  auto lessThanZero = [](const APFloat &limit) { return !limit.isZero() && limit.isNegative() && !limit.isNaN(); };
  return (predicate == CmpInst::FCMP_OGE && match(constant, m_CheckedFp(zeroOrLess))) ||
         (predicate == CmpInst::FCMP_OGT && match(constant, m_CheckedFp(lessThanZero)));
}

bool isNeverNegative(Value *number, const SimplifyQuery &query) {
  // LLVM knows nothing of NVIDIA's own.
  if (auto *call = dyn_cast<IntrinsicInst>(number)) {
    StringRef name = call->getCalledFunction()->getName();
    if (name.starts_with("llvm.nvvm.fabs.") || name.starts_with("llvm.nvvm.ex2.approx"))
      return true;
  }
  return computeKnownFPClass(number, KnownFPClass::OrderedLessThanZeroMask, query).cannotBeOrderedLessThanZero();
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
      if (!holdsUnlessNegative(predicate, limit))
        continue;
      if (!isNeverNegative(number, SimplifyQuery(module.getDataLayout(), &instruction)))
        continue;
      IRBuilder<> builder(&instruction);
      Value *ordered = builder.CreateFCmpORD(number, number);
      ordered->takeName(&instruction);
      instruction.replaceAllUsesWith(ordered);
      instruction.eraseFromParent();
    }
}

} // namespace gpulower
