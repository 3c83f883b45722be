// Loops whose counter goes down. Interleaving asks for counters that go up: such a loop gets one, which begins at 0 and
// ends where the other has come down as far. The other stays for what else the body does with it.

#include "interleave.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/Transforms/Utils/Local.h"
#include "llvm/Transforms/Utils/ScalarEvolutionExpander.h"

using namespace llvm;

namespace gpulower::interleave {
namespace {

/// The comparison that ends a loop, as `counter predicate bound` while it goes on.
struct Downwards {
  ICmpInst *compare;
  const SCEVAddRecExpr *counter;
  const SCEV *bound;
  CmpInst::Predicate predicate;
};

std::optional<Downwards> findDownwards(Loop &loop, ScalarEvolution &evolution) {
  BasicBlock *latch = loop.getLoopLatch();
  auto *branch = latch && loop.getExitingBlock() == latch ? dyn_cast<BranchInst>(latch->getTerminator()) : nullptr;
  auto *compare = branch && branch->isConditional() ? dyn_cast<ICmpInst>(branch->getCondition()) : nullptr;
  if (!compare || !loop.getLoopPreheader() ||
      !(compare->getOperand(0)->getType()->isIntegerTy(32) || compare->getOperand(0)->getType()->isIntegerTy(64)))
    return std::nullopt;
  CmpInst::Predicate predicate =
      branch->getSuccessor(0) == loop.getHeader() ? compare->getPredicate() : compare->getInversePredicate();
  const SCEV *counter = evolution.getSCEV(compare->getOperand(0)), *bound = evolution.getSCEV(compare->getOperand(1));
  if (evolution.isLoopInvariant(counter, &loop)) {
    std::swap(counter, bound);
    predicate = CmpInst::getSwappedPredicate(predicate);
  }
  auto *counted = dyn_cast<SCEVAddRecExpr>(counter);
  auto *step = counted && counted->getLoop() == &loop && counted->isAffine()
                   ? dyn_cast<SCEVConstant>(counted->getStepRecurrence(evolution))
                   : nullptr;
  if (!step || !step->getAPInt().isNegative() || step->getAPInt().abs().ugt(largestStep(*step)) ||
      !evolution.isLoopInvariant(bound, &loop))
    return std::nullopt;
  if (predicate == CmpInst::ICMP_UGT && bound->isZero())
    predicate = CmpInst::ICMP_NE;
  bool takesAll = step->getAPInt().isAllOnes();
  bool isRight = false;
  switch (predicate) {
  case CmpInst::ICMP_NE:
    isRight = takesAll;
    break;
  case CmpInst::ICMP_UGT:
    // Not 0, which is `ne` above: the distance is the largest number at most.
    isRight = takesAll && isa<SCEVConstant>(bound);
    break;
  case CmpInst::ICMP_SGT:
  case CmpInst::ICMP_SGE:
    // A counter that comes around goes on for longer than from its start to its end. The distance that is computed,
    // start less end and a step more, has to fit in an unsigned number: the end is not far below 0.
    isRight = counted->hasNoSignedWrap() && evolution.getSignedRangeMin(bound).sge(-int64_t(largestStep(*step)));
    break;
  default:
    break;
  }
  if (!isRight)
    return std::nullopt;
  return Downwards{compare, counted, bound, predicate};
}

} // namespace

CountedUpwards::CountedUpwards(Loop &loop, ScalarEvolution &evolution)
    : loop(loop), evolution(evolution), expander(evolution, "upwards") {
  std::optional<Downwards> found = findDownwards(loop, evolution);
  if (!found)
    return;
  auto &branch = *cast<BranchInst>(loop.getLoopLatch()->getTerminator());
  Instruction *before = loop.getLoopPreheader()->getTerminator();
  const SCEV *step = evolution.getNegativeSCEV(found->counter->getStepRecurrence(evolution));
  const SCEV *first = found->counter->getStart();
  // What is asked in iteration k, from 0 on, is `first - k * step predicate bound`.
  const SCEV *distance = evolution.getAddExpr(evolution.getMinusSCEV(first, found->bound), step);
  CmpInst::Predicate below = found->predicate == CmpInst::ICMP_SGE ? CmpInst::ICMP_ULE : CmpInst::ICMP_ULT;
  CmpInst::Predicate notBelow = CmpInst::isSigned(found->predicate) ? CmpInst::ICMP_SGE : CmpInst::ICMP_UGE;
  bool mayBeginBelow =
      found->predicate != CmpInst::ICMP_NE && !evolution.isLoopEntryGuardedByCond(&loop, notBelow, first, found->bound);
  // A distance of 0 is one of all numbers.
  if (found->predicate == CmpInst::ICMP_NE &&
      !evolution.isLoopEntryGuardedByCond(&loop, CmpInst::ICMP_NE, evolution.getAddExpr(first, step), found->bound))
    below = CmpInst::ICMP_NE;
  if (!expander.isSafeToExpandAt(first, before) || !expander.isSafeToExpandAt(found->bound, before) ||
      !expander.isSafeToExpandAt(distance, before))
    return;
  IRBuilder<> builder(before);
  Type *type = distance->getType();
  auto expand = [&](const SCEV *value) { return expander.expandCodeFor(value, type, before->getIterator()); };
  Value *end = expand(distance);
  // One iteration then, as a distance of 0 has.
  if (mayBeginBelow)
    end = choice =
        SelectInst::Create(new ICmpInst(before->getIterator(), notBelow, expand(first), expand(found->bound)), end,
                           ConstantInt::get(type, 0), "", before->getIterator());
  counter = PHINode::Create(type, 2, "upwards", loop.getHeader()->begin());
  builder.SetInsertPoint(&branch);
  Value *next = builder.CreateAdd(counter, cast<SCEVConstant>(step)->getValue(), "upwards.next");
  counter->addIncoming(ConstantInt::get(type, 0), loop.getLoopPreheader());
  counter->addIncoming(next, loop.getLoopLatch());
  original = found->compare;
  if (branch.getSuccessor(0) != loop.getHeader())
    below = CmpInst::getInversePredicate(below);
  branch.setCondition(builder.CreateICmp(below, next, end));
  evolution.forgetLoop(&loop);
}

CountedUpwards::~CountedUpwards() {
  if (!original || isKept)
    return;
  auto &branch = *cast<BranchInst>(loop.getLoopLatch()->getTerminator());
  auto *compare = cast<Instruction>(branch.getCondition());
  branch.setCondition(original);
  evolution.forgetLoop(&loop);
  compare->eraseFromParent();
  RecursivelyDeleteDeadPHINode(counter);
  if (choice) {
    auto *condition = cast<Instruction>(choice->getCondition());
    choice->eraseFromParent();
    condition->eraseFromParent();
  }
  // Flags of what was there before come back as well.
  SCEVExpanderCleaner(expander).cleanup();
}

} // namespace gpulower::interleave
