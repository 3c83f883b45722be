#ifndef GPULOWER_BRIDGE_NARROW_INTEGERS_H
#define GPULOWER_BRIDGE_NARROW_INTEGERS_H

namespace llvm {
class FunctionPass;
class PassBuilder;
} // namespace llvm

namespace gpulower {

/// Makes the pass of code generation that divides numbers of 64 bits, and compares them in loops, in 32 bits where they
/// fit.
llvm::FunctionPass *createNarrowIntegers();

/// Adds the pass that asks of divisions of 64 bits, when they are run, whether their numbers fit into 32.
void addDivisions(llvm::PassBuilder &builder);

} // namespace gpulower

#endif
