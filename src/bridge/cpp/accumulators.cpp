// Values that a loop keeps in memory, in registers: `sum[i] += x[j]`, as the loops are that `linalg` becomes. Each
// iteration would wait until the store of the one before is done, since what it loads might be what was stored. LLVM
// keeps such a value in a register where it knows that nothing else in the loop reaches its place; here the addresses
// are compared before the loop, and the loop is there twice. What LLVM does not know either is that what the host
// passed is never a workgroup's own memory.

#include "accumulators.h"

#include "interleave.h"
#include "passes.h"

#include "llvm/Analysis/AliasAnalysis.h"
#include "llvm/Analysis/AssumptionCache.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/ScalarEvolutionExpressions.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include "llvm/Transforms/Utils/LoopUtils.h"
#include "llvm/Transforms/Utils/SSAUpdater.h"
#include "llvm/Transforms/Utils/ScalarEvolutionExpander.h"

using namespace llvm;

namespace gpulower {
namespace {

/// A loop is copied, with all that is in it.
constexpr unsigned mostInstructions = 128;
/// Comparisons of addresses before a loop.
constexpr unsigned mostChecks = 8;
/// Within these bounds, what all loops of a nest together move an address by is far from the end of its type: four
/// times 2^60.
constexpr unsigned bitsOfStep = 34, bitsOfIterations = 26;
constexpr unsigned mostLoops = 4;

/// Front ends say so of loops that are not to be made twice.
constexpr const char *isVersioned = "llvm.loop.licm_versioning.disable";

/// A place that stays while a loop runs, and what reaches it there.
struct Place {
  const SCEV *address;
  Value *pointer;
  Type *type;
  Align alignment;
  SmallVector<Instruction *> accesses;
  /// Whether it is written, whichever way an iteration goes.
  bool isWritten = false;
};

/// What an access reaches while a loop runs: from `start + low` to `start + high`, and its own bytes from there.
struct Range {
  const SCEV *start, *low, *high;
  uint64_t size;
};

/// Rewrites the accesses to a place, and writes it behind the loop.
class Keeper : public LoadAndStorePromoter {
public:
  Keeper(const Place &place, SSAUpdater &values, Loop &loop)
      : LoadAndStorePromoter(place.accesses, values, "kept"), place(place), values(values), loop(loop) {}

  void doExtraRewritesBeforeFinalDeletion() override {
    BasicBlock *latch = loop.getLoopLatch(), *exit = loop.getExitBlock();
    Value *last = values.GetValueAtEndOfBlock(latch);
    PHINode *out = PHINode::Create(place.type, 1, "kept", exit->begin());
    out->addIncoming(last, latch);
    new StoreInst(out, place.pointer, false, place.alignment, exit->getFirstInsertionPt());
  }

private:
  const Place &place;
  SSAUpdater &values;
  Loop &loop;
};

class Accumulators {
public:
  Accumulators(Loop &loop, LoopInfo &loops, DominatorTree &dominators, ScalarEvolution &evolution, AAResults &aliases)
      : loop(loop), loops(loops), dominators(dominators), evolution(evolution), aliases(aliases),
        layout(loop.getHeader()->getDataLayout()), number(layout.getIndexType(loop.getHeader()->getContext(), 0)) {}

  bool run() {
    if (!hasForm() || !findAccesses() || !findPlaces())
      return false;
    SCEVExpander expander(evolution, "accumulators");
    Instruction *before = loop.getLoopPreheader()->getTerminator();
    auto can = [&](const SCEV *value) { return expander.isSafeToExpandAt(value, before); };
    for (const auto &[place, range] : checks)
      if (!can(place->address) || !can(range.start) || !can(range.low) || !can(range.high))
        return false;
    if (!llvm::all_of(limits, [&](auto &limit) { return can(limit.first); }))
      return false;
    if (!checks.empty())
      copyLoop(areApart(expander, *before));
    for (Place &place : places)
      keep(place);
    evolution.forgetTopmostLoop(&loop);
    evolution.forgetBlockAndLoopDispositions();
    return true;
  }

private:
  bool hasForm() const {
    return loop.isLoopSimplifyForm() && loop.getExitingBlock() == loop.getLoopLatch() && loop.getExitBlock() &&
           loop.isSafeToClone() && !findStringMetadataForLoop(&loop, isVersioned) &&
           // It ends, and so do those within it: what stands behind them is reached.
           llvm::all_of(loop.getLoopsInPreorder(),
                        [&](Loop *inner) { return !isa<SCEVCouldNotCompute>(evolution.getBackedgeTakenCount(inner)); });
  }

