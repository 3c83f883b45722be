// `s % 3` of a counter of 64 bits that stays small. By a constant it is the upper half of a product of 64 bits, some
// ten instructions for one; by anything else a loop of many. LLVM's `correlated-propagation` looks at conditions alone,
// and runs when the ends of loops say no more than `!=`. This is done in code generation, when addresses are what they
// will be: scalar evolution knows the rest of a narrow division as a wide one, and writes that into addresses.
// A comparison of 64 bits is two instructions, and moves where one of the numbers is the same for all threads; what it
// is computed from becomes narrow with it, so that it is not done before addresses are written, either.

#include "narrow_integers.h"
#include "passes.h"

#include "llvm/Analysis/LoopInfo.h"
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

/// Whether a comparison, or what is made of it and others, ends its loop: ptxas counts the iterations of loops by those
/// whose counter has one width.
bool endsLoop(const Instruction &condition, const Loop &loop, unsigned depth = 0) {
  constexpr unsigned deepest = 4;
  return any_of(condition.users(), [&](const User *user) {
    if (auto *branch = dyn_cast<BranchInst>(user))
      return any_of(branch->successors(), [&](const BasicBlock *next) { return !loop.contains(next); });
    bool isCondition = isa<BinaryOperator, SelectInst>(user) && user->getType()->isIntegerTy(1);
    return isCondition && (depth == deepest || endsLoop(*cast<Instruction>(user), loop, depth + 1));
  });
}

/// Whether two numbers compare in 32 bits as they do in 64.
bool compareNarrow(const ICmpInst &comparison, ScalarEvolution &evolution) {
  auto fitsSigned = [&](const Use &number) {
    return evolution.getSignedRange(evolution.getSCEV(number)).getMinSignedBits() <= narrow;
  };
  return (!comparison.isUnsigned() && llvm::all_of(comparison.operands(), fitsSigned)) ||
         (!comparison.isSigned() &&
          llvm::all_of(comparison.operands(), [&](const Use &number) { return fits(*number, evolution); }));
}

void narrowComparison(ICmpInst &wide) {
  IRBuilder<> builder(&wide);
  Value *left = builder.CreateTrunc(wide.getOperand(0), builder.getIntNTy(narrow));
  Value *right = builder.CreateTrunc(wide.getOperand(1), builder.getIntNTy(narrow));
  Value *result = builder.CreateICmp(wide.getPredicate(), left, right);
  result->takeName(&wide);
  wide.replaceAllUsesWith(result);
  wide.eraseFromParent();
}

struct NarrowIntegers : FunctionPass {
  static char ID;

  NarrowIntegers() : FunctionPass(ID) {}

  bool runOnFunction(Function &function) override {
    if (skipFunction(function))
      return false;
    auto &evolution = getAnalysis<ScalarEvolutionWrapperPass>().getSE();
    auto &loops = getAnalysis<LoopInfoWrapperPass>().getLoopInfo();
    SmallVector<BinaryOperator *> divisions;
    SmallVector<ICmpInst *> comparisons;
    for (Instruction &instruction : instructions(function)) {
      if (instruction.getNumOperands() != 2 || !instruction.getOperand(0)->getType()->isIntegerTy(2 * narrow))
        continue;
      if (auto *comparison = dyn_cast<ICmpInst>(&instruction)) {
        Loop *loop = loops.getLoopFor(comparison->getParent());
        if (loop && !endsLoop(*comparison, *loop) && compareNarrow(*comparison, evolution))
          comparisons.push_back(comparison);
      } else if (instruction.isIntDivRem() &&
                 llvm::all_of(instruction.operands(), [&](const Use &operand) { return fits(*operand, evolution); })) {
        divisions.push_back(cast<BinaryOperator>(&instruction));
      }
    }
    if (divisions.empty() && comparisons.empty())
      return false;
    // Otherwise each instruction that is replaced is followed to all that is computed from it.
    evolution.forgetAllLoops();
    for (BinaryOperator *division : divisions)
      divideNarrow(*division);
    for (ICmpInst *comparison : comparisons)
      narrowComparison(*comparison);
    return true;
  }

  StringRef getPassName() const override { return "Narrow integers"; }

  void getAnalysisUsage(AnalysisUsage &usage) const override {
    usage.addRequired<ScalarEvolutionWrapperPass>();
    usage.addRequired<LoopInfoWrapperPass>();
    usage.setPreservesCFG();
  }
};

char NarrowIntegers::ID = 0;

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

FunctionPass *createNarrowIntegers() { return new NarrowIntegers(); }

} // namespace gpulower
