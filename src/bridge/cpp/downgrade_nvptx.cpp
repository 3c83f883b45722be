// What older NVPTX back ends have under other names, say with other means, or would silently not do.

#include "downgrade.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVectorExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

using namespace llvm;

namespace gpulower {

/// Calls the intrinsic of this name with the arguments in front of `call`.
static CallInst *callOlder(CallInst &call, Reader &reader, StringRef name,
                           ArrayRef<Value *> arguments) {
  SmallVector<Type *> types =
      map_to_vector(arguments, [](Value *value) { return value->getType(); });
  Function *older = reader.olderIntrinsic(
      *call.getModule(), name,
      FunctionType::get(call.getType(), types, /*isVarArg=*/false));
  return IRBuilder<>(&call).CreateCall(older, arguments);
}

/// The names of barriers up to LLVM 20.
static Value *barrier(CallInst &call, Reader &reader) {
  SmallVector<Value *> arguments(call.args());
  auto *number = dyn_cast<ConstantInt>(arguments.front());
  switch (call.getIntrinsicID()) {
  case Intrinsic::nvvm_barrier_cta_sync_aligned_all:
    if (number && number->isZero())
      return callOlder(call, reader, "llvm.nvvm.barrier0", {});
    return callOlder(call, reader, "llvm.nvvm.barrier.n", arguments);
  case Intrinsic::nvvm_barrier_cta_sync_aligned_count:
    return callOlder(call, reader, "llvm.nvvm.barrier", arguments);
  case Intrinsic::nvvm_barrier_cta_sync_all:
    return callOlder(call, reader, "llvm.nvvm.barrier.sync", arguments);
  default:
    return callOlder(call, reader, "llvm.nvvm.barrier.sync.cnt", arguments);
  }
}

/// An absolute value or a power of two: one name for each type, not one for all. Null for types that had none.
static Value *nameByType(CallInst &call, Reader &reader, StringRef name,
                         bool packedHalves) {
  Type *type = call.getType();
  StringRef suffix = type->isFloatTy()    ? "f"
                     : type->isDoubleTy() ? "d"
                                          : "";
  if (packedHalves && type->isHalfTy())
    suffix = "f16";
  if (packedHalves && type->isVectorTy() && type->getScalarType()->isHalfTy())
    suffix = "f16x2";
  if (suffix.empty())
    return nullptr;
  return callOlder(call, reader, (name + suffix).str(), {call.getArgOperand(0)});
}

static CallInst *callAssembly(CallInst &call, StringRef text, StringRef constraints,
                              ArrayRef<Value *> arguments) {
  SmallVector<Type *> types =
      map_to_vector(arguments, [](Value *value) { return value->getType(); });
  auto *type = FunctionType::get(call.getType(), types, /*isVarArg=*/false);
  CallInst *result = IRBuilder<>(&call).CreateCall(
      InlineAsm::get(type, text, constraints, /*hasSideEffects=*/true), arguments);
  result->setConvergent();
  return result;
}

/// Asynchronous copies of which some bytes are zeroes (`cp.async` with a size of the source).
static Value *asynchronousCopy(CallInst &call) {
  auto [cache, size] = StringSwitch<std::pair<StringRef, StringRef>>(
                           call.getCalledFunction()->getName())
                           .EndsWith("ca.shared.global.4.s", {"ca", "4"})
                           .EndsWith("ca.shared.global.8.s", {"ca", "8"})
                           .EndsWith("ca.shared.global.16.s", {"ca", "16"})
                           .Default({"cg", "16"});
  std::string text =
      ("cp.async." + cache + ".shared.global [$0], [$1], " + size + ", $2;").str();
  return callAssembly(call, text, "l,l,r,~{memory}",
                      SmallVector<Value *>(call.args()));
}

/// A quotient that may be approximate: the exact one is slower, and right.
static Value *quotient(CallInst &call) {
  return IRBuilder<>(&call).CreateFDiv(call.getArgOperand(0),
                                       call.getArgOperand(1));
}

/// What an intrinsic can be replaced by; null if by nothing.
static Value *replacement(CallInst &call, Reader &reader) {
  switch (call.getIntrinsicID()) {
  case Intrinsic::nvvm_barrier_cta_sync_aligned_all:
  case Intrinsic::nvvm_barrier_cta_sync_aligned_count:
  case Intrinsic::nvvm_barrier_cta_sync_all:
  case Intrinsic::nvvm_barrier_cta_sync_count:
    return barrier(call, reader);
  case Intrinsic::nvvm_fabs:
    return nameByType(call, reader, "llvm.nvvm.fabs.", /*packedHalves=*/false);
  case Intrinsic::nvvm_fabs_ftz:
    return nameByType(call, reader, "llvm.nvvm.fabs.ftz.", /*packedHalves=*/false);
  case Intrinsic::nvvm_ex2_approx:
    return nameByType(call, reader, "llvm.nvvm.ex2.approx.", /*packedHalves=*/true);
  case Intrinsic::nvvm_ex2_approx_ftz:
    return nameByType(call, reader, "llvm.nvvm.ex2.approx.ftz.", /*packedHalves=*/false);
  case Intrinsic::nvvm_activemask:
    return callAssembly(call, "activemask.b32 $0;", "=r", {});
  case Intrinsic::nvvm_cp_async_ca_shared_global_4_s:
  case Intrinsic::nvvm_cp_async_ca_shared_global_8_s:
  case Intrinsic::nvvm_cp_async_ca_shared_global_16_s:
  case Intrinsic::nvvm_cp_async_cg_shared_global_16_s:
    return asynchronousCopy(call);
  case Intrinsic::nvvm_div_full:
  case Intrinsic::nvvm_div_full_ftz:
    return quotient(call);
  default:
    return nullptr;
  }
}

/// An attribute of a kernel, and the keys of `!nvvm.annotations` that said it before.
struct Annotation {
  StringRef attribute;
  SmallVector<StringRef, 3> keys;
};

static const Annotation annotations[] = {
    {"nvvm.maxntid", {"maxntidx", "maxntidy", "maxntidz"}},
    {"nvvm.reqntid", {"reqntidx", "reqntidy", "reqntidz"}},
    {"nvvm.cluster_dim", {"cluster_dim_x", "cluster_dim_y", "cluster_dim_z"}},
    {"nvvm.maxclusterrank", {"maxclusterrank"}},
    {"nvvm.minctasm", {"minctasm"}},
    {"nvvm.maxnreg", {"maxnreg"}},
};

static void annotate(Function &function, StringRef key, Metadata *value) {
  LLVMContext &context = function.getContext();
  function.getParent()->getOrInsertNamedMetadata("nvvm.annotations")->addOperand(
      MDNode::get(context, {ValueAsMetadata::get(&function),
                            MDString::get(context, key), value}));
}

static Metadata *number(LLVMContext &context, unsigned value) {
  return ConstantAsMetadata::get(
      ConstantInt::get(Type::getInt32Ty(context), value));
}

/// Says an attribute of the form "32,4,1" as annotations.
static void annotate(Function &function, const Annotation &annotation,
                     StringRef value) {
  SmallVector<StringRef, 3> parts;
  value.split(parts, ',');
  for (auto [key, part] : zip(annotation.keys, parts)) {
    unsigned size = 0;
    if (!part.trim().getAsInteger(10, size))
      annotate(function, key, number(function.getContext(), size));
  }
}

/// Parameters in constant memory that are not copied (`__grid_constant__`), counted from 1.
static void annotateGridConstants(Function &function, Reader &reader) {
  LLVMContext &context = function.getContext();
  SmallVector<Metadata *> constants;
  for (Argument &argument : function.args())
    if (argument.hasAttribute("nvvm.grid_constant"))
      constants.push_back(number(context, argument.getArgNo() + 1));
  if (constants.empty())
    return;
  if (reader.knows(GpulowerAttribute, "annotation grid_constant"))
    annotate(function, "grid_constant", MDNode::get(context, constants));
  else
    reader.refuse(GpulowerAttribute, "nvvm.grid_constant", &function);
}

/// Attributes of kernels were annotations up to LLVM 20. Newer releases make attributes of them again.
static void annotateKernels(Module &module, Reader &reader) {
  for (Function &function : module) {
    if (!reader.knows(GpulowerAttribute, "nvvm.grid_constant"))
      annotateGridConstants(function, reader);
    for (Attribute attribute : function.getAttributes().getFnAttrs()) {
      if (!attribute.isStringAttribute() ||
          !attribute.getKindAsString().starts_with("nvvm."))
        continue;
      StringRef name = attribute.getKindAsString();
      if (reader.knows(GpulowerAttribute, name))
        continue;
      const auto *annotation = find_if(annotations, [&](const Annotation &entry) {
        return entry.attribute == name;
      });
      bool known = annotation != std::end(annotations) &&
                   reader.knows(GpulowerAttribute,
                                ("annotation " + annotation->keys.front()).str());
      if (known)
        annotate(function, *annotation, attribute.getValueAsString());
      else if (name == "nvvm.maxclusterrank")
        // An upper bound, which the chip has anyway.
        reader.leftOut(GpulowerAttribute, name, &function);
      else
        reader.refuse(GpulowerAttribute, name, &function);
    }
  }
}

void rewriteNvptx(Module &module, Reader &reader) {
  SmallVector<Function *> unknown;
  for (Function &function : module)
    if (function.isIntrinsic() && !reader.knowsIntrinsic(function))
      unknown.push_back(&function);
  for (Function *intrinsic : unknown)
    for (CallInst *call : callsOf(*intrinsic))
      if (Value *value = replacement(*call, reader))
        replaceCall(*call, value);
  orderMemoryOnNvptx(module, reader);
  annotateKernels(module, reader);
}

} // namespace gpulower
