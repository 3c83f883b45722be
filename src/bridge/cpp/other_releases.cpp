// What other releases of MLIR write in another way: one function for each rule, on operations that are parsed and not
// yet verified. What is lost while it is parsed is kept by src/bridge/other_releases/mlir_text.rs.

#include "other_releases.h"
#include "bytes.h"

#include "mlir/CAPI/IR.h"
#include "mlir/Dialect/AMDGPU/IR/AMDGPUDialect.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"

using namespace mlir;

namespace {

/// MLIR 19 and older end a gpu.module with an operation of its own.
constexpr llvm::StringLiteral moduleEnd = "gpu.module_end";
/// What an operation in generic form becomes in the text before it is parsed, where it has properties that MLIR 22 does
/// not have, or has in another form, or kinds, which have other numbers in older releases.
constexpr llvm::StringLiteral foreign[] = {"affine.Parallel",        "gpu.Func",          "llvm.intr.lifetime.Start",
                                           "llvm.intr.lifetime.End", "memref.Atomic_rmw", "nvvm.Barrier",
                                           "vector.Multi_reduction"};
/// From MLIR 23 on, what makes a kernel is a property of gpu.func, and not the attribute gpu.kernel.
constexpr llvm::StringLiteral kernel = "kernel";

constexpr llvm::StringLiteral splat = "vector.splat";
constexpr llvm::StringLiteral extractElement = "vector.extractelement";
constexpr llvm::StringLiteral insertElement = "vector.insertelement";

/// An operation of the vector dialect in MLIR 21 and older that MLIR 22 does not have. It is there to be parsed in
/// custom form: bringOver() writes it in another way, and what is not as those releases wrote it is refused.
template <typename Concrete>
struct RemovedOp
    : Op<Concrete, OpTrait::ZeroRegions, OpTrait::OneResult, OpTrait::ZeroSuccessors, OpTrait::VariadicOperands> {
  using Op<Concrete, OpTrait::ZeroRegions, OpTrait::OneResult, OpTrait::ZeroSuccessors, OpTrait::VariadicOperands>::Op;
  static ArrayRef<StringRef> getAttributeNames() { return {}; }
  LogicalResult verify() { return this->emitOpError("is no operation of MLIR 22, and not as older releases write it"); }
};

/// `vector.splat %a : vector<4xf32>`
struct SplatOp : RemovedOp<SplatOp> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(SplatOp)
  using RemovedOp::RemovedOp;
  static StringRef getOperationName() { return splat; }
  static ParseResult parse(OpAsmParser &parser, OperationState &state) {
    OpAsmParser::UnresolvedOperand value;
    VectorType type;
    return failure(parser.parseOperand(value) || parser.parseOptionalAttrDict(state.attributes) ||
                   parser.parseColonType(type) || parser.resolveOperand(value, type.getElementType(), state.operands) ||
                   parser.addTypeToList(type, state.types));
  }
};

/// `[%i : i32]`, or `[]` for a vector of rank 0, attributes, and the vector's type.
ParseResult parsePosition(OpAsmParser &parser, OperationState &state, OpAsmParser::UnresolvedOperand &position,
                          Type &positionType, VectorType &type) {
  if (parser.parseLSquare())
    return failure();
  OptionalParseResult there = parser.parseOptionalOperand(position);
  if (there.has_value() && (*there || parser.parseColonType(positionType)))
    return failure();
  return failure(parser.parseRSquare() || parser.parseOptionalAttrDict(state.attributes) ||
                 parser.parseColonType(type));
}

/// `vector.extractelement %v[%i : i32] : vector<4xf32>`
struct ExtractElementOp : RemovedOp<ExtractElementOp> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ExtractElementOp)
  using RemovedOp::RemovedOp;
  static StringRef getOperationName() { return extractElement; }
  static ParseResult parse(OpAsmParser &parser, OperationState &state) {
    OpAsmParser::UnresolvedOperand vector, position;
    Type positionType;
    VectorType type;
    return failure(parser.parseOperand(vector) || parsePosition(parser, state, position, positionType, type) ||
                   parser.resolveOperand(vector, type, state.operands) ||
                   (positionType && parser.resolveOperand(position, positionType, state.operands)) ||
                   parser.addTypeToList(type.getElementType(), state.types));
  }
};

