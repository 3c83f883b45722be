#include "Elementwise.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace {

Value sigmoid(OpBuilder &builder, Location at, Value x) {
  Value one = arith::ConstantOp::create(builder, at, builder.getFloatAttr(x.getType(), 1.0));
  Value power = math::ExpOp::create(builder, at, arith::NegFOp::create(builder, at, x));
  return arith::DivFOp::create(builder, at, one, arith::AddFOp::create(builder, at, one, power));
}

/// A kernel with the number of elements, the inputs and the output as parameters.
void makeKernel(OpBuilder &builder, elementwise::MapOp map) {
  Location at = map.getLoc();
  Block &source = map.getBody().front();
  auto yield = cast<elementwise::YieldOp>(source.back());
  SmallVector<Type> parameters{builder.getIndexType()};
  auto vectorOf = [](Type type) { return MemRefType::get({ShapedType::kDynamic}, type); };
  for (Type type : source.getArgumentTypes())
    parameters.push_back(vectorOf(type));
  parameters.push_back(vectorOf(yield.getOperand().getType()));

  auto function = gpu::GPUFuncOp::create(builder, at, map.getSymName(), builder.getFunctionType(parameters, {}));
  function->setAttr(gpu::GPUDialect::getKernelFuncAttrName(), builder.getUnitAttr());
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(&function.getBody().front());
  Value place = gpu::GlobalIdOp::create(builder, at, gpu::Dimension::x);
  Value inside = arith::CmpIOp::create(builder, at, arith::CmpIPredicate::ult, place, function.getArgument(0));
  auto guarded = scf::IfOp::create(builder, at, inside, /*withElseRegion=*/false);
  gpu::ReturnOp::create(builder, at);

  builder.setInsertionPointToStart(guarded.thenBlock());
  IRMapping values;
  for (BlockArgument argument : source.getArguments())
    values.map(argument,
               memref::LoadOp::create(builder, at, function.getArgument(argument.getArgNumber() + 1), place));
  for (Operation &operation : source.without_terminator()) {
    if (auto op = dyn_cast<elementwise::SigmoidOp>(operation))
      values.map(op.getResult(), sigmoid(builder, op.getLoc(), values.lookup(op.getOperand())));
    else
      builder.clone(operation, values);
  }
  memref::StoreOp::create(builder, at, values.lookup(yield.getOperand()), function.getArguments().back(), place);
}

struct ToGPU : PassWrapper<ToGPU, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ToGPU)

  StringRef getArgument() const override { return "elementwise-to-gpu"; }

  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<arith::ArithDialect, gpu::GPUDialect, math::MathDialect, memref::MemRefDialect, scf::SCFDialect>();
  }

  void runOnOperation() override {
    OpBuilder builder(&getContext());
    builder.setInsertionPointToEnd(getOperation().getBody());
    auto kernels = gpu::GPUModuleOp::create(builder, getOperation().getLoc(), "kernels");
    builder.setInsertionPointToStart(kernels.getBody());
    for (auto map : llvm::make_early_inc_range(getOperation().getOps<elementwise::MapOp>())) {
      makeKernel(builder, map);
      map.erase();
    }
  }
};

} // namespace

std::unique_ptr<Pass> elementwise::createToGPU() { return std::make_unique<ToGPU>(); }
