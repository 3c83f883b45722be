// Conversions between floats and single bits, for which LLVM 22's back ends have patterns that are wrong. NVPTX (those
// of i1 in LLVM's NVPTXInstrInfo.td): of a signed bit it makes the bfloat 1 (`selp 1, 0`), and -1 of all other types;
// and of a float it makes the bit that says whether the float *is* zero, taken as an integer (`setp.eq 0`). AMDGPU
// (FPToI1Pat in SIInstructions.td): of a float it makes the bit that says whether it is 1, or -1 where signed
// (`v_cmp_eq_f32 1.0`), so that 1.5 becomes 0.
//
// ptxas 13.0 has been seen to drop `cvt.rn.f32.u32` of `selp.b32 1, 0` and to store the integer: on NVIDIA a bit
// chooses the float.

#include "code_generation.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace {

/// What the conversion is to be replaced with; null if it is right.
Value *converted(CastInst &conversion) {
  IRBuilder<> builder(&conversion);
  Value *source = conversion.getOperand(0);
  Type *type = conversion.getDestTy();
  bool isNvidia = conversion.getModule()->getTargetTriple().isNVPTX();
  if (isa<SIToFPInst, UIToFPInst>(conversion) && source->getType()->isIntOrIntVectorTy(1) &&
      (isNvidia || (isa<SIToFPInst>(conversion) && type->getScalarType()->isBFloatTy()))) {
    double one = isa<SIToFPInst>(conversion) ? -1.0 : 1.0;
    return builder.CreateSelect(source, ConstantFP::get(type, one), ConstantFP::getZero(type));
  }
  if (isa<FPToSIInst, FPToUIInst>(conversion) && type->isIntOrIntVectorTy(1)) {
    Type *wide = type->getWithNewBitWidth(32);
    return builder.CreateTrunc(builder.CreateCast(conversion.getOpcode(), source, wide), type);
  }
  return nullptr;
}

} // namespace

void gpulower::convertSingleBits(Module &module) {
  for (Function &function : module)
    for (Instruction &instruction : make_early_inc_range(instructions(function))) {
      auto *conversion = dyn_cast<CastInst>(&instruction);
      Value *right = conversion ? converted(*conversion) : nullptr;
      if (!right)
        continue;
      right->takeName(conversion);
      conversion->replaceAllUsesWith(right);
      conversion->eraseFromParent();
    }
}
