// Mathematical operations of LLVM IR (`llvm.sin`, `llvm.pow`, `frem` and their like) for which LLVM 22's back ends for
// GPUs have no instruction, or one that is much less exact than the operation promises. They become calls of the
// vendor's device library, as clang's headers for CUDA and HIP make them, before it is linked.

#include "contain.h"

#include "llvm-c/Core.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"

using namespace llvm;
using gpulower::contain;

namespace {

/// Whether the chip's own instructions do it in this type. `approximate`: being close is enough.
bool isNative(Intrinsic::ID id, Type *type, bool approximate, bool nvidia, bool hasTanh) {
  if (type->isDoubleTy())
    return false;
  switch (id) {
  case Intrinsic::exp2:
    return true;
  case Intrinsic::sin:
  case Intrinsic::cos:
    return approximate;
  case Intrinsic::tanh:
    return approximate && nvidia && hasTanh;
  case Intrinsic::exp:
  case Intrinsic::exp10:
  case Intrinsic::log:
  case Intrinsic::log2:
  case Intrinsic::log10:
    // As exact as AMD's library, which is made of them.
    return !nvidia;
  default:
    return false;
  }
}

bool isApproximate(const Instruction &instruction) {
  return isa<FPMathOperator>(instruction) && instruction.hasApproxFunc();
}

/// What libdevice has in a version that is fast and less exact, for f32 alone.
bool isFastInLibdevice(Intrinsic::ID id) {
  switch (id) {
  case Intrinsic::exp:
  case Intrinsic::exp10:
  case Intrinsic::log:
  case Intrinsic::log2:
  case Intrinsic::log10:
  case Intrinsic::pow:
  case Intrinsic::tan:
    return true;
  default:
    return false;
  }
}

/// Calls of one module's device library.
class MathFunctions {
public:
  MathFunctions(Module &module, bool hasTanh)
      : module(module), nvidia(module.getTargetTriple().isNVPTX()), hasTanh(hasTanh) {}

  /// The results of an operation in other words; nothing where it stays.
  SmallVector<Value *, 2> replaced(Instruction &instruction) const {
    IRBuilder<> builder(&instruction);
    if (auto *operation = dyn_cast<FPMathOperator>(&instruction))
      builder.setFastMathFlags(operation->getFastMathFlags());
    auto *intrinsic = dyn_cast<IntrinsicInst>(&instruction);
    bool isRemainder = instruction.getOpcode() == Instruction::FRem ||
                       (intrinsic && intrinsic->getIntrinsicID() == Intrinsic::experimental_constrained_frem);
    Type *type = instruction.getType();
    if (isRemainder && isKnown(type)) {
      bool isNative = isApproximate(instruction) && !intrinsic && !type->getScalarType()->isBFloatTy();
      return isNative ? SmallVector<Value *, 2>() : one(call(builder, "fmod", type, operands(instruction, 2)));
    }
    return intrinsic ? replaced(builder, *intrinsic) : SmallVector<Value *, 2>();
  }

private:
  Module &module;
  bool nvidia, hasTanh;

  static SmallVector<Value *, 2> one(Value *value) { return {value}; }

  static SmallVector<Value *, 2> operands(Instruction &instruction, unsigned count) {
    return SmallVector<Value *, 2>(instruction.operands().begin(), instruction.operands().begin() + count);
  }

  static bool isKnown(Type *type) {
    Type *scalar = type->getScalarType();
    return !isa<ScalableVectorType>(type) &&
           (scalar->isHalfTy() || scalar->isBFloatTy() || scalar->isFloatTy() || scalar->isDoubleTy());
  }

  /// Which operation it is, whatever it says of rounding and of exceptions: none of these has modes on a GPU.
  static Intrinsic::ID withoutModes(const IntrinsicInst &intrinsic) {
    StringRef name = Intrinsic::getBaseName(intrinsic.getIntrinsicID());
    if (!name.consume_front("llvm.experimental.constrained."))
      return intrinsic.getIntrinsicID();
    return Intrinsic::lookupIntrinsicID(("llvm." + name).str());
  }

