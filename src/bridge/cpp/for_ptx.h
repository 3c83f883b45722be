// What LLVM's pipeline does differently for PTX, which is compiled once more.
#ifndef GPULOWER_BRIDGE_FOR_PTX_H
#define GPULOWER_BRIDGE_FOR_PTX_H

#include "llvm/Analysis/LoopAnalysisManager.h"
#include "llvm/Passes/PassBuilder.h"

namespace llvm {
class LPMUpdater;
}

namespace gpulower {

/// Adds our passes to the pipelines that `builder` will build.
void addPassesForPtx(llvm::PassBuilder &builder);

/// Asks that loops be unrolled whole, whose counters are indices of small arrays that can be in registers then.
struct UnrollForArrays : llvm::PassInfoMixin<UnrollForArrays> {
  llvm::PreservedAnalyses run(llvm::Function &function, llvm::FunctionAnalysisManager &analyses);
};

/// Chooses numbers in place of the addresses of variables of a thread, so that these can be in registers.
struct ReplaceMergedAddresses : llvm::PassInfoMixin<ReplaceMergedAddresses> {
  llvm::PreservedAnalyses run(llvm::Function &function, llvm::FunctionAnalysisManager &analyses);
};

/// Counts the bits of a number by `ctpop` where a loop takes them away one by one.
struct CountBits : llvm::PassInfoMixin<CountBits> {
  llvm::PreservedAnalyses run(llvm::Loop &loop, llvm::LoopAnalysisManager &analyses,
                              llvm::LoopStandardAnalysisResults &results, llvm::LPMUpdater &updater);
};

/// Compares again, after a loop, what was compared before it.
struct CompareAgain : llvm::PassInfoMixin<CompareAgain> {
  llvm::PreservedAnalyses run(llvm::Function &function, llvm::FunctionAnalysisManager &analyses);
};

/// Reads all that a copy of a few bytes copies before it writes any of it.
struct ExpandCopies : llvm::PassInfoMixin<ExpandCopies> {
  llvm::PreservedAnalyses run(llvm::Function &function, llvm::FunctionAnalysisManager &analyses);
};

/// Computes what ends lives of values where these values are, and marks functions in which it did.
struct ComputeEarly : llvm::PassInfoMixin<ComputeEarly> {
  llvm::PreservedAnalyses run(llvm::Function &function, llvm::FunctionAnalysisManager &analyses);
};

/// Puts short ends of a kernel, beside which the others go on, behind everything else.
struct BranchToRareEnds : llvm::PassInfoMixin<BranchToRareEnds> {
  llvm::PreservedAnalyses run(llvm::Function &function, llvm::FunctionAnalysisManager &analyses);
};

/// Carries remainders of a counter from one iteration to the next, where several are each other's next.
struct RotateRemainders : llvm::PassInfoMixin<RotateRemainders> {
  llvm::PreservedAnalyses run(llvm::Function &function, llvm::FunctionAnalysisManager &analyses);
};

/// How many registers of 32 bits a value takes.
unsigned registersOf(const llvm::Value &value, const llvm::DataLayout &layout);

/// PTX ISA: div.rn, div.full and sqrt.rn; ptxas makes of them a fast path and a call.
bool becomesBranches(const llvm::Instruction &instruction);

} // namespace gpulower

#endif
