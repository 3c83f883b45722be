// Memory: address spaces, workgroup buffers, atomics and copies that MLIR's conversions leave out or get wrong.

#include "patterns.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Complex/IR/Complex.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/MemRef/Utils/MemRefUtils.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace gpulower {

void replaceAddressSpaces(Operation *root, const GpuChip &chip) {
  MLIRContext *context = root->getContext();
  auto number = [&chip, context](Attribute space) -> std::optional<Attribute> {
    auto named = dyn_cast_or_null<gpu::AddressSpaceAttr>(space);
    if (!named)
      return std::nullopt;
    int64_t value = 0;
    switch (named.getValue()) {
    case gpu::AddressSpace::Global:
      value = 1;
      break;
    case gpu::AddressSpace::Workgroup:
      value = workgroupSpace;
      break;
    case gpu::AddressSpace::Private:
      value = chip.privateSpace();
      break;
    }
    // Zero is what a memref without a space has.
    return value == 0 ? Attribute()
                      : Attribute(IntegerAttr::get(
                            IntegerType::get(context, 64), value));
  };
  AttrTypeReplacer replacer;
  replacer.addReplacement([&](MemRefType type) -> std::optional<Type> {
    std::optional<Attribute> space = number(type.getMemorySpace());
    if (!space)
      return std::nullopt;
    return MemRefType::get(type.getShape(), type.getElementType(),
                           type.getLayout(), *space);
  });
  replacer.addReplacement([&](UnrankedMemRefType type) -> std::optional<Type> {
    std::optional<Attribute> space = number(type.getMemorySpace());
    if (!space)
      return std::nullopt;
    return UnrankedMemRefType::get(type.getElementType(), *space);
  });
  replacer.recursivelyReplaceElementsIn(root, /*replaceAttrs=*/true,
                                        /*replaceLocs=*/false,
                                        /*replaceTypes=*/true);
  // This one operation insists on the name; both types become the same descriptor in the end.
  root->walk([&](gpu::DynamicSharedMemoryOp shared) {
    OpBuilder builder(shared->getContext());
    builder.setInsertionPointAfter(shared);
    auto type = cast<MemRefType>(shared.getType());
    auto name = gpu::AddressSpaceAttr::get(context, gpu::AddressSpace::Workgroup);
    auto cast = UnrealizedConversionCastOp::create(builder, shared.getLoc(),
                                                   type, shared.getResult());
    shared.getResult().setType(MemRefType::get(
        type.getShape(), type.getElementType(), type.getLayout(), name));
    shared.getResult().replaceAllUsesExcept(cast.getResult(0), cast);
  });
}

static bool isWorkgroup(BaseMemRefType type) {
  auto space = dyn_cast_or_null<IntegerAttr>(type.getMemorySpace());
  return space && space.getInt() == workgroupSpace;
}

LogicalResult refuseUnsupported(Operation *root, const GpuChip &chip) {
  bool refused = false;
  auto refuse = [&](Operation *operation, const Twine &reason) {
    operation->emitError() << "cannot lower " << operation->getName() << ": "
                           << reason;
    refused = true;
  };
  auto checkLayout = [&](Operation *operation, Type type) {
    auto memref = dyn_cast<MemRefType>(type);
    SmallVector<int64_t> strides;
    int64_t offset;
    if (memref && failed(memref.getStridesAndOffset(strides, offset)))
      refuse(operation, llvm::formatv("the layout of {0} is not strided; use "
                                      "strided<...> or an affine map that is",
                                      memref)
                            .str());
  };
  root->walk([&](Operation *operation) {
    StringRef name = operation->getName().getStringRef();
    if (auto reduce = dyn_cast<gpu::AllReduceOp>(operation)) {
      if (!reduce.getUniform())
        refuse(operation, "only reductions that all work items of the "
                          "workgroup reach together can be lowered; say "
                          "`uniform` if this one is");
    } else if (auto rotate = dyn_cast<gpu::RotateOp>(operation)) {
      if (rotate.getWidth() > chip.subgroupSize)
        refuse(operation, llvm::formatv("its width of {0} is more than the {1} "
                                        "lanes of a subgroup",
                                        rotate.getWidth(), chip.subgroupSize)
                              .str());
    } else if (auto shuffle = dyn_cast<gpu::ShuffleOp>(operation)) {
      APInt width;
      if (matchPattern(shuffle.getWidth(), m_ConstantInt(&width)) &&
          (width.isZero() || width.ugt(chip.subgroupSize)))
        refuse(operation, llvm::formatv("its width of {0} is not between 1 and the {1} "
                                        "lanes of a subgroup",
                                        width.getSExtValue(), chip.subgroupSize)
                              .str());
    } else if (isa<vector::PrintOp>(operation)) {
      refuse(operation, "a device cannot call the host's runtime; print with "
                        "gpu.printf");
    } else if (isa<complex::BitcastOp>(operation)) {
      refuse(operation, "take the parts with complex.re and complex.im, and "
                        "arith.bitcast them");
    } else if (name.starts_with("gpu.cluster_") && !chip.clusters) {
      refuse(operation, chip.amd ? "AMD's chips have no clusters of workgroups"
                                 : "clusters of workgroups need sm_90 or later");
    } else if (name.starts_with("gpu.subgroup_mma_")) {
      std::string reason = chip.amd ? reasonAgainstMatrixOnAmd(operation, chip) : reasonAgainstMatrix(operation, chip);
      if (!reason.empty())
        refuse(operation, reason);
    }
    if (auto function = dyn_cast<FunctionOpInterface>(operation)) {
      for (Type type : function.getArgumentTypes())
        checkLayout(operation, type);
      for (Type type : function.getResultTypes())
        checkLayout(operation, type);
    }
    for (Type type : operation->getResultTypes())
      checkLayout(operation, type);
  });
  return failure(refused);
}

