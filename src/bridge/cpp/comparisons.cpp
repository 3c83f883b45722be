// Comparisons whose results are asked for again much later, such as whether the element of a thread is within an array,
// before and after a loop. A result takes one of seven predicates for so long; what does not fit is put into registers
// and taken out again, and ptxas has few predicates left with which to compute what is under conditions side by side. A
// comparison costs one instruction, and what it compares is mostly there anyway.

#include "for_ptx.h"

#include "llvm/Analysis/CFG.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"

using namespace llvm;

namespace {

/// Instructions that compute again what is compared.
constexpr unsigned mostSteps = 2;

/// Each comparison is looked at for each loop.
constexpr unsigned mostLoops = 64;

/// Results that may be held: there are seven predicates, and a loop takes some.
constexpr unsigned mostHeld = 3;

/// Whether a loop may run between two blocks, of which the first dominates the second.
bool isBehindLoop(BasicBlock &from, BasicBlock &to, ArrayRef<Loop *> all, const LoopInfo &loops,
                  const DominatorTree &dominators) {
  // What a loop asks in each of its iterations is asked before it.
  if (const Loop *innermost = loops.getLoopFor(&to); innermost && !innermost->contains(&from))
    return false;
  SmallPtrSet<BasicBlock *, 1> excluded = {&from};
  return llvm::any_of(all, [&](const Loop *loop) {
    return !loop->contains(&from) && !loop->contains(&to) && dominators.dominates(&from, loop->getHeader()) &&
           isPotentiallyReachable(loop->getHeader(), &to, &excluded, &dominators, &loops);
  });
}

/// Whether a value is in a register anyway where a comparison is made again, or computed from one that is.
bool isThere(const Value &value, const CmpInst &comparison, const BasicBlock &block, const DominatorTree &dominators,
             unsigned steps) {
  auto *instruction = dyn_cast<Instruction>(&value);
  if (!instruction)
    return true;
  if (llvm::any_of(instruction->users(), [&](const User *user) {
        return user != &comparison && dominators.dominates(&block, cast<Instruction>(user)->getParent());
      }))
    return true;
  return steps != 0 && isa<BinaryOperator, CastInst>(instruction) &&
         llvm::all_of(instruction->operands(),
                      [&](const Use &operand) { return isThere(*operand, comparison, block, dominators, steps - 1); });
}

void swapSides(SelectInst &select) {
  select.swapValues();
  select.swapProfMetadata();
}

/// Asks the opposite in the block of `use`, with the operands in the other order, or what was asked there already:
/// LLVM's code generation takes the same question for the first one, and turns some around.
void askAgain(Use &use, DenseMap<std::pair<CmpInst *, BasicBlock *>, CmpInst *> &asked) {
  auto *comparison = cast<CmpInst>(use.get());
  auto *user = cast<Instruction>(use.getUser());
  CmpInst *&opposite = asked[{comparison, user->getParent()}];
  if (!opposite) {
    opposite = cast<CmpInst>(comparison->clone());
    opposite->setPredicate(comparison->getInversePredicate());
    opposite->swapOperands();
    opposite->insertBefore(user->getParent()->getFirstInsertionPt());
  }
  use.set(opposite);
  if (auto *branch = dyn_cast<BranchInst>(user))
    branch->swapSuccessors();
  else
    swapSides(cast<SelectInst>(*user));
}

bool canAskTheOpposite(const Use &use) {
  auto *select = dyn_cast<SelectInst>(use.getUser());
  return isa<BranchInst>(use.getUser()) || (select && use.getOperandNo() == 0 && use->getType()->isIntegerTy(1));
}

} // namespace

PreservedAnalyses gpulower::CompareAgain::run(Function &function, FunctionAnalysisManager &analyses) {
  auto &loops = analyses.getResult<LoopAnalysis>(function);
  auto &dominators = analyses.getResult<DominatorTreeAnalysis>(function);
  SmallVector<Loop *, 4> all = loops.getLoopsInPreorder();
  if (all.empty() || all.size() > mostLoops)
    return PreservedAnalyses::all();
  SmallVector<Use *> later;
  SmallPtrSet<CmpInst *, 8> held;
  for (Instruction &instruction : instructions(function)) {
    auto *comparison = dyn_cast<CmpInst>(&instruction);
    if (!comparison)
      continue;
    for (Use &use : comparison->uses()) {
      auto *block = cast<Instruction>(use.getUser())->getParent();
      if (canAskTheOpposite(use) && block != comparison->getParent() &&
          llvm::all_of(
              comparison->operands(),
              [&](const Use &operand) { return isThere(*operand, *comparison, *block, dominators, mostSteps); }) &&
          isBehindLoop(*comparison->getParent(), *block, all, loops, dominators)) {
        later.push_back(&use);
        held.insert(comparison);
      }
    }
  }
  if (held.size() <= mostHeld)
    return PreservedAnalyses::all();
  DenseMap<std::pair<CmpInst *, BasicBlock *>, CmpInst *> asked;
  for (Use *use : later)
    askAgain(*use, asked);
  PreservedAnalyses preserved;
  preserved.preserveSet<CFGAnalyses>();
  return preserved;
}
