// Which iterations of a loop may run at once with their loads first. Everything here is a proof: what it does not
// understand it leaves alone.

#include "for_ptx.h"
#include "interleave.h"

#include "llvm/Analysis/LoopIterator.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/Transforms/Utils/LoopUtils.h"

using namespace llvm;

namespace gpulower::interleave {
namespace {

/// Longer bodies run two iterations at once where loads come first, unless an iteration loads few bytes; those that are
/// longer still have enough to do between two loads.
constexpr unsigned mostInstructions = 32, mostInstructionsOfFewBytes = 64;
constexpr unsigned mostInstructionsOfTwo = 160;
/// Longer bodies that work long with what they load run two at once.
constexpr unsigned mostInstructionsOfLongWork = 64;
/// Bodies that ptxas does not unroll, and that are worth it: without loads and stores, and all.
constexpr unsigned fewestInstructionsAlone = 24, mostInstructionsInOrder = 80;
/// Instructions of registers of 32 bits in a loop that ptxas unrolls four times.
constexpr unsigned mostUnrolled = 32;
/// Divisions of 32 bits, some 20 instructions each, of which several are worth being computed beside each other.
constexpr unsigned fewestDivisions = 2;
/// Every load that waits holds a register, times the iterations. More of them are of a loop that somebody has unrolled
/// already, or elements of a few vectors, of which two iterations run at once.
constexpr unsigned mostLoads = 6, mostLoadsOfTwo = 12, mostTransfersOfTwo = 4;
/// Where the step is not known, addresses times the iterations: four at once of two arrays that are read and one that
/// is written.
constexpr unsigned mostAddresses = 12;
/// The largest element of an array, in bytes: times an index of 32 bits, it does not come around.
constexpr uint64_t largestElement = 256;
/// Instructions for each load, and all of them, of a loop that waits for memory most of the time.
constexpr unsigned mostWorkOfLoad = 3;
constexpr unsigned mostWork = 8;
/// Bytes of a load of which ptxas does not have enough under way when it unrolls a loop.
constexpr uint64_t narrow = 2;
/// Bytes of `ld.v4.b32`.
constexpr uint64_t widestTransfer = 16;
/// Bytes that one iteration loads of memory that is far away. An H200 with all threads is kept busy by 32 of each, and
/// not by 8, which are twice 4.
constexpr uint64_t enoughBytes = 32, fewBytes = 4;
/// Comparisons of addresses before a loop.
constexpr unsigned mostChecks = 4;

/// Instructions that the end of a loop is computed with, one after the other.
constexpr unsigned mostSteps = 6;

/// Threads of a warp on every NVIDIA GPU, and of a small block.
constexpr unsigned warpSize = 32, fewThreads = 128;

constexpr unsigned globalSpace = 1, sharedSpace = 3, privateSpace = 5;

/// An argument of a kernel: memory that the host passed, which is never a workgroup's or a thread's own, unless its
/// type says so.
bool isKernelArgument(const Value *object) {
  auto *argument = dyn_cast<Argument>(object);
  if (!argument || argument->hasPassPointeeByValueCopyAttr())
    return false;
  if (auto *pointer = dyn_cast<PointerType>(argument->getType()))
    if (pointer->getAddressSpace() == sharedSpace || pointer->getAddressSpace() == privateSpace)
      return false;
  CallingConv::ID convention = argument->getParent()->getCallingConv();
  return convention == CallingConv::PTX_Kernel || convention == CallingConv::AMDGPU_KERNEL;
}

/// What a load, a store or an atomic operation points to.
Value *addressOf(Instruction &access) {
  if (auto *atomic = dyn_cast<AtomicRMWInst>(&access))
    return atomic->getPointerOperand();
  return getLoadStorePointerOperand(&access);
}

bool isOfGroupOrThread(Instruction &access) {
  unsigned space = addressOf(access)->getType()->getPointerAddressSpace();
  return space == sharedSpace || space == privateSpace;
}

/// Whether loads of other memory may pass an atomic operation: it orders nothing else.
bool ordersNothing(const AtomicRMWInst &atomic) {
  return !atomic.isVolatile() && atomic.getOrdering() == AtomicOrdering::Monotonic;
}

bool isRelaxed(const Instruction &atomic) {
  if (auto *exchange = dyn_cast<AtomicCmpXchgInst>(&atomic))
    return exchange->getMergedOrdering() == AtomicOrdering::Monotonic;
  auto is = [](AtomicOrdering ordering) { return !isStrongerThanMonotonic(ordering); };
  if (auto *operation = dyn_cast<AtomicRMWInst>(&atomic))
    return is(operation->getOrdering());
  if (auto *load = dyn_cast<LoadInst>(&atomic))
    return is(load->getOrdering());
  auto *store = dyn_cast<StoreInst>(&atomic);
  return store && is(store->getOrdering());
}

/// Whether threads may take turns within a function other than at barriers: of what one writes and the other reads in
/// its turn, each has a value of its own. Without it, that would be a race.
bool takesTurns(const Function &function) {
  return llvm::any_of(instructions(function), [](const Instruction &instruction) {
    if (instruction.isVolatile() || isa<FenceInst>(instruction))
      return true;
    if (auto *call = dyn_cast<CallBase>(&instruction)) {
      const Function *called = call->getCalledFunction();
      return !called || !called->isIntrinsic() || called->getName().starts_with("llvm.nvvm.membar") ||
             called->getName().starts_with("llvm.nvvm.fence");
    }
    return instruction.isAtomic() && (!isRelaxed(instruction));
  });
}

/// Whether a load is of memory that is not a thread's own, in a kernel.
bool isOfOthersToo(const LoadInst &load) {
  auto isOthers = [](unsigned space) { return space == globalSpace || space == sharedSpace; };
  if (unsigned space = load.getPointerAddressSpace())
    return isOthers(space);
  const Value *object = getUnderlyingObject(load.getPointerOperand());
  auto *variable = dyn_cast<GlobalVariable>(object);
  return isa<Argument>(object) || (variable && isOthers(variable->getAddressSpace()));
}

/// Whether a value is computed, in a few steps, from the numbers that a block has alone and from arguments, which are
/// what the host passed where the function is a kernel; with `readsToo`, from what is read of one place as well.
bool isSameForAllThreads(const Value &value, unsigned steps, bool readsToo = false) {
  if (isa<Constant, Argument>(value))
    return true;
  if (auto *call = dyn_cast<IntrinsicInst>(&value))
    switch (call->getIntrinsicID()) {
    case Intrinsic::nvvm_read_ptx_sreg_ctaid_x:
    case Intrinsic::nvvm_read_ptx_sreg_ctaid_y:
    case Intrinsic::nvvm_read_ptx_sreg_ctaid_z:
    case Intrinsic::nvvm_read_ptx_sreg_nctaid_x:
    case Intrinsic::nvvm_read_ptx_sreg_nctaid_y:
    case Intrinsic::nvvm_read_ptx_sreg_nctaid_z:
    case Intrinsic::nvvm_read_ptx_sreg_ntid_x:
    case Intrinsic::nvvm_read_ptx_sreg_ntid_y:
    case Intrinsic::nvvm_read_ptx_sreg_ntid_z:
      return true;
    default:
      break;
    }
  auto *instruction = dyn_cast<Instruction>(&value);
  auto *load = dyn_cast_or_null<LoadInst>(instruction);
  if (load && readsToo && load->isSimple() && isOfOthersToo(*load) && steps > 0)
    return isSameForAllThreads(*load->getPointerOperand(), steps - 1, readsToo);
  return instruction && steps > 0 && !isa<PHINode>(instruction) && !instruction->mayReadOrWriteMemory() &&
         instruction->getNumOperands() > 0 && (!isa<CallBase>(instruction) || isa<MinMaxIntrinsic>(instruction)) &&
         llvm::all_of(instruction->operands(),
                      [&](const Use &operand) { return isSameForAllThreads(*operand, steps - 1, readsToo); });
}

/// How many instructions of PTX it becomes: of vectors one for each element, or for two of 16 bits; but what puts
/// elements together or takes them apart is registers, and memory has vectors.
unsigned sizeInPtx(const Instruction &instruction) {
  if (isa<ExtractElementInst, InsertElementInst, ShuffleVectorInst, PHINode, LoadInst, StoreInst>(instruction))
    return 1;
  auto elements = [](Type *type) {
    auto *vector = dyn_cast<FixedVectorType>(type);
    if (!vector)
      return 1u;
    unsigned count = vector->getNumElements();
    return vector->getScalarSizeInBits() == 16 ? (count + 1) / 2 : count;
  };
  unsigned most = elements(instruction.getType());
  for (const Use &operand : instruction.operands())
    most = std::max(most, elements(operand->getType()));
  return most;
}

class Planner {
public:
  Planner(Loop &loop, LoopAnalyses analyses, unsigned count)
      : loop(loop), analyses(analyses), evolution(analyses.evolution), layout(loop.getHeader()->getDataLayout()),
        wanted(count) {
    plan.count = count;
  }

