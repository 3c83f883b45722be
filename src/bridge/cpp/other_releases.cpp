// What other releases of MLIR write in another way: one function for each rule, on operations that are parsed and not yet
// verified. What is lost while it is parsed is kept by src/bridge/other_releases/mlir_text.rs.

#include "other_releases.h"
#include "bytes.h"

#include "mlir/CAPI/IR.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Builders.h"

using namespace mlir;

namespace {

/// MLIR 19 and older end a gpu.module with an operation of its own.
constexpr llvm::StringLiteral moduleEnd = "gpu.module_end";
/// What the text of a gpu.func becomes before it is parsed, where it has properties that MLIR 22 does not have.
constexpr llvm::StringLiteral foreignFunction = "gpu.Func";
/// From MLIR 23 on, what makes a kernel is a property of gpu.func, and not the attribute gpu.kernel.
constexpr llvm::StringLiteral kernel = "kernel";

void removeModuleEnd(Operation *operation) {
  if (operation->use_empty())
    operation->erase();
}

/// MLIR 23 leaves the number out where it is 0, and MLIR 22 takes it for granted where it adds one.
void countWorkgroupMemory(Operation *function) {
  StringRef name = gpu::GPUFuncOp::getNumWorkgroupAttributionsAttrName();
  if (!function->hasAttr(name))
    function->setAttr(name, OpBuilder(function).getI64IntegerAttr(0));
}

void restoreFunction(Operation *operation) {
  OpBuilder builder(operation);
  OperationState state(operation->getLoc(), gpu::GPUFuncOp::getOperationName());
  NamedAttrList attributes(operation->getDiscardableAttrDictionary());
  if (auto properties = dyn_cast_or_null<DictionaryAttr>(operation->getPropertiesAsAttribute()))
    attributes.append(properties.getValue());
  if (attributes.erase(kernel))
    attributes.set(gpu::GPUDialect::getKernelFuncAttrName(), builder.getUnitAttr());
  state.addAttributes(attributes.getAttrs());
  for (Region &region : operation->getRegions())
    state.addRegion()->takeBody(region);
  Operation *function = builder.create(state);
  countWorkgroupMemory(function);
  if (operation->getNumResults() == 0 && function->getNumResults() == 0)
    operation->erase();
}

void renameKernel(Operation *function) {
  if (auto value = dyn_cast_or_null<UnitAttr>(function->removeDiscardableAttr(kernel)))
    function->setDiscardableAttr(gpu::GPUDialect::getKernelFuncAttrName(), value);
}

/// Before MLIR 20 llvm.call has no operand bundles, and does not say which of its operands are arguments.
void countArguments(LLVM::CallOp call) {
  auto &properties = call.getProperties();
  if (properties.operandSegmentSizes[0] + properties.operandSegmentSizes[1] != 0)
    return;
  properties.operandSegmentSizes[0] = call->getNumOperands();
  if (!properties.op_bundle_sizes)
    properties.op_bundle_sizes = DenseI32ArrayAttr::get(call->getContext(), {});
}

} // namespace

void gpulower::bringOver(Operation *root) {
  SmallVector<Operation *> ends, functions;
  root->walk([&](Operation *operation) {
    StringRef name = operation->getName().getStringRef();
    if (name == moduleEnd)
      ends.push_back(operation);
    else if (name == foreignFunction)
      functions.push_back(operation);
    else if (auto call = dyn_cast<LLVM::CallOp>(operation))
      countArguments(call);
    else if (isa<gpu::GPUFuncOp>(operation)) {
      renameKernel(operation);
      countWorkgroupMemory(operation);
    }
  });
  for (Operation *end : ends)
    removeModuleEnd(end);
  for (Operation *function : functions)
    restoreFunction(function);
}

/// Whether an operation has a property. What is no operation of MLIR's is somebody else's to refuse.
extern "C" bool gpulowerMayHaveProperty(MlirContext context, GpulowerBytes operation, GpulowerBytes property) {
  auto name = RegisteredOperationName::lookup(gpulower::toStringRef(operation), unwrap(context));
  if (!name)
    return true;
  StringRef wanted = gpulower::toStringRef(property);
  // MLIR's older names of the last two are read as well.
  if (wanted == "operand_segment_sizes" || wanted == "result_segment_sizes" || wanted == "operandSegmentSizes" ||
      wanted == "resultSegmentSizes")
    return true;
  if (llvm::any_of(name->getAttributeNames(), [&](StringAttr known) { return known == wanted; }))
    return true;
  // Properties that are no attributes have a value in every operation.
  OperationState state(UnknownLoc::get(unwrap(context)), name->getStringRef());
  Operation *any = Operation::create(state);
  auto properties = dyn_cast_or_null<DictionaryAttr>(any->getPropertiesAsAttribute());
  bool has = properties && properties.contains(wanted);
  any->destroy();
  return has;
}
