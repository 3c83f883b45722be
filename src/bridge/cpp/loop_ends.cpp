// How loops ask whether they go on, for ptxas, which unrolls them four times.
//
// Loops over signed numbers whose ends are further apart than half of what their type holds. ptxas unrolls a loop with
// a constant step, and decides by `end - start`, computed in the type itself, how many iterations are left: where that
// overflows, iterations are dropped. (Seen with ptxas 12.4 and 13.0 on sm_90, 32 and 64 bits: `setp.lt.s32` of a
// register to which 100 is added, from -2000000000 to 2000000000, runs once. LLVM's loop strength reduction makes such
// a loop of one that begins near the least number: its counter begins one step before that.) With unsigned numbers the
// difference cannot overflow, and ptxas looks whether it is negative. So where the ends are not known to be near each
// other, both sides of the comparison are moved by the sign bit.
//
// It unrolls four times, and compares what is left with three steps, computed in the type as well: a loop whose step is
// more than a third of the largest number ran four times where it should once (`setp.lt.s32` of a register to which
// 858993459 is added, from -858993460 to 858157688). Such a loop has few iterations, and is not to be unrolled.
//
// It unrolls no loop that asks of the counter what it was before the step, as LLVM does where the end is a constant:
// then the next value is asked for.
//
// It does not know that a loop never has as many as four iterations; such a loop is not to be unrolled either.
//
// Of a loop that goes on while its counter is not at the end, ptxas takes the iterations that are left over by twos,
// and then one by one in a loop; while the counter is below the end, all three without a loop. LLVM makes the first of
// the second
// (`indvars`, and then loop strength reduction counts down to zero). Where the counter begins below the end, it is made
// the second again.

#include "code_generation.h"
#include "interleave.h"

#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/ScalarEvolutionExpressions.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/LoopUtils.h"

using namespace llvm;

namespace gpulower {
namespace {

/// Of a loop whose rest is worth more than what comparing by order costs ptxas in its main part, where it puts loads
/// elsewhere: n body is larger, and took 1.32 of nvcc's time for 0.97.
constexpr size_t mostInstructions = 24;

/// Of a loop that is worth unrolling four times.
constexpr unsigned fewestIterations = 8;

/// Whether the difference of two signed numbers in these ranges fits their type.
bool fits(const APInt &minuend, const APInt &subtrahend) {
  bool overflows = false;
  (void)minuend.ssub_ov(subtrahend, overflows);
  return !overflows;
}

/// The ends of a loop, as a comparison that leaves it has them.
class Ends {
public:
  Ends(ScalarEvolution &evolution, Loop &loop, ICmpInst &compare)
      : evolution(evolution), loop(loop), counter(compare.getOperand(0)), bound(compare.getOperand(1)),
        predicate(compare.getPredicate()) {
    if (!recurrence(counter)) {
      std::swap(counter, bound);
      predicate = ICmpInst::getSwappedPredicate(predicate);
    }
  }

  /// Whether this is a counter with a constant step and an end that stays, all in a type that ptxas unrolls loops of.
  bool counts() {
    const SCEVAddRecExpr *counted = recurrence(counter);
    return counted && isa<SCEVConstant>(counted->getStepRecurrence(evolution)) &&
           (counter->getType()->isIntegerTy(32) || counter->getType()->isIntegerTy(64)) &&
           evolution.isLoopInvariant(evolution.getSCEV(bound), &loop);
  }

  /// Whether the counter counts in a wider type as well: it does not come around in its own.
  bool countsIn(Type &wide, bool isSigned) {
    const SCEV *counted = recurrence(counter);
    return isa<SCEVAddRecExpr>(isSigned ? evolution.getSignExtendExpr(counted, &wide)
                                        : evolution.getZeroExtendExpr(counted, &wide));
  }

  /// Whether an address of the loop moves by as many bytes as the counter by numbers.
  bool areOfAddress() {
    int64_t step = cast<SCEVConstant>(recurrence(counter)->getStepRecurrence(evolution))->getAPInt().getSExtValue();
    return llvm::any_of(loop.blocks(), [&](BasicBlock *block) {
      return llvm::any_of(*block, [&](Instruction &access) {
        Value *pointer = getLoadStorePointerOperand(&access);
        const SCEVAddRecExpr *address = pointer ? recurrence(pointer) : nullptr;
        auto *moves = address ? dyn_cast<SCEVConstant>(address->getStepRecurrence(evolution)) : nullptr;
        return moves && moves->getAPInt().getSExtValue() == step;
      });
    });
  }

  /// By which comparison the counter, in steps of one, is below the end until it comes there.
  std::optional<ICmpInst::Predicate> order() {
    const SCEVAddRecExpr *counted = recurrence(counter);
    const SCEV *step = counted->getStepRecurrence(evolution);
    if (!step->isOne() || isa<PHINode>(counter))
      return std::nullopt;
    for (ICmpInst::Predicate below : {ICmpInst::ICMP_SLT, ICmpInst::ICMP_ULT})
      if (evolution.isLoopEntryGuardedByCond(&loop, below, evolution.getMinusSCEV(counted->getStart(), step),
                                             evolution.getSCEV(bound)))
        return below;
    return std::nullopt;
  }

