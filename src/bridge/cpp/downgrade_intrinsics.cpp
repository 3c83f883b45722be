// Intrinsics of every target that older releases lack, or have with other arguments.

#include "downgrade.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVectorExtras.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace gpulower {

/// Lifetimes were of a number of bytes up to LLVM 21. They only help to share stack memory.
static void dropLifetimes(Module &module, Reader &reader) {
  if (reader.reads("lifetime without size"))
    return;
  for (Function &function : make_early_inc_range(module))
    if (function.getIntrinsicID() == Intrinsic::lifetime_start ||
        function.getIntrinsicID() == Intrinsic::lifetime_end) {
      for (CallInst *call : callsOf(function))
        call->eraseFromParent();
      if (function.use_empty())
        function.eraseFromParent();
    }
}

/// Assumptions about attributes (`assume(i1 true) ["align"(...)]`), of which every release knows others.
static void dropAssumptions(Module &module, Reader &reader) {
  if (reader.reads("assumptions about attributes"))
    return;
  Function *assume =
      Intrinsic::getDeclarationIfExists(&module, Intrinsic::assume);
  if (!assume)
    return;
  for (CallInst *call : callsOf(*assume))
    if (call->hasOperandBundles())
      call->eraseFromParent();
}

/// The alignment was an argument behind the pointer up to LLVM 21; it is an attribute of the pointer now.
static void addAlignmentArgument(Function &intrinsic, Reader &reader) {
  bool storing = intrinsic.getReturnType()->isVoidTy();
  unsigned pointer = storing ? 1 : 0;
  SmallVector<Type *> types(intrinsic.getFunctionType()->params());
  types.insert(types.begin() + pointer + 1,
               Type::getInt32Ty(intrinsic.getContext()));
  Function *older = reader.olderIntrinsic(
      *intrinsic.getParent(), intrinsic.getName().str(),
      FunctionType::get(intrinsic.getReturnType(), types, /*isVarArg=*/false));
  for (CallInst *call : callsOf(intrinsic)) {
    IRBuilder<> builder(call);
    SmallVector<Value *> arguments(call->args());
    arguments.insert(
        arguments.begin() + pointer + 1,
        builder.getInt32(call->getParamAlign(pointer).valueOrOne().value()));
    CallInst *result = builder.CreateCall(older, arguments);
    result->copyMetadata(*call);
    replaceCall(*call, result);
  }
}

/// Three-way comparison: 1, 0 or -1.
static Value *compare(CallInst &call, bool isSigned) {
  IRBuilder<> builder(&call);
  Value *left = call.getArgOperand(0), *right = call.getArgOperand(1);
  Value *greater =
      builder.CreateICmp(isSigned ? CmpInst::ICMP_SGT : CmpInst::ICMP_UGT, left, right);
  Value *less =
      builder.CreateICmp(isSigned ? CmpInst::ICMP_SLT : CmpInst::ICMP_ULT, left, right);
  less = builder.CreateZExt(less, call.getType());
  return builder.CreateSub(builder.CreateZExt(greater, call.getType()), less);
}

static Value *sineAndCosine(CallInst &call) {
  IRBuilder<> builder(&call);
  Value *argument = call.getArgOperand(0);
  builder.setFastMathFlags(call.getFastMathFlags());
  Value *sine = builder.CreateUnaryIntrinsic(Intrinsic::sin, argument);
  Value *cosine = builder.CreateUnaryIntrinsic(Intrinsic::cos, argument);
  Value *both = PoisonValue::get(call.getType());
  both = builder.CreateInsertValue(both, sine, 0);
  return builder.CreateInsertValue(both, cosine, 1);
}

/// The function of C that an intrinsic on one `double` stands for.
static StringRef functionOfLibm(Intrinsic::ID id) {
  switch (id) {
  case Intrinsic::acos:
    return "acos";
  case Intrinsic::asin:
    return "asin";
  case Intrinsic::atan:
    return "atan";
  case Intrinsic::atan2:
    return "atan2";
  case Intrinsic::cosh:
    return "cosh";
  case Intrinsic::ldexp:
    return "ldexp";
  case Intrinsic::sinh:
    return "sinh";
  case Intrinsic::tan:
    return "tan";
  case Intrinsic::tanh:
    return "tanh";
  default:
    return "";
  }
}

/// Code generation makes calls of libm of these on hosts: they are made here. Null where there is no such function.
static Value *callLibm(CallInst &call) {
  Module &module = *call.getModule();
  StringRef function = functionOfLibm(call.getIntrinsicID());
  Type *type = call.getType();
  if (function.empty() || !(type->isFloatTy() || type->isDoubleTy()) ||
      module.getTargetTriple().isGPU())
    return nullptr;
  // The exponent of ldexp is an int.
  if (call.getIntrinsicID() == Intrinsic::ldexp &&
      !call.getArgOperand(1)->getType()->isIntegerTy(32))
    return nullptr;
  SmallVector<Type *> types = map_to_vector(
      call.args(), [](const Use &use) { return use->getType(); });
  FunctionCallee callee = module.getOrInsertFunction(
      (function + (type->isFloatTy() ? "f" : "")).str(),
      FunctionType::get(type, types, /*isVarArg=*/false));
  IRBuilder<> builder(&call);
  CallInst *result = builder.CreateCall(callee, SmallVector<Value *>(call.args()));
  result->setFastMathFlags(call.getFastMathFlags());
  return result;
}

