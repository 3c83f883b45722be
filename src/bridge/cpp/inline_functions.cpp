// Functions that cannot be lowered on their own are taken into the kernels that call them: matrices of subgroups have no form
// in a signature, and reductions of workgroups have their buffer in a kernel. MLIR's inliner does not inline into `gpu.func`.

#include "patterns.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/SymbolTable.h"

using namespace mlir;

namespace gpulower {
namespace {

/// Calls within calls, at most; there is no recursion without an end.
constexpr unsigned deepest = 64;

bool needsAKernel(func::FuncOp function) {
  if (function.isExternal())
    return false;
  auto isMatrix = [](Type type) { return isa<gpu::MMAMatrixType>(type); };
  return llvm::any_of(function.getArgumentTypes(), isMatrix) || llvm::any_of(function.getResultTypes(), isMatrix) ||
         function.walk([](gpu::AllReduceOp) { return WalkResult::interrupt(); }).wasInterrupted();
}

/// Puts the callee's body in place of a call; returns the calls in it.
SmallVector<func::CallOp> takeIn(func::CallOp call, func::FuncOp callee) {
  OpBuilder builder(call);
  auto body = scf::ExecuteRegionOp::create(builder, call.getLoc(), call.getResultTypes());
  IRMapping mapping;
  mapping.map(callee.getArguments(), call.getOperands());
  callee.getBody().cloneInto(&body.getRegion(), mapping);
  SmallVector<func::CallOp> calls;
  SmallVector<func::ReturnOp> returns;
  body.walk([&](Operation *operation) {
    if (auto inner = dyn_cast<func::CallOp>(operation))
      calls.push_back(inner);
    else if (auto last = dyn_cast<func::ReturnOp>(operation))
      returns.push_back(last);
  });
  for (func::ReturnOp last : returns) {
    builder.setInsertionPoint(last);
    scf::YieldOp::create(builder, last.getLoc(), last.getOperands());
    last.erase();
  }
  call.replaceAllUsesWith(body.getResults());
  call.erase();
  return calls;
}

} // namespace

LogicalResult inlineFunctions(Operation *root) {
  SymbolTableCollection symbols;
  SmallVector<func::FuncOp> functions;
  root->walk([&](func::FuncOp function) {
    if (needsAKernel(function))
      functions.push_back(function);
  });
  SmallVector<std::pair<func::CallOp, unsigned>> open;
  bool hasKernel = false;
  root->walk([&](gpu::GPUFuncOp kernel) {
    hasKernel |= kernel.isKernel();
    kernel.walk([&](func::CallOp call) { open.emplace_back(call, 0); });
  });
  // A library's functions are refused where they are lowered.
  if (functions.empty() || !hasKernel)
    return success();
  // Functions on the way to those are taken in as well.
  for (bool changed = true; changed;) {
    changed = false;
    root->walk([&](func::CallOp call) {
      auto caller = call->getParentOfType<func::FuncOp>();
      auto callee = symbols.lookupNearestSymbolFrom<func::FuncOp>(call, call.getCalleeAttr());
      if (caller && llvm::is_contained(functions, callee) && !llvm::is_contained(functions, caller)) {
        functions.push_back(caller);
        changed = true;
      }
    });
  }
  while (!open.empty()) {
    auto [call, depth] = open.pop_back_val();
    auto callee = symbols.lookupNearestSymbolFrom<func::FuncOp>(call, call.getCalleeAttr());
    if (!llvm::is_contained(functions, callee))
      continue;
    if (depth == deepest)
      return call.emitError() << "cannot inline " << call.getCallee()
                              << ", which calls itself: what it works with has no form outside of a kernel";
    for (func::CallOp inner : takeIn(call, callee))
      open.emplace_back(inner, depth + 1);
  }
  for (func::FuncOp function : functions)
    function.erase();
  return success();
}

} // namespace gpulower