  std::optional<InterleavePlan> make() {
    if (!findBlocks() || !understand() || !findCondition() || isSharedByBlock() || fillsTile())
      return std::nullopt;
    if (isConvergent)
      return runsEquallyOften() ? planInOrder() : std::nullopt;
    std::optional<InterleavePlan> made = accesses == 0 ? std::nullopt : planLoadsFirst();
    return made ? std::move(made) : planInOrder();
  }

private:
  std::optional<InterleavePlan> planLoadsFirst() {
    if (!isa<SCEVConstant>(plan.condition.step) && addresses() * plan.count > mostAddresses)
      return std::nullopt;
    // NVIDIA's PTX compiler unrolls a loop that only reads, if it knows the step, and deals better with the rest of it;
    // but it moves no load over the branches that a division becomes.
    bool onlyReads = writes.empty() && isa<SCEVConstant>(plan.condition.step);
    bool isLeftToPtxas = onlyReads && !isHeavy && !choosesWhatToDo();
    // What is divided is added up, one after the other, which takes no more registers for four.
    if (onlyReads && isHeavy && size <= mostInstructions && isLong())
      plan.count = std::min(wanted, unrolledByPtxas);
    bool isShort = isLeftToPtxas && !isLong();
    if (isShort && loadsAreNarrow())
      plan.count = std::min(plan.count, 2u);
    unsigned loads = 0;
    for (Instruction *instruction : instructions) {
      if (!isReadyNow(*instruction)) {
        if (auto *load = dyn_cast<LoadInst>(instruction); load && isConditionalButFree(*load))
          ++loads;
        continue;
      }
      ready.insert(instruction);
      if (isa<LoadInst>(instruction)) {
        ++loads;
        if (!take(*instruction))
          return std::nullopt;
      }
    }
    // Those of the next would only hold registers.
    if (size > mostInstructions && bytesUnderWay() >= enoughBytes)
      return std::nullopt;
    if (loop.getParentLoop() && (!waitsForMemory() || (!plan.checks.empty() && isSharedByWarp())))
      return std::nullopt;
    if (loads > mostLoads && transfers() <= mostTransfersOfTwo)
      plan.count = std::min(plan.count, 2u);
    else if (loads > mostLoads)
      return std::nullopt;
    if (loads == 0 || loads > mostLoadsOfTwo || plan.checks.size() > mostChecks)
      return std::nullopt;
    for (Instruction *instruction : instructions)
      if (taken.contains(instruction) && !isa<PHINode>(instruction))
        plan.first.push_back(instruction);
    unsigned mostIterations = evolution.getSmallConstantMaxTripCount(&loop);
    if (isLeftToPtxas && !loadsAreNarrow()) {
      if (worksLong(loads) && !isShort) {
        if (gathersLate())
          return std::nullopt;
        // Unrolled by ptxas such a loop is fast or slow by chance: what it does first depends on how many registers it
        // may use. Where it knows the number of iterations, it unrolls further, or all of them.
        if (wanted < unrolledByPtxas || evolution.getSmallConstantTripCount(&loop) != 0)
          return std::nullopt;
        plan.count = size > mostInstructionsOfLongWork || loads > mostLoads ? 2 : unrolledByPtxas;
        plan.mayUnrollAgain = false;
      } else if (isShort) {
        return std::nullopt;
      }
    }
    // Where there are never so many iterations, the new loop would never run.
    if (mostIterations != 0 && mostIterations < plan.count)
      return std::nullopt;
    plan.mayUnrollAgain &= mostIterations == 0 || mostIterations >= plan.count * unrolledByPtxas;
    findGuard();
    return std::move(plan);
  }

