// The driver of `gpulower-opt`: mlir-opt with everything upstream registers.

#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Target/LLVMIR/Dialect/All.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Support/CommandLine.h"

#include "bytes.h"

/// Whether LLVM has an option of this name. Those of the driver come with the driver.
extern "C" bool gpulowerIsLlvmOption(GpulowerBytes name) {
  return llvm::cl::getRegisteredOptions().contains(gpulower::toStringRef(name));
}

/// Registers in `registry` every dialect, extension and translation that lowering `gpu` modules may need.
extern "C" void gpulowerRegisterDialects(void *registry) {
  auto &target = *static_cast<mlir::DialectRegistry *>(registry);
  mlir::registerAllDialects(target);
  mlir::registerAllExtensions(target);
  mlir::registerAllToLLVMIRTranslations(target);
  mlir::registerAllFromLLVMIRTranslations(target);
}

/// Runs the driver on a command line; returns the exit status. Passes of ours have to be registered before.
extern "C" int gpulowerOptMain(int argc, char **argv) {
  mlir::registerAllPasses();
  mlir::DialectRegistry registry;
  gpulowerRegisterDialects(&registry);
  return mlir::asMainReturnCode(mlir::MlirOptMain(
      argc, argv, "gpulower-opt: MLIR's optimizer driver with gpulower's passes\n",
      registry));
}
