// What the lanes of a subgroup do together: reductions, shuffles, broadcasts, rotations.

#include "patterns.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/GPU/Transforms/Passes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace gpulower {

Value onWords(OpBuilder &builder, Location loc, Value value,
              function_ref<Value(Value)> onWord) {
  Type type = value.getType();
  Type word = builder.getI32Type();
  if (type.isIndex()) {
    Value wide = arith::IndexCastOp::create(builder, loc, builder.getI64Type(), value);
    Value result = onWords(builder, loc, wide, onWord);
    return arith::IndexCastOp::create(builder, loc, type, result);
  }
  if (auto vector = dyn_cast<VectorType>(type)) {
    if (vector.isScalable() || vector.getRank() != 1 ||
        !vector.getElementType().isIntOrFloat())
      return {};
    int64_t width = vector.getElementTypeBitWidth();
    int64_t bits = width * vector.getNumElements();
    bool packed = bits % 32 == 0 && (width == 8 || width == 16 || width == 32 || width == 64);
    VectorType pieces =
        packed ? VectorType::get(bits / 32, word) : vector;
    Value from = packed && pieces != vector
                     ? vector::BitCastOp::create(builder, loc, pieces, value)
                     : value;
    Value result = from;
    for (int64_t i = 0; i < pieces.getNumElements(); ++i) {
      Value piece = vector::ExtractOp::create(builder, loc, from, i);
      Value changed = packed ? onWord(piece) : onWords(builder, loc, piece, onWord);
      if (!changed)
        return {};
      result = vector::InsertOp::create(builder, loc, changed, result, i);
    }
    return packed && pieces != vector
               ? vector::BitCastOp::create(builder, loc, vector, result)
               : result;
  }
  if (!type.isIntOrFloat())
    return {};
  unsigned width = type.getIntOrFloatBitWidth();
  Type integer = builder.getIntegerType(width);
  Value bits = type == integer ? value
                               : arith::BitcastOp::create(builder, loc, integer, value);
  Value result;
  if (width == 32) {
    result = onWord(bits);
  } else if (width < 32) {
    result = onWord(arith::ExtUIOp::create(builder, loc, word, bits));
    if (result)
      result = arith::TruncIOp::create(builder, loc, integer, result);
  } else {
    unsigned words = llvm::divideCeil(width, 32);
    Type wide = builder.getIntegerType(words * 32);
    if (wide != integer)
      bits = arith::ExtUIOp::create(builder, loc, wide, bits);
    for (unsigned i = 0; i < words; ++i) {
      Value shift = arith::ConstantOp::create(builder, loc, builder.getIntegerAttr(wide, i * 32));
      Value piece = onWord(arith::TruncIOp::create(
          builder, loc, word, arith::ShRUIOp::create(builder, loc, bits, shift)));
      if (!piece)
        return {};
      piece = arith::ShLIOp::create(
          builder, loc, arith::ExtUIOp::create(builder, loc, wide, piece), shift);
      result = result ? arith::OrIOp::create(builder, loc, result, piece).getResult() : piece;
    }
    if (wide != integer)
      result = arith::TruncIOp::create(builder, loc, integer, result);
  }
  if (!result)
    return {};
  return type == integer ? result
                         : arith::BitcastOp::create(builder, loc, type, result);
}

namespace {

Value constant(OpBuilder &builder, Location loc, int32_t value) {
  return arith::ConstantIntOp::create(builder, loc, value, 32);
}

/// Whether MLIR's conversion for AMD would cut a vector into words that it does not fill.
bool hasHalfWord(Type type) {
  auto vector = dyn_cast<VectorType>(type);
  return vector && vector.getElementType().isIntOrFloat() &&
         vector.getElementTypeBitWidth() * vector.getNumElements() % 32 != 0;
}

/// AMD's conversion cuts what it broadcasts into whole words.
struct BroadcastWords final : OpRewritePattern<gpu::SubgroupBroadcastOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(gpu::SubgroupBroadcastOp op,
                                PatternRewriter &rewriter) const override {
    if (!hasHalfWord(op.getType()))
      return failure();
    Location loc = op.getLoc();
    Value result = onWords(rewriter, loc, op.getSrc(), [&](Value word) -> Value {
      return gpu::SubgroupBroadcastOp::create(rewriter, loc, word.getType(), word,
                                              op.getLane(), op.getBroadcastType());
    });
    if (!result)
      return rewriter.notifyMatchFailure(op, "no words");
    rewriter.replaceOp(op, result);
    return success();
  }
};

