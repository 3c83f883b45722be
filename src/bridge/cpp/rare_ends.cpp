// Short ends of a kernel for one number, beside which the others go on, such as what is stored on each border of an
// array. ptxas runs a short block that follows its branch under a predicate, in all threads; at the end of the function
// it is branched to.

#include "for_ptx.h"

#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/MDBuilder.h"

using namespace llvm;

namespace {

/// What ptxas may run under a predicate. Longer blocks are branched over anyway.
constexpr unsigned mostInstructions = 16;

/// Cases of a `switch` that become questions one after the other. LLVM makes a table of four.
constexpr unsigned mostCases = 3;

bool onlyReturns(const BasicBlock &block) { return isa<ReturnInst>(block.front()); }

/// Whether a block that one branch alone leads to stores something, and ends the function.
bool isShortEnd(const BasicBlock &block) {
  const auto *next = block.getUniqueSuccessor();
  bool ends = isa<ReturnInst>(block.getTerminator()) || (next && onlyReturns(*next));
  return ends && !onlyReturns(block) && block.hasNPredecessors(1) && block.sizeWithoutDebug() <= mostInstructions &&
         llvm::any_of(block, [](const Instruction &instruction) { return isa<StoreInst>(instruction); }) &&
         llvm::none_of(block, [](const Instruction &instruction) { return isa<CallBase>(instruction); });
}

/// The successor for the number that a branch asks for. Of other questions nothing says which answer is rarer.
std::optional<unsigned> sideOfOne(const BranchInst &branch) {
  auto *comparison = dyn_cast<ICmpInst>(branch.getCondition());
  if (!comparison || !comparison->isEquality())
    return std::nullopt;
  return comparison->getPredicate() == ICmpInst::ICMP_EQ ? 0 : 1;
}

/// Makes the end what is branched to, and the rest what follows.
void branchToEnd(BranchInst &branch, unsigned end) {
  Function &function = *branch.getFunction();
  BasicBlock &block = *branch.getSuccessor(end);
  block.moveBefore(function.end());
  bool isFirst = end == 0;
  auto weights = MDBuilder(function.getContext()).createBranchWeights(isFirst ? 1 : 1 << 20, isFirst ? 1 << 20 : 1);
  branch.setMetadata(LLVMContext::MD_prof, weights);
}

/// Asks for one case after the other.
void askInOrder(SwitchInst &choice) {
  BasicBlock *from = choice.getParent(), *otherwise = choice.getDefaultDest();
  SmallVector<std::pair<ConstantInt *, BasicBlock *>, mostCases> cases;
  for (auto &one : choice.cases())
    cases.push_back({one.getCaseValue(), one.getCaseSuccessor()});
  Value *value = choice.getCondition();
  DebugLoc place = choice.getDebugLoc();
  choice.eraseFromParent();
  BasicBlock *block = from;
  for (auto [number, end] : cases) {
    bool isLast = end == cases.back().second;
    BasicBlock *next = otherwise;
    if (!isLast) {
      next = BasicBlock::Create(from->getContext(), "", from->getParent());
      next->moveAfter(block);
    }
    IRBuilder<> builder(block);
    builder.SetCurrentDebugLocation(place);
    BranchInst *branch = builder.CreateCondBr(builder.CreateICmpEQ(value, number), end, next);
    end->replacePhiUsesWith(from, block);
    branchToEnd(*branch, 0);
    block = next;
  }
}

} // namespace

PreservedAnalyses gpulower::BranchToRareEnds::run(Function &function, FunctionAnalysisManager &analyses) {
  auto &loops = analyses.getResult<LoopAnalysis>(function);
  // A loop ends once.
  SmallVector<Instruction *> terminators;
  for (BasicBlock &block : function)
    if (!loops.getLoopFor(&block))
      terminators.push_back(block.getTerminator());
  bool changed = false;
  for (Instruction *terminator : terminators) {
    if (auto *branch = dyn_cast<BranchInst>(terminator);
        branch && branch->isConditional() && !branch->getMetadata(LLVMContext::MD_prof)) {
      auto side = sideOfOne(*branch);
      if (!side)
        continue;
      const BasicBlock &end = *branch->getSuccessor(*side), &other = *branch->getSuccessor(1 - *side);
      if (!isShortEnd(end) || isShortEnd(other) || onlyReturns(other))
        continue;
      branchToEnd(*branch, *side);
      changed = true;
    } else if (auto *choice = dyn_cast<SwitchInst>(terminator); choice && !choice->getMetadata(LLVMContext::MD_prof)) {
      auto isEnd = [](const auto &one) { return isShortEnd(*one.getCaseSuccessor()); };
      const BasicBlock &other = *choice->getDefaultDest();
      if (choice->getNumCases() == 0 || choice->getNumCases() > mostCases || !llvm::all_of(choice->cases(), isEnd) ||
          isShortEnd(other) || isa<UnreachableInst>(other.front()) || isa<PHINode>(other.front()))
        continue;
      askInOrder(*choice);
      changed = true;
    }
  }
  return changed ? PreservedAnalyses::none() : PreservedAnalyses::all();
}
