// Operations that name their rounding mode. LLVM 22's back ends for GPUs round to nearest whatever the mode is, or end in a
// fatal error: what is asked for is computed here, before anything is optimised, or refused.

#include "bytes.h"
#include "contain.h"

#include "llvm-c/Core.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/Module.h"

using namespace llvm;
using gpulower::contain;

namespace {

/// How a float type is made of bits.
struct Format {
  unsigned bits, mantissa;
  int bias;

  explicit Format(Type *type)
      : bits(type->getScalarSizeInBits()), mantissa(type->getScalarType()->getFPMantissaWidth() - 1),
        bias((1 << (bits - mantissa - 2)) - 1) {}
  uint64_t infinity() const { return uint64_t((1 << (bits - mantissa - 1)) - 1) << mantissa; }
};

/// Integers in the shape of a type.
Type *integersLike(Type *shape, unsigned bits) {
  Type *scalar = IntegerType::get(shape->getContext(), bits);
  if (auto *vector = dyn_cast<VectorType>(shape))
    return VectorType::get(scalar, vector->getElementCount());
  return scalar;
}

/// `fptrunc` in integers, with every mode, subnormal numbers, overflow and NaN (IEEE 754, sections 4.3 and 7.4).
Value *truncate(IRBuilder<> &builder, Value *input, Type *result, RoundingMode mode) {
  Format from(input->getType()), to(result);
  Type *wide = integersLike(input->getType(), from.bits);
  auto number = [&](uint64_t value) { return ConstantInt::get(wide, value); };
  auto *zero = number(0), *one = number(1);

  Value *bits = builder.CreateBitCast(input, wide);
  Value *negative = builder.CreateICmpSLT(bits, zero);
  Value *magnitude = builder.CreateAnd(bits, number((uint64_t(1) << (from.bits - 1)) - 1));
  Value *exponent = builder.CreateLShr(magnitude, number(from.mantissa));

  // The exponent in the new format, less 1: below 0 are numbers that are subnormal there.
  int rebias = from.bias - to.bias;
  unsigned drop = from.mantissa - to.mantissa;
  Value *isSubnormal = builder.CreateICmpULE(exponent, number(rebias));
  if (rebias == 0)
    isSubnormal = ConstantInt::getFalse(isSubnormal->getType());
  Value *fraction = builder.CreateAnd(magnitude, number((uint64_t(1) << from.mantissa) - 1));
  Value *whole = builder.CreateOr(fraction, number(uint64_t(1) << from.mantissa));
  Value *significand = builder.CreateSelect(builder.CreateICmpEQ(exponent, zero), fraction, whole);
  Value *effective = builder.CreateBinaryIntrinsic(Intrinsic::umax, exponent, one);
  Value *distance = builder.CreateSub(number(rebias + 1 + drop), effective);
  // Beyond this nothing but a sticky bit is left.
  distance = builder.CreateBinaryIntrinsic(Intrinsic::umin, distance, number(from.mantissa + 2));
  Value *shift = builder.CreateSelect(isSubnormal, distance, number(drop));
  Value *value = builder.CreateSelect(isSubnormal, significand,
                                      builder.CreateSub(magnitude, number(uint64_t(rebias) << from.mantissa)));

  Value *kept = builder.CreateLShr(value, shift);
  Value *lost = builder.CreateAnd(value, builder.CreateSub(builder.CreateShl(one, shift), one));
  Value *inexact = builder.CreateICmpNE(lost, zero);
  Value *never = ConstantInt::getFalse(inexact->getType());
  Value *up = never, *toInfinity = never;
  switch (mode) {
  case RoundingMode::TowardPositive:
    toInfinity = builder.CreateNot(negative);
    up = builder.CreateAnd(inexact, toInfinity);
    break;
  case RoundingMode::TowardNegative:
    toInfinity = negative;
    up = builder.CreateAnd(inexact, toInfinity);
    break;
  case RoundingMode::NearestTiesToAway:
    toInfinity = ConstantInt::getTrue(inexact->getType());
    up = builder.CreateICmpUGE(lost, builder.CreateShl(one, builder.CreateSub(shift, one)));
    break;
  default:
    break;
  }
  kept = builder.CreateAdd(kept, builder.CreateZExt(up, wide));

  Value *infinity = number(to.infinity()), *sourceInfinity = number(from.infinity());
  Value *overflows = builder.CreateICmpUGE(kept, infinity);
  Value *becomesInfinity = builder.CreateOr(toInfinity, builder.CreateICmpEQ(magnitude, sourceInfinity));
  kept = builder.CreateSelect(overflows, builder.CreateSelect(becomesInfinity, infinity, number(to.infinity() - 1)), kept);
  Value *quiet = builder.CreateOr(builder.CreateLShr(fraction, number(drop)),
                                  number(to.infinity() | uint64_t(1) << (to.mantissa - 1)));
  kept = builder.CreateSelect(builder.CreateICmpUGT(magnitude, sourceInfinity), quiet, kept);

  Value *sign = builder.CreateShl(builder.CreateLShr(bits, number(from.bits - 1)), number(to.bits - 1));
  Value *narrow = builder.CreateTrunc(builder.CreateOr(kept, sign), integersLike(result, to.bits));
  return builder.CreateBitCast(narrow, result);
}

/// What PTX calls an operation on these types, with a place for the mode; empty where it has no modes.
std::string nameInPtx(const ConstrainedFPIntrinsic &call) {
  Type *type = call.getType(), *from = call.getArgOperand(0)->getType();
  if (!type->isFloatTy() && !type->isDoubleTy())
    return "";
  std::string letter = type->isFloatTy() ? "f" : "d";
  std::string integer = from->isIntegerTy(32) ? "i" : from->isIntegerTy(64) ? "ll" : "";
  std::string natural = from->isIntegerTy(32) ? "ui" : from->isIntegerTy(64) ? "ull" : "";
  switch (call.getIntrinsicID()) {
  case Intrinsic::experimental_constrained_fadd:
  case Intrinsic::experimental_constrained_fsub:
    return "add.*." + letter;
  case Intrinsic::experimental_constrained_fmul:
    return "mul.*." + letter;
  case Intrinsic::experimental_constrained_fdiv:
    return "div.*." + letter;
  case Intrinsic::experimental_constrained_fma:
    return "fma.*." + letter;
  case Intrinsic::experimental_constrained_sqrt:
    return "sqrt.*." + letter;
  case Intrinsic::experimental_constrained_sitofp:
    return integer.empty() ? "" : integer + "2" + letter + ".*";
  case Intrinsic::experimental_constrained_uitofp:
    return natural.empty() ? "" : natural + "2" + letter + ".*";
  case Intrinsic::experimental_constrained_fptrunc:
    return from->isDoubleTy() && type->isFloatTy() ? "d2f.*" : "";
  default:
    return "";
  }
}

/// NVIDIA's instruction for an operation and its mode.
Value *nvidiaInstruction(IRBuilder<> &builder, const ConstrainedFPIntrinsic &call, RoundingMode mode) {
  std::string name = nameInPtx(call);
  StringRef spelling = mode == RoundingMode::TowardZero       ? "rz"
                       : mode == RoundingMode::TowardPositive ? "rp"
                       : mode == RoundingMode::TowardNegative ? "rm"
                                                              : "";
  size_t place = name.find('*');
  if (place == std::string::npos || spelling.empty())
    return nullptr;
  name.replace(place, 1, spelling);
  Intrinsic::ID id = Intrinsic::lookupIntrinsicID("llvm.nvvm." + name);
  if (id == Intrinsic::not_intrinsic)
    return nullptr;
  SmallVector<Value *> operands;
  for (unsigned i = 0; i < call.getNonMetadataArgCount(); ++i)
    operands.push_back(call.getArgOperand(i));
  if (call.getIntrinsicID() == Intrinsic::experimental_constrained_fsub)
    operands[1] = builder.CreateFNeg(operands[1]);
  return builder.CreateIntrinsic(id, operands);
}

/// The intrinsic of a name that differs in `experimental.constrained` alone.
Value *plainIntrinsic(IRBuilder<> &builder, const ConstrainedFPIntrinsic &call) {
  StringRef name = Intrinsic::getBaseName(call.getIntrinsicID());
  if (!name.consume_front("llvm.experimental.constrained."))
    return nullptr;
  Intrinsic::ID id = Intrinsic::lookupIntrinsicID(("llvm." + name).str());
  if (id == Intrinsic::not_intrinsic || !Intrinsic::isOverloaded(id))
    return nullptr;
  SmallVector<Value *> operands;
  for (unsigned i = 0; i < call.getNonMetadataArgCount(); ++i)
    operands.push_back(call.getArgOperand(i));
  // Of `lround` and `lrint` the result, of `powi` and `ldexp` the exponent has a type of its own.
  SmallVector<Type *, 2> types{call.getType()};
  if (operands.back()->getType() != call.getType())
    types.push_back(operands.back()->getType());
  return builder.CreateIntrinsic(id, types, operands);
}

/// Operations that round to nearest, as all of them do that name no mode. GPUs have no exceptions to be exact about.
Value *plainInstruction(IRBuilder<> &builder, const ConstrainedFPIntrinsic &call) {
  Value *first = call.getArgOperand(0), *second = call.arg_size() > 1 ? call.getArgOperand(1) : nullptr;
  Type *type = call.getType();
  switch (call.getIntrinsicID()) {
  case Intrinsic::experimental_constrained_fadd:
    return builder.CreateFAdd(first, second);
  case Intrinsic::experimental_constrained_fsub:
    return builder.CreateFSub(first, second);
  case Intrinsic::experimental_constrained_fmul:
    return builder.CreateFMul(first, second);
  case Intrinsic::experimental_constrained_fdiv:
    return builder.CreateFDiv(first, second);
  case Intrinsic::experimental_constrained_fptrunc:
    return builder.CreateFPTrunc(first, type);
  case Intrinsic::experimental_constrained_sitofp:
    return builder.CreateSIToFP(first, type);
  case Intrinsic::experimental_constrained_uitofp:
    return builder.CreateUIToFP(first, type);
  case Intrinsic::experimental_constrained_fptosi:
    return builder.CreateFPToSI(first, type);
  case Intrinsic::experimental_constrained_fptoui:
    return builder.CreateFPToUI(first, type);
  case Intrinsic::experimental_constrained_fpext:
    return builder.CreateFPExt(first, type);
  case Intrinsic::experimental_constrained_frem:
    return builder.CreateFRem(first, second);
  case Intrinsic::experimental_constrained_fcmp:
  case Intrinsic::experimental_constrained_fcmps:
    return builder.CreateFCmp(cast<ConstrainedFPCmpIntrinsic>(call).getPredicate(), first, second);
  default:
    return plainIntrinsic(builder, call);
  }
}

bool isTruncation(const ConstrainedFPIntrinsic &call) {
  auto isKnown = [](Type *type) {
    type = type->getScalarType();
    return type->isHalfTy() || type->isBFloatTy() || type->isFloatTy() || type->isDoubleTy();
  };
  return call.getIntrinsicID() == Intrinsic::experimental_constrained_fptrunc && isKnown(call.getType()) &&
         isKnown(call.getArgOperand(0)->getType());
}

/// Replaces a call by what its mode asks for. Returns why that cannot be done.
std::string honour(ConstrainedFPIntrinsic &call) {
  std::optional<RoundingMode> mode = call.getRoundingMode();
  if (mode && *mode == RoundingMode::Dynamic)
    return "";
  bool nvidia = call.getModule()->getTargetTriple().isNVPTX();
  IRBuilder<> builder(&call);
  builder.setFastMathFlags(isa<FPMathOperator>(call) ? call.getFastMathFlags() : FastMathFlags());
  Value *result = nullptr;
  // Some have no mode: conversions to integers, comparisons, floor and others.
  if (!mode || *mode == RoundingMode::NearestTiesToEven) {
    result = plainInstruction(builder, call);
    if (!result)
      return "";
  }
  if (!result && nvidia)
    result = nvidiaInstruction(builder, call, *mode);
  if (!result && isTruncation(call))
    result = truncate(builder, call.getArgOperand(0), call.getType(), *mode);
  if (result) {
    call.replaceAllUsesWith(result);
    call.eraseFromParent();
    return "";
  }
  std::string place;
  if (DebugLoc location = call.getDebugLoc())
    place = (", line " + Twine(location.getLine())).str();
  return ("in function " + call.getFunction()->getName() + place + ": " + call.getCalledFunction()->getName() +
          " asks for " + *convertRoundingModeToStr(*mode) + ", for which " + (nvidia ? "NVIDIA's" : "AMD's") +
          " chips have no instruction; round to nearest (round.tonearest), or compute the result from integers")
      .str();
}

} // namespace

/// Operations of a module with a rounding mode of their own.
extern "C" GpulowerOutcome gpulowerHonourRounding(LLVMModuleRef moduleRef) {
  return contain([&]() -> std::string {
    for (Function &function : *unwrap(moduleRef))
      for (Instruction &instruction : make_early_inc_range(instructions(function)))
        if (auto *call = dyn_cast<ConstrainedFPIntrinsic>(&instruction))
          if (std::string refusal = honour(*call); !refusal.empty())
            return refusal;
    return "";
  });
}
