// The host side of a GPU program: everything to the LLVM dialect, with calls of a small runtime for what concerns the
// GPU.
//
// MLIR's own `gpu-to-llvm` (22.1) is not used. It refuses `gpu.alloc`, `gpu.memcpy` and `gpu.memset` that are not
// asynchronous; its `gpu.wait async` with several dependencies makes a malformed call; it takes tokens that come from
// control flow for events though they are streams; a token that is used twice has its stream destroyed twice; it drops
// the offset of a memref that is copied; and it gives kernels that were compiled with 32-bit indices 64-bit ones.
//
// Here a token is a stream, always. Streams are never destroyed: the runtime takes them from a pool. The functions that
// are called have the names and signatures of MLIR's `mgpu` runtime, so that code that `gpu-to-llvm` has lowered
// elsewhere is served by the same definitions.

#include "contain.h"
#include "patterns.h"
#include "option_range.h"
#include "vector_transfers.h"

#include "mlir/CAPI/IR.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/AsyncToLLVM/AsyncToLLVM.h"
#include "mlir/Conversion/ComplexToLLVM/ComplexToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVM.h"
#include "mlir/Conversion/IndexToLLVM/IndexToLLVM.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/MemRefBuilder.h"
#include "mlir/Conversion/LLVMCommon/Pattern.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Conversion/NVGPUToNVVM/NVGPUToNVVM.h"
#include "mlir/Conversion/UBToLLVM/UBToLLVM.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/Async/IR/Async.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/Interfaces/DataLayoutInterfaces.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace {

/// Marks an asynchronous operation that is not the only one to follow its first dependency: it gets a stream of its own,
/// so that they can run beside each other.
constexpr StringLiteral ownStream = "gpulower.own_stream";

/// What patterns have in common: calls of the runtime, and streams.
template <typename Op>
struct HostPattern : ConvertOpToLLVMPattern<Op> {
  using ConvertOpToLLVMPattern<Op>::ConvertOpToLLVMPattern;

  Type pointer() const { return LLVM::LLVMPointerType::get(this->getContext()); }
  Type integer(unsigned bits) const { return IntegerType::get(this->getContext(), bits); }
  Type nothing() const { return LLVM::LLVMVoidType::get(this->getContext()); }

  /// Calls a function of the module, which is declared if it is not known yet.
  FailureOr<Value> call(Operation *from, OpBuilder &builder, StringRef name, Type result,
                        ValueRange arguments) const {
    auto module = from->getParentOfType<ModuleOp>();
    auto type = LLVM::LLVMFunctionType::get(result, llvm::to_vector(arguments.getTypes()));
    Operation *symbol = module.lookupSymbol(name);
    auto function = dyn_cast_if_present<LLVM::LLVMFuncOp>(symbol);
    if (!symbol) {
      OpBuilder atEnd = OpBuilder::atBlockEnd(module.getBody());
      function = LLVM::LLVMFuncOp::create(atEnd, from->getLoc(), name, type);
    }
    if (!function || function.getFunctionType() != type)
      return from->emitOpError() << "needs the function '" << name << "' with the type " << type
                                 << ", which the module declares otherwise";
    auto call = LLVM::CallOp::create(builder, from->getLoc(), function, arguments);
    return call.getNumResults() ? call.getResult() : Value();
  }

  Value null(Location loc, OpBuilder &builder) const { return LLVM::ZeroOp::create(builder, loc, pointer()); }

  Value constant(Location loc, OpBuilder &builder, unsigned bits, int64_t value) const {
    return LLVM::ConstantOp::create(builder, loc, integer(bits), builder.getIntegerAttr(integer(bits), value));
  }

  FailureOr<Value> newStream(Operation *op, OpBuilder &builder) const {
    return call(op, builder, "mgpuStreamCreate", pointer(), {});
  }

  LogicalResult synchronize(Operation *op, OpBuilder &builder, Value stream) const {
    return call(op, builder, "mgpuStreamSynchronize", nothing(), {stream});
  }

