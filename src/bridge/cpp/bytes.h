// Text and bytes that pass between C++ and Rust: `Bytes` of src/bridge/contain.rs.
#pragma once

#include "llvm/ADT/StringRef.h"

#include <cstddef>

extern "C" {

/// Not terminated; valid as long as whoever made it says.
struct GpulowerBytes {
  const char *data;
  size_t length;
};

/// Called with (closure, bytes); the bytes are valid during the call.
typedef void (*GpulowerSink)(void *closure, GpulowerBytes bytes);
}

namespace gpulower {

inline llvm::StringRef toStringRef(GpulowerBytes bytes) { return llvm::StringRef(bytes.data, bytes.length); }

inline GpulowerBytes toBytes(llvm::StringRef text) { return GpulowerBytes{text.data(), text.size()}; }

} // namespace gpulower
