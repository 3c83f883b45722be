// Containment of LLVM's fatal errors, and of allocations that fail.
//
// `report_fatal_error` ends the process unless its handler leaves the stack. `contain` runs one LLVM call, C++ to C++,
// and jumps back here when that happens; no Rust frame is ever crossed. Whatever the call had allocated is leaked, and
// the LLVMContext it worked on must not be used again (the caller abandons it).
//
// Memory that cannot be had is a fatal error too: where LLVM allocates by itself, it calls its handler; where `operator
// new` throws, the exception is caught here. LLVM's own frames, built without exceptions, release nothing either way.
#pragma once

#include "llvm/ADT/StringRef.h"

#include <csetjmp>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>

extern "C" {
enum GpulowerOutcomeKind : int {
  GpulowerOk = 0,
  /// The call refused its input; everything is still usable.
  GpulowerRefused = 1,
  /// The call ended in a fatal error; its LLVMContext has to be abandoned.
  GpulowerFatal = 2,
};

struct GpulowerOutcome {
  GpulowerOutcomeKind kind;
  /// Allocated with malloc; null when there is nothing to say.
  char *text;
};
}

namespace gpulower {

inline char *copyText(llvm::StringRef text) {
  char *copy = static_cast<char *>(std::malloc(text.size() + 1));
  if (!copy)
    return nullptr;
  std::memcpy(copy, text.data(), text.size());
  copy[text.size()] = '\0';
  return copy;
}

/// Where a fatal error of this thread goes.
struct Frame {
  jmp_buf buffer;
  Frame *outer;
  char *text;
};

Frame *&currentFrame();
void installFatalErrorHandler();

/// Runs `call`, which returns an empty string or the reason of its refusal.
template <typename Call> GpulowerOutcome contain(Call &&call) {
  installFatalErrorHandler();
  Frame frame;
  frame.outer = currentFrame();
  frame.text = nullptr;
  currentFrame() = &frame;
  if (_setjmp(frame.buffer) != 0) {
    currentFrame() = frame.outer;
    return GpulowerOutcome{GpulowerFatal, frame.text};
  }
  std::string refusal;
  try {
    refusal = call();
  } catch (const std::exception &exception) {
    currentFrame() = frame.outer;
    return GpulowerOutcome{GpulowerFatal, copyText(exception.what())};
  }
  currentFrame() = frame.outer;
  if (refusal.empty())
    return GpulowerOutcome{GpulowerOk, nullptr};
  return GpulowerOutcome{GpulowerRefused, copyText(refusal)};
}

} // namespace gpulower
