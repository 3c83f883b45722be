// Remainders of a counter, such as the places in a ring of buffers: (k) % 3, (k + 1) % 3 and (k + 2) % 3. Each is the
// one that another had in the iteration before, and a division less.

#include "for_ptx.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/PatternMatch.h"

using namespace llvm;
using namespace llvm::PatternMatch;

namespace {

/// Each residue that is asked for has a register. A remainder of a power of two is an `and`.
constexpr uint64_t fewestBuffers = 3, mostBuffers = 8;

/// Bits into which two remainders fit together.
constexpr unsigned fewestBits = 8;

/// A remainder of a counter to which a constant is added.
struct Remainder {
  Instruction *instruction;
  uint64_t offset;
};

/// What is added to a value without wrapping around; a wrapped sum would be poison.
std::optional<uint64_t> addedTo(const Value &counter, Value &sum) {
  const APInt *number;
  if (&sum == &counter)
    return 0;
  if (match(&sum, m_NUWAdd(m_Specific(&counter), m_APInt(number))) && number->isIntN(32))
    return number->getZExtValue();
  return std::nullopt;
}

/// What is added in each iteration, maybe in several blocks.
std::optional<uint64_t> stepOf(const PHINode &counter, BasicBlock &latch) {
  Value *next = counter.getIncomingValueForBlock(&latch);
  auto *several = dyn_cast<PHINode>(next);
  if (!several || several == &counter)
    return addedTo(counter, *next);
  auto step = addedTo(counter, *several->getIncomingValue(0));
  bool isOne = llvm::all_of(several->incoming_values(), [&](Use &value) { return addedTo(counter, *value) == step; });
  return isOne ? step : std::nullopt;
}

class Ring {
public:
  Ring(PHINode &counter, uint64_t divisor, uint64_t step, Loop &loop)
      : counter(counter), divisor(divisor), step(step), loop(loop) {}

  void add(const Remainder &remainder) { ofResidue[remainder.offset % divisor].push_back(remainder); }

  /// One alone would take as many instructions as the division.
  bool isWorthIt() const { return ofResidue.size() > 1; }

  void replace() {
    BasicBlock *before = loop.getLoopPredecessor(), *latch = loop.getLoopLatch();
    Type *type = counter.getType();
    IRBuilder<> first(before->getTerminator());
    Value *by = ConstantInt::get(type, divisor);
    // Of the first number, not of sums, of which the larger ones may come around.
    Value *start = first.CreateURem(counter.getIncomingValueForBlock(before), by);
    MapVector<uint64_t, PHINode *> phis;
    for (auto &[residue, remainders] : ofResidue) {
      Value *rest = first.CreateURem(first.CreateAdd(start, ConstantInt::get(type, residue), "", /*HasNUW=*/true), by);
      IRBuilder<> builder(&counter);
      PHINode *phi = builder.CreatePHI(type, 2, "remainder");
      phi->addIncoming(rest, before);
      phis[residue] = phi;
    }
    for (auto &[residue, remainders] : ofResidue) {
      PHINode *phi = phis[residue];
      auto following = phis.find((residue + step) % divisor);
      phi->addIncoming(following != phis.end() ? following->second : later(*phi, *latch), latch);
      for (const Remainder &remainder : remainders) {
        remainder.instruction->replaceAllUsesWith(phi);
        remainder.instruction->eraseFromParent();
      }
    }
  }

private:
  /// The remainder of an iteration later.
  Value *later(PHINode &phi, BasicBlock &latch) {
    IRBuilder<> builder(latch.getTerminator());
    Type *type = phi.getType();
    Value *sum = builder.CreateAdd(&phi, ConstantInt::get(type, step % divisor), "", /*HasNUW=*/true);
    Value *less = builder.CreateSub(sum, ConstantInt::get(type, divisor));
    return builder.CreateBinaryIntrinsic(Intrinsic::umin, sum, less);
  }

  PHINode &counter;
  uint64_t divisor, step;
  Loop &loop;
  MapVector<uint64_t, SmallVector<Remainder, 2>> ofResidue;
};

/// Replaces the remainders in a loop.
bool rotate(Loop &loop) {
  // By one edge each: a `switch` may lead to a block by several.
  if (!loop.getLoopPredecessor() || !loop.getLoopLatch() || !loop.getHeader()->hasNPredecessors(2))
    return false;
  MapVector<std::pair<PHINode *, uint64_t>, Ring> rings;
  for (PHINode &phi : loop.getHeader()->phis()) {
    if (!phi.getType()->isIntegerTy() || phi.getType()->getIntegerBitWidth() < fewestBits)
      continue;
    auto step = stepOf(phi, *loop.getLoopLatch());
    if (!step || *step == 0)
      continue;
    SmallVector<Value *, 8> values = {&phi};
    llvm::copy_if(phi.users(), std::back_inserter(values), [&](User *user) { return addedTo(phi, *user).has_value(); });
    for (Value *value : values)
      for (User *user : value->users()) {
        const APInt *divisor;
        if (!match(user, m_URem(m_Specific(value), m_APInt(divisor))) || !loop.contains(cast<Instruction>(user)) ||
            divisor->isPowerOf2() || divisor->ult(fewestBuffers) || divisor->ugt(mostBuffers))
          continue;
        uint64_t number = divisor->getZExtValue();
        auto [ring, isNew] = rings.try_emplace({&phi, number}, phi, number, *step, loop);
        ring->second.add({cast<Instruction>(user), *addedTo(phi, *value)});
      }
  }
  bool changed = false;
  for (auto &[key, ring] : rings)
    if (ring.isWorthIt()) {
      ring.replace();
      changed = true;
    }
  return changed;
}

} // namespace

PreservedAnalyses gpulower::RotateRemainders::run(Function &function, FunctionAnalysisManager &analyses) {
  bool changed = false;
  for (Loop *loop : analyses.getResult<LoopAnalysis>(function).getLoopsInPreorder())
    changed |= rotate(*loop);
  if (!changed)
    return PreservedAnalyses::all();
  PreservedAnalyses preserved;
  preserved.preserveSet<CFGAnalyses>();
  return preserved;
}