  /// The accesses of all of the loop. False: something else in it may reach memory, or may not be carried out twice.
  bool findAccesses() {
    unsigned count = 0;
    for (BasicBlock *block : loop.blocks())
      for (Instruction &instruction : *block) {
        if (++count > mostInstructions)
          return false;
        if (auto *load = dyn_cast<LoadInst>(&instruction); load && load->isSimple())
          accesses.push_back(load);
        else if (auto *store = dyn_cast<StoreInst>(&instruction); store && store->isSimple())
          accesses.push_back(store);
        else if (auto *call = dyn_cast<CallBase>(&instruction);
                 call && (call->isConvergent() || call->cannotDuplicate()))
          return false;
        else if (instruction.mayReadOrWriteMemory())
          return false;
        else if (!instruction.isTerminator() && !isGuaranteedToTransferExecutionToSuccessor(&instruction))
          return false;
      }
    return true;
  }

  /// The places that can be kept in registers, with what is to be compared for them.
  bool findPlaces() {
    SmallVector<Place, 4> found;
    SmallVector<Instruction *> rest;
    for (Instruction *access : accesses) {
      Value *pointer = getLoadStorePointerOperand(access);
      Type *type = getLoadStoreType(access);
      if (!loop.isLoopInvariant(pointer) || type->isAggregateType() || layout.getTypeStoreSize(type).isScalable()) {
        rest.push_back(access);
        continue;
      }
      const SCEV *address = evolution.getSCEV(pointer);
      auto *place =
          llvm::find_if(found, [&](const Place &place) { return place.address == address && place.type == type; });
      if (place == found.end()) {
        found.push_back({address, pointer, type, Align(1), {}});
        place = &found.back();
      }
      place->accesses.push_back(access);
      if (isa<StoreInst>(access) && dominators.dominates(access->getParent(), loop.getLoopLatch())) {
        // The address of an access that may not be carried out may be poison, though it has the same number.
        place->pointer = pointer;
        place->isWritten = true;
        place->alignment = std::max(place->alignment, getLoadStoreAlignment(access));
      }
    }
    for (Place &place : found)
      if (place.isWritten)
        places.push_back(std::move(place));
      else
        rest.append(place.accesses);
    for (Place &place : places) {
      for (Instruction *other : rest)
        if (!areApart(place, *other))
          return false;
      for (Place &other : places)
        if (&other < &place &&
            !llvm::all_of(other.accesses, [&](Instruction *access) { return areApart(place, *access); }))
          return false;
    }
    return !places.empty() && checks.size() <= mostChecks;
  }

  /// Whether an access never reaches a place, or does not if a comparison says so, which is added.
  bool areApart(const Place &place, Instruction &other) {
    if (isa<LoadInst>(other) && other.hasMetadata(LLVMContext::MD_invariant_load))
      return true;
    // What is said of one access need not be true of another one of the same place.
    if (llvm::all_of(place.accesses,
                     [&](Instruction *access) { return interleave::areOfOtherMemory(*access, other, loop, aliases); }))
      return true;
    Type *type = getLoadStorePointerOperand(&other)->getType();
    if (!interleave::canBeCompared(*place.pointer->getType(), *type, layout) || layout.getIndexType(type) != number)
      return false;
    std::optional<Range> range = rangeOf(other);
    if (!range)
      return false;
    auto isSame = [&](const std::pair<const Place *, Range> &check) {
      const Range &known = check.second;
      return check.first == &place && known.start == range->start && known.low == range->low &&
             known.high == range->high && known.size >= range->size;
    };
    if (llvm::none_of(checks, isSame))
      checks.push_back({&place, *range});
    return true;
  }

