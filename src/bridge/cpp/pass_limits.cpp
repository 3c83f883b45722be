#include "pass_limits.h"

#include "watch.h"

#include "llvm/IR/Function.h"

using namespace llvm;

namespace gpulower {

/// Most instructions of a block in which the SLP vectorizer looks for vectors. From each instruction on it searches for trees
/// of others, in the whole block (`HorizontalReduction::tryToReduce`): 3 s for 6000 loads that are combined into one value,
/// 48 s for 24,000.
constexpr size_t largestBlock = 4000;

/// A pass of AMD's code generation that compares each load of a block with the others: 20 s for 8000 in a row.
constexpr StringRef loadStoreVectorizer = "GPU Load and Store Vectorizer";

/// On functions that do without it.
constexpr StringRef mark = "gpulower-large-block";

static size_t sizeOfLargestBlock(const Function &function) {
  size_t largest = 0;
  for (const BasicBlock &block : function)
    largest = std::max(largest, block.size());
  return largest;
}

bool PassLimits::isAllowed(StringRef pass, const Any &unit) {
  if (auto *function = any_cast<const Function *>(&unit)) {
    if (pass != "SLPVectorizerPass" || sizeOfLargestBlock(**function) <= largestBlock)
      return true;
    report(pass, (*function)->getName());
    return false;
  }
  return true;
}

void PassLimits::mark(Module &module) {
  if (!module.getTargetTriple().isAMDGPU())
    return;
  for (Function &function : module)
    if (sizeOfLargestBlock(function) > largestBlock) {
      function.addFnAttr(gpulower::mark);
      report(loadStoreVectorizer, function.getName());
    }
}

CodeGenerationLimits::CodeGenerationLimits(Module &module) : context(module.getContext()) {
  for (Function &function : module)
    if (function.hasFnAttribute(gpulower::mark))
      marked.insert(("function (" + function.getName() + ")").str());
  context.setOptPassGate(*this);
}

CodeGenerationLimits::~CodeGenerationLimits() { context.setOptPassGate(getGlobalPassGate()); }

bool CodeGenerationLimits::shouldRunPass(StringRef pass, StringRef unit) const {
  return pass != loadStoreVectorizer || !marked.contains(unit);
}

void PassLimits::attach(PassInstrumentationCallbacks &callbacks) {
  callbacks.registerShouldRunOptionalPassCallback([this](StringRef pass, Any unit) {
    return !isToEnd(pass) && isAllowed(pass, unit);
  });
}

} // namespace gpulower
