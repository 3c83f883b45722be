// What the C API lacks: the parameters of `#nvvm.target` and `#rocdl.target`, diagnostics below errors, threads of a
// context, and containment of what may end in one of LLVM's fatal errors.

#include "bytes.h"
#include "contain.h"
#include "inner_passes.h"
#include "other_releases.h"
#include "verify.h"

#include "mlir/Bytecode/BytecodeImplementation.h"
#include "mlir/Bytecode/BytecodeReaderConfig.h"
#include "mlir/CAPI/IR.h"
#include "mlir/CAPI/Pass.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/LLVMIR/ROCDLDialect.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/ThreadPool.h"
#include <atomic>
#include <limits>
#include <memory>
#include <thread>

using namespace mlir;
using gpulower::toBytes;
using gpulower::toStringRef;

namespace gpulower {
namespace {
/// Has an error for a pass that fails without one.
class NamesFailure final : public PassInstrumentation {
public:
  /// `said`: whether there was an error since the beginning of a pass.
  explicit NamesFailure(std::shared_ptr<std::atomic<bool>> said) : said(std::move(said)) {}

  void runBeforePass(Pass *, Operation *) override { *said = false; }

  void runAfterPassFailed(Pass *pass, Operation *operation) override {
    if (*said)
      return;
    StringRef name = pass->getArgument().empty() ? pass->getName() : pass->getArgument();
    InFlightDiagnostic error = operation->emitError() << "the pass " << name << " failed and did not say why";
    if (auto symbol = operation->getAttrOfType<StringAttr>(SymbolTable::getSymbolAttrName()))
      error << ", on " << operation->getName() << " @" << symbol.getValue();
    error << ": look at its input with --dump-dir, and report it";
  }

private:
  std::shared_ptr<std::atomic<bool>> said;
};
} // namespace
} // namespace gpulower

void (*gpulower::prepareInnerPasses)(mlir::PassManager &manager) = nullptr;

namespace {
/// A thread pool without threads: tasks run where they are submitted. Any number of threads may use it at once.
class Inline : public llvm::ThreadPoolInterface {
public:
  void wait() override {}
  void wait(llvm::ThreadPoolTaskGroup &) override {}
  unsigned getMaxConcurrency() const override { return 1; }

private:
  void asyncEnqueue(llvm::unique_function<void()> task,
                    llvm::ThreadPoolTaskGroup *) override {
    task();
  }
};

/// Limits how often MLIR's reader of bytecode tries to read an attribute or a type. Some are tried again when what they refer
/// to is known; those that refer to themselves would be for ever.
void limitReading(ParserConfig &config, size_t length) {
  // Each takes a byte or more of the input, and some tries.
  auto left = std::make_shared<size_t>(16 * length + (1 << 16));
  auto count = [left](DialectBytecodeReader &reader, StringRef, auto &) -> LogicalResult {
    if (*left == 0)
      return reader.emitError("an attribute or a type of the bytecode refers to itself");
    --*left;
    return success();
  };
  BytecodeReaderConfig &reader = config.getBytecodeReaderConfig();
  reader.attachAttributeCallback(AttrTypeBytecodeReader<Attribute>::fromCallable(decltype(count)(count)));
  reader.attachTypeCallback(AttrTypeBytecodeReader<Type>::fromCallable(std::move(count)));
}
} // namespace

