// Conversions of one signed bit to bfloat, for NVIDIA. LLVM 22's NVPTX back end selects `selp 1, 0` for them, as for an unsigned
// bit, and -1 for all other types (the patterns of `sint_to_fp` of i1 in LLVM's NVPTXInstrInfo.td).

#include "code_generation.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"

using namespace llvm;

void gpulower::convertSignedBits(Module &module) {
  for (Function &function : module)
    for (Instruction &instruction : make_early_inc_range(instructions(function))) {
      auto *conversion = dyn_cast<SIToFPInst>(&instruction);
      if (!conversion || !conversion->getSrcTy()->isIntOrIntVectorTy(1) || !conversion->getDestTy()->getScalarType()->isBFloatTy())
        continue;
      IRBuilder<> builder(conversion);
      Type *type = conversion->getDestTy();
      Value *selected = builder.CreateSelect(conversion->getOperand(0), ConstantFP::get(type, -1.0), ConstantFP::getZero(type));
      selected->takeName(conversion);
      conversion->replaceAllUsesWith(selected);
      conversion->eraseFromParent();
    }
}