  /// What follows on `stream` waits for what is on `other` now.
  LogicalResult join(Operation *op, OpBuilder &builder, Value stream, Value other) const {
    FailureOr<Value> event = call(op, builder, "mgpuEventCreate", pointer(), {});
    if (failed(event) || failed(call(op, builder, "mgpuEventRecord", nothing(), {*event, other})) ||
        failed(call(op, builder, "mgpuStreamWaitEvent", nothing(), {stream, *event})))
      return failure();
    return call(op, builder, "mgpuEventDestroy", nothing(), {*event});
  }

  /// The stream for an operation after its dependencies: theirs, or a new one. An operation without a token waits for
  /// them here, and uses the default stream.
  FailureOr<Value> streamOf(gpu::AsyncOpInterface op, ValueRange dependencies, OpBuilder &builder) const {
    if (!op.getAsyncToken()) {
      for (Value dependency : dependencies)
        if (failed(synchronize(op, builder, dependency)))
          return failure();
      return null(op.getLoc(), builder);
    }
    bool own = dependencies.empty() || op->hasAttr(ownStream);
    FailureOr<Value> stream = own ? newStream(op, builder) : FailureOr<Value>(dependencies.front());
    if (failed(stream))
      return failure();
    for (Value other : own ? dependencies : dependencies.drop_front())
      if (failed(join(op, builder, *stream, other)))
        return failure();
    return stream;
  }

  /// Ends an operation without results but its token.
  LogicalResult finish(gpu::AsyncOpInterface op, ConversionPatternRewriter &rewriter, Value stream) const {
    if (op.getAsyncToken()) {
      rewriter.replaceOp(op, stream);
      return success();
    }
    if (failed(synchronize(op, rewriter, stream)))
      return failure();
    rewriter.eraseOp(op);
    return success();
  }

  static bool isContiguous(MemRefType type) {
    return type.getLayout().isIdentity() || type.areTrailingDimsContiguous(type.getRank());
  }

  Value elementCount(Location loc, OpBuilder &builder, MemRefType type, MemRefDescriptor &descriptor) const {
    Value count = constant(loc, builder, 64, 1);
    for (auto [dimension, size] : llvm::enumerate(type.getShape())) {
      Value factor = ShapedType::isDynamic(size) ? descriptor.size(builder, loc, dimension)
                                                 : constant(loc, builder, 64, size);
      count = LLVM::MulOp::create(builder, loc, count, factor);
    }
    return count;
  }

  Value start(Location loc, OpBuilder &builder, MemRefType type, MemRefDescriptor &descriptor) const {
    return descriptor.bufferPtr(builder, loc, *this->getTypeConverter(), type);
  }

  /// A memref type whose elements follow each other, or an error.
  FailureOr<MemRefType> contiguous(Operation *op, Type type) const {
    auto memref = dyn_cast<MemRefType>(type);
    if (!memref)
      return op->emitOpError("cannot take a memref without a rank; cast it to one of a fixed rank before");
    if (!isContiguous(memref))
      return op->emitOpError() << "cannot take " << memref
                               << ", whose elements do not follow each other; copy it to a contiguous memref before";
    return memref;
  }
};

struct LowerAlloc final : HostPattern<gpu::AllocOp> {
  using HostPattern::HostPattern;
  LogicalResult matchAndRewrite(gpu::AllocOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    MemRefType type = op.getType();
    if (!isConvertibleAndHasIdentityMaps(type))
      return op.emitOpError() << "cannot allocate " << type << ": only memrefs without a layout can be allocated";
    FailureOr<Value> stream = streamOf(op, adaptor.getAsyncDependencies(), rewriter);
    if (failed(stream))
      return failure();
    SmallVector<Value, 4> shape, strides;
    Value size;
    getMemRefDescriptorSizes(loc, type, adaptor.getDynamicSizes(), rewriter, shape, strides, size);
    Value shared = constant(loc, rewriter, 8, op.getHostShared());
    FailureOr<Value> memory = call(op, rewriter, "mgpuMemAlloc", pointer(), {size, *stream, shared});
    if (failed(memory))
      return failure();
    Value descriptor = createMemRefDescriptor(loc, type, *memory, *memory, shape, strides, rewriter);
    if (op.getAsyncToken())
      rewriter.replaceOp(op, {descriptor, *stream});
    else
      rewriter.replaceOp(op, {descriptor});
    return success();
  }
};

