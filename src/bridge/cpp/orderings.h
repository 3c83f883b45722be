// Orderings and scopes of atomic operations.
#ifndef GPULOWER_BRIDGE_ORDERINGS_H
#define GPULOWER_BRIDGE_ORDERINGS_H

#include "llvm/ADT/StringRef.h"

namespace llvm {
class Module;
}

namespace gpulower {

/// Atomic operations of a module for NVIDIA get the instructions that their ordering and their scope ask for.
void qualifyAtomics(llvm::Module &module, llvm::StringRef chip);

} // namespace gpulower

#endif