Value WorkgroupBuffers::make(Operation *user, OpBuilder &builder, MemRefType type,
                             IntegerAttr alignment) {
  auto module = cast<gpu::GPUModuleOp>(symbols.getOp());
  std::string name;
  do
    name = ("__gpulower_workgroup_" + Twine(next++)).str();
  while (symbols.lookup(name));
  OpBuilder atTop = OpBuilder::atBlockBegin(module.getBody());
  auto global = memref::GlobalOp::create(
      atTop, user->getLoc(), name, builder.getStringAttr("private"), type,
      /*initial_value=*/builder.getUnitAttr(), /*constant=*/false, alignment);
  symbols.insert(global);
  return memref::GetGlobalOp::create(builder, user->getLoc(), type, name);
}

LogicalResult placeAllocations(Operation *root, const GpuChip &chip,
                               WorkgroupBuffers &buffers) {
  bool refused = false;
  auto refuse = [&](Operation *operation, const Twine &reason) {
    operation->emitError() << "cannot lower " << operation->getName() << ": "
                           << reason;
    refused = true;
  };
  SmallVector<Operation *> allocations, releases;
  root->walk([&](Operation *operation) {
    if (isa<memref::AllocOp, memref::AllocaOp>(operation))
      allocations.push_back(operation);
    else if (isa<memref::DeallocOp>(operation))
      releases.push_back(operation);
  });
  for (Operation *release : releases)
    if (isWorkgroup(cast<BaseMemRefType>(release->getOperand(0).getType())))
      release->erase();
  for (Operation *allocation : allocations) {
    auto type = cast<MemRefType>(allocation->getResult(0).getType());
    if (isWorkgroup(type)) {
      if (!type.hasStaticShape() || !type.getLayout().isIdentity()) {
        refuse(allocation, "a workgroup buffer has to have a static shape; "
                           "take memory whose size the launch decides from "
                           "gpu.dynamic_shared_memory");
        continue;
      }
      OpBuilder builder(allocation);
      Value buffer = buffers.make(
          allocation, builder, type,
          allocation->getAttrOfType<IntegerAttr>("alignment"));
      allocation->getResult(0).replaceAllUsesWith(buffer);
      allocation->erase();
    } else if (chip.amd && isa<memref::AllocOp>(allocation)) {
      if (type.getMemorySpace())
        refuse(allocation, "the heap has generic addresses; leave out the memory "
                           "space, or allocate private memory by memref.alloca");
    } else if (chip.amd && !type.hasStaticShape()) {
      refuse(allocation, "private memory of dynamic size cannot be allocated "
                         "on AMD's chips; give the largest size as a static "
                         "shape");
    }
  }
  return failure(refused);
}

namespace {

/// A product has no atomic instruction: compare and swap until it holds.
struct AtomicProduct final : OpRewritePattern<memref::AtomicRMWOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(memref::AtomicRMWOp op,
                                PatternRewriter &rewriter) const override {
    bool isFloat = op.getKind() == arith::AtomicRMWKind::mulf;
    if (!isFloat && op.getKind() != arith::AtomicRMWKind::muli)
      return failure();
    Location loc = op.getLoc();
    auto loop = memref::GenericAtomicRMWOp::create(
        rewriter, loc, op.getMemref(), op.getIndices());
    OpBuilder::InsertionGuard guard(rewriter);
    Block &body = loop.getRegion().front();
    rewriter.setInsertionPointToEnd(&body);
    Value old = body.getArgument(0);
    Value product =
        isFloat
            ? arith::MulFOp::create(rewriter, loc, old, op.getValue()).getResult()
            : arith::MulIOp::create(rewriter, loc, old, op.getValue()).getResult();
    memref::AtomicYieldOp::create(rewriter, loc, product);
    rewriter.replaceOp(op, loop.getResult());
    return success();
  }
};

