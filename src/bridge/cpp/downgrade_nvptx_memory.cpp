// The order of memory accesses on NVPTX, where older back ends have no means for it or silently leave it out.

#include "downgrade.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/Support/AtomicOrdering.h"

using namespace llvm;

namespace gpulower {

/// The memory barrier for a scope of the NVPTX back end (PTX ISA, "membar": the same as `fence.sc`).
static void insertBarrier(Instruction *before, SyncScope::ID scope) {
  LLVMContext &context = before->getContext();
  IRBuilder<> builder(before);
  StringRef name = context.getSyncScopeName(scope).value_or("");
  if (name == "singlethread") {
    auto *type = FunctionType::get(builder.getVoidTy(), /*isVarArg=*/false);
    builder.CreateCall(InlineAsm::get(type, "", "~{memory}", /*hasSideEffects=*/true));
    return;
  }
  Intrinsic::ID id = StringSwitch<Intrinsic::ID>(name)
                         .Case("block", Intrinsic::nvvm_membar_cta)
                         .Cases({"cluster", "device"}, Intrinsic::nvvm_membar_gl)
                         .Default(Intrinsic::nvvm_membar_sys);
  builder.CreateIntrinsic(id, {});
}

/// Memory barriers around an access, of as much as its ordering asks for.
static void surround(Instruction &access, AtomicOrdering ordering, SyncScope::ID scope) {
  if (isReleaseOrStronger(ordering))
    insertBarrier(&access, scope);
  if (isAcquireOrStronger(ordering))
    insertBarrier(access.getNextNode(), scope);
}

/// Up to LLVM 19 there are no fences, and no loads and stores but relaxed ones.
static void orderAccesses(Instruction &instruction) {
  if (auto *fence = dyn_cast<FenceInst>(&instruction)) {
    insertBarrier(fence, fence->getSyncScopeID());
    fence->eraseFromParent();
  } else if (auto *load = dyn_cast<LoadInst>(&instruction);
             load && isStrongerThanMonotonic(load->getOrdering())) {
    surround(*load, load->getOrdering(), load->getSyncScopeID());
    load->setOrdering(AtomicOrdering::Monotonic);
  } else if (auto *store = dyn_cast<StoreInst>(&instruction);
             store && isStrongerThanMonotonic(store->getOrdering())) {
    surround(*store, store->getOrdering(), store->getSyncScopeID());
    store->setOrdering(AtomicOrdering::Monotonic);
  }
}

/// Whether the operation is an instruction of PTX. LLVM up to 22 makes those relaxed, whatever the IR says; the others it
/// makes loops of compare-and-swap, which are ordered from LLVM 21 on.
static bool isInstruction(const AtomicRMWInst &atomic) {
  Type *type = atomic.getType();
  bool word = type->isIntegerTy(32) || type->isIntegerTy(64) || type->isPointerTy();
  switch (atomic.getOperation()) {
  case AtomicRMWInst::Xchg:
  case AtomicRMWInst::Add:
  case AtomicRMWInst::Sub:
  case AtomicRMWInst::And:
  case AtomicRMWInst::Or:
  case AtomicRMWInst::Xor:
  case AtomicRMWInst::Max:
  case AtomicRMWInst::Min:
  case AtomicRMWInst::UMax:
  case AtomicRMWInst::UMin:
    return word;
  case AtomicRMWInst::UIncWrap:
  case AtomicRMWInst::UDecWrap:
    return type->isIntegerTy(32);
  case AtomicRMWInst::FAdd:
    return type->isFloatTy() || type->isDoubleTy();
  default:
    return false;
  }
}

/// Up to LLVM 20 compare-and-swap is relaxed, whatever the IR says.
static void orderExchanges(Instruction &instruction) {
  if (auto *exchange = dyn_cast<AtomicCmpXchgInst>(&instruction)) {
    surround(*exchange, exchange->getMergedOrdering(), exchange->getSyncScopeID());
    exchange->setSuccessOrdering(AtomicOrdering::Monotonic);
    exchange->setFailureOrdering(AtomicOrdering::Monotonic);
  } else if (auto *atomic = dyn_cast<AtomicRMWInst>(&instruction);
             atomic && !isInstruction(*atomic)) {
    surround(*atomic, atomic->getOrdering(), atomic->getSyncScopeID());
    atomic->setOrdering(AtomicOrdering::Monotonic);
  }
}

void orderMemoryOnNvptx(Module &module, Reader &reader) {
  bool accesses = !reader.reads("ordered loads, stores and fences on NVPTX");
  bool exchanges = !reader.reads("ordered compare-and-swap on NVPTX");
  for (Function &function : module)
    for (Instruction &instruction : make_early_inc_range(instructions(function))) {
      // First, since a fence is gone after the other.
      if (exchanges)
        orderExchanges(instruction);
      if (accesses)
        orderAccesses(instruction);
    }
}

} // namespace gpulower
