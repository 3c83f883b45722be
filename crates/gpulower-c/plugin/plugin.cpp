// gpulower's passes in somebody else's mlir-opt. It is compiled against the host's MLIR, and the library has another
// one: a gpu.module goes there as text, and a gpu.binary comes back as text. Works with MLIR 19 and later.

#include "gpulower.hpp"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Config/mlir-config.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/LLVMIR/ROCDLDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Tools/Plugins/PassPlugin.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/JSON.h"

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

using namespace mlir;

namespace {

/// The option that leaves out what this MLIR does not read.
constexpr llvm::StringLiteral kernelTable = "kernel-table";

struct PassOption {
  std::string name, help, initial;
};

/// A pass as the library describes it. It lives as long as the process.
struct Description {
  std::string argument, words;
  std::vector<PassOption> options;
  TypeID id;
};

/// One for the process, as gpulower-opt's is. What it is made of is in the environment.
const gpulower::Compiler &compiler() {
  static const gpulower::Compiler made = [] {
    const char *cache = std::getenv("GPULOWER_CACHE");
    gpulower::Config config;
    config.set("environment", "true").set("cache", cache && StringRef(cache) == "off" ? "false" : "true");
    return gpulower::Compiler(config);
  }();
  return made;
}

class LibraryPass final : public Pass {
public:
  explicit LibraryPass(const Description &description) : Pass(description.id), description(description) {
    for (const PassOption &option : description.options)
      options.push_back(std::make_unique<Option<std::string>>(*this, option.name, llvm::cl::desc(option.help),
                                                              llvm::cl::init(option.initial)));
  }

  StringRef getName() const override { return description.argument; }
  StringRef getArgument() const override { return description.argument; }
  StringRef getDescription() const override { return description.words; }
  std::unique_ptr<Pass> clonePass() const override { return std::make_unique<LibraryPass>(description); }
  bool canScheduleOn(RegisteredOperationName) const override { return true; }

  /// Target attributes, and the types of kernels, come back as text.
  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<gpu::GPUDialect, LLVM::LLVMDialect, NVVM::NVVMDialect, ROCDL::ROCDLDialect>();
  }

  /// The values are checked while the pipeline is read, by the library.
  LogicalResult initializeOptions(StringRef text, function_ref<LogicalResult(const Twine &)> errorHandler) override {
    if (failed(Pass::initializeOptions(text, errorHandler)))
      return failure();
    try {
      gpulower::Result result = ask("");
      return result.ok() ? success() : errorHandler(result.errors().front().message);
    } catch (const gpulower::Error &error) {
      return errorHandler(error.what());
    }
  }

  void runOnOperation() override {
    try {
      if (failed(run()))
        signalPassFailure();
    } catch (const gpulower::Error &error) {
      emitError(getOperation()->getLoc(), error.what());
      signalPassFailure();
    }
  }

private:
  /// The gpu.modules of each operation that has some, in their order.
  using Parents = llvm::MapVector<Operation *, std::vector<gpu::GPUModuleOp>>;

  LogicalResult run();
  LogicalResult checkLaunches();
  void show(const gpulower::Diagnostic &diagnostic, DiagnosticSeverity severity);
  gpulower::Result ask(const std::string &text);
  void replace(const Parents &parents, ModuleOp answer);

  const Description &description;
  std::vector<std::unique_ptr<Option<std::string>>> options;
};

std::string printed(ModuleOp module, bool generic) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  OpPrintingFlags flags;
  flags.enableDebugInfo();
  if (generic)
    flags.printGenericOpForm();
  module->print(stream, flags);
  stream.flush();
  return text;
}

/// Whether the numbers in generic form are those of another release, and nothing there says so: since MLIR 20 no
/// gpu.module_end does, and from 22 on they are the library's.
bool isMisreadInGenericForm(ModuleOp module) {
  if (LLVM_VERSION_MAJOR < 20 || LLVM_VERSION_MAJOR > 21)
    return false;
  WalkResult found = module->walk([](Operation *operation) {
    StringRef name = operation->getName().getStringRef();
    auto reductions = operation->getAttrOfType<ArrayAttr>("reductions");
    bool isNumbered = name == "memref.atomic_rmw" || (name == "affine.parallel" && reductions && !reductions.empty());
    return isNumbered ? WalkResult::interrupt() : WalkResult::advance();
  });
  return found.wasInterrupted();
}

