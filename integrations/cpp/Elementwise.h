// The dialect `elementwise`, and the pass that makes kernels of it.
#pragma once

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Pass/Pass.h"

#include "ElementwiseDialect.h.inc"

#define GET_OP_CLASSES
#include "ElementwiseOps.h.inc"

namespace elementwise {

/// Makes a `gpu.module` with one kernel of each `elementwise.map`.
std::unique_ptr<mlir::Pass> createToGPU();

} // namespace elementwise
