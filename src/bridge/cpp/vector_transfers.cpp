// Transfers between vectors and memory, and places in vectors.

#include "vector_transfers.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/AffineMap.h"

using namespace mlir;

namespace gpulower {

namespace {

/// A transfer of the last dimensions of memory, in their order, that does what another one does.
struct InOrderOfMemory {
  /// Shape, map and bounds of the vector in memory's order, with a 1 for each dimension that the other leaves out.
  SmallVector<int64_t> shape;
  AffineMap map;
  SmallVector<bool> inBounds;
  /// The dimensions of the other vector in memory's order, without those that are repeated.
  SmallVector<int64_t> order;
};

/// Nothing where a transfer has no mask, or is in order.
FailureOr<InOrderOfMemory> inOrderOfMemory(VectorTransferOpInterface op) {
  AffineMap map = op.getPermutationMap();
  if (!op.getMask() || !isa<MemRefType>(op.getShapedType()) || op.getVectorType().isScalable() || map.isMinorIdentity())
    return failure();
  InOrderOfMemory made;
  for (unsigned dim = 0; dim < map.getNumDims(); ++dim) {
    std::optional<unsigned> at = map.getResultPosition(getAffineDimExpr(dim, map.getContext()));
    if (at)
      made.order.push_back(*at);
    else if (made.order.empty())
      continue;
    made.shape.push_back(at ? op.getVectorType().getDimSize(*at) : 1);
    made.inBounds.push_back(at ? op.isDimInBounds(*at) : true);
  }
  if (made.order.empty())
    return failure();
  made.map = AffineMap::getMinorIdentityMap(map.getNumDims(), made.shape.size(), map.getContext());
  return made;
}

Value shapeCast(OpBuilder &builder, Location loc, Value vector, ArrayRef<int64_t> shape) {
  auto type = VectorType::get(shape, cast<VectorType>(vector.getType()).getElementType());
  return vector.getType() == type ? vector : vector::ShapeCastOp::create(builder, loc, type, vector).getResult();
}

/// MLIR 22 takes the first dimension of such a mask for that of the vector's first, where a mask has the order of
/// memory: it applies other elements of the mask, or reads past its end (`convert-vector-to-scf`; the pattern
/// `TransferWriteNonPermutationLowering` turns the mask as it turns the vector).
struct MaskedRead final : OpRewritePattern<vector::TransferReadOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(vector::TransferReadOp op, PatternRewriter &rewriter) const override {
    FailureOr<InOrderOfMemory> made = inOrderOfMemory(op);
    if (failed(made))
      return failure();
    Location loc = op.getLoc();
    VectorType type = op.getVectorType();
    Value mask = shapeCast(rewriter, loc, op.getMask(), made->shape);
    Value read = vector::TransferReadOp::create(rewriter, loc, VectorType::get(made->shape, type.getElementType()),
                                                op.getBase(), op.getIndices(), AffineMapAttr::get(made->map),
                                                op.getPadding(), mask, rewriter.getBoolArrayAttr(made->inBounds));
    // Back: without what was added, in the order of the vector, with a 1 for each dimension that is repeated.
    SmallVector<int64_t> inOrder, turned(made->order.size()), sorted(made->order), unrepeated(type.getRank(), 1);
    llvm::sort(sorted);
    for (auto [from, at] : llvm::enumerate(made->order)) {
      inOrder.push_back(type.getDimSize(at));
      turned[llvm::lower_bound(sorted, at) - sorted.begin()] = from;
      unrepeated[at] = type.getDimSize(at);
    }
    Value vector = shapeCast(rewriter, loc, read, inOrder);
    vector = vector::TransposeOp::create(rewriter, loc, vector, turned);
    vector = shapeCast(rewriter, loc, vector, unrepeated);
    if (vector.getType() != type)
      vector = vector::BroadcastOp::create(rewriter, loc, type, vector);
    rewriter.replaceOp(op, vector);
    return success();
  }
};

struct MaskedWrite final : OpRewritePattern<vector::TransferWriteOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(vector::TransferWriteOp op, PatternRewriter &rewriter) const override {
    FailureOr<InOrderOfMemory> made = inOrderOfMemory(op);
    if (failed(made))
      return failure();
    Location loc = op.getLoc();
    Value turned = vector::TransposeOp::create(rewriter, loc, op.getVector(), made->order);
    Value vector = shapeCast(rewriter, loc, turned, made->shape);
    Value mask = shapeCast(rewriter, loc, op.getMask(), made->shape);
    rewriter.replaceOpWithNewOp<vector::TransferWriteOp>(op, Type(), vector, op.getBase(), op.getIndices(),
                                                         AffineMapAttr::get(made->map), mask,
                                                         rewriter.getBoolArrayAttr(made->inBounds));
    return success();
  }
};

/// The map of a load or a store of several dimensions, which MLIR has no lowering for, as a transfer. Nothing where it
/// promises less than the alignment of an element, which a transfer cannot say, and for elements that are no whole
/// bytes: rows of a vector are packed bits, and memory has a byte for each.
template <typename Access> FailureOr<AffineMap> mapOfTransfer(Access op) {
  VectorType type = op.getVectorType();
  MemRefType memory = op.getMemRefType();
  Type element = type.getElementType();
  uint64_t bits = element.isIntOrFloat() ? element.getIntOrFloatBitWidth() : 64;
  if (type.getRank() < 2 || type.isScalable() || type.getRank() > memory.getRank() ||
      element != memory.getElementType() || bits % 8 != 0 || op.getAlignment().value_or(bits / 8) < bits / 8)
    return failure();
  return AffineMap::getMinorIdentityMap(memory.getRank(), type.getRank(), op.getContext());
}