  /// Whether ptxas' unrolled loop takes steps whose size it cannot tell.
  bool leaps() {
    APInt step = cast<SCEVConstant>(recurrence(counter)->getStepRecurrence(evolution))->getAPInt();
    return step.abs().ugt(APInt::getSignedMaxValue(step.getBitWidth()).udiv(3));
  }

  /// Whether the end less what the counter is before its first step is the number that it should be.
  bool near() {
    const SCEVAddRecExpr *counted = recurrence(counter);
    const SCEV *step = counted->getStepRecurrence(evolution), *start = counted->getStart();
    const SCEV *end = evolution.getSCEV(bound);
    ConstantRange ends = evolution.getSignedRange(end);
    ConstantRange before = evolution.getSignedRange(evolution.getMinusSCEV(start, step));
    if (isa<PHINode>(counter)) {
      // It has no value before the first; LLVM may make one.
      ConstantRange first = evolution.getSignedRange(start);
      ConstantRange steps(cast<SCEVConstant>(step)->getAPInt());
      if (first.signedSubMayOverflow(steps) != ConstantRange::OverflowResult::NeverOverflows)
        return false;
      before = first.sub(steps);
    }
    bool upwards = predicate == ICmpInst::ICMP_SLT || predicate == ICmpInst::ICMP_SLE;
    bool above = fits(ends.getSignedMax(), before.getSignedMin());
    bool below = fits(ends.getSignedMin(), before.getSignedMax());
    // What is entered alone where there is something to count has its end on one side.
    bool guarded = evolution.isLoopEntryGuardedByCond(&loop, predicate, evolution.getMinusSCEV(start, step), end) ||
                   evolution.isLoopEntryGuardedByCond(&loop, predicate, start, end);
    return (above || (guarded && !upwards)) && (below || (guarded && upwards));
  }

private:
  const SCEVAddRecExpr *recurrence(Value *value) {
    if (!evolution.isSCEVable(value->getType()))
      return nullptr;
    auto *counted = dyn_cast<SCEVAddRecExpr>(evolution.getSCEV(value));
    return counted && counted->getLoop() == &loop && counted->isAffine() ? counted : nullptr;
  }