/// `vector.insertelement %a, %v[%i : i32] : vector<4xf32>`
struct InsertElementOp : RemovedOp<InsertElementOp> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(InsertElementOp)
  using RemovedOp::RemovedOp;
  static StringRef getOperationName() { return insertElement; }
  static ParseResult parse(OpAsmParser &parser, OperationState &state) {
    OpAsmParser::UnresolvedOperand value, vector, position;
    Type positionType;
    VectorType type;
    return failure(parser.parseOperand(value) || parser.parseComma() || parser.parseOperand(vector) ||
                   parsePosition(parser, state, position, positionType, type) ||
                   parser.resolveOperand(value, type.getElementType(), state.operands) ||
                   parser.resolveOperand(vector, type, state.operands) ||
                   (positionType && parser.resolveOperand(position, positionType, state.operands)) ||
                   parser.addTypeToList(type, state.types));
  }
};

/// An operation of a vector's element, whose place is an integer without a sign there and an index here.
void replaceElementOp(Operation *operation) {
  OpBuilder builder(operation);
  Location location = operation->getLoc();
  bool inserts = operation->getName().getStringRef() == insertElement;
  unsigned vectorAt = inserts ? 1 : 0, count = operation->getNumOperands();
  if (count <= vectorAt || operation->getNumResults() != 1)
    return;
  auto type = dyn_cast<VectorType>(operation->getOperand(vectorAt).getType());
  if (!type || type.getRank() > 1 || count != vectorAt + 1 + type.getRank())
    return;
  Type result = operation->getResult(0).getType();
  if (result != (inserts ? Type(type) : type.getElementType()) ||
      (inserts && operation->getOperand(0).getType() != type.getElementType()))
    return;
  SmallVector<OpFoldResult> position;
  if (type.getRank() == 1) {
    Value index = operation->getOperand(count - 1);
    if (!index.getType().isSignlessIntOrIndex())
      return;
    if (!index.getType().isIndex()) {
      operation->getContext()->getOrLoadDialect<arith::ArithDialect>();
      index = arith::IndexCastUIOp::create(builder, location, builder.getIndexType(), index);
    }
    position.push_back(index);
  }
  Value made = inserts ? Value(vector::InsertOp::create(builder, location, operation->getOperand(0),
                                                        operation->getOperand(1), position))
                       : Value(vector::ExtractOp::create(builder, location, operation->getOperand(0), position));
  operation->getResult(0).replaceAllUsesWith(made);
  operation->erase();
}

void replaceSplat(Operation *operation) {
  if (operation->getNumOperands() != 1 || operation->getNumResults() != 1)
    return;
  auto type = dyn_cast<VectorType>(operation->getResult(0).getType());
  if (!type || operation->getOperand(0).getType() != type.getElementType())
    return;
  OpBuilder builder(operation);
  Value made = vector::BroadcastOp::create(builder, operation->getLoc(), type, operation->getOperand(0));
  operation->getResult(0).replaceAllUsesWith(made);
  operation->erase();
}

/// Operations under the names that they have in MLIR 22; nothing where it is the same. Those of mbarriers had one for
/// each kind of pointer. In custom form mlir_text.rs renames them.
std::string renamed(StringRef name) {
  if (name.starts_with("nvvm.mbarrier.") || name.starts_with("nvvm.cp.async.mbarrier.arrive."))
    return name.consume_back(".shared") ? name.str() : "";
  return llvm::StringSwitch<std::string>(name)
      .Case("nvvm.vote.ballot.sync", "nvvm.vote.sync")
      .Case("nvvm.prefetch.tensormap", "nvvm.prefetch")
      .Case("rocdl.waitcnt", "rocdl.s.waitcnt")
      .Default("");
}

/// Before MLIR 22 amdgpu.wmma has one shape, but for integers of 4 bits.
void nameShape(amdgpu::WMMAOp multiply) {
  auto &properties = multiply.getProperties();
  if (properties.m || properties.n || properties.k || multiply->getNumOperands() != 3 ||
      getElementTypeOrSelf(multiply->getOperand(0).getType()).isInteger(4))
    return;
  properties.m = properties.n = properties.k = Builder(multiply.getContext()).getI32IntegerAttr(16);
}

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

