// Loops that take the lowest bit of a number away until none is left: as many iterations as it has bits. What they
// count is computed from ctpop then, which the PTX compiler has an instruction for, and the loop is gone. LLVM has this
// (LoopIdiomRecognize) for targets that say that they count bits; NVPTX's description does not say it.

#include "for_ptx.h"

#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/MemorySSA.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/DebugInfo.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/PatternMatch.h"
#include "llvm/Transforms/Scalar/LoopPassManager.h"

using namespace llvm;
using namespace llvm::PatternMatch;

namespace {

/// do { bits &= bits - 1; count += step; } while (bits != 0), in one block.
struct BitLoop {
  PHINode *bits = nullptr;
  Instruction *fewer = nullptr;
  /// Each with its value for the next iteration.
  SmallVector<std::pair<PHINode *, BinaryOperator *>, 2> counters;

  /// Whether the loop has this form and does nothing else.
  bool match(Loop &loop) {
    BasicBlock *block = loop.getHeader();
    if (loop.getNumBlocks() != 1 || !loop.getLoopPreheader() || !loop.getUniqueExitBlock())
      return false;
    Value *left, *less, *compared;
    CmpPredicate predicate;
    BasicBlock *ifTrue, *ifFalse;
    auto *branch = dyn_cast<BranchInst>(block->getTerminator());
    if (!branch || !branch->isConditional() ||
        !::match(branch, m_Br(m_OneUse(m_ICmp(predicate, m_Value(compared), m_Zero())), ifTrue, ifFalse)) ||
        !ICmpInst::isEquality(predicate) || (predicate == ICmpInst::ICMP_NE) != (ifTrue == block))
      return false;
    if (!::match(compared, m_And(m_Value(left), m_Value(less))) ||
        !cast<Instruction>(compared)->getType()->isIntegerTy())
      return false;
    if (!isa<PHINode>(left))
      std::swap(left, less);
    bits = dyn_cast<PHINode>(left);
    fewer = cast<Instruction>(compared);
    if (!bits || bits->getParent() != block || !::match(less, m_Add(m_Specific(bits), m_AllOnes())) ||
        fewer->getParent() != block || cast<Instruction>(less)->getParent() != block ||
        bits->getIncomingValueForBlock(block) != fewer || !staysInside(*bits, block) ||
        !staysInside(*cast<Instruction>(less), block))
      return false;
    size_t expected = 5; // the and, the addition, the comparison, the branch, and where the bits come from
    for (PHINode &phi : block->phis()) {
      if (&phi == bits)
        continue;
      auto *next = dyn_cast<BinaryOperator>(phi.getIncomingValueForBlock(block));
      Value *step;
      if (!next || !phi.getType()->isIntegerTy() || next->getParent() != block ||
          !::match(next, m_c_Add(m_Specific(&phi), m_Value(step))) || !loop.isLoopInvariant(step))
        return false;
      counters.emplace_back(&phi, next);
      expected += 2;
    }
    return range_size(block->instructionsWithoutDebug()) == ptrdiff_t(expected);
  }

  static bool staysInside(const Instruction &instruction, const BasicBlock *block) {
    return all_of(instruction.users(), [&](const User *user) { return cast<Instruction>(user)->getParent() == block; });
  }

  /// Computes before the loop what comes out of it, and leaves the loop after its first iteration.
  void replace(Loop &loop, const SimplifyQuery &query) {
    BasicBlock *block = loop.getHeader();
    Instruction *before = loop.getLoopPreheader()->getTerminator();
    IRBuilder<> builder(before);
    Value *first = bits->getIncomingValueForBlock(before->getParent());
    Value *count = builder.CreateUnaryIntrinsic(Intrinsic::ctpop, first);
    // A number without bits goes through the loop once.
    if (!isKnownNonZero(first, query.getWithInstruction(before)))
      count = builder.CreateBinaryIntrinsic(Intrinsic::umax, count, ConstantInt::get(count->getType(), 1));
    auto replaceOutside = [&](Instruction &of, Value *with) {
      SmallVector<DbgVariableRecord *> records;
      findDbgValues(&of, records);
      for (DbgVariableRecord *record : records)
        if (record->getParent() != block)
          record->replaceVariableLocationOp(&of, with);
      of.replaceUsesWithIf(with, [&](Use &use) { return cast<Instruction>(use.getUser())->getParent() != block; });
    };
    for (auto [phi, next] : counters) {
      Value *start = phi->getIncomingValueForBlock(before->getParent());
      Value *step = next->getOperand(next->getOperand(0) == phi);
      Value *all = builder.CreateAdd(start, builder.CreateMul(builder.CreateZExtOrTrunc(count, phi->getType()), step));
      if (!staysInside(*phi, block))
        replaceOutside(*phi, builder.CreateSub(all, step));
      replaceOutside(*next, all);
    }
    replaceOutside(*fewer, ConstantInt::getNullValue(fewer->getType()));
    auto *branch = cast<BranchInst>(block->getTerminator());
    branch->setCondition(builder.getInt1(branch->getSuccessor(0) != block));
  }
};

} // namespace

PreservedAnalyses gpulower::CountBits::run(Loop &loop, LoopAnalysisManager &, LoopStandardAnalysisResults &results,
                                           LPMUpdater &) {
  BitLoop found;
  if (!loop.isInnermost() || !found.match(loop))
    return PreservedAnalyses::all();
  results.SE.forgetLoop(&loop);
  found.replace(loop, SimplifyQuery(loop.getHeader()->getDataLayout(), &results.TLI, &results.DT, &results.AC));
  PreservedAnalyses preserved = getLoopPassPreservedAnalyses();
  if (results.MSSA)
    preserved.preserve<MemorySSAAnalysis>();
  return preserved;
}
