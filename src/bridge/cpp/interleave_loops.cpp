// Several iterations of a loop at once, all loads of them first, or in order, where the plan says that none comes
// first. A thread that waits for one load at a time cannot keep the memory busy; neither LLVM nor the PTX compiler
// moves a load over a store that may write what is loaded. It comes after LLVM's other passes, which then see one copy
// of the body, and whichever language it was written in.

#include "interleave.h"
#include "pass_limits.h"

#include "llvm/Analysis/AssumptionCache.h"
#include "llvm/Analysis/InstructionSimplify.h"
#include "llvm/IR/DebugInfo.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include "llvm/Transforms/Utils/Local.h"
#include "llvm/Transforms/Utils/LoopUtils.h"
#include "llvm/Transforms/Utils/ScalarEvolutionExpander.h"

using namespace llvm;

namespace gpulower::interleave {
namespace {

constexpr StringLiteral passName = "gpulower-interleave";

/// Writes a loop anew as an InterleavePlan allows.
class Interleaver {
public:
  Interleaver(Loop &loop, const InterleavePlan &plan, LoopAnalyses analyses)
      : loop(loop), plan(plan), analyses(analyses), function(*plan.header->getParent()),
        expander(analyses.evolution, "interleave"), builder(plan.preheader->getTerminator()) {}

  /// From (`counter` is what the last branch compares)
  ///
  ///   if (counter < bound)
  ///     do body(i) while (counter < bound)
  ///
  /// to (with a count of 4)
  ///
  ///   if (four are left && loads and stores are apart)
  ///     do { loads of i, i + step, ..; rest of i, i + step, .. } while (counter < bound - 3 * step)
  ///   if (counter < bound)
  ///     do body(i) while (counter < bound)
  ///
  /// The counter takes the same values as before, in the same order, and nothing overflows that did not before. The
  /// first branch is there if plan.guard is: threads that part there would not come together again for the new loop.
  /// False: what has to be known before the loop cannot be computed there.
  bool run() {
    if (!canBeComputedBefore())
      return false;
    enter();
    cloneFirst();
    for (unsigned iteration = 0; iteration < plan.count; ++iteration)
      cloneRest(iteration);
    leave();
    askInOrder();
    simplify();
    tidy();
    divide();
    addStringMetadataToLoop(&loop, "llvm.loop.unroll.disable");
    update();
    return true;
  }

private:
  /// An address that moves by `stride` bytes in each iteration.
  struct Walk {
    /// What `start` and `stride` are.
    const SCEV *startNumber, *strideNumber;
    Value *start, *stride;
    /// Whether loads are among what walks: all places are computed before the first of them then.
    bool comesFirst = false;
    PHINode *phi = nullptr;
    /// Where it is in each iteration that is written.
    SmallVector<Value *, 8> places = {};
  };

  /// Whether a value can be computed before the loop.
  bool can(const SCEV *value) { return expander.isSafeToExpandAt(value, plan.preheader->getTerminator()); }

  bool canBeComputedBefore() {
    return can(plan.condition.start) && can(plan.condition.step) &&
           llvm::all_of(plan.checks, [&](const MayOverlap &pair) {
             auto isMissingOrCan = [&](const SCEV *stride) { return !stride || can(stride); };
             return can(pair.load) && can(pair.store) && isMissingOrCan(pair.stride) &&
                    isMissingOrCan(pair.loadStride) && isMissingOrCan(pair.storeStride);
           });
  }

  Value *expand(const SCEV *value) { return expander.expandCodeFor(value, value->getType(), builder.GetInsertPoint()); }

  Value *both(Value *left, Value *right) { return left ? builder.CreateAnd(left, right) : right; }

