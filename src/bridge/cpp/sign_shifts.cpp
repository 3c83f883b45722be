// Shifts that move the lowest bit to that of the sign, or may. LLVM's NVPTX back end makes a wide product of `shl nsw`
// that is extended: `mul.wide.s16` by 1 << 15, which is -32768 there. So -1 << 15 is 32768 in 32 bits, and should be
// -32768. (LLVM 22, NVPTXISelLowering.cpp; so does `mul.wide.s32` by 1 << 31.) Where nothing is said of the sign, it
// shifts and extends.

#include "code_generation.h"

#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PatternMatch.h"

using namespace llvm;
using namespace llvm::PatternMatch;

namespace gpulower {

void forgetSignsOfShifts(Module &module) {
  for (Function &function : module)
    for (Instruction &instruction : instructions(function)) {
      const APInt *amount = nullptr;
      if (instruction.getOpcode() != Instruction::Shl)
        continue;
      bool isLess = match(instruction.getOperand(1), m_APInt(amount)) && amount->ult(amount->getBitWidth() - 1);
      if (!isLess)
        instruction.setHasNoSignedWrap(false);
    }
}

} // namespace gpulower
