// Passes on `gpu.module`s for what MLIR's own passes cannot be made to do there: upstream has the patterns but
// only passes for `func.func`, or nothing at all.

#include "patterns.h"
#include "option_range.h"
#include "small_floats.h"
#include "vector_transfers.h"

#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVM.h"
#include "mlir/Conversion/GPUToNVVM/GPUToNVVMPass.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/AMDGPU/IR/AMDGPUDialect.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/GPU/Transforms/Passes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/LLVMIR/ROCDLDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/Vector/Transforms/LoweringPatterns.h"
#include "mlir/Dialect/Vector/Transforms/VectorDistribution.h"
#include "mlir/Dialect/Vector/Transforms/VectorRewritePatterns.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;
using namespace gpulower;

void gpulower::forgetOverflowOfTruncations(Operation *root) {
  root->walk([](arith::TruncIOp op) { op.setOverflowFlags(arith::IntegerOverflowFlags::none); });
}

LogicalResult gpulower::rewrite(Operation *root, RewritePatternSet patterns) {
  FrozenRewritePatternSet frozen(std::move(patterns));
  WalkResult walk = root->walk([&](Operation *operation) {
    return frozen.getOpSpecificNativePatterns().contains(operation->getName()) ? WalkResult::interrupt()
                                                                               : WalkResult::advance();
  });
  if (!walk.wasInterrupted() && frozen.getMatchAnyOpNativePatterns().empty())
    return success();
  forgetOverflowOfTruncations(root);
  // Blocks stay as they are: MLIR would merge those that are alike, and look at everything again after each of them, until it
  // gives up (a reduction of a workgroup has more than the ten that it has by default).
  constexpr int64_t most = 100;
  GreedyRewriteConfig config;
  config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled).setMaxIterations(most);
  if (succeeded(applyPatternsGreedily(root, frozen, config)))
    return success();
  return root->emitError() << "patterns still match after " << most << " passes over the module";
}