struct LowerDealloc final : HostPattern<gpu::DeallocOp> {
  using HostPattern::HostPattern;
  LogicalResult matchAndRewrite(gpu::DeallocOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    if (!isa<MemRefType>(op.getMemref().getType()))
      return op.emitOpError("cannot take a memref without a rank; cast it to one of a fixed rank before");
    FailureOr<Value> stream = streamOf(op, adaptor.getAsyncDependencies(), rewriter);
    if (failed(stream))
      return failure();
    Value memory = MemRefDescriptor(adaptor.getMemref()).allocatedPtr(rewriter, op.getLoc());
    if (failed(call(op, rewriter, "mgpuMemFree", nothing(), {memory, *stream})))
      return failure();
    if (op.getAsyncToken())
      rewriter.replaceOp(op, *stream);
    else
      rewriter.eraseOp(op);
    return success();
  }
};

struct LowerMemcpy final : HostPattern<gpu::MemcpyOp> {
  using HostPattern::HostPattern;
  LogicalResult matchAndRewrite(gpu::MemcpyOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    FailureOr<MemRefType> to = contiguous(op, op.getDst().getType());
    FailureOr<MemRefType> from = contiguous(op, op.getSrc().getType());
    if (failed(to) || failed(from))
      return failure();
    FailureOr<Value> stream = streamOf(op, adaptor.getAsyncDependencies(), rewriter);
    if (failed(stream))
      return failure();
    MemRefDescriptor target(adaptor.getDst()), source(adaptor.getSrc());
    Value size = getSizeInBytes(loc, from->getElementType(), rewriter);
    Value bytes = LLVM::MulOp::create(rewriter, loc, elementCount(loc, rewriter, *from, source), size);
    if (failed(call(op, rewriter, "mgpuMemcpy", nothing(),
                    {start(loc, rewriter, *to, target), start(loc, rewriter, *from, source), bytes, *stream})))
      return failure();
    return finish(op, rewriter, *stream);
  }
};

struct LowerMemset final : HostPattern<gpu::MemsetOp> {
  using HostPattern::HostPattern;
  LogicalResult matchAndRewrite(gpu::MemsetOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    FailureOr<MemRefType> to = contiguous(op, op.getDst().getType());
    if (failed(to))
      return failure();
    Value value = adaptor.getValue();
    Type type = value.getType();
    unsigned bits = type.isIntOrFloat() ? type.getIntOrFloatBitWidth() : 0;
    if (bits == 1) {
      bits = 8;
      value = LLVM::ZExtOp::create(rewriter, loc, integer(8), value);
    }
    if (!llvm::is_contained({8u, 16u, 32u, 64u}, bits))
      return op.emitOpError() << "cannot set elements of type " << op.getValue().getType()
                              << ": only numbers of 8, 16, 32 or 64 bits can be set";
    if (value.getType() != integer(bits))
      value = LLVM::BitcastOp::create(rewriter, loc, integer(bits), value);
    FailureOr<Value> stream = streamOf(op, adaptor.getAsyncDependencies(), rewriter);
    if (failed(stream))
      return failure();
    MemRefDescriptor target(adaptor.getDst());
    std::string name = "mgpuMemset" + std::to_string(bits);
    if (failed(call(op, rewriter, name, nothing(),
                    {start(loc, rewriter, *to, target), value, elementCount(loc, rewriter, *to, target), *stream})))
      return failure();
    return finish(op, rewriter, *stream);
  }
};