  /// The branches before the loop, and the blocks of the new one, which are empty.
  void enter() {
    if (plan.guard) {
      for (Instruction &instruction : make_early_inc_range(*plan.preheader))
        if (!instruction.isTerminator()) {
          instruction.moveBefore(plan.guard->getTerminator()->getIterator());
          // The guard may not have let it be reached.
          instruction.dropUBImplyingAttrsAndMetadata();
          instruction.dropPoisonGeneratingFlags();
          hoisted.push_back(&instruction);
        }
      builder.SetInsertPoint(plan.guard->getTerminator());
    }
    Value *step = expand(plan.condition.step);
    distance = times(plan.condition.step, step, plan.count - 1);
    start = expand(plan.condition.start);
    Value *enough = areLeft(start), *allowed = plan.guard ? nullptr : enough;
    builder.SetInsertPoint(plan.preheader->getTerminator());
    if (!analyses.evolution.getUnsignedRangeMax(plan.condition.step).ult(largestStep(*plan.condition.step)))
      allowed = both(allowed,
                     builder.CreateICmpULT(step, ConstantInt::get(step->getType(), largestStep(*plan.condition.step))));
    for (const MayOverlap &pair : plan.checks)
      allowed = both(allowed, areApart(pair));
    if (plan.condition.predicate != CmpInst::ICMP_NE) {
      end = builder.CreateSub(plan.condition.bound, distance);
      // It follows from what was asked, but loop_ends.cpp has to see it, which looks at constant steps.
      if (plan.guard || isa<SCEVConstant>(plan.condition.step))
        allowed = both(allowed, builder.CreateICmp(plan.condition.predicate, start, end));
    }

    for (PHINode &phi : plan.header->phis())
      if (const SCEV *each = stepOf(phi))
        turns.push_back({&phi, times(each, expand(each), plan.count)});
    findWalks();
    copies.resize(plan.count);
    BasicBlock *before = plan.header;
    for (auto [number, copy] : enumerate(copies)) {
      copy = std::make_unique<ValueToValueMapTy>();
      for (BasicBlock *block : plan.blocks)
        (*copy)[block] =
            BasicBlock::Create(function.getContext(), block->getName() + ".at" + Twine(number), &function, before);
    }
    behind = BasicBlock::Create(function.getContext(), plan.header->getName() + ".left", &function, before);
    rest = BasicBlock::Create(function.getContext(), plan.header->getName() + ".rest", &function, before);
    main =
        BasicBlock::Create(function.getContext(), plan.header->getName() + ".main", &function, blockOf(plan.header, 0));
    BranchInst::Create(blockOf(plan.header, 0), main);
    if (plan.guard) {
      without.push_back(plan.guard);
      BranchInst::Create(plan.preheader, behind, enough, plan.guard->getTerminator()->getIterator());
      plan.guard->getTerminator()->eraseFromParent();
    }
    if (allowed) {
      without.push_back(plan.preheader);
      builder.CreateCondBr(allowed, main, plan.guard ? behind : rest);
    } else {
      builder.CreateBr(main);
    }
    plan.preheader->getTerminator()->eraseFromParent();
  }

  /// A multiple, with what is known of overflow: a product of numbers of 32 bits is one instruction.
  Value *times(const SCEV *known, Value *value, unsigned factor) {
    APInt most = analyses.evolution.getUnsignedRangeMax(known);
    bool fits = most.getActiveBits() + Log2_32_Ceil(factor + 1) < most.getBitWidth();
    return builder.CreateMul(value, ConstantInt::get(value->getType(), factor), "", fits, fits);
  }

  /// What a counter or an address moves by in each iteration; null for other values.
  const SCEV *stepOf(PHINode &phi) {
    ScalarEvolution &evolution = analyses.evolution;
    auto *counted = evolution.isSCEVable(phi.getType()) ? dyn_cast<SCEVAddRecExpr>(evolution.getSCEV(&phi)) : nullptr;
    if (!counted || counted->getLoop() != &loop || !counted->isAffine())
      return nullptr;
    const SCEV *step = counted->getStepRecurrence(evolution);
    return can(step) ? step : nullptr;
  }

  /// Loads that come first, and stores, whose addresses move by a number that is not known. From address to address one
  /// number is enough. LLVM would compute all of them from the first, with one, two and three times that number, each
  /// of which holds two registers in all of the loop.
  void findWalks() {
    for (Instruction *instruction : plan.first)
      if (isa<LoadInst>(instruction))
        findWalk(*instruction);
    for (BasicBlock *block : plan.blocks)
      for (Instruction &instruction : *block)
        if (isa<StoreInst>(instruction))
          findWalk(instruction);
  }