namespace {

/// Most work items in a workgroup, for both vendors (CUDA C++ Programming Guide, "Compute Capabilities"; LLVM's
/// AMDGPUUsage, `.max_flat_workgroup_size`).
constexpr unsigned largestWorkgroup = 1024;

/// What a failed assertion calls on AMD: it hands a text to the host and ends the kernel. One for all of a module, and never
/// inlined, so that an assertion costs a branch.
LLVM::LLVMFuncOp assertionFailure(gpu::GPUModuleOp module, OpBuilder &builder) {
  constexpr StringLiteral name = "__gpulower_assertion_failed";
  if (auto known = module.lookupSymbol<LLVM::LLVMFuncOp>(name))
    return known;
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(module.getBody());
  MLIRContext *context = module.getContext();
  Location loc = UnknownLoc::get(context);
  auto pointer = LLVM::LLVMPointerType::get(context);
  Type i32 = builder.getI32Type(), i64 = builder.getI64Type(), nothing = LLVM::LLVMVoidType::get(context);
  auto declare = [&](StringRef known, Type result, ArrayRef<Type> arguments) {
    if (auto function = module.lookupSymbol<LLVM::LLVMFuncOp>(known))
      return function;
    auto function = LLVM::LLVMFuncOp::create(builder, loc, known, LLVM::LLVMFunctionType::get(result, arguments));
    function.setConvergent(true);
    return function;
  };
  auto begin = declare("__ockl_fprintf_stderr_begin", i64, {});
  auto append = declare("__ockl_fprintf_append_string_n", i64, {i64, pointer, i64, i32});
  auto failed = LLVM::LLVMFuncOp::create(builder, loc, name, LLVM::LLVMFunctionType::get(nothing, {pointer, i64}),
                                         LLVM::Linkage::Internal);
  failed.setConvergent(true);
  failed.setNoInline(true);
  failed.setPassthroughAttr(builder.getStrArrayAttr({"cold"}));
  builder.setInsertionPointToStart(failed.addEntryBlock(builder));
  auto message = LLVM::CallOp::create(builder, loc, begin, ValueRange{});
  Value last = LLVM::ConstantOp::create(builder, loc, i32, 1);
  LLVM::CallOp::create(builder, loc, append,
                       ValueRange{message.getResult(), failed.getArgument(0), failed.getArgument(1), last});
  LLVM::Trap::create(builder, loc);
  LLVM::ReturnOp::create(builder, loc, ValueRange{});
  return failed;
}

/// What HIP's own `assert` says, as a format of printf.
std::string assertionText(cf::AssertOp op) {
  std::string file = "(unknown)", function = file;
  unsigned line = 0;
  Location loc = op.getLoc();
  if (auto named = dyn_cast<NameLoc>(loc)) {
    function = named.getName().str();
    loc = named.getChildLoc();
  }
  if (auto place = dyn_cast<FileLineColLoc>(loc)) {
    file = place.getFilename().str();
    line = place.getLine();
  }
  std::string text =
      (file + ":" + Twine(line) + ": " + function + ": Device-side assertion `" + op.getMsg() + "' failed.\n").str();
  std::string format;
  for (char letter : text)
    format += letter == '%' ? "%%" : std::string(1, letter);
  return format;
}

struct AssertOnAmd final : OpRewritePattern<cf::AssertOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(cf::AssertOp op, PatternRewriter &rewriter) const override {
    auto module = op->getParentOfType<gpu::GPUModuleOp>();
    if (!module)
      return failure();
    Location loc = op.getLoc();
    LLVM::LLVMFuncOp failed = assertionFailure(module, rewriter);
    std::string text = assertionText(op);
    text.push_back('\0');
    LLVM::GlobalOp global = assertionGlobal(module, rewriter, text);
    Block *before = op->getBlock();
    Block *after = rewriter.splitBlock(before, std::next(op->getIterator()));
    Block *failing = rewriter.createBlock(after);
    Value address = LLVM::AddressOfOp::create(rewriter, loc, global);
    address = LLVM::AddrSpaceCastOp::create(rewriter, loc, LLVM::LLVMPointerType::get(getContext()), address);
    Value length = LLVM::ConstantOp::create(rewriter, loc, rewriter.getI64Type(), static_cast<int64_t>(text.size()));
    LLVM::CallOp::create(rewriter, loc, failed, ValueRange{address, length}).setConvergent(true);
    cf::BranchOp::create(rewriter, loc, after);
    rewriter.setInsertionPointToEnd(before);
    cf::CondBranchOp::create(rewriter, loc, op.getArg(), after, ValueRange{}, failing, ValueRange{});
    rewriter.eraseOp(op);
    return success();
  }

  LLVM::GlobalOp assertionGlobal(gpu::GPUModuleOp module, OpBuilder &builder, StringRef text) const {
    constexpr unsigned constantSpace = 4;
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(module.getBody());
    std::string name;
    do
      name = ("__gpulower_assertion_" + Twine(number++)).str();
    while (module.lookupSymbol(name));
    auto type = LLVM::LLVMArrayType::get(builder.getI8Type(), text.size());
    return LLVM::GlobalOp::create(builder, UnknownLoc::get(module.getContext()), type, /*isConstant=*/true,
                                  LLVM::Linkage::Internal, name, builder.getStringAttr(text), /*alignment=*/1, constantSpace);
  }

  /// The number of the next text.
  mutable unsigned number = 0;
};

/// A tensor map is passed to a kernel by address, which is what it becomes inside as well.
void passTensorMapsByAddress(Operation *root) {
  root->walk([](gpu::GPUFuncOp function) {
    if (!function.isKernel())
      return;
    auto pointer = LLVM::LLVMPointerType::get(function.getContext());
    SmallVector<Type> types(function.getArgumentTypes());
    OpBuilder builder = OpBuilder::atBlockBegin(&function.front());
    bool changed = false;
    for (auto [index, type] : llvm::enumerate(types)) {
      if (!isa<nvgpu::TensorMapDescriptorType>(type))
        continue;
      BlockArgument argument = function.getArgument(index);
      auto cast = UnrealizedConversionCastOp::create(builder, function.getLoc(),
                                                     type, argument);
      argument.setType(pointer);
      argument.replaceAllUsesExcept(cast.getResult(0), cast);
      type = pointer;
      types[index] = pointer;
      changed = true;
    }
    if (changed)
      function.setType(builder.getFunctionType(types, function.getResultTypes()));
  });
}

