// What no conversion takes, for its types or for where it stands: said before MLIR's conversions say that something "was explicitly
// marked illegal".

#include "patterns.h"

#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace gpulower {
namespace {

StringRef advice(Type type) {
  if (isa<TensorType>(type))
    return "bufferize tensors before";
  if (isa<FunctionType>(type))
    return "call functions by their names";
  if (isa<gpu::MMAMatrixType>(type))
    return "the chip multiplies no such matrices";
  if (type.getDialect().getNamespace() == "nvgpu")
    return "inline the function before";
  return "pass scalars, vectors and memrefs";
}

/// Functions with arguments or results of types that LLVM does not have.
struct Signatures {
  Signatures(MLIRContext *context, const GpuChip &chip) : converter(context), chip(chip) {
    converter.addConversion([](gpu::MMAMatrixType type) -> std::optional<Type> { return type; });
    converter.addTypeAttributeConversion([](BaseMemRefType type, gpu::AddressSpaceAttr) {
      return IntegerAttr::get(IntegerType::get(type.getContext(), 64), workgroupSpace);
    });
  }

  LogicalResult check(FunctionOpInterface function) {
    bool kernel = gpu::GPUDialect::isKernel(function);
    auto checkAll = [&](StringRef what, ArrayRef<Type> types) {
      for (auto [index, type] : llvm::enumerate(types))
        if (!isTaken(type, kernel))
          return function.emitError() << "cannot lower " << function->getName() << " @" << function.getName() << ": its "
                                      << what << " " << index << " has the type " << type
                                      << ", which no conversion to LLVM takes; " << advice(type);
      return InFlightDiagnostic();
    };
    if (chip.barePointers && isa<gpu::GPUFuncOp>(function.getOperation()) && failed(checkBare(function)))
      return failure();
    if (failed(checkAll("argument", function.getArgumentTypes())) || failed(checkAll("result", function.getResultTypes())))
      return failure();
    return success();
  }

private:
  static LogicalResult checkBare(FunctionOpInterface function) {
    for (auto [index, type] : llvm::enumerate(function.getArgumentTypes())) {
      auto memref = dyn_cast<MemRefType>(type);
      if (!isa<BaseMemRefType>(type) || (memref && memref.hasStaticShape() && memref.getLayout().isIdentity()))
        continue;
      return function.emitError() << "cannot lower " << function->getName() << " @" << function.getName()
                                  << " with bare pointers: its argument " << index << " has the type " << type
                                  << "; a pointer alone stands for a memref of static shape without strides and offset";
    }
    return success();
  }

  bool isTaken(Type type, bool kernel) {
    if (isa<gpu::MMAMatrixType>(type))
      return !chip.amd || isMatrixOfAmd(type, chip);
    if (isa<nvgpu::TensorMapDescriptorType>(type) && kernel)
      return !chip.amd;
    // Layouts that are not strided have a refusal of their own.
    if (auto memref = dyn_cast<MemRefType>(type))
      return static_cast<bool>(converter.convertType(memref.getElementType()));
    return static_cast<bool>(converter.convertType(type));
  }

