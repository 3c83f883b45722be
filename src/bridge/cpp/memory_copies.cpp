// Copies of a few bytes, as a front end writes them for the assignment of a structure. LLVM's code generation for
// NVIDIA writes a load and a store for each piece, one pair after the other, and nothing moves a load before a store
// that may reach the same memory: a thread waits for each piece. What is copied is all read before anything is written
// here; so the loads also become wide, and those of memory that stays get the read-only path.

#include "for_ptx.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace {

/// What a copy takes on its way: 32 registers, each of which holds four bytes or a smaller piece.
constexpr uint64_t mostPieces = 32, mostBytes = 128;

/// Bytes of `ld.v4.b32`.
constexpr uint64_t widest = 16;

bool expand(MemTransferInst &copy) {
  auto *length = dyn_cast<ConstantInt>(copy.getLength());
  uint64_t piece =
      std::min({copy.getSourceAlign().valueOrOne().value(), copy.getDestAlign().valueOrOne().value(), widest});
  uint64_t bytes = length ? length->getLimitedValue() : 0;
  // The last pieces may be smaller.
  if (copy.isVolatile() || bytes == 0 || bytes > mostBytes ||
      bytes / piece + llvm::popcount(bytes % piece) > mostPieces)
    return false;
  IRBuilder<> builder(&copy);
  const DataLayout &layout = copy.getDataLayout();
  AAMDNodes metadata = copy.getAAMetadata();
  SmallVector<std::pair<uint64_t, LoadInst *>> loads;
  auto access = [&](Value *pointer, uint64_t offset) {
    return offset == 0 ? pointer : builder.CreateInBoundsPtrAdd(pointer, builder.getInt64(offset));
  };
  for (uint64_t offset = 0; offset < bytes;) {
    while (piece > bytes - offset)
      piece /= 2;
    Type *type = piece == widest ? cast<Type>(FixedVectorType::get(builder.getInt32Ty(), 4))
                                 : builder.getIntNTy(unsigned(piece * 8));
    LoadInst *load = builder.CreateAlignedLoad(type, access(copy.getRawSource(), offset),
                                               commonAlignment(copy.getSourceAlign().valueOrOne(), offset));
    load->setAAMetadata(metadata.adjustForAccess(offset, type, layout));
    loads.push_back({offset, load});
    offset += piece;
  }
  for (auto [offset, load] : loads) {
    StoreInst *store = builder.CreateAlignedStore(load, access(copy.getRawDest(), offset),
                                                  commonAlignment(copy.getDestAlign().valueOrOne(), offset));
    store->setAAMetadata(metadata.adjustForAccess(offset, load->getType(), layout));
  }
  copy.eraseFromParent();
  return true;
}

} // namespace

PreservedAnalyses gpulower::ExpandCopies::run(Function &function, FunctionAnalysisManager &) {
  bool changed = false;
  for (Instruction &instruction : make_early_inc_range(instructions(function)))
    if (auto *copy = dyn_cast<MemTransferInst>(&instruction))
      changed |= expand(*copy);
  if (!changed)
    return PreservedAnalyses::all();
  PreservedAnalyses preserved;
  preserved.preserveSet<CFGAnalyses>();
  return preserved;
}
