// Shuffles that read a lane which was computed from the own one, where that is so many lanes below or above, or across.
// Lowering computes lanes where offsets are not known to be small (expand_shuffle.cpp), as those of a loop that LLVM
// unrolled since. The instruction that has the offset itself needs no register for the lane.

#include "code_generation.h"

#include "llvm/Analysis/ConstantFolding.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/Local.h"

#include <array>
#include <optional>

using namespace llvm;

namespace gpulower {
namespace {

/// Of a warp.
constexpr unsigned lanes = 32;

/// A lane is computed in so few steps from the own one.
constexpr unsigned mostSteps = 6;

/// What a value is in the lane of that number, where nothing else is needed to tell.
Constant *valueInLane(Value *value, unsigned lane, const DataLayout &layout, unsigned steps) {
  if (auto *constant = dyn_cast<Constant>(value))
    return constant;
  if (auto *call = dyn_cast<IntrinsicInst>(value);
      call && call->getIntrinsicID() == Intrinsic::nvvm_read_ptx_sreg_laneid)
    return ConstantInt::get(value->getType(), lane);
  auto *instruction = dyn_cast<Instruction>(value);
  if (!instruction || steps == 0 || !isa<BinaryOperator, CmpInst, SelectInst, CastInst>(instruction))
    return nullptr;
  SmallVector<Constant *, 3> operands;
  for (Value *operand : instruction->operands()) {
    Constant *known = valueInLane(operand, lane, layout, steps - 1);
    if (!known)
      return nullptr;
    operands.push_back(known);
  }
  if (auto *compare = dyn_cast<CmpInst>(instruction))
    return ConstantFoldCompareInstOperands(compare->getPredicate(), operands[0], operands[1], layout);
  return ConstantFoldInstOperands(instruction, operands, layout);
}

struct Mode {
  Intrinsic::ID words, floats;
  unsigned offset, clamp;
};

/// The mode in which each lane reads the one that it computes.
std::optional<Mode> modeOf(Value *source, const DataLayout &layout) {
  std::array<unsigned, lanes> from;
  for (unsigned lane = 0; lane < lanes; ++lane) {
    auto *found = dyn_cast_or_null<ConstantInt>(valueInLane(source, lane, layout, mostSteps));
    if (!found || found->getValue().uge(lanes))
      return std::nullopt;
    from[lane] = found->getZExtValue();
  }
  auto reads = [&](auto lane) {
    for (unsigned own = 0; own < lanes; ++own)
      if (from[own] != lane(own))
        return false;
    return true;
  };
  // Lanes that have none there read themselves.
  if (unsigned below = lanes - 1 - from[lanes - 1];
      below != 0 && reads([&](unsigned own) { return own < below ? own : own - below; }))
    return Mode{Intrinsic::nvvm_shfl_sync_up_i32p, Intrinsic::nvvm_shfl_sync_up_f32p, below, 0};
  if (unsigned above = from[0];
      above != 0 && reads([&](unsigned own) { return own + above < lanes ? own + above : own; }))
    return Mode{Intrinsic::nvvm_shfl_sync_down_i32p, Intrinsic::nvvm_shfl_sync_down_f32p, above, lanes - 1};
  if (unsigned across = from[0]; across != 0 && reads([&](unsigned own) { return own ^ across; }))
    return Mode{Intrinsic::nvvm_shfl_sync_bfly_i32p, Intrinsic::nvvm_shfl_sync_bfly_f32p, across, lanes - 1};
  return std::nullopt;
}

/// Of a shuffle from a lane of the whole warp: whether there is a predicate, which is true then, since that lane is one
/// of it.
std::optional<bool> hasPredicate(const IntrinsicInst &shuffle) {
  switch (shuffle.getIntrinsicID()) {
  case Intrinsic::nvvm_shfl_sync_idx_i32p:
  case Intrinsic::nvvm_shfl_sync_idx_f32p:
    return true;
  case Intrinsic::nvvm_shfl_sync_idx_i32:
  case Intrinsic::nvvm_shfl_sync_idx_f32:
    return false;
  default:
    return std::nullopt;
  }
}

} // namespace

void shuffleByOffset(Module &module) {
  SmallVector<WeakTrackingVH> sources;
  for (Function &function : module)
    for (Instruction &instruction : make_early_inc_range(instructions(function))) {
      auto *shuffle = dyn_cast<IntrinsicInst>(&instruction);
      std::optional<bool> predicate = shuffle ? hasPredicate(*shuffle) : std::nullopt;
      auto *clamp = predicate ? dyn_cast<ConstantInt>(shuffle->getArgOperand(3)) : nullptr;
      if (!clamp || clamp->getZExtValue() != lanes - 1)
        continue;
      Value *source = shuffle->getArgOperand(2), *word = shuffle->getArgOperand(1);
      std::optional<Mode> mode = modeOf(source, module.getDataLayout());
      if (!mode)
        continue;
      IRBuilder<> builder(shuffle);
      Value *made = builder.CreateIntrinsic(
          word->getType()->isFloatTy() ? mode->floats : mode->words,
          {shuffle->getArgOperand(0), word, builder.getInt32(mode->offset), builder.getInt32(mode->clamp)});
      made = builder.CreateExtractValue(made, 0);
      if (*predicate)
        made = builder.CreateInsertValue(builder.CreateInsertValue(PoisonValue::get(shuffle->getType()), made, 0),
                                         builder.getTrue(), 1);
      made->takeName(shuffle);
      shuffle->replaceAllUsesWith(made);
      shuffle->eraseFromParent();
      sources.push_back(source);
    }
  // Where nothing leads to, a lane may be computed behind the shuffle.
  RecursivelyDeleteTriviallyDeadInstructionsPermissive(sources);
}

} // namespace gpulower
