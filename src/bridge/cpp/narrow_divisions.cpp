// `s % 3` of a counter of 64 bits that stays small. By a constant it is the upper half of a product of 64 bits, some
// ten instructions for one; by anything else a loop of many. LLVM's `correlated-propagation` looks at conditions alone,
// and runs when the ends of loops say no more than `!=`. This is done in code generation, when addresses are what they
// will be: scalar evolution knows the rest of a narrow division as a wide one, and writes that into addresses.

#include "narrow_divisions.h"
#include "passes.h"

#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/Pass.h"
#include "llvm/Support/KnownBits.h"
#include "llvm/Transforms/Utils/BypassSlowDivision.h"

using namespace llvm;

namespace gpulower {
namespace {

constexpr unsigned narrow = 32;

/// Whether a number is neither negative nor too large.
bool fits(Value &value, ScalarEvolution &evolution) {
  return evolution.getUnsignedRangeMax(evolution.getSCEV(&value)).getActiveBits() <= narrow ||
         computeKnownBits(&value, evolution.getDataLayout()).countMaxActiveBits() <= narrow;
}

void divideNarrow(BinaryOperator &wide) {
  bool isDivision = wide.getOpcode() == Instruction::UDiv || wide.getOpcode() == Instruction::SDiv;
  IRBuilder<> builder(&wide);
  Value *left = builder.CreateTrunc(wide.getOperand(0), builder.getIntNTy(narrow));
  Value *right = builder.CreateTrunc(wide.getOperand(1), builder.getIntNTy(narrow));
  Value *result = isDivision ? builder.CreateUDiv(left, right, "", wide.isExact()) : builder.CreateURem(left, right);
  Value *extended = builder.CreateZExt(result, wide.getType());
  extended->takeName(&wide);
  wide.replaceAllUsesWith(extended);
  wide.eraseFromParent();
}

struct NarrowDivisions : FunctionPass {
  static char ID;

  NarrowDivisions() : FunctionPass(ID) {}

  bool runOnFunction(Function &function) override {
    if (skipFunction(function))
      return false;
    auto &evolution = getAnalysis<ScalarEvolutionWrapperPass>().getSE();
    SmallVector<BinaryOperator *> wide;
    for (Instruction &instruction : instructions(function))
      if (instruction.isIntDivRem() && instruction.getType()->isIntegerTy(2 * narrow) &&
          llvm::all_of(instruction.operands(), [&](const Use &operand) { return fits(*operand, evolution); }))
        wide.push_back(cast<BinaryOperator>(&instruction));
    if (wide.empty())
      return false;
    // Otherwise each division that is replaced is followed to all that is computed from it.
    evolution.forgetAllLoops();
    for (BinaryOperator *division : wide)
      divideNarrow(*division);
    return true;
  }

  StringRef getPassName() const override { return "Narrow divisions"; }

  void getAnalysisUsage(AnalysisUsage &usage) const override {
    usage.addRequired<ScalarEvolutionWrapperPass>();
    usage.setPreservesCFG();
  }
};

char NarrowDivisions::ID = 0;

/// What LLVM's code generation does where it prepares for selection, and with little time does not.
struct BypassDivisions : PassInfoMixin<BypassDivisions> {
  PreservedAnalyses run(Function &function, FunctionAnalysisManager &) {
    DenseMap<unsigned, unsigned> narrower;
    narrower[2 * narrow] = narrow;
    bool changed = false;
    // Not those that this adds.
    for (BasicBlock *block = &function.front(), *next; block; block = next) {
      next = block->getNextNode();
      changed |= bypassSlowDivision(block, narrower);
    }
    return changed ? PreservedAnalyses::none() : PreservedAnalyses::all();
  }
};

} // namespace

void addDivisions(PassBuilder &builder) { nameFunctionPass<BypassDivisions>(builder, "gpulower-bypass-divisions"); }

FunctionPass *createNarrowDivisions() { return new NarrowDivisions(); }

} // namespace gpulower