LogicalResult LibraryPass::run() {
  Operation *root = getOperation();
  if (isa<gpu::GPUModuleOp>(root))
    return emitError(root->getLoc())
           << description.argument
           << " cannot replace the operation it runs on: run it on the module around the gpu.module";
  if (failed(checkLaunches()))
    return failure();
  Parents parents;
  root->walk<WalkOrder::PreOrder>([&](gpu::GPUModuleOp module) {
    parents[module->getParentOp()].push_back(module);
    return WalkResult::skip();
  });
  // Each parent is a module inside of one module: names are unique within each alone.
  OwningOpRef<ModuleOp> wrapper = ModuleOp::create(root->getLoc());
  for (const auto &[parent, modules] : parents) {
    ModuleOp inner = ModuleOp::create(parent->getLoc());
    for (gpu::GPUModuleOp module : modules)
      inner.push_back(module->clone());
    wrapper->push_back(inner);
  }
  // Which form is read depends on both releases: docs/inputs.md. Older ones have other numbers in generic form.
  bool generic = LLVM_VERSION_MAJOR >= 22;
  gpulower::Result result = ask(printed(*wrapper, generic));
  if (!result.ok() && result.errors().front().stage == "input" && !isMisreadInGenericForm(*wrapper))
    if (gpulower::Result other = ask(printed(*wrapper, !generic));
        other.ok() || other.errors().front().stage != "input")
      result = std::move(other);
  for (const gpulower::Diagnostic &warning : result.warnings())
    show(warning, DiagnosticSeverity::Warning);
  for (const gpulower::Diagnostic &error : result.errors())
    show(error, DiagnosticSeverity::Error);
  if (!result.ok())
    return failure();
  std::vector<gpulower::Artifact> artifacts = result.artifacts();
  // What is not taken of it, modules that were left alone, need not be valid in this release.
  ParserConfig unverified(&getContext(), /*verifyAfterParse=*/false);
  auto answer = parseSourceString<ModuleOp>(artifacts.at(0).bytes, unverified, "libgpulower");
  if (!answer)
    return emitError(root->getLoc(), "this MLIR does not read what gpulower wrote");
  replace(parents, *answer);
  return success();
}

/// A gpu.launch has no gpu.module yet.
LogicalResult LibraryPass::checkLaunches() {
  bool compilesAll = description.argument == "gpulower-to-binary";
  WalkResult found = getOperation()->walk([&](gpu::LaunchOp launch) {
    const char *words = "this gpu.launch is not compiled: run gpu-kernel-outlining first, which gives it a gpu.module";
    if (!compilesAll) {
      emitWarning(launch->getLoc(), words);
      return WalkResult::advance();
    }
    emitError(launch->getLoc(), words);
    return WalkResult::interrupt();
  });
  return failure(found.wasInterrupted());
}

void LibraryPass::show(const gpulower::Diagnostic &diagnostic, DiagnosticSeverity severity) {
  Location place = getOperation()->getLoc();
  if (!diagnostic.location.empty()) {
    // A place that this MLIR does not read is no second error.
    ScopedDiagnosticHandler quiet(&getContext(), [](Diagnostic &) { return success(); });
    if (auto read = dyn_cast_or_null<LocationAttr>(parseAttribute("loc(" + diagnostic.location + ")", &getContext())))
      place = read;
  }
  // The first line has the message, and the others what else there is to say.
  getContext().getDiagEngine().emit(place, severity) << diagnostic.text;
}

gpulower::Result LibraryPass::ask(const std::string &text) {
  gpulower::Request request;
  request.set("pass", description.argument).input("module.mlir", text);
  bool table = LLVM_VERSION_MAJOR >= 20;
  for (const auto &[option, described] : llvm::zip(options, description.options)) {
    bool leave = described.name == kernelTable && !table;
    std::string value = leave ? "false" : option->getValue();
    if (value != described.initial)
      request.set("pass-option", described.name + "=" + value);
  }
  return compiler().runPass(request);
}

void LibraryPass::replace(const Parents &parents, ModuleOp answer) {
  auto answers = answer.getOps<ModuleOp>();
  auto next = answers.begin();
  for (const auto &[parent, modules] : parents) {
    ModuleOp inner = *next++;
    llvm::StringMap<Operation *> made;
    for (Operation &operation : inner.getOps())
      if (auto name = operation.getAttrOfType<StringAttr>(SymbolTable::getSymbolAttrName()))
        made[name] = &operation;
    for (gpu::GPUModuleOp module : modules) {
      auto found = made.find(SymbolTable::getSymbolName(module));
      // One that was left alone stays. One of several variants of a module has no binary of its own.
      if (found != made.end() && isa<gpu::GPUModuleOp>(found->second))
        continue;
      if (found != made.end()) {
        found->second->remove();
        module->getBlock()->getOperations().insert(module->getIterator(), found->second);
      }
      module->erase();
    }
  }
}

void registerPasses() {
  static TypeIDAllocator allocator;
  static std::vector<std::unique_ptr<Description>> descriptions;
  llvm::Expected<llvm::json::Value> all = llvm::json::parse(gpulower_passes_json());
  if (!all)
    return llvm::consumeError(all.takeError());
  for (const llvm::json::Value &value : *all->getAsArray()) {
    const llvm::json::Object &pass = *value.getAsObject();
    StringRef argument = *pass.getString("argument");
    if (argument != "gpulower-serialize" && argument != "gpulower-to-binary")
      continue;
    descriptions.push_back(std::make_unique<Description>(
        Description{argument.str(), pass.getString("description")->str(), {}, allocator.allocate()}));
    Description &made = *descriptions.back();
    for (const llvm::json::Value &value : *pass.getArray("options")) {
      const llvm::json::Object &option = *value.getAsObject();
      made.options.push_back(
          {option.getString("name")->str(), option.getString("help")->str(), option.getString("default")->str()});
    }
    registerPass([&made] { return std::make_unique<LibraryPass>(made); });
  }
}

} // namespace

extern "C" LLVM_ATTRIBUTE_WEAK __attribute__((visibility("default"))) PassPluginLibraryInfo mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "gpulower", gpulower_version(), registerPasses};
}
