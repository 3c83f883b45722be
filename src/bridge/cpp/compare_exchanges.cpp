// Atomic operations that put a value where another one is, and leave what else is there: `memref.generic_atomic_rmw`
// of a choice. MLIR makes a loop of them, which reads first, and goes on until nobody has written in between. One
// compare-and-swap does it.

#include "code_generation.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PatternMatch.h"

#include <optional>

using namespace llvm;
using namespace llvm::PatternMatch;

namespace gpulower {
namespace {

/// A block that swaps what it has read for a choice, and begins again with what was there where that fails.
struct ExchangeLoop {
  AtomicCmpXchgInst *exchange;
  PHINode *current;
  BranchInst *branch;
  ExtractValueInst *old, *isDone;
  /// What has to be there, and what is put there.
  Value *wanted, *replacement;
};

std::optional<ExchangeLoop> exchangeLoop(BasicBlock &block) {
  ExchangeLoop loop{};
  Instruction *compare = nullptr, *choice = nullptr;
  for (Instruction &instruction : block) {
    if (auto *exchange = dyn_cast<AtomicCmpXchgInst>(&instruction); exchange && !loop.exchange)
      loop.exchange = exchange;
    else if (auto *phi = dyn_cast<PHINode>(&instruction); phi && !loop.current)
      loop.current = phi;
    else if (auto *branch = dyn_cast<BranchInst>(&instruction); branch && branch->isConditional())
      loop.branch = branch;
    else if (auto *part = dyn_cast<ExtractValueInst>(&instruction);
             part && part->getAggregateOperand() == loop.exchange)
      (*part->idx_begin() == 0 ? loop.old : loop.isDone) = part;
    else if (isa<ICmpInst>(instruction) && !compare)
      compare = &instruction;
    else if (isa<SelectInst>(instruction) && !choice)
      choice = &instruction;
    else
      return std::nullopt;
  }
  if (!loop.exchange || !loop.current || !loop.branch || !loop.old || !loop.isDone || !compare || !choice)
    return std::nullopt;
  CmpPredicate predicate;
  Value *first = nullptr, *second = nullptr;
  if (!match(compare, m_c_ICmp(predicate, m_Specific(loop.current), m_Value(loop.wanted))) ||
      !match(choice, m_Select(m_Specific(compare), m_Value(first), m_Value(second))))
    return std::nullopt;
  if (predicate == CmpInst::ICMP_NE)
    std::swap(first, second);
  else if (predicate != CmpInst::ICMP_EQ)
    return std::nullopt;
  loop.replacement = first;
  auto isFromOutside = [&](Value *value) {
    auto *instruction = dyn_cast<Instruction>(value);
    return !instruction || instruction->getParent() != &block;
  };
  bool isAsWanted = second == loop.current && loop.exchange->getCompareOperand() == loop.current &&
                    loop.exchange->getNewValOperand() == choice && loop.exchange->hasNUses(2) &&
                    !loop.exchange->isVolatile() && !loop.exchange->isWeak() && isFromOutside(loop.wanted) &&
                    isFromOutside(loop.replacement) && isFromOutside(loop.exchange->getPointerOperand()) &&
                    loop.branch->getCondition() == loop.isDone && loop.isDone->hasOneUse() && compare->hasOneUse() &&
                    choice->hasOneUse() && loop.branch->getSuccessor(1) == &block &&
                    loop.branch->getSuccessor(0) != &block && loop.current->getNumIncomingValues() == 2 &&
                    loop.current->getIncomingValueForBlock(&block) == loop.old;
  return isAsWanted ? std::optional(loop) : std::nullopt;
}

} // namespace

void exchangeOnce(Module &module) {
  for (Function &function : module)
    for (BasicBlock &block : function) {
      std::optional<ExchangeLoop> loop = exchangeLoop(block);
      if (!loop)
        continue;
      IRBuilder<> builder(loop->exchange);
      AtomicCmpXchgInst &before = *loop->exchange;
      AtomicOrdering ordering = before.getSuccessOrdering();
      // As any compare-and-swap, it releases only where it puts something.
      AtomicCmpXchgInst *once = builder.CreateAtomicCmpXchg(
          before.getPointerOperand(), loop->wanted, loop->replacement, before.getAlign(), ordering,
          AtomicCmpXchgInst::getStrongestFailureOrdering(ordering), before.getSyncScopeID());
      once->copyMetadata(before);
      Value *old = builder.CreateExtractValue(once, 0);
      builder.SetInsertPoint(loop->branch);
      builder.CreateBr(loop->branch->getSuccessor(0));
      auto *choice = cast<Instruction>(before.getNewValOperand()), *compare = cast<Instruction>(choice->getOperand(0));
      loop->old->replaceAllUsesWith(old);
      loop->current->replaceAllUsesWith(old);
      std::initializer_list<Instruction *> unused = {loop->branch, loop->isDone, loop->old,    &before,
                                                     choice,       compare,      loop->current};
      for (Instruction *instruction : unused)
        instruction->eraseFromParent();
    }
}

} // namespace gpulower
