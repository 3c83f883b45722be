// Matrices of subgroups (`gpu.subgroup_mma_*`) on AMD, for which upstream has no conversion: vectors of what each lane holds,
// multiplied by MFMA or WMMA. Which lane holds what is in AMD's ISA manuals, for each instruction.

#include "matrices.h"

#include "mlir/Dialect/AMDGPU/IR/AMDGPUDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace gpulower {
namespace {

/// The instructions that multiply matrices.
enum class Cores { None, Mfma, WmmaOfGfx11, WmmaOfGfx12 };

Cores coresOf(const amdgpu::Chipset &chip) {
  const unsigned minor = chip.minorVersion, stepping = chip.steppingVersion;
  switch (chip.majorVersion) {
  case 9:
    return minor >= 4 || stepping == 8 || stepping == 0xa ? Cores::Mfma : Cores::None;
  case 11:
    return minor == 0 || minor == 5 ? Cores::WmmaOfGfx11 : Cores::None;
  case 12:
    return minor == 0 ? Cores::WmmaOfGfx12 : Cores::None;
  default:
    return Cores::None;
  }
}

bool hasDoubles(const amdgpu::Chipset &chip) { return chip.minorVersion >= 4 || chip.steppingVersion == 0xa; }

/// From gfx942 on there is one instruction for 8-bit integers, which multiplies 32 of them.
bool multiplies32Bytes(const amdgpu::Chipset &chip) { return chip.minorVersion >= 4; }

/// The elements of a lane. One coordinate of all of them is the lane's number modulo 16: the row of a left factor, and
/// the column of a right factor or a sum. The other one is this.
struct Share {
  int64_t count;
  /// How far apart the first elements of the groups of 16 lanes are.
  int64_t perGroup;
  /// How far apart the elements of a lane are.
  int64_t step;
};

/// None for what the chip has no instruction for.
std::optional<Share> shareOf(gpu::MMAMatrixType type, const GpuChip &chip) {
  Cores cores = coresOf(chip.chipset);
  if (cores == Cores::None || chip.subgroupSize != (cores == Cores::Mfma ? 64 : 32))
    return std::nullopt;
  Type element = type.getElementType();
  bool mfma = cores == Cores::Mfma, wide = element.isF64();
  if (wide && !(mfma && hasDoubles(chip.chipset)))
    return std::nullopt;
  ArrayRef<int64_t> shape = type.getShape();
  if (type.getOperand() == "COp") {
    if (shape[0] != 16 || shape[1] != 16 || element.isInteger(8))
      return std::nullopt;
    if (mfma)
      return wide ? Share{4, 1, 4} : Share{4, 4, 1};
    return cores == Cores::WmmaOfGfx11 ? Share{8, 1, 2} : Share{8, 8, 1};
  }
  bool left = type.getOperand() == "AOp";
  int64_t depth = left ? shape[1] : shape[0];
  if ((left ? shape[0] : shape[1]) != 16)
    return std::nullopt;
  if (element.isF16() || element.isInteger(8)) {
    // MFMA has no unsigned integers.
    if (depth != 16 || (mfma && element.isUnsignedInteger()))
      return std::nullopt;
    if (mfma)
      return Share{4, 4, 1};
    // On gfx11 both groups of lanes hold the same.
    return cores == Cores::WmmaOfGfx11 ? Share{16, 0, 1} : Share{8, 8, 1};
  }
  if (!mfma || !(depth == 4 || (depth == 8 && element.isF32())) || !(wide || element.isF32()))
    return std::nullopt;
  return Share{depth / 4, 1, 4};
}

/// What there is, for whoever asked for something else.
std::string possible(const GpuChip &chip) {
  const amdgpu::Chipset &version = chip.chipset;
  std::string name = llvm::formatv("gfx{0}{1}{2:x-}", version.majorVersion, version.minorVersion, version.steppingVersion);
  switch (coresOf(version)) {
  case Cores::None:
    return name + " has no instructions for them that are known here";
  case Cores::Mfma:
    return name + " multiplies 16x16x16 of f16 into f16 or f32, 16x16x16 of si8 into i32, 16x16x8 and 16x16x4 of f32" +
           (hasDoubles(version) ? ", and 16x16x4 of f64" : "");
  case Cores::WmmaOfGfx11:
  case Cores::WmmaOfGfx12:
    if (chip.subgroupSize != 32)
      return name + " multiplies matrices in waves of 32 lanes; leave out wave-size=64";
    return name + " multiplies 16x16x16 of f16 into f16 or f32, and 16x16x16 of si8 or ui8 into i32";
  }
  return name;
}

Type elementInRegisters(gpu::MMAMatrixType type) {
  Type element = type.getElementType();
  return element.isInteger(8) ? IntegerType::get(type.getContext(), 8) : element;
}

std::string reasonAgainstMemory(Type memory, gpu::MMAMatrixType matrix) {
  Type element = cast<MemRefType>(memory).getElementType();
  if (element == elementInRegisters(matrix))
    return "";
  return llvm::formatv("its memory has elements of {0}, and the matrix those of {1}", element, matrix.getElementType());
}

std::string reasonAgainstCompute(gpu::SubgroupMmaComputeOp op) {
  Type a = cast<gpu::MMAMatrixType>(op.getOpA().getType()).getElementType();
  Type b = cast<gpu::MMAMatrixType>(op.getOpB().getType()).getElementType();
  Type c = cast<gpu::MMAMatrixType>(op.getOpC().getType()).getElementType();
  bool fits = a == b && (a == c || (a.isF16() && c.isF32()));
  if (a.isInteger(8) && b.isInteger(8))
    fits = c.isInteger(32);
  if (fits)
    return "";
  return llvm::formatv("there is no product of {0} and {1} that is added to {2}", a, b, c);
}

std::string reasonAgainstElements(gpu::SubgroupMmaElementwiseOp op, const GpuChip &chip) {
  gpu::MMAMatrixType to = op.getType();
  if (op.getOpType() != gpu::MMAElementwiseOp::EXTF)
    return reasonAgainstOperands(op, !isa<FloatType>(to.getElementType()));
  auto from = op.getArgs().size() == 1 ? dyn_cast<gpu::MMAMatrixType>(op.getArgs()[0].getType()) : gpu::MMAMatrixType();
  if (from && from.getElementType().isF16() && to.getElementType().isF32() && from.getOperand() == to.getOperand() &&
      from.getShape() == to.getShape() && to.getOperand() == "COp")
    return "";
  return llvm::formatv("extf is for one accumulator of f16, which becomes one of f32; this makes {0}", to);
}

/// No conversion takes integers with a sign outside of matrices.
std::string reasonAgainstScalar(Type type) {
  if (type.isSignlessIntOrFloat())
    return "";
  return llvm::formatv("a scalar of type {0} has no conversion to LLVM; load and store it through memory", type);
}

constexpr const char *oneIndex = "the elements of a lane have one index";

/// Where a matrix lies in memory: elements, one after the other, and the place of a lane's first one.
struct Place {
  Value memory;
  Value first;
  /// How far apart a lane's elements are in memory.
  int64_t step;
};

Value indexed(OpBuilder &builder, Location loc, Value index, int64_t times) {
  if (times == 1)
    return index;
  return arith::MulIOp::create(builder, loc, index, arith::ConstantIndexOp::create(builder, loc, times));
}

Place placeOf(OpBuilder &builder, Location loc, gpu::MMAMatrixType matrix, const Share &share, Value memory, ValueRange indices,
              int64_t lead, bool transposed) {
  auto type = cast<MemRefType>(memory.getType());
  auto whole = memref::ExtractStridedMetadataOp::create(builder, loc, memory);
  Value corner = whole.getOffset();
  for (auto [index, stride] : llvm::zip(indices, whole.getStrides()))
    corner = arith::AddIOp::create(builder, loc, corner, arith::MulIOp::create(builder, loc, index, stride));
  auto layout = StridedLayoutAttr::get(builder.getContext(), ShapedType::kDynamic, {1});
  ArrayRef<int64_t> shape = matrix.getShape();
  int64_t rows = transposed ? shape[1] : shape[0], columns = transposed ? shape[0] : shape[1];
  int64_t size = (rows - 1) * lead + columns;
  auto flat = MemRefType::get({size}, type.getElementType(), layout, type.getMemorySpace());
  Value line = memref::ReinterpretCastOp::create(builder, loc, flat, whole.getBaseBuffer(), OpFoldResult(corner),
                                                 ArrayRef<OpFoldResult>{builder.getIndexAttr(size)},
                                                 ArrayRef<OpFoldResult>{builder.getIndexAttr(1)});
  int64_t ofRow = transposed ? 1 : lead, ofColumn = transposed ? lead : 1;
  bool left = matrix.getOperand() == "AOp";
  int64_t ofLane = left ? ofRow : ofColumn, ofElement = left ? ofColumn : ofRow;
  Value lane = gpu::LaneIdOp::create(builder, loc, builder.getIndexType(), /*upper_bound=*/IntegerAttr());
  Value sixteen = arith::ConstantIndexOp::create(builder, loc, 16);
  Value first = indexed(builder, loc, arith::RemUIOp::create(builder, loc, lane, sixteen), ofLane);
  if (share.perGroup != 0) {
    Value group = arith::DivUIOp::create(builder, loc, lane, sixteen);
    first = arith::AddIOp::create(builder, loc, first, indexed(builder, loc, group, share.perGroup * ofElement));
  }
  return {line, first, share.step * ofElement};
}

Value elementAt(OpBuilder &builder, Location loc, const Place &place, int64_t number) {
  Value distance = arith::ConstantIndexOp::create(builder, loc, number * place.step);
  return arith::AddIOp::create(builder, loc, place.first, distance);
}

/// Replaces one operation after the other. Between them values have the types that they had, with casts.
class Expansion {
public:
  Expansion(Operation *root, const GpuChip &chip) : root(root), chip(chip) {}