  /// What an access reaches, where its address moves by as much in each iteration of the loops that it moves in.
  std::optional<Range> rangeOf(Instruction &access) {
    TypeSize size = layout.getTypeStoreSize(getLoadStoreType(&access));
    if (size.isScalable())
      return std::nullopt;
    const SCEV *address = evolution.getSCEV(getLoadStorePointerOperand(&access));
    const SCEV *low = evolution.getZero(number), *high = low;
    for (unsigned depth = 0;; ++depth) {
      auto *moving = dyn_cast<SCEVAddRecExpr>(address);
      if (!moving || !loop.contains(moving->getLoop()))
        break;
      const SCEV *turns = evolution.getBackedgeTakenCount(moving->getLoop());
      const SCEV *step = moving->getStepRecurrence(evolution);
      if (depth == mostLoops || !moving->isAffine() || step->getType() != number || isa<SCEVCouldNotCompute>(turns) ||
          evolution.getTypeSizeInBits(turns->getType()) > number->getIntegerBitWidth())
        return std::nullopt;
      turns = evolution.getNoopOrZeroExtend(turns, number);
      if (!evolution.isLoopInvariant(turns, &loop) || !evolution.isLoopInvariant(step, &loop))
        return std::nullopt;
      limit(turns, bitsOfIterations, false);
      limit(step, bitsOfStep, true);
      const SCEV *distance = evolution.getMulExpr(turns, step), *none = evolution.getZero(number);
      bool isForward = evolution.isKnownNonNegative(step), isBackward = evolution.isKnownNegative(step);
      if (!isForward)
        low = evolution.getAddExpr(low, isBackward ? distance : evolution.getSMinExpr(distance, none));
      if (!isBackward)
        high = evolution.getAddExpr(high, isForward ? distance : evolution.getSMaxExpr(distance, none));
      address = moving->getStart();
    }
    if (!evolution.isLoopInvariant(address, &loop))
      return std::nullopt;
    return Range{address, low, high, size};
  }

  /// Remembers that a number has to be below 2^bits, and, where it may be negative, not below -2^bits.
  void limit(const SCEV *value, unsigned bits, bool mayBeNegative) {
    bool holds = mayBeNegative ? evolution.getSignedRange(value).getMinSignedBits() <= bits + 1
                               : evolution.getUnsignedRangeMax(value).getActiveBits() <= bits;
    auto known = llvm::find_if(limits, [&](auto &limit) { return limit.first == value; });
    if (holds || known != limits.end())
      return;
    limits.push_back({value, {bits, mayBeNegative}});
  }

  /// Whether nothing reaches a place that the loop writes. Differences are numbers with a sign: within the limits no
  /// sum overflows, and no access comes around to the place, wherever its address begins.
  Value *areApart(SCEVExpander &expander, Instruction &before) {
    IRBuilder<> builder(&before);
    auto expand = [&](const SCEV *value) {
      return expander.expandCodeFor(value, value->getType(), before.getIterator());
    };
    auto constant = [&](uint64_t value) { return ConstantInt::get(number, value); };
    Value *result = nullptr;
    // What is asked may be poison where the loop never gets to what it is asked for.
    auto ask = [&](Value *condition) {
      condition = builder.CreateFreeze(condition);
      result = result ? builder.CreateAnd(result, condition) : condition;
    };
    for (const auto &[value, bounds] : limits) {
      auto [bits, mayBeNegative] = bounds;
      Value *expanded = expand(value);
      if (mayBeNegative)
        expanded = builder.CreateAdd(expanded, constant(uint64_t(1) << bits));
      ask(builder.CreateICmpULT(expanded, constant(uint64_t(1) << (bits + mayBeNegative))));
    }
    for (const auto &[place, range] : checks) {
      const SCEV *known = evolution.getMinusSCEV(place->address, range.start);
      Value *distance;
      if (isa<SCEVCouldNotCompute>(known)) {
        Value *start = builder.CreatePtrToInt(expand(range.start), number);
        distance = builder.CreateSub(builder.CreatePtrToInt(place->pointer, number), start);
      } else {
        distance = expand(known);
      }
      uint64_t size = layout.getTypeStoreSize(place->type);
      Value *isBehind = builder.CreateICmpSGE(distance, builder.CreateAdd(expand(range.high), constant(range.size)));
      Value *isBefore = builder.CreateICmpSLE(distance, builder.CreateSub(expand(range.low), constant(size)));
      ask(builder.CreateOr(isBehind, isBefore));
    }
    return result;
  }

  /// The loop becomes the one for which `areApart` holds; a copy of it is there for the rest.
  void copyLoop(Value *areApart) {
    BasicBlock *check = loop.getLoopPreheader(), *exit = loop.getExitBlock(), *latch = loop.getLoopLatch();
    BasicBlock *preheader =
        SplitBlock(check, check->getTerminator(), &dominators, &loops, nullptr, loop.getHeader()->getName() + ".apart");
    ValueToValueMapTy copies;
    SmallVector<BasicBlock *, 8> blocks;
    Loop *copy = cloneLoopWithPreheader(preheader, check, &loop, copies, ".met", &loops, &dominators, blocks);
    remapInstructionsInBlocks(blocks, copies);
    Instruction *end = check->getTerminator();
    BranchInst::Create(preheader, copy->getLoopPreheader(), areApart, end->getIterator());
    end->eraseFromParent();
    for (PHINode &phi : exit->phis()) {
      Value *value = phi.getIncomingValueForBlock(latch);
      Value *copied = copies.lookup(value);
      phi.addIncoming(copied ? copied : value, cast<BasicBlock>(copies[latch]));
    }
    dominators.recalculate(*check->getParent());
    formDedicatedExitBlocks(copy, &dominators, &loops, nullptr, true);
    formDedicatedExitBlocks(&loop, &dominators, &loops, nullptr, true);
    for (Loop *rare : copy->getLoopsInPreorder()) {
      addStringMetadataToLoop(rare, isVersioned, 1);
      addStringMetadataToLoop(rare, "llvm.loop.unroll.disable", 1);
    }
  }

