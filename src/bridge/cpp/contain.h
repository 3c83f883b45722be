// Containment of LLVM's fatal errors, of allocations that fail, and of crashes.
//
// `report_fatal_error` ends the process unless its handler leaves the stack. `contain` runs one LLVM call, C++ to C++,
// and jumps back here when that happens; no Rust frame is ever crossed. Whatever the call had allocated is leaked, and
// the LLVMContext it worked on must not be used again (the caller abandons it).
//
// Memory that cannot be had is a fatal error too: where LLVM allocates by itself, it calls its handler; where `operator
// new` throws, the exception is caught here. LLVM's own frames, built without exceptions, release nothing either way.
//
// A crash is a signal that the processor raised in such a call: an access to memory that is not there, the end of the
// stack, a division by zero. The handlers are in crash.cpp.
#pragma once

#include "crash.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/PrettyStackTrace.h"

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
  /// The call crashed; everything that it worked on has to be abandoned.
  GpulowerCrashed = 3,
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

/// Where a fatal error or a crash of this thread goes.
struct Frame {
  jmp_buf buffer;
  Frame *outer;
  char *text;
  Crash crash;
  const void *stackTrace;
};

/// What `_setjmp` returns the second time.
enum Jump : int { JumpOfFatalError = 1, JumpOfCrash = 2 };

/// Null outside of `contain`. Signal handlers read it: its storage exists as soon as a thread does.
extern thread_local Frame *currentFrame __attribute__((tls_model("initial-exec")));

void installFatalErrorHandler();

/// While it lives, nothing jumps out of what C++ has called: for functions of Rust that C++ calls back.
class Uncontained {
public:
  Uncontained() : frame(currentFrame) { currentFrame = nullptr; }
  ~Uncontained() { currentFrame = frame; }
  Uncontained(const Uncontained &) = delete;
  Uncontained &operator=(const Uncontained &) = delete;

private:
  Frame *frame;
};

/// Runs `call`, which returns an empty string or the reason of its refusal.
template <typename Call> GpulowerOutcome contain(Call &&call) {
  installFatalErrorHandler();
  prepareForCrashes();
  Frame frame;
  frame.outer = currentFrame;
  frame.text = nullptr;
  // LLVM keeps a list of what it is doing, whose entries are on the stack that a jump leaves.
  frame.stackTrace = llvm::SavePrettyStackState();
  currentFrame = &frame;
  int jump = _setjmp(frame.buffer);
  if (jump != 0) {
    currentFrame = frame.outer;
    llvm::RestorePrettyStackState(frame.stackTrace);
    if (jump == JumpOfCrash)
      return GpulowerOutcome{GpulowerCrashed, copyText(describe(frame.crash))};
    return GpulowerOutcome{GpulowerFatal, frame.text};
  }
  std::string refusal;
  try {
    refusal = call();
  } catch (const std::exception &exception) {
    currentFrame = frame.outer;
    return GpulowerOutcome{GpulowerFatal, copyText(exception.what())};
  }
  currentFrame = frame.outer;
  if (refusal.empty())
    return GpulowerOutcome{GpulowerOk, nullptr};
  return GpulowerOutcome{GpulowerRefused, copyText(refusal)};
}

} // namespace gpulower