/// Memory for what lane 0 hands to the others: a slot for each subgroup that a workgroup can have.
Value subgroupSlot(Location loc, OpBuilder &builder, Operation *user, Type type,
                   const GpuChip &chip, WorkgroupBuffers &buffers) {
  SmallVector<int64_t> shape{largestWorkgroup / chip.subgroupSize};
  Type element = type;
  if (auto vector = dyn_cast<VectorType>(type)) {
    llvm::append_range(shape, vector.getShape());
    element = vector.getElementType();
  } else {
    shape.push_back(1);
  }
  auto space = builder.getI64IntegerAttr(workgroupSpace);
  Value buffer = buffers.make(
      user, builder, MemRefType::get(shape, element, AffineMap(), space),
      IntegerAttr());
  Value subgroup = gpu::SubgroupIdOp::create(builder, loc, builder.getIndexType(),
                                             /*upper_bound=*/IntegerAttr());
  SmallVector<OpFoldResult> offsets(shape.size(), builder.getIndexAttr(0)),
      strides(shape.size(), builder.getIndexAttr(1)), sizes;
  offsets[0] = subgroup;
  for (int64_t size : shape)
    sizes.push_back(builder.getIndexAttr(size));
  sizes[0] = builder.getIndexAttr(1);
  SmallVector<int64_t> slot(ArrayRef<int64_t>(shape).drop_front());
  auto slotType = cast<MemRefType>(memref::SubViewOp::inferRankReducedResultType(
      slot, cast<MemRefType>(buffer.getType()), offsets, sizes, strides));
  return memref::SubViewOp::create(builder, loc, slotType, buffer, offsets,
                                   sizes, strides);
}

/// The lanes of a subgroup see what lane 0 has written.
void synchronizeSubgroup(Location loc, OpBuilder &builder, const GpuChip &chip) {
  if (chip.amd)
    LLVM::FenceOp::create(builder, loc, LLVM::AtomicOrdering::acq_rel,
                          "wavefront");
  else
    NVVM::SyncWarpOp::create(
        builder, loc, arith::ConstantIntOp::create(builder, loc, -1, 32));
}

template <typename Derived>
struct ExpandPass : PassWrapper<Derived, OperationPass<>> {
  ExpandPass() = default;
  ExpandPass(const ExpandPass &other) : PassWrapper<Derived, OperationPass<>>(other) {}

  template <typename T>
  using Option = typename Pass::template Option<T, gpulower::QuietParser<T>>;

  LogicalResult initializeOptions(StringRef text, gpulower::Refuse refuse) final {
    return Pass::initializeOptions(text, gpulower::InWords{refuse});
  }

  Option<bool> amd{*this, "amd", llvm::cl::desc("The chip is AMD's, not NVIDIA's"),
                   llvm::cl::init(false)};
  Pass::Option<std::string> chipset{*this, "chipset", llvm::cl::desc("AMD's chip, such as gfx942"),
                                    llvm::cl::init("")};
  Option<unsigned> subgroupSize{*this, "subgroup-size", llvm::cl::desc("Lanes in a subgroup"),
                                llvm::cl::init(32)};
  Option<unsigned> capability{*this, "capability",
                              llvm::cl::desc("NVIDIA's compute capability, such as 90; 0: not known"),
                              llvm::cl::init(0)};
  Option<bool> redux{*this, "redux", llvm::cl::desc("The chip has redux.sync"),
                     llvm::cl::init(false)};
  Option<bool> clusters{*this, "clusters",
                        llvm::cl::desc("The chip has clusters of workgroups"),
                        llvm::cl::init(false)};
  Option<bool> barePointers{*this, "bare-pointers", llvm::cl::desc("Memrefs are passed as pointers alone"),
                            llvm::cl::init(false)};

