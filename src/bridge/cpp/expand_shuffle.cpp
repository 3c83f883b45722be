// Shuffles: lane k of a subgroup takes the value of lane k ^ offset, k - offset, k + offset or offset, if both lanes are
// among the first `width`. MLIR 22's conversions get this wrong: AMD's takes lanes below 0 and widths that are no power of
// two for good, and reads across the halves of a wave that cannot; NVIDIA's has no valid lane for `up` with a width below
// 32, takes 5 bits of the offset, and leaves lanes out of the mask that execute the instruction.

#include "patterns.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/LLVMIR/ROCDLDialect.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace gpulower {
namespace {

/// What a shuffle becomes is built with words of 32 bits, which lane numbers and masks are as well.
struct Words {
  OpBuilder &builder;
  Location loc;

  Type type() { return builder.getI32Type(); }
  Value constant(int64_t value) { return arith::ConstantIntOp::create(builder, loc, value, 32); }
  Value less(Value left, Value right) {
    return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult, left, right);
  }
  Value same(Value left, Value right) {
    return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, left, right);
  }
  Value select(Value condition, Value yes, Value no) {
    return arith::SelectOp::create(builder, loc, condition, yes, no);
  }
  Value lane() {
    Value index = gpu::LaneIdOp::create(builder, loc, builder.getIndexType(), /*upper_bound=*/IntegerAttr());
    return arith::IndexCastOp::create(builder, loc, type(), index);
  }
};

std::optional<uint64_t> constantOf(Value value) {
  APInt number;
  if (matchPattern(value, m_ConstantInt(&number)))
    return number.getZExtValue();
  return std::nullopt;
}

/// The lane that a shuffle reads, which may lie outside of what takes part.
Value sourceLane(Words words, gpu::ShuffleMode mode, Value lane, Value offset) {
  switch (mode) {
  case gpu::ShuffleMode::UP:
    return arith::SubIOp::create(words.builder, words.loc, lane, offset);
  case gpu::ShuffleMode::DOWN:
    return arith::AddIOp::create(words.builder, words.loc, lane, offset);
  case gpu::ShuffleMode::XOR:
    return arith::XOrIOp::create(words.builder, words.loc, lane, offset);
  case gpu::ShuffleMode::IDX:
    return offset;
  }
  return {};
}

NVVM::ShflKind kindOf(gpu::ShuffleMode mode) {
  switch (mode) {
  case gpu::ShuffleMode::UP:
    return NVVM::ShflKind::up;
  case gpu::ShuffleMode::DOWN:
    return NVVM::ShflKind::down;
  case gpu::ShuffleMode::XOR:
    return NVVM::ShflKind::bfly;
  case gpu::ShuffleMode::IDX:
    return NVVM::ShflKind::idx;
  }
  return NVVM::ShflKind::idx;
}

struct ShuffleOnNvidia final : OpRewritePattern<gpu::ShuffleOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(gpu::ShuffleOp op, PatternRewriter &rewriter) const override {
    Words words{rewriter, op.getLoc()};
    Location loc = op.getLoc();
    gpu::ShuffleMode mode = op.getMode();
    Value offset = op.getOffset();
    Value size = words.constant(32);
    std::optional<uint64_t> knownOffset = constantOf(offset);
    bool small = knownOffset && *knownOffset < 32;
    bool all = constantOf(op.getWidth()) == 32;

    // `shfl.sync` takes 5 bits of the offset. Where more may be set, `up` and `down` compute the lane themselves.
    bool computed = !small && (mode == gpu::ShuffleMode::UP || mode == gpu::ShuffleMode::DOWN);
    Value lane = all && !computed ? Value() : words.lane();
    Value width = all ? size : arith::MinUIOp::create(rewriter, loc, op.getWidth(), size).getResult();
    Value clamp = arith::SubIOp::create(rewriter, loc, width, words.constant(1));
    Value mask = words.constant(-1), taking = arith::ConstantIntOp::create(rewriter, loc, 1, 1);
    if (!all) {
      // Lanes from `width` on may be here or not: each one waits for itself alone.
      taking = words.less(lane, width);
      auto bits = [&](Value count) -> Value {
        Type wide = rewriter.getI64Type();
        Value one = arith::ConstantIntOp::create(rewriter, loc, 1, 64);
        return arith::ShLIOp::create(rewriter, loc, one, arith::ExtUIOp::create(rewriter, loc, wide, count));
      };
      Value one = arith::ConstantIntOp::create(rewriter, loc, 1, 64);
      Value first = arith::TruncIOp::create(rewriter, loc, words.type(),
                                            arith::SubIOp::create(rewriter, loc, bits(width), one));
      mask = words.select(taking, first, arith::TruncIOp::create(rewriter, loc, words.type(), bits(lane)));
    }
    NVVM::ShflKind kind = kindOf(mode);
    Value valid = taking;
    if (computed) {
      Value source = sourceLane(words, mode, lane, offset);
      Value inside = words.less(source, width);
      offset = words.select(inside, source, lane);
      kind = NVVM::ShflKind::idx;
      clamp = words.constant(31);
      valid = arith::AndIOp::create(rewriter, loc, taking, inside);
    } else {
      if (mode == gpu::ShuffleMode::UP)
        clamp = words.constant(0);
      if (!small)
        valid = arith::AndIOp::create(rewriter, loc, taking, words.less(offset, size));
    }
    auto pair = LLVM::LLVMStructType::getLiteral(rewriter.getContext(), {words.type(), rewriter.getI1Type()});
    Value found;
    Value result = onWords(rewriter, loc, op.getValue(), [&](Value word) -> Value {
      Value both = NVVM::ShflOp::create(rewriter, loc, pair, mask, word, offset, clamp, kind, rewriter.getUnitAttr());
      found = LLVM::ExtractValueOp::create(rewriter, loc, both, 1);
      return LLVM::ExtractValueOp::create(rewriter, loc, both, 0);
    });
    if (!result)
      return rewriter.notifyMatchFailure(op, "no words");
    valid = arith::AndIOp::create(rewriter, loc, valid, found);
    rewriter.replaceOp(op, {result, valid});
    return success();
  }
};