  SmallVector<Value *, 2> replaced(IRBuilder<> &builder, IntrinsicInst &intrinsic) const {
    Intrinsic::ID id = withoutModes(intrinsic);
    switch (id) {
    case Intrinsic::sin:
    case Intrinsic::cos:
    case Intrinsic::tan:
    case Intrinsic::asin:
    case Intrinsic::acos:
    case Intrinsic::atan:
    case Intrinsic::sinh:
    case Intrinsic::cosh:
    case Intrinsic::tanh:
    case Intrinsic::exp:
    case Intrinsic::exp2:
    case Intrinsic::exp10:
    case Intrinsic::log:
    case Intrinsic::log2:
    case Intrinsic::log10:
      return function(builder, id, intrinsic, operands(intrinsic, 1));
    case Intrinsic::pow:
    case Intrinsic::atan2:
      return function(builder, id, intrinsic, operands(intrinsic, 2));
    case Intrinsic::powi:
      return power(builder, intrinsic);
    case Intrinsic::sincos:
      return both(builder, intrinsic);
    case Intrinsic::sincospi: {
      Value *angle = intrinsic.getArgOperand(0);
      if (!isKnown(angle->getType()))
        return {};
      return {call(builder, "sinpi", angle->getType(), angle), call(builder, "cospi", angle->getType(), angle)};
    }
    case Intrinsic::modf:
      return parts(builder, intrinsic.getArgOperand(0));
    case Intrinsic::lround:
    case Intrinsic::llround:
      return rounded(builder, Intrinsic::round, intrinsic);
    case Intrinsic::lrint:
    case Intrinsic::llrint:
      return rounded(builder, Intrinsic::rint, intrinsic);
    default:
      return {};
    }
  }

  SmallVector<Value *, 2> function(IRBuilder<> &builder, Intrinsic::ID id, IntrinsicInst &intrinsic,
                                   ArrayRef<Value *> values) const {
    Type *type = values.front()->getType();
    if (!isKnown(type))
      return {};
    if (isNative(id, type->getScalarType(), isApproximate(intrinsic), nvidia, hasTanh)) {
      bool stays = !isa<ConstrainedFPIntrinsic>(intrinsic);
      return stays ? SmallVector<Value *, 2>() : one(builder.CreateIntrinsic(id, {type}, values));
    }
    bool fast = nvidia && isApproximate(intrinsic) && !type->getScalarType()->isDoubleTy() && isFastInLibdevice(id);
    std::string name = Intrinsic::getBaseName(id).drop_front(strlen("llvm.")).str();
    return one(call(builder, fast ? "fast_" + name : name, type, values));
  }

  /// A power with an integer that is known is a few multiplications, which LLVM knows.
  SmallVector<Value *, 2> power(IRBuilder<> &builder, IntrinsicInst &intrinsic) const {
    Value *exponent = intrinsic.getArgOperand(1);
    bool isUnrolled = isa<ConstantInt>(exponent) && !intrinsic.getFunction()->hasOptSize();
    if (!isKnown(intrinsic.getType()) || isUnrolled || exponent->getType()->getScalarSizeInBits() > 32)
      return {};
    Value *number = builder.CreateSExtOrTrunc(exponent, builder.getInt32Ty());
    return one(call(builder, nvidia ? "powi" : "pown", intrinsic.getType(), {intrinsic.getArgOperand(0), number}));
  }

  /// Of both functions, as two operations: LLVM takes vectors of the one with two results apart at the wrong time.
  SmallVector<Value *, 2> both(IRBuilder<> &builder, IntrinsicInst &intrinsic) const {
    Value *angle = intrinsic.getArgOperand(0);
    Type *type = angle->getType();
    if (!isKnown(type))
      return {};
    if (isNative(Intrinsic::sin, type->getScalarType(), isApproximate(intrinsic), nvidia, hasTanh))
      return {builder.CreateUnaryIntrinsic(Intrinsic::sin, angle), builder.CreateUnaryIntrinsic(Intrinsic::cos, angle)};
    return {call(builder, "sin", type, angle), call(builder, "cos", type, angle)};
  }

  /// The fraction and the whole number, both with the sign of the number (C23, 7.12.6.12).
  SmallVector<Value *, 2> parts(IRBuilder<> &builder, Value *number) const {
    if (!isKnown(number->getType()))
      return {};
    Value *whole = builder.CreateUnaryIntrinsic(Intrinsic::trunc, number);
    Value *rest = builder.CreateFSub(number, whole);
    // What is infinite has no fraction.
    Value *isWhole = builder.CreateFCmpOEQ(number, whole);
    Value *fraction = builder.CreateSelect(isWhole, ConstantFP::getZero(number->getType()), rest);
    return {builder.CreateBinaryIntrinsic(Intrinsic::copysign, fraction, number), whole};
  }

