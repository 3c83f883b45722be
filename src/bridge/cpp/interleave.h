// Which iterations of a loop may run at once with their loads first.
#ifndef GPULOWER_BRIDGE_INTERLEAVE_H
#define GPULOWER_BRIDGE_INTERLEAVE_H

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/SmallPtrSet.h"

namespace gpulower {

/// One element that a loop reads or writes in each iteration.
struct Access {
  mlir::Operation *operation = nullptr;
  mlir::Value memref;
  mlir::OperandRange indices;
  /// Size of what is read or written.
  int64_t bytes = 0;
};

/// A load that a store of another iteration might meet, so that their addresses are to be compared before the loop.
/// Both move by `step` elements in each iteration, and both elements have the same size.
struct MayOverlap {
  Access load, store;
  /// Whether the store stands before the load within an iteration.
  bool storeComesFirst = false;
};

struct InterleavePlan {
  /// Loads that may come first, and what they need: top-level operations of the body that depend on nothing else in it.
  llvm::SmallPtrSet<mlir::Operation *, 16> first;
  /// What the indices of `checks` are computed with.
  llvm::SmallPtrSet<mlir::Operation *, 16> addressing;
  llvm::SmallVector<MayOverlap, 2> checks;
  /// Whether an iteration computes so much that more than two at once would take too many registers.
  bool isHeavy = false;
};

/// Nothing where it would not be right, or would gain nothing. Constant steps have to be below `largestStep`; without
/// `checkAddresses` no plan needs a comparison of addresses.
std::optional<InterleavePlan> planInterleaving(mlir::scf::ForOp loop, int64_t largestStep,
                                               bool checkAddresses);

} // namespace gpulower

#endif