  void run() {
    SmallVector<Operation *> operations;
    root->walk([&](Operation *operation) {
      if (operation->getName().getStringRef().starts_with("gpu.subgroup_mma_"))
        operations.push_back(operation);
    });
    if (operations.empty())
      return;
    for (Operation *operation : operations)
      replace(operation);
    AttrTypeReplacer replacer;
    replacer.addReplacement([&](gpu::MMAMatrixType type) -> std::optional<Type> { return vectorOf(type); });
    replacer.recursivelyReplaceElementsIn(root, /*replaceAttrs=*/true, /*replaceLocs=*/false, /*replaceTypes=*/true);
    for (UnrealizedConversionCastOp cast : casts) {
      cast.getResult(0).replaceAllUsesWith(cast.getOperand(0));
      cast.erase();
    }
  }

private:
  /// A matrix that no instruction takes stays as it is: nothing uses it.
  Type vectorOf(gpu::MMAMatrixType type) const {
    std::optional<Share> share = shareOf(type, chip);
    return share ? VectorType::get({share->count}, elementInRegisters(type)) : Type(type);
  }

  Value registers(OpBuilder &builder, Value matrix) {
    Type type = vectorOf(cast<gpu::MMAMatrixType>(matrix.getType()));
    casts.push_back(UnrealizedConversionCastOp::create(builder, matrix.getLoc(), type, matrix));
    return casts.back().getResult(0);
  }