struct LowerWait final : HostPattern<gpu::WaitOp> {
  using HostPattern::HostPattern;
  LogicalResult matchAndRewrite(gpu::WaitOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    FailureOr<Value> stream = streamOf(op, adaptor.getAsyncDependencies(), rewriter);
    if (failed(stream))
      return failure();
    if (op.getAsyncToken())
      rewriter.replaceOp(op, *stream);
    else
      rewriter.eraseOp(op);
    return success();
  }
};

/// `gpu.host_register` and `gpu.host_unregister`.
template <typename Op>
struct LowerHostMemory final : HostPattern<Op> {
  LowerHostMemory(const LLVMTypeConverter &converter, StringRef function)
      : HostPattern<Op>(converter), function(function) {}
  LogicalResult matchAndRewrite(Op op, typename Op::Adaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Type element = cast<UnrankedMemRefType>(op.getValue().getType()).getElementType();
    SmallVector<Value, 4> arguments = this->getTypeConverter()->promoteOperands(
        loc, op->getOperands(), adaptor.getOperands(), rewriter);
    arguments.push_back(this->getSizeInBytes(loc, element, rewriter));
    if (failed(this->call(op, rewriter, function, this->nothing(), arguments)))
      return failure();
    rewriter.eraseOp(op);
    return success();
  }
  StringRef function;
};

struct LowerSetDefaultDevice final : HostPattern<gpu::SetDefaultDeviceOp> {
  using HostPattern::HostPattern;
  LogicalResult matchAndRewrite(gpu::SetDefaultDeviceOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    if (failed(call(op, rewriter, "mgpuSetDefaultDevice", nothing(), {adaptor.getDevIndex()})))
      return failure();
    rewriter.eraseOp(op);
    return success();
  }
};

/// A call of the kernel's stub, whose name is `prefix` and the kernel's: sizes of grid, cluster (where there is one) and
/// block, bytes of dynamic shared memory, the stream, whether to wait, and the kernel's arguments.
struct LowerLaunch final : HostPattern<gpu::LaunchFuncOp> {
  LowerLaunch(const LLVMTypeConverter &converter, bool barePointers, unsigned indexBitwidth)
      : HostPattern(converter), barePointers(barePointers), indexBitwidth(indexBitwidth) {}

  /// The argument as the kernel takes it, which may have been compiled with narrower indices.
  void append(Location loc, OpBuilder &builder, Type original, ArrayRef<Value> parts,
              SmallVectorImpl<Value> &arguments) const {
    bool indices = isa<IndexType, MemRefType>(original);
    for (Value part : parts) {
      if (indices && indexBitwidth != 64 && part.getType().isInteger(64))
        part = LLVM::TruncOp::create(builder, loc, integer(indexBitwidth), part);
      arguments.push_back(part);
    }
  }