struct ShuffleOnAmd final : OpRewritePattern<gpu::ShuffleOp> {
  ShuffleOnAmd(MLIRContext *context, const GpuChip &chip, unsigned lanes)
      : OpRewritePattern(context), chip(chip), lanes(lanes) {}

  LogicalResult matchAndRewrite(gpu::ShuffleOp op, PatternRewriter &rewriter) const override {
    Words words{rewriter, op.getLoc()};
    Location loc = op.getLoc();
    Value whole = words.lane(), lane = whole, width = op.getWidth();
    if (lanes < chip.subgroupSize)
      lane = arith::AndIOp::create(rewriter, loc, whole, words.constant(lanes - 1));
    if (!constantOf(width))
      width = arith::MinUIOp::create(rewriter, loc, width, words.constant(lanes));
    Value source = sourceLane(words, op.getMode(), lane, op.getOffset());
    Value inside = words.less(source, width);
    Value from = words.select(inside, source, lane);
    if (lane != whole)
      from = arith::OrIOp::create(rewriter, loc, from,
                                  arith::SubIOp::create(rewriter, loc, whole, lane));
    bool across = mayCross(op);
    Value address = arith::ShLIOp::create(rewriter, loc, from, words.constant(2));
    Value result = onWords(rewriter, loc, op.getValue(), [&](Value word) -> Value {
      return across ? oneByOne(words, word, from)
                    : ROCDL::DsBpermuteOp::create(rewriter, loc, words.type(), address, word).getResult();
    });
    if (!result)
      return rewriter.notifyMatchFailure(op, "no words");
    Value valid = arith::AndIOp::create(rewriter, loc, words.less(lane, width), inside);
    rewriter.replaceOp(op, {result, valid});
    return success();
  }

private:
  /// Whether a lane may read from the other half of its wave where `ds_bpermute` cannot: in waves of 64 lanes on RDNA 1 to
  /// 3 ("LDS Lane-permute Ops" in AMD's "RDNA3 Instruction Set Architecture"; `supportsWaveWideBPermute` in LLVM).
  bool mayCross(gpu::ShuffleOp op) const {
    if (lanes != 64 || chip.chipset.majorVersion < 10 || chip.chipset.majorVersion > 11)
      return false;
    std::optional<uint64_t> width = constantOf(op.getWidth()), offset = constantOf(op.getOffset());
    return !(width && *width <= 32) && !(op.getMode() == gpu::ShuffleMode::XOR && offset && *offset < 32);
  }

  /// Each lane's value for those that want it. `v_permlane64` would be shorter, but has nothing to read where a lane's
  /// counterpart is off.
  static Value oneByOne(Words words, Value word, Value from) {
    Value result = word;
    for (int64_t i = 0; i < 64; ++i) {
      Value number = words.constant(i);
      Value value = ROCDL::ReadlaneOp::create(words.builder, words.loc, words.type(), word, number);
      result = words.select(words.same(from, number), value, result);
    }
    return result;
  }

  GpuChip chip;
  unsigned lanes;
};

} // namespace

LogicalResult expandShuffles(Operation *root, const GpuChip &chip, unsigned lanes) {
  RewritePatternSet patterns(root->getContext());
  if (chip.amd)
    patterns.add<ShuffleOnAmd>(root->getContext(), chip, lanes);
  else
    patterns.add<ShuffleOnNvidia>(root->getContext());
  return rewrite(root, std::move(patterns));
}

} // namespace gpulower