  bool canScheduleOn(RegisteredOperationName name) const override {
    return name.getStringRef() == "gpu.module";
  }

  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<affine::AffineDialect, amdgpu::AMDGPUDialect, arith::ArithDialect,
                    cf::ControlFlowDialect, gpu::GPUDialect, LLVM::LLVMDialect,
                    math::MathDialect, memref::MemRefDialect, NVVM::NVVMDialect,
                    ROCDL::ROCDLDialect, scf::SCFDialect, ub::UBDialect,
                    vector::VectorDialect>();
  }

  FailureOr<GpuChip> chip() {
    GpuChip chip;
    chip.amd = amd;
    chip.subgroupSize = subgroupSize;
    chip.capability = capability;
    chip.redux = redux;
    chip.clusters = clusters;
    chip.barePointers = barePointers;
    if (chip.amd) {
      FailureOr<amdgpu::Chipset> parsed = amdgpu::Chipset::parse(chipset);
      if (failed(parsed)) {
        this->getOperation()->emitError() << "chipset '" << chipset << "' is none of AMD's";
        return failure();
      }
      chip.chipset = *parsed;
    }
    if (!llvm::is_contained({32u, 64u}, chip.subgroupSize)) {
      this->getOperation()->emitError() << "a subgroup has 32 or 64 lanes";
      return failure();
    }
    return chip;
  }
};

/// While control flow is still structured.
struct ExpandGpu final : ExpandPass<ExpandGpu> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ExpandGpu)

  StringRef getName() const final { return "ExpandGpu"; }
  StringRef getArgument() const final { return "gpulower-expand-gpu"; }
  StringRef getDescription() const final {
    return "Expand what MLIR's conversions to NVVM and ROCDL do not take, while control flow is structured";
  }

  void runOnOperation() final {
    Operation *root = getOperation();
    MLIRContext *context = &getContext();
    FailureOr<GpuChip> chip = this->chip();
    if (failed(chip) || failed(refuseUnsupported(root, *chip)) || failed(refuseTypes(root, *chip)))
      return signalPassFailure();
    placeAssertions(root);
    replaceAddressSpaces(root, *chip);
    foldKnownSizes(root);
    countKnownIterations(root);
    markCounters(root);
    WorkgroupBuffers buffers(root);
    if (failed(placeAllocations(root, *chip, buffers)))
      return signalPassFailure();
    if (chip->amd)
      expandMatrices(root, *chip);
    else
      passTensorMapsByAddress(root);

    // What lane 0 writes next must not overtake what others still read of the last time.
    root->walk([&](gpu::WarpExecuteOnLane0Op op) {
      OpBuilder builder(op);
      synchronizeSubgroup(op.getLoc(), builder, *chip);
    });

    RewritePatternSet patterns(context);
    populateAtomicPatterns(patterns);
    populateCopyPatterns(patterns);
    populateWholeSubgroupReductions(patterns, *chip);
    populateTransferPatterns(patterns);
    populateMatrixPatterns(patterns);
    populateContractionPatterns(patterns);
    vector::populateVectorMaskLoweringPatternsForSideEffectingOps(patterns);
    vector::populateVectorMaskOpLoweringPatterns(patterns);
    vector::populateVectorMultiReductionLoweringPatterns(
        patterns, vector::VectorMultiReductionLowering::InnerReduction);
    vector::populateVectorScanLoweringPatterns(patterns);
    vector::WarpExecuteOnLane0LoweringOptions onLane0;
    onLane0.warpAllocationFn = [&](Location loc, OpBuilder &builder,
                                   gpu::WarpExecuteOnLane0Op op, Type type) {
      return subgroupSlot(loc, builder, op, type, *chip, buffers);
    };
    onLane0.warpSyncronizationFn = [&](Location loc, OpBuilder &builder,
                                       gpu::WarpExecuteOnLane0Op) {
      synchronizeSubgroup(loc, builder, *chip);
    };
    vector::populateWarpExecuteOnLane0OpToScfForPattern(patterns, onLane0);
    if (failed(rewrite(root, std::move(patterns))) || failed(expandSmallFloats(root)) ||
        failed(expandSubgroupReductions(root, *chip)))
      return signalPassFailure();

    RewritePatternSet identity(context);
    populateGpuSubgroupIdPatterns(identity);
    populateSubgroupPatterns(identity, *chip);
    if (failed(rewrite(root, std::move(identity))))
      return signalPassFailure();
    selectValues(root);
  }
};