extern "C" {

/// The text in the generic form, in one piece: the C API hands out each token on its own. It tells contents apart, so that nothing
/// is left out of it, whatever the command line says of what is printed for people.
void gpulowerPrintGenerically(MlirOperation operation, bool inLocalScope, bool withLocations, void *closure,
                              void (*sink)(void *, GpulowerBytes)) {
  constexpr int64_t all = std::numeric_limits<int64_t>::max();
  OpPrintingFlags flags;
  flags.printGenericOpForm().useLocalScope(inLocalScope).enableDebugInfo(withLocations, false);
  flags.elideLargeElementsAttrs(all).elideLargeResourceString(all).printLargeElementsAttrWithHex(100);
  flags.skipRegions(false).printValueUsers(false).printUniqueSSAIDs(false).printNameLocAsPrefix(false);
  std::string text;
  llvm::raw_string_ostream stream(text);
  unwrap(operation)->print(stream, flags);
  sink(closure, toBytes(text));
}

struct GpulowerTargetAttribute {
  /// 0 another attribute, 1 `#nvvm.target`, 2 `#rocdl.target`.
  int vendor;
  int optimization;
  GpulowerBytes triple;
  GpulowerBytes chip;
  GpulowerBytes features;
  GpulowerBytes abi;
  /// Null when absent.
  MlirAttribute flags;
  MlirAttribute link;
};

GpulowerTargetAttribute gpulowerReadTarget(MlirAttribute attribute) {
  GpulowerTargetAttribute result = {};
  auto read = [&](auto target, int vendor) {
    result.vendor = vendor;
    result.optimization = target.getO();
    result.triple = toBytes(target.getTriple());
    result.chip = toBytes(target.getChip());
    result.features = toBytes(target.getFeatures());
    result.flags = wrap(Attribute(target.getFlags()));
    result.link = wrap(Attribute(target.getLink()));
  };
  if (auto target = dyn_cast<NVVM::NVVMTargetAttr>(unwrap(attribute)))
    read(target, 1);
  if (auto target = dyn_cast<ROCDL::ROCDLTargetAttr>(unwrap(attribute))) {
    read(target, 2);
    result.abi = toBytes(target.getAbi());
  }
  return result;
}

/// The bytes of a library given in memory (`dense_resource`), or a null pointer when the attribute is none.
GpulowerBytes gpulowerReadBlob(MlirAttribute attribute) {
  auto resource = dyn_cast<DenseResourceElementsAttr>(unwrap(attribute));
  if (!resource || !resource.getRawHandle().getBlob())
    return GpulowerBytes{nullptr, 0};
  ArrayRef<char> data = resource.getRawHandle().getBlob()->getData();
  return GpulowerBytes{data.data(), data.size()};
}

/// `severity`: 0 error, 1 warning, 2 remark.
void gpulowerEmitDiagnostic(MlirLocation location, int severity,
                            GpulowerBytes message) {
  StringRef text(message.data, message.length);
  if (severity == 0)
    emitError(unwrap(location)) << text;
  else if (severity == 1)
    emitWarning(unwrap(location)) << text;
  else
    emitRemark(unwrap(location)) << text;
}

/// Parses text or bytecode. Operations that are not in a `module` are put into one, as MLIR's own tools do.
/// A refusal is in MLIR's diagnostics.
GpulowerOutcome gpulowerParseMlir(MlirContext context, GpulowerBytes source,
                                  GpulowerBytes name, MlirModule *result) {
  return gpulower::contain([&]() -> std::string {
    ParserConfig unverified(unwrap(context), /*verifyAfterParse=*/false);
    limitReading(unverified, source.length);
    gpulower::admitRemovedOperations(*unwrap(context), toStringRef(source));
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(
        toStringRef(source), unverified, toStringRef(name));
    if (!module)
      return "MLIR refused the input";
    gpulower::bringOver(*module, toStringRef(source));
    if (failed(gpulower::verify(*module)))
      return "MLIR refused the input";
    *result = wrap(module.release());
    return "";
  });
}

/// A refusal is in MLIR's diagnostics.
GpulowerOutcome gpulowerVerify(MlirOperation operation) {
  return gpulower::contain([&]() -> std::string {
    return succeeded(gpulower::verify(unwrap(operation))) ? "" : "MLIR refused the module";
  });
}

/// A refusal is in MLIR's diagnostics: a pass that says nothing is named.
GpulowerOutcome gpulowerRunMlirPasses(MlirPassManager manager,
                                      MlirOperation operation) {
  return gpulower::contain([&]() -> std::string {
    PassManager &passes = *unwrap(manager);
    if (gpulower::prepareInnerPasses)
      gpulower::prepareInnerPasses(passes);
    // After a jump out of a crash the handler stays with the context, so it knows nothing of this frame. It hears of the errors
    // of every thread that uses the context.
    auto said = std::make_shared<std::atomic<bool>>(false);
    std::thread::id here = std::this_thread::get_id();
    ScopedDiagnosticHandler handler(passes.getContext(), [said, here](Diagnostic &diagnostic) {
      if (diagnostic.getSeverity() == DiagnosticSeverity::Error && std::this_thread::get_id() == here)
        *said = true;
      // The next handler has it.
      return failure();
    });
    passes.addInstrumentation(std::make_unique<gpulower::NamesFailure>(said));
    return succeeded(passes.run(unwrap(operation))) ? "" : "MLIR's passes failed";
  });
}

/// Lets several threads of the caller's use a context, and lets MLIR start none of its own: they would have small stacks,
/// and a fatal error in one of them would not be contained. The context was made without threads.
void gpulowerKeepToCallersThreads(MlirContext context) {
  static Inline pool;
  unwrap(context)->setThreadPool(pool);
}

bool gpulowerIsThreaded(MlirContext context) {
  return unwrap(context)->isMultithreadingEnabled();
}

} // extern "C"
