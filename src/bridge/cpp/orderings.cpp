// Atomic read-modify-write operations for NVIDIA with the ordering and the scope that they were given. LLVM 22's NVPTX
// back end writes `atom.add`, which is relaxed and of the GPU, whatever was said; its loops of compare-and-swap keep
// both.

#include "code_generation.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace gpulower {
namespace {

/// What an operation and its type are called in PTX, and the constraint of the operand; empty where LLVM makes a loop.
struct Spelling {
  StringRef operation, type, constraint;
};

Spelling spellingOf(const AtomicRMWInst &atomic, unsigned sm) {
  Type *type = atomic.getType();
  using Op = AtomicRMWInst;
  if (atomic.getOperation() == Op::FAdd) {
    if (type->isFloatTy())
      return {"add", "f32", "f"};
    if (type->isDoubleTy() && sm >= 60)
      return {"add", "f64", "d"};
    if (type->isHalfTy() && sm >= 70)
      return {"add.noftz", "f16", "h"};
    if (type->isBFloatTy() && sm >= 90)
      return {"add.noftz", "bf16", "h"};
    return {};
  }
  unsigned bits = atomic.getDataLayout().getTypeSizeInBits(type);
  if (type->isVectorTy() || (bits != 32 && bits != 64))
    return {};
  bool wide = bits == 64;
  StringRef constraint = wide ? "l" : "r";
  switch (atomic.getOperation()) {
  case Op::Add:
  case Op::Sub:
    return {"add", wide ? "u64" : "u32", constraint};
  case Op::And:
    return {"and", wide ? "b64" : "b32", constraint};
  case Op::Or:
    return {"or", wide ? "b64" : "b32", constraint};
  case Op::Xor:
    return {"xor", wide ? "b64" : "b32", constraint};
  case Op::Xchg:
    return {"exch", wide ? "b64" : "b32", constraint};
  case Op::Max:
    return {"max", wide ? "s64" : "s32", constraint};
  case Op::Min:
    return {"min", wide ? "s64" : "s32", constraint};
  case Op::UMax:
    return {"max", wide ? "u64" : "u32", constraint};
  case Op::UMin:
    return {"min", wide ? "u64" : "u32", constraint};
  case Op::UIncWrap:
    return wide ? Spelling{} : Spelling{"inc", "u32", constraint};
  case Op::UDecWrap:
    return wide ? Spelling{} : Spelling{"dec", "u32", constraint};
  default:
    return {};
  }
}

/// `.sys`, `.gpu`, `.cluster`, `.cta`, or nothing for one thread. Others are LLVM's to complain about.
std::optional<StringRef> scopeOf(const LLVMContext &context, SyncScope::ID id) {
  if (id == SyncScope::System)
    return ".sys";
  if (id == SyncScope::SingleThread)
    return "";
  std::optional<StringRef> name = context.getSyncScopeName(id);
  return StringSwitch<std::optional<StringRef>>(name.value_or(""))
      .Case("device", StringRef(".gpu"))
      .Case("cluster", StringRef(".cluster"))
      .Case("block", StringRef(".cta"))
      .Default(std::nullopt);
}

std::optional<StringRef> spaceOf(unsigned addressSpace) {
  switch (addressSpace) {
  case 0:
    return "";
  case 1:
    return ".global";
  case 3:
    return ".shared";
  case 7:
    return ".shared::cluster";
  default:
    return std::nullopt;
  }
}

/// Whether another block of a cluster may get at this one's shared memory.
bool reachesOtherBlocks(const Module &module) {
  auto isAddress = [](const Instruction &instruction) {
    auto *call = dyn_cast<CallBase>(&instruction);
    auto *assembly = call ? dyn_cast<InlineAsm>(call->getCalledOperand()) : nullptr;
    return assembly && StringRef(assembly->getAsmString()).contains("mapa");
  };
  return llvm::any_of(module, [&](const Function &function) {
    if (function.isIntrinsic())
      return !function.use_empty() && function.getName().contains("mapa");
    return llvm::any_of(instructions(function), isAddress);
  });
}

/// `atom` with everything in its name. The ordering is below sequential consistency, for which there is a fence.
void writeOut(AtomicRMWInst &atomic, const Spelling &spelling, StringRef scope, StringRef space,
              AtomicOrdering ordering) {
  Value *pointer = atomic.getPointerOperand();
  StringRef semantics = ordering == AtomicOrdering::Monotonic ? ".relaxed"
                        : ordering == AtomicOrdering::Acquire ? ".acquire"
                        : ordering == AtomicOrdering::Release ? ".release"
                                                              : ".acq_rel";
  IRBuilder<> builder(&atomic);
  Type *type = atomic.getType();
  Value *operand = atomic.getValOperand();
  Type *bits = builder.getIntNTy(atomic.getDataLayout().getTypeSizeInBits(type));
  bool isFloat = type->isFloatTy() || type->isDoubleTy();
  Type *passed = isFloat && atomic.getOperation() == AtomicRMWInst::FAdd ? type : bits;
  if (atomic.getOperation() == AtomicRMWInst::Sub)
    operand = builder.CreateNeg(operand);
  operand = operand->getType()->isPointerTy() ? builder.CreatePtrToInt(operand, passed)
                                              : builder.CreateBitCast(operand, passed);
  // What a kernel is given points to global memory, as LLVM's own code generation for NVIDIA has it.
  auto *argument = dyn_cast<Argument>(getUnderlyingObject(pointer));
  if (space.empty() && argument && argument->getParent()->getCallingConv() == CallingConv::PTX_Kernel) {
    pointer = builder.CreateAddrSpaceCast(pointer, builder.getPtrTy(1));
    space = ".global";
  }
  Value *address = builder.CreatePtrToInt(pointer, builder.getInt64Ty());
  std::string text =
      ("atom" + semantics + scope + space + "." + spelling.operation + "." + spelling.type + " $0, [$1], $2;").str();
  std::string constraints = ("=" + spelling.constraint + ",l," + spelling.constraint + ",~{memory}").str();
  auto *assembly = InlineAsm::get(FunctionType::get(passed, {address->getType(), passed}, false), text, constraints,
                                  /*hasSideEffects=*/true);
  Value *result = builder.CreateCall(assembly, {address, operand});
  result = type->isPointerTy() ? builder.CreateIntToPtr(result, type) : builder.CreateBitCast(result, type);
  result->takeName(&atomic);
  atomic.replaceAllUsesWith(result);
  atomic.eraseFromParent();
}

/// Who sees shared memory is the block.
template <typename Atomic> void narrowScope(Atomic &atomic) {
  if (atomic.getPointerAddressSpace() == 3 && atomic.getSyncScopeID() != SyncScope::SingleThread)
    atomic.setSyncScopeID(atomic.getContext().getOrInsertSyncScopeID("block"));
}

void qualify(AtomicRMWInst &atomic, unsigned sm) {
  LLVMContext &context = atomic.getContext();
  AtomicOrdering ordering = atomic.getOrdering();
  SyncScope::ID id = atomic.getSyncScopeID();
  unsigned addressSpace = atomic.getPointerAddressSpace();
  std::optional<StringRef> scope = scopeOf(context, id), space = spaceOf(addressSpace);
  if (!scope || !space)
    return;
  if (scope->empty()) {
    // One thread is in order with itself.
    atomic.setOrdering(AtomicOrdering::Monotonic);
    return;
  }
  IRBuilder<> builder(&atomic);
  if (ordering == AtomicOrdering::SequentiallyConsistent) {
    // As LLVM does for compare-and-swap: the fence is what other such operations are ordered by.
    builder.CreateFence(ordering, id);
    ordering = AtomicOrdering::Acquire;
    atomic.setOrdering(ordering);
  }
  Spelling spelling = spellingOf(atomic, sm);
  if (spelling.operation.empty())
    return;
  // `atom` alone is relaxed, and of the GPU.
  bool plain = ordering == AtomicOrdering::Monotonic && (*scope != ".sys" || addressSpace == 3);
  if (plain)
    return;
  if (sm >= 70) {
    writeOut(atomic, spelling, *scope, *space, ordering);
    return;
  }
  // `atom` has no orderings there.
  if (isReleaseOrStronger(ordering))
    builder.CreateFence(AtomicOrdering::Release, id);
  if (isAcquireOrStronger(ordering)) {
    builder.SetInsertPoint(atomic.getNextNode());
    builder.CreateFence(AtomicOrdering::Acquire, id);
  }
  atomic.setOrdering(AtomicOrdering::Monotonic);
}

/// LLVM writes compare-and-swap of 128 bits with its ordering, and knows no sequential consistency there.
void qualifyWide(AtomicCmpXchgInst &swap) {
  if (swap.getMergedOrdering() != AtomicOrdering::SequentiallyConsistent ||
      swap.getCompareOperand()->getType()->getPrimitiveSizeInBits() != 128)
    return;
  IRBuilder<>(&swap).CreateFence(AtomicOrdering::SequentiallyConsistent, swap.getSyncScopeID());
  swap.setSuccessOrdering(AtomicOrdering::Acquire);
  swap.setFailureOrdering(AtomicOrdering::Acquire);
}

} // namespace

void qualifyAtomics(Module &module, StringRef chip) {
  unsigned sm = 0;
  // `sm_90a`: the digits.
  if (!chip.consume_front("sm_") || chip.consumeInteger(10, sm))
    return;
  bool clusters = reachesOtherBlocks(module);
  for (Function &function : module)
    for (Instruction &instruction : make_early_inc_range(instructions(function))) {
      if (auto *atomic = dyn_cast<AtomicRMWInst>(&instruction)) {
        if (!clusters)
          narrowScope(*atomic);
        qualify(*atomic, sm);
      } else if (auto *swap = dyn_cast<AtomicCmpXchgInst>(&instruction)) {
        if (!clusters)
          narrowScope(*swap);
        qualifyWide(*swap);
      }
    }
}

} // namespace gpulower
