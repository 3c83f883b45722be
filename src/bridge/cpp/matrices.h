// What the matrices of subgroups have in common on both vendors' chips.
#ifndef GPULOWER_BRIDGE_MATRICES_H
#define GPULOWER_BRIDGE_MATRICES_H

#include "patterns.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace gpulower {

/// What is wrong with the operands and the kind of an operation on elements, but for `extf`; empty if nothing is. `integers`:
/// whether the elements are integers.
std::string reasonAgainstOperands(mlir::gpu::SubgroupMmaElementwiseOp op, bool integers);

/// The operation on elements, or on vectors of them.
mlir::Value applyToElements(mlir::OpBuilder &builder, mlir::Location loc, mlir::gpu::MMAElementwiseOp kind,
                            mlir::ValueRange values);

} // namespace gpulower

#endif
