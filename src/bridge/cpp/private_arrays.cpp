// Small arrays of a thread, and vectors, whose elements loops go over. Registers have no index: an array is in
// registers only where every index is known, that is, where its loops are unrolled whole, and so is a vector. LLVM's
// limit on that looks at the instructions alone; what an array in memory costs (a transfer and its latency for every
// access) is not in it. AMD's target tells LLVM so (`AMDGPUTTIImpl::getUnrollingPreferences`), NVIDIA's does not.

#include "for_ptx.h"

#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Transforms/Utils/LoopUtils.h"

using namespace llvm;

namespace {

using Loops = SmallSetVector<Loop *, 8>;

/// A thread has 255 registers of 4 bytes; half of them for arrays leaves something to compute with.
constexpr uint64_t mostBytes = 512;

/// Iterations of a loop, and instructions of all copies in a function. nvcc unrolls as far: its machine code of a
/// transform of 512 points, whose two loops have 2,000 instructions of LLVM IR when they are unrolled, has 4,096.
constexpr unsigned mostIterations = 64;
constexpr uint64_t mostInstructions = 8192;

class Unroller {
public:
  Unroller(Function &function, LoopInfo &loops, ScalarEvolution &evolution)
      : function(function), loops(loops), evolution(evolution) {}

  void run() {
    for (Instruction &instruction : instructions(function)) {
      Loops needed;
      if (isInRegistersAfter(instruction, needed))
        choose(needed);
    }
    for (Loop *loop : chosen)
      addStringMetadataToLoop(loop, "llvm.loop.unroll.full");
  }

private:
  Function &function;
  LoopInfo &loops;
  ScalarEvolution &evolution;
  Loops chosen;

  void choose(const Loops &needed) {
    Loops both = chosen;
    both.insert_range(needed);
    if (both.size() > chosen.size() && sizeAfter(both) <= mostInstructions)
      chosen = both;
  }

  /// Whether an array, or an element of a vector, is in registers once the loops are unrolled that are added to
  /// `needed`.
  bool isInRegistersAfter(Instruction &instruction, Loops &needed) {
    if (auto *array = dyn_cast<AllocaInst>(&instruction)) {
      std::optional<TypeSize> size = array->getAllocationSize(function.getDataLayout());
      return array->isStaticAlloca() && size && !size->isScalable() && size->getFixedValue() <= mostBytes &&
             hasKnownAddressesAfter(*array, needed);
    }
    if (auto *element = dyn_cast<ExtractElementInst>(&instruction))
      return isKnownAfter(*element->getIndexOperand(), needed);
    auto *changed = dyn_cast<InsertElementInst>(&instruction);
    return changed && isKnownAfter(*changed->getOperand(2), needed);
  }

  /// Whether all accesses have known addresses once the loops are unrolled that are added to `needed`.
  bool hasKnownAddressesAfter(AllocaInst &array, Loops &needed) {
    SmallVector<Instruction *> pointers = {&array};
    SmallPtrSet<PHINode *, 8> seen;
    while (!pointers.empty()) {
      Instruction *pointer = pointers.pop_back_val();
      for (User *user : pointer->users()) {
        auto *instruction = cast<Instruction>(user);
        if (auto *address = dyn_cast<GetElementPtrInst>(instruction)) {
          if (!llvm::all_of(address->indices(), [&](Use &index) { return isKnownAfter(*index, needed); }))
            return false;
          pointers.push_back(address);
        } else if (isa<AddrSpaceCastInst>(instruction)) {
          pointers.push_back(instruction);
        } else if (auto *merged = dyn_cast<PHINode>(instruction)) {
          if (seen.insert(merged).second) {
            if (!isKnownAfter(*merged, needed))
              return false;
            pointers.push_back(merged);
          }
        } else if (auto *store = dyn_cast<StoreInst>(instruction)) {
          if (!store->isSimple() || store->getValueOperand() == pointer)
            return false;
        } else if (auto *load = dyn_cast<LoadInst>(instruction)) {
          if (!load->isSimple())
            return false;
        } else if (auto *memory = dyn_cast<MemIntrinsic>(instruction)) {
          if (memory->isVolatile() || !isa<ConstantInt>(memory->getLength()))
            return false;
        } else if (!instruction->isLifetimeStartOrEnd()) {
          return false;
        }
      }
    }
    return true;
  }

