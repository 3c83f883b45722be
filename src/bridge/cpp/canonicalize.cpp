// MLIR's canonicalization without those of its patterns that do not end or compute something else (MLIR 22), and with some of ours.

#include "patterns.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/RegionGraphTraits.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
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

/// This one goes past a block that has nothing but a branch, as LLVM does where it is not the end of a loop's body. A loop that
/// begins again from several places LLVM takes for two, one within the other: that of `while (..) { if (..) continue; .. }` is of the
/// iterations that end early, and the threads of a warp wait for each other behind it.
constexpr StringRef passedThrough = "(anonymous namespace)::SimplifyPassThroughCondBranch";

/// These take a cast to a narrow type and back for nothing: index to i8 to index.
constexpr StringRef castsThere[] = {"(anonymous namespace)::IndexCastOfIndexCast",
                                    "(anonymous namespace)::IndexCastUIOfIndexCastUI"};

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

/// Casts to and fro, where the type between holds every value. An index has 32 bits at least.
template <typename Cast>
struct CastThereAndBack final : OpRewritePattern<Cast> {
  using OpRewritePattern<Cast>::OpRewritePattern;
  LogicalResult matchAndRewrite(Cast cast, PatternRewriter &rewriter) const override {
    auto first = cast.getIn().template getDefiningOp<Cast>();
    if (!first || first.getIn().getType() != cast.getType())
      return failure();
    auto bits = [](Type type, unsigned ofIndex) {
      Type element = getElementTypeOrSelf(type);
      return element.isIndex() ? ofIndex : element.getIntOrFloatBitWidth();
    };
    if (bits(cast.getType(), 64) > bits(first.getType(), 32))
      return failure();
    rewriter.replaceOp(cast, first.getIn());
    return success();
  }
};

/// MLIR puts two additions of constants together and keeps what both say about overflow. It does not hold where the constants
/// together overflow: `(x - 5) + 3` without unsigned wrap is not `x + (3 - 5)` without it. What does not hold is taken
/// away before. Products likewise.
template <typename Op>
struct OverflowOfConstants final : OpRewritePattern<Op> {
  OverflowOfConstants(MLIRContext *context) : OpRewritePattern<Op>(context, /*benefit=*/10) {}
  LogicalResult matchAndRewrite(Op op, PatternRewriter &rewriter) const override {
    arith::IntegerOverflowFlags flags = op.getOverflowFlags();
    APInt outer, inner;
    bool outerFirst = false, innerFirst = false;
    Operation *other = nullptr, *unused = nullptr;
    if (flags == arith::IntegerOverflowFlags::none || !constantOf(op, outer, outerFirst, other) || !other ||
        !constantOf(other, inner, innerFirst, unused) || isa<arith::MulIOp>(op) != isa<arith::MulIOp>(other))
      return failure();
    bool isSigned = false, isUnsigned = false;
    bool minusOther = isa<arith::SubIOp>(op) && outerFirst, otherIsSub = isa<arith::SubIOp>(other);
    if (isa<arith::MulIOp>(op)) {
      (void)inner.smul_ov(outer, isSigned);
      (void)inner.umul_ov(outer, isUnsigned);
    } else if (isa<arith::SubIOp>(op) && !outerFirst && otherIsSub && innerFirst) {
      // (inner - x) - outer
      (void)inner.ssub_ov(outer, isSigned);
      (void)inner.usub_ov(outer, isUnsigned);
    } else if (minusOther ? !otherIsSub || innerFirst : otherIsSub && !innerFirst && isa<arith::AddIOp>(op)) {
      // outer - (x + inner), outer - (inner - x), (x - inner) + outer
      (void)outer.ssub_ov(inner, isSigned);
      (void)outer.usub_ov(inner, isUnsigned);
    } else {
      (void)outer.sadd_ov(inner, isSigned);
      (void)outer.uadd_ov(inner, isUnsigned);
    }
    using Flags = arith::IntegerOverflowFlags;
    Flags kept = flags & ((isSigned ? Flags::none : Flags::nsw) | (isUnsigned ? Flags::none : Flags::nuw));
    if (kept == flags)
      return failure();
    rewriter.modifyOpInPlace(op, [&] { op.setOverflowFlags(kept); });
    return success();
  }

private:
  /// Of an addition, a subtraction or a product: the constant operand, whether it is the first, and what computes the other one.
  static bool constantOf(Operation *op, APInt &value, bool &isFirst, Operation *&other) {
    if (!isa<arith::AddIOp, arith::SubIOp, arith::MulIOp>(op))
      return false;
    for (unsigned i : {1u, 0u})
      if (matchPattern(op->getOperand(i), m_ConstantInt(&value))) {
        isFirst = i == 0;
        other = op->getOperand(1 - i).getDefiningOp();
        return true;
      }
    return false;
  }
};

