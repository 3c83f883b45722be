// Arithmetic on two halves or bfloats at once, of a register that has a negative constant in one of its halves and
// something else in the other, or of a constant that is an operand twice. ptxas 13.0 keeps the constant without its
// sign, and negates that half where it is used, or forgets to: `fma.rn.f16x2 %a, %a, %a, 0` of {x, -0.046} is negative
// in its second half, and the greatest of {x, -27} and {y, z} is 27 where x, y and z are put together of integers. One
// number after the other is right.

#include "code_generation.h"

#include "llvm/Analysis/InstructionSimplify.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"

#include <optional>

using namespace llvm;

namespace {

bool isNegative(const Value *value) {
  auto *number = dyn_cast<ConstantFP>(value);
  return number && number->isNegative();
}

/// Whether a vector is put together of numbers, one of which is a negative constant.
bool hasNegativeConstant(const Value *vector, unsigned depth = 0) {
  // As many as a vector has elements, and the shuffles that LLVM makes of them.
  constexpr unsigned deepest = 32;
  if (depth > deepest)
    return true;
  if (auto *constant = dyn_cast<Constant>(vector)) {
    auto *type = cast<FixedVectorType>(constant->getType());
    for (unsigned i = 0; i < type->getNumElements(); ++i)
      if (Constant *element = constant->getAggregateElement(i); element && isNegative(element))
        return true;
    return false;
  }
  if (auto *insert = dyn_cast<InsertElementInst>(vector))
    return isNegative(insert->getOperand(1)) || hasNegativeConstant(insert->getOperand(0), depth + 1);
  if (auto *shuffle = dyn_cast<ShuffleVectorInst>(vector))
    return hasNegativeConstant(shuffle->getOperand(0), depth + 1) ||
           hasNegativeConstant(shuffle->getOperand(1), depth + 1);
  return false;
}

/// The numbers that are calculated with, if it is such arithmetic.
SmallVector<Use *, 3> operandsOf(Instruction &instruction) {
  SmallVector<Use *, 3> operands;
  auto *type = dyn_cast<FixedVectorType>(instruction.getType());
  if (!type || !(type->getElementType()->isHalfTy() || type->getElementType()->isBFloatTy()))
    return operands;
  if (auto *call = dyn_cast<IntrinsicInst>(&instruction)) {
    switch (call->getIntrinsicID()) {
    case Intrinsic::fma:
    case Intrinsic::fmuladd:
    case Intrinsic::maxnum:
    case Intrinsic::minnum:
    case Intrinsic::maximum:
    case Intrinsic::minimum:
      for (Use &operand : call->args())
        operands.push_back(&operand);
      break;
    default:
      break;
    }
  } else if (isa<BinaryOperator>(instruction)) {
    for (Use &operand : instruction.operands())
      operands.push_back(&operand);
  }
  return operands;
}

bool mayLoseSign(ArrayRef<Use *> operands) {
  for (auto [place, operand] : enumerate(operands)) {
    bool isTwice =
        llvm::any_of(operands.drop_front(place + 1), [&](Use *other) { return other->get() == operand->get(); });
    if ((isTwice || !isa<Constant>(operand->get())) && hasNegativeConstant(operand->get()))
      return true;
  }
  return false;
}

/// What a reduction does with two numbers.
std::optional<Intrinsic::ID> stepOf(const IntrinsicInst &reduction) {
  switch (reduction.getIntrinsicID()) {
  case Intrinsic::vector_reduce_fmax:
    return Intrinsic::maxnum;
  case Intrinsic::vector_reduce_fmin:
    return Intrinsic::minnum;
  case Intrinsic::vector_reduce_fmaximum:
    return Intrinsic::maximum;
  case Intrinsic::vector_reduce_fminimum:
    return Intrinsic::minimum;
  default:
    return std::nullopt;
  }
}

/// Code generation reduces two numbers at once: here one after the other, where a sign may be lost. (Sums and products
/// it computes in order; where any order will do it packs them, too, which is not looked at.)
bool reduceInOrder(Instruction &instruction) {
  auto *reduction = dyn_cast<IntrinsicInst>(&instruction);
  std::optional<Intrinsic::ID> step = reduction ? stepOf(*reduction) : std::nullopt;
  if (!step || reduction->getType()->getPrimitiveSizeInBits() != 16 ||
      !hasNegativeConstant(reduction->getArgOperand(0)))
    return false;
  IRBuilder<> builder(reduction);
  builder.setFastMathFlags(reduction->getFastMathFlags());
  Value *vector = reduction->getArgOperand(0), *result = nullptr;
  for (unsigned i = 0; i < cast<FixedVectorType>(vector->getType())->getNumElements(); ++i) {
    Value *element = builder.CreateExtractElement(vector, i);
    result = result ? builder.CreateBinaryIntrinsic(*step, result, element) : element;
  }
  reduction->replaceAllUsesWith(result);
  reduction->eraseFromParent();
  return true;
}

} // namespace

void gpulower::takePackedHalvesApart(Module &module) {
  for (Function &function : module)
    for (Instruction &instruction : make_early_inc_range(instructions(function))) {
      if (reduceInOrder(instruction))
        continue;
      SmallVector<Use *, 3> operands = operandsOf(instruction);
      if (!mayLoseSign(operands))
        continue;
      auto *type = cast<FixedVectorType>(instruction.getType());
      IRBuilder<> builder(&instruction);
      // Code generation would find a constant that is not looked at here.
      auto simplified = [&](Value *value) {
        auto *made = dyn_cast<Instruction>(value);
        Value *simple = made ? simplifyInstruction(made, SimplifyQuery(module.getDataLayout())) : nullptr;
        if (!simple)
          return value;
        made->eraseFromParent();
        return simple;
      };
      Value *result = PoisonValue::get(type);
      for (unsigned i = 0; i < type->getNumElements(); ++i) {
        SmallVector<Value *, 3> elements;
        for (Use *operand : operands)
          elements.push_back(simplified(builder.CreateExtractElement(operand->get(), i)));
        Value *element = nullptr;
        if (auto *binary = dyn_cast<BinaryOperator>(&instruction))
          element = builder.CreateBinOp(binary->getOpcode(), elements[0], elements[1]);
        else
          element = builder.CreateIntrinsic(cast<IntrinsicInst>(instruction).getIntrinsicID(), {type->getElementType()},
                                            elements);
        if (auto *made = dyn_cast<Instruction>(element))
          made->copyFastMathFlags(&instruction);
        result = builder.CreateInsertElement(result, simplified(element), i);
      }
      instruction.replaceAllUsesWith(result);
      instruction.eraseFromParent();
    }
}
