// LLVM IR as MLIR's LLVM dialect.

#include "contain.h"

#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/SourceMgr.h"
#include "mlir/CAPI/IR.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Target/LLVMIR/Import.h"

using namespace mlir;

extern "C" {

struct GpulowerIrText {
  const char *data;
  size_t length;
};

/// Reads textual LLVM IR as a module of the LLVM dialect, whose dialects have to be loaded. `result` is owned by the
/// caller.
GpulowerOutcome gpulowerImportLlvm(MlirContext context, GpulowerIrText text,
                                   MlirModule *result) {
  return gpulower::contain([&]() -> std::string {
    // The parser looks at the byte behind the text.
    std::string copy(text.data, text.length);
    llvm::LLVMContext llvmContext;
    llvm::SMDiagnostic problem;
    std::unique_ptr<llvm::Module> source =
        llvm::parseAssemblyString(copy, problem, llvmContext);
    if (!source)
      return ("line " + llvm::Twine(problem.getLineNo()) + ": " +
              problem.getMessage())
          .str();
    OwningOpRef<ModuleOp> module = translateLLVMIRToModule(
        std::move(source), unwrap(context), /*emitExpensiveWarnings=*/false,
        /*dropDICompositeTypeElements=*/false, /*loadAllDialects=*/false);
    if (!module)
      return "MLIR cannot import it";
    *result = wrap(module.release());
    return "";
  });
}

} // extern "C"