  ScalarEvolution &evolution;
  Loop &loop;
  Value *counter, *bound;
  ICmpInst::Predicate predicate;
};

/// Whether this is a small loop that ptxas unrolls.
bool isSmall(Loop &loop, ScalarEvolution &evolution) {
  size_t size = 0;
  for (BasicBlock *block : loop.blocks())
    size += block->size();
  return loop.isInnermost() && size <= mostInstructions && evolution.getSmallConstantTripCount(&loop) == 0 &&
         !findOptionMDForLoop(&loop, "llvm.loop.unroll.disable");
}

/// Asks whether the counter is below the end, where the question is whether it is there.
void compareInOrder(BranchInst &branch, ICmpInst &compare, Loop &loop, ScalarEvolution &evolution) {
  bool leaves = branch.getSuccessor(0) != loop.getHeader();
  if (compare.getPredicate() != (leaves ? ICmpInst::ICMP_EQ : ICmpInst::ICMP_NE) || !compare.hasOneUse())
    return;
  Ends ends(evolution, loop, compare);
  std::optional<ICmpInst::Predicate> below = ends.counts() ? ends.order() : std::nullopt;
  if (!below)
    return;
  if (loop.isLoopInvariant(compare.getOperand(0)))
    compare.swapOperands();
  compare.setPredicate(leaves ? ICmpInst::getInversePredicate(*below) : *below);
}

/// Asks of the next value of a counter what was asked of the one before.
void compareTheNext(ICmpInst &compare, Loop &loop, ScalarEvolution &evolution) {
  unsigned iterations = evolution.getSmallConstantMaxTripCount(&loop);
  if (!compare.hasOneUse() || loop.isLoopInvariant(compare.getOperand(0)) ||
      (iterations != 0 && iterations < fewestIterations))
    return;
  Value *counter = compare.getOperand(0), *bound = compare.getOperand(1);
  interleave::askOfTheNext(counter, bound, compare.getPredicate(), loop, evolution);
  auto *next = dyn_cast<Instruction>(counter);
  if (counter == compare.getOperand(0) || !next || next->getParent() != compare.getParent())
    return;
  if (compare.comesBefore(next))
    compare.moveAfter(next);
  compare.setOperand(0, counter);
  compare.setOperand(1, bound);
  compare.setSameSign(false);
}

/// Where an address moves as the counter does, LLVM's loop strength reduction has both in one number of 64 bits, and
/// ptxas does not unroll the loop if it asks of the lower half. So it asks of all.
void compareWide(ICmpInst &compare, Loop &loop, ScalarEvolution &evolution) {
  Type *wide = Type::getInt64Ty(compare.getContext());
  bool isSigned = !compare.isUnsigned();
  Ends ends(evolution, loop, compare);
  if (!compare.getOperand(0)->getType()->isIntegerTy(32) || !ends.counts() || !ends.countsIn(*wide, isSigned) ||
      !ends.areOfAddress())
    return;
  for (Use &side : compare.operands()) {
    auto *before =
        loop.isLoopInvariant(side) && loop.getLoopPreheader() ? loop.getLoopPreheader()->getTerminator() : &compare;
    side = IRBuilder<>(before).CreateIntCast(side, wide, isSigned);
  }
  compare.setSameSign(false);
}

/// The same comparison of unsigned numbers.
void moveBySign(ICmpInst &compare, Loop &loop) {
  auto *type = cast<IntegerType>(compare.getOperand(0)->getType());
  Constant *sign = ConstantInt::get(type, APInt::getSignMask(type->getBitWidth()));
  for (Use &side : compare.operands()) {
    auto *before =
        loop.isLoopInvariant(side) && loop.getLoopPreheader() ? loop.getLoopPreheader()->getTerminator() : &compare;
    // An addition, since ptxas does not see what else may become of a counter.
    side = IRBuilder<>(before).CreateAdd(side, sign);
  }
  compare.setPredicate(compare.getUnsignedPredicate());
  compare.setSameSign(false);
}

/// Where the next value of a counter is wanted behind the loop, ptxas copies it in each iteration if what it was before
/// is asked for after the step. So the step comes last.
void stepLast(Loop &loop) {
  BasicBlock *latch = loop.getLoopLatch();
  if (!latch)
    return;
  for (PHINode &phi : loop.getHeader()->phis()) {
    auto *next = dyn_cast<BinaryOperator>(phi.getIncomingValueForBlock(latch));
    if (!next || !next->getType()->isIntegerTy() || next->getParent() != latch ||
        !llvm::is_contained(next->operands(), &phi))
      continue;
    auto isOutside = [&](User *user) { return !loop.contains(cast<Instruction>(user)); };
    bool isAskedFor = llvm::any_of(phi.users(), [&](User *user) { return isa<ICmpInst>(user) && !isOutside(user); });
    if (isAskedFor && llvm::any_of(next->users(), isOutside) &&
        llvm::all_of(next->users(), [&](User *user) { return user == &phi || isOutside(user); }))
      next->moveBefore(latch->getTerminator()->getIterator());
  }
}

/// Makes the last branch of a loop one that is taken while it goes on: the other kind becomes two branches, and ptxas
/// unrolls nothing.
void branchBack(BranchInst &branch, ICmpInst &compare, const Loop &loop) {
  if (branch.getSuccessor(0) == loop.getHeader() || branch.getSuccessor(1) != loop.getHeader() ||
      !compare.hasOneUse() || findOptionMDForLoop(&loop, "llvm.loop.unroll.disable"))
    return;
  compare.setPredicate(compare.getInversePredicate());
  branch.swapSuccessors();
}

void compareInLoops(Function &function, FunctionAnalysisManager &analyses) {
  auto &loops = analyses.getResult<LoopAnalysis>(function);
  if (loops.empty())
    return;
  auto &evolution = analyses.getResult<ScalarEvolutionAnalysis>(function);
  SmallVector<std::pair<ICmpInst *, Loop *>> wide;
  for (Loop *loop : loops.getLoopsInPreorder()) {
    SmallVector<BasicBlock *> exiting;
    loop->getExitingBlocks(exiting);
    stepLast(*loop);
    if (unsigned most = evolution.getSmallConstantMaxTripCount(loop); most != 0 && most < interleave::unrolledByPtxas)
      addStringMetadataToLoop(loop, "llvm.loop.unroll.disable");
    for (BasicBlock *block : exiting) {
      auto *branch = dyn_cast<BranchInst>(block->getTerminator());
      auto *compare = branch && branch->isConditional() ? dyn_cast<ICmpInst>(branch->getCondition()) : nullptr;
      if (!compare || !compare->getOperand(0)->getType()->isIntegerTy())
        continue;
      if (block == loop->getLoopLatch()) {
        branchBack(*branch, *compare, *loop);
        compareTheNext(*compare, *loop, evolution);
      }
      if (exiting.size() == 1 && block == loop->getLoopLatch() && isSmall(*loop, evolution))
        compareInOrder(*branch, *compare, *loop, evolution);
      if (exiting.size() == 1 && block == loop->getLoopLatch() && compare->hasOneUse())
        compareWide(*compare, *loop, evolution);
      Ends ends(evolution, *loop, *compare);
      if (!ends.counts())
        continue;
      if (compare->isSigned() && !ends.near())
        wide.emplace_back(compare, loop);
      if (ends.leaps())
        addStringMetadataToLoop(loop, "llvm.loop.unroll.disable");
    }
  }
  for (auto [compare, loop] : wide)
    if (compare->isSigned())
      moveBySign(*compare, *loop);
}

} // namespace

void compareLoopEnds(Module &module, FunctionAnalysisManager &functions) {
  for (Function &function : module)
    if (!function.isDeclaration())
      compareInLoops(function, functions);
}

} // namespace gpulower
