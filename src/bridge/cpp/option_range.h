// Ranges of the options of passes written in C++: those of the table in src/options/table.rs.
#ifndef GPULOWER_BRIDGE_OPTION_RANGE_H
#define GPULOWER_BRIDGE_OPTION_RANGE_H

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/CommandLine.h"

namespace gpulower {

using Refuse = llvm::function_ref<llvm::LogicalResult(const llvm::Twine &)>;

/// Refuses a value of a pass's option `name` that the table's option `like` does not take.
llvm::LogicalResult checkRange(llvm::StringRef name, llvm::StringRef like, unsigned value, Refuse refuse);

inline bool isRead(llvm::StringRef text, unsigned &value) { return !text.getAsInteger(0, value); }

inline bool isRead(llvm::StringRef text, bool &value) {
  value = text.empty() || text.equals_insensitive("true") || text == "1";
  return value || text.equals_insensitive("false") || text == "0";
}

/// Reads an option's value. LLVM's own parser prints what it cannot read to the terminal; of this one [`InWords`] says it.
template <typename T> struct QuietParser : llvm::cl::parser<T> {
  using llvm::cl::parser<T>::parser;

  bool parse(llvm::cl::Option &, llvm::StringRef, llvm::StringRef text, T &value) { return !isRead(text, value); }
};

/// Refuses in words what MLIR refuses without any.
struct InWords {
  llvm::StringRef options;
  Refuse refuse;

  llvm::LogicalResult operator()(const llvm::Twine &message) const {
    std::string words = message.str();
    return refuse(words.empty() ? "'" + options.str() + "' has a value that is no number, or neither true nor false"
                                : words);
  }
};

} // namespace gpulower

#endif
