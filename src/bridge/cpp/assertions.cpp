// What a failed assertion says: file, line and function, which MLIR's conversion takes from the location.

#include "patterns.h"

#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;

/// MLIR takes a name with a file behind it, and a file alone for a function that is not known. Other forms, such as the
/// fused ones of inlining and folding, are "(unknown):0" to it.
static Location asserted(cf::AssertOp op) {
  StringAttr function;
  if (auto around = op->getParentOfType<FunctionOpInterface>())
    function = around.getNameAttr();
  FileLineColLoc file;
  bool named = false;
  op.getLoc()->walk([&](Location location) {
    if (auto call = dyn_cast<CallSiteLoc>(location)) {
      // Only where it stands counts, not where that was called.
      location = call.getCallee();
      while (auto inner = dyn_cast<CallSiteLoc>(location))
        location = inner.getCallee();
    }
    if (auto name = dyn_cast<NameLoc>(location); name && !named) {
      function = name.getName();
      named = true;
    }
    if (auto found = location->findInstanceOf<FileLineColLoc>(); found && !file)
      file = found;
    return file ? WalkResult::interrupt() : WalkResult::advance();
  });
  if (!function)
    return op.getLoc();
  Location place = file ? Location(file) : UnknownLoc::get(op.getContext());
  return NameLoc::get(function, place);
}

void gpulower::placeAssertions(Operation *root) {
  root->walk([](cf::AssertOp op) { op->setLoc(asserted(op)); });
}