/// Intrinsics on pointers that had no address space in their name while there was one address space for them.
static void takeAddressSpaceOff(Function &intrinsic, Reader &reader) {
  FunctionType *type = intrinsic.getFunctionType();
  auto elsewhere = [](Type *type) {
    return type->isPointerTy() && type->getPointerAddressSpace() != 0;
  };
  if (elsewhere(type->getReturnType()) || any_of(type->params(), elsewhere))
    return;
  Function *older = reader.olderIntrinsic(
      *intrinsic.getParent(),
      Intrinsic::getBaseName(intrinsic.getIntrinsicID()), type);
  for (CallInst *call : callsOf(intrinsic))
    call->setCalledFunction(older);
}

/// What an intrinsic can be replaced by; null if by nothing.
static Value *replacement(CallInst &call) {
  switch (call.getIntrinsicID()) {
  case Intrinsic::scmp:
    return compare(call, /*isSigned=*/true);
  case Intrinsic::ucmp:
    return compare(call, /*isSigned=*/false);
  case Intrinsic::sincos:
    return sineAndCosine(call);
  case Intrinsic::threadlocal_address:
    return call.getArgOperand(0);
  default:
    return callLibm(call);
  }
}

static void rewrite(Function &intrinsic, Reader &reader) {
  switch (intrinsic.getIntrinsicID()) {
  case Intrinsic::masked_load:
  case Intrinsic::masked_store:
  case Intrinsic::masked_gather:
  case Intrinsic::masked_scatter:
    return addAlignmentArgument(intrinsic, reader);
  case Intrinsic::stacksave:
  case Intrinsic::stackrestore:
  case Intrinsic::vastart:
  case Intrinsic::vaend:
  case Intrinsic::vacopy:
    return takeAddressSpaceOff(intrinsic, reader);
  default:
    for (CallInst *call : callsOf(intrinsic))
      if (Value *value = replacement(*call))
        replaceCall(*call, value);
  }
}

/// The larger or smaller number, or NaN if one of both is. Zeroes are equal and differ in their sign: of two equal numbers
/// the larger one has all bits that both have.
static Value *extremum(CallInst &call, bool maximum) {
  Type *type = call.getType();
  Value *left = call.getArgOperand(0), *right = call.getArgOperand(1);
  IRBuilder<> builder(&call);
  Type *bits = IntegerType::get(call.getContext(), type->getScalarSizeInBits());
  if (auto *vector = dyn_cast<VectorType>(type))
    bits = VectorType::get(bits, vector->getElementCount());
  Value *leftBits = builder.CreateBitCast(left, bits);
  Value *rightBits = builder.CreateBitCast(right, bits);
  Value *equal = builder.CreateBitCast(
      maximum ? builder.CreateAnd(leftBits, rightBits)
              : builder.CreateOr(leftBits, rightBits),
      type);
  Value *first = maximum ? builder.CreateFCmpOGT(left, right)
                         : builder.CreateFCmpOLT(left, right);
  Value *result = builder.CreateSelect(first, left, right);
  result = builder.CreateSelect(builder.CreateFCmpOEQ(left, right), equal, result);
  if (call.hasNoNaNs())
    return result;
  return builder.CreateSelect(builder.CreateFCmpUNO(left, right),
                              ConstantFP::getNaN(type), result);
}

/// `maximum` and `minimum`, which older releases read everywhere, and cannot compile everywhere.
static void replaceExtrema(Module &module, Reader &reader) {
  const Triple &triple = module.getTargetTriple();
  StringRef target = triple.isNVPTX()    ? "llvm.maximum and llvm.minimum on NVPTX"
                     : triple.isAMDGCN() ? "llvm.maximum and llvm.minimum on AMDGPU"
                     : triple.isX86()    ? "llvm.maximum and llvm.minimum on x86-64"
                                         : "";
  if (target.empty() || reader.reads(target))
    return;
  SmallVector<CallInst *> calls;
  for (Function &function : module)
    if (function.getIntrinsicID() == Intrinsic::maximum ||
        function.getIntrinsicID() == Intrinsic::minimum)
      append_range(calls, callsOf(function));
  for (CallInst *call : calls) {
    Type *type = call->getType()->getScalarType();
    // Chips with brain floats have these instructions for them.
    if (type->isIEEELikeFPTy() && !(triple.isNVPTX() && type->isBFloatTy()))
      replaceCall(*call, extremum(*call, call->getIntrinsicID() == Intrinsic::maximum));
  }
}

void rewriteIntrinsics(Module &module, Reader &reader) {
  dropLifetimes(module, reader);
  dropAssumptions(module, reader);
  replaceExtrema(module, reader);
  SmallVector<Function *> unknown;
  for (Function &function : module)
    if (function.isIntrinsic() && !reader.knowsIntrinsic(function))
      unknown.push_back(&function);
  for (Function *intrinsic : unknown)
    rewrite(*intrinsic, reader);
}

} // namespace gpulower