  void findWalk(Instruction &access) {
    ScalarEvolution &evolution = analyses.evolution;
    auto *address = dyn_cast<SCEVAddRecExpr>(evolution.getSCEV(getLoadStorePointerOperand(&access)));
    if (!address || address->getLoop() != &loop || !address->isAffine())
      return;
    const SCEV *start = address->getStart(), *step = address->getStepRecurrence(evolution);
    if (isa<SCEVConstant>(step) || !can(start) || !can(step))
      return;
    auto distance = [&](const Walk &walk) {
      return dyn_cast<SCEVConstant>(evolution.getMinusSCEV(start, walk.startNumber));
    };
    auto *found = llvm::find_if(walks, [&](const Walk &walk) { return walk.strideNumber == step && distance(walk); });
    if (found == walks.end()) {
      forgetThatItIsNoPoison(*step);
      walks.push_back({start, step, expand(start), expand(step), isa<LoadInst>(access)});
      found = &walks.back();
    }
    walkOf[&access] = {unsigned(found - walks.begin()), cast<ConstantInt>(distance(*found)->getValue())};
  }

  /// One step of a walk. Of a number that is frozen there, LLVM does not see that it is the same in each iteration.
  Value *advance(Walk &walk, Value *place) { return builder.CreatePtrAdd(place, builder.CreateFreeze(walk.stride)); }

  /// Whether so many iterations are left behind the counter: `counter + distance < bound`, without overflow.
  Value *areLeft(Value *counter) {
    CmpInst::Predicate predicate = plan.condition.predicate;
    // Where there are any, the difference is right as an unsigned number.
    Value *difference = builder.CreateSub(plan.condition.bound, counter);
    Value *enough = CmpInst::isNonStrictPredicate(predicate) ? builder.CreateICmpUGE(difference, distance)
                                                             : builder.CreateICmpUGT(difference, distance);
    if (predicate == CmpInst::ICMP_NE)
      return enough;
    return builder.CreateAnd(builder.CreateICmp(predicate, counter, plan.condition.bound), enough);
  }

  /// Whether no load meets a store of another iteration of the same turn. Store number k writes at `store + k *
  /// stride`, load number k + d reads at `load + (k + d) * stride`, for d from 1 (from 0 where a store comes before the
  /// load) to count - 1: they are apart if the distance `store - load` is none that d can bridge.
  Value *areApart(const MayOverlap &pair) {
    if (!pair.stride)
      return rangesAreApart(pair);
    Type *type = pair.stride->getType();
    auto number = [&](uint64_t value) { return ConstantInt::get(type, value); };
    Value *stride = expand(pair.stride);
    Value *result = builder.getTrue();
    if (!isa<ConstantInt>(stride))
      result = builder.CreateICmpULT(builder.CreateSub(stride, number(pair.stored)), number(largestStep(*pair.stride)));
    const SCEV *known = analyses.evolution.getMinusSCEV(pair.store, pair.load);
    if (known->isZero() && !pair.storeComesFirst)
      return result;
    Value *apart;
    if (isa<SCEVCouldNotCompute>(known)) {
      Value *load = builder.CreatePtrToInt(expand(pair.load), type);
      apart = builder.CreateSub(builder.CreatePtrToInt(expand(pair.store), type), load);
    } else {
      apart = expand(known);
    }
    // From `lowest + 1` to `highest - 1` they meet. Unsigned: what is below becomes a large number.
    Value *lowest = builder.CreateSub(pair.storeComesFirst ? number(0) : stride, number(pair.stored));
    Value *highest = builder.CreateAdd(builder.CreateMul(stride, number(plan.count - 1)), number(pair.loaded));
    Value *place = builder.CreateSub(builder.CreateSub(apart, lowest), number(1));
    Value *size = builder.CreateSub(builder.CreateSub(highest, lowest), number(1));
    return builder.CreateAnd(result, builder.CreateICmpUGE(place, size));
  }

