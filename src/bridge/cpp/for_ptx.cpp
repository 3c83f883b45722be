// Passes over LLVM IR that becomes PTX. The PTX compiler unrolls loops, and schedules within blocks: what it makes
// depends on the shape in which it gets them. docs/code-quality.md has measurements.

#include "for_ptx.h"
#include "interleave.h"
#include "passes.h"

#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/Transforms/InstCombine/InstCombine.h"
#include "llvm/Transforms/Scalar/LICM.h"
#include "llvm/Transforms/Scalar/LoopPassManager.h"
#include "llvm/Transforms/Scalar/LoopUnrollPass.h"
#include "llvm/Transforms/Scalar/SROA.h"
#include "llvm/Transforms/Utils/LoopUtils.h"
#include "llvm/Transforms/Utils/UnrollLoop.h"

using namespace llvm;

using gpulower::becomesBranches;

namespace {

/// How far LLVM unrolls: as `default<O3>` does.
constexpr int unrollingLevel = 3;

/// Loops whose number of iterations is not known are left to the PTX compiler, which unrolls them four times if they
/// are small. LLVM would unroll them as far as its limit on instructions goes, up to eight times, and the PTX compiler
/// would unroll the result four times again: more iterations than such a loop often has, so that most of it runs in the
/// loops for the rest.
struct LeaveUnrolling : PassInfoMixin<LeaveUnrolling> {
  PreservedAnalyses run(Function &function, FunctionAnalysisManager &analyses) {
    auto &loops = analyses.getResult<LoopAnalysis>(function);
    auto &evolution = analyses.getResult<ScalarEvolutionAnalysis>(function);
    for (Loop *loop : loops.getLoopsInPreorder())
      // What a front end says of a loop stays.
      if (hasUnrollTransformation(loop) == TM_Unspecified && evolution.getSmallConstantTripCount(loop) == 0)
        addStringMetadataToLoop(loop, "llvm.loop.unroll.runtime.disable", 1);
    return PreservedAnalyses::all();
  }
};

/// Loads before divisions and square roots: the PTX compiler makes branches of those, over which it moves no load, so
/// that a thread would wait for one load after the other.
struct LoadBeforeBranches : PassInfoMixin<LoadBeforeBranches> {
  /// How many registers loads hold that wait.
  static constexpr unsigned mostRegisters = 8;
  static constexpr unsigned mostForAddress = 12;

  PreservedAnalyses run(Function &function, FunctionAnalysisManager &) {
    bool changed = false;
    for (BasicBlock &block : function)
      changed |= runOnBlock(block);
    if (!changed)
      return PreservedAnalyses::all();
    PreservedAnalyses preserved;
    preserved.preserveSet<CFGAnalyses>();
    return preserved;
  }

private:
  static bool runOnBlock(BasicBlock &block) {
    Instruction *branches = nullptr;
    unsigned registers = 0;
    bool changed = false;
    for (Instruction &instruction : make_early_inc_range(block)) {
      if (isa<PHINode>(instruction))
        continue;
      if (instruction.mayWriteToMemory() || !isGuaranteedToTransferExecutionToSuccessor(&instruction)) {
        branches = nullptr;
        registers = 0;
      } else if (becomesBranches(instruction)) {
        branches = branches ? branches : &instruction;
      } else if (auto *load = dyn_cast<LoadInst>(&instruction); load && branches && load->isSimple()) {
        unsigned more = gpulower::registersOf(*load, load->getDataLayout());
        if (registers + more > mostRegisters || !moveBefore(*load, *branches))
          continue;
        registers += more;
        changed = true;
      }
    }
    return changed;
  }

