// What LLVM's pipeline does differently for PTX, which is compiled once more.
#ifndef GPULOWER_BRIDGE_FOR_PTX_H
#define GPULOWER_BRIDGE_FOR_PTX_H

#include "llvm/Passes/PassBuilder.h"

namespace gpulower {

/// Adds our passes to the pipelines that `builder` will build.
void addPassesForPtx(llvm::PassBuilder &builder);

/// PTX ISA: div.rn, div.full and sqrt.rn; ptxas makes of them a fast path and a call.
bool becomesBranches(const llvm::Instruction &instruction);

} // namespace gpulower

#endif
