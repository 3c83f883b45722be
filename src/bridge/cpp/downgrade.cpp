// The order of the steps by which a module becomes readable for older releases, and what the steps share.

#include "downgrade.h"

#include "llvm-c/Core.h"
#include "llvm/IR/DebugInfo.h"
#include "llvm/IR/Instructions.h"

using namespace llvm;

namespace gpulower {

bool Reader::knowsIntrinsic(const Function &intrinsic) const {
  // The full name first: some types of an overloaded intrinsic are older than others.
  return isOlderIntrinsic(intrinsic) ||
         knows(GpulowerIntrinsic, intrinsic.getName()) ||
         knows(GpulowerIntrinsic,
               Intrinsic::getBaseName(intrinsic.getIntrinsicID()));
}

/// The name of the function or the global that the value is a part of.
static StringRef placeName(const Value *place) {
  if (const auto *instruction = dyn_cast_or_null<Instruction>(place))
    place = instruction->getFunction();
  if (const auto *argument = dyn_cast_or_null<Argument>(place))
    place = argument->getParent();
  return place ? place->getName() : StringRef();
}

void Reader::report(bool refused, GpulowerKind kind, StringRef name,
                    const Value *place) {
  callbacks.report(callbacks.closure, refused, kind, bytes(name),
                   bytes(placeName(place)));
}

Function *Reader::olderIntrinsic(Module &module, StringRef name,
                                 FunctionType *type) {
  Function *present = module.getFunction(name);
  if (present && present->getFunctionType() == type && isOlderIntrinsic(*present))
    return present;
  // The same name with today's type: its calls are about to be replaced.
  if (present)
    present->setName(name + ".replaced");
  Function *older =
      Function::Create(type, GlobalValue::ExternalLinkage, name, module);
  // Attributes of today's argument list, if the name is known today. Readers add their own.
  older->setAttributes(AttributeList());
  olderIntrinsics.insert(older);
  return older;
}

SmallVector<CallInst *> callsOf(Function &intrinsic) {
  SmallVector<CallInst *> calls;
  for (User *user : intrinsic.users())
    if (auto *call = dyn_cast<CallInst>(user);
        call && call->getCalledOperand() == &intrinsic)
      calls.push_back(call);
  return calls;
}

void replaceCall(CallInst &call, Value *result) {
  if (!call.use_empty())
    call.replaceAllUsesWith(result);
  if (result && isa<Instruction>(result) && !result->hasName())
    result->takeName(&call);
  call.eraseFromParent();
}

/// Declarations of intrinsics that nothing uses any more say nothing, and may be unknown.
static void removeUnusedIntrinsics(Module &module) {
  for (Function &function : make_early_inc_range(module))
    if (function.isDeclaration() && function.use_empty() &&
        function.getName().starts_with("llvm."))
      function.eraseFromParent();
}

} // namespace gpulower

using namespace gpulower;

extern "C" GpulowerOutcome gpulowerDowngrade(LLVMModuleRef moduleRef,
                                             const GpulowerReader *callbacks) {
  return contain([&]() -> std::string {
    Module &module = *unwrap(moduleRef);
    Reader reader(*callbacks);
    if (!reader.reads("debug information") && StripDebugInfo(module))
      reader.leftOut(GpulowerConstruct, "debug information", nullptr);
    // Operations on memory may become calls of intrinsics.
    expandAtomics(module, reader);
    rewriteIntrinsics(module, reader);
    if (module.getTargetTriple().isNVPTX())
      rewriteNvptx(module, reader);
    if (module.getTargetTriple().isAMDGCN())
      rewriteAmdgpu(module, reader);
    rewriteConstants(module, reader);
    removeUnusedIntrinsics(module);
    removeHints(module, reader);
    refuseUnknown(module, reader);
    return "";
  });
}
