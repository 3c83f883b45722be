// Which iterations of a loop may run at once with their loads first. Everything here is a proof: what it does not
// understand it leaves alone.

#include "interleave.h"
#include "patterns.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace gpulower {
namespace {

/// Longer bodies have enough to do between two loads.
constexpr unsigned mostOperations = 48;
/// Every load that waits holds a register, times the iterations.
constexpr unsigned mostLoads = 6;
/// Comparisons of addresses before a loop.
constexpr unsigned mostChecks = 4;

/// A read or write of memory whose place is plain to see.
std::optional<Access> accessOf(Operation *operation, bool write) {
  Access access{operation, Value(), operation->getOperands(), 0};
  Type type;
  if (auto load = dyn_cast<memref::LoadOp>(operation); load && !write) {
    access.memref = load.getMemref();
    access.indices = load.getIndices();
    type = load.getType();
  } else if (auto store = dyn_cast<memref::StoreOp>(operation); store && write) {
    access.memref = store.getMemref();
    access.indices = store.getIndices();
    type = store.getValue().getType();
  } else {
    return std::nullopt;
  }
  // Indices count elements, and an element of an odd size takes more room than its bits.
  if (!type.isIntOrFloat() || type.getIntOrFloatBitWidth() < 8 ||
      !llvm::isPowerOf2_32(type.getIntOrFloatBitWidth()))
    return std::nullopt;
  access.bytes = type.getIntOrFloatBitWidth() / 8;
  return access;
}

/// Computes without memory, and alike whichever threads of the subgroup take part.
bool isComputation(Operation *operation) {
  StringRef dialect = operation->getName().getDialectNamespace();
  // What `math.fma` has become by now is an operation of the `llvm` dialect.
  if (isa<gpu::ThreadIdOp, gpu::BlockIdOp, gpu::BlockDimOp, gpu::GridDimOp, memref::DimOp, LLVM::FMAOp>(operation))
    return true;
  return llvm::is_contained({"arith", "complex", "index", "math", "ub", "vector"}, dialect) &&
         operation->getNumRegions() == 0 && isMemoryEffectFree(operation);
}

/// A function of a vendor's library that takes dozens of instructions, unlike an exponential.
bool isLargeFunction(Operation *operation) {
  return operation->getName().getDialectNamespace() == "math" &&
         !isa<math::AbsFOp, math::AbsIOp, math::CeilOp, math::CopySignOp, math::CountLeadingZerosOp,
              math::CountTrailingZerosOp, math::CtPopOp, math::ExpOp, math::Exp2Op, math::FloorOp, math::FmaOp,
              math::RoundOp, math::RoundEvenOp, math::RsqrtOp, math::SqrtOp, math::TruncOp>(operation);
}

bool isWorkgroupMemory(Value memref) {
  auto space = dyn_cast_or_null<IntegerAttr>(cast<MemRefType>(memref.getType()).getMemorySpace());
  return space && space.getInt() == workgroupSpace;
}

/// An argument of a kernel: memory that the host passed, which is never a workgroup's or a thread's own.
BlockArgument kernelArgument(Value memref) {
  auto argument = dyn_cast<BlockArgument>(memref);
  if (!argument)
    return {};
  auto function = dyn_cast<gpu::GPUFuncOp>(argument.getOwner()->getParentOp());
  bool passed = function && function.isKernel() && argument.getOwner()->isEntryBlock() &&
                argument.getArgNumber() < function.getNumArguments() && !isWorkgroupMemory(memref);
  return passed ? argument : BlockArgument();
}

/// Whether the front end has promised that nobody else reaches what this argument points to.
bool isAlone(BlockArgument argument) {
  auto function = cast<gpu::GPUFuncOp>(argument.getOwner()->getParentOp());
  return static_cast<bool>(function.getArgAttr(argument.getArgNumber(), LLVM::LLVMDialect::getNoAliasAttrName()));
}

class Planner {
public:
  Planner(scf::ForOp loop, bool checkAddresses) : loop(loop), checkAddresses(checkAddresses) {}

  std::optional<InterleavePlan> plan() {
    if (!understand())
      return std::nullopt;
    // NVIDIA's PTX compiler unrolls a loop that only reads, if it knows the step, and deals better with the rest of it.
    if (stores.empty() && getConstantIntValue(loop.getStep()))
      return std::nullopt;
    unsigned loads = 0;
    for (Operation &operation : loop.getBody()->without_terminator()) {
      if (!llvm::all_of(operation.getOperands(), [&](Value operand) { return isReady(operand); }))
        continue;
      if (isComputation(&operation)) {
        ready.insert(&operation);
      } else if (std::optional<Access> load = accessOf(&operation, /*write=*/false);
                 load && mayComeFirst(*load)) {
        ready.insert(&operation);
        take(&operation, result.first);
        ++loads;
      }
    }
    if (loads == 0 || loads > mostLoads || result.checks.size() > mostChecks)
      return std::nullopt;
    return std::move(result);
  }

private:
  /// Whether all of the body is known, which it is not with a barrier, a call, an atomic operation or a loop in it.
  bool understand() {
    unsigned operations = 0;
    WalkResult walk = loop.getBody()->walk([&](Operation *operation) {
      ++operations;
      result.isHeavy |= isLargeFunction(operation) || isa<arith::DivFOp>(operation);
      if (isa<scf::IfOp, scf::YieldOp>(operation) || isComputation(operation) ||
          isa<memref::LoadOp>(operation))
        return WalkResult::advance();
      std::optional<Access> store = accessOf(operation, /*write=*/true);
      if (!store)
        return WalkResult::interrupt();
      stores.push_back(*store);
      return WalkResult::advance();
    });
    return !walk.wasInterrupted() && operations <= mostOperations;
  }

