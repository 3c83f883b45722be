#include "Elementwise.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/OpImplementation.h"

#include "ElementwiseDialect.cpp.inc"

#define GET_OP_CLASSES
#include "ElementwiseOps.cpp.inc"

void elementwise::ElementwiseDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "ElementwiseOps.cpp.inc"
      >();
}

llvm::LogicalResult elementwise::MapOp::verify() {
  mlir::Block &block = getBody().front();
  if (!llvm::isa<YieldOp>(block.back()))
    return emitOpError("ends without elementwise.yield");
  for (mlir::Type type : block.getArgumentTypes())
    if (!llvm::isa<mlir::FloatType>(type))
      return emitOpError("takes ") << type << ", which is no floating-point number";
  return mlir::success();
}