/// Once control flow is unstructured: what expands to several blocks, and what that leaves behind.
struct ExpandGpuBlocks final : ExpandPass<ExpandGpuBlocks> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ExpandGpuBlocks)

  StringRef getName() const final { return "ExpandGpuBlocks"; }
  StringRef getArgument() const final { return "gpulower-expand-gpu-blocks"; }
  StringRef getDescription() const final {
    return "Expand workgroup reductions, assertions and shuffles, once control flow is unstructured";
  }

  void runOnOperation() final {
    FailureOr<GpuChip> chip = this->chip();
    if (failed(chip))
      return signalPassFailure();
    keepCountersInRange(getOperation());
    RewritePatternSet patterns(&getContext());
    populateWorkgroupReductions(patterns, *chip);
    populateAtomicPatterns(patterns);
    populateBroadcastPatterns(patterns, *chip);
    if (chip->amd)
      patterns.add<AssertOnAmd>(&getContext());
    // Reductions of workgroups shuffle among fewer lanes than a subgroup may have. Scaled conversions have become others.
    if (failed(expandSmallFloats(getOperation())) ||
        failed(expandShuffles(getOperation(), *chip, chip->subgroupSize)) ||
        failed(rewrite(getOperation(), std::move(patterns))) ||
        failed(expandShuffles(getOperation(), *chip, lanesOfReduction)))
      return signalPassFailure();
    // Reductions ask for sizes, and bring workgroup attributions with names for their address spaces.
    foldKnownSizes(getOperation());
    replaceAddressSpaces(getOperation(), *chip);
  }
};

/// A conversion to the `llvm` dialect, with indices of as many bits as its option says.
template <typename Derived>
struct LowerWithIndices : PassWrapper<Derived, OperationPass<>> {
  LowerWithIndices() = default;
  LowerWithIndices(const LowerWithIndices &other) : PassWrapper<Derived, OperationPass<>>(other) {}

  bool canScheduleOn(RegisteredOperationName name) const final {
    return name.getStringRef() == "gpu.module";
  }

  void runOnOperation() final {
    Operation *root = this->getOperation();
    if (indexBitwidth != 32 && indexBitwidth != 64) {
      root->emitError() << this->getArgument() << ": index-bitwidth is " << indexBitwidth.getValue()
                        << "; it is 32 or 64";
      return this->signalPassFailure();
    }
    LowerToLLVMOptions options(&this->getContext());
    options.overrideIndexBitwidth(indexBitwidth);
    LLVMTypeConverter converter(&this->getContext(), options);
    if (failed(static_cast<Derived *>(this)->lower(root, converter)))
      this->signalPassFailure();
  }

  LogicalResult initializeOptions(StringRef text, gpulower::Refuse refuse) final {
    return failure(failed(Pass::initializeOptions(text, gpulower::InWords{refuse})) ||
                   failed(gpulower::checkRange("index-bitwidth", "index-bitwidth", indexBitwidth, refuse)));
  }

  Pass::Option<unsigned, gpulower::QuietParser<unsigned>> indexBitwidth{
      *this, "index-bitwidth", llvm::cl::desc("Bits of index"), llvm::cl::init(64)};
};

/// Device functions of the `func` dialect. The conversions of `gpu` would make wrappers for a C caller of them, and
/// `convert-to-llvm` knows indices of 64 bits alone.
struct LowerDeviceFunctions final : LowerWithIndices<LowerDeviceFunctions> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(LowerDeviceFunctions)

  StringRef getName() const final { return "LowerDeviceFunctions"; }
  StringRef getArgument() const final { return "gpulower-func-to-llvm"; }
  StringRef getDescription() const final {
    return "Lower device functions of the func dialect, and calls of them";
  }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<LLVM::LLVMDialect>();
  }

  static LogicalResult lower(Operation *root, LLVMTypeConverter &converter) {
    // As convert-gpu-to-nvvm has it, which takes the bodies.
    converter.addConversion([](gpu::MMAMatrixType type) -> Type { return convertMMAToLLVMType(type); });
    RewritePatternSet patterns(root->getContext());
    populateFuncToLLVMConversionPatterns(converter, patterns);
    ConversionTarget target(*root->getContext());
    target.addLegalDialect<LLVM::LLVMDialect>();
    target.addIllegalDialect<func::FuncDialect>();
    target.markUnknownOpDynamicallyLegal([](Operation *) { return true; });
    return applyPartialConversion(root, target, std::move(patterns));
  }
};