  /// Whether nothing that the load reaches in all iterations is reached by the store. Each reaches its address in every
  /// iteration, and the counter is not past the bound before the last, which the plan sees to: the sums do not
  /// overflow. Nor do products of numbers that are not known, which have to be small (largestStride, mostIterations).
  Value *rangesAreApart(const MayOverlap &pair) {
    Type *type = function.getDataLayout().getIndexType(pair.load->getType());
    // From the first iteration to the last: one array may begin where another one ends.
    Value *between = builder.CreateSub(plan.condition.bound, start);
    if (!CmpInst::isNonStrictPredicate(plan.condition.predicate))
      between = builder.CreateSub(between, ConstantInt::get(between->getType(), 1));
    between = builder.CreateZExtOrTrunc(between, type);
    Value *areSmall = nullptr;
    auto isBelow = [&](Value *number, uint64_t bound) {
      areSmall = both(areSmall, builder.CreateICmpULT(number, ConstantInt::get(type, bound)));
    };
    auto range = [&](const SCEV *first, Value *moves, uint64_t size) {
      Value *begin = builder.CreatePtrToInt(expand(first), type);
      Value *last = builder.CreateAdd(begin, builder.CreateMul(between, moves));
      return std::pair(begin, builder.CreateAdd(last, ConstantInt::get(type, size)));
    };
    auto movesBy = [&](uint64_t constant, const SCEV *stride) -> Value * {
      if (!stride)
        return ConstantInt::get(type, constant);
      Value *moves = expand(stride);
      isBelow(moves, largestStride);
      return moves;
    };
    if (pair.loadStride)
      isBelow(between, mostIterations);
    auto [load, loadEnd] = range(pair.load, movesBy(pair.loadMoves, pair.loadStride), pair.loaded);
    auto [store, storeEnd] = range(pair.store, movesBy(pair.storeMoves, pair.storeStride), pair.stored);
    Value *apart = builder.CreateOr(builder.CreateICmpULE(loadEnd, store), builder.CreateICmpULE(storeEnd, load));
    return both(areSmall, apart);
  }

  BasicBlock *blockOf(BasicBlock *block, unsigned iteration) { return cast<BasicBlock>((*copies[iteration])[block]); }

  Value *valueOf(Value *value, unsigned iteration) {
    Value *copy = copies[iteration]->lookup(value);
    return copy ? copy : value;
  }

  Value *carried(PHINode &phi, unsigned iteration) {
    return valueOf(phi.getIncomingValueForBlock(plan.latch), iteration);
  }

  void clone(Instruction &instruction, BasicBlock &block, unsigned iteration) {
    Instruction *copy = instruction.clone();
    copy->insertInto(&block, block.end());
    if (instruction.hasName())
      copy->setName(instruction.getName());
    RemapInstruction(copy, *copies[iteration], RF_IgnoreMissingLocals | RF_NoModuleLevelChanges);
    (*copies[iteration])[&instruction] = copy;
    if (auto found = walkOf.find(&instruction); found != walkOf.end()) {
      auto [walk, offset] = found->second;
      Value *place = walks[walk].places[iteration];
      builder.SetInsertPoint(copy);
      copy->setOperand(isa<StoreInst>(copy) ? StoreInst::getPointerOperandIndex() : LoadInst::getPointerOperandIndex(),
                       offset->isZero() ? place : builder.CreatePtrAdd(place, offset));
    }
  }

  /// What debug info says of variables before an instruction.
  void cloneRecords(Instruction &instruction, BasicBlock &block, unsigned iteration) {
    for (DbgRecord &record : instruction.getDbgRecordRange()) {
      DbgRecord *copy = record.clone();
      block.insertDbgRecordBefore(copy, block.end());
      RemapDbgRecord(function.getParent(), copy, *copies[iteration], RF_IgnoreMissingLocals | RF_NoModuleLevelChanges);
    }
  }

