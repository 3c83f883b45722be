// Counters of `scf.for` that are narrower than an index. It says that they stay below the upper bound; the branches
// that MLIR makes of it do not, and LLVM cannot know that an address which is computed from one moves by the same
// distance each time. What would come behind the last one may not fit into the type: then the branches would go on with
// numbers that `scf.for` never has, and nothing is lost by promising that it does.

#include "patterns.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace gpulower {
namespace {

/// MLIR's conversion to branches takes attributes of the `llvm` dialect along, to the branch that ends an iteration.
constexpr StringRef ofCounter = "gpulower.counter";

} // namespace

void markCounters(Operation *root) {
  root->walk([](scf::ForOp loop) {
    // MLIR's index is as wide as an address. Of numbers without a sign, C promises nothing either; with it, LLVM keeps
    // an address in two registers that one number in a register would do for (dropout: 1.06 of the time without).
    if (loop.getInductionVar().getType().isIndex() || (loop.getUnsignedCmp() && !getConstantIntValue(loop.getStep())))
      return;
    auto flag = loop.getUnsignedCmp() ? LLVM::IntegerOverflowFlags::nuw : LLVM::IntegerOverflowFlags::nsw;
    loop->setAttr(ofCounter, LLVM::IntegerOverflowFlagsAttr::get(loop.getContext(), flag));
  });
}

void keepCountersInRange(Operation *root) {
  root->walk([](cf::BranchOp latch) {
    auto flags = dyn_cast_or_null<LLVM::IntegerOverflowFlagsAttr>(latch->removeAttr(ofCounter));
    auto next = flags && latch.getNumOperands() > 0 ? latch.getOperand(0).getDefiningOp<arith::AddIOp>() : nullptr;
    if (!next || latch.getDest()->getNumArguments() == 0 || next.getLhs() != latch.getDest()->getArgument(0))
      return;
    bool isUnsigned = flags.getValue() == LLVM::IntegerOverflowFlags::nuw;
    next.setOverflowFlags(next.getOverflowFlags() |
                          (isUnsigned ? arith::IntegerOverflowFlags::nuw : arith::IntegerOverflowFlags::nsw));
  });
}

} // namespace gpulower
