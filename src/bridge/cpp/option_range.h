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

/// What this thread's last value was that could not be read, in words: MLIR passes nothing on of it.
inline thread_local std::string unread;

inline const char *whatIsRead(unsigned) { return "a number"; }
inline const char *whatIsRead(bool) { return "true|false"; }

inline bool isRead(llvm::StringRef text, unsigned &value) { return !text.getAsInteger(0, value); }

inline bool isRead(llvm::StringRef text, bool &value) {
  value = text.empty() || text.equals_insensitive("true") || text == "1";
  return value || text.equals_insensitive("false") || text == "0";
}

/// Reads an option's value. LLVM's own parser prints what it cannot read to the terminal; of this one [`InWords`] says it.
template <typename T> struct QuietParser : llvm::cl::parser<T> {
  using llvm::cl::parser<T>::parser;

  bool parse(llvm::cl::Option &option, llvm::StringRef, llvm::StringRef text, T &value) {
    if (isRead(text, value))
      return false;
    unread = ("option '" + option.ArgStr + "' cannot be '" + text + "': expected " + whatIsRead(value)).str();
    return true;
  }
};

/// Refuses in words what MLIR refuses without any.
struct InWords {
  Refuse refuse;

  llvm::LogicalResult operator()(const llvm::Twine &message) const {
    std::string words = message.str();
    return refuse(words.empty() ? unread : words);
  }
};

} // namespace gpulower

#endif
