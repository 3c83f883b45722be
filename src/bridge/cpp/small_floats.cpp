// Conversions of 8-bit floats that are no instruction of the chip, or none that MLIR knows: computed with integers and f32,
// whatever becomes of denormals. `arith-expand` has those of scales and of 4-bit floats alone.
//
// A number too large becomes the largest, as with the instructions (`convert-arith-to-amdgpu` is told so, and NVIDIA's have it
// in their name); an infinity stays one where the type has some, and is no number otherwise.

#include "small_floats.h"

#include "patterns.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/bit.h"

using namespace mlir;

namespace gpulower {
namespace {

/// How 8 bits are a number.
struct Format {
  int fraction, bias;
  /// No negative zero and no infinities: its bits are those of the only value that is no number.
  bool oneZero;
  /// The bits of infinity, if there is one, and of what is no number, without the sign.
  std::optional<int> infinity;
  int noNumber;
  int largest() const { return oneZero ? 0x7f : infinity ? *infinity - 1 : noNumber - 1; }
};

std::optional<Format> formatOf(Type type) {
  Type element = getElementTypeOrSelf(type);
  if (isa<Float8E5M2Type>(element))
    return Format{2, 15, false, 0x7c, 0x7e};
  if (isa<Float8E4M3Type>(element))
    return Format{3, 7, false, 0x78, 0x7c};
  if (isa<Float8E3M4Type>(element))
    return Format{4, 3, false, 0x70, 0x78};
  if (isa<Float8E4M3FNType>(element))
    return Format{3, 7, false, std::nullopt, 0x7f};
  if (isa<Float8E5M2FNUZType>(element))
    return Format{2, 16, true, std::nullopt, 0x80};
  if (isa<Float8E4M3FNUZType>(element))
    return Format{3, 8, true, std::nullopt, 0x80};
  if (isa<Float8E4M3B11FNUZType>(element))
    return Format{3, 11, true, std::nullopt, 0x80};
  return std::nullopt;
}

using Predicate = arith::CmpIPredicate;

/// Arithmetic on the elements of values of one shape.
class Elements {
public:
  Elements(OpBuilder &builder, Location loc, Type shape) : builder(builder), loc(loc), shape(shape) {}

  Type of(Type element) const {
    auto vector = dyn_cast<VectorType>(shape);
    return vector ? Type(vector.clone(element)) : element;
  }
  Type bytes() const { return of(builder.getI8Type()); }
  Type words() const { return of(builder.getI32Type()); }
  Type floats() const { return of(builder.getF32Type()); }

  Value word(int64_t value) {
    return constant(builder.getIntegerAttr(builder.getI32Type(), APInt(32, value, /*isSigned=*/false, /*implicitTrunc=*/true)));
  }
  Value longWord(uint64_t value) { return constant(builder.getIntegerAttr(builder.getI64Type(), APInt(64, value))); }
  Value power(int exponent) { return constant(builder.getF32FloatAttr(std::ldexp(1.0f, exponent))); }

  template <typename Op>
  Value make(Type type, Value value) {
    return Op::create(builder, loc, type, value);
  }
  template <typename Op>
  Value make(Value left, Value right) {
    return Op::create(builder, loc, left, right);
  }
  template <typename Op>
  Value make(Value left, int64_t right) {
    return make<Op>(left, word(right));
  }
  Value compare(Predicate how, Value left, Value right) { return arith::CmpIOp::create(builder, loc, how, left, right); }
  Value select(Value condition, Value yes, Value no) { return arith::SelectOp::create(builder, loc, condition, yes, no); }
  Value bits(Value number) { return make<arith::BitcastOp>(words(), number); }
  Value number(Value bits) { return make<arith::BitcastOp>(floats(), bits); }

private:
  Value constant(TypedAttr element) {
    auto vector = dyn_cast<VectorType>(shape);
    if (!vector)
      return arith::ConstantOp::create(builder, loc, element);
    auto type = cast<ShapedType>(of(element.getType()));
    return arith::ConstantOp::create(builder, loc, DenseElementsAttr::get(type, Attribute(element)));
  }