  /// What does not fit is any number.
  SmallVector<Value *, 2> rounded(IRBuilder<> &builder, Intrinsic::ID how, IntrinsicInst &intrinsic) const {
    if (!isKnown(intrinsic.getArgOperand(0)->getType()))
      return {};
    Value *whole = builder.CreateUnaryIntrinsic(how, intrinsic.getArgOperand(0));
    return one(builder.CreateFreeze(builder.CreateFPToSI(whole, intrinsic.getType())));
  }

  /// A call for each element; integers are the same for all of them.
  Value *call(IRBuilder<> &builder, const std::string &name, Type *type, ArrayRef<Value *> values) const {
    auto *vector = dyn_cast<FixedVectorType>(type);
    if (!vector)
      return callScalar(builder, name, type, values);
    Value *result = PoisonValue::get(vector);
    for (unsigned i = 0; i < vector->getNumElements(); ++i) {
      SmallVector<Value *, 2> elements;
      for (Value *value : values)
        elements.push_back(value->getType()->isVectorTy() ? builder.CreateExtractElement(value, i) : value);
      result = builder.CreateInsertElement(result, callScalar(builder, name, vector->getElementType(), elements), i);
    }
    return result;
  }

  /// libdevice has f32 and f64, ocml has f16 as well.
  Value *callScalar(IRBuilder<> &builder, const std::string &name, Type *type, ArrayRef<Value *> values) const {
    bool isHalf = type->isHalfTy() || type->isBFloatTy();
    if (isHalf && (nvidia || type->isBFloatTy())) {
      SmallVector<Value *, 2> wide;
      for (Value *value : values)
        wide.push_back(value->getType() == type ? builder.CreateFPExt(value, builder.getFloatTy()) : value);
      return builder.CreateFPTrunc(callScalar(builder, name, builder.getFloatTy(), wide), type);
    }
    StringRef bits = type->isDoubleTy() ? "f64" : type->isFloatTy() ? "f32" : "f16";
    std::string symbol = nvidia ? "__nv_" + name + (type->isFloatTy() ? "f" : "") : "__ocml_" + name + "_" + bits.str();
    SmallVector<Type *, 2> types;
    for (Value *value : values)
      types.push_back(value->getType());
    CallInst *call =
        builder.CreateCall(module.getOrInsertFunction(symbol, FunctionType::get(type, types, false)), values);
    // LLVM would make operations with modes of what it inlines here, and crash on some of them for AMD.
    if (builder.GetInsertBlock()->getParent()->hasFnAttribute(Attribute::StrictFP))
      call->setIsNoInline();
    return call;
  }
};

} // namespace

/// Calls the vendor's device library for mathematical operations that the code generator does not know. `hasTanh` is
/// whether the chip has an instruction for it.
extern "C" GpulowerOutcome gpulowerCallMathFunctions(LLVMModuleRef moduleRef, bool hasTanh) {
  return contain([&]() -> std::string {
    Module &module = *unwrap(moduleRef);
    MathFunctions functions(module, hasTanh);
    for (Function &function : module) {
      // What is the library's own would call itself, and what nobody calls needs none.
      StringRef name = function.getName();
      bool isOfALibrary = name.starts_with("__nv_") || name.starts_with("__ocml");
      if (isOfALibrary || (function.hasLocalLinkage() && function.use_empty()))
        continue;
      for (Instruction &instruction : make_early_inc_range(instructions(function))) {
        SmallVector<Value *, 2> results = functions.replaced(instruction);
        if (results.empty())
          continue;
        Value *result = results.front();
        if (results.size() == 2) {
          IRBuilder<> builder(&instruction);
          Value *pair = builder.CreateInsertValue(PoisonValue::get(instruction.getType()), results[0], 0);
          result = builder.CreateInsertValue(pair, results[1], 1);
        }
        instruction.replaceAllUsesWith(result);
        instruction.eraseFromParent();
      }
    }
    return "";
  });
}