  /// The loads of all iterations, and what they need.
  void cloneFirst() {
    BasicBlock *header = blockOf(plan.header, 0);
    for (PHINode &phi : plan.header->phis()) {
      PHINode *copy = PHINode::Create(phi.getType(), 2, phi.getName(), header);
      copy->addIncoming(phi.getIncomingValueForBlock(plan.preheader), main);
      (*copies[0])[&phi] = copy;
    }
    for (Walk &walk : walks) {
      walk.phi = PHINode::Create(walk.start->getType(), 2, "walk", header->begin());
      walk.phi->addIncoming(walk.start, main);
      walk.places.push_back(walk.phi);
    }
    for (unsigned iteration = 0; iteration < plan.count; ++iteration) {
      // Where the next value is not among what comes first, nothing of that uses it, and it is replaced later.
      if (iteration > 0)
        mapPhis(iteration);
      walkOn(iteration, *header, /*withLoads=*/true);
      for (Instruction *instruction : plan.first)
        clone(*instruction, *header, iteration);
    }
  }

  /// The places of walks in an iteration behind the first.
  void walkOn(unsigned iteration, BasicBlock &block, bool withLoads) {
    builder.SetInsertPoint(&block);
    for (Walk &walk : walks)
      if (iteration > 0 && walk.comesFirst == withLoads)
        walk.places.push_back(advance(walk, walk.places.back()));
  }

  void mapPhis(unsigned iteration) {
    for (PHINode &phi : plan.header->phis())
      (*copies[iteration])[&phi] = carried(phi, iteration - 1);
  }

  /// What copies compute of each other. What takes turns, such as the number of a buffer, is after an even number of
  /// iterations what it was before, and so the same in all of the loop.
  void simplify() {
    SimplifyQuery query(function.getDataLayout());
    for (unsigned iteration = 0; iteration < plan.count; ++iteration)
      for (BasicBlock *block : plan.blocks)
        for (Instruction &copy : make_early_inc_range(*blockOf(block, iteration)))
          if (Value *simpler = isa<BinaryOperator>(copy) ? simplifyInstruction(&copy, query) : nullptr) {
            copy.replaceAllUsesWith(simpler);
            copy.eraseFromParent();
          }
    auto isTheSame = [](PHINode &phi) { return phi.hasConstantValue() != nullptr; };
    auto phis = [&] { return blockOf(plan.header, 0)->phis(); };
    for (auto found = llvm::find_if(phis(), isTheSame); found != phis().end(); found = llvm::find_if(phis(), isTheSame))
      replaceAndRecursivelySimplify(&*found, found->hasConstantValue());
  }

  /// The conditions of all iterations but the last, and counters that only they need.
  void tidy() {
    for (unsigned iteration = plan.count; iteration-- > 0;)
      for (BasicBlock *block : llvm::reverse(plan.blocks))
        for (Instruction &copy : make_early_inc_range(llvm::reverse(*blockOf(block, iteration))))
          if (isInstructionTriviallyDead(&copy))
            copy.eraseFromParent();
  }

  void cloneRest(unsigned iteration) {
    if (iteration > 0)
      mapPhis(iteration);
    walkOn(iteration, *blockOf(plan.header, iteration), /*withLoads=*/false);
    for (BasicBlock *block : plan.blocks) {
      BasicBlock &copy = *blockOf(block, iteration);
      for (Instruction &instruction : *block) {
        cloneRecords(instruction, copy, iteration);
        bool isDone =
            (isa<PHINode>(instruction) && block == plan.header) || llvm::is_contained(plan.first, &instruction);
        if (!isDone && &instruction != plan.latch->getTerminator())
          clone(instruction, copy, iteration);
      }
    }
    if (iteration + 1 < plan.count)
      BranchInst::Create(blockOf(plan.header, iteration + 1), blockOf(plan.latch, iteration));
  }

  /// The loop for the rest compares by order, as the new one does (loop_ends.cpp has why).
  void askInOrder() {
    auto *branch = cast<BranchInst>(plan.latch->getTerminator());
    auto *compare = cast<ICmpInst>(branch->getCondition());
    const LoopCondition &condition = plan.condition;
    if (!compare->isEquality() || condition.predicate == CmpInst::ICMP_NE)
      return;
    builder.SetInsertPoint(branch);
    bool leaves = branch->getSuccessor(0) != plan.header;
    branch->setCondition(
        builder.CreateICmp(leaves ? CmpInst::getInversePredicate(condition.predicate) : condition.predicate,
                           condition.counter, condition.bound));
    if (compare->use_empty())
      compare->eraseFromParent();
  }

