// What MLIR's verifiers of `nvgpu` and `amdgpu` take for granted, and what they do not look at.
//
// They ask memrefs and vectors for the bits of an element, whatever it is (`Type::getIntOrFloatBitWidth`, which reads
// through a null pointer for `index` and others), divide by that, and look at dimensions that a type may not have:
// mlir/lib/Dialect/NVGPU/IR/NVGPUDialect.cpp (`DeviceAsyncCopyOp`, `LdMatrixOp`, `verifyTmaDescriptorWithMemref`,
// `WarpgroupMmaStoreOp`, `WarpgroupMmaInitAccumulatorOp`) and mlir/lib/Dialect/AMDGPU/IR/AMDGPUDialect.cpp (`DPPOp`,
// `GatherToLDSOp`, `TransposeLoadOp`, `verifyBase`, `verifyDescriptorOp`).

#include "verify.h"

#include "mlir/Dialect/AMDGPU/IR/AMDGPUDialect.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Operation.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace {

bool hasBits(Type element) {
  return element.isIntOrFloat() && element.getIntOrFloatBitWidth() > 0;
}

bool hasBitsInElements(Type type) {
  auto shaped = dyn_cast<ShapedType>(type);
  return !shaped || hasBits(shaped.getElementType());
}

/// What is wrong with a type of an operand or a result; empty if nothing is.
StringRef reasonAgainst(Type type) {
  Type inside =
      llvm::TypeSwitch<Type, Type>(type)
          .Case([](nvgpu::TensorMapDescriptorType map) { return map.getTensor(); })
          .Case([](nvgpu::WarpgroupMatrixDescriptorType matrix) { return matrix.getTensor(); })
          .Case([](nvgpu::WarpgroupAccumulatorType sum) { return sum.getFragmented(); })
          .Default(type);
  auto base = dyn_cast<amdgpu::TDMBaseType>(type);
  if (!hasBitsInElements(inside) || (base && !hasBits(base.getElementType())))
    return ", whose elements are not integers or floats of at least one bit";
  if (isa<nvgpu::TensorMapDescriptorType>(type) && cast<ShapedType>(inside).getRank() == 0)
    return ", which has no dimensions";
  if (isa<nvgpu::WarpgroupAccumulatorType>(type) && cast<ShapedType>(inside).getRank() != 2)
    return ", which does not have two dimensions";
  return "";
}

/// These look at a memref, a vector or a scalar as one of bits; others of the dialect take memrefs of anything.
bool asksForBits(Operation *operation) {
  return isa<amdgpu::DPPOp, amdgpu::GatherToLDSOp, amdgpu::TransposeLoadOp,
             amdgpu::MakeDmaBaseOp, amdgpu::MakeGatherDmaBaseOp,
             amdgpu::MakeDmaDescriptorOp>(operation);
}

/// No operation has been verified yet: operands may be missing or of any type.
LogicalResult checkBeforeVerification(Operation *operation) {
  auto refuse = [&](Type type, StringRef reason) {
    return operation->emitOpError("cannot use ") << type << reason;
  };
  constexpr StringLiteral notBits = ", which is not an integer or a float of at least one bit";
  // Their translation asks the first two operands for their types, and MLIR's verifier for none.
  if (operation->getNumOperands() < 2 &&
      operation->getName().getStringRef().starts_with("rocdl.mfma.scale."))
    return operation->emitOpError("needs its matrices as operands");
  bool bits = asksForBits(operation);
  if (!bits && !isa_and_nonnull<nvgpu::NVGPUDialect>(operation->getDialect()))
    return success();
  auto check = [&](Type type) -> LogicalResult {
    StringRef reason = reasonAgainst(type);
    if (!reason.empty())
      return refuse(type, reason);
    return success();
  };
  for (Type type : operation->getOperandTypes())
    if (failed(check(type)))
      return failure();
  for (Type type : operation->getResultTypes())
    if (failed(check(type)))
      return failure();
  if (isa<nvgpu::WarpgroupMmaStoreOp>(operation))
    for (Type type : operation->getOperandTypes())
      if (auto memref = dyn_cast<MemRefType>(type); memref && memref.getRank() != 2)
        return refuse(type, ", which does not have two dimensions");
  if (auto transfer = operation->getAttrOfType<TypeAttr>("transferType"); bits && transfer) {
    Type type = transfer.getValue();
    if (!isa<ShapedType>(type) && !hasBits(type))
      return refuse(type, notBits);
    return check(type);
  }
  if (isa<amdgpu::DPPOp>(operation))
    for (Type type : operation->getOperandTypes())
      if (!hasBits(type))
        return refuse(type, notBits);
  return success();
}

} // namespace

LogicalResult gpulower::verify(Operation *root) {
  WalkResult walked = root->walk([](Operation *operation) {
    return failed(checkBeforeVerification(operation)) ? WalkResult::interrupt()
                                                      : WalkResult::advance();
  });
  return failure(walked.wasInterrupted() || failed(mlir::verify(root)));
}