  /// Moves a load, and what its address is computed with, where `place` is the first instruction behind it. Nothing
  /// between them writes.
  static bool moveBefore(LoadInst &load, Instruction &place) {
    SmallVector<Instruction *> needed;
    SmallVector<Instruction *> worklist{&load};
    while (!worklist.empty()) {
      Instruction *instruction = worklist.pop_back_val();
      if (is_contained(needed, instruction))
        continue;
      needed.push_back(instruction);
      bool moves = instruction == &load || (!instruction->mayReadOrWriteMemory() && !isa<CallInst>(instruction) &&
                                            !becomesBranches(*instruction));
      if (!moves || needed.size() > mostForAddress)
        return false;
      for (Value *operand : instruction->operands())
        if (auto *definition = dyn_cast<Instruction>(operand);
            definition && definition->getParent() == place.getParent() && !isa<PHINode>(definition) &&
            (definition == &place || place.comesBefore(definition)))
          worklist.push_back(definition);
    }
    llvm::sort(needed, [](Instruction *left, Instruction *right) { return left->comesBefore(right); });
    for (Instruction *instruction : needed)
      instruction->moveBefore(place.getIterator());
    return true;
  }
};

/// LLVM's unrolling, and what tidies the copies: where nothing was unrolled, the passes before have tidied everything.
///
/// Small inner loops of a number of iterations that is known, and too large to unroll all of them, are left to the PTX
/// compiler as well: LLVM would unroll them by a divisor of that number.
struct UnrollLoops : PassInfoMixin<UnrollLoops> {
  static constexpr size_t mostInstructions = 64;
  static constexpr StringLiteral isLeft = "gpulower.loop.unroll.left", isDisabled = "llvm.loop.unroll.disable";

  PreservedAnalyses run(Function &function, FunctionAnalysisManager &analyses) {
    size_t before = sizeOf(function);
    auto &evolution = analyses.getResult<ScalarEvolutionAnalysis>(function);
    auto &target = analyses.getResult<TargetIRAnalysis>(function);
    for (Loop *loop : analyses.getResult<LoopAnalysis>(function).getLoopsInPreorder())
      if (isWorthUnrollingWhole(*loop, evolution, target)) {
        addStringMetadataToLoop(loop, "llvm.loop.unroll.full");
      } else if (isForPtxas(*loop, evolution) || isFewOutside(*loop, evolution)) {
        addStringMetadataToLoop(loop, isLeft.data(), 1);
        addStringMetadataToLoop(loop, isDisabled.data(), 1);
      }
    // Also what runs at most a few times: then the loads of one iteration do not wait for the end of another.
    LoopUnrollOptions options = LoopUnrollOptions(unrollingLevel).setUpperBound(true);
    PreservedAnalyses preserved = LoopUnrollPass(options).run(function, analyses);
    analyses.invalidate(function, preserved);
    for (Loop *loop : analyses.getResult<LoopAnalysis>(function).getLoopsInPreorder())
      if (findStringMetadataForLoop(loop, isLeft))
        loop->setLoopID(
            makePostTransformationMetadata(function.getContext(), loop->getLoopID(), {isLeft, isDisabled}, {}));
    if (sizeOf(function) == before)
      return preserved;
    FunctionPassManager tidy;
    tidy.addPass(SROAPass(SROAOptions::PreserveCFG));
    tidy.addPass(InstCombinePass());
    tidy.addPass(createFunctionToLoopPassAdaptor(LICMPass(LICMOptions()), /*UseMemorySSA=*/true));
    preserved.intersect(tidy.run(function, analyses));
    return preserved;
  }

private:
  /// A loop that ptxas does not unroll: with branches in it, or too short for it. LLVM's limit is 300 instructions;
  /// nvcc's is at 400 (measured with loops of several lengths and bodies).
  static bool isWorthUnrollingWhole(const Loop &loop, ScalarEvolution &evolution, const TargetTransformInfo &target) {
    constexpr unsigned mostUnrolled = 400, ofLoopItself = 2;
    unsigned count = evolution.getSmallConstantTripCount(&loop);
    bool isLeft = loop.getNumBlocks() == 1 && isForPtxas(loop, evolution);
    if (count == 0 || !loop.isInnermost() || isLeft || hasUnrollTransformation(&loop) != TM_Unspecified)
      return false;
    SmallPtrSet<const Value *, 4> ephemeral;
    UnrollCostEstimator cost(&loop, target, ephemeral, ofLoopItself);
    return cost.canUnroll() && (cost.getRolledLoopSize() - ofLoopItself) * count <= mostUnrolled;
  }

  /// An outermost loop that ends sooner or later, but of a few iterations at most, with branches in it, which would
  /// come between the loads.
  static bool isFewOutside(const Loop &loop, ScalarEvolution &evolution) {
    // LLVM's own limit (`UnrollMaxUpperBound`).
    constexpr unsigned mostIterations = 8;
    unsigned most = evolution.getSmallConstantMaxTripCount(&loop);
    return !loop.getParentLoop() && loop.getNumBlocks() > 1 && hasUnrollTransformation(&loop) == TM_Unspecified &&
           most != 0 && most <= mostIterations && evolution.getSmallConstantTripCount(&loop) == 0;
  }

