// Values that a loop keeps in memory, in registers.
#ifndef GPULOWER_BRIDGE_ACCUMULATORS_H
#define GPULOWER_BRIDGE_ACCUMULATORS_H

#include "llvm/Passes/PassBuilder.h"

namespace gpulower {

/// Makes the pass known to `builder` under its name: `gpulower-keep-accumulators`, for functions.
void addAccumulators(llvm::PassBuilder &builder);

} // namespace gpulower

#endif
