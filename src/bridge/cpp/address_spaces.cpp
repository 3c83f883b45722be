// Addresses whose memory is known. LLVM infers it while it generates code, after atomic operations are written out,
// which would keep addresses of all memory. And it infers only as far as an address is used as one: of `&shared[i][8]`
// that is passed on it takes `&shared[i]`, and casts that, which may be outside of shared memory where `i` is negative.
// The window of shared memory is 4 GiB, so that the sum is then off by as much.

#include "code_generation.h"
#include "passes.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Operator.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/Scalar/InferAddressSpaces.h"

using namespace llvm;

namespace gpulower {
namespace {

/// `addrspacecast` of known memory to any memory, as an instruction or a constant.
bool isToAnyMemory(const Value *value) {
  auto *cast = dyn_cast<AddrSpaceCastOperator>(value);
  return cast && cast->getDestAddressSpace() == 0;
}

/// Whether an address may be outside of the memory that it is an address in: it is neither that of a variable, nor
/// within one.
bool mayBeOutside(const Value *pointer) {
  if (auto *element = dyn_cast<GEPOperator>(pointer))
    return !element->isInBounds();
  return !isa<GlobalVariable, AllocaInst, Argument>(pointer);
}

bool castsAnything(const Function &function) {
  return llvm::any_of(instructions(function), [](const Instruction &instruction) {
    return isToAnyMemory(&instruction) || llvm::any_of(instruction.operands(), [](const Use &operand) {
             auto *constant = dyn_cast<ConstantExpr>(operand);
             return constant && (isToAnyMemory(constant) || llvm::any_of(constant->operands(), [](const Use &inner) {
                                   return isToAnyMemory(inner);
                                 }));
           });
  });
}

/// A thread's own memory, which the NVPTX back end casts itself, is cast where it is taken.
void castSlots(Function &function) {
  constexpr unsigned privateSpace = 5;
  for (Instruction &instruction : make_early_inc_range(instructions(function))) {
    auto *slot = dyn_cast<AllocaInst>(&instruction);
    auto isOutside = [](User *user) { return isa<GetElementPtrInst>(user) && mayBeOutside(user); };
    if (!slot || slot->getAddressSpace() != 0 || llvm::none_of(slot->users(), isOutside))
      continue;
    auto *own = new AddrSpaceCastInst(slot, PointerType::get(function.getContext(), privateSpace), "",
                                      std::next(slot->getIterator()));
    auto *any = new AddrSpaceCastInst(own, slot->getType(), "", std::next(own->getIterator()));
    slot->replaceUsesWithIf(any, [&](Use &use) { return isa<GetElementPtrInst>(use.getUser()); });
  }
}

/// An element of what was cast is an element, cast. (Of vectors of pointers, it is not.)
void castElements(Function &function) {
  SmallSetVector<Instruction *, 8> casts;
  for (Instruction &instruction : make_early_inc_range(instructions(function))) {
    auto *element = dyn_cast<GetElementPtrInst>(&instruction);
    auto *cast = element ? dyn_cast<AddrSpaceCastOperator>(element->getPointerOperand()) : nullptr;
    if (!cast || !isToAnyMemory(cast) || !mayBeOutside(cast->getPointerOperand()) || element->getType()->isVectorTy())
      continue;
    SmallVector<Value *> indices(element->indices());
    auto *known = GetElementPtrInst::Create(element->getSourceElementType(), cast->getPointerOperand(), indices,
                                            element->isInBounds() ? GEPNoWrapFlags::inBounds() : GEPNoWrapFlags::none(),
                                            element->getName(), element->getIterator());
    auto *whole = new AddrSpaceCastInst(known, element->getType(), "", element->getIterator());
    known->setDebugLoc(element->getDebugLoc());
    whole->setDebugLoc(element->getDebugLoc());
    element->replaceAllUsesWith(whole);
    element->eraseFromParent();
    if (auto *made = dyn_cast<AddrSpaceCastInst>(cast))
      casts.insert(made);
  }
  for (Instruction *cast : casts)
    if (cast->use_empty())
      cast->eraseFromParent();
}

/// Whether anything was there to be inferred.
bool inferIn(Function &function, FunctionAnalysisManager &analyses) {
  if (function.hasOptNone() || !castsAnything(function))
    return false;
  InferAddressSpacesPass().run(function, analyses);
  castElements(function);
  return true;
}

struct InferWhereCast : PassInfoMixin<InferWhereCast> {
  PreservedAnalyses run(Function &function, FunctionAnalysisManager &analyses) {
    if (!inferIn(function, analyses))
      return PreservedAnalyses::all();
    PreservedAnalyses preserved;
    preserved.preserveSet<CFGAnalyses>();
    return preserved;
  }
};

} // namespace

void addInference(PassBuilder &builder) { nameFunctionPass<InferWhereCast>(builder, "gpulower-infer-address-spaces"); }

void inferAddressSpaces(Module &module, TargetMachine &machine, FunctionAnalysisManager &functions) {
  // Nor does LLVM then.
  if (machine.getOptLevel() == CodeGenOptLevel::None)
    return;
  for (Function &function : module) {
    if (module.getTargetTriple().isNVPTX())
      castSlots(function);
    inferIn(function, functions);
  }
}

} // namespace gpulower
