// elementwise-compiler FILE.mlir TARGETS OUTPUT: a file of the dialect to a fat binary, cubin or code object.
#include "Elementwise.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include <gpulower.hpp>

#include <fstream>
#include <iostream>

namespace {

/// The kernels of a file as text of MLIR's `gpu` dialect; empty after a message.
std::string kernelsOf(const char *path) {
  mlir::MLIRContext context;
  context.loadDialect<elementwise::ElementwiseDialect, mlir::arith::ArithDialect, mlir::math::MathDialect>();
  mlir::OwningOpRef<mlir::ModuleOp> module = mlir::parseSourceFile<mlir::ModuleOp>(path, &context);
  if (!module)
    return "";
  mlir::PassManager passes(&context);
  passes.addPass(elementwise::createToGPU());
  if (mlir::failed(passes.run(*module)))
    return "";
  std::string text;
  llvm::raw_string_ostream stream(text);
  mlir::OpPrintingFlags flags;
  flags.enableDebugInfo(true, false);
  module->print(stream, flags);
  return text;
}

/// Compiles text for targets, which are several with a comma between them, into one file.
int compile(const char *name, const std::string &text, const std::string &targets, const char *output) {
  gpulower::Config config;
  config.set("environment", "true");
  gpulower::Compiler compiler(config);
  bool several = targets.find(',') != std::string::npos;
  gpulower::Request request;
  request.input(name, text).set("target", targets).set("emit", several ? "offload" : "binary");
  gpulower::Result result = compiler.compile(request).value();
  const gpulower::Artifact artifact = result.artifacts().front();
  std::ofstream(output, std::ios::binary) << artifact.bytes;
  std::cout << artifact.module << " for " << artifact.targets << ": " << artifact.format << "\n";
  return 0;
}

} // namespace

int main(int count, char **arguments) {
  if (count != 4) {
    std::cerr << "usage: " << arguments[0] << " FILE.mlir TARGETS OUTPUT\n";
    return 2;
  }
  std::string text = kernelsOf(arguments[1]);
  if (text.empty())
    return 1;
  try {
    return compile(arguments[1], text, arguments[2], arguments[3]);
  } catch (const gpulower::Error &error) {
    std::cerr << "error: " << error.what() << "\n";
    return 1;
  }
}
