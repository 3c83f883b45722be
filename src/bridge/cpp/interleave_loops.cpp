// Several iterations of a loop at once, all loads of them first. A thread that waits for one load at a time cannot keep
// the memory busy; neither LLVM nor the PTX compiler moves a load over a store that may write what is loaded.

#include "interleave.h"
#include "option_range.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;
using namespace gpulower;

namespace {

/// The name that branches of the `llvm` dialect have for it; conversions carry it there from `scf.for`.
constexpr StringLiteral annotationName = "loop_annotation";

/// Writes a loop anew as an InterleavePlan allows.
class Interleaver {
public:
  Interleaver(scf::ForOp loop, const InterleavePlan &plan, int64_t largestStep)
      : loop(loop), plan(plan), largestStep(largestStep), builder(loop), loc(loop.getLoc()),
        lower(loop.getLowerBound()), upper(loop.getUpperBound()), step(loop.getStep()) {}

  /// From
  ///
  ///   for (i = lower; i < upper; i += step) body(i)
  ///
  /// to (with a count of 4)
  ///
  ///   i = lower
  ///   if (four are left) {
  ///     end = apart ? upper - 3 * step : lower
  ///     for (; i < end; i += 4 * step) { loads of i, i + step, ..; rest of i, i + step, .. }
  ///   }
  ///   for (; i < upper; i += step) body(i)
  ///
  /// The counter takes the same values as before, in the same order, and nothing overflows that did not before. Short
  /// loops pay for one comparison.
  void run(int64_t count) {
    SmallVector<Value> start(loop.getInitArgs());
    start.push_back(lower);
    Value distance = times(step, count - 1);
    auto most = scf::IfOp::create(builder, loc, TypeRange(ValueRange(start)), areLeft(distance),
                                  /*withElseRegion=*/true);
    {
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToEnd(&most.getElseRegion().front());
      scf::YieldOp::create(builder, loc, start);

      builder.setInsertionPointToEnd(&most.getThenRegion().front());
      Value end = arith::SubIOp::create(builder, loc, upper, distance);
      if (Value allowed = apart(count))
        end = arith::SelectOp::create(builder, loc, allowed, end, lower);
      auto main = scf::ForOp::create(
          builder, loc, lower, end, times(step, count), start,
          [&](OpBuilder &inner, Location, Value counter, ValueRange carried) {
            scf::YieldOp::create(inner, loc, turn(inner, counter, count, carried.drop_back()));
          });
      scf::YieldOp::create(builder, loc, main.getResults());
    }
    loop.getLowerBoundMutable().assign(most.getResults().back());
    loop.getInitArgsMutable().assign(most.getResults().drop_back());
    // A few iterations, which nobody has to unroll. The PTX compiler may unroll the other loop further.
    loop->setAttr(annotationName, doNotUnroll());
  }

private:
  Value index(int64_t value) { return arith::ConstantIndexOp::create(builder, loc, value); }

  Value times(Value value, int64_t factor) {
    if (std::optional<int64_t> constant = getConstantIntValue(value))
      return index(*constant * factor);
    return arith::MulIOp::create(builder, loc, value, index(factor));
  }

  Value both(Value left, Value right) {
    return left && right ? arith::AndIOp::create(builder, loc, left, right).getResult()
                         : (left ? left : right);
  }