/// One lane's value for the lanes that are active here, and only for those: others may be elsewhere.
struct Broadcast final : OpRewritePattern<gpu::SubgroupBroadcastOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(gpu::SubgroupBroadcastOp op,
                                PatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Type word = rewriter.getI32Type();
    Value active =
        LLVM::CallIntrinsicOp::create(
            rewriter, loc, word,
            rewriter.getStringAttr("llvm.nvvm.activemask"), ValueRange{})
            .getResult(0);
    Value lane = op.getLane();
    if (op.getBroadcastType() == gpu::BroadcastType::first_active_lane)
      lane = LLVM::CountTrailingZerosOp::create(rewriter, loc, word, active,
                                                /*is_zero_poison=*/true);
    Value clamp = constant(rewriter, loc, 31);
    Value result = onWords(rewriter, loc, op.getSrc(), [&](Value piece) -> Value {
      return NVVM::ShflOp::create(rewriter, loc, word, active, piece, lane,
                                  clamp, NVVM::ShflKind::idx, UnitAttr());
    });
    if (!result)
      return rewriter.notifyMatchFailure(op, "no words");
    rewriter.replaceOp(op, result);
    return success();
  }
};

/// Lane k takes the value of lane (k + offset) mod width.
struct Rotate final : OpRewritePattern<gpu::RotateOp> {
  Rotate(MLIRContext *context, unsigned subgroupSize)
      : OpRewritePattern(context), subgroupSize(subgroupSize) {}
  LogicalResult matchAndRewrite(gpu::RotateOp op,
                                PatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    int32_t width = op.getWidth();
    Value lane = arith::IndexCastOp::create(
        rewriter, loc, rewriter.getI32Type(),
        gpu::LaneIdOp::create(rewriter, loc, rewriter.getIndexType(),
                              /*upper_bound=*/IntegerAttr()));
    Value shifted = arith::AddIOp::create(rewriter, loc, lane,
                                          constant(rewriter, loc, op.getOffset()));
    Value from = arith::AndIOp::create(rewriter, loc, shifted,
                                       constant(rewriter, loc, width - 1));
    auto shuffle =
        gpu::ShuffleOp::create(rewriter, loc, op.getValue(), from,
                               constant(rewriter, loc, subgroupSize),
                               gpu::ShuffleMode::IDX);
    Value valid = arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::ult,
                                        lane, constant(rewriter, loc, width));
    rewriter.replaceOp(op, {shuffle.getShuffleResult(), valid});
    return success();
  }
  unsigned subgroupSize;
};

struct NumSubgroups final : OpRewritePattern<gpu::NumSubgroupsOp> {
  NumSubgroups(MLIRContext *context, unsigned subgroupSize)
      : OpRewritePattern(context), subgroupSize(subgroupSize) {}
  LogicalResult matchAndRewrite(gpu::NumSubgroupsOp op,
                                PatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Value items;
    for (gpu::Dimension dimension :
         {gpu::Dimension::x, gpu::Dimension::y, gpu::Dimension::z}) {
      Value size = gpu::BlockDimOp::create(rewriter, loc, rewriter.getIndexType(),
                                           dimension, /*upper_bound=*/IntegerAttr());
      items = items ? arith::MulIOp::create(rewriter, loc, items, size) : size;
    }
    rewriter.replaceOpWithNewOp<arith::CeilDivUIOp>(
        op, items, arith::ConstantIndexOp::create(rewriter, loc, subgroupSize));
    return success();
  }
  unsigned subgroupSize;
};

struct SubgroupSize final : OpRewritePattern<gpu::SubgroupSizeOp> {
  SubgroupSize(MLIRContext *context, unsigned subgroupSize)
      : OpRewritePattern(context), subgroupSize(subgroupSize) {}
  LogicalResult matchAndRewrite(gpu::SubgroupSizeOp op,
                                PatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<arith::ConstantIndexOp>(op, subgroupSize);
    return success();
  }
  unsigned subgroupSize;
};

