// What a kernel says of its launch: a `gpu.func` with `known_block_size` is never launched with another one (its
// description in the gpu dialect calls that undefined behaviour), and MLIR's own conversions use it for bounds alone.

#include "patterns.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace gpulower {

std::optional<int64_t> knownBlockItems(Operation *user) {
  auto function = user->getParentOfType<gpu::GPUFuncOp>();
  std::optional<ArrayRef<int32_t>> sizes;
  if (function)
    sizes = function.getKnownBlockSize();
  if (!sizes)
    return std::nullopt;
  int64_t items = 1;
  for (int32_t size : *sizes) {
    if (size < 1 || size > 1024)
      return std::nullopt;
    items *= size;
  }
  return items;
}

void foldKnownSizes(Operation *root) {
  root->walk([](gpu::GPUFuncOp function) {
    std::optional<ArrayRef<int32_t>> block = function.getKnownBlockSize(), grid = function.getKnownGridSize();
    if (!block && !grid)
      return;
    function.walk([&](Operation *operation) {
      OpBuilder builder(operation);
      Location loc = operation->getLoc();
      auto sizeOf = [](std::optional<ArrayRef<int32_t>> sizes, gpu::Dimension dimension) {
        return sizes ? (*sizes)[static_cast<unsigned>(dimension)] : 0;
      };
      auto constant = [&](int64_t value) {
        return arith::ConstantIndexOp::create(builder, loc, value).getResult();
      };
      Value value;
      if (auto dim = dyn_cast<gpu::BlockDimOp>(operation)) {
        if (int32_t size = sizeOf(block, dim.getDimension()); size > 0)
          value = constant(size);
      } else if (auto dim = dyn_cast<gpu::GridDimOp>(operation)) {
        if (int32_t size = sizeOf(grid, dim.getDimension()); size > 0)
          value = constant(size);
      } else if (auto id = dyn_cast<gpu::GlobalIdOp>(operation)) {
        if (int32_t size = sizeOf(block, id.getDimension()); size > 0) {
          auto index = builder.getIndexType();
          Value threads = constant(size);
          Value number = gpu::BlockIdOp::create(builder, loc, index, id.getDimension(), IntegerAttr());
          Value before = arith::MulIOp::create(builder, loc, number, threads);
          Value thread = gpu::ThreadIdOp::create(builder, loc, index, id.getDimension(), IntegerAttr());
          value = arith::AddIOp::create(builder, loc, before, thread);
        }
      }
      if (!value)
        return;
      operation->getResult(0).replaceAllUsesWith(value);
      operation->erase();
    });
  });
}

namespace {

/// The smallest and the largest value of an index that a workgroup's known size bounds.
struct Bounds {
  int64_t smallest, largest;
};

std::optional<Bounds> boundsOf(Value value) {
  if (auto id = value.getDefiningOp<gpu::ThreadIdOp>()) {
    // More than 1024 items or none cannot be launched: then nothing is known.
    if (!knownBlockItems(id))
      return std::nullopt;
    ArrayRef<int32_t> sizes = *id->getParentOfType<gpu::GPUFuncOp>().getKnownBlockSize();
    return Bounds{0, sizes[static_cast<unsigned>(id.getDimension())] - 1};
  }
  if (auto quotient = value.getDefiningOp<arith::DivUIOp>()) {
    std::optional<Bounds> dividend = boundsOf(quotient.getLhs());
    std::optional<int64_t> divisor = getConstantIntValue(quotient.getRhs());
    if (dividend && divisor && *divisor > 0)
      return Bounds{dividend->smallest / *divisor, dividend->largest / *divisor};
  }
  if (auto rest = value.getDefiningOp<arith::RemUIOp>()) {
    std::optional<int64_t> divisor = getConstantIntValue(rest.getRhs());
    if (boundsOf(rest.getLhs()) && divisor && *divisor > 0)
      return Bounds{0, *divisor - 1};
  }
  return std::nullopt;
}

/// The number of iterations, where it is the same for all work items although they begin at different places.
std::optional<int64_t> knownIterations(scf::ForOp loop) {
  if (loop.getUnsignedCmp() || !loop.getInductionVar().getType().isIndex())
    return std::nullopt;
  std::optional<Bounds> lower = boundsOf(loop.getLowerBound());
  std::optional<int64_t> upper = getConstantIntValue(loop.getUpperBound()), step = getConstantIntValue(loop.getStep());
  // Indices may have 32 bits.
  constexpr int64_t large = int64_t(1) << 24;
  if (!lower || !upper || !step || *step < 1 || *step > large || *upper > large || lower->largest >= *upper)
    return std::nullopt;
  int64_t most = llvm::divideCeil(static_cast<uint64_t>(*upper - lower->smallest), static_cast<uint64_t>(*step));
  int64_t least = llvm::divideCeil(static_cast<uint64_t>(*upper - lower->largest), static_cast<uint64_t>(*step));
  return most == least ? std::optional(most) : std::nullopt;
}

} // namespace

void countKnownIterations(Operation *root) {
  root->walk([](scf::ForOp loop) {
    std::optional<int64_t> iterations = knownIterations(loop);
    if (!iterations)
      return;
    OpBuilder builder(loop);
    Location loc = loop.getLoc();
    auto constant = [&](int64_t value) {
      return arith::ConstantIndexOp::create(builder, loc, value).getResult();
    };
    Value lower = loop.getLowerBound(), step = loop.getStep(), counter = loop.getInductionVar();
    loop.getLowerBoundMutable().assign(constant(0));
    loop.getUpperBoundMutable().assign(constant(*iterations));
    loop.getStepMutable().assign(constant(1));
    builder.setInsertionPointToStart(loop.getBody());
    auto distance = arith::MulIOp::create(builder, loc, counter, step);
    auto place = arith::AddIOp::create(builder, loc, lower, distance);
    counter.replaceAllUsesExcept(place, distance);
  });
}

} // namespace gpulower