  /// Of a loop that computes long, or in which threads wait for each other or look at each other's values, and whose
  /// loads are not put first: ptxas does not unroll it, and begins nothing of an iteration before the one before ends.
  std::optional<InterleavePlan> planInOrder() {
    bool computesAlone = accesses == 0 && isa<SCEVConstant>(plan.condition.step) && size >= fewestInstructionsAlone;
    unsigned most = evolution.getSmallConstantMaxTripCount(&loop);
    bool isLarge = size > mostInstructionsInOrder;
    // With a division of floats or a root, as nvcc does, where threads do not share the iterations; with barriers, too.
    bool waitsForBranches = isHeavy && !isSharedByWarp();
    bool isWorthIt = computesAlone || divisions >= fewestDivisions || waitsForBranches || worksOnGroup();
    if ((!isConvergent && (!isWorthIt || (isLarge && !waitsForBranches))) ||
        (isConvergent && isLarge && !exchanges && !readsWhatStays()) || (isHeavy && !waitsForBranches) ||
        wanted < unrolledByPtxas || evolution.getSmallConstantTripCount(&loop) != 0 ||
        (most != 0 && most < unrolledByPtxas))
      return std::nullopt;
    plan.count = isLarge || isHeavy ? 2 : unrolledByPtxas;
    plan.mayUnrollAgain = false;
    plan.first.clear();
    plan.checks.clear();
    findGuard();
    return std::move(plan);
  }

  bool findBlocks() {
    plan.preheader = loop.getLoopPreheader();
    plan.header = loop.getHeader();
    plan.latch = loop.getLoopLatch();
    if (!plan.preheader || !plan.latch || loop.getExitingBlock() != plan.latch)
      return false;
    plan.exit = loop.getExitBlock();
    LoopBlocksRPO order(&loop);
    order.perform(&analyses.loops);
    plan.blocks.assign(order.begin(), order.end());
    return plan.exit != nullptr;
  }

  /// Whether all of the body is known, which it is not with a call in it, nor with an atomic operation that orders
  /// others.
  bool understand() {
    for (BasicBlock *block : plan.blocks) {
      if (!isa<BranchInst, SwitchInst>(block->getTerminator()))
        return false;
      for (Instruction &instruction : *block) {
        position[&instruction] = instructions.size();
        instructions.push_back(&instruction);
        isHeavy |= becomesBranches(instruction);
        divisions += instruction.isIntDivRem() && !isa<Constant>(instruction.getOperand(1));
        accesses += instruction.mayReadOrWriteMemory();
        size += sizeInPtx(instruction);
        if (instruction.isTerminator() || isa<PHINode>(instruction))
          continue;
        if (instruction.getType()->isTokenTy())
          return false;
        if (auto *call = dyn_cast<CallBase>(&instruction)) {
          if (call->cannotDuplicate() || (call->isConvergent() && !isa<IntrinsicInst>(call)))
            return false;
          isConvergent |= call->isConvergent();
          exchanges |= call->isConvergent() && call->onlyAccessesInaccessibleMemory();
          if (call->isConvergent())
            continue;
        }
        auto *store = dyn_cast<StoreInst>(&instruction);
        auto *atomic = dyn_cast<AtomicRMWInst>(&instruction);
        if ((store && store->isSimple()) || (atomic && ordersNothing(*atomic))) {
          writes.push_back(&instruction);
          continue;
        }
        if (instruction.mayWriteToMemory() || !isGuaranteedToTransferExecutionToSuccessor(&instruction))
          return false;
      }
    }
    uint64_t bytes = bytesUnderWay();
    if (isHeavy || size > (bytes != 0 && bytes <= fewBytes ? mostInstructionsOfFewBytes : mostInstructions))
      plan.count = std::min(plan.count, 2u);
    return size <= mostInstructionsOfTwo;
  }

