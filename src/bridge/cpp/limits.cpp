// What MLIR and LLVM accept, and then crash on or take too long over.

#include "mlir/CAPI/IR.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMTypes.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/Operation.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

/// The first operation below `root`, outermost first, with a result, an operand or an argument of a block whose type is wanted;
/// null if there is none.
static Operation *findValue(Operation *root, llvm::function_ref<bool(Type)> isWanted) {
  Operation *found = nullptr;
  root->walk<WalkOrder::PreOrder>([&](Operation *operation) {
    bool wanted = llvm::any_of(operation->getResultTypes(), isWanted) ||
                  llvm::any_of(operation->getOperandTypes(), isWanted);
    for (Region &region : operation->getRegions())
      for (Block &block : region)
        wanted |= llvm::any_of(block.getArgumentTypes(), isWanted);
    if (!wanted)
      return WalkResult::advance();
    found = operation;
    return WalkResult::interrupt();
  });
  return found;
}

extern "C" {

/// The first operation below `root` with a vector, in a result, an operand or an argument of a block, that is longer in
/// its last dimension than `longest` or has more elements than `most`; null if there is none. `type` is the vector's.
MlirOperation gpulowerFindLargeVector(MlirOperation root, int64_t longest,
                                      int64_t most, MlirType *type) {
  llvm::DenseSet<Type> small;
  auto isLarge = [&](Type whole) {
    if (!small.insert(whole).second)
      return false;
    bool found = false;
    whole.walk([&](VectorType vector) {
      int64_t elements = 1;
      for (int64_t size : vector.getShape())
        if (llvm::MulOverflow(elements, size, elements))
          elements = INT64_MAX;
      if (elements <= most &&
          (vector.getRank() == 0 || vector.getShape().back() <= longest))
        return;
      *type = wrap(Type(vector));
      found = true;
    });
    return found;
  };
  return wrap(findValue(unwrap(root), isLarge));
}

/// The first `memref.dim` below `root` that asks for a dimension that its memref does not have, by a constant; null if
/// there is none. MLIR's verifier says that this is undefined when the program runs, and its canonicalization
/// (`SimplifyDimOfAllocOp`) then reads beyond the shape.
MlirOperation gpulowerFindMissingDimension(MlirOperation root,
                                           int64_t *dimension) {
  Operation *culprit = nullptr;
  unwrap(root)->walk([&](memref::DimOp operation) {
    auto type = dyn_cast<MemRefType>(operation.getSource().getType());
    llvm::APInt index;
    if (!type || !matchPattern(operation.getIndex(), m_ConstantInt(&index)))
      return WalkResult::advance();
    *dimension = index.getSExtValue();
    if (*dimension >= 0 && *dimension < type.getRank())
      return WalkResult::advance();
    culprit = operation;
    return WalkResult::interrupt();
  });
  return wrap(culprit);
}

/// The first `gpu.func` below `root` with a workgroup or private buffer of floats that LLVM has no type for, such as tf32;
/// null if there is none. `type` is the buffer's. MLIR's conversion makes an array of the type that it did not get.
MlirOperation gpulowerFindForeignBuffer(MlirOperation root, MlirType *type) {
  Operation *culprit = nullptr;
  unwrap(root)->walk([&](gpu::GPUFuncOp function) {
    LLVMTypeConverter converter(function.getContext());
    auto isForeign = [&](BlockArgument buffer) {
      Type element = getElementTypeOrSelf(buffer.getType());
      if (auto complex = dyn_cast<ComplexType>(element))
        element = complex.getElementType();
      if (auto vector = dyn_cast<VectorType>(element))
        element = vector.getElementType();
      if (!isa<FloatType>(element) || converter.convertType(element))
        return false;
      *type = wrap(buffer.getType());
      return true;
    };
    if (!llvm::any_of(function.getWorkgroupAttributions(), isForeign) &&
        !llvm::any_of(function.getPrivateAttributions(), isForeign))
      return WalkResult::advance();
    culprit = function;
    return WalkResult::interrupt();
  });
  return wrap(culprit);
}

/// The first operation below `root` with a result, an operand or an argument of a block whose type LLVM does not have; null if
/// there is none. For a module that has been lowered. MLIR's translation of such types is undefined.
MlirOperation gpulowerFindForeignType(MlirOperation root, MlirType *type) {
  llvm::DenseSet<Type> known;
  auto isForeign = [&](Type one) {
    if (!known.insert(one).second)
      return false;
    bool empty = false;
    one.walk([&](IntegerType integer) { empty |= integer.getWidth() == 0; });
    if (!empty && LLVM::isCompatibleType(one))
      return false;
    *type = wrap(one);
    return true;
  };
  return wrap(findValue(unwrap(root), isForeign));
}

} // extern "C"
