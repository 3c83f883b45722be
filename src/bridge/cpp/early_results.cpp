// What frees more registers than it takes is computed as early as it can be. LLVM sinks an instruction with one user to
// it (`instcombine`, `machine-sink`), and after it what it is computed from, past branches and calls; what was loaded
// for it stays where it was, in registers until then. Of 28 sines in a row each has 24 registers of coefficients.

#include "for_ptx.h"
#include "pass_limits.h"

#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/ADT/SetOperations.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/PostDominators.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/Instructions.h"

using namespace llvm;

namespace {

/// Registers of 32 bits that are in use between two blocks from which on it matters: ptxas keeps to fewer by itself
/// where it can.
constexpr unsigned manyRegisters = 96;

/// Registers of 32 bits that an expression frees at least: two numbers of 64 bits.
constexpr int leastFreed = 4;

/// Blocks to which parts of one block are moved.
constexpr unsigned mostEarlier = 64;

/// Instructions of one block, in their order, that are computed from each other and from what is known before it.
using Expression = SmallVector<Instruction *, 8>;

class EarlyResults {
public:
  EarlyResults(Function &function, LoopInfo &loops, DominatorTree &dominators, PostDominatorTree &after)
      : function(function), layout(function.getDataLayout()), loops(loops), dominators(dominators), after(after) {}

  bool run() {
    auto stop = [](const Expression &, BasicBlock &) { return false; };
    auto move = [](const Expression &expression, BasicBlock &earlier) {
      for (Instruction *part : expression) {
        part->moveBefore(earlier, earlier.getTerminator()->getIterator());
        // What was said of it was said where not all threads may come to.
        part->dropUBImplyingAttrsAndMetadata();
        part->updateLocationAfterHoist();
      }
      return true;
    };
    Blocks blocks(&function);
    if (all_of(blocks, [&](BasicBlock *block) { return forEachLate(*block, stop); }) || !areManyInUse(blocks))
      return false;
    for (BasicBlock *block : blocks)
      forEachLate(*block, move);
    return true;
  }

private:
  Function &function;
  const DataLayout &layout;
  LoopInfo &loops;
  DominatorTree &dominators;
  PostDominatorTree &after;

  using Blocks = ReversePostOrderTraversal<Function *>;
  /// Whether it goes on.
  using Handler = function_ref<bool(const Expression &expression, BasicBlock &earlier)>;

  /// What would free registers in an earlier block, from which all threads come to this one; the earliest such blocks
  /// first.
  bool forEachLate(BasicBlock &block, Handler handle) {
    // The last block with something that an instruction is computed from.
    SmallMapVector<Instruction *, BasicBlock *, 16> parts;
    SmallSetVector<BasicBlock *, 8> earlier;
    for (Instruction &instruction : block)
      if (BasicBlock *last = lastBefore(instruction, parts)) {
        parts[&instruction] = last;
        if (earlier.size() < mostEarlier && after.dominates(&block, last) &&
            loops.getLoopFor(&block) == loops.getLoopFor(last))
          earlier.insert(last);
      }
    SmallVector<BasicBlock *, 8> inOrder(earlier.begin(), earlier.end());
    stable_sort(inOrder, [&](BasicBlock *one, BasicBlock *other) { return levelOf(*one) < levelOf(*other); });
    for (BasicBlock *last : inOrder)
      for (const Expression &expression : expressionsUpTo(*last, block, parts))
        if (freedBy(expression) >= leastFreed && !handle(expression, *last))
          return false;
    return true;
  }

  using Parts = SmallMapVector<Instruction *, BasicBlock *, 16>;

  /// Where the last operand comes from that is of another block, if this can be computed there.
  BasicBlock *lastBefore(Instruction &instruction, const Parts &parts) {
    if (!isArithmetic(instruction))
      return nullptr;
    BasicBlock *last = nullptr;
    for (Value *operand : instruction.operands())
      if (auto *from = dyn_cast<Instruction>(operand)) {
        BasicBlock *place = from->getParent() == instruction.getParent() ? parts.lookup(from) : from->getParent();
        if (!place)
          return nullptr;
        if (!last || dominators.dominates(last, place))
          last = place;
      }
    return last;
  }

  unsigned levelOf(const BasicBlock &block) { return dominators.getNode(&block)->getLevel(); }

