// MLIR passes whose behaviour is written in Rust.
//
// MLIR's C API can create an external pass but cannot register it by name, give it options, or show it in `--help`
// (facts: llvm/llvm-project#157850). This class does: every option is a string that Rust parses, and every virtual
// function forwards to a table of Rust functions.

#include "contain.h"
#include "option_range.h"

#include "mlir-c/IR.h"
#include "mlir/CAPI/IR.h"
#include "mlir/Dialect/AMDGPU/IR/AMDGPUDialect.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Complex/IR/Complex.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/DLTI/DLTI.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/GPU/Transforms/Passes.h"
#include "mlir/Dialect/Index/IR/IndexDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/LLVMIR/ROCDLDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/ADT/SmallVector.h"

#include <memory>
#include <string>
#include <vector>

using namespace mlir;

extern "C" {
struct GpulowerString {
  const char *data;
  size_t length;
};

struct GpulowerPassOption {
  GpulowerString name;
  GpulowerString help;
  GpulowerString initial;
};

/// Description and behaviour of one pass; lives as long as the process.
struct GpulowerPassTable {
  GpulowerString argument;
  GpulowerString description;
  const GpulowerPassOption *options;
  size_t optionCount;
  /// The pass as Rust knows it; handed to every function below.
  const void *pass;
  /// Checks option values (in the order of `options`). On failure calls `report(closure, message)` and returns false.
  bool (*validate)(const void *pass, const GpulowerString *values,
                   void (*report)(void *closure, GpulowerString message),
                   void *closure);
  /// Runs on one operation. Returns false after having emitted a diagnostic.
  bool (*run)(const void *pass, const GpulowerString *values,
              MlirOperation operation);
  /// Whether operations of this name can be the anchor.
  bool (*canScheduleOn)(const void *pass, GpulowerString operationName);
};
}

namespace {

StringRef toStringRef(GpulowerString string) {
  return StringRef(string.data, string.length);
}

GpulowerString fromStringRef(StringRef string) {
  return GpulowerString{string.data(), string.size()};
}

class RustPass final : public Pass {
public:
  RustPass(TypeID id, const GpulowerPassTable &table)
      : Pass(id), id(id), table(table) {
    for (size_t i = 0; i < table.optionCount; ++i) {
      const GpulowerPassOption &option = table.options[i];
      options.push_back(std::make_unique<Option<std::string>>(
          *this, toStringRef(option.name),
          llvm::cl::desc(toStringRef(option.help)),
          llvm::cl::init(toStringRef(option.initial).str())));
    }
  }

  StringRef getName() const override { return toStringRef(table.argument); }
  StringRef getArgument() const override {
    return toStringRef(table.argument);
  }
  StringRef getDescription() const override {
    return toStringRef(table.description);
  }

  /// Pipelines run inside these passes, on clones, where dialects can no longer be loaded: load what any of them
  /// may create beforehand. The list is that of `device::lower::DIALECTS`.
  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<affine::AffineDialect, amdgpu::AMDGPUDialect,
                    arith::ArithDialect, cf::ControlFlowDialect,
                    complex::ComplexDialect, DLTIDialect, func::FuncDialect,
                    gpu::GPUDialect, index::IndexDialect, LLVM::LLVMDialect,
                    math::MathDialect, memref::MemRefDialect,
                    nvgpu::NVGPUDialect, NVVM::NVVMDialect,
                    ROCDL::ROCDLDialect, scf::SCFDialect, tensor::TensorDialect,
                    ub::UBDialect, vector::VectorDialect>();
  }

  LogicalResult initializeOptions(
      StringRef text,
      function_ref<LogicalResult(const Twine &)> errorHandler) override {
    auto withNearest = [&](const Twine &message) {
      std::string text = message.str();
      return errorHandler(StringRef(text).rtrim() + nearestOption(text));
    };
    if (failed(Pass::initializeOptions(text, withNearest)))
      return failure();
    auto report = [](void *closure, GpulowerString message) {
      (void)(*static_cast<function_ref<LogicalResult(const Twine &)> *>(
          closure))(toStringRef(message));
    };
    SmallVector<GpulowerString> values = optionValues();
    return success(table.validate(table.pass, values.data(), report,
                                  &errorHandler));
  }

  void runOnOperation() override {
    SmallVector<GpulowerString> values = optionValues();
    bool done;
    {
      gpulower::Uncontained rust;
      done = table.run(table.pass, values.data(), wrap(getOperation()));
    }
    if (!done)
      signalPassFailure();
  }

  std::unique_ptr<Pass> clonePass() const override {
    return std::make_unique<RustPass>(id, table);
  }

  bool canScheduleOn(RegisteredOperationName name) const override {
    return table.canScheduleOn(table.pass, fromStringRef(name.getStringRef()));
  }

private:
  /// The option whose name is like the one that MLIR says there is none of.
  std::string nearestOption(StringRef message) const {
    StringRef none = "no such option ";
    size_t at = message.find(none);
    if (at == StringRef::npos)
      return "";
    message = message.drop_front(at + none.size()).rtrim();
    std::pair<unsigned, StringRef> nearest = {message.size() / 3 + 2, ""};
    for (size_t i = 0; i < table.optionCount; ++i) {
      StringRef name = toStringRef(table.options[i].name);
      nearest = std::min(nearest, std::pair<unsigned, StringRef>(name.edit_distance(message), name));
    }
    return nearest.second.empty() ? "" : " (did you mean '" + nearest.second.str() + "'?)";
  }

  SmallVector<GpulowerString> optionValues() const {
    SmallVector<GpulowerString> values;
    for (const auto &option : options)
      values.push_back(fromStringRef(option->getValue()));
    return values;
  }

  TypeID id;
  const GpulowerPassTable &table;
  std::vector<std::unique_ptr<Option<std::string>>> options;
};

} // namespace

/// Registers a pass under its argument. `table` has to outlive the process.
extern "C" void gpulowerRegisterPass(const GpulowerPassTable *table) {
  static TypeIDAllocator allocator;
  TypeID id = allocator.allocate();
  registerPass([id, table] { return std::make_unique<RustPass>(id, *table); });
}

/// Registers a pass in the place of upstream's `gpu-module-to-binary`, before upstream's is registered. The registry keeps
/// the first pass of a name, and ends the process if a later one has another type: so it has upstream's.
extern "C" void gpulowerRegisterModuleToBinary(const GpulowerPassTable *table) {
  TypeID id = createGpuModuleToBinaryPass()->getTypeID();
  registerPass([id, table] { return std::make_unique<RustPass>(id, *table); });
}

/// What the values of an option are, if `value` is none of them; otherwise nothing. Lives as long as the process.
typedef GpulowerString (*GpulowerRange)(GpulowerString option, GpulowerString value);

static GpulowerRange optionRange = nullptr;

/// Call once, before the passes that ask are registered.
extern "C" void gpulowerSetOptionRange(GpulowerRange range) { optionRange = range; }

LogicalResult gpulower::checkRange(StringRef name, StringRef like, unsigned value, Refuse refuse) {
  std::string text = std::to_string(value);
  StringRef expected = toStringRef(optionRange(fromStringRef(like), fromStringRef(text)));
  if (expected.empty())
    return success();
  return refuse("option '" + name + "' cannot be '" + text + "': expected " + expected);
}
