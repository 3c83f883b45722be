#ifndef GPULOWER_BRIDGE_NARROW_DIVISIONS_H
#define GPULOWER_BRIDGE_NARROW_DIVISIONS_H

namespace llvm {
class FunctionPass;
} // namespace llvm

namespace gpulower {

/// Makes the pass of code generation that divides numbers of 64 bits in 32 bits where they fit.
llvm::FunctionPass *createNarrowDivisions();

} // namespace gpulower

#endif
