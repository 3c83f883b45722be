#ifndef GPULOWER_BRIDGE_NARROW_DIVISIONS_H
#define GPULOWER_BRIDGE_NARROW_DIVISIONS_H

namespace llvm {
class FunctionPass;
class PassBuilder;
} // namespace llvm

namespace gpulower {

/// Makes the pass of code generation that divides numbers of 64 bits in 32 bits where they fit.
llvm::FunctionPass *createNarrowDivisions();

/// Adds the pass that asks of divisions of 64 bits, when they are run, whether their numbers fit into 32.
void addDivisions(llvm::PassBuilder &builder);

} // namespace gpulower

#endif
