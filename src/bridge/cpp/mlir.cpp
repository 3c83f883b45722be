// What the C API lacks: the parameters of `#nvvm.target` and `#rocdl.target`, diagnostics below errors, and whether a
// context is threaded.

#include "mlir/CAPI/IR.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/LLVMIR/ROCDLDialect.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"

using namespace mlir;

extern "C" {

struct GpulowerText {
  const char *data;
  size_t length;
};

struct GpulowerTargetAttribute {
  /// 0 another attribute, 1 `#nvvm.target`, 2 `#rocdl.target`.
  int vendor;
  int optimization;
  GpulowerText triple;
  GpulowerText chip;
  GpulowerText features;
  GpulowerText abi;
  /// Null when absent.
  MlirAttribute flags;
  MlirAttribute link;
};

static GpulowerText toText(StringRef text) {
  return GpulowerText{text.data(), text.size()};
}

GpulowerTargetAttribute gpulowerReadTarget(MlirAttribute attribute) {
  GpulowerTargetAttribute result = {};
  auto read = [&](auto target, int vendor) {
    result.vendor = vendor;
    result.optimization = target.getO();
    result.triple = toText(target.getTriple());
    result.chip = toText(target.getChip());
    result.features = toText(target.getFeatures());
    result.flags = wrap(Attribute(target.getFlags()));
    result.link = wrap(Attribute(target.getLink()));
  };
  if (auto target = dyn_cast<NVVM::NVVMTargetAttr>(unwrap(attribute)))
    read(target, 1);
  if (auto target = dyn_cast<ROCDL::ROCDLTargetAttr>(unwrap(attribute))) {
    read(target, 2);
    result.abi = toText(target.getAbi());
  }
  return result;
}

/// The bytes of a library given in memory (`dense_resource`), or a null pointer when the attribute is none.
GpulowerText gpulowerReadBlob(MlirAttribute attribute) {
  auto resource = dyn_cast<DenseResourceElementsAttr>(unwrap(attribute));
  if (!resource || !resource.getRawHandle().getBlob())
    return GpulowerText{nullptr, 0};
  ArrayRef<char> data = resource.getRawHandle().getBlob()->getData();
  return GpulowerText{data.data(), data.size()};
}

/// `severity`: 0 error, 1 warning, 2 remark.
void gpulowerEmitDiagnostic(MlirLocation location, int severity,
                            GpulowerText message) {
  StringRef text(message.data, message.length);
  if (severity == 0)
    emitError(unwrap(location)) << text;
  else if (severity == 1)
    emitWarning(unwrap(location)) << text;
  else
    emitRemark(unwrap(location)) << text;
}

/// Parses text or bytecode. Operations that are not in a `module` are put into one, as MLIR's own tools do.
MlirModule gpulowerParseMlir(MlirContext context, GpulowerText source,
                               GpulowerText name) {
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(
      StringRef(source.data, source.length),
      ParserConfig(unwrap(context)), StringRef(name.data, name.length));
  return wrap(module.release());
}

bool gpulowerIsThreaded(MlirContext context) {
  return unwrap(context)->isMultithreadingEnabled();
}

} // extern "C"