  void replace(Operation *operation) {
    OpBuilder builder(operation);
    Location loc = operation->getLoc();
    Value result;
    if (auto load = dyn_cast<gpu::SubgroupMmaLoadMatrixOp>(operation))
      result = loaded(builder, load);
    else if (auto store = dyn_cast<gpu::SubgroupMmaStoreMatrixOp>(operation))
      this->store(builder, store);
    else if (auto compute = dyn_cast<gpu::SubgroupMmaComputeOp>(operation))
      result = product(builder, compute);
    else if (auto constant = dyn_cast<gpu::SubgroupMmaConstantMatrixOp>(operation))
      result = vector::BroadcastOp::create(builder, loc, vectorOf(cast<gpu::MMAMatrixType>(constant.getType())),
                                           constant.getValue());
    else if (auto elementwise = dyn_cast<gpu::SubgroupMmaElementwiseOp>(operation))
      result = onElements(builder, elementwise);
    else if (auto extract = dyn_cast<gpu::SubgroupMmaExtractThreadLocalOp>(operation)) {
      Value element = vector::ExtractOp::create(builder, loc, registers(builder, extract.getMatrix()),
                                                OpFoldResult(extract.getIndices()[0]));
      operation->getResult(0).replaceAllUsesWith(element);
    } else if (auto insert = dyn_cast<gpu::SubgroupMmaInsertThreadLocalOp>(operation)) {
      result = vector::InsertOp::create(builder, loc, insert.getValue(), registers(builder, insert.getMatrix()),
                                        OpFoldResult(insert.getIndices()[0]));
    }
    if (result) {
      casts.push_back(UnrealizedConversionCastOp::create(builder, loc, operation->getResult(0).getType(), result));
      operation->getResult(0).replaceAllUsesWith(casts.back().getResult(0));
    }
    operation->erase();
  }