  /// Whether all threads of a block that run the loop run it equally often, so that what they do together stays
  /// together.
  bool runsEquallyOften() const {
    // The arguments of other functions may differ from thread to thread.
    CallingConv::ID convention = plan.header->getParent()->getCallingConv();
    if (convention != CallingConv::PTX_Kernel && convention != CallingConv::AMDGPU_KERNEL)
      return false;
    bool readsToo = !takesTurns(*plan.header->getParent());
    auto isOfOne = [&](const SCEV *part) {
      auto *value = dyn_cast<SCEVUnknown>(part);
      return isa<SCEVAddRecExpr>(part) || (value && !isSameForAllThreads(*value->getValue(), mostSteps, readsToo));
    };
    return !SCEVExprContains(plan.condition.start, isOfOne) && !SCEVExprContains(plan.condition.step, isOfOne) &&
           !SCEVExprContains(evolution.getSCEV(plan.condition.bound), isOfOne);
  }

  bool findCondition() {
    auto *branch = dyn_cast<BranchInst>(plan.latch->getTerminator());
    auto *compare = branch && branch->isConditional() ? dyn_cast<ICmpInst>(branch->getCondition()) : nullptr;
    if (!compare || !compare->getOperand(0)->getType()->isIntegerTy())
      return false;
    LoopCondition &condition = plan.condition;
    condition.counter = compare->getOperand(0);
    condition.bound = compare->getOperand(1);
    condition.predicate =
        branch->getSuccessor(0) == plan.header ? compare->getPredicate() : compare->getInversePredicate();
    if (loop.isLoopInvariant(condition.counter)) {
      std::swap(condition.counter, condition.bound);
      condition.predicate = CmpInst::getSwappedPredicate(condition.predicate);
    }
    askOfTheNext(condition.counter, condition.bound, condition.predicate, loop, evolution);
    auto *counted = recurrence(evolution.getSCEV(condition.counter));
    unsigned bits = condition.counter->getType()->getIntegerBitWidth();
    if (!counted || !loop.isLoopInvariant(condition.bound) || (bits != 32 && bits != 64))
      return false;
    condition.step = counted->getStepRecurrence(evolution);
    condition.start = evolution.getMinusSCEV(counted->getStart(), condition.step);
    // LLVM knows what to do with a small number of iterations that it knows.
    if (unsigned iterations = evolution.getSmallConstantTripCount(&loop);
        iterations != 0 && iterations < fewestIterations)
      return false;
    if (auto *step = dyn_cast<SCEVConstant>(condition.step);
        step && (!step->getAPInt().isStrictlyPositive() || step->getAPInt().ugt(largestStep(*step))))
      return false;
    switch (condition.predicate) {
    case CmpInst::ICMP_NE:
      // It never passes the end, so that the comparison may be one that a larger step does not miss.
      if (counted->hasNoSignedWrap() &&
          evolution.isKnownPredicate(CmpInst::ICMP_SGE, counted->getStart(), condition.step))
        condition.predicate = CmpInst::ICMP_SLT;
      return true;
    case CmpInst::ICMP_SLT:
    case CmpInst::ICMP_ULT:
    case CmpInst::ICMP_SLE:
    case CmpInst::ICMP_ULE:
      return true;
    default:
      return false;
    }
  }

  /// Whether the threads of a block share so few iterations that most have less of them than would run at once: it goes
  /// to a small constant in steps of the threads of a block, whose number is not known.
  bool isSharedByBlock() const {
    auto *step = dyn_cast<SCEVUnknown>(stripCasts(plan.condition.step));
    auto *threads = step ? dyn_cast<IntrinsicInst>(step->getValue()) : nullptr;
    auto *bound = dyn_cast<ConstantInt>(plan.condition.bound);
    return threads && threads->getIntrinsicID() == Intrinsic::nvvm_read_ptx_sreg_ntid_x && bound &&
           bound->getValue().ule(uint64_t(wanted) * fewThreads);
  }

  /// Whether it has few iterations in each of another loop, as what fills a tile of workgroup memory has: what the
  /// other loop holds in registers leaves none for several at once.
  bool fillsTile() const {
    unsigned most = evolution.getSmallConstantMaxTripCount(&loop);
    return loop.getParentLoop() && most != 0 && most < fewestIterations;
  }

  static const SCEV *stripCasts(const SCEV *value) {
    while (auto *cast = dyn_cast<SCEVIntegralCastExpr>(value))
      value = cast->getOperand();
    return value;
  }

  /// Registers that addresses take: what is at a constant distance from another access, such as the other elements of a
  /// vector, has an offset in its instruction.
  unsigned addresses() const {
    SmallVector<const SCEV *> apart;
    for (Instruction *instruction : instructions) {
      if (!isa<LoadInst, StoreInst, AtomicRMWInst>(instruction))
        continue;
      const SCEV *address = evolution.getSCEV(addressOf(*instruction));
      if (llvm::none_of(apart, [&](const SCEV *other) {
            return other->getType() == address->getType() && isa<SCEVConstant>(evolution.getMinusSCEV(address, other));
          }))
        apart.push_back(address);
    }
    return apart.size();
  }

  /// Loads without those that another one takes along: elements of a vector, as its alignment shows.
  unsigned transfers() const {
    return llvm::count_if(instructions, [&](Instruction *instruction) {
      auto *load = dyn_cast<LoadInst>(instruction);
      return load && llvm::none_of(instructions, [&](Instruction *other) {
               auto *first = dyn_cast<LoadInst>(other);
               if (!first || first->getPointerOperandType() != load->getPointerOperandType())
                 return false;
               auto *distance = dyn_cast<SCEVConstant>(evolution.getMinusSCEV(
                   evolution.getSCEV(load->getPointerOperand()), evolution.getSCEV(first->getPointerOperand())));
               return distance && distance->getAPInt().isStrictlyPositive() &&
                      distance->getAPInt().ult(std::min<uint64_t>(first->getAlign().value(), widestTransfer));
             });
    });
  }

