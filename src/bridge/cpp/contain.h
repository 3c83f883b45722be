// Containment of LLVM's fatal errors, of allocations that fail, of C++ exceptions, and of crashes.
//
// `report_fatal_error` ends the process unless its handler leaves the stack. `contain` runs one LLVM call, C++ to C++,
// and jumps back here when that happens; no Rust frame is ever crossed. Whatever the call had allocated is leaked, and
// the LLVMContext it worked on must not be used again (the caller abandons it).
//
// Memory that cannot be had is a fatal error too (reserve.cpp). An exception that comes as far as `contain` is one as well.
// LLVM's own frames, built without exceptions, release nothing on its way.
//
// A crash is a signal that the processor raised in such a call: an access to memory that is not there, the end of the
// stack, a division by zero; or an `abort`. The handlers are in crash.cpp.
#pragma once

#include "crash.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/PrettyStackTrace.h"

#include <csetjmp>
#include <cstdlib>
#include <cstring>
#include <cxxabi.h>
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

inline constexpr char outOfMemory[] = "out of memory";

inline char *copyText(llvm::StringRef text) {
  char *copy = static_cast<char *>(std::malloc(text.size() + 1));
  if (!copy)
    return nullptr;
  std::memcpy(copy, text.data(), text.size());
  copy[text.size()] = '\0';
  return copy;
}

/// What the C++ library knows of exceptions of this thread; the first members of `__cxa_eh_globals` in the C++ ABI.
struct ExceptionState {
  void *caught;
  unsigned int uncaught;
};

/// Where a fatal error or a crash of this thread goes.
struct Frame {
  jmp_buf buffer;
  Frame *outer;
  char *text;
  Crash crash;
  const void *stackTrace;
  ExceptionState exceptions;
};

/// What `_setjmp` returns the second time.
enum Jump : int { JumpOfFatalError = 1, JumpOfCrash = 2, JumpOfTermination = 3 };

/// The innermost frame of this thread; null outside of `contain`. Signal handlers may ask.
///
/// It is not a `thread_local`: in a library that `dlopen` brought, the first use of one may allocate, in a signal handler
/// too, and the model of TLS that never does has no room there.
Frame *currentFrame();

/// Only for threads that have entered a frame before, where it cannot fail.
void setCurrentFrame(Frame *frame);

/// Makes the frame the innermost one. False where there is no memory for that.
bool enter(Frame &frame);

/// What became of a call that was left by a jump.
GpulowerOutcome leftByJump(const Frame &frame, int jump);

/// What became of a call that an exception came out of.
GpulowerOutcome leftByException(const Frame &frame, const char *what);

/// While it lives, nothing jumps out of what C++ has called: for functions of Rust that C++ calls back.
class Uncontained {
public:
  Uncontained() : frame(currentFrame()) {
    if (frame)
      setCurrentFrame(nullptr);
  }
  ~Uncontained() {
    if (frame)
      setCurrentFrame(frame);
  }
  Uncontained(const Uncontained &) = delete;
  Uncontained &operator=(const Uncontained &) = delete;

private:
  Frame *frame;
};

/// Runs `call`, which returns an empty string or the reason of its refusal.
template <typename Call> GpulowerOutcome contain(Call &&call) {
  Frame frame;
  if (!enter(frame))
    return GpulowerOutcome{GpulowerFatal, copyText(outOfMemory)};
  int jump = _setjmp(frame.buffer);
  if (jump != 0)
    return leftByJump(frame, jump);
  try {
    std::string refusal = call();
    setCurrentFrame(frame.outer);
    if (refusal.empty())
      return GpulowerOutcome{GpulowerOk, nullptr};
    return GpulowerOutcome{GpulowerRefused, copyText(refusal)};
  } catch (const abi::__forced_unwind &) {
    // The thread is being ended, and will not be held up.
    setCurrentFrame(frame.outer);
    throw;
  } catch (const std::exception &exception) {
    return leftByException(frame, exception.what());
  } catch (...) {
    return leftByException(frame, nullptr);
  }
}

} // namespace gpulower
