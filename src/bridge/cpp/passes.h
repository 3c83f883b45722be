// What passes over LLVM IR need: their analyses, and their names in a pipeline.
#ifndef GPULOWER_BRIDGE_PASSES_H
#define GPULOWER_BRIDGE_PASSES_H

#include "llvm/Passes/PassBuilder.h"

namespace gpulower {

/// The analyses that passes ask for, of all units of a module.
struct Analyses {
  explicit Analyses(llvm::PassBuilder &builder) {
    builder.registerModuleAnalyses(modules);
    builder.registerCGSCCAnalyses(components);
    builder.registerFunctionAnalyses(functions);
    builder.registerLoopAnalyses(loops);
    builder.crossRegisterProxies(loops, functions, components, modules);
  }

  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
};

/// Makes a pass over functions known to `builder` under a name, for pipelines as text.
template <typename Pass> void nameFunctionPass(llvm::PassBuilder &builder, llvm::StringRef name) {
  builder.registerPipelineParsingCallback([name](llvm::StringRef asked, llvm::FunctionPassManager &passes,
                                                 llvm::ArrayRef<llvm::PassBuilder::PipelineElement>) {
    if (asked != name)
      return false;
    passes.addPass(Pass());
    return true;
  });
}

} // namespace gpulower

#endif