  /// The branch behind the new loop, and what is carried on from there.
  void leave() {
    const LoopCondition &condition = plan.condition;
    unsigned last = plan.count - 1;
    BasicBlock *header = blockOf(plan.header, 0), *latch = blockOf(plan.latch, last);
    builder.SetInsertPoint(latch);
    // Counters take one step: the PTX compiler unrolls no loop whose counter takes several.
    for (auto [phi, step] : turns) {
      Value *start = (*copies[0])[phi];
      Value *next =
          start->getType()->isPointerTy() ? builder.CreatePtrAdd(start, step) : builder.CreateAdd(start, step);
      (*copies[last])[phi->getIncomingValueForBlock(plan.latch)] = next;
    }
    for (Walk &walk : walks)
      walk.phi->addIncoming(advance(walk, walk.places.back()), latch);
    Value *counter = valueOf(condition.counter, last);
    builder.CreateCondBr(end ? builder.CreateICmp(condition.predicate, counter, end) : areLeft(counter), header,
                         behind);
    for (PHINode &phi : plan.header->phis())
      cast<PHINode>((*copies[0])[&phi])->addIncoming(carried(phi, last), latch);
    builder.SetInsertPoint(behind);
    if (plan.guard)
      return leaveGuarded(counter, latch);
    builder.CreateCondBr(builder.CreateICmp(condition.predicate, counter, condition.bound), rest, plan.exit);
    builder.SetInsertPoint(rest);
    for (PHINode &phi : plan.header->phis()) {
      PHINode *first = builder.CreatePHI(phi.getType(), 2, phi.getName());
      first->addIncoming(phi.getIncomingValueForBlock(plan.preheader), plan.preheader);
      first->addIncoming(carried(phi, last), behind);
      phi.setIncomingValueForBlock(plan.preheader, first);
      phi.replaceIncomingBlockWith(plan.preheader, rest);
    }
    builder.CreateBr(plan.header);
    for (PHINode &phi : plan.exit->phis())
      phi.addIncoming(carriedOut(phi, last), behind);
  }

  /// The same, where whether there are any iterations is asked behind the new loop.
  void leaveGuarded(Value *counter, BasicBlock *latch) {
    const LoopCondition &condition = plan.condition;
    unsigned last = plan.count - 1;
    SmallVector<PHINode *> merged;
    // What is the same on both ways needs no register of its own.
    auto merge = [&](Value *skipped, Value *computed) -> Value * {
      if (skipped == computed)
        return skipped;
      for (PHINode *phi : merged)
        if (phi->getIncomingValueForBlock(plan.guard) == skipped && phi->getIncomingValueForBlock(latch) == computed)
          return phi;
      PHINode *phi = PHINode::Create(skipped->getType(), 3, "", behind->begin());
      for (BasicBlock *block : without)
        phi->addIncoming(skipped, block);
      phi->addIncoming(computed, latch);
      merged.push_back(phi);
      return phi;
    };
    for (PHINode &phi : plan.header->phis()) {
      phi.setIncomingValueForBlock(plan.preheader,
                                   merge(phi.getIncomingValueForBlock(plan.preheader), carried(phi, last)));
      phi.replaceIncomingBlockWith(plan.preheader, rest);
    }
    for (PHINode &phi : plan.outside->phis()) {
      Value *out = phi.getIncomingValueForBlock(plan.exit);
      auto *passed = dyn_cast<PHINode>(out);
      out = passed && passed->getParent() == plan.exit ? carriedOut(*passed, last) : valueOf(out, last);
      phi.setIncomingValueForBlock(plan.guard, merge(phi.getIncomingValueForBlock(plan.guard), out));
      phi.replaceIncomingBlockWith(plan.guard, behind);
    }
    Value *reached = merge(start, counter);
    builder.CreateCondBr(builder.CreateICmp(condition.predicate, reached, condition.bound), rest, plan.outside);
    BranchInst::Create(plan.header, rest);
  }