/// An argument of a block that every way to it gives the same value is that value. MLIR's driver has this for blocks that are
/// merged as well alone; what is known too late is folded in a conversion, where nothing lowers what comes of it.
struct SameArguments final : OpInterfaceRewritePattern<BranchOpInterface> {
  using OpInterfaceRewritePattern::OpInterfaceRewritePattern;
  LogicalResult matchAndRewrite(BranchOpInterface branch, PatternRewriter &rewriter) const override {
    bool changed = false;
    for (Block *block : branch->getSuccessors())
      // Of all that go to a block, the first one asks.
      if (block->getNumArguments() != 0 && *block->pred_begin() == branch->getBlock())
        for (unsigned i = block->getNumArguments(); i-- > 0;)
          changed |= replace(block, i, rewriter);
    return success(changed);
  }

private:
  static bool replace(Block *block, unsigned index, PatternRewriter &rewriter) {
    Value same;
    for (auto it = block->pred_begin(); it != block->pred_end(); ++it) {
      auto branch = dyn_cast<BranchOpInterface>((*it)->getTerminator());
      if (!branch)
        return false;
      SuccessorOperands operands = branch.getSuccessorOperands(it.getSuccessorIndex());
      if (operands.isOperandProduced(index))
        return false;
      Value given = operands[index];
      if (given == block->getArgument(index))
        continue;
      if (same && given != same)
        return false;
      same = given;
    }
    if (!same)
      return false;
    // In a loop that nothing enters, a value may be computed from itself.
    bool isFromBegin = same.getParentRegion() != block->getParent() || same.getParentBlock()->isEntryBlock();
    if (!isFromBegin && !isReachable(block))
      return false;
    rewriter.replaceAllUsesWith(block->getArgument(index), same);
    for (auto it = block->pred_begin(); it != block->pred_end(); ++it) {
      auto branch = cast<BranchOpInterface>((*it)->getTerminator());
      rewriter.modifyOpInPlace(branch, [&] { branch.getSuccessorOperands(it.getSuccessorIndex()).erase(index); });
    }
    block->eraseArgument(index);
    return true;
  }
};

struct Canonicalize final : PassWrapper<Canonicalize, OperationPass<>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(Canonicalize)

  StringRef getName() const final { return "Canonicalize"; }
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
      set.add<MergeBlocks, SameArguments>(context);
    if (context->getLoadedDialect<arith::ArithDialect>())
      set.add<CastThereAndBack<arith::IndexCastOp>, CastThereAndBack<arith::IndexCastUIOp>, OverflowOfConstants<arith::AddIOp>,
              OverflowOfConstants<arith::SubIOp>, OverflowOfConstants<arith::MulIOp>>(context);
    // Folding makes such updates, and MLIR does not lower them.
    if (context->getLoadedDialect<memref::MemRefDialect>())
      gpulower::populateExchangePatterns(set);
    std::vector<std::string> disabled{trivialLoops.str(), passedThrough.str()};
    for (StringRef name : castsThere)
      disabled.push_back(name.str());
    patterns = std::make_shared<FrozenRewritePatternSet>(std::move(set), disabled);
    return success();
  }

  void runOnOperation() final {
    gpulower::forgetOverflowOfTruncations(getOperation());
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