/// Before MLIR 22 nvvm.barrier has no predicate of a reduction, and its operands are two groups. A number comes before
/// the other.
void countThreads(NVVM::BarrierOp barrier) {
  auto &sizes = barrier.getProperties().operandSegmentSizes;
  unsigned count = barrier->getNumOperands();
  if (sizes[0] + sizes[1] + sizes[2] == 0 && count <= 2)
    sizes = {count > 0, count > 1, 0};
}

/// An operation under its own name, with what it says in the form of MLIR 22.
Operation *restore(Operation *operation) {
  OpBuilder builder(operation);
  StringRef name = operation->getName().getStringRef();
  std::string now = renamed(name);
  OperationState state(operation->getLoc(), now.empty() ? name.lower() : now);
  NamedAttrList attributes(operation->getDiscardableAttrDictionary());
  if (auto properties = dyn_cast_or_null<DictionaryAttr>(operation->getPropertiesAsAttribute()))
    attributes.append(properties.getValue());
  if (attributes.erase(kernel))
    attributes.set(gpu::GPUDialect::getKernelFuncAttrName(), builder.getUnitAttr());
  if (state.name.getStringRef() == NVVM::BarrierOp::getOperationName())
    attributes.erase(NVVM::BarrierOp::getOperandSegmentSizeAttr());
  if (auto dimensions = dyn_cast_or_null<ArrayAttr>(attributes.get("reduction_dims"))) {
    SmallVector<int64_t> numbers;
    for (Attribute dimension : dimensions)
      if (auto number = dyn_cast<IntegerAttr>(dimension); number && number.getType().isSignlessInteger(64))
        numbers.push_back(number.getInt());
    // What else there is MLIR refuses.
    if (numbers.size() == dimensions.size())
      attributes.set("reduction_dims", builder.getDenseI64ArrayAttr(numbers));
  }
  if (state.name.getStringRef().starts_with("llvm.intr.lifetime."))
    attributes.erase("size");
  if (state.name.getStringRef() == NVVM::VoteSyncOp::getOperationName())
    attributes.set("kind", NVVM::VoteSyncKindAttr::get(operation->getContext(), NVVM::VoteSyncKind::ballot));
  if (state.name.getStringRef() == NVVM::PrefetchOp::getOperationName())
    attributes.set("tensormap", builder.getUnitAttr());
  state.addAttributes(attributes.getAttrs());
  state.addOperands(operation->getOperands());
  state.addTypes(operation->getResultTypes());
  for (Region &region : operation->getRegions())
    state.addRegion()->takeBody(region);
  Operation *made = builder.create(state);
  if (isa<gpu::GPUFuncOp>(made))
    countWorkgroupMemory(made);
  if (auto barrier = dyn_cast<NVVM::BarrierOp>(made))
    countThreads(barrier);
  operation->replaceAllUsesWith(made->getResults());
  operation->erase();
  return made;
}

void renameKernel(Operation *function) {
  if (auto value = dyn_cast_or_null<UnitAttr>(function->removeDiscardableAttr(kernel)))
    function->setDiscardableAttr(gpu::GPUDialect::getKernelFuncAttrName(), value);
}

/// Before MLIR 20 calls have no operand bundles, and do not say which of their operands are arguments.
template <typename Call> void countArguments(Call call) {
  auto &properties = call.getProperties();
  if (properties.operandSegmentSizes[0] + properties.operandSegmentSizes[1] != 0)
    return;
  properties.operandSegmentSizes[0] = call->getNumOperands();
  if (!properties.op_bundle_sizes)
    properties.op_bundle_sizes = DenseI32ArrayAttr::get(call->getContext(), {});
}

/// Before MLIR 22 nvvm.ldmatrix loads matrices of one shape.
void nameShape(NVVM::LdMatrixOp load) {
  auto &properties = load.getProperties();
  if (properties.eltType || properties.shape)
    return;
  properties.eltType = NVVM::LdStMatrixEltTypeAttr::get(load->getContext(), NVVM::LdStMatrixEltType::B16);
  properties.shape = NVVM::LdStMatrixShapeAttr::get(load->getContext(), 8, 8);
}

