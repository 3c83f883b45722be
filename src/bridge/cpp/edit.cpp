// What keeps changes of MLIR from leaving anything that points to what is gone: see bridge/edit.rs.

#include "mlir-c/IR.h"
#include "mlir/CAPI/IR.h"
#include "mlir/IR/Block.h"
#include "mlir/IR/Operation.h"
#include "mlir/IR/Region.h"

#include <cstddef>

using namespace mlir;

namespace {

/// Whether a value that is defined in the operation or in its regions, or a block of them, is used.
bool isUsed(Operation *operation) {
  return operation
      ->walk([](Operation *inner) {
        if (!inner->use_empty())
          return WalkResult::interrupt();
        for (Region &region : inner->getRegions())
          for (Block &block : region) {
            if (!block.use_empty())
              return WalkResult::interrupt();
            for (BlockArgument argument : block.getArguments())
              if (!argument.use_empty())
                return WalkResult::interrupt();
          }
        return WalkResult::advance();
      })
      .wasInterrupted();
}

} // namespace

extern "C" {

/// Destroys operations that are in no block. One of which something is used elsewhere stays: what uses it would be left with
/// a pointer to nothing.
void gpulowerDestroy(const MlirOperation *operations, size_t count) noexcept {
  for (size_t index = 0; index < count; ++index)
    unwrap(operations[index])->dropAllReferences();
  for (size_t index = 0; index < count; ++index) {
    Operation *operation = unwrap(operations[index]);
    if (!isUsed(operation))
      operation->destroy();
  }
}

/// An operation in `root` that uses what is defined outside of it, or of which something is used outside of it; null if there
/// is none.
MlirOperation gpulowerFindOpen(MlirOperation root) noexcept {
  Operation *top = unwrap(root);
  Operation *found = nullptr;
  auto isInside = [&](Region *region) { return region && region->getParentOp() && top->isAncestor(region->getParentOp()); };
  auto usersAreInside = [&](Value value) {
    for (Operation *user : value.getUsers())
      if (!top->isAncestor(user))
        return false;
    return true;
  };
  top->walk([&](Operation *inner) {
    bool closed = true;
    for (Value operand : inner->getOperands())
      closed &= operand && isInside(operand.getParentRegion());
    for (Block *successor : inner->getSuccessors())
      closed &= successor && isInside(successor->getParent());
    for (Value result : inner->getResults())
      closed &= usersAreInside(result);
    for (Region &region : inner->getRegions())
      for (Block &block : region)
        for (BlockArgument argument : block.getArguments())
          closed &= usersAreInside(argument);
    if (closed)
      return WalkResult::advance();
    found = inner;
    return WalkResult::interrupt();
  });
  return wrap(found);
}

} // extern "C"
