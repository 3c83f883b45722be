// Matrices of subgroups (`gpu.subgroup_mma_*`) on NVIDIA, where MLIR's conversion ends in code that cannot be reached, or
// makes what does not translate (mlir/lib/Conversion/GPUToNVVM/WmmaOpsToNvvm.cpp).

#include "matrices.h"

#include "mlir/CAPI/IR.h"
#include "mlir/Conversion/GPUToNVVM/GPUToNVVMPass.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/IR/Intrinsics.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace gpulower;
using Kind = gpu::MMAElementwiseOp;

namespace {

/// What the registers of a lane hold of a matrix.
enum class Content { Floats, Integers, Packed };

/// 8-bit integers are packed, four to a register, and tf32 is held as bits.
Content contentOf(gpu::MMAMatrixType type) {
  Type element = type.getElementType();
  bool isAccumulator = type.getOperand() == "COp";
  if (element.isInteger(8) || (element.isF32() && !isAccumulator))
    return Content::Packed;
  return isa<FloatType>(element) ? Content::Floats : Content::Integers;
}

bool isOfIntegers(Kind kind) {
  switch (kind) {
  case Kind::ADDI:
  case Kind::MULI:
  case Kind::SUBI:
  case Kind::DIVS:
  case Kind::DIVU:
  case Kind::NEGATES:
    return true;
  default:
    return false;
  }
}

bool isUnary(Kind kind) { return kind == Kind::NEGATEF || kind == Kind::NEGATES; }

/// Whether MLIR's own conversion takes it. Of two f16 in a register it makes maxima and minima that do not translate.
bool isUpstreams(gpu::SubgroupMmaElementwiseOp op) {
  auto several = dyn_cast<LLVM::LLVMStructType>(convertMMAToLLVMType(op.getType()));
  if (!several)
    return false;
  switch (op.getOpType()) {
  case Kind::MAXF:
  case Kind::MINF:
    return !isa<VectorType>(several.getBody()[0]);
  case Kind::ADDF:
  case Kind::MULF:
  case Kind::DIVF:
    return true;
  default:
    return false;
  }
}

/// On the registers of a lane, one after the other.
struct ExpandElementwise final : OpRewritePattern<gpu::SubgroupMmaElementwiseOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(gpu::SubgroupMmaElementwiseOp op, PatternRewriter &rewriter) const override {
    if (isUpstreams(op))
      return failure();
    Location loc = op.getLoc();
    Type registers = convertMMAToLLVMType(op.getType());
    SmallVector<Value> operands;
    for (Value operand : op.getArgs())
      operands.push_back(UnrealizedConversionCastOp::create(rewriter, loc, registers, operand).getResult(0));
    Value result;
    if (auto several = dyn_cast<LLVM::LLVMStructType>(registers)) {
      result = LLVM::UndefOp::create(rewriter, loc, registers);
      for (int64_t index = 0, end = several.getBody().size(); index < end; ++index) {
        SmallVector<Value> parts;
        for (Value operand : operands)
          parts.push_back(LLVM::ExtractValueOp::create(rewriter, loc, operand, index));
        Value element = applyToElements(rewriter, loc, op.getOpType(), parts);
        result = LLVM::InsertValueOp::create(rewriter, loc, result, element, index);
      }
    } else {
      result = applyToElements(rewriter, loc, op.getOpType(), operands);
    }
    rewriter.replaceOpWithNewOp<UnrealizedConversionCastOp>(op, op.getType(), result);
    return success();
  }
};

std::string reasonAgainstElementwise(gpu::SubgroupMmaElementwiseOp op) {
  if (op.getOpType() == Kind::EXTF)
    return "where the elements of matrices of f16 and of f32 are is not known to be the same; store the matrix, and extend "
           "what is loaded";
  Content content = contentOf(op.getType());
  if (content == Content::Packed)
    return llvm::formatv("the elements of {0} are packed or mere bits in registers; compute with them before they are "
                         "loaded as a matrix, or on the accumulator",
                         op.getType());
  return reasonAgainstOperands(op, content == Content::Integers);
}

} // namespace

std::string gpulower::reasonAgainstOperands(gpu::SubgroupMmaElementwiseOp op, bool integers) {
  Kind kind = op.getOpType();
  StringRef name = gpu::stringifyMMAElementwiseOp(kind);
  if (op.getArgs().size() != (isUnary(kind) ? 1 : 2))
    return llvm::formatv("{0} takes {1}, and {2} are given", name, isUnary(kind) ? "one matrix" : "two matrices",
                         op.getArgs().size());
  if (op.getArgs().front().getType() != op.getType())
    return llvm::formatv("{0} of {1} gives no {2}", name, op.getArgs().front().getType(), op.getType());
  if (integers != isOfIntegers(kind))
    return llvm::formatv("{0} is not for matrices of {1}", name, op.getType().getElementType());
  return "";
}

