// Rewrites of operations that MLIR's conversions to NVVM or ROCDL do not take.
#ifndef GPULOWER_BRIDGE_PATTERNS_H
#define GPULOWER_BRIDGE_PATTERNS_H

#include "mlir/Dialect/AMDGPU/Utils/Chipset.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/SymbolTable.h"

namespace gpulower {

/// Applies patterns until none matches. Where no operation has a pattern nothing is looked at twice, folded or tidied.
mlir::LogicalResult rewrite(mlir::Operation *root, mlir::RewritePatternSet patterns);

/// To be called before MLIR folds: its `trunci(trunci(x))` becomes the outer one of x, with what that says about overflow, which
/// need not hold for x.
void forgetOverflowOfTruncations(mlir::Operation *root);

/// What the rewrites have to know of the chip.
struct GpuChip {
  /// AMD's, or NVIDIA's otherwise.
  bool amd = false;
  /// Lanes in a subgroup: a warp or a wave.
  unsigned subgroupSize = 32;
  /// NVIDIA's compute capability, such as 90; 0 where it is not known.
  unsigned capability = 0;
  /// Whether the chip has `redux.sync` (NVIDIA, sm_80 and later).
  bool redux = false;
  /// Whether the chip has clusters of workgroups (NVIDIA, sm_90 and later).
  bool clusters = false;
  /// Whether memrefs become pointers alone where functions are called.
  bool barePointers = false;
  /// AMD's chip.
  mlir::amdgpu::Chipset chipset;

  /// The number of an address space that has one name in the `gpu` dialect: NVVM's and AMDGPU's tables.
  int64_t privateSpace() const { return amd ? 5 : 0; }
};

/// Address space of memory that a workgroup shares, for both vendors.
constexpr int64_t workgroupSpace = 3;

/// `#gpu.address_space` in memref types becomes the number that it has on the chip.
void replaceAddressSpaces(mlir::Operation *root, const GpuChip &chip);

/// The number of work items in a workgroup, where the function around `user` states its size.
std::optional<int64_t> knownBlockItems(mlir::Operation *user);

/// Sizes of workgroups and grids become the constants that their function states.
void foldKnownSizes(mlir::Operation *root);

/// Loops over the items of a workgroup of known size count their iterations, where all items have the same number of
/// them: `for (i = thread; i < 512; i += 128)` becomes `for (n = 0; n < 4; ++n)`.
void countKnownIterations(mlir::Operation *root);

/// Remembers which branches will be those of an `scf.for`, for [keepCountersInRange] once they are made.
void markCounters(mlir::Operation *root);

/// Says of the counters of such loops that they do not overflow.
void keepCountersInRange(mlir::Operation *root);

/// Makes selects of conditions that end an iteration of a loop and choose scalars alone.
void selectValues(mlir::Operation *root);

/// Reductions over workgroups that are known to consist of full subgroups, on NVIDIA, while control flow is structured.
void populateWholeSubgroupReductions(mlir::RewritePatternSet &patterns, const GpuChip &chip);

/// Lanes that reduce together in all others, on either vendor.
constexpr unsigned lanesOfReduction = 32;

/// All others, once control flow is not structured.
void populateWorkgroupReductions(mlir::RewritePatternSet &patterns, const GpuChip &chip);

/// What is wrong with an operation on matrices of subgroups, on NVIDIA; empty if nothing is.
std::string reasonAgainstMatrix(mlir::Operation *operation, const GpuChip &chip);

/// The same on AMD.
std::string reasonAgainstMatrixOnAmd(mlir::Operation *operation, const GpuChip &chip);

/// Whether the type is that of a matrix that the chip multiplies, on AMD.
bool isMatrixOfAmd(mlir::Type type, const GpuChip &chip);

/// Matrices of subgroups as vectors, multiplied by MFMA or WMMA, on AMD.
void expandMatrices(mlir::Operation *root, const GpuChip &chip);

/// 8-bit floats converted to others and back, where the chip has no instruction that MLIR knows.
mlir::LogicalResult expandSmallFloats(mlir::Operation *root);

/// Contractions of narrow vectors into a wide sum become ones of wide vectors.
void populateContractionPatterns(mlir::RewritePatternSet &patterns);

/// `gpu.subgroup_mma_elementwise` with what MLIR's conversion lacks.
void populateMatrixPatterns(mlir::RewritePatternSet &patterns);

/// Takes functions that cannot be lowered on their own into the kernels that call them.
mlir::LogicalResult inlineFunctions(mlir::Operation *root);

/// Gives assertions the locations that MLIR's conversion takes file, line and function from.
void placeAssertions(mlir::Operation *root);

/// Emits an error on operations that no rewrite can help.
mlir::LogicalResult refuseUnsupported(mlir::Operation *root, const GpuChip &chip);

/// The same for types that no conversion takes, and for operations that stand where they cannot.
mlir::LogicalResult refuseTypes(mlir::Operation *root, const GpuChip &chip);

/// Makes globals in workgroup memory for a `gpu.module`. It knows the names in the module from when it is made: to look for
/// one in the module itself takes as long as the module is large, for each of them.
class WorkgroupBuffers {
public:
  explicit WorkgroupBuffers(mlir::Operation *module) : symbols(module) {}

  /// A global, and the operation that refers to it.
  mlir::Value make(mlir::Operation *user, mlir::OpBuilder &builder, mlir::MemRefType type,
                   mlir::IntegerAttr alignment);

private:
  mlir::SymbolTable symbols;
  unsigned next = 0;
};

/// Allocations in workgroup memory become globals; those that cannot be are refused.
mlir::LogicalResult placeAllocations(mlir::Operation *root, const GpuChip &chip, WorkgroupBuffers &buffers);

/// Atomics on floats and products, as loops of compare-and-swap.
void populateAtomicPatterns(mlir::RewritePatternSet &patterns);

/// Updates that do not depend on what was there, as exchanges.
void populateExchangePatterns(mlir::RewritePatternSet &patterns);

/// Copies between memrefs that are not contiguous, as loops.
void populateCopyPatterns(mlir::RewritePatternSet &patterns);

/// `gpu.rotate`, `gpu.num_subgroups`, and on NVIDIA `gpu.subgroup_size`.
void populateSubgroupPatterns(mlir::RewritePatternSet &patterns, const GpuChip &chip);

/// All `gpu.subgroup_reduce`: `redux.sync`, data-parallel primitives or shuffles.
mlir::LogicalResult expandSubgroupReductions(mlir::Operation *root, const GpuChip &chip);

/// Broadcasts: on NVIDIA all, on AMD those of values that are no whole words.
void populateBroadcastPatterns(mlir::RewritePatternSet &patterns, const GpuChip &chip);

/// Applies `onWord` to each 32-bit word of a value. Null for types that have no words.
mlir::Value onWords(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value,
                    llvm::function_ref<mlir::Value(mlir::Value)> onWord);

/// All `gpu.shuffle`, among groups of `lanes`: those of the chip's subgroup, or of fewer.
mlir::LogicalResult expandShuffles(mlir::Operation *root, const GpuChip &chip, unsigned lanes);

} // namespace gpulower

#endif
