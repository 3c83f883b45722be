// Which iterations of a loop may run at once with their loads first.
#ifndef GPULOWER_BRIDGE_INTERLEAVE_H
#define GPULOWER_BRIDGE_INTERLEAVE_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/Analysis/AliasAnalysis.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/ScalarEvolutionExpressions.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/Instructions.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Transforms/Utils/ScalarEvolutionExpander.h"

#include <optional>

namespace gpulower::interleave {

/// A load that a store of another iteration might meet, so that their addresses are to be compared before the loop.
struct MayOverlap {
  /// The first addresses.
  const llvm::SCEV *load = nullptr, *store = nullptr;
  /// Where both move alike: by how many bytes in each iteration.
  const llvm::SCEV *stride = nullptr;
  /// Otherwise, by how many bytes while the counter moves by one: all that each reaches is compared. As constants, or,
  /// where these are 0, as numbers that are known before the loop.
  uint64_t loadMoves = 0, storeMoves = 0;
  const llvm::SCEV *loadStride = nullptr, *storeStride = nullptr;
  uint64_t loaded = 0, stored = 0;
  /// Whether the store stands before the load within an iteration.
  bool storeComesFirst = false;
};

/// The last branch of a loop goes on while `counter predicate bound`; before the first iteration, the counter is
/// `start`.
struct LoopCondition {
  llvm::Value *counter = nullptr, *bound = nullptr;
  llvm::CmpInst::Predicate predicate = llvm::CmpInst::BAD_ICMP_PREDICATE;
  const llvm::SCEV *start = nullptr, *step = nullptr;
};

struct InterleavePlan {
  llvm::BasicBlock *preheader = nullptr, *header = nullptr, *latch = nullptr, *exit = nullptr;
  /// Where there is one: the block that ends with the question whether there is any iteration, and where it goes if
  /// there is none, which is where `exit` goes.
  llvm::BasicBlock *guard = nullptr, *outside = nullptr;
  /// Those of the loop, each behind those that it can be reached from.
  llvm::SmallVector<llvm::BasicBlock *, 4> blocks;
  LoopCondition condition;
  /// Loads that may come first, and what they need, in the order of the body; none where iterations follow one after
  /// the other.
  llvm::SmallVector<llvm::Instruction *, 16> first;
  llvm::SmallVector<MayOverlap, 2> checks;
  /// Iterations at once.
  unsigned count = 1;
  /// Whether ptxas may unroll the new loop once more.
  bool mayUnrollAgain = true;
};

struct LoopAnalyses {
  llvm::LoopInfo &loops;
  llvm::DominatorTree &dominators;
  llvm::ScalarEvolution &evolution;
  llvm::AAResults &aliases;
};

/// Of a number of iterations that is known: fewer are not worth another loop, and LLVM unrolls them.
constexpr unsigned fewestIterations = 16;

/// How often ptxas unrolls a small loop.
constexpr unsigned unrolledByPtxas = 4;

/// Nothing where it would not be right, or would gain nothing.
std::optional<InterleavePlan> planInterleaving(llvm::Loop &loop, LoopAnalyses analyses, unsigned count);

/// A counter that goes up, in a loop whose own goes down; it is taken away again unless it is to be kept.
class CountedUpwards {
public:
  /// Adds it where the loop's own goes down, and lets it end the loop.
  CountedUpwards(llvm::Loop &loop, llvm::ScalarEvolution &evolution);
  ~CountedUpwards();
  void keep() { isKept = true; }

private:
  llvm::Loop &loop;
  llvm::ScalarEvolution &evolution;
  llvm::SCEVExpander expander;
  llvm::PHINode *counter = nullptr;
  /// Where it is not known whether the loop's own begins above its end: the distance between them, or 0.
  llvm::SelectInst *choice = nullptr;
  /// What ended the loop before.
  llvm::Instruction *original = nullptr;
  bool isKept = false;
};

/// Whether two accesses never meet, in whichever iterations: what they point into stays, whatever the counter is.
bool areOfOtherMemory(llvm::Instruction &one, llvm::Instruction &other, const llvm::Loop &loop,
                      llvm::AAResults &aliases);

/// Whether a comparison of two addresses tells if they are of the same place. Generic addresses of global memory are
/// those that it has anyway.
bool canBeCompared(llvm::Type &one, llvm::Type &other, const llvm::DataLayout &layout);

/// Whether a loop reaches three addresses and more that are apart by one number, which is not known, as the copies of a
/// body do that a front end unrolled; or so many addresses that none were looked at.
bool reachesAddressesInTurn(llvm::Loop &loop, llvm::ScalarEvolution &evolution);

/// Where a loop reaches addresses that are apart by one number, and has the registers, each is computed from the one
/// before.
bool walkFromAddressToAddress(llvm::Loop &loop, LoopAnalyses analyses);

/// Where a loop reaches many arrays that the host passed, at one offset that moves by a number which is not known: the
/// offset is computed, and not each address.
bool moveOneOffset(llvm::Loop &loop, LoopAnalyses analyses);

/// Of what is known not to be poison, LLVM drops a freeze: arguments are not `noundef` any more.
void forgetThatItIsNoPoison(const llvm::SCEV &number);

/// LLVM makes `i < 24` of `i + 8 < 32`, which ptxas does not unroll, and for unsigned numbers a step before the first
/// would be the largest of all, as if nothing were left. So the question becomes again the one that was asked, where
/// that is known to be the same.
void askOfTheNext(llvm::Value *&counter, llvm::Value *&bound, llvm::CmpInst::Predicate predicate, llvm::Loop &loop,
                  llvm::ScalarEvolution &evolution);

/// Far from the end of the type, so that no product of it can overflow.
uint64_t largestStep(const llvm::SCEV &step);

/// Bytes that an address may move by in each iteration, and iterations, where their product is asked for.
constexpr uint64_t largestStride = uint64_t(1) << 32, mostIterations = uint64_t(1) << 30;

/// Makes the pass known to `builder` under its name: `gpulower-interleave<COUNT>`, for functions.
void addInterleaving(llvm::PassBuilder &builder);

} // namespace gpulower::interleave

#endif
