#include "watch.h"

#include "bytes.h"
#include "contain.h"
#include "reserve.h"

#include "mlir/CAPI/IR.h"
#include "mlir/IR/Action.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/Pass.h"
#include "llvm-c/Core.h"
#include "llvm/IR/DiagnosticHandler.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/Support/CBindingWrapping.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/ErrorHandling.h"

#include <atomic>
#include <mutex>

using namespace llvm;

namespace gpulower {

using Watch = bool (*)(GpulowerBytes step);
static std::atomic<Watch> watch;

bool isToEnd(StringRef step) {
  // It holds no lock here, unlike where the allocation failed.
  if (livesOnReserve())
    _longjmp(currentFrame()->buffer, JumpOfFatalError);
  Watch ask = watch.load(std::memory_order_relaxed);
  return ask && ask(toBytes(step));
}

namespace {
/// LLVM's code generation asks before each pass of a function whether somebody wants to know how its size changes
/// (`MachineFunctionPass::runOnFunction`, `FPPassManager::runOnFunction`). It has no other place to end it.
struct Watching final : DiagnosticHandler {
  bool isAnalysisRemarkEnabled(StringRef pass) const override {
    if (pass == "size-info" && currentFrame() && isToEnd("LLVM's code generation"))
      report_fatal_error("ended before it was done", /*gen_crash_diag=*/false);
    return DiagnosticHandler::isAnalysisRemarkEnabled(pass);
  }
};

/// LLVM compares each pair of loads, and of stores, of a block, and looks for each whether one needs the other
/// (`BaseMemOpClusterMutation` in MachineScheduler.cpp): 20 s for 600 of each in a row. From this threshold on (thousands of
/// pairs of an instruction and a load) it compares neighbours alone; LLVM's own is 1000.
constexpr unsigned clusterThreshold = 100;

void lowerClusterThreshold() {
  static std::once_flag once;
  std::call_once(once, [] {
    auto &options = cl::getRegisteredOptions();
    auto found = options.find("fast-cluster-threshold");
    if (found != options.end())
      static_cast<cl::opt<unsigned> *>(found->second)->setValue(clusterThreshold);
  });
}
} // namespace

} // namespace gpulower

extern "C" {

/// `watch` is asked from now on.
void gpulowerSetWatch(bool (*watch)(GpulowerBytes step)) {
  gpulower::watch.store(watch);
  gpulower::lowerClusterThreshold();
}

/// Code generation in this context asks whether it is to end. Before the context gets a handler of diagnostics.
void gpulowerWatchContext(LLVMContextRef context) {
  unwrap(context)->setDiagnosticHandler(std::make_unique<gpulower::Watching>());
}

/// So do passes in a context of MLIR, and each application of a pattern. What is left out then is not done, and no failure.
void gpulowerWatchMlirContext(MlirContext context) {
  unwrap(context)->registerActionHandler([](function_ref<void()> work, const mlir::tracing::Action &action) {
    StringRef step;
    if (auto *pass = dyn_cast<mlir::PassExecutionAction>(&action))
      step = pass->getPass().getName();
    if (!gpulower::isToEnd(step))
      work();
  });
}

} // extern "C"