  /// Whether there are many iterations, as far as can be told: it goes to an end that is the same for all threads, such
  /// as the size of an array, in steps by which the threads of a warp could not share it, and it is not the inner one
  /// of two loops, such as that along the row of a small filter.
  bool isLong() const {
    auto *step = cast<SCEVConstant>(plan.condition.step);
    return !loop.getParentLoop() && step->getAPInt().ult(warpSize) &&
           isSameForAllThreads(*plan.condition.bound, mostSteps);
  }

  /// Whether what is done with the loads of an iteration takes so long that they are there when the next one begins.
  bool worksLong(unsigned loads) const {
    unsigned work = llvm::count_if(instructions, [&](Instruction *instruction) {
      return !taken.contains(instruction) && !isa<PHINode>(instruction) && !instruction->isTerminator();
    });
    return work > mostWork && work > mostWorkOfLoad * loads;
  }

  /// Whether four loads at once, of one iteration each, are few bytes under way, in a loop that is not the inner one of
  /// two.
  bool loadsAreNarrow() const {
    return !loop.getParentLoop() && llvm::all_of(instructions, [&](Instruction *instruction) {
      return !isa<LoadInst>(instruction) ||
             TypeSize::isKnownLE(layout.getTypeStoreSize(instruction->getType()), TypeSize::getFixed(narrow));
    });
  }

  /// Bytes that one iteration loads, at most, of memory that is not a workgroup's or a thread's own.
  uint64_t bytesUnderWay() const {
    uint64_t bytes = 0;
    for (Instruction *instruction : instructions)
      if (isa<LoadInst>(instruction) && !isOfGroupOrThread(*instruction))
        bytes += layout.getTypeStoreSize(instruction->getType()).getKnownMinValue();
    return bytes;
  }

  /// The branch that asks what the last branch asks, before the first iteration. Between it and the loop there is
  /// nothing that could not be computed before it.
  void findGuard() {
    BasicBlock *guard = plan.preheader->getSinglePredecessor();
    auto *branch = guard ? dyn_cast<BranchInst>(guard->getTerminator()) : nullptr;
    auto *compare = branch && branch->isConditional() ? dyn_cast<ICmpInst>(branch->getCondition()) : nullptr;
    if (!compare || analyses.loops.getLoopFor(guard) != loop.getParentLoop())
      return;
    unsigned enters = branch->getSuccessor(0) == plan.preheader ? 0 : 1;
    BasicBlock *outside = branch->getSuccessor(1 - enters);
    auto *leaves = dyn_cast<BranchInst>(plan.exit->getTerminator());
    if (!leaves || !leaves->isUnconditional() || leaves->getSuccessor(0) != outside ||
        &*plan.exit->getFirstNonPHIOrDbg() != leaves)
      return;
    CmpInst::Predicate predicate = enters == 0 ? compare->getPredicate() : compare->getInversePredicate();
    const SCEV *left = evolution.getSCEV(compare->getOperand(0)), *right = evolution.getSCEV(compare->getOperand(1));
    if (predicate != plan.condition.predicate) {
      std::swap(left, right);
      predicate = CmpInst::getSwappedPredicate(predicate);
    }
    if (predicate != plan.condition.predicate || left != plan.condition.start ||
        right != evolution.getSCEV(plan.condition.bound))
      return;
    for (Instruction &instruction : *plan.preheader)
      if (!instruction.isTerminator() && (isa<PHINode>(instruction) || instruction.mayReadOrWriteMemory() ||
                                          !isSafeToSpeculativelyExecute(&instruction)))
        return;
    plan.guard = guard;
    plan.outside = outside;
  }

  /// A value that the loop adds something constant to in each iteration.
  const SCEVAddRecExpr *recurrence(const SCEV *value) const {
    auto *found = dyn_cast<SCEVAddRecExpr>(value);
    return found && found->getLoop() == &loop && found->isAffine() ? found : nullptr;
  }

  /// Available at the beginning of an iteration, or computed from what is.
  bool isReady(Value *value) const {
    auto *instruction = dyn_cast<Instruction>(value);
    return !instruction || !loop.contains(instruction) || ready.contains(instruction);
  }

  /// Whether it could be carried out before everything else in the iteration, and would have been carried out anyway.
  bool isReadyNow(Instruction &instruction) {
    if (auto *phi = dyn_cast<PHINode>(&instruction))
      return phi->getParent() == plan.header && evolution.isSCEVable(phi->getType()) &&
             recurrence(evolution.getSCEV(phi));
    if (instruction.isTerminator() ||
        !llvm::all_of(instruction.operands(), [&](Value *operand) { return isReady(operand); }))
      return false;
    bool always = analyses.dominators.dominates(instruction.getParent(), plan.latch);
    if (auto *load = dyn_cast<LoadInst>(&instruction))
      return always && load->isSimple() && mayComeFirst(*load);
    return !instruction.mayReadOrWriteMemory() && (always || isSafeToSpeculativelyExecute(&instruction));
  }

  /// Whether a load is under a condition, and of other memory than all that the loop writes: the PTX compiler makes a
  /// predicate of the condition, and moves the load before the stores of earlier iterations.
  bool isConditionalButFree(LoadInst &load) {
    return load.isSimple() && !analyses.dominators.dominates(load.getParent(), plan.latch) &&
           llvm::all_of(writes,
                        [&](Instruction *write) { return areOfOtherMemory(load, *write, loop, analyses.aliases); });
  }