  Value loaded(OpBuilder &builder, gpu::SubgroupMmaLoadMatrixOp op) {
    Location loc = op.getLoc();
    auto matrix = cast<gpu::MMAMatrixType>(op.getRes().getType());
    auto type = cast<VectorType>(vectorOf(matrix));
    Place place = placeOf(builder, loc, matrix, *shareOf(matrix, chip), op.getSrcMemref(), op.getIndices(),
                          op.getLeadDimension().getSExtValue(), op.getTranspose().value_or(false));
    if (place.step == 1)
      return vector::LoadOp::create(builder, loc, type, place.memory, place.first);
    SmallVector<Value> elements;
    for (int64_t number = 0; number < type.getNumElements(); ++number)
      elements.push_back(memref::LoadOp::create(builder, loc, place.memory, elementAt(builder, loc, place, number)));
    return vector::FromElementsOp::create(builder, loc, type, elements);
  }

  void store(OpBuilder &builder, gpu::SubgroupMmaStoreMatrixOp op) {
    Location loc = op.getLoc();
    auto matrix = cast<gpu::MMAMatrixType>(op.getSrc().getType());
    Value values = registers(builder, op.getSrc());
    Share share = *shareOf(matrix, chip);
    Place place = placeOf(builder, loc, matrix, share, op.getDstMemref(), op.getIndices(),
                          op.getLeadDimension().getSExtValue(), op.getTranspose().value_or(false));
    if (place.step == 1) {
      vector::StoreOp::create(builder, loc, values, place.memory, place.first);
      return;
    }
    for (int64_t number = 0; number < share.count; ++number) {
      Value element = vector::ExtractOp::create(builder, loc, values, number);
      memref::StoreOp::create(builder, loc, element, place.memory, elementAt(builder, loc, place, number));
    }
  }

  /// Whether factors were transposed when they were loaded does not matter: lanes hold the same elements.
  Value product(OpBuilder &builder, gpu::SubgroupMmaComputeOp op) {
    Location loc = op.getLoc();
    auto typeA = cast<gpu::MMAMatrixType>(op.getOpA().getType()), typeB = cast<gpu::MMAMatrixType>(op.getOpB().getType());
    Value a = registers(builder, op.getOpA()), b = registers(builder, op.getOpB()), c = registers(builder, op.getOpC());
    auto type = cast<VectorType>(c.getType());
    // Sums of f16 are computed in f32, and rounded once for each product of matrices.
    bool narrow = type.getElementType().isF16();
    if (narrow)
      c = arith::ExtFOp::create(builder, loc, VectorType::get(type.getShape(), builder.getF32Type()), c);
    if (coresOf(chip.chipset) == Cores::Mfma)
      c = mfma(builder, loc, typeA, a, b, c);
    else
      c = amdgpu::WMMAOp::create(builder, loc, c.getType(), 16, 16, 16, a, b, c, /*subwordOffset=*/0,
                                 typeA.getElementType().isUnsignedInteger(), typeB.getElementType().isUnsignedInteger());
    return narrow ? arith::TruncFOp::create(builder, loc, type, c).getResult() : c;
  }