  bool isKnownAfter(Value &value, Loops &needed) {
    SmallPtrSet<Instruction *, 16> assumed;
    return isKnownAfter(value, needed, assumed);
  }

  /// Whether a value is a constant, or an address in an array, once loops are unrolled; they are added to `needed`.
  /// What `assumed` has was asked already, or is known in an iteration if it is in the one before.
  bool isKnownAfter(Value &value, Loops &needed, SmallPtrSetImpl<Instruction *> &assumed, unsigned depth = 0) {
    if (isa<Constant, AllocaInst>(value))
      return true;
    auto *instruction = dyn_cast<Instruction>(&value);
    if (!instruction || depth == 16)
      return false;
    if (!assumed.insert(instruction).second)
      return true;
    if (auto *merged = dyn_cast<PHINode>(instruction)) {
      Loop *loop = loops.getLoopFor(merged->getParent());
      if (loop && loop->getHeader() == merged->getParent()) {
        if (!canUnrollAfter(*loop, needed, assumed, depth))
          return false;
        needed.insert(loop);
      } else if (!merged->hasConstantValue()) {
        return false;
      }
      return llvm::all_of(merged->incoming_values(),
                          [&](Use &incoming) { return isKnownAfter(*incoming, needed, assumed, depth + 1); });
    }
    if (auto *load = dyn_cast<LoadInst>(instruction)) {
      auto *table = dyn_cast<GlobalVariable>(getUnderlyingObject(load->getPointerOperand()));
      if (!load->isSimple() || !table || !table->isConstant() || !table->hasDefinitiveInitializer())
        return false;
      auto *address = dyn_cast<Instruction>(load->getPointerOperand());
      return !address || isKnownAfter(*address, needed, assumed, depth + 1);
    }
    return isa<BinaryOperator, CastInst, SelectInst, CmpInst, GetElementPtrInst, FreezeInst>(instruction) &&
           llvm::all_of(instruction->operands(),
                        [&](Use &operand) { return isKnownAfter(*operand, needed, assumed, depth + 1); });
  }

  /// Whether the number of iterations is a constant, now or in each copy of loops around it, which are added to
  /// `needed`, as that of the inner loop of `for (i = 0; i < 4; ++i) for (j = 0; j < i; ++j)` is.
  bool canUnrollAfter(Loop &loop, Loops &needed, SmallPtrSetImpl<Instruction *> &assumed, unsigned depth) {
    unsigned count = evolution.getSmallConstantMaxTripCount(&loop);
    if (!loop.getLoopPredecessor() || count == 0 || count > mostIterations ||
        hasUnrollTransformation(&loop) != TM_Unspecified)
      return false;
    if (evolution.getSmallConstantTripCount(&loop) != 0)
      return true;
    BasicBlock *latch = loop.getLoopLatch();
    auto *branch = latch && loop.getExitingBlock() == latch ? dyn_cast<BranchInst>(latch->getTerminator()) : nullptr;
    return branch && branch->isConditional() && isKnownAfter(*branch->getCondition(), needed, assumed, depth + 1);
  }

  /// Instructions in all copies of the loops.
  uint64_t sizeAfter(const Loops &unrolled) {
    uint64_t sum = 0;
    for (BasicBlock &block : function) {
      uint64_t copies = 1;
      for (Loop *loop = loops.getLoopFor(&block); loop; loop = loop->getParentLoop())
        if (unrolled.contains(loop))
          copies = std::min(copies * evolution.getSmallConstantMaxTripCount(loop), mostInstructions);
      if (copies > 1)
        sum += copies * block.size();
    }
    return sum;
  }
};

} // namespace

PreservedAnalyses gpulower::UnrollForArrays::run(Function &function, FunctionAnalysisManager &analyses) {
  Unroller(function, analyses.getResult<LoopAnalysis>(function), analyses.getResult<ScalarEvolutionAnalysis>(function))
      .run();
  return PreservedAnalyses::all();
}
