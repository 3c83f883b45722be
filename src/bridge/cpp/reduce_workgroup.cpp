// Reductions over a workgroup (`gpu.all_reduce`). MLIR 22's expansion has the code twice, for subgroups that are full and for
// those that are not. ptxas makes much of those that are not: where the mask of a shuffle is computed, it provides for each way
// in which a warp may have parted. And lanes that do not have the whole sum write it to the same place as the one that has.

#include "patterns.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/GPU/Utils/GPUUtils.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace gpulower {
namespace {

/// A reduction over workgroups of whole subgroups, a power of two of them: each subgroup on its own, then every subgroup
/// joins the results of all, and none waits for another to do so. It takes one barrier.
struct ReduceWholeSubgroups final : OpRewritePattern<gpu::AllReduceOp> {
  ReduceWholeSubgroups(MLIRContext *context, unsigned subgroupSize)
      : OpRewritePattern(context), subgroupSize(subgroupSize) {}

  LogicalResult matchAndRewrite(gpu::AllReduceOp op, PatternRewriter &rewriter) const override {
    auto function = op->getParentOfType<gpu::GPUFuncOp>();
    std::optional<int64_t> items = knownBlockItems(op);
    Type type = op.getType();
    // A region may compute anything: then the lanes need not agree to the last bit.
    if (!function || !items || !op.getOp() || !op.getUniform() || !type.isIntOrFloat() ||
        !llvm::is_contained({16u, 32u, 64u}, type.getIntOrFloatBitWidth()))
      return failure();
    int64_t subgroups = *items / subgroupSize;
    if (*items % subgroupSize != 0 || !llvm::isPowerOf2_64(subgroups) || subgroups > subgroupSize)
      return failure();

    Location loc = op.getLoc();
    auto index = [&](int64_t value) {
      return arith::ConstantIndexOp::create(rewriter, loc, value).getResult();
    };
    Value value = gpu::SubgroupReduceOp::create(rewriter, loc, op.getValue(), *op.getOp(),
                                                /*uniform=*/true);
    if (subgroups == 1) {
      rewriter.replaceOp(op, value);
      return success();
    }
    ArrayRef<int32_t> sizes = *function.getKnownBlockSize();
    auto id = [&](gpu::Dimension dimension) {
      return gpu::ThreadIdOp::create(rewriter, loc, rewriter.getIndexType(), dimension, IntegerAttr())
          .getResult();
    };
    auto add = [&](Value left, Value right) {
      return arith::AddIOp::create(rewriter, loc, left, right).getResult();
    };
    auto times = [&](Value left, int64_t right) {
      return arith::MulIOp::create(rewriter, loc, left, index(right)).getResult();
    };
    // One by one: in which order a compiler evaluates arguments, and with it that of the operations, depends on the processor.
    Value plane = times(id(gpu::Dimension::z), sizes[1]);
    Value row = id(gpu::Dimension::y);
    Value rows = times(add(row, plane), sizes[0]);
    Value item = add(id(gpu::Dimension::x), rows);
    Value lane = arith::RemUIOp::create(rewriter, loc, item, index(subgroupSize));
    Value subgroup = arith::DivUIOp::create(rewriter, loc, item, index(subgroupSize));

    auto bufferType = MemRefType::get({subgroups}, type, AffineMap(), rewriter.getI64IntegerAttr(workgroupSpace));
    Value buffer;
    rewriter.modifyOpInPlace(function, [&] { buffer = function.addWorkgroupAttribution(bufferType, loc); });
    Value first = arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::eq, lane, index(0));
    scf::IfOp::create(rewriter, loc, first, [&](OpBuilder &inner, Location) {
      memref::StoreOp::create(inner, loc, value, buffer, subgroup);
      scf::YieldOp::create(inner, loc);
    });
    gpu::BarrierOp::create(rewriter, loc);
    Value slot = arith::RemUIOp::create(rewriter, loc, item, index(subgroups));
    Value partial = memref::LoadOp::create(rewriter, loc, buffer, slot);
    rewriter.replaceOp(op, gpu::SubgroupReduceOp::create(rewriter, loc, partial, *op.getOp(), /*uniform=*/true,
                                                         /*clusterSize=*/static_cast<uint32_t>(subgroups))
                               .getResult());
    return success();
  }

  unsigned subgroupSize;
};

constexpr int64_t lanes = lanesOfReduction;

/// Whether an operation on a value twice is that value, so that a lane without a partner may take itself for one.
bool isIdempotent(gpu::AllReduceOperation operation) {
  return operation != gpu::AllReduceOperation::ADD && operation != gpu::AllReduceOperation::MUL &&
         operation != gpu::AllReduceOperation::XOR;
}

/// A reduction over a workgroup of any size: every 32 lanes on their own, then the first 32 join the results, and the first of
/// these writes it for all.
struct ReduceWorkgroup final : OpRewritePattern<gpu::AllReduceOp> {
  ReduceWorkgroup(MLIRContext *context, const GpuChip &chip) : OpRewritePattern(context), chip(chip) {}