  /// Of those parts of `block` that are still there.
  SmallVector<Expression, 2> expressionsUpTo(BasicBlock &last, BasicBlock &block, const Parts &parts) {
    EquivalenceClasses<Instruction *> related;
    auto isWanted = [&](Instruction *part) {
      BasicBlock *place = part->getParent() == &block ? parts.lookup(part) : nullptr;
      return place && dominators.dominates(place, &last);
    };
    for (auto &[part, place] : parts) {
      if (!isWanted(part))
        continue;
      related.insert(part);
      for (Value *operand : part->operands())
        if (auto *from = dyn_cast<Instruction>(operand); from && isWanted(from))
          related.unionSets(part, from);
    }
    SmallMapVector<Instruction *, Expression, 2> expressions;
    for (auto &[part, place] : parts)
      if (isWanted(part))
        expressions[related.getLeaderValue(part)].push_back(part);
    SmallVector<Expression, 2> result;
    for (auto &[leader, expression] : expressions)
      result.push_back(std::move(expression));
    return result;
  }

  /// How many registers fewer are in use behind an expression than before it.
  int freedBy(const Expression &expression) {
    SmallPtrSet<const Value *, 16> parts(expression.begin(), expression.end()), seen;
    auto isPart = [&](const User *user) { return parts.contains(user); };
    int freed = 0;
    for (const Instruction *part : expression) {
      if (!all_of(part->users(), isPart))
        freed -= gpulower::registersOf(*part, layout);
      for (const Value *operand : part->operands())
        if (auto *from = dyn_cast<Instruction>(operand); from && !parts.contains(from) && isOfLoop(*from, *part) &&
                                                         seen.insert(from).second && all_of(from->users(), isPart))
          freed += gpulower::registersOf(*from, layout);
    }
    return freed;
  }

  /// What comes from outside of a loop is in use in all of it.
  bool isOfLoop(const Instruction &from, const Instruction &part) {
    return loops.getLoopFor(from.getParent()) == loops.getLoopFor(part.getParent());
  }

  static bool isArithmetic(const Instruction &instruction) {
    const Type *type = instruction.getType();
    if (isa<PHINode, ExtractElementInst, ExtractValueInst>(instruction) || instruction.mayReadOrWriteMemory() ||
        !(type->isFloatingPointTy() || type->isIntegerTy()))
      return false;
    auto *call = dyn_cast<CallBase>(&instruction);
    return (!call || (isa<IntrinsicInst>(call) && !call->isConvergent())) && isSafeToSpeculativelyExecute(&instruction);
  }

  /// Whether there are many registers in use at the end of a block.
  bool areManyInUse(Blocks &blocks) {
    DenseMap<const BasicBlock *, SmallPtrSet<const Value *, 16>> atStart;
    SmallVector<BasicBlock *> backwards(blocks.begin(), blocks.end());
    std::reverse(backwards.begin(), backwards.end());
    for (bool isChanged = true; isChanged;) {
      isChanged = false;
      for (BasicBlock *block : backwards) {
        SmallPtrSet<const Value *, 16> inUse;
        for (BasicBlock *next : successors(block)) {
          set_union(inUse, atStart[next]);
          for (PHINode &phi : next->phis())
            add(inUse, phi.getIncomingValueForBlock(block));
        }
        unsigned registers = 0;
        for (const Value *value : inUse)
          registers += gpulower::registersOf(*value, layout);
        // What is in use only grows from round to round.
        if (registers >= manyRegisters)
          return true;
        for (const Instruction &instruction : reverse(*block)) {
          inUse.erase(&instruction);
          if (!isa<PHINode>(instruction))
            for (const Value *operand : instruction.operands())
              add(inUse, operand);
        }
        auto &before = atStart[block];
        if (before.size() != inUse.size()) {
          before = std::move(inUse);
          isChanged = true;
        }
      }
    }
    return false;
  }

  static void add(SmallPtrSetImpl<const Value *> &values, const Value *value) {
    if (isa<Instruction, Argument>(value) && !value->getType()->isTokenTy())
      values.insert(value);
  }
};

} // namespace

PreservedAnalyses gpulower::ComputeEarly::run(Function &function, FunctionAnalysisManager &analyses) {
  EarlyResults results(function, analyses.getResult<LoopAnalysis>(function),
                       analyses.getResult<DominatorTreeAnalysis>(function),
                       analyses.getResult<PostDominatorTreeAnalysis>(function));
  if (!results.run())
    return PreservedAnalyses::all();
  function.addFnAttr(gpulower::noSinking);
  PreservedAnalyses preserved;
  preserved.preserveSet<CFGAnalyses>();
  return preserved;
}
