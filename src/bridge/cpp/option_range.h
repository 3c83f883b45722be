// Ranges of the options of passes written in C++: those of the table in src/options/table.rs.
#ifndef GPULOWER_BRIDGE_OPTION_RANGE_H
#define GPULOWER_BRIDGE_OPTION_RANGE_H

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/Twine.h"

namespace gpulower {

/// Refuses a value of a pass's option `name` that the table's option `like` does not take.
llvm::LogicalResult checkRange(llvm::StringRef name, llvm::StringRef like, unsigned value,
                               llvm::function_ref<llvm::LogicalResult(const llvm::Twine &)> refuse);

} // namespace gpulower

#endif
