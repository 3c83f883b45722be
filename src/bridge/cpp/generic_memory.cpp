// LLVM IR of producers that know no address spaces: variables and stack slots in address space 0. NVIDIA's back end
// moves them to where they belong (`GenericToNVVM`, `NVPTXLowerAlloca`); AMD's wants it done, and fails on them.

#include "contain.h"

#include "llvm-c/Core.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/AMDGPUAddrSpace.h"

using namespace llvm;
using gpulower::contain;

namespace {

void moveVariable(GlobalVariable &variable) {
  auto *moved =
      new GlobalVariable(*variable.getParent(), variable.getValueType(), variable.isConstant(), variable.getLinkage(),
                         /*Initializer=*/nullptr, "", &variable, variable.getThreadLocalMode(),
                         AMDGPUAS::GLOBAL_ADDRESS, variable.isExternallyInitialized());
  moved->copyAttributesFrom(&variable);
  moved->copyMetadata(&variable, /*Offset=*/0);
  moved->setComdat(variable.getComdat());
  moved->takeName(&variable);
  // Another address of what nobody uses would be a use. It may be in its own initializer.
  variable.removeDeadConstantUsers();
  if (!variable.use_empty())
    variable.replaceAllUsesWith(ConstantExpr::getAddrSpaceCast(moved, variable.getType()));
  if (variable.hasInitializer())
    moved->setInitializer(variable.getInitializer());
  variable.eraseFromParent();
}

void moveSlot(AllocaInst &slot) {
  auto *moved = new AllocaInst(slot.getAllocatedType(), AMDGPUAS::PRIVATE_ADDRESS, slot.getArraySize(), slot.getAlign(),
                               "", slot.getIterator());
  moved->takeName(&slot);
  moved->setDebugLoc(slot.getDebugLoc());
  // How long it lives is said of the slot itself, and of no address of it.
  for (User *user : make_early_inc_range(slot.users()))
    if (auto *lifetime = dyn_cast<LifetimeIntrinsic>(user))
      lifetime->eraseFromParent();
  slot.replaceAllUsesWith(new AddrSpaceCastInst(moved, slot.getType(), "", slot.getIterator()));
  slot.eraseFromParent();
}

} // namespace

/// Moves what a module for AMD has in address space 0 to the memory that it is in.
extern "C" GpulowerOutcome gpulowerLeaveGenericMemory(LLVMModuleRef moduleRef) {
  return contain([&]() -> std::string {
    Module &module = *unwrap(moduleRef);
    for (GlobalVariable &variable : make_early_inc_range(module.globals())) {
      if (variable.isThreadLocal())
        return ("the variable " + variable.getName() + " is thread-local, and AMD's chips have no such memory").str();
      if (variable.getAddressSpace() == AMDGPUAS::FLAT_ADDRESS && !variable.getName().starts_with("llvm."))
        moveVariable(variable);
    }
    SmallVector<AllocaInst *> slots;
    for (Function &function : module)
      for (Instruction &instruction : instructions(function))
        if (auto *slot = dyn_cast<AllocaInst>(&instruction))
          if (slot->getAddressSpace() == AMDGPUAS::FLAT_ADDRESS)
            slots.push_back(slot);
    for (AllocaInst *slot : slots)
      moveSlot(*slot);
    return "";
  });
}