  /// Whether any of the loads that come first is of memory that takes long. What workgroup memory has is there soon,
  /// and loads under conditions ptxas puts beside each other in a loop that it unrolls itself.
  bool waitsForMemory() const {
    return llvm::any_of(
        taken, [](Instruction *instruction) { return isa<LoadInst>(instruction) && !isOfGroupOrThread(*instruction); });
  }

  /// Whether it goes on in steps by which the threads of a warp share it: too few iterations for comparisons of
  /// addresses before them, where another loop is around it.
  bool isSharedByWarp() const {
    auto *step = dyn_cast<SCEVConstant>(plan.condition.step);
    return !step || step->getAPInt().uge(warpSize);
  }

  /// Whether any load is of memory that nobody writes while the kernel runs, so that it can pass a barrier.
  bool readsWhatStays() const {
    return llvm::any_of(instructions, [](Instruction *instruction) {
      auto *load = dyn_cast<LoadInst>(instruction);
      auto *from = load ? dyn_cast<Argument>(getUnderlyingObject(load->getPointerOperand())) : nullptr;
      return load && (load->hasMetadata(LLVMContext::MD_invariant_load) ||
                      (from && from->hasNoAliasAttr() && from->onlyReadsMemory()));
    });
  }

  /// Whether all loads are done in each iteration, and what is done with them is in branches: such a loop ptxas does
  /// not unroll.
  bool choosesWhatToDo() const {
    constexpr unsigned blocksOfOneChoice = 2;
    return plan.blocks.size() > blocksOfOneChoice && llvm::all_of(instructions, [&](Instruction *instruction) {
             return !isa<LoadInst>(instruction) || analyses.dominators.dominates(instruction->getParent(), plan.latch);
           });
  }

  /// Whether it only reads memory of the workgroup, or the thread's own, in an inner loop, and what is done with that
  /// is in branches, or long: nothing waits for long, but ptxas does not unroll it either, and nvcc does.
  bool worksOnGroup() const {
    auto isElsewhere = [](Instruction *instruction) {
      return isa<LoadInst>(instruction) && !isOfGroupOrThread(*instruction);
    };
    auto isLoad = [](Instruction *instruction) { return isa<LoadInst>(instruction); };
    constexpr unsigned blocksOfOneChoice = 2;
    return loop.getParentLoop() && (plan.blocks.size() > blocksOfOneChoice || registerInstructions() > mostUnrolled) &&
           writes.empty() && isa<SCEVConstant>(plan.condition.step) && llvm::any_of(instructions, isLoad) &&
           llvm::none_of(instructions, isElsewhere);
  }

  /// Instructions of registers of 32 bits: twice as many for integers of 64.
  unsigned registerInstructions() const {
    unsigned count = 0;
    for (Instruction *instruction : instructions)
      if (!isa<PHINode>(instruction))
        count += sizeInPtx(*instruction) *
                 (isa<BinaryOperator, IntrinsicInst>(instruction) && instruction->getType()->isIntegerTy(64) ? 2 : 1);
    return count;
  }

  /// Whether a load that cannot come first is of a place that another one tells: ptxas puts such loads beside each
  /// other in the loop that it unrolls itself, and not in one that is unrolled already, where it has few registers for
  /// them.
  bool gathersLate() const {
    return llvm::any_of(instructions, [&](Instruction *instruction) {
      return isa<LoadInst>(instruction) && !taken.contains(instruction) && dependsOnLoad(*addressOf(*instruction));
    });
  }

  bool dependsOnLoad(Value &value) const {
    SmallVector<Value *> waiting = {&value};
    SmallPtrSet<Value *, 16> seen;
    while (!waiting.empty()) {
      auto *instruction = dyn_cast<Instruction>(waiting.pop_back_val());
      if (!instruction || !loop.contains(instruction) || !seen.insert(instruction).second)
        continue;
      if (isa<LoadInst>(instruction))
        return true;
      append_range(waiting, instruction->operand_values());
    }
    return false;
  }

  /// Adds an instruction, and those of the loop that it needs in this and in the next iterations. False: one of them
  /// comes too late.
  bool take(Instruction &instruction) {
    if (!loop.contains(&instruction) || !taken.insert(&instruction).second)
      return true;
    if (auto *phi = dyn_cast<PHINode>(&instruction); phi && phi->getParent() == plan.header) {
      auto *next = dyn_cast<Instruction>(phi->getIncomingValueForBlock(plan.latch));
      return !next || take(*next);
    }
    if (!isReadyNow(instruction))
      return false;
    return llvm::all_of(instruction.operands(), [&](Value *operand) {
      auto *definition = dyn_cast<Instruction>(operand);
      return !definition || take(*definition);
    });
  }

  bool mayComeFirst(LoadInst &load) {
    if (load.hasMetadata(LLVMContext::MD_invariant_load) || decided.contains(&load))
      return true;
    SmallVector<MayOverlap> checks;
    for (Instruction *write : writes)
      if (!areApart(load, *write, checks))
        return false;
    plan.checks.append(checks);
    decided.insert(&load);
    return true;
  }

