// Conditions at the end of an iteration that choose values alone.
//
// Where an `scf.if` ends a loop's body, MLIR's canonicalization of `cf` lets both of its sides go back to the head of
// the loop, which then has three predecessors. LLVM makes selects of branches that meet where two come together, so
// these would stay branches: a binary search takes 8 percent longer with them. Elsewhere LLVM does it.

#include "patterns.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

using namespace mlir;

namespace {

/// As many operations LLVM carries out for nothing rather than branch (`-two-entry-phi-node-folding-threshold`).
constexpr unsigned mostOperations = 4;

/// Whether an operation costs next to nothing and may be carried out at any time: at worst its result is poison, which
/// nobody then chooses. Divisions, those that round up or down among them, are neither.
bool isCheap(Operation &operation) {
  return isa<arith::ConstantOp, arith::AddIOp, arith::SubIOp, arith::MulIOp, arith::AndIOp, arith::OrIOp, arith::XOrIOp,
             arith::ShLIOp, arith::ShRSIOp, arith::ShRUIOp, arith::MaxSIOp, arith::MaxUIOp, arith::MinSIOp,
             arith::MinUIOp, arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::NegFOp, arith::MaximumFOp,
             arith::MinimumFOp, arith::MaxNumFOp, arith::MinNumFOp, arith::CmpIOp, arith::CmpFOp, arith::SelectOp,
             arith::ExtSIOp, arith::ExtUIOp, arith::TruncIOp, arith::ExtFOp, arith::TruncFOp, arith::SIToFPOp,
             arith::UIToFPOp, arith::FPToSIOp, arith::FPToUIOp, arith::IndexCastOp, arith::IndexCastUIOp,
             arith::BitcastOp>(operation) &&
         llvm::none_of(operation.getResultTypes(), llvm::IsaPred<ShapedType>);
}

/// The number of operations in a region, if all are cheap.
std::optional<unsigned> cheapOperations(Region &region) {
  if (!region.hasOneBlock())
    return std::nullopt;
  unsigned count = 0;
  for (Operation &operation : region.front().without_terminator()) {
    if (!isCheap(operation))
      return std::nullopt;
    count += !isa<arith::ConstantOp>(operation);
  }
  return count;
}

bool endsAnIteration(scf::IfOp condition) {
  return isa<scf::YieldOp>(condition->getNextNode()) && isa<LoopLikeOpInterface>(condition->getParentOp());
}

bool choosesScalars(scf::IfOp condition) {
  return condition.getNumResults() != 0 &&
         llvm::all_of(condition.getResultTypes(), [](Type type) { return type.isIntOrIndexOrFloat(); });
}

} // namespace

void gpulower::selectValues(Operation *root) {
  root->walk([](scf::IfOp condition) {
    if (!choosesScalars(condition) || !endsAnIteration(condition))
      return;
    std::optional<unsigned> taken = cheapOperations(condition.getThenRegion()),
                            other = cheapOperations(condition.getElseRegion());
    if (!taken || !other || *taken + *other > mostOperations)
      return;
    auto hoist = [&](Block &block) {
      for (Operation &operation : llvm::make_early_inc_range(block.without_terminator()))
        operation.moveBefore(condition);
    };
    hoist(*condition.thenBlock());
    hoist(*condition.elseBlock());
    OpBuilder builder(condition);
    SmallVector<Value> chosen;
    for (auto [one, two] : llvm::zip_equal(condition.thenYield().getOperands(), condition.elseYield().getOperands()))
      chosen.push_back(arith::SelectOp::create(builder, condition.getLoc(), condition.getCondition(), one, two));
    condition->replaceAllUsesWith(chosen);
    condition->erase();
  });
}
