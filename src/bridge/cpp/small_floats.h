// Conversions of 8-bit floats, around those that MLIR knows.
#ifndef GPULOWER_BRIDGE_SMALL_FLOATS_H
#define GPULOWER_BRIDGE_SMALL_FLOATS_H

#include "mlir/IR/Operation.h"

namespace gpulower {

/// What is narrowed to them from f64 goes by way of f32, without being rounded to the nearest twice.
mlir::LogicalResult roundDoublesToOdd(mlir::Operation *root);

} // namespace gpulower

#endif
