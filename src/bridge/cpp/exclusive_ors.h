#ifndef GPULOWER_BRIDGE_EXCLUSIVE_ORS_H
#define GPULOWER_BRIDGE_EXCLUSIVE_ORS_H

namespace llvm {
class PassBuilder;
} // namespace llvm

namespace gpulower {

/// Adds the pass that computes apart what exclusive ors change of an address and what they do not.
void addSeparation(llvm::PassBuilder &builder);

} // namespace gpulower

#endif
