#pragma once

#include "llvm/ADT/StringRef.h"

namespace mlir {
class MLIRContext;
class Operation;
} // namespace mlir

namespace gpulower {

/// Lets a context parse operations in custom form that other releases have and MLIR 22 does not, where `source` names
/// one.
void admitRemovedOperations(mlir::MLIRContext &context, llvm::StringRef source);

/// Writes what another release of MLIR wrote as MLIR 22 does, before it is verified. `source` is what it was parsed
/// from.
void bringOver(mlir::Operation *root, llvm::StringRef source);

} // namespace gpulower
