// Sizes of work groups and grids on AMD, which are calls of functions of `ockl`, and the numbers of work groups.

#include "mlir/CAPI/IR.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/ROCDLDialect.h"

using namespace mlir;

extern "C" {

/// MLIR 22 gives these operations results of 32 bits and translates them to calls that return 64. Where the result is
/// extended to 64 bits, which is what its own conversion does with 64-bit indices, the extension vanishes and all is well;
/// where it is used as it is, the LLVM IR is not valid. There the result gets its 64 bits, and is cut to 32.
///
/// Can go when `rocdl.workgroup.dim.x : i32` translates to LLVM IR that verifies.
void gpulowerWidenDimensions(MlirOperation root) {
  unwrap(root)->walk([](Operation *operation) {
    if (!isa<ROCDL::BlockDimXOp, ROCDL::BlockDimYOp, ROCDL::BlockDimZOp,
             ROCDL::GridDimXOp, ROCDL::GridDimYOp, ROCDL::GridDimZOp>(
            operation))
      return;
    Value size = operation->getResult(0);
    Type narrow = size.getType();
    if (!narrow.isInteger(32))
      return;
    auto extends = [](Operation *user) {
      return isa<LLVM::SExtOp, LLVM::ZExtOp>(user) &&
             user->getResult(0).getType().isInteger(64);
    };
    if (llvm::all_of(size.getUsers(), extends))
      return;
    OpBuilder builder(operation->getContext());
    builder.setInsertionPointAfter(operation);
    size.setType(builder.getI64Type());
    auto cut =
        LLVM::TruncOp::create(builder, operation->getLoc(), narrow, size);
    size.replaceAllUsesExcept(cut, cut);
  });
}

/// Says that numbers of work groups are not negative, as LLVM's intrinsics for NVIDIA do by themselves: HIP's grids have fewer
/// than 2^31 in each direction. An index of 64 bits is one with its sign, which costs a word in each multiplication.
void gpulowerBoundGroupNumbers(MlirOperation root) {
  unwrap(root)->walk([](Operation *operation) {
    if (!isa<ROCDL::BlockIdXOp, ROCDL::BlockIdYOp, ROCDL::BlockIdZOp>(operation) || operation->hasAttr("range"))
      return;
    unsigned bits = operation->getResult(0).getType().getIntOrFloatBitWidth();
    operation->setAttr("range", LLVM::ConstantRangeAttr::get(operation->getContext(), APInt(bits, 0),
                                                             APInt::getSignedMaxValue(32).zext(bits)));
  });
}

} // extern "C"