Value gpulower::applyToElements(OpBuilder &builder, Location loc, Kind kind, ValueRange values) {
  switch (kind) {
  case Kind::ADDF:
    return arith::AddFOp::create(builder, loc, values[0], values[1]);
  case Kind::MULF:
    return arith::MulFOp::create(builder, loc, values[0], values[1]);
  case Kind::SUBF:
    return arith::SubFOp::create(builder, loc, values[0], values[1]);
  case Kind::DIVF:
    return arith::DivFOp::create(builder, loc, values[0], values[1]);
  case Kind::MAXF:
    return arith::MaximumFOp::create(builder, loc, values[0], values[1]);
  case Kind::MINF:
    return arith::MinimumFOp::create(builder, loc, values[0], values[1]);
  case Kind::NEGATEF:
    return arith::NegFOp::create(builder, loc, values[0]);
  case Kind::ADDI:
    return arith::AddIOp::create(builder, loc, values[0], values[1]);
  case Kind::MULI:
    return arith::MulIOp::create(builder, loc, values[0], values[1]);
  case Kind::SUBI:
    return arith::SubIOp::create(builder, loc, values[0], values[1]);
  case Kind::DIVS:
    return arith::DivSIOp::create(builder, loc, values[0], values[1]);
  case Kind::DIVU:
    return arith::DivUIOp::create(builder, loc, values[0], values[1]);
  case Kind::NEGATES: {
    Value zero = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(values[0].getType()));
    return arith::SubIOp::create(builder, loc, zero, values[0]);
  }
  case Kind::EXTF:
    break;
  }
  return Value();
}

/// The first chips with matrices of such elements (PTX ISA, "wmma").
static unsigned firstCapability(gpu::MMAMatrixType type) {
  Type element = type.getElementType();
  if (element.isInteger())
    return 72;
  bool isTf32 = element.isF32() && contentOf(type) == Content::Packed;
  return element.isF64() || isTf32 ? 80 : 70;
}

std::string gpulower::reasonAgainstMatrix(Operation *operation, const GpuChip &chip) {
  for (TypeRange types : {TypeRange(operation->getOperandTypes()), TypeRange(operation->getResultTypes())})
    for (Type type : types) {
      auto matrix = dyn_cast<gpu::MMAMatrixType>(type);
      if (!matrix)
        continue;
      if (unsigned first = firstCapability(matrix); chip.capability != 0 && chip.capability < first)
        return llvm::formatv("matrices of type {0} need sm_{1} or later", type, first);
      // Of 8-bit integers MLIR asks for the dimension that has as many elements as lanes have shares of it.
      ArrayRef<int64_t> shape = matrix.getShape();
      int64_t size = matrix.getOperand() == "AOp" ? shape[0] : shape[1];
      if (matrix.getElementType().isInteger(8) &&
          (matrix.getOperand() == "COp" || (size != 8 && size != 16 && size != 32)))
        return llvm::formatv("no chip has matrices of type {0}", type);
    }
  if (auto constant = dyn_cast<gpu::SubgroupMmaConstantMatrixOp>(operation))
    if (contentOf(cast<gpu::MMAMatrixType>(constant.getType())) == Content::Packed)
      return llvm::formatv("the elements of {0} are packed or mere bits in registers; load the constant from memory",
                           constant.getType());
  if (auto elementwise = dyn_cast<gpu::SubgroupMmaElementwiseOp>(operation))
    return reasonAgainstElementwise(elementwise);
  return "";
}

void gpulower::populateMatrixPatterns(RewritePatternSet &patterns) { patterns.add<ExpandElementwise>(patterns.getContext()); }

extern "C" {

/// MLIR 22 gives `nvvm.wmma.load` of a single 32-bit register a structure with one member, and translates it to an intrinsic
/// that gives the register itself: taking the member out of that crashes LLVM. Here the intrinsic is called by its name.
///
/// Can go when `nvvm.wmma.load` may have an `i32` as its result.
void gpulowerLoadSingleRegisters(MlirOperation root) {
  SmallVector<NVVM::WMMALoadOp> loads;
  unwrap(root)->walk([&](NVVM::WMMALoadOp load) {
    auto registers = dyn_cast<LLVM::LLVMStructType>(load.getType());
    if (registers && !registers.isOpaque() && registers.getBody().size() == 1)
      loads.push_back(load);
  });
  for (NVVM::WMMALoadOp load : loads) {
    llvm::Intrinsic::ID id = NVVM::WMMALoadOp::getIntrinsicID(load.getM(), load.getN(), load.getK(), load.getLayout(),
                                                              load.getEltype(), load.getFrag());
    if (id == llvm::Intrinsic::not_intrinsic)
      continue;
    OpBuilder builder(load);
    Type inside = cast<LLVM::LLVMStructType>(load.getType()).getBody()[0];
    auto call = LLVM::CallIntrinsicOp::create(builder, load.getLoc(), inside,
                                              builder.getStringAttr(llvm::Intrinsic::getBaseName(id)),
                                              ValueRange{load.getPtr(), load.getStride()});
    Value whole = LLVM::UndefOp::create(builder, load.getLoc(), load.getType());
    whole = LLVM::InsertValueOp::create(builder, load.getLoc(), whole, call.getResult(0), ArrayRef<int64_t>{0});
    load.replaceAllUsesWith(whole);
    load.erase();
  }
}

/// Whether there are operations that `convert-nvvm-to-llvm` writes as PTX, since MLIR does not translate them.
bool gpulowerHasPtxText(MlirOperation root) {
  auto isText = [](NVVM::BasicPtxBuilderInterface op) {
    return op.hasIntrinsic() ? WalkResult::advance() : WalkResult::interrupt();
  };
  return unwrap(root)->walk(isText).wasInterrupted();
}

} // extern "C"
