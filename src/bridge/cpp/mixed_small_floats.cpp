// Kernels that compute with bfloats and with halves. LLVM's InstCombine (LLVM 22, `visitFPTrunc`) makes `fptrunc` to
// half, of an operation on floats that were extended from bfloat, an operation on halves: the 8 bits of a bfloat's
// significand are fewer than a half's 11, and that its exponents reach further is forgotten. 70000 * 0.5 is infinite
// then, and small numbers are rounded twice. Where one function and those that it calls, which may be inlined, have both,
// bfloats are extended by their bits, which LLVM does not look through.

#include "code_generation.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace gpulower {
namespace {

void extendByBits(FPExtInst &extension) {
  IRBuilder<> builder(&extension);
  Value *bfloat = extension.getOperand(0);
  Type *type = bfloat->getType();
  Value *bits = builder.CreateBitCast(bfloat, type->getWithNewType(builder.getInt16Ty()));
  Value *wide = builder.CreateZExt(bits, type->getWithNewType(builder.getInt32Ty()));
  Value *number = builder.CreateBitCast(builder.CreateShl(wide, 16), type->getWithNewType(builder.getFloatTy()));
  Value *extended = builder.CreateFPExt(number, extension.getType());
  extended->takeName(&extension);
  extension.replaceAllUsesWith(extended);
  extension.eraseFromParent();
}

} // namespace

void separateBfloatsFromHalves(Module &module) {
  DenseMap<Function *, SmallVector<FPExtInst *>> bfloats;
  DenseMap<Function *, SmallSetVector<Function *, 4>> callees;
  SmallPtrSet<Function *, 8> halves;
  for (Function &function : module)
    for (Instruction &instruction : instructions(function)) {
      if (auto *call = dyn_cast<CallBase>(&instruction);
          call && call->getCalledFunction() && !call->getCalledFunction()->isDeclaration())
        callees[&function].insert(call->getCalledFunction());
      auto *extension = dyn_cast<FPExtInst>(&instruction);
      if (extension && extension->getSrcTy()->getScalarType()->isBFloatTy())
        bfloats[&function].push_back(extension);
      bool isOfHalves = extension ? extension->getSrcTy()->getScalarType()->isHalfTy()
                                  : isa<FPTruncInst>(instruction) && instruction.getType()->getScalarType()->isHalfTy();
      if (isOfHalves)
        halves.insert(&function);
    }
  if (halves.empty())
    return;
  for (Function &function : module) {
    if (bfloats.empty())
      return;
    SetVector<Function *> reached;
    reached.insert(&function);
    for (size_t next = 0; next < reached.size(); ++next)
      if (auto found = callees.find(reached[next]); found != callees.end())
        reached.insert_range(found->second);
    if (none_of(reached, [&](Function *other) { return halves.contains(other); }))
      continue;
    for (Function *other : reached) {
      for (FPExtInst *extension : bfloats.lookup(other))
        extendByBits(*extension);
      bfloats.erase(other);
    }
  }
}

} // namespace gpulower
