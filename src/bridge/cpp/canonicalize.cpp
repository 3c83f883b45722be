// MLIR's canonicalization without two of its patterns: one, all of `cf.br`'s, does not end (it also goes through blocks that only
// branch on, which LLVM does later), one removes loops that run. And with one of ours.

#include "patterns.h"

#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/RegionGraphTraits.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "llvm/ADT/DepthFirstIterator.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;

namespace {

/// The pattern of MLIR that counts the iterations of an `scf.for` between constants. It subtracts the bounds in the width of
/// the loop: one from -6834 to 27303 in i16 has none for it, and is removed (MLIR 22, `constantTripCount`). LLVM does what it
/// would have done.
constexpr StringRef trivialLoops = "(anonymous namespace)::SimplifyTrivialLoops";

/// Nearly always a few single predecessors lead to the first block.
bool isReachable(Block *block) {
  Block *first = &block->getParent()->front();
  SmallPtrSet<Block *, 8> seen;
  for (Block *at = block; at; at = at->getSinglePredecessor()) {
    if (at == first)
      return true;
    if (!seen.insert(at).second)
      return false;
  }
  return llvm::is_contained(llvm::depth_first(first), block);
}

/// Puts a block and the only one that goes to it together, as `cf.br`'s own pattern does. That one does so too in a loop that
/// nothing enters any more, once the branch to it was folded. The loop's argument is then replaced by what is computed from
/// it, `%i` by `%next = arith.addi %next, %one`, which folds for ever (MLIR 22). Such a loop is removed as a whole, later.
struct MergeBlocks final : OpRewritePattern<cf::BranchOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(cf::BranchOp branch, PatternRewriter &rewriter) const override {
    Block *block = branch->getBlock(), *next = branch.getDest();
    if (next == block || !llvm::hasSingleElement(next->getPredecessors()))
      return failure();
    if (next->getNumArguments() != 0 && !isReachable(block))
      return failure();
    SmallVector<Value> values(branch.getDestOperands());
    rewriter.eraseOp(branch);
    rewriter.mergeBlocks(next, block, values);
    return success();
  }
};

struct Canonicalize final : PassWrapper<Canonicalize, OperationPass<>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(Canonicalize)

  StringRef getArgument() const final { return "gpulower-canonicalize"; }
  StringRef getDescription() const final {
    return "Canonicalize operations as MLIR's `canonicalize` does, but end, and keep loops that run";
  }

  LogicalResult initialize(MLIRContext *context) final {
    RewritePatternSet set(context);
    for (Dialect *dialect : context->getLoadedDialects())
      dialect->getCanonicalizationPatterns(set);
    for (RegisteredOperationName operation : context->getRegisteredOperations())
      operation.getCanonicalizationPatterns(set, context);
    llvm::erase_if(set.getNativePatterns(), [](const std::unique_ptr<RewritePattern> &pattern) {
      std::optional<OperationName> root = pattern->getRootKind();
      return root && root->getStringRef() == cf::BranchOp::getOperationName();
    });
    if (context->getLoadedDialect<cf::ControlFlowDialect>())
      set.add<MergeBlocks>(context);
    // Folding makes such updates, and MLIR does not lower them.
    if (context->getLoadedDialect<memref::MemRefDialect>())
      gpulower::populateExchangePatterns(set);
    patterns = std::make_shared<FrozenRewritePatternSet>(std::move(set), std::vector<std::string>{trivialLoops.str()});
    return success();
  }

  void runOnOperation() final {
    // What MLIR's pass has by default.
    GreedyRewriteConfig config;
    config.setUseTopDownTraversal().setRegionSimplificationLevel(GreedySimplifyRegionLevel::Normal);
    // What is left when the limit of iterations is reached is right as well.
    (void)applyPatternsGreedily(getOperation(), *patterns, config);
  }

private:
  std::shared_ptr<const FrozenRewritePatternSet> patterns;
};

} // namespace

/// Registers the pass with MLIR. Call once.
extern "C" void gpulowerRegisterCanonicalizePass() { PassRegistration<Canonicalize>(); }
