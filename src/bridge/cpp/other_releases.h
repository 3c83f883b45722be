#pragma once

#include "llvm/ADT/StringRef.h"

namespace mlir {
class Operation;
}

namespace gpulower {

/// Writes what another release of MLIR wrote as MLIR 22 does, before it is verified. `source` is what it was parsed from.
void bringOver(mlir::Operation *root, llvm::StringRef source);

} // namespace gpulower