  LogicalResult matchAndRewrite(gpu::LaunchFuncOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    FailureOr<Value> stream = adaptor.getAsyncObject()
                                  ? FailureOr<Value>(adaptor.getAsyncObject())
                                  : streamOf(op, adaptor.getAsyncDependencies(), rewriter);
    if (failed(stream))
      return failure();
    bool wait = !op.getAsyncToken() && !adaptor.getAsyncObject();

    SmallVector<Value> arguments{adaptor.getGridSizeX(), adaptor.getGridSizeY(), adaptor.getGridSizeZ()};
    if (op.hasClusterSize())
      llvm::append_values(arguments, adaptor.getClusterSizeX(), adaptor.getClusterSizeY(),
                          adaptor.getClusterSizeZ());
    llvm::append_values(arguments, adaptor.getBlockSizeX(), adaptor.getBlockSizeY(), adaptor.getBlockSizeZ());
    for (Value &size : arguments)
      if (size.getType() != integer(64))
        size = LLVM::SExtOp::create(rewriter, loc, integer(64), size);
    Value shared = adaptor.getDynamicSharedMemorySize();
    shared = shared ? LLVM::ZExtOp::create(rewriter, loc, integer(64), shared).getResult()
                    : constant(loc, rewriter, 64, 0);
    llvm::append_values(arguments, shared, *stream, constant(loc, rewriter, 1, wait ? -1 : 0));

    for (auto [original, converted] : llvm::zip(op.getKernelOperands(), adaptor.getKernelOperands())) {
      Type type = original.getType();
      if (isa<UnrankedMemRefType>(type))
        return op.emitOpError() << "cannot pass " << type
                                << " to a kernel, for which the descriptor is out of reach; cast it to a memref of a "
                                   "fixed rank before";
      if (auto memref = dyn_cast<MemRefType>(type);
          barePointers && memref && !canBeBare(memref))
        return op.emitOpError() << "cannot pass " << type
                                << " as a bare pointer: only memrefs of static shape without an offset can be passed so";
      append(loc, rewriter, type,
             getTypeConverter()->promoteOperands(loc, original, converted, rewriter, barePointers), arguments);
    }
    SmallString<64> stub(op.hasClusterSize() ? "__cluster_stub__" : "__device_stub__");
    stub += op.getKernelName().getValue();
    if (failed(call(op, rewriter, stub, nothing(), arguments)))
      return failure();
    if (op.getAsyncToken())
      rewriter.replaceOp(op, *stream);
    else
      rewriter.eraseOp(op);
    return success();
  }

  static bool canBeBare(MemRefType type) {
    int64_t offset;
    SmallVector<int64_t> strides;
    return type.hasStaticShape() && succeeded(type.getStridesAndOffset(strides, offset)) && offset == 0 &&
           !llvm::is_contained(strides, ShapedType::kDynamic);
  }

  bool barePointers;
  unsigned indexBitwidth;
};

/// While control flow is structured.
struct ExpandHost final : PassWrapper<ExpandHost, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ExpandHost)

  StringRef getName() const final { return "ExpandHost"; }
  StringRef getArgument() const final { return "gpulower-expand-host"; }
  StringRef getDescription() const final {
    return "Expand what MLIR's conversions of host code would leave to a runtime library";
  }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<arith::ArithDialect, LLVM::LLVMDialect, memref::MemRefDialect, scf::SCFDialect, vector::VectorDialect>();
  }
  void runOnOperation() final {
    // On the host there is one address space, whatever the memory behind it.
    AttrTypeReplacer replacer;
    replacer.addReplacement([](MemRefType type) {
      return MemRefType::get(type.getShape(), type.getElementType(), type.getLayout(), Attribute());
    });
    replacer.addReplacement([](UnrankedMemRefType type) {
      return UnrankedMemRefType::get(type.getElementType(), Attribute());
    });
    // The memory in it is the device's.
    replacer.addReplacement(
        [](nvgpu::TensorMapDescriptorType type) { return std::make_pair(Type(type), WalkResult::skip()); });
    replacer.recursivelyReplaceElementsIn(getOperation(), /*replaceAttrs=*/true, /*replaceLocs=*/false,
                                          /*replaceTypes=*/true);
    getOperation().walk([](memref::MemorySpaceCastOp op) {
      op.replaceAllUsesWith(op.getSource());
      op.erase();
    });

    RewritePatternSet patterns(&getContext());
    gpulower::populateCopyPatterns(patterns);
    gpulower::populateTransferPatterns(patterns);
    if (failed(gpulower::rewrite(getOperation(), std::move(patterns))) || failed(convertTokensInValues()))
      signalPassFailure();
  }

  /// MLIR's conversion of the `async` dialect knows no type of streams: between tasks they are pointers.
  LogicalResult convertTokensInValues() {
    auto hasAsync = getOperation().walk([](async::ExecuteOp) { return WalkResult::interrupt(); });
    if (!hasAsync.wasInterrupted())
      return success();
    TypeConverter converter;
    converter.addConversion([](Type type) { return type; });
    converter.addConversion(
        [](gpu::AsyncTokenType type) { return LLVM::LLVMPointerType::get(type.getContext()); });
    auto cast = [](OpBuilder &builder, Type type, ValueRange inputs, Location loc) -> Value {
      return UnrealizedConversionCastOp::create(builder, loc, type, inputs).getResult(0);
    };
    converter.addSourceMaterialization(cast);
    converter.addTargetMaterialization(cast);
    RewritePatternSet patterns(&getContext());
    ConversionTarget target(getContext());
    populateAsyncStructuralTypeConversionsAndLegality(converter, patterns, target);
    return applyPartialConversion(getOperation(), target, std::move(patterns));
  }
};

