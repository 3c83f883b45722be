// Kernels that take each of their arguments in eight bytes: see bridge/kernel_arguments.rs.

#include "mlir-c/IR.h"
#include "mlir/CAPI/IR.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;

namespace {

constexpr unsigned argumentBits = 64;

bool isKernel(Operation *operation) {
  return operation->hasAttr(gpu::GPUDialect::getKernelFuncAttrName()) || operation->hasAttr("nvvm.kernel") ||
         operation->hasAttr("rocdl.kernel");
}

/// Whether an argument of the type takes eight bytes, or several times eight, as it is.
bool isWide(Type type) {
  if (isa<IndexType, BaseMemRefType, LLVM::LLVMPointerType>(type))
    return true;
  return (type.isSignlessInteger() || isa<FloatType>(type)) && type.getIntOrFloatBitWidth() == argumentBits;
}

bool isNarrow(Type type) {
  return (type.isSignlessInteger() || isa<FloatType>(type)) && type.getIntOrFloatBitWidth() < argumentBits;
}

/// The number of a type in the low bits of one of eight bytes.
Value narrowed(OpBuilder &builder, Location place, Value wide, Type type, bool lowered) {
  Type bits = builder.getIntegerType(type.getIntOrFloatBitWidth());
  Value low = lowered ? LLVM::TruncOp::create(builder, place, bits, wide).getResult()
                      : arith::TruncIOp::create(builder, place, bits, wide).getResult();
  if (bits == type)
    return low;
  return lowered ? LLVM::BitcastOp::create(builder, place, type, low).getResult()
                 : arith::BitcastOp::create(builder, place, type, low).getResult();
}

void widen(FunctionOpInterface function, bool leadingPointer) {
  Block &entry = function.getFunctionBody().front();
  OpBuilder builder = OpBuilder::atBlockBegin(&entry);
  bool lowered = isa<LLVM::LLVMFuncOp>(function.getOperation());
  SmallVector<Type> types(function.getArgumentTypes());
  for (unsigned index = 0, count = function.getNumArguments(); index != count; ++index) {
    Type type = types[index];
    if (!isNarrow(type))
      continue;
    BlockArgument argument = function.getArgument(index);
    types[index] = builder.getIntegerType(argumentBits);
    argument.setType(types[index]);
    Value low = narrowed(builder, argument.getLoc(), argument, type, lowered);
    argument.replaceUsesWithIf(low, [&](OpOperand &use) {
      Operation *user = use.getOwner();
      return !(user->getBlock() == &entry && user->isBeforeInBlock(&*builder.getInsertionPoint()));
    });
  }
  function.setType(function.cloneTypeWith(types, function.getResultTypes()));
  if (leadingPointer) {
    Type pointer = LLVM::LLVMPointerType::get(function.getContext());
    (void)function.insertArgument(0, pointer, {}, function.getLoc());
  }
}

} // namespace

extern "C" {

/// Lets the kernels below `root` take numbers of fewer than eight bytes in eight, and another pointer before everything else if
/// that is asked for. Null; or the kernel with an argument that is neither a number nor a pointer, the type of which is given, and
/// then nothing is changed.
MlirOperation gpulowerWidenArguments(MlirOperation root, bool leadingPointer, MlirType *found) noexcept {
  MLIRContext *context = unwrap(root)->getContext();
  context->getOrLoadDialect<arith::ArithDialect>();
  context->getOrLoadDialect<LLVM::LLVMDialect>();
  SmallVector<FunctionOpInterface> kernels;
  Operation *refused = nullptr;
  unwrap(root)->walk([&](FunctionOpInterface function) {
    if (!isKernel(function) || function.isExternal())
      return;
    kernels.push_back(function);
    for (Type type : function.getArgumentTypes())
      if (!refused && !isWide(type) && !isNarrow(type)) {
        refused = function;
        *found = wrap(type);
      }
  });
  if (!refused)
    for (FunctionOpInterface kernel : kernels)
      widen(kernel, leadingPointer);
  return wrap(refused);
}

} // extern "C"