  Value *carriedOut(PHINode &phi, unsigned last) { return valueOf(phi.getIncomingValueForBlock(plan.latch), last); }

  /// What the loops alone need is computed before each of them, and not for both at once: it would take registers from
  /// the one loop until the other begins.
  void divide() {
    SmallPtrSet<const Instruction *, 16> moved;
    auto isInLoops = [&](const BasicBlock *at) {
      return at == main || loop.contains(at) || llvm::any_of(plan.blocks, [&](BasicBlock *block) {
               return llvm::any_of(copies, [&](auto &copy) { return copy->lookup(block) == at; });
             });
    };
    auto isForLoops = [&](const Instruction &instruction) {
      return llvm::all_of(instruction.uses(), [&](const Use &use) {
        auto *user = cast<Instruction>(use.getUser());
        const BasicBlock *at = user->getParent();
        if (auto *phi = dyn_cast<PHINode>(user))
          at = phi->getIncomingBlock(use);
        return moved.contains(user) || isInLoops(at);
      });
    };
    SmallVector<Instruction *> order, all(hoisted);
    for (Instruction &instruction : *plan.preheader)
      all.push_back(&instruction);
    for (Instruction *instruction : llvm::reverse(all)) {
      // Two copies of memory are two memories, and two freezes of poison two values.
      if (isa<PHINode, CallBase, AllocaInst, FreezeInst>(instruction) || instruction->isTerminator() ||
          instruction->mayReadOrWriteMemory() || instruction->getType()->isTokenTy() || instruction->use_empty() ||
          !isForLoops(*instruction))
        continue;
      moved.insert(instruction);
      order.push_back(instruction);
    }
    ValueToValueMapTy again;
    for (Instruction *instruction : llvm::reverse(order)) {
      Instruction *copy = instruction->clone();
      copy->insertBefore(rest->getTerminator()->getIterator());
      RemapInstruction(copy, again, RF_IgnoreMissingLocals | RF_NoModuleLevelChanges);
      again[instruction] = copy;
      instruction->moveBefore(main->getTerminator()->getIterator());
      instruction->replaceUsesWithIf(copy, [&](Use &use) {
        auto *user = cast<Instruction>(use.getUser());
        auto *phi = dyn_cast<PHINode>(user);
        const BasicBlock *at = phi ? phi->getIncomingBlock(use) : user->getParent();
        return at == rest || loop.contains(at);
      });
      SmallVector<DbgVariableRecord *> records;
      findDbgUsers(instruction, records);
      for (DbgVariableRecord *record : records)
        if (loop.contains(record->getParent()))
          record->replaceVariableLocationOp(instruction, copy);
        else if (!isInLoops(record->getParent()))
          record->setKillLocation();
    }
    for (Instruction &copy : make_early_inc_range(llvm::reverse(*rest)))
      if (isInstructionTriviallyDead(&copy))
        copy.eraseFromParent();
  }

  void update() {
    Loop *made = analyses.loops.AllocateLoop();
    Loop *parent = loop.getParentLoop();
    if (parent)
      parent->addChildLoop(made);
    else
      analyses.loops.addTopLevelLoop(made);
    // The header comes first.
    for (unsigned iteration = 0; iteration < plan.count; ++iteration)
      for (BasicBlock *block : plan.blocks)
        made->addBasicBlockToLoop(blockOf(block, iteration), analyses.loops);
    if (function.getParent()->getTargetTriple().isNVPTX())
      addStringMetadataToLoop(made, noLoopReduction.data());
    if (!plan.mayUnrollAgain)
      addStringMetadataToLoop(made, "llvm.loop.unroll.disable");
    if (parent)
      for (BasicBlock *block : {main, behind, rest})
        parent->addBasicBlockToLoop(block, analyses.loops);
    analyses.dominators.recalculate(function);
    analyses.evolution.forgetTopmostLoop(&loop);
    analyses.evolution.forgetBlockAndLoopDispositions();
  }

