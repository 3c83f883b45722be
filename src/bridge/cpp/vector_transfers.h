// Transfers between vectors and memory, and places in vectors, that MLIR's conversions get wrong, or leave out.
#ifndef GPULOWER_BRIDGE_VECTOR_TRANSFERS_H
#define GPULOWER_BRIDGE_VECTOR_TRANSFERS_H

#include "mlir/IR/PatternMatch.h"

namespace gpulower {

/// Masked transfers in the order of memory; loads and stores of several dimensions; extractions and insertions at
/// positions that are not known.
void populateTransferPatterns(mlir::RewritePatternSet &patterns);

} // namespace gpulower

#endif