struct HostToLlvm final : PassWrapper<HostToLlvm, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(HostToLlvm)

  HostToLlvm() = default;
  HostToLlvm(const HostToLlvm &other) : PassWrapper(other) {}

  StringRef getName() const final { return "HostToLlvm"; }
  StringRef getArgument() const final { return "gpulower-host-to-llvm"; }
  StringRef getDescription() const final {
    return "Lower host code to the LLVM dialect, launches to calls of stubs, and other GPU operations to mgpu calls";
  }
  void getDependentDialects(DialectRegistry &registry) const final { registry.insert<LLVM::LLVMDialect>(); }

  void runOnOperation() final {
    ModuleOp module = getOperation();
    MLIRContext *context = &getContext();
    auto isAsynchronous = [](Operation *op) {
      auto async = dyn_cast<gpu::AsyncOpInterface>(op);
      return async && async.getAsyncToken();
    };
    module.walk([&](gpu::AsyncOpInterface op) {
      auto dependencies = op.getAsyncDependencies();
      if (isAsynchronous(op) && !dependencies.empty() &&
          llvm::count_if(dependencies.front().getUsers(), isAsynchronous) > 1)
        op->setAttr(ownStream, UnitAttr::get(op->getContext()));
    });

    LowerToLLVMOptions options(context);
    LLVMTypeConverter converter(context, options);
    auto pointer = LLVM::LLVMPointerType::get(context);
    converter.addConversion([pointer](gpu::AsyncTokenType) { return pointer; });
    // A tensor map is made in memory, by a call, and passed to kernels by its address.
    converter.addConversion([pointer](nvgpu::TensorMapDescriptorType) { return pointer; });

    RewritePatternSet patterns(context);
    populateNVGPUToNVVMConversionPatterns(converter, patterns);
    arith::populateArithToLLVMConversionPatterns(converter, patterns);
    cf::populateControlFlowToLLVMConversionPatterns(converter, patterns);
    cf::populateAssertToLLVMConversionPattern(converter, patterns);
    index::populateIndexToLLVMConversionPatterns(converter, patterns);
    ub::populateUBToLLVMConversionPatterns(converter, patterns);
    populateComplexToLLVMConversionPatterns(converter, patterns);
    populateMathToLLVMConversionPatterns(converter, patterns);
    populateVectorToLLVMConversionPatterns(converter, patterns);
    populateFinalizeMemRefToLLVMConversionPatterns(converter, patterns);
    populateFuncToLLVMConversionPatterns(converter, patterns);
    patterns.add<LowerAlloc, LowerDealloc, LowerMemcpy, LowerMemset, LowerWait, LowerSetDefaultDevice>(converter);
    patterns.add<LowerHostMemory<gpu::HostRegisterOp>>(converter, "mgpuMemHostRegisterMemRef");
    patterns.add<LowerHostMemory<gpu::HostUnregisterOp>>(converter, "mgpuMemHostUnregisterMemRef");
    patterns.add<LowerLaunch>(converter, barePointers, indexBitwidth);

    ConversionTarget target(*context);
    target.addLegalDialect<LLVM::LLVMDialect>();
    target.addIllegalOp<gpu::AllocOp, gpu::DeallocOp, gpu::MemcpyOp, gpu::MemsetOp, gpu::WaitOp,
                        gpu::HostRegisterOp, gpu::HostUnregisterOp, gpu::SetDefaultDeviceOp, gpu::LaunchFuncOp>();
    // Kernels that are still here are not the host's.
    target.addLegalOp<gpu::GPUModuleOp>();
    target.markOpRecursivelyLegal<gpu::GPUModuleOp>();
    // MLIR 22's pattern crashes (`VectorInsertOpConversion`); `gpulower-expand-host` leaves none.
    target.addDynamicallyLegalOp<vector::InsertOp>([](vector::InsertOp op) {
      bool isOfAggregate = op.getDestVectorType().getRank() > 1 && !op.getDynamicPosition().empty();
      return isOfAggregate ? std::optional(true) : std::nullopt;
    });
    if (failed(applyPartialConversion(module, target, std::move(patterns))))
      return signalPassFailure();
    // They stood for the kernels, which the stubs do now.
    for (auto binary : llvm::make_early_inc_range(module.getOps<gpu::BinaryOp>()))
      binary.erase();
    module->removeAttr(gpu::GPUDialect::getContainerModuleAttrName());
  }

  LogicalResult initializeOptions(StringRef text, gpulower::Refuse refuse) final {
    return failure(failed(Pass::initializeOptions(text, gpulower::InWords{refuse})) ||
                   failed(gpulower::checkRange("kernel-index-bitwidth", "index-bitwidth", indexBitwidth, refuse)));
  }

  Option<bool, gpulower::QuietParser<bool>> barePointers{
      *this, "bare-pointers", llvm::cl::desc("Kernels take memrefs of static shape as plain pointers"),
      llvm::cl::init(false)};
  Option<unsigned, gpulower::QuietParser<unsigned>> indexBitwidth{
      *this, "kernel-index-bitwidth", llvm::cl::desc("Bits of index in kernels"), llvm::cl::init(64)};
};

} // namespace