  /// Whether a load can pass a store of the iterations that run at once; adds the comparison that shows it.
  bool areApart(LoadInst &load, Instruction &write, SmallVectorImpl<MayOverlap> &checks) {
    if (areOfOtherMemory(load, write, loop, analyses.aliases))
      return true;
    if (!isa<StoreInst>(write))
      return false;
    auto &store = cast<StoreInst>(write);
    if (isOneElement(load, store))
      return position[&load] < position[&store];
    auto *from = recurrence(evolution.getSCEV(load.getPointerOperand()));
    auto *to = recurrence(evolution.getSCEV(store.getPointerOperand()));
    TypeSize loaded = layout.getTypeStoreSize(load.getType());
    TypeSize stored = layout.getTypeStoreSize(store.getValueOperand()->getType());
    if (!from || !to || loaded.isScalable() || stored.isScalable())
      return false;
    MayOverlap pair;
    pair.load = from->getStart();
    pair.store = to->getStart();
    pair.loaded = loaded;
    pair.stored = stored;
    if (from->getStepRecurrence(evolution) != to->getStepRecurrence(evolution)) {
      pair.loadMoves = moves(*from);
      pair.storeMoves = moves(*to);
      // What a store under a condition does not reach may begin below the first address of all.
      bool always = analyses.dominators.dominates(store.getParent(), plan.latch);
      if (!always || !staysBelowBound() ||
          !canBeCompared(*load.getPointerOperandType(), *store.getPointerOperandType(), layout))
        return false;
      if (pair.loadMoves == 0 || pair.storeMoves == 0) {
        pair.loadStride = from->getStepRecurrence(evolution);
        pair.storeStride = to->getStepRecurrence(evolution);
        if (!plan.condition.step->isOne() || !mayBeStride(*pair.loadStride) || !mayBeStride(*pair.storeStride))
          return false;
      }
      checks.push_back(pair);
      return true;
    }
    pair.stride = from->getStepRecurrence(evolution);
    pair.storeComesFirst = position[&store] < position[&load];
    auto *stride = dyn_cast<SCEVConstant>(pair.stride);
    if (stride && (!stride->getAPInt().isStrictlyPositive() || stride->getAPInt().ugt(largestStep(*pair.stride))))
      return false;
    auto *distance = dyn_cast<SCEVConstant>(evolution.getMinusSCEV(pair.store, pair.load));
    if (distance && stride) {
      int64_t apart = distance->getAPInt().getSExtValue(), each = stride->getAPInt().getSExtValue();
      return apart <= (pair.storeComesFirst ? 0 : each) - int64_t(pair.stored) ||
             apart >= int64_t(plan.count - 1) * each + int64_t(pair.loaded);
    }
    if (!canBeCompared(*load.getPointerOperandType(), *store.getPointerOperandType(), layout))
      return false;
    checks.push_back(pair);
    return true;
  }

  /// Whether an address may move up by it, which is asked before the loop if it is not known.
  bool mayBeStride(const SCEV &stride) const {
    auto *product = dyn_cast<SCEVMulExpr>(&stride);
    auto *factor = product ? dyn_cast<SCEVConstant>(product->getOperand(0)) : nullptr;
    // Down, more likely, as where the counter goes down.
    if (factor && factor->getAPInt().isNegative())
      return false;
    return stride.getType()->getIntegerBitWidth() == 64 && !evolution.isKnownNegative(&stride) &&
           evolution.getUnsignedRangeMin(&stride).ult(largestStride);
  }

  /// Whether the counter does not come around before the loop ends. In 64 bits, no memory is as large as what would be
  /// reached then.
  bool staysBelowBound() {
    const LoopCondition &condition = plan.condition;
    auto *counted = cast<SCEVAddRecExpr>(evolution.getSCEV(condition.counter));
    if (counted->getType()->getIntegerBitWidth() == 64)
      return true;
    if (condition.step->isOne() && !CmpInst::isNonStrictPredicate(condition.predicate))
      return true;
    return CmpInst::isSigned(condition.predicate)     ? counted->hasNoSignedWrap()
           : CmpInst::isUnsigned(condition.predicate) ? counted->hasNoUnsignedWrap()
                                                      : false;
  }

  /// By how many bytes an address moves while the counter moves by one; 0 where it is not known.
  uint64_t moves(const SCEVAddRecExpr &address) {
    // A constant, and what it is multiplied with.
    auto split = [&](const SCEV *number) -> std::pair<uint64_t, const SCEV *> {
      if (auto *constant = dyn_cast<SCEVConstant>(number))
        return {constant->getAPInt().getLimitedValue(), nullptr};
      auto *product = dyn_cast<SCEVMulExpr>(number);
      auto *factor = product ? dyn_cast<SCEVConstant>(product->getOperand(0)) : nullptr;
      if (!factor)
        return {1, number};
      SmallVector<const SCEV *> others(drop_begin(product->operands()));
      return {factor->getAPInt().getLimitedValue(), evolution.getMulExpr(others)};
    };
    auto [bytes, stride] = split(address.getStepRecurrence(evolution));
    auto [steps, step] = split(plan.condition.step);
    return stride == step && steps != 0 && bytes % steps == 0 && bytes / steps <= largestElement ? bytes / steps : 0;
  }

