// What older AMDGPU back ends have for 32 bits only, under other names, or in another flag.

#include "downgrade.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVectorExtras.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsAMDGPU.h"

using namespace llvm;

namespace gpulower {

/// The arguments of an intrinsic that move between lanes; the others say how. Empty for other intrinsics.
static SmallVector<unsigned, 2> movedArguments(Intrinsic::ID id) {
  switch (id) {
  case Intrinsic::amdgcn_readfirstlane:
  case Intrinsic::amdgcn_readlane:
  case Intrinsic::amdgcn_permlane64:
    return {0};
  case Intrinsic::amdgcn_writelane:
    return {0, 2};
  case Intrinsic::amdgcn_permlane16:
  case Intrinsic::amdgcn_permlanex16:
  case Intrinsic::amdgcn_update_dpp:
    return {0, 1};
  default:
    return {};
  }
}

/// The form of the intrinsic that moves 32 bits.
static Function *onWords(CallInst &call, Reader &reader) {
  Module &module = *call.getModule();
  Type *word = Type::getInt32Ty(call.getContext());
  Intrinsic::ID id = call.getIntrinsicID();
  if (id == Intrinsic::amdgcn_update_dpp)
    return Intrinsic::getOrInsertDeclaration(&module, id, {word});
  SmallVector<Type *> types(call.getFunctionType()->params());
  for (unsigned index : movedArguments(id))
    types[index] = word;
  return reader.olderIntrinsic(module, Intrinsic::getBaseName(id),
                               FunctionType::get(word, types, /*isVarArg=*/false));
}

/// A value as a vector of words; null if its bits do not fit.
static Value *toWords(IRBuilder<> &builder, Value *value, unsigned bits) {
  Type *type = value->getType();
  Type *integer = builder.getIntNTy(bits);
  value = type->isPointerTy() ? builder.CreatePtrToInt(value, integer)
                              : builder.CreateBitCast(value, integer);
  if (bits < 32)
    value = builder.CreateZExt(value, builder.getInt32Ty());
  return builder.CreateBitCast(
      value, FixedVectorType::get(builder.getInt32Ty(), divideCeil(bits, 32)));
}

static Value *fromWords(IRBuilder<> &builder, Value *words, Type *type, unsigned bits) {
  Value *value = builder.CreateBitCast(
      words, builder.getIntNTy(std::max(bits, 32u)));
  if (bits < 32)
    value = builder.CreateTrunc(value, builder.getIntNTy(bits));
  return type->isPointerTy() ? builder.CreateIntToPtr(value, type)
                             : builder.CreateBitCast(value, type);
}

/// Moves a value word by word; null if it cannot be taken apart.
static Value *moveWords(CallInst &call, Reader &reader) {
  Type *type = call.getType();
  unsigned bits = call.getModule()->getDataLayout().getTypeSizeInBits(type);
  bool simple = type->isIntOrIntVectorTy() || type->isFPOrFPVectorTy() ||
                type->isPointerTy();
  if (!simple || (bits > 32 && bits % 32 != 0))
    return nullptr;
  IRBuilder<> builder(&call);
  Function *intrinsic = onWords(call, reader);
  SmallVector<Value *> arguments(call.args());
  SmallVector<unsigned, 2> moved = movedArguments(call.getIntrinsicID());
  SmallVector<Value *> whole = map_to_vector(moved, [&](unsigned index) {
    return toWords(builder, arguments[index], bits);
  });
  Value *result = PoisonValue::get(whole.front()->getType());
  for (unsigned word = 0; word < divideCeil(bits, 32); ++word) {
    for (auto [index, value] : zip(moved, whole))
      arguments[index] = builder.CreateExtractElement(value, word);
    result = builder.CreateInsertElement(
        result, builder.CreateCall(intrinsic, arguments), word);
  }
  return fromWords(builder, result, type, bits);
}

/// `llvm.ldexp` was an intrinsic of the target alone.
static Value *scale(CallInst &call, Reader &reader) {
  Type *type = call.getType();
  Value *exponent = call.getArgOperand(1);
  if (!(type->isHalfTy() || type->isFloatTy() || type->isDoubleTy()) ||
      exponent->getType()->getIntegerBitWidth() > 32)
    return nullptr;
  IRBuilder<> builder(&call);
  exponent = builder.CreateSExt(exponent, builder.getInt32Ty());
  StringRef name = type->isHalfTy()    ? "llvm.amdgcn.ldexp.f16"
                   : type->isFloatTy() ? "llvm.amdgcn.ldexp.f32"
                                       : "llvm.amdgcn.ldexp.f64";
  Function *older = reader.olderIntrinsic(
      *call.getModule(), name,
      FunctionType::get(type, {type, builder.getInt32Ty()}, /*isVarArg=*/false));
  return builder.CreateCall(older, {call.getArgOperand(0), exponent});
}

/// To even is how `rint` rounds, unless somebody changed that; older releases read `roundeven`, but cannot compile it.
static void replaceRounding(Module &module, Reader &reader) {
  if (reader.reads("llvm.roundeven on AMDGPU"))
    return;
  SmallVector<CallInst *> calls;
  for (Function &function : module)
    if (function.getIntrinsicID() == Intrinsic::roundeven)
      append_range(calls, callsOf(function));
  for (CallInst *call : calls)
    replaceCall(*call, IRBuilder<>(call).CreateUnaryIntrinsic(
                           Intrinsic::rint, call->getArgOperand(0), call));
}

/// What an intrinsic can be replaced by; null if by nothing.
static Value *replacement(CallInst &call, Reader &reader) {
  if (call.getIntrinsicID() == Intrinsic::ldexp)
    return scale(call, reader);
  return movedArguments(call.getIntrinsicID()).empty() ? nullptr
                                                       : moveWords(call, reader);
}

/// The version of the code object decides what hidden arguments a kernel gets. Up to LLVM 16 no flag says it, and 4 is
/// made; up to 18 the flag has another name, which newer releases read too.
static void sayCodeObjectVersion(Module &module, Reader &reader) {
  constexpr StringLiteral name = "amdhsa_code_object_version";
  NamedMDNode *flags = module.getModuleFlagsMetadata();
  auto *version = mdconst::extract_or_null<ConstantInt>(module.getModuleFlag(name));
  if (!version || !flags) {
    // Every release makes its own default of that.
    if (!reader.reads("no code object version"))
      reader.refuse(GpulowerConstruct, "no code object version", nullptr);
    return;
  }
  if (reader.reads("the flag amdhsa_code_object_version"))
    return;
  uint64_t number = version->getZExtValue();
  if (number != 400 && !reader.reads("code object version 5"))
    return reader.refuse(GpulowerConstruct, "code object version 5", nullptr);
  if (number > 500)
    return reader.refuse(GpulowerConstruct, "code object version 6", nullptr);
  for (unsigned index = 0; index < flags->getNumOperands(); ++index) {
    MDNode *flag = flags->getOperand(index);
    auto *key = dyn_cast_or_null<MDString>(flag->getOperand(1));
    if (key && key->getString() == name)
      flags->setOperand(
          index, MDNode::get(module.getContext(),
                             {flag->getOperand(0),
                              MDString::get(module.getContext(),
                                            "amdgpu_code_object_version"),
                              flag->getOperand(2)}));
  }
}

void rewriteAmdgpu(Module &module, Reader &reader) {
  SmallVector<Function *> unknown;
  for (Function &function : module)
    if (function.isIntrinsic() && !reader.knowsIntrinsic(function))
      unknown.push_back(&function);
  for (Function *intrinsic : unknown)
    for (CallInst *call : callsOf(*intrinsic))
      if (Value *value = replacement(*call, reader))
        replaceCall(*call, value);
  replaceRounding(module, reader);
  sayCodeObjectVersion(module, reader);
}

} // namespace gpulower