  bool isInvariant(Value value) { return loop.isDefinedOutsideOfLoop(value); }

  /// Available at the beginning of an iteration, or computed from what is.
  bool isReady(Value value) {
    return isInvariant(value) || value == loop.getInductionVar() ||
           (value.getDefiningOp() && ready.contains(value.getDefiningOp()));
  }

  /// The counter plus something that stays.
  bool movesWithCounter(Value value) {
    if (value == loop.getInductionVar())
      return true;
    auto sum = value.getDefiningOp<arith::AddIOp>();
    return sum && sum->getBlock() == loop.getBody() && ((movesWithCounter(sum.getLhs()) && isInvariant(sum.getRhs())) ||
                   (isInvariant(sum.getLhs()) && movesWithCounter(sum.getRhs())));
  }

  /// An element that is the next but `step - 1` of the same row in each iteration.
  bool walksAlongRow(const Access &access) {
    auto type = cast<MemRefType>(access.memref.getType());
    return isInvariant(access.memref) && type.getLayout().isIdentity() && type.getRank() > 0 &&
           llvm::all_of(access.indices.drop_back(), [&](Value at) { return isInvariant(at); }) &&
           movesWithCounter(access.indices.back());
  }

  bool mayComeFirst(const Access &load) {
    if (!isInvariant(load.memref))
      return false;
    SmallVector<MayOverlap> checks;
    for (const Access &store : stores) {
      BlockArgument from = kernelArgument(load.memref), to = kernelArgument(store.memref);
      if ((from && isWorkgroupMemory(store.memref)) || (to && isWorkgroupMemory(load.memref)))
        continue;
      if (from && to && from != to && (isAlone(from) || isAlone(to)))
        continue;
      if (!walksAlongRow(load) || !walksAlongRow(store))
        return false;
      bool storeComesFirst = !isBefore(load.operation, store.operation);
      // The same element in the same iteration, and no other: the counter never takes a value twice.
      if (load.memref == store.memref && llvm::equal(load.indices, store.indices)) {
        if (storeComesFirst)
          return false;
        continue;
      }
      if (!checkAddresses || load.bytes != store.bytes || !from || !to)
        return false;
      checks.push_back({load, store, storeComesFirst});
    }
    for (const MayOverlap &check : checks) {
      for (Value index : llvm::concat<const Value>(SmallVector<Value>(check.load.indices),
                                                   SmallVector<Value>(check.store.indices)))
        if (Operation *definition = index.getDefiningOp())
          take(definition, result.addressing);
      result.checks.push_back(check);
    }
    return true;
  }

  bool isBefore(Operation *load, Operation *store) {
    Operation *ancestor = loop.getBody()->findAncestorOpInBlock(*store);
    return ancestor && load->isBeforeInBlock(ancestor);
  }

  /// Adds an operation of the body, and those of the body that it needs.
  void take(Operation *operation, llvm::SmallPtrSet<Operation *, 16> &set) {
    if (operation->getBlock() != loop.getBody() || !set.insert(operation).second)
      return;
    for (Value operand : operation->getOperands())
      if (Operation *definition = operand.getDefiningOp())
        take(definition, set);
  }

  scf::ForOp loop;
  bool checkAddresses;
  SmallVector<Access> stores;
  llvm::SmallPtrSet<Operation *, 16> ready;
  InterleavePlan result;
};

} // namespace

std::optional<InterleavePlan> planInterleaving(scf::ForOp loop, int64_t largestStep,
                                               bool checkAddresses) {
  if (loop.getUnsignedCmp() || !loop.getInductionVar().getType().isIndex())
    return std::nullopt;
  std::optional<int64_t> step = getConstantIntValue(loop.getStep());
  if (step && (*step < 1 || *step >= largestStep))
    return std::nullopt;
  // LLVM knows what to do with a number of iterations that it knows.
  if (step && getConstantIntValue(loop.getLowerBound()) && getConstantIntValue(loop.getUpperBound()))
    return std::nullopt;
  return Planner(loop, checkAddresses).plan();
}

} // namespace gpulower