/// Compare-and-swap exists for integers alone: the loop works on the bits.
struct AtomicOnBits final : OpRewritePattern<memref::GenericAtomicRMWOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(memref::GenericAtomicRMWOp op,
                                PatternRewriter &rewriter) const override {
    auto element = dyn_cast<FloatType>(op.getResult().getType());
    if (!element)
      return failure();
    Location loc = op.getLoc();
    auto bits = rewriter.getIntegerType(element.getWidth());
    auto type = cast<MemRefType>(op.getMemref().getType());
    auto typeOfBits = MemRefType::get(type.getShape(), bits, type.getLayout(),
                                      type.getMemorySpace());
    // Both types become the same descriptor.
    Value memory = UnrealizedConversionCastOp::create(rewriter, loc, typeOfBits,
                                                      op.getMemref())
                       .getResult(0);
    auto loop = memref::GenericAtomicRMWOp::create(rewriter, loc, memory,
                                                   op.getIndices());
    {
      OpBuilder::InsertionGuard guard(rewriter);
      Block &body = loop.getRegion().front();
      rewriter.setInsertionPointToEnd(&body);
      Value old = arith::BitcastOp::create(rewriter, loc, element,
                                           body.getArgument(0));
      rewriter.mergeBlocks(&op.getRegion().front(), &body, old);
      Operation *yield = body.getTerminator();
      rewriter.setInsertionPoint(yield);
      Value result =
          arith::BitcastOp::create(rewriter, loc, bits, yield->getOperand(0));
      rewriter.modifyOpInPlace(yield, [&] { yield->setOperand(0, result); });
    }
    rewriter.setInsertionPointAfter(loop);
    rewriter.replaceOpWithNewOp<arith::BitcastOp>(op, element,
                                                  loop.getResult());
    return success();
  }
};

/// What is stored does not depend on what was there, perhaps because it was folded: an exchange. MLIR's lowering has no
/// value for a result from outside of the body.
struct AtomicExchange final : OpRewritePattern<memref::AtomicYieldOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(memref::AtomicYieldOp op,
                                PatternRewriter &rewriter) const override {
    auto loop = dyn_cast<memref::GenericAtomicRMWOp>(op->getParentOp());
    Value stored = op.getResult();
    if (!loop || loop.getRegion().isAncestor(stored.getParentRegion()))
      return failure();
    rewriter.setInsertionPoint(loop);
    auto exchange = memref::AtomicRMWOp::create(
        rewriter, loop.getLoc(), loop.getResult().getType(),
        arith::AtomicRMWKind::assign, stored, loop.getMemref(),
        loop.getIndices());
    // Its ordering and scope.
    exchange->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
    rewriter.replaceOp(loop, exchange);
    return success();
  }
};

/// MLIR lowers a copy to `llvm.memcpy` or, where that will not do, to a function of the host's runtime.
struct CopyInLoops final : OpRewritePattern<memref::CopyOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(memref::CopyOp op,
                                PatternRewriter &rewriter) const override {
    auto source = dyn_cast<MemRefType>(op.getSource().getType());
    auto target = dyn_cast<MemRefType>(op.getTarget().getType());
    if (!source || !target)
      return failure();
    // The condition of MemRefCopyOpLowering (mlir/lib/Conversion/MemRefToLLVM/MemRefToLLVM.cpp).
    auto contiguous = [](MemRefType type) {
      return type.getLayout().isIdentity() ||
             (type.hasStaticShape() && type.getNumElements() > 0 &&
              memref::isStaticShapeAndContiguousRowMajor(type));
    };
    if (contiguous(source) && contiguous(target))
      return failure();
    Location loc = op.getLoc();
    Value zero = arith::ConstantIndexOp::create(rewriter, loc, 0);
    Value one = arith::ConstantIndexOp::create(rewriter, loc, 1);
    SmallVector<Value> lower(source.getRank(), zero), upper,
        step(source.getRank(), one);
    for (int64_t i = 0; i < source.getRank(); ++i)
      upper.push_back(rewriter.createOrFold<memref::DimOp>(
          loc, source.isDynamicDim(i) ? op.getTarget() : op.getSource(), i));
    scf::buildLoopNest(
        rewriter, loc, lower, upper, step,
        [&](OpBuilder &builder, Location loc, ValueRange indices) {
          Value element =
              memref::LoadOp::create(builder, loc, op.getSource(), indices);
          memref::StoreOp::create(builder, loc, element, op.getTarget(),
                                  indices);
        });
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void populateExchangePatterns(RewritePatternSet &patterns) {
  patterns.add<AtomicExchange>(patterns.getContext());
}

void populateAtomicPatterns(RewritePatternSet &patterns) {
  populateExchangePatterns(patterns);
  patterns.add<AtomicProduct, AtomicOnBits>(patterns.getContext());
}

void populateCopyPatterns(RewritePatternSet &patterns) {
  patterns.add<CopyInLoops>(patterns.getContext());
}

} // namespace gpulower
