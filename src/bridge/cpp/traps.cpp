// Traps on RDNA 3, where `s_trap 2` does nothing in privileged mode. LLVM 22 makes several blocks of `llvm.trap` there, at the
// end of the function, and goes on behind them: pseudo-instructions of the blocks between are never expanded. As an object
// that is a fatal error ("Unsupported instruction"), in the text the instructions are missing.

#include "code_generation.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"

using namespace llvm;

/// What `SIInstrInfo::insertSimulatedTrap` of LLVM emits. The last jump is to the instruction before it: the wave stays halted.
static constexpr StringLiteral trap = "s_trap 2\n"
                                      "s_sendmsg_rtn_b32 s0, sendmsg(MSG_RTN_GET_DOORBELL)\n"
                                      "s_mov_b32 ttmp2, m0\n"
                                      "s_waitcnt lgkmcnt(0)\n"
                                      "s_and_b32 s0, s0, 0x3ff\n"
                                      "s_bitset1_b32 s0, 10\n"
                                      "s_mov_b32 m0, s0\n"
                                      "s_sendmsg sendmsg(MSG_INTERRUPT)\n"
                                      "s_mov_b32 m0, ttmp2\n"
                                      "s_sethalt 5\n"
                                      "s_branch 0xfffe";

void gpulower::writeTrapsOut(Module &module, StringRef chip) {
  // FeaturePrivEnabledTrap2NopBug in LLVM's AMDGPU.td.
  if (!StringSwitch<bool>(chip)
           .Cases({"gfx1100", "gfx1101", "gfx1102", "gfx1103", "gfx11-generic"}, true)
           .Default(false))
    return;
  for (Function &function : module)
    for (Instruction &instruction : make_early_inc_range(instructions(function))) {
      auto *call = dyn_cast<IntrinsicInst>(&instruction);
      if (!call || call->getIntrinsicID() != Intrinsic::trap)
        continue;
      IRBuilder<> builder(call);
      auto *assembly = InlineAsm::get(FunctionType::get(builder.getVoidTy(), false), trap, "~{s0},~{memory}",
                                      /*hasSideEffects=*/true);
      builder.CreateCall(assembly)->setDoesNotThrow();
      call->eraseFromParent();
    }
}
