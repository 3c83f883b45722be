// elementwise-opt: mlir-opt for the dialect. gpulower's passes come as a plugin (--load-pass-plugin).
#include "Elementwise.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/LLVMIR/ROCDLDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int count, char **arguments) {
  mlir::registerPass(elementwise::createToGPU);
  mlir::DialectRegistry registry;
  registry.insert<elementwise::ElementwiseDialect, mlir::arith::ArithDialect, mlir::gpu::GPUDialect, mlir::math::MathDialect,
                  mlir::memref::MemRefDialect, mlir::scf::SCFDialect>();
  // Those of the targets, which stand in what the plugin makes.
  registry.insert<mlir::NVVM::NVVMDialect, mlir::ROCDL::ROCDLDialect>();
  return mlir::asMainReturnCode(mlir::MlirOptMain(count, arguments, "The optimizer driver of elementwise\n", registry));
}