  OpBuilder &builder;
  Location loc;
  Type shape;
};

constexpr int64_t infinityOfF32 = 0x7f800000, noNumberOfF32 = 0x7fc00000;
constexpr uint64_t infinityOfF64 = 0x7ff0000000000000, signOfF64 = 0x8000000000000000, largestOfF32InF64 = 0x47efffffe0000000;

/// Exact: f32 has all of them.
Value widened(Elements &elements, const Format &format, Value small) {
  Value byte = elements.make<arith::ExtUIOp>(elements.words(), elements.make<arith::BitcastOp>(elements.bytes(), small));
  Value size = elements.make<arith::AndIOp>(byte, elements.word(0x7f));
  Value sign = elements.make<arith::ShLIOp>(elements.make<arith::AndIOp>(byte, 0x80), 24);
  int shift = 23 - format.fraction;
  Value normal = elements.make<arith::AddIOp>(elements.make<arith::ShLIOp>(size, shift), int64_t(127 - format.bias) << 23);
  Value steps = elements.make<arith::UIToFPOp>(elements.floats(), size);
  Value denormal =
      elements.bits(elements.make<arith::MulFOp>(steps, elements.power(1 - format.bias - format.fraction)));
  Value isDenormal = elements.compare(Predicate::ult, size, elements.word(1 << format.fraction));
  Value result = elements.select(isDenormal, denormal, normal);
  if (format.oneZero) {
    result = elements.make<arith::OrIOp>(result, sign);
    Value none = elements.compare(Predicate::eq, byte, elements.word(format.noNumber));
    return elements.number(elements.select(none, elements.word(noNumberOfF32), result));
  }
  int first = format.infinity ? *format.infinity + 1 : format.noNumber;
  if (format.infinity) {
    Value infinite = elements.compare(Predicate::eq, size, elements.word(*format.infinity));
    result = elements.select(infinite, elements.word(infinityOfF32), result);
  }
  Value none = elements.compare(Predicate::uge, size, elements.word(first));
  result = elements.select(none, elements.word(noNumberOfF32), result);
  return elements.number(elements.make<arith::OrIOp>(result, sign));
}

/// The nearest, or of two the even one.
Value narrowed(Elements &elements, const Format &format, Value number, Type type) {
  Value bits = elements.bits(number);
  Value size = elements.make<arith::AndIOp>(bits, elements.word(0x7fffffff));
  Value sign = elements.make<arith::AndIOp>(bits, elements.word(int64_t(1) << 31));
  sign = elements.make<arith::ShRUIOp>(sign, elements.word(24));
  int shift = 23 - format.fraction;
  // Half of a step less one, and one more where the last bit that stays is set.
  Value last = elements.make<arith::AndIOp>(elements.make<arith::ShRUIOp>(size, shift), 1);
  Value rounded = elements.make<arith::AddIOp>(elements.make<arith::AddIOp>(size, elements.word((1 << (shift - 1)) - 1)), last);
  Value normal = elements.make<arith::SubIOp>(elements.make<arith::ShRUIOp>(rounded, shift), (127 - format.bias) << format.fraction);
  // The sum with a number whose last bit is the smallest denormal rounds to it.
  Value steps = elements.power(1 - format.bias - format.fraction + 23);
  Value sum = elements.bits(elements.make<arith::AddFOp>(elements.number(size), steps));
  Value denormal = elements.make<arith::SubIOp>(sum, elements.bits(steps));
  Value isDenormal = elements.compare(Predicate::ult, size, elements.word(int64_t(128 - format.bias) << 23));
  Value largest = elements.word(format.largest());
  Value inRange = elements.make<arith::MinUIOp>(elements.select(isDenormal, denormal, normal), largest);
  if (format.oneZero) {
    Value isZero = elements.compare(Predicate::eq, inRange, elements.word(0));
    sign = elements.select(isZero, elements.word(0), sign);
  }
  Value result = elements.make<arith::OrIOp>(inRange, sign);
  auto replaceFrom = [&](Predicate how, int64_t from, int64_t with) {
    Value instead = elements.word(with);
    if (!format.oneZero)
      instead = elements.make<arith::OrIOp>(instead, sign);
    result = elements.select(elements.compare(how, size, elements.word(from)), instead, result);
  };
  replaceFrom(Predicate::uge, infinityOfF32, format.infinity.value_or(format.noNumber));
  if (format.infinity)
    replaceFrom(Predicate::ugt, infinityOfF32, format.noNumber);
  return elements.make<arith::BitcastOp>(type, elements.make<arith::TruncIOp>(elements.bytes(), result));
}

/// f64 as f32 for somebody who rounds once more: where it is not exact, towards zero and with the last bit set.
Value roundedToOdd(Elements &elements, Value wide) {
  auto bitsOf = [&](Value number) {
    Type longs = elements.of(IntegerType::get(number.getContext(), 64));
    return elements.make<arith::BitcastOp>(longs, number);
  };
  Value there = bitsOf(wide);
  // A number that f32 has no room for is the largest of f32: as an infinity it would be none at all where `fast` says so.
  Value size = elements.make<arith::AndIOp>(there, elements.longWord(signOfF64 - 1));
  Value sign = elements.make<arith::AndIOp>(there, elements.longWord(signOfF64));
  Value isFinite = elements.compare(Predicate::ult, size, elements.longWord(infinityOfF64));
  Value isBeyond = elements.compare(Predicate::ugt, size, elements.longWord(largestOfF32InF64));
  Value isLarge = elements.make<arith::AndIOp>(isBeyond, isFinite);
  there = elements.select(isLarge, elements.make<arith::OrIOp>(sign, elements.longWord(largestOfF32InF64)), there);
  Value kept = elements.make<arith::BitcastOp>(wide.getType(), there);
  Value nearest = elements.make<arith::TruncFOp>(elements.floats(), kept);
  Value back = bitsOf(elements.make<arith::ExtFOp>(wide.getType(), nearest));
  Value bits = elements.bits(nearest);
  // The signs are the same: as integers, bits are ordered as sizes are.
  Value away = elements.compare(Predicate::ugt, back, there);
  Value closer = elements.select(away, elements.make<arith::SubIOp>(bits, elements.word(1)), bits);
  Value odd = elements.make<arith::OrIOp>(closer, elements.word(1));
  return elements.number(elements.select(elements.compare(Predicate::eq, back, there), bits, odd));
}

struct WidenSmallFloats final : OpRewritePattern<arith::ExtFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::ExtFOp op, PatternRewriter &rewriter) const override {
    std::optional<Format> format = formatOf(op.getIn().getType());
    if (!format || formatOf(op.getType()))
      return failure();
    Elements elements(rewriter, op.getLoc(), op.getType());
    Value result = widened(elements, *format, op.getIn());
    Type element = getElementTypeOrSelf(op.getType());
    if (element.isF64())
      result = elements.make<arith::ExtFOp>(op.getType(), result);
    else if (!element.isF32())
      result = elements.make<arith::TruncFOp>(op.getType(), result);
    rewriter.replaceOp(op, result);
    return success();
  }
};