  Value mfma(OpBuilder &builder, Location loc, gpu::MMAMatrixType type, Value a, Value b, Value c) {
    int64_t depth = 16;
    auto multiply = [&](Value left, Value right, Value sum) {
      return amdgpu::MFMAOp::create(builder, loc, sum.getType(), 16, 16, depth, 1, left, right, sum).getResult();
    };
    Type element = type.getElementType();
    if (element.isInteger(8) && multiplies32Bytes(chip.chipset)) {
      depth = 32;
      Value zeros = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(a.getType()));
      auto padded = [&](Value value) {
        return vector::ShuffleOp::create(builder, loc, value, zeros, ArrayRef<int64_t>{0, 1, 2, 3, 4, 5, 6, 7}).getResult();
      };
      Value right = padded(b);
      return multiply(padded(a), right, c);
    }
    if (element.isF16() || element.isInteger(8))
      return multiply(a, b, c);
    depth = 4;
    for (int64_t number = 0; number < cast<VectorType>(a.getType()).getNumElements(); ++number) {
      Value right = vector::ExtractOp::create(builder, loc, b, number);
      c = multiply(vector::ExtractOp::create(builder, loc, a, number), right, c);
    }
    return c;
  }

  Value onElements(OpBuilder &builder, gpu::SubgroupMmaElementwiseOp op) {
    SmallVector<Value> operands;
    for (Value operand : op.getArgs())
      operands.push_back(registers(builder, operand));
    if (op.getOpType() == gpu::MMAElementwiseOp::EXTF)
      return arith::ExtFOp::create(builder, op.getLoc(), vectorOf(op.getType()), operands[0]);
    return applyToElements(builder, op.getLoc(), op.getOpType(), operands);
  }

  Operation *root;
  const GpuChip &chip;
  SmallVector<UnrealizedConversionCastOp> casts;
};

} // namespace

std::string reasonAgainstMatrixOnAmd(Operation *operation, const GpuChip &chip) {
  for (TypeRange types : {TypeRange(operation->getOperandTypes()), TypeRange(operation->getResultTypes())})
    for (Type type : types)
      if (auto matrix = dyn_cast<gpu::MMAMatrixType>(type); matrix && !shareOf(matrix, chip))
        return llvm::formatv("no matrices of type {0}: {1}", type, possible(chip));
  if (auto load = dyn_cast<gpu::SubgroupMmaLoadMatrixOp>(operation))
    return reasonAgainstMemory(load.getSrcMemref().getType(), cast<gpu::MMAMatrixType>(load.getRes().getType()));
  if (auto store = dyn_cast<gpu::SubgroupMmaStoreMatrixOp>(operation))
    return reasonAgainstMemory(store.getDstMemref().getType(), cast<gpu::MMAMatrixType>(store.getSrc().getType()));
  if (auto compute = dyn_cast<gpu::SubgroupMmaComputeOp>(operation))
    return reasonAgainstCompute(compute);
  if (auto elementwise = dyn_cast<gpu::SubgroupMmaElementwiseOp>(operation))
    return reasonAgainstElements(elementwise, chip);
  if (auto constant = dyn_cast<gpu::SubgroupMmaConstantMatrixOp>(operation))
    return reasonAgainstScalar(constant.getValue().getType());
  if (auto extract = dyn_cast<gpu::SubgroupMmaExtractThreadLocalOp>(operation))
    return extract.getIndices().size() == 1 ? reasonAgainstScalar(extract.getType()) : oneIndex;
  if (auto insert = dyn_cast<gpu::SubgroupMmaInsertThreadLocalOp>(operation))
    return insert.getIndices().size() == 1 ? reasonAgainstScalar(insert.getValue().getType()) : oneIndex;
  return "";
}

bool isMatrixOfAmd(Type type, const GpuChip &chip) {
  auto matrix = dyn_cast<gpu::MMAMatrixType>(type);
  return matrix && shareOf(matrix, chip);
}

void expandMatrices(Operation *root, const GpuChip &chip) { Expansion(root, chip).run(); }

} // namespace gpulower