  static bool isForPtxas(const Loop &loop, ScalarEvolution &evolution) {
    size_t size = 0;
    for (const BasicBlock *block : loop.blocks())
      size += block->size();
    return loop.isInnermost() && size <= mostInstructions && hasUnrollTransformation(&loop) == TM_Unspecified &&
           evolution.getSmallConstantTripCount(&loop) >= gpulower::interleave::fewestIterations;
  }

  /// Without what the pass adds to every loop that a value comes out of.
  static size_t sizeOf(const Function &function) {
    size_t size = 0;
    for (const BasicBlock &block : function)
      size += block.size() - size_t(llvm::range_size(block.phis()));
    return size;
  }
};

} // namespace

unsigned gpulower::registersOf(const Value &value, const DataLayout &layout) {
  uint64_t bits = layout.getTypeSizeInBits(value.getType()).getKnownMinValue();
  return std::max<uint64_t>(1, divideCeil(bits, 32));
}

bool gpulower::becomesBranches(const Instruction &instruction) {
  switch (instruction.getOpcode()) {
  case Instruction::FDiv:
  case Instruction::FRem:
    return !instruction.hasApproxFunc();
  case Instruction::UDiv:
  case Instruction::SDiv:
  case Instruction::URem:
  case Instruction::SRem:
    return instruction.getType()->getScalarSizeInBits() > 32 && !isa<Constant>(instruction.getOperand(1));
  case Instruction::Call:
    switch (cast<CallInst>(instruction).getIntrinsicID()) {
    case Intrinsic::sqrt:
    case Intrinsic::nvvm_sqrt_rn_f:
    case Intrinsic::nvvm_sqrt_rn_ftz_f:
    case Intrinsic::nvvm_sqrt_f:
    case Intrinsic::nvvm_sqrt_rn_d:
    case Intrinsic::nvvm_div_rn_f:
    case Intrinsic::nvvm_div_rn_ftz_f:
    case Intrinsic::nvvm_div_rn_d:
      return true;
    default:
      return false;
    }
  default:
    return false;
  }
}

void gpulower::addPassesForPtx(PassBuilder &builder) {
  nameFunctionPass<LeaveUnrolling>(builder, "gpulower-leave-unrolling");
  nameFunctionPass<UnrollLoops>(builder, "gpulower-unroll");
  nameFunctionPass<UnrollForArrays>(builder, "gpulower-unroll-for-arrays");
  nameFunctionPass<ReplaceMergedAddresses>(builder, "gpulower-replace-merged-addresses");
  nameFunctionPass<CompareAgain>(builder, "gpulower-compare-again");
  nameFunctionPass<ExpandCopies>(builder, "gpulower-expand-copies");
  nameFunctionPass<LoadBeforeBranches>(builder, "gpulower-load-before-branches");
  nameFunctionPass<ComputeEarly>(builder, "gpulower-compute-early");
  nameFunctionPass<RotateRemainders>(builder, "gpulower-rotate-remainders");
  nameFunctionPass<BranchToRareEnds>(builder, "gpulower-branch-to-rare-ends");
  // LLVM's own name for it stands for the second level.
  builder.registerPipelineParsingCallback(
      [](StringRef name, LoopPassManager &passes, ArrayRef<PassBuilder::PipelineElement>) {
        if (name == "gpulower-unroll-whole")
          passes.addPass(LoopFullUnrollPass(unrollingLevel));
        else if (name == "gpulower-count-bits")
          passes.addPass(gpulower::CountBits());
        else
          return false;
        return true;
      });
  builder.registerVectorizerStartEPCallback(
      [](FunctionPassManager &passes, OptimizationLevel) { passes.addPass(LeaveUnrolling()); });
  builder.registerOptimizerLastEPCallback([](ModulePassManager &passes, OptimizationLevel level, ThinOrFullLTOPhase) {
    if (level != OptimizationLevel::O0)
      passes.addPass(createModuleToFunctionPassAdaptor(LoadBeforeBranches()));
  });
}
