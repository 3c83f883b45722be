// `(x ^ 64) + y`, as the address in one of two buffers that take turns, where `y` is below 64. LLVM's passes make
// `(x + y) ^ 64` of it, so that the whole has to be computed for every `y`: no loop moves the part that stays out, and
// no constant `y` is in the address of an access.

#include "exclusive_ors.h"
#include "passes.h"

#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/PatternMatch.h"
#include "llvm/Support/KnownBits.h"

using namespace llvm;
using namespace llvm::PatternMatch;

namespace gpulower {
namespace {

struct SeparateExclusiveOrs : PassInfoMixin<SeparateExclusiveOrs> {
  PreservedAnalyses run(Function &function, FunctionAnalysisManager &analyses) {
    ScalarEvolution *evolution = nullptr;
    bool changed = false;
    for (Instruction &instruction : make_early_inc_range(instructions(function))) {
      Value *one, *other;
      const APInt *bits;
      // Of vectors, scalar evolution knows nothing.
      if (!instruction.getType()->isIntegerTy() ||
          !match(&instruction, m_Xor(m_AddLike(m_Value(one), m_Value(other)), m_APInt(bits))) || isa<Constant>(one) ||
          isa<Constant>(other))
        continue;
      if (!evolution)
        evolution = &analyses.getResult<ScalarEvolutionAnalysis>(function);
      APInt ofOne = possibleBits(*one, *evolution), ofOther = possibleBits(*other, *evolution);
      if (bits->intersects(ofOther)) {
        std::swap(one, other);
        std::swap(ofOne, ofOther);
      }
      if (bits->intersects(ofOther) || ofOne.intersects(ofOther))
        continue;
      evolution->forgetValue(&instruction);
      auto *exchanged = BinaryOperator::CreateXor(one, instruction.getOperand(1), "", instruction.getIterator());
      auto *whole = BinaryOperator::CreateDisjointOr(exchanged, other, "", instruction.getIterator());
      exchanged->setDebugLoc(instruction.getDebugLoc());
      whole->setDebugLoc(instruction.getDebugLoc());
      whole->takeName(&instruction);
      instruction.replaceAllUsesWith(whole);
      instruction.eraseFromParent();
      changed = true;
    }
    if (!changed)
      return PreservedAnalyses::all();
    PreservedAnalyses preserved;
    preserved.preserveSet<CFGAnalyses>();
    return preserved;
  }

private:
  /// The bits that may be set.
  static APInt possibleBits(Value &value, ScalarEvolution &evolution) {
    APInt most = evolution.getUnsignedRangeMax(evolution.getSCEV(&value));
    APInt bits = APInt::getLowBitsSet(most.getBitWidth(), most.getActiveBits());
    return bits & ~computeKnownBits(&value, evolution.getDataLayout()).Zero;
  }
};

} // namespace

void addSeparation(PassBuilder &builder) {
  // In LLVM's own pipelines; those for PTX name it.
  builder.registerOptimizerLastEPCallback([](ModulePassManager &passes, OptimizationLevel level, ThinOrFullLTOPhase) {
    if (level.getSpeedupLevel() > 1)
      passes.addPass(createModuleToFunctionPassAdaptor(SeparateExclusiveOrs()));
  });
  nameFunctionPass<SeparateExclusiveOrs>(builder, "gpulower-separate-exclusive-ors");
}

} // namespace gpulower