  void keep(Place &place) {
    BasicBlock *preheader = loop.getLoopPreheader();
    SmallVector<PHINode *, 4> made;
    SSAUpdater values(&made);
    Keeper keeper(place, values, loop);
    auto *before = new LoadInst(place.type, place.pointer, "kept", false, place.alignment,
                                preheader->getTerminator()->getIterator());
    values.AddAvailableValue(preheader, before);
    SmallVector<Instruction *> all = place.accesses;
    keeper.run(all);
    if (before->use_empty())
      before->eraseFromParent();
  }

  Loop &loop;
  LoopInfo &loops;
  DominatorTree &dominators;
  ScalarEvolution &evolution;
  AAResults &aliases;
  const DataLayout &layout;
  /// The type of distances.
  IntegerType *number;
  SmallVector<Instruction *> accesses;
  SmallVector<Place, 4> places;
  SmallVector<std::pair<const Place *, Range>> checks;
  /// Numbers, and within how many bits they have to be, with a sign or without.
  SmallVector<std::pair<const SCEV *, std::pair<unsigned, bool>>> limits;
};

bool writesOnePlace(const Loop &loop) {
  return llvm::any_of(loop.blocks(), [&](BasicBlock *block) {
    return llvm::any_of(*block, [&](Instruction &instruction) {
      auto *store = dyn_cast<StoreInst>(&instruction);
      return store && loop.isLoopInvariant(store->getPointerOperand());
    });
  });
}

struct KeepAccumulators : PassInfoMixin<KeepAccumulators> {
  PreservedAnalyses run(Function &function, FunctionAnalysisManager &manager) {
    auto &loops = manager.getResult<LoopAnalysis>(function);
    // What is called from a kernel is in it by now, or has so much else to do that this does not matter.
    CallingConv::ID convention = function.getCallingConv();
    if (loops.empty() || (convention != CallingConv::PTX_Kernel && convention != CallingConv::AMDGPU_KERNEL))
      return PreservedAnalyses::all();
    auto &dominators = manager.getResult<DominatorTreeAnalysis>(function);
    auto &evolution = manager.getResult<ScalarEvolutionAnalysis>(function);
    auto &assumptions = manager.getResult<AssumptionAnalysis>(function);
    auto &aliases = manager.getResult<AAManager>(function);
    SmallPtrSet<const Loop *, 8> done;
    bool changed = false;
    // The outermost loop first that a value stays in.
    for (Loop *loop : loops.getLoopsInPreorder()) {
      if (done.contains(loop->getParentLoop())) {
        done.insert(loop);
        continue;
      }
      // In one that is unrolled whole, nothing is left to be kept.
      bool isUnrolled =
          findOptionMDForLoop(loop, "llvm.loop.unroll.full") && evolution.getSmallConstantMaxTripCount(loop) != 0;
      if (!writesOnePlace(*loop) || isUnrolled)
        continue;
      changed |= simplifyLoop(loop, &dominators, &loops, &evolution, &assumptions, nullptr, false);
      changed |= formLCSSARecursively(*loop, dominators, &loops, &evolution);
      if (Accumulators(*loop, loops, dominators, evolution, aliases).run()) {
        done.insert(loop);
        changed = true;
      }
    }
    return changed ? PreservedAnalyses::none() : PreservedAnalyses::all();
  }
};

} // namespace

void addAccumulators(PassBuilder &builder) {
  // In LLVM's own pipelines; those for PTX name it.
  builder.registerScalarOptimizerLateEPCallback([](FunctionPassManager &passes, OptimizationLevel level) {
    if (level.getSpeedupLevel() > 1)
      passes.addPass(KeepAccumulators());
  });
  nameFunctionPass<KeepAccumulators>(builder, "gpulower-keep-accumulators");
}

} // namespace gpulower
