#include "pass_limits.h"

#include "narrow_integers.h"
#include "watch.h"

#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/LoopPass.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/Function.h"

using namespace llvm;

namespace gpulower {

/// Most instructions of a block in which the SLP vectorizer looks for vectors. From each instruction on it searches for
/// trees of others, in the whole block (`HorizontalReduction::tryToReduce`): 3 s for 6000 loads that are combined into
/// one value, 48 s for 24,000.
constexpr size_t largestBlock = 4000;

/// A pass of AMD's code generation that compares each load of a block with the others: 20 s for 8000 in a row.
constexpr StringRef loadStoreVectorizer = "GPU Load and Store Vectorizer";

/// What the gate calls it.
constexpr StringRef loadStoreVectorizerArgument = "load-store-vectorizer";

/// Loop strength reduction, as the gate knows it.
constexpr StringRef loopReduction = "Loop Strength Reduction";

/// As the pass that prepares for selection is called.
constexpr StringRef preparation = "CodeGen Prepare";

/// What a function without strength reduction does without, as the gate knows it, besides what is sunk: ptxas does that
/// by itself.
constexpr StringRef withReduction[] = {"slsr", "early-cse"};

/// As the gate knows it.
constexpr StringRef sinking = "machine-sink";

/// Global value numbering, which code generation for AMD does once more, in 6 percent of its instructions. Of 154
/// kernels 145 are the same without it, and all together have 3 more of 21,688 instructions.
constexpr StringRef numbering = "gvn";

/// Most levels of a nest of loops in a function that is optimised as others are. Each pass over loops goes through the
/// blocks of a loop, those of the loops inside of it included: through those of the innermost one as often as there are
/// levels. 900 levels took 47 s.
constexpr unsigned deepestNest = 64;

/// What runs on functions with a deeper one.
constexpr StringRef simplePasses[] = {"SROAPass", "EarlyCSEPass", "SimplifyCFGPass", "InstCombinePass",
                                      "InferAddressSpacesPass"};

/// What they do without.
constexpr StringRef allButSimplePasses = "passes but the simplest";

/// On functions that do without it.
constexpr StringRef mark = "gpulower-large-block";

static size_t sizeOfLargestBlock(const Function &function) {
  size_t largest = 0;
  for (const BasicBlock &block : function)
    largest = std::max(largest, block.size());
  return largest;
}

/// Whether a nest has more levels, this loop's own included.
static bool isDeeperThan(unsigned levels, const Loop &loop) {
  if (levels == 0)
    return true;
  return any_of(loop, [&](const Loop *inner) { return isDeeperThan(levels - 1, *inner); });
}

/// As the loops of a function are now.
static bool hasDeepNest(const Function &function) {
  if (function.size() <= deepestNest)
    return false;
  DominatorTree dominators(const_cast<Function &>(function));
  LoopInfo loops(dominators);
  return any_of(loops, [](const Loop *loop) { return isDeeperThan(deepestNest, *loop); });
}

bool PassLimits::isDeep(const Function &function, const Loop *loop) {
  if (deep.contains(function.getName()))
    return true;
  // A nest may become one by inlining: then the first pass over its loops comes here.
  if (!loop || !isDeeperThan(deepestNest, *loop))
    return false;
  deep.insert(function.getName());
  report(allButSimplePasses, function.getName());
  return true;
}

void PassLimits::prepare(const Module &module) {
  for (const Function &function : module)
    if (hasDeepNest(function)) {
      deep.insert(function.getName());
      report(allButSimplePasses, function.getName());
    }
}

bool PassLimits::isAllowed(StringRef pass, const Any &unit) {
  if (auto *loop = any_cast<const Loop *>(&unit))
    return !isDeep(*(*loop)->getHeader()->getParent(), *loop);
  if (auto *function = any_cast<const Function *>(&unit)) {
    if (isDeep(**function, nullptr))
      return is_contained(simplePasses, pass);
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

CodeGenerationLimits::CodeGenerationLimits(Module &module)
    : isForAmd(module.getTargetTriple().isAMDGPU()), isForNvidia(module.getTargetTriple().isNVPTX()),
      context(module.getContext()) {
  for (Function &function : module) {
    if (!function.hasName())
      continue;
    std::string description = ("function (" + function.getName() + ")").str();
    if (function.hasFnAttribute(gpulower::mark))
      withoutVectorizer.insert(description);
    if (function.hasFnAttribute(noReduction))
      withoutReduction.insert(description);
    if (function.hasFnAttribute(noReduction) || function.hasFnAttribute(noSinking))
      withoutSinking.insert(description);
  }
  context.setOptPassGate(*this);
}

CodeGenerationLimits::~CodeGenerationLimits() { context.setOptPassGate(getGlobalPassGate()); }

bool CodeGenerationLimits::shouldRunPass(StringRef pass, StringRef unit) const {
  if (pass == loadStoreVectorizerArgument)
    return !withoutVectorizer.contains(unit);
  if (is_contained(withReduction, pass))
    return !withoutReduction.contains(unit);
  if (pass == sinking)
    return !withoutSinking.contains(unit);
  if (pass == numbering)
    return !isForAmd;
  return pass != loopReduction || !isLoopLeftAlone;
}

void CodeGenerationLimits::enter(const Loop &loop) {
  isLoopLeftAlone = findStringMetadataForLoop(&loop, noLoopReduction).has_value();
}

namespace {

/// Runs in the same pass manager as the pass that follows it, so that both see one loop in turn.
struct EnterLoop : LoopPass {
  static char ID;

  explicit EnterLoop(CodeGenerationLimits &limits) : LoopPass(ID), limits(limits) {}

  bool runOnLoop(Loop *loop, LPPassManager &) override {
    limits.enter(*loop);
    return false;
  }

  StringRef getPassName() const override { return "Enter loop"; }

  void getAnalysisUsage(AnalysisUsage &usage) const override { usage.setPreservesAll(); }

  CodeGenerationLimits &limits;
};

char EnterLoop::ID = 0;

} // namespace

void CodeGenerationPasses::add(Pass *pass) {
  if (pass->getPassName() == loopReduction)
    legacy::PassManager::add(new EnterLoop(limits));
  // It makes two divisions, and a branch, of one of 64 bits.
  if (pass->getPassName() == preparation && limits.isForNvidia)
    legacy::PassManager::add(createNarrowIntegers());
  legacy::PassManager::add(pass);
}

void PassLimits::attach(PassInstrumentationCallbacks &callbacks) {
  callbacks.registerShouldRunOptionalPassCallback(
      [this](StringRef pass, Any unit) { return !isToEnd(pass) && isAllowed(pass, unit); });
}

} // namespace gpulower