  Loop &loop;
  const InterleavePlan &plan;
  LoopAnalyses analyses;
  Function &function;
  SCEVExpander expander;
  IRBuilder<> builder;
  /// What each value and block of the loop is in each iteration.
  SmallVector<std::unique_ptr<ValueToValueMapTy>, 8> copies;
  /// Values that move by as much in each iteration, and how far they move in each turn.
  SmallVector<std::pair<PHINode *, Value *>, 4> turns;
  /// Addresses that all iterations reach step by step.
  SmallVector<Walk, 4> walks;
  /// The walk of a load or a store, and how far from its place it reads or writes.
  DenseMap<Instruction *, std::pair<unsigned, ConstantInt *>> walkOf;
  BasicBlock *main = nullptr, *behind = nullptr, *rest = nullptr;
  Value *distance = nullptr, *start = nullptr, *end = nullptr;
  /// What was computed before the loop if it has iterations, and is computed in any case now.
  SmallVector<Instruction *> hoisted;
  /// Those that lead past the new loop, if whether there are any iterations is asked behind it.
  SmallVector<BasicBlock *, 2> without;
};

class InterleaveLoops : public PassInfoMixin<InterleaveLoops> {
public:
  explicit InterleaveLoops(unsigned count) : count(count) {}

  PreservedAnalyses run(Function &function, FunctionAnalysisManager &manager) {
    auto &loops = manager.getResult<LoopAnalysis>(function);
    if (loops.empty() || count < 2)
      return PreservedAnalyses::all();
    auto &assumptions = manager.getResult<AssumptionAnalysis>(function);
    LoopAnalyses analyses{loops, manager.getResult<DominatorTreeAnalysis>(function),
                          manager.getResult<ScalarEvolutionAnalysis>(function), manager.getResult<AAManager>(function)};
    bool changed = false, wasUnrolled = false;
    /// Loops for what interleaved ones leave.
    SmallVector<Loop *, 4> left;
    for (Loop *loop : loops.getLoopsInPreorder()) {
      if (!loop->isInnermost())
        continue;
      changed |= simplifyLoop(loop, &analyses.dominators, &loops, &analyses.evolution, &assumptions, nullptr, false);
      changed |= formLCSSA(*loop, analyses.dominators, &loops, &analyses.evolution);
      {
        CountedUpwards upwards(*loop, analyses.evolution);
        std::optional<InterleavePlan> plan = planInterleaving(*loop, analyses, count);
        if (plan && Interleaver(*loop, *plan, analyses).run()) {
          upwards.keep();
          // One for buffers that overlap may run all iterations.
          if (plan->checks.empty())
            left.push_back(loop);
          changed = true;
          continue;
        }
      }
      wasUnrolled = wasUnrolled || reachesAddressesInTurn(*loop, analyses.evolution);
      changed |= walkFromAddressToAddress(*loop, analyses) || moveOneOffset(*loop, analyses);
    }
    if (!wasUnrolled)
      leaveAddressesAlone(function, left);
    return changed ? PreservedAnalyses::none() : PreservedAnalyses::all();
  }

private:
  /// Straight-line strength reduction computes addresses from each other that stand anywhere, and loop strength
  /// reduction gives the loops for what is left numbers of their own, which live in the loops before as well. Where a
  /// front end unrolled a loop, both find what the copies of its body have in common (docs/lab/code-quality.md).
  static void leaveAddressesAlone(Function &function, ArrayRef<Loop *> left) {
    if (!function.getParent()->getTargetTriple().isNVPTX())
      return;
    function.addFnAttr(noReduction);
    for (Loop *loop : left)
      addStringMetadataToLoop(loop, noLoopReduction.data());
  }

  unsigned count;
};

} // namespace

void addInterleaving(PassBuilder &builder) {
  builder.registerPipelineParsingCallback(
      [](StringRef name, FunctionPassManager &passes, ArrayRef<PassBuilder::PipelineElement>) {
        unsigned count = 0;
        if (!name.consume_front(passName) || !name.consume_front("<") || !name.consume_back(">") ||
            name.getAsInteger(10, count) || !llvm::is_contained({1u, 2u, 4u, 8u}, count))
          return false;
        passes.addPass(InterleaveLoops(count));
        return true;
      });
}

} // namespace gpulower::interleave
