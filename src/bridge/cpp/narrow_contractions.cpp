// Contractions whose operands have fewer bits than their sum.

#include "patterns.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace {

/// The same vector with elements of another type, which has more bits.
Value widened(OpBuilder &builder, Location loc, Value vector, Type element) {
  Type type = cast<VectorType>(vector.getType()).clone(element);
  if (isa<FloatType>(element))
    return arith::ExtFOp::create(builder, loc, type, vector);
  return arith::ExtSIOp::create(builder, loc, type, vector);
}

/// MLIR's lowerings widen the operands of a product of two matrices, as signed integers or floats, and leave those of any
/// other contraction as it is, for which they then have no conversion.
struct WidenContraction final : OpRewritePattern<vector::ContractionOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(vector::ContractionOp op, PatternRewriter &rewriter) const override {
    Type sum = getElementTypeOrSelf(op.getAccType()), element = op.getLhsType().getElementType();
    bool isOfOneKind =
        (isa<FloatType>(sum) && isa<FloatType>(element)) || (sum.isSignlessInteger() && element.isSignlessInteger());
    if (!isOfOneKind || element.getIntOrFloatBitWidth() >= sum.getIntOrFloatBitWidth())
      return failure();
    OpBuilder::InsertionGuard guard(rewriter);
    // Under a mask there is one operation alone.
    if (op.isMasked())
      rewriter.setInsertionPoint(op.getMaskingOp());
    Value lhs = widened(rewriter, op.getLoc(), op.getLhs(), sum);
    Value rhs = widened(rewriter, op.getLoc(), op.getRhs(), sum);
    rewriter.modifyOpInPlace(op, [&] {
      op.getLhsMutable().assign(lhs);
      op.getRhsMutable().assign(rhs);
    });
    return success();
  }
};

} // namespace

void gpulower::populateContractionPatterns(RewritePatternSet &patterns) {
  patterns.add<WidenContraction>(patterns.getContext());
}
