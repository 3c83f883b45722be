// Passes of LLVM's that large functions do without.
#pragma once

#include "llvm/ADT/Any.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/IR/PassInstrumentation.h"

#include <functional>

namespace gpulower {

/// Leaves out passes whose time grows with the square of a function, or faster, where the function is large, and all that can
/// be left out once the work is to end. What is left out depends on the function alone.
class PassLimits {
public:
  using Report = std::function<void(llvm::StringRef pass, llvm::StringRef function)>;

  explicit PassLimits(Report report) : report(std::move(report)) {}

  /// The callbacks refer to this.
  void attach(llvm::PassInstrumentationCallbacks &callbacks);

private:
  bool isAllowed(llvm::StringRef pass, const llvm::Any &unit);

  Report report;
};

} // namespace gpulower
