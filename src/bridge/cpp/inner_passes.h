// What a program does with the pass managers inside of passes: `gpulower-opt` shows them as it shows its own.
#pragma once

#include "mlir/Pass/PassManager.h"

namespace gpulower {

/// Prepares a pass manager that is about to run inside of a pass; null for nothing. Set before any pass runs.
extern void (*prepareInnerPasses)(mlir::PassManager &manager);

} // namespace gpulower
