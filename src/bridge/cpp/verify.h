#pragma once

#include "mlir/Support/LLVM.h"

namespace mlir {
class Operation;
}

namespace gpulower {

/// MLIR's verifier, after a look at what crashes it. A refusal is in MLIR's diagnostics.
llvm::LogicalResult verify(mlir::Operation *root);

} // namespace gpulower