/// `redux.sync`, which reduces an i32 over a warp in one instruction; smaller integers are widened.
struct Redux final : OpRewritePattern<gpu::SubgroupReduceOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(gpu::SubgroupReduceOp op,
                                PatternRewriter &rewriter) const override {
    auto type = dyn_cast<IntegerType>(op.getType());
    if (!op.getUniform() || op.getClusterSize() || !type || type.getWidth() > 32)
      return failure();
    bool isSigned = false;
    NVVM::ReduxKind kind;
    switch (op.getOp()) {
    case gpu::AllReduceOperation::ADD:
      kind = NVVM::ReduxKind::ADD;
      break;
    case gpu::AllReduceOperation::MINSI:
      kind = NVVM::ReduxKind::MIN;
      isSigned = true;
      break;
    case gpu::AllReduceOperation::MAXSI:
      kind = NVVM::ReduxKind::MAX;
      isSigned = true;
      break;
    case gpu::AllReduceOperation::MINUI:
      kind = NVVM::ReduxKind::UMIN;
      break;
    case gpu::AllReduceOperation::MAXUI:
      kind = NVVM::ReduxKind::UMAX;
      break;
    case gpu::AllReduceOperation::AND:
      kind = NVVM::ReduxKind::AND;
      break;
    case gpu::AllReduceOperation::OR:
      kind = NVVM::ReduxKind::OR;
      break;
    case gpu::AllReduceOperation::XOR:
      kind = NVVM::ReduxKind::XOR;
      break;
    default:
      return failure();
    }
    Location loc = op.getLoc();
    Type word = rewriter.getI32Type();
    Value value = op.getValue();
    if (type != word)
      value = isSigned ? arith::ExtSIOp::create(rewriter, loc, word, value).getResult()
                       : arith::ExtUIOp::create(rewriter, loc, word, value).getResult();
    Value result = NVVM::ReduxOp::create(rewriter, loc, word, value, kind,
                                         constant(rewriter, loc, -1));
    if (type != word)
      result = arith::TruncIOp::create(rewriter, loc, type, result);
    rewriter.replaceOp(op, result);
    return success();
  }
};

/// Whether the kernel is known to be launched with workgroups of whole subgroups.
bool hasFullSubgroups(Operation *op, const GpuChip &chip) {
  std::optional<int64_t> items = knownBlockItems(op);
  return items && *items % chip.subgroupSize == 0;
}

} // namespace

void populateSubgroupPatterns(RewritePatternSet &patterns, const GpuChip &chip) {
  patterns.add<Rotate, NumSubgroups>(patterns.getContext(), chip.subgroupSize);
  if (!chip.amd)
    patterns.add<SubgroupSize>(patterns.getContext(), chip.subgroupSize);
}

void populateBroadcastPatterns(RewritePatternSet &patterns, const GpuChip &chip) {
  if (chip.amd)
    patterns.add<BroadcastWords>(patterns.getContext());
  else
    patterns.add<Broadcast>(patterns.getContext());
}

LogicalResult expandSubgroupReductions(Operation *root, const GpuChip &chip) {
  MLIRContext *context = root->getContext();
  {
    RewritePatternSet patterns(context);
    if (chip.redux)
      patterns.add<Redux>(context, /*benefit=*/3);
    // The wider one is for vectors of 64-bit elements, which the other leaves alone.
    populateGpuBreakDownSubgroupReducePatterns(patterns, 32, 2);
    populateGpuBreakDownSubgroupReducePatterns(patterns, 64, 1);
    if (failed(rewrite(root, std::move(patterns))))
      return failure();
  }
  auto addShuffles = [&](RewritePatternSet &patterns) {
    for (unsigned width : {32, 64}) {
      PatternBenefit benefit = width == 32 ? 2 : 1;
      populateGpuLowerSubgroupReduceToShufflePatterns(
          patterns, chip.subgroupSize, width, benefit);
      populateGpuLowerClusteredSubgroupReduceToShufflePatterns(
          patterns, chip.subgroupSize, width, benefit);
    }
  };
  // Data-parallel primitives move 16 or 32 bits (LLVM cannot select others), and the last lane holds the result: every
  // subgroup has to be full.
  SmallVector<Operation *> byShuffle;
  bool others = false;
  root->walk([&](gpu::SubgroupReduceOp reduce) {
    Type type = reduce.getType();
    if (chip.amd && reduce.getUniform() && hasFullSubgroups(reduce, chip) && type.isIntOrFloat() &&
        llvm::is_contained({16u, 32u}, type.getIntOrFloatBitWidth()))
      others = true;
    else
      byShuffle.push_back(reduce);
  });
  if (!byShuffle.empty()) {
    RewritePatternSet patterns(context);
    addShuffles(patterns);
    GreedyRewriteConfig config;
    config.setStrictness(GreedyRewriteStrictness::ExistingAndNewOps);
    (void)applyOpPatternsGreedily(byShuffle, std::move(patterns), config);
  }
  if (others) {
    RewritePatternSet patterns(context);
    populateGpuLowerSubgroupReduceToDPPPatterns(patterns, chip.subgroupSize,
                                                chip.chipset, 3);
    populateGpuLowerClusteredSubgroupReduceToDPPPatterns(
        patterns, chip.subgroupSize, chip.chipset, 3);
    addShuffles(patterns);
    if (failed(rewrite(root, std::move(patterns))))
      return failure();
  }
  return success();
}

} // namespace gpulower