struct LoadOfRows final : OpRewritePattern<vector::LoadOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(vector::LoadOp op, PatternRewriter &rewriter) const override {
    FailureOr<AffineMap> map = mapOfTransfer(op);
    if (failed(map))
      return failure();
    // Nothing is outside.
    TypedAttr zero = rewriter.getZeroAttr(op.getVectorType().getElementType());
    Value padding = arith::ConstantOp::create(rewriter, op.getLoc(), zero);
    SmallVector<bool> inBounds(op.getVectorType().getRank(), true);
    rewriter.replaceOpWithNewOp<vector::TransferReadOp>(op, op.getVectorType(), op.getBase(), op.getIndices(),
                                                        AffineMapAttr::get(*map), padding, Value(),
                                                        rewriter.getBoolArrayAttr(inBounds));
    return success();
  }
};

struct StoreOfRows final : OpRewritePattern<vector::StoreOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(vector::StoreOp op, PatternRewriter &rewriter) const override {
    FailureOr<AffineMap> map = mapOfTransfer(op);
    if (failed(map))
      return failure();
    SmallVector<bool> inBounds(op.getVectorType().getRank(), true);
    rewriter.replaceOpWithNewOp<vector::TransferWriteOp>(op, Type(), op.getValueToStore(), op.getBase(),
                                                         op.getIndices(), AffineMapAttr::get(*map), Value(),
                                                         rewriter.getBoolArrayAttr(inBounds));
    return success();
  }
};

/// The first position that is not known when compiling, and that MLIR does not take: of `vector.extract` and
/// `vector.insert` it takes the last one of a scalar.
template <typename Access> std::optional<unsigned> unknownPosition(Access op, VectorType type) {
  if (type.isScalable())
    return std::nullopt;
  ArrayRef<int64_t> positions = op.getStaticPosition();
  for (auto [at, position] : llvm::enumerate(positions))
    if (ShapedType::isDynamic(position) && !(type.getRank() == 1 || at + 1 == static_cast<size_t>(type.getRank())))
      return at;
  return std::nullopt;
}

/// Calls `each` for every place that the unknown position may be, with whether it is there, and the positions.
template <typename Access>
void forEachPlace(OpBuilder &builder, Access op, VectorType type, unsigned at,
                  llvm::function_ref<void(Value, ArrayRef<OpFoldResult>)> each) {
  SmallVector<OpFoldResult> positions = op.getMixedPosition();
  auto unknown = cast<Value>(positions[at]);
  for (int64_t place = 0; place < type.getDimSize(at); ++place) {
    Value constant = arith::ConstantIndexOp::create(builder, op.getLoc(), place);
    Value here = arith::CmpIOp::create(builder, op.getLoc(), arith::CmpIPredicate::eq, unknown, constant);
    positions[at] = builder.getIndexAttr(place);
    each(here, positions);
  }
}

/// MLIR 22 has no lowering for such extractions.
struct ExtractAtUnknownPosition final : OpRewritePattern<vector::ExtractOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(vector::ExtractOp op, PatternRewriter &rewriter) const override {
    VectorType type = op.getSourceVectorType();
    std::optional<unsigned> at = unknownPosition(op, type);
    if (!at)
      return failure();
    Value result;
    forEachPlace(rewriter, op, type, *at, [&](Value here, ArrayRef<OpFoldResult> positions) {
      Value part = vector::ExtractOp::create(rewriter, op.getLoc(), op.getSource(), positions);
      result = result ? arith::SelectOp::create(rewriter, op.getLoc(), here, part, result).getResult() : part;
    });
    // An element may be asked for as a vector of one.
    if (result.getType() != op.getType())
      result = vector::BroadcastOp::create(rewriter, op.getLoc(), op.getType(), result);
    rewriter.replaceOp(op, result);
    return success();
  }
};

/// MLIR 22 makes an `llvm.insertvalue` at a meaningless place of such insertions.
struct InsertAtUnknownPosition final : OpRewritePattern<vector::InsertOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(vector::InsertOp op, PatternRewriter &rewriter) const override {
    VectorType type = op.getDestVectorType();
    std::optional<unsigned> at = unknownPosition(op, type);
    if (!at)
      return failure();
    Value result = op.getDest(), stored = op.getValueToStore();
    // An element may be given as a vector of one.
    auto given = dyn_cast<VectorType>(stored.getType());
    if (given && op.getMixedPosition().size() == static_cast<size_t>(type.getRank()))
      stored = vector::ExtractOp::create(rewriter, op.getLoc(), stored, SmallVector<int64_t>(given.getRank(), 0));
    forEachPlace(rewriter, op, type, *at, [&](Value here, ArrayRef<OpFoldResult> positions) {
      Value old = vector::ExtractOp::create(rewriter, op.getLoc(), op.getDest(), positions);
      Value part = arith::SelectOp::create(rewriter, op.getLoc(), here, stored, old);
      result = vector::InsertOp::create(rewriter, op.getLoc(), part, result, positions);
    });
    rewriter.replaceOp(op, result);
    return success();
  }
};

} // namespace

void populateTransferPatterns(RewritePatternSet &patterns) {
  patterns.add<ExtractAtUnknownPosition, InsertAtUnknownPosition, MaskedRead, MaskedWrite, LoadOfRows, StoreOfRows>(
      patterns.getContext());
}

} // namespace gpulower