/// The `vector` dialect, as `convert-vector-to-llvm` does it, which in MLIR 22 has indices of 64 bits whatever the others have:
/// a memref or an index that it takes was then of no type that they know.
struct LowerVectors final : LowerWithIndices<LowerVectors> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(LowerVectors)

  StringRef getName() const final { return "LowerVectors"; }
  StringRef getArgument() const final { return "gpulower-vector-to-llvm"; }
  StringRef getDescription() const final { return "Lower operations of the vector dialect"; }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<LLVM::LLVMDialect, arith::ArithDialect, memref::MemRefDialect, ub::UBDialect>();
  }

  static LogicalResult lower(Operation *root, LLVMTypeConverter &converter) {
    MLIRContext *context = root->getContext();
    // What MLIR's pass has by default.
    constexpr bool reassociates = false, narrowLanes = true, aligned = false;
    RewritePatternSet simpler(context);
    vector::populateVectorToVectorCanonicalizationPatterns(simpler);
    vector::populateVectorBitCastLoweringPatterns(simpler);
    vector::populateVectorBroadcastLoweringPatterns(simpler);
    vector::populateVectorContractLoweringPatterns(simpler, vector::VectorContractLowering::Dot);
    vector::populateVectorMaskOpLoweringPatterns(simpler);
    vector::populateVectorShapeCastLoweringPatterns(simpler);
    vector::populateVectorInterleaveLoweringPatterns(simpler);
    vector::populateVectorTransposeLoweringPatterns(simpler, vector::VectorTransposeLowering::EltWise);
    vector::populateVectorTransferLoweringPatterns(simpler, /*maxTransferRank=*/1);
    vector::populateVectorMaskMaterializationPatterns(simpler, narrowLanes);
    vector::populateVectorInsertExtractStridedSliceTransforms(simpler);
    vector::populateVectorStepLoweringPatterns(simpler);
    vector::populateVectorRankReducingFMAPattern(simpler);
    vector::populateVectorGatherLoweringPatterns(simpler);
    (void)applyPatternsGreedily(root, std::move(simpler));
    RewritePatternSet patterns(context);
    vector::populateVectorTransferLoweringPatterns(patterns);
    populateVectorToLLVMConversionPatterns(converter, patterns, reassociates, narrowLanes, aligned);
    LLVMConversionTarget target(*context);
    target.addLegalDialect<arith::ArithDialect, memref::MemRefDialect>();
    target.addLegalOp<UnrealizedConversionCastOp>();
    return applyPartialConversion(root, target, std::move(patterns));
  }
};

struct RoundDoublesToOdd final : PassWrapper<RoundDoublesToOdd, OperationPass<>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(RoundDoublesToOdd)

  StringRef getName() const final { return "RoundDoublesToOdd"; }
  StringRef getArgument() const final { return "gpulower-round-doubles-to-odd"; }
  StringRef getDescription() const final {
    return "Narrow f64 to 8-bit floats by way of f32 without rounding to the nearest twice";
  }
  bool canScheduleOn(RegisteredOperationName name) const final {
    return name.getStringRef() == "gpu.module";
  }
  void runOnOperation() final {
    if (failed(roundDoublesToOdd(getOperation())))
      signalPassFailure();
  }
};

struct InlineFunctions final : PassWrapper<InlineFunctions, OperationPass<>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(InlineFunctions)

  StringRef getName() const final { return "InlineFunctions"; }
  StringRef getArgument() const final { return "gpulower-inline-functions"; }
  StringRef getDescription() const final {
    return "Inline functions that cannot be lowered on their own into the kernels that call them";
  }
  bool canScheduleOn(RegisteredOperationName name) const final {
    return name.getStringRef() == "gpu.module";
  }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<scf::SCFDialect>();
  }
  void runOnOperation() final {
    placeAssertions(getOperation());
    if (failed(inlineFunctions(getOperation())))
      signalPassFailure();
  }
};

} // namespace

/// Registers the passes with MLIR. Call once.
extern "C" void gpulowerRegisterPatternPasses() {
  PassRegistration<InlineFunctions>();
  PassRegistration<RoundDoublesToOdd>();
  PassRegistration<ExpandGpu>();
  PassRegistration<ExpandGpuBlocks>();
  PassRegistration<LowerDeviceFunctions>();
  PassRegistration<LowerVectors>();
}