/// The number of a kind of arith::AtomicRMWKind in MLIR 21 and older, in text in generic form and in bytecode, as that
/// in MLIR 22.
arith::AtomicRMWKindAttr renumbered(arith::AtomicRMWKindAttr kind) {
  using Kind = arith::AtomicRMWKind;
  constexpr Kind older[] = {Kind::addf, Kind::addi,     Kind::assign, Kind::maximumf, Kind::maxs,
                            Kind::maxu, Kind::minimumf, Kind::mins,   Kind::minu,     Kind::mulf,
                            Kind::muli, Kind::ori,      Kind::andi,   Kind::maxnumf,  Kind::minnumf};
  auto number = static_cast<uint64_t>(kind.getValue());
  return number < std::size(older) ? arith::AtomicRMWKindAttr::get(kind.getContext(), older[number]) : kind;
}

void renumberKinds(Operation *operation) {
  if (auto atomic = dyn_cast<memref::AtomicRMWOp>(operation); atomic && atomic.getProperties().kind)
    atomic.setKindAttr(renumbered(atomic.getKindAttr()));
  if (auto loop = dyn_cast<affine::AffineParallelOp>(operation); loop && loop.getProperties().reductions) {
    SmallVector<Attribute> kinds(loop.getReductions().getValue());
    for (Attribute &kind : kinds)
      if (auto known = dyn_cast<arith::AtomicRMWKindAttr>(kind))
        kind = renumbered(known);
    loop.setReductionsAttr(ArrayAttr::get(loop->getContext(), kinds));
  }
}

/// Whether a release before 22 is named in bytecode, behind its version.
bool isOlderBytecode(StringRef source) {
  unsigned release = 0;
  size_t name = source.find("MLIR");
  if (!source.starts_with("ML\xefR") || name > 16)
    return false;
  source = source.drop_front(name + 4);
  return !source.consumeInteger(10, release) && release < 22;
}

} // namespace

void gpulower::admitRemovedOperations(MLIRContext &context, StringRef source) {
  if (!source.contains(splat) && !source.contains(extractElement) && !source.contains(insertElement))
    return;
  auto *dialect = context.getOrLoadDialect<vector::VectorDialect>();
  if (RegisteredOperationName::lookup(splat, &context))
    return;
  RegisteredOperationName::insert<SplatOp>(*dialect);
  RegisteredOperationName::insert<ExtractElementOp>(*dialect);
  RegisteredOperationName::insert<InsertElementOp>(*dialect);
}

void gpulower::bringOver(Operation *root, StringRef source) {
  SmallVector<Operation *> ends, others, splats, elements, lifetimes;
  bool isOlder = isOlderBytecode(source);
  root->walk([&](Operation *operation) {
    StringRef name = operation->getName().getStringRef();
    if (isOlder)
      renumberKinds(operation);
    if (name == moduleEnd)
      ends.push_back(operation);
    else if (llvm::is_contained(foreign, name) || !renamed(name).empty())
      others.push_back(operation);
    else if (name == splat)
      splats.push_back(operation);
    else if (name == extractElement || name == insertElement)
      elements.push_back(operation);
    else if (isa<LLVM::LifetimeStartOp, LLVM::LifetimeEndOp>(operation))
      lifetimes.push_back(operation);
    else if (auto multiply = dyn_cast<amdgpu::WMMAOp>(operation))
      nameShape(multiply);
    else if (auto call = dyn_cast<LLVM::CallOp>(operation))
      countArguments(call);
    else if (auto call = dyn_cast<LLVM::CallIntrinsicOp>(operation))
      countArguments(call);
    else if (auto barrier = dyn_cast<NVVM::BarrierOp>(operation))
      countThreads(barrier);
    else if (auto load = dyn_cast<NVVM::LdMatrixOp>(operation))
      nameShape(load);
    else if (isa<gpu::GPUFuncOp>(operation)) {
      renameKernel(operation);
      countWorkgroupMemory(operation);
    }
  });
  for (Operation *other : others) {
    Operation *made = restore(other);
    // Text does not say who wrote it, but for the end of a module.
    if (!ends.empty())
      renumberKinds(made);
  }
  llvm::for_each(ends, removeModuleEnd);
  // Before MLIR 22 they may be of any pointer; LLVM 22 refuses those of a part. They are hints.
  for (Operation *lifetime : lifetimes)
    if (lifetime->getNumOperands() == 1 && !lifetime->getOperand(0).getDefiningOp<LLVM::AllocaOp>())
      lifetime->erase();
  llvm::for_each(splats, replaceSplat);
  llvm::for_each(elements, replaceElementOp);
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
