// What a front end promises of a kernel's arguments, carried past MLIR's conversion of functions, which drops it with a warning where
// memrefs become descriptors. Loops are interleaved by it, long afterwards.

#include "mlir/CAPI/IR.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

/// On a function: how many arguments the one that it becomes will have, and which of those are pointers to memory that nobody else
/// reaches.
static constexpr StringLiteral carried = "gpulower.alone";

/// How many arguments one of this type becomes: pointers, an offset, sizes and strides of a memref.
static int32_t piecesOf(Type type) {
  if (auto memref = dyn_cast<MemRefType>(type))
    return int32_t(3 + 2 * memref.getRank());
  return isa<UnrankedMemRefType>(type) ? 2 : 1;
}

/// Takes `llvm.noalias` from the memrefs of `gpu.func`s below `root`; in functions that these have become, gives it to the pointers
/// through which memory is reached.
extern "C" void gpulowerCarryPromises(MlirOperation root) {
  StringRef promise = LLVM::LLVMDialect::getNoAliasAttrName();
  unwrap(root)->walk([&](Operation *operation) {
    if (auto function = dyn_cast<gpu::GPUFuncOp>(operation)) {
      SmallVector<int32_t> places{0};
      for (auto [index, type] : llvm::enumerate(function.getArgumentTypes())) {
        // The second is the aligned pointer.
        if (isa<MemRefType>(type) && function.removeArgAttr(index, promise))
          places.push_back(places.front() + 1);
        places.front() += piecesOf(type);
      }
      if (places.size() > 1)
        function->setAttr(carried, DenseI32ArrayAttr::get(function.getContext(), places));
    } else if (auto function = dyn_cast<LLVM::LLVMFuncOp>(operation)) {
      auto places = dyn_cast_or_null<DenseI32ArrayAttr>(function->removeAttr(carried));
      // Anybody can write one.
      if (!places || places.empty() || unsigned(places[0]) != function.getNumArguments())
        return;
      for (int32_t place : places.asArrayRef().drop_front())
        if (place >= 0 && place < places[0] && isa<LLVM::LLVMPointerType>(function.getArgumentTypes()[place]))
          function.setArgAttr(unsigned(place), promise, UnitAttr::get(function.getContext()));
    }
  });
}
