#pragma once

namespace mlir {
class Operation;
}

namespace gpulower {

/// Writes what another release of MLIR wrote as MLIR 22 does, before it is verified.
void bringOver(mlir::Operation *root);

} // namespace gpulower
