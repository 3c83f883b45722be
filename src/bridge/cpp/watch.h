// Ends work of LLVM's and MLIR's between two of its steps, where somebody who waits for it does not want to any more.
#pragma once

#include "llvm/ADT/StringRef.h"

namespace gpulower {

/// Whether this thread's work is to end. `step` is what begins otherwise; where it is empty, what has begun goes on.
bool isToEnd(llvm::StringRef step);

} // namespace gpulower