  /// Whether two accesses reach the same element of an array, and none that another iteration of the turn reaches: its
  /// index moves as the counter does, in fewer bits than an address has.
  bool isOneElement(LoadInst &load, StoreInst &store) {
    const SCEV *address = evolution.getSCEV(load.getPointerOperand());
    auto *sum = dyn_cast<SCEVAddExpr>(address);
    if (!sum || address != evolution.getSCEV(store.getPointerOperand()))
      return false;
    const SCEV *moving = nullptr;
    for (const SCEV *part : sum->operands())
      if (!evolution.isLoopInvariant(part, &loop)) {
        if (moving)
          return false;
        moving = part;
      }
    uint64_t size = 1;
    if (auto *product = dyn_cast_or_null<SCEVMulExpr>(moving); product && product->getNumOperands() == 2)
      if (auto *factor = dyn_cast<SCEVConstant>(product->getOperand(0))) {
        size = factor->getAPInt().getLimitedValue(largestElement + 1);
        moving = product->getOperand(1);
      }
    auto *extended = dyn_cast_or_null<SCEVIntegralCastExpr>(moving);
    auto *index = extended && !isa<SCEVTruncateExpr>(extended) ? recurrence(extended->getOperand()) : nullptr;
    auto fits = [&](Type *type) {
      TypeSize bytes = layout.getTypeStoreSize(type);
      return !bytes.isScalable() && bytes <= size;
    };
    return index && index->getStepRecurrence(evolution) == plan.condition.step && size <= largestElement &&
           fits(load.getType()) && fits(store.getValueOperand()->getType());
  }

  Loop &loop;
  LoopAnalyses analyses;
  ScalarEvolution &evolution;
  const DataLayout &layout;
  /// Iterations at once that were asked for; the plan may have fewer.
  const unsigned wanted;
  /// Whether something in the body becomes branches.
  bool isHeavy = false, isConvergent = false;
  /// Whether threads look at each other's registers, which no barrier keeps from being done for two iterations at once.
  bool exchanges = false;
  SmallVector<Instruction *> instructions;
  DenseMap<Instruction *, unsigned> position;
  /// Stores and atomic operations.
  SmallVector<Instruction *> writes;
  unsigned accesses = 0;
  /// In instructions of PTX.
  unsigned size = 0;
  /// Of integers, by what is not constant.
  unsigned divisions = 0;
  SmallPtrSet<Instruction *, 16> ready, taken, decided;
  InterleavePlan plan;
};

} // namespace

bool areOfOtherMemory(Instruction &one, Instruction &other, const Loop &loop, AAResults &aliases) {
  const Value *here = getUnderlyingObject(addressOf(one), 0);
  const Value *there = getUnderlyingObject(addressOf(other), 0);
  if (!loop.isLoopInvariant(here) || !loop.isLoopInvariant(there))
    return false;
  if ((isKernelArgument(here) && isOfGroupOrThread(other)) || (isKernelArgument(there) && isOfGroupOrThread(one)))
    return true;
  return aliases.isNoAlias(MemoryLocation::getBeforeOrAfter(here, one.getAAMetadata()),
                           MemoryLocation::getBeforeOrAfter(there, other.getAAMetadata()));
}

bool canBeCompared(Type &one, Type &other, const DataLayout &layout) {
  // Of a buffer's resource and its offset, the address is not the offset alone.
  if (layout.getPointerTypeSizeInBits(&one) != layout.getIndexTypeSizeInBits(&one) ||
      layout.getPointerTypeSizeInBits(&other) != layout.getIndexTypeSizeInBits(&other))
    return false;
  auto isWhole = [](Type &type) {
    return type.getPointerAddressSpace() == 0 || type.getPointerAddressSpace() == globalSpace;
  };
  return &one == &other || (isWhole(one) && isWhole(other));
}

void askOfTheNext(Value *&counter, Value *&bound, CmpInst::Predicate predicate, Loop &loop,
                  ScalarEvolution &evolution) {
  auto *phi = dyn_cast<PHINode>(counter);
  auto *end = dyn_cast<ConstantInt>(bound);
  if (!phi || !end || phi->getParent() != loop.getHeader() || !loop.getLoopLatch() || !CmpInst::isRelational(predicate))
    return;
  auto *counted = dyn_cast<SCEVAddRecExpr>(evolution.getSCEV(phi));
  auto *step = counted && counted->getLoop() == &loop && counted->isAffine()
                   ? dyn_cast<SCEVConstant>(counted->getStepRecurrence(evolution))
                   : nullptr;
  if (!step)
    return;
  // Neither sum may overflow, signed or not: what nobody asked of the next value before may be poison there.
  auto fits = [&](const APInt &value) {
    bool overflows = false, wraps = false;
    (void)value.sadd_ov(step->getAPInt(), overflows);
    (void)value.uadd_ov(step->getAPInt(), wraps);
    return !overflows && !wraps;
  };
  if (!fits(end->getValue()) || !fits(evolution.getUnsignedRangeMax(counted)) ||
      !fits(evolution.getSignedRangeMax(counted)))
    return;
  counter = phi->getIncomingValueForBlock(loop.getLoopLatch());
  bound = ConstantInt::get(end->getType(), end->getValue() + step->getAPInt());
}

uint64_t largestStep(const SCEV &step) { return uint64_t(1) << (step.getType()->getIntegerBitWidth() / 2 + 4); }

std::optional<InterleavePlan> planInterleaving(Loop &loop, LoopAnalyses analyses, unsigned count) {
  // What a front end says of a loop stays; but not that it be unrolled, however often.
  bool isToBeUnrolled =
      findOptionMDForLoop(&loop, "llvm.loop.unroll.enable") &&
      llvm::none_of(ArrayRef<StringRef>({"disable", "count", "full", "runtime.disable"}),
                    [&](StringRef more) { return findOptionMDForLoop(&loop, ("llvm.loop.unroll." + more).str()); });
  if (!loop.isInnermost() || (hasUnrollTransformation(&loop) != TM_Unspecified && !isToBeUnrolled) ||
      findStringMetadataForLoop(&loop, "llvm.loop.interleave.count"))
    return std::nullopt;
  return Planner(loop, analyses, count).make();
}

} // namespace gpulower::interleave