  /// Whether the last of so many iterations is still one: `lower + distance < upper`, without overflow.
  Value areLeft(Value distance) {
    Value any = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, lower, upper);
    // Where there are any, the difference is right as an unsigned number.
    Value enough = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ugt,
                                         arith::SubIOp::create(builder, loc, upper, lower), distance);
    return both(any, enough);
  }

  /// `count` iterations at once; returns what is carried, and the counter behind them.
  SmallVector<Value> turn(OpBuilder &at, Value counter, int64_t count, ValueRange carried) {
    SmallVector<IRMapping> iterations(count);
    Block &original = *loop.getBody();
    for (IRMapping &iteration : iterations) {
      iteration.map(loop.getInductionVar(), counter);
      for (Operation &operation : original.without_terminator())
        if (plan.first.contains(&operation))
          at.clone(operation, iteration);
      counter = arith::AddIOp::create(at, loc, counter, step);
    }
    SmallVector<Value> values(carried);
    for (IRMapping &iteration : iterations) {
      iteration.map(loop.getRegionIterArgs(), values);
      for (Operation &operation : original.without_terminator())
        if (!plan.first.contains(&operation))
          at.clone(operation, iteration);
      values.clear();
      for (Value yielded : original.getTerminator()->getOperands())
        values.push_back(iteration.lookupOrDefault(yielded));
    }
    values.push_back(counter);
    return values;
  }

  /// The address of an element in the first iteration, as an integer.
  Value address(const Access &access) {
    IRMapping mapping;
    mapping.map(loop.getInductionVar(), lower);
    for (Operation &operation : loop.getBody()->without_terminator())
      if (plan.addressing.contains(&operation))
        builder.clone(operation, mapping);
    auto metadata = memref::ExtractStridedMetadataOp::create(builder, loc, access.memref);
    Value element;
    for (auto [at, stride] : llvm::zip_equal(access.indices, metadata.getStrides())) {
      Value term = arith::MulIOp::create(builder, loc, mapping.lookupOrDefault(at), stride);
      element = element ? arith::AddIOp::create(builder, loc, element, term).getResult() : term;
    }
    Value base = memref::ExtractAlignedPointerAsIndexOp::create(builder, loc, access.memref);
    return arith::AddIOp::create(builder, loc, base, times(element, access.bytes));
  }

  /// Whether no load meets a store of another iteration of the same turn; null if that is certain. Store number k writes
  /// at `store + k * stride`, load number k + d reads at `load + (k + d) * stride`, for d from 1 (from 0 where a store
  /// comes before the load) to count - 1: they are apart if the distance `store - load` is none that d can bridge.
  Value apart(int64_t count) {
    Value result;
    if (!getConstantIntValue(step))
      result = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult, step,
                                     index(largestStep));
    for (const MayOverlap &pair : plan.checks) {
      int64_t bytes = pair.load.bytes;
      Value load = address(pair.load);
      Value distance = arith::SubIOp::create(builder, loc, address(pair.store), load);
      // Unsigned: a negative distance is a large one. The same address is harmless where a load comes first.
      Value shifted = arith::AddIOp::create(builder, loc, distance,
                                            index(pair.storeComesFirst ? bytes - 1 : -1));
      Value twice = index(2 * bytes);
      Value reach = arith::AddIOp::create(builder, loc, times(step, (count - 1) * bytes), twice);
      result = both(result, arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::uge, shifted, reach));
    }
    return result;
  }

  Attribute doNotUnroll() {
    MLIRContext *context = loop.getContext();
    auto unroll = LLVM::LoopUnrollAttr::get(context, /*disable=*/builder.getBoolAttr(true), {}, {},
                                            {}, {}, {}, {});
    return LLVM::LoopAnnotationAttr::get(context, {}, {}, {}, unroll, {}, {}, {}, {}, {}, {}, {}, {},
                                         {}, {}, {});
  }

  scf::ForOp loop;
  const InterleavePlan &plan;
  int64_t largestStep;
  OpBuilder builder;
  Location loc;
  Value lower, upper, step;
};

struct InterleaveLoops final : PassWrapper<InterleaveLoops, OperationPass<>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(InterleaveLoops)

  InterleaveLoops() = default;
  InterleaveLoops(const InterleaveLoops &other) : PassWrapper(other) {}

  StringRef getName() const final { return "InterleaveLoops"; }
  StringRef getArgument() const final { return "gpulower-interleave-loops"; }
  StringRef getDescription() const final {
    return "Run several iterations of a loop at once, all loads of them first";
  }
  bool canScheduleOn(RegisteredOperationName name) const final {
    return name.getStringRef() == "gpu.module";
  }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<arith::ArithDialect, LLVM::LLVMDialect, memref::MemRefDialect,
                    scf::SCFDialect>();
  }

  void runOnOperation() final {
    auto refuse = [&](const auto &option, StringRef range) {
      getOperation()->emitError() << getArgument() << ": " << option.getArgStr() << " is " << option.getValue()
                                  << "; it is " << range;
      signalPassFailure();
    };
    // The ranges of the command line.
    if (!llvm::is_contained({1u, 2u, 4u, 8u}, count))
      return refuse(count, "1, 2, 4 or 8");
    if (indexBitwidth != 32 && indexBitwidth != 64)
      return refuse(indexBitwidth, "32 or 64");
    if (count < 2)
      return;
    SmallVector<scf::ForOp> loops;
    getOperation()->walk([&](scf::ForOp loop) { loops.push_back(loop); });
    for (scf::ForOp loop : loops) {
      if (loop->hasAttr(annotationName))
        continue;
      // Far from the end of the index type, so that no product below can overflow.
      int64_t largestStep = indexBitwidth == 64 ? int64_t(1) << 48 : int64_t(1) << 20;
      std::optional<InterleavePlan> plan =
          planInterleaving(loop, largestStep, /*checkAddresses=*/indexBitwidth == 64);
      if (plan)
        Interleaver(loop, *plan, largestStep).run(plan->isHeavy ? 2 : count);
    }
  }

  LogicalResult initializeOptions(StringRef text,
                                  function_ref<LogicalResult(const Twine &)> refuse) final {
    return failure(failed(Pass::initializeOptions(text, refuse)) ||
                   failed(gpulower::checkRange("count", "interleave", count, refuse)) ||
                   failed(gpulower::checkRange("index-bitwidth", "index-bitwidth", indexBitwidth, refuse)));
  }

  Option<unsigned> count{*this, "count", llvm::cl::desc("Iterations at once"), llvm::cl::init(4)};
  Option<unsigned> indexBitwidth{*this, "index-bitwidth", llvm::cl::desc("Bits of index"),
                                 llvm::cl::init(64)};
};

} // namespace

/// Registers the pass with MLIR. Call once.
extern "C" void gpulowerRegisterInterleavePass() { PassRegistration<InterleaveLoops>(); }