  LLVMTypeConverter converter;
  const GpuChip &chip;
};

LogicalResult checkReduction(gpu::SubgroupReduceOp reduce, const GpuChip &chip) {
  uint64_t lanes = uint64_t(reduce.getClusterSize().value_or(1)) * reduce.getClusterStride();
  if (lanes <= chip.subgroupSize)
    return success();
  return reduce.emitError() << "cannot lower " << reduce->getName() << " of " << reduce.getType() << ": its clusters reach over "
                            << lanes << " lanes, and a subgroup has " << chip.subgroupSize
                            << "; reduce in each subgroup, then across them with gpu.all_reduce";
}

/// What is wrong with a type of a value, wherever it is; empty if nothing is.
StringRef reasonAgainst(Type type) {
  if (auto vector = dyn_cast<VectorType>(type); vector && vector.isScalable())
    return "no GPU has vectors of a size that is not known; use one of a fixed size";
  if (isa<Float80Type>(getElementTypeOrSelf(type)))
    return "no GPU computes with it; use another type";
  return "";
}

/// Types that values have, and operations on f128, which LLVM makes calls of a library of: there is none for GPUs.
LogicalResult checkValues(Operation *operation) {
  auto refuse = [&](Type type, StringRef reason) {
    return operation->emitError() << "cannot lower " << operation->getName() << " with " << type << ": " << reason;
  };
  SmallVector<Type> types(operation->getResultTypes());
  for (Region &region : operation->getRegions())
    for (Block &block : region)
      llvm::append_range(types, block.getArgumentTypes());
  for (Type type : types)
    if (StringRef reason = reasonAgainst(type); !reason.empty())
      return refuse(type, reason);
  if (!isa<arith::ArithDialect, math::MathDialect>(operation->getDialect()) ||
      isa<arith::ConstantOp, arith::BitcastOp, arith::SelectOp, arith::NegFOp, math::AbsFOp, math::CopySignOp>(operation))
    return success();
  llvm::append_range(types, operation->getOperandTypes());
  for (Type type : types)
    if (isa<Float128Type>(getElementTypeOrSelf(type)))
      return refuse(type, "no GPU has an instruction for it, and no device library a function; use f64 or narrower");
  return success();
}

/// Conversions between floats and integers that LLVM makes calls of a library of for NVIDIA.
LogicalResult checkConversion(Operation *operation, const GpuChip &chip) {
  if (chip.amd || !isa<arith::FPToSIOp, arith::FPToUIOp, arith::SIToFPOp, arith::UIToFPOp>(operation))
    return success();
  for (Type type : {operation->getOperand(0).getType(), operation->getResult(0).getType()})
    if (auto integer = dyn_cast<IntegerType>(getElementTypeOrSelf(type)); integer && integer.getWidth() > 64)
      return operation->emitError() << "cannot lower " << operation->getName() << " from "
                                    << operation->getOperand(0).getType() << " to " << operation->getResult(0).getType()
                                    << ": no NVIDIA GPU converts floats and integers of more than 64 bits; convert i64";
  return success();
}

/// Operations of the gpu dialect that host code is made of.
LogicalResult checkPlace(Operation *operation) {
  if (!isa<gpu::AllocOp, gpu::DeallocOp, gpu::MemcpyOp, gpu::MemsetOp, gpu::WaitOp, gpu::HostRegisterOp,
           gpu::HostUnregisterOp, gpu::SetDefaultDeviceOp, gpu::LaunchFuncOp, gpu::LaunchOp>(operation))
    return success();
  return operation->emitError() << "cannot lower " << operation->getName()
                                << " in device code: it is for host code; in a kernel memory comes from its arguments and "
                                   "its attributions, is copied by loads and stores, and is waited for with gpu.barrier";
}

} // namespace

LogicalResult refuseTypes(Operation *root, const GpuChip &chip) {
  Signatures signatures(root->getContext(), chip);
  bool refused = false;
  root->walk([&](Operation *operation) {
    if (failed(checkValues(operation)) || failed(checkConversion(operation, chip)) || failed(checkPlace(operation)))
      refused = true;
    else if (isa<func::FuncOp, gpu::GPUFuncOp>(operation))
      refused |= failed(signatures.check(cast<FunctionOpInterface>(operation)));
    else if (auto reduce = dyn_cast<gpu::SubgroupReduceOp>(operation))
      refused |= failed(checkReduction(reduce, chip));
    else if (isa<gpu::AllReduceOp>(operation) && !operation->getParentOfType<gpu::GPUFuncOp>()) {
      operation->emitError() << "cannot lower " << operation->getName() << " of " << operation->getResult(0).getType()
                             << ": outside of a gpu.func there is no workgroup memory to reduce in; make its function a "
                                "gpu.func, or inline it";
      refused = true;
    }
  });
  return failure(refused);
}

} // namespace gpulower