/// Registers the passes with MLIR. Call once.
extern "C" void gpulowerRegisterHostPasses() {
  PassRegistration<ExpandHost>();
  PassRegistration<HostToLlvm>();
}

/// The bytes of a global variable's type, or -1 where it has none that is known.
static int64_t globalSize(Operation *op) {
  DataLayout layout = DataLayout::closest(op);
  uint64_t count = 1;
  Type type;
  if (auto global = dyn_cast<LLVM::GlobalOp>(op)) {
    type = global.getGlobalType();
    while (auto array = dyn_cast<LLVM::LLVMArrayType>(type)) {
      count = llvm::SaturatingMultiply<uint64_t>(count, array.getNumElements());
      type = array.getElementType();
    }
  }
  if (auto global = dyn_cast<memref::GlobalOp>(op)) {
    LLVMTypeConverter converter(op->getContext());
    type = converter.convertType(global.getType().getElementType());
    if (!type || !global.getType().hasStaticShape())
      return -1;
    for (int64_t size : global.getType().getShape())
      count = llvm::SaturatingMultiply<uint64_t>(count, size);
  }
  if (!type)
    return -1;
  llvm::TypeSize size = layout.getTypeSize(type);
  if (size.isScalable())
    return -1;
  uint64_t stride =
      llvm::alignTo(size.getFixedValue(), layout.getTypeABIAlignment(type));
  return static_cast<int64_t>(
      std::min<uint64_t>(llvm::SaturatingMultiply(count, stride), INT64_MAX));
}

/// The size of a type without a data layout is a fatal error, and unknown here.
extern "C" int64_t gpulowerGlobalSize(MlirOperation operation) {
  int64_t size = -1;
  GpulowerOutcome outcome = gpulower::contain([&]() -> std::string {
    size = globalSize(unwrap(operation));
    return "";
  });
  std::free(outcome.text);
  return size;
}