struct NarrowToSmallFloats final : OpRewritePattern<arith::TruncFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::TruncFOp op, PatternRewriter &rewriter) const override {
    std::optional<Format> format = formatOf(op.getType());
    if (!format || op.getRoundingmode().value_or(arith::RoundingMode::to_nearest_even) != arith::RoundingMode::to_nearest_even)
      return failure();
    Elements elements(rewriter, op.getLoc(), op.getType());
    Value number = op.getIn();
    Type element = getElementTypeOrSelf(number.getType());
    if (element.isF64())
      number = roundedToOdd(elements, number);
    else if (element.isF16() || element.isBF16())
      number = elements.make<arith::ExtFOp>(elements.floats(), number);
    else if (!element.isF32())
      return failure();
    rewriter.replaceOp(op, narrowed(elements, *format, number, op.getType()));
    return success();
  }
};

/// f64 by way of f32, for conversions that round once more: MLIR 22 rounds to f32 in between, to the nearest.
struct NarrowDoublesToOdd final : OpRewritePattern<arith::TruncFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::TruncFOp op, PatternRewriter &rewriter) const override {
    if (!formatOf(op.getType()) || !getElementTypeOrSelf(op.getIn().getType()).isF64())
      return failure();
    Elements elements(rewriter, op.getLoc(), op.getType());
    rewriter.modifyOpInPlace(op, [&] { op->setOperand(0, roundedToOdd(elements, op.getIn())); });
    return success();
  }
};

/// Modules without any are not tidied.
bool hasSmallFloats(Operation *root) {
  return root
      ->walk([](Operation *operation) {
        if (!isa<arith::ExtFOp, arith::TruncFOp>(operation))
          return WalkResult::advance();
        bool small = formatOf(operation->getOperand(0).getType()) || formatOf(operation->getResult(0).getType());
        return small ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

} // namespace

LogicalResult roundDoublesToOdd(Operation *root) {
  if (!hasSmallFloats(root))
    return success();
  RewritePatternSet patterns(root->getContext());
  patterns.add<NarrowDoublesToOdd>(patterns.getContext());
  return rewrite(root, std::move(patterns));
}

LogicalResult expandSmallFloats(Operation *root) {
  if (!hasSmallFloats(root))
    return success();
  RewritePatternSet patterns(root->getContext());
  patterns.add<WidenSmallFloats, NarrowToSmallFloats>(patterns.getContext());
  return rewrite(root, std::move(patterns));
}

} // namespace gpulower