  LogicalResult matchAndRewrite(gpu::AllReduceOp op, PatternRewriter &rewriter) const override {
    auto function = op->getParentOfType<gpu::GPUFuncOp>();
    // What is made of words needs a type that has words.
    if (!function || !op.getUniform() || !op.getType().isIntOrFloat())
      return failure();
    Expansion{chip, op, function, rewriter, op.getLoc()}.run();
    return success();
  }

private:
  struct Expansion {
    const GpuChip &chip;
    gpu::AllReduceOp op;
    gpu::GPUFuncOp function;
    PatternRewriter &rewriter;
    Location loc;

    void run() {
      // One by one: in which order a compiler evaluates arguments, and with it that of the operations, depends on the processor.
      Value sizeX = number<gpu::BlockDimOp>(gpu::Dimension::x), sizeY = number<gpu::BlockDimOp>(gpu::Dimension::y);
      Value sizeZ = number<gpu::BlockDimOp>(gpu::Dimension::z);
      Value idX = number<gpu::ThreadIdOp>(gpu::Dimension::x), idY = number<gpu::ThreadIdOp>(gpu::Dimension::y);
      Value idZ = number<gpu::ThreadIdOp>(gpu::Dimension::z);
      Value planes = create<arith::MulIOp>(idZ, sizeY);
      Value rows = create<arith::MulIOp>(create<arith::AddIOp>(planes, idY).getResult(), sizeX);
      Value item = create<arith::AddIOp>(rows, idX);
      Value plane = create<arith::MulIOp>(sizeX, sizeY);
      Value items = create<arith::MulIOp>(plane, sizeZ);
      std::optional<int64_t> known = knownBlockItems(op);
      if (known)
        items = constant(*known);

      Value lane = create<arith::AndIOp>(item, constant(lanes - 1));
      Value others = create<arith::SubIOp>(items, create<arith::SubIOp>(item, lane).getResult());
      bool areFull = known && *known % lanes == 0;
      Value width = areFull ? Value() : create<arith::MinUIOp>(others, constant(lanes)).getResult();
      Value ofLanes = reduce(op.getValue(), lane, width);

      auto bufferType = MemRefType::get({lanes}, op.getType(), AffineMap(), rewriter.getI64IntegerAttr(workgroupSpace));
      Value buffer;
      rewriter.modifyOpInPlace(function, [&] { buffer = function.addWorkgroupAttribution(bufferType, loc); });
      Value zero = arith::ConstantIndexOp::create(rewriter, loc, 0);
      Value isFirst = equals(lane, 0);
      onlyIf(isFirst, [&] {
        Value slot = index(divided(item));
        memref::StoreOp::create(rewriter, loc, ofLanes, buffer, slot);
      });
      gpu::BarrierOp::create(rewriter, loc);
      Value rounded = create<arith::AddIOp>(items, constant(lanes - 1));
      Value groups = divided(rounded);
      onlyIf(arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::ult, item, constant(lanes)), [&] {
        // All lanes take part, but only those read for which there is something: what the first one writes is read by no other.
        Value isGroup = arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::ult, item, groups);
        Value part = valueIf(isGroup, [&] { return memref::LoadOp::create(rewriter, loc, buffer, index(item)).getResult(); }, ofLanes);
        Value whole = reduce(part, item, groups);
        onlyIf(equals(item, 0), [&] { memref::StoreOp::create(rewriter, loc, whole, buffer, zero); });
      });
      gpu::BarrierOp::create(rewriter, loc);
      rewriter.replaceOpWithNewOp<memref::LoadOp>(op, buffer, zero);
    }

    template <typename Op> Op create(Value left, Value right) { return Op::create(rewriter, loc, left, right); }

    Value constant(int64_t value) { return arith::ConstantIntOp::create(rewriter, loc, value, 32); }

    Value index(Value value) {
      return arith::IndexCastUIOp::create(rewriter, loc, rewriter.getIndexType(), value);
    }

    Value divided(Value value) { return create<arith::ShRUIOp>(value, constant(llvm::Log2_64(lanes))); }

    template <typename Op> Value number(gpu::Dimension dimension) {
      Value value = Op::create(rewriter, loc, rewriter.getIndexType(), dimension, IntegerAttr());
      return arith::IndexCastOp::create(rewriter, loc, rewriter.getI32Type(), value);
    }

    Value equals(Value value, int64_t other) {
      return arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::eq, value, constant(other));
    }

    /// What the first of `width` lanes has in the end is the whole: in each step those whose numbers differ in one bit exchange
    /// what they have. Without a width it is all lanes.
    Value reduce(Value value, Value lane, Value width) {
      for (int64_t step = 1; step < lanes; step *= 2) {
        auto [other, isThere] = exchange(value, lane, width, step);
        value = op.getOp() ? join(value, other, isThere) : joinByRegion(value, other, isThere);
      }
      return value;
    }

    /// The value of the lane whose number differs by `step`, and whether there is one. Every lane of the warp that exists is here.
    std::pair<Value, Value> exchange(Value value, Value lane, Value width, int64_t step) {
      Value distance = constant(step);
      if (chip.amd) {
        auto shuffle = gpu::ShuffleOp::create(rewriter, loc, value, distance, constant(lanes), gpu::ShuffleMode::XOR);
        Value partner = create<arith::XOrIOp>(lane, distance);
        Value isThere = width ? arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::ult, partner, width).getResult() : Value();
        return {shuffle.getShuffleResult(), isThere};
      }
      Value last = width ? create<arith::SubIOp>(width, constant(1)).getResult() : constant(lanes - 1);
      Type word = rewriter.getI32Type();
      auto pair = LLVM::LLVMStructType::getLiteral(rewriter.getContext(), {word, rewriter.getI1Type()});
      Value isThere;
      Value other = onWords(rewriter, loc, value, [&](Value piece) -> Value {
        Value both = NVVM::ShflOp::create(rewriter, loc, pair, constant(-1), piece, distance, last, NVVM::ShflKind::bfly,
                                          rewriter.getUnitAttr());
        isThere = LLVM::ExtractValueOp::create(rewriter, loc, both, 1);
        return LLVM::ExtractValueOp::create(rewriter, loc, both, 0);
      });
      return {other, width ? isThere : Value()};
    }

    Value join(Value left, Value right, Value isThere) {
      Value both = vector::makeArithReduction(rewriter, loc, gpu::convertReductionKind(*op.getOp()), left, right);
      // On NVIDIA a lane without a partner has got its own value.
      if (!isThere || (!chip.amd && isIdempotent(*op.getOp())))
        return both;
      return arith::SelectOp::create(rewriter, loc, isThere, both, left);
    }

    /// What a region computes of two values, where there are two.
    Value joinByRegion(Value left, Value right, Value isThere) {
      Block *before = rewriter.getInsertionBlock();
      Block *behind = rewriter.splitBlock(before, rewriter.getInsertionPoint());
      Value result = behind->addArgument(left.getType(), loc);
      IRMapping mapping;
      mapping.map(op.getBody().getArguments(), ValueRange{left, right});
      rewriter.cloneRegionBefore(op.getBody(), *behind->getParent(), behind->getIterator(), mapping);
      Block *first = before->getNextNode();
      for (Block *block = first; block != behind; block = block->getNextNode())
        if (auto yield = dyn_cast<gpu::YieldOp>(block->getTerminator())) {
          rewriter.setInsertionPoint(yield);
          rewriter.replaceOpWithNewOp<cf::BranchOp>(yield, behind, ValueRange{yield->getOperand(0)});
        }
      rewriter.setInsertionPointToEnd(before);
      if (isThere)
        cf::CondBranchOp::create(rewriter, loc, isThere, first, ValueRange{}, behind, ValueRange{left});
      else
        cf::BranchOp::create(rewriter, loc, first);
      rewriter.setInsertionPointToStart(behind);
      return result;
    }

    void onlyIf(Value condition, function_ref<void()> make) {
      auto [then, behind] = branch(condition, {});
      rewriter.setInsertionPointToEnd(then);
      make();
      cf::BranchOp::create(rewriter, loc, behind);
      rewriter.setInsertionPointToStart(behind);
    }

    Value valueIf(Value condition, function_ref<Value()> make, Value otherwise) {
      auto [then, behind] = branch(condition, otherwise);
      rewriter.setInsertionPointToEnd(then);
      Value value = make();
      cf::BranchOp::create(rewriter, loc, behind, ValueRange{value});
      rewriter.setInsertionPointToStart(behind);
      return behind->getArgument(0);
    }

    /// A block for where a condition holds, and the one behind it, which takes `otherwise` where it does not hold.
    std::pair<Block *, Block *> branch(Value condition, ValueRange otherwise) {
      Block *before = rewriter.getInsertionBlock();
      Block *then = rewriter.splitBlock(before, rewriter.getInsertionPoint());
      Block *behind = rewriter.splitBlock(then, then->begin());
      for (Value value : otherwise)
        behind->addArgument(value.getType(), loc);
      rewriter.setInsertionPointToEnd(before);
      cf::CondBranchOp::create(rewriter, loc, condition, then, ValueRange{}, behind, otherwise);
      return {then, behind};
    }
  };

  GpuChip chip;
};

} // namespace

void populateWholeSubgroupReductions(RewritePatternSet &patterns, const GpuChip &chip) {
  if (!chip.amd)
    patterns.add<ReduceWholeSubgroups>(patterns.getContext(), chip.subgroupSize);
}

void populateWorkgroupReductions(RewritePatternSet &patterns, const GpuChip &chip) {
  patterns.add<ReduceWorkgroup>(patterns.getContext(), chip);
}

} // namespace gpulower
