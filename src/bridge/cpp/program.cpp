// Starting a program that was compiled into this process, and leaving it from within one of our functions.
//
// A function of ours that the program calls, and that fails, cannot return: the program does not look at errors. It jumps
// back to where the program was started, as `contain` does for LLVM's fatal errors. The frames in between are the
// program's, and two of Rust functions that own nothing any more. What the program had allocated is leaked.

#include <csetjmp>
#include <cstdint>

namespace {

struct Start {
  jmp_buf buffer;
  Start *outer;
};

/// Where the innermost program of this thread was started.
thread_local Start *current = nullptr;

} // namespace

extern "C" {

enum GpulowerReturns : int {
  GpulowerReturnsNothing = 0,
  GpulowerReturnsI32 = 1,
  GpulowerReturnsI64 = 2,
  GpulowerReturnsF32 = 3,
  GpulowerReturnsF64 = 4,
};

/// How a function of the program ended.
enum GpulowerEnded : int {
  GpulowerEndedLeft = 0,
  GpulowerEndedReturned = 1,
  /// Rust has no way to let an exception of C++ pass.
  GpulowerEndedThrown = 2,
};

/// Calls a function of the program without arguments. `result` is written if it returns.
GpulowerEnded gpulowerStartProgram(void *function, GpulowerReturns returns, void *result) noexcept {
  Start start;
  start.outer = current;
  current = &start;
  if (_setjmp(start.buffer) != 0) {
    current = current->outer;
    return GpulowerEndedLeft;
  }
  try {
  switch (returns) {
  case GpulowerReturnsNothing:
    reinterpret_cast<void (*)()>(function)();
    break;
  case GpulowerReturnsI32:
    *static_cast<int32_t *>(result) = reinterpret_cast<int32_t (*)()>(function)();
    break;
  case GpulowerReturnsI64:
    *static_cast<int64_t *>(result) = reinterpret_cast<int64_t (*)()>(function)();
    break;
  case GpulowerReturnsF32:
    *static_cast<float *>(result) = reinterpret_cast<float (*)()>(function)();
    break;
  case GpulowerReturnsF64:
    *static_cast<double *>(result) = reinterpret_cast<double (*)()>(function)();
    break;
  }
  } catch (...) {
    current = start.outer;
    return GpulowerEndedThrown;
  }
  current = start.outer;
  return GpulowerEndedReturned;
}

/// Resumes a task of the program, on a thread of ours.
GpulowerEnded gpulowerResumeTask(void *resume, void *handle) noexcept {
  Start start;
  start.outer = current;
  current = &start;
  if (_setjmp(start.buffer) != 0) {
    current = current->outer;
    return GpulowerEndedLeft;
  }
  GpulowerEnded ended = GpulowerEndedReturned;
  try {
    reinterpret_cast<void (*)(void *)>(resume)(handle);
  } catch (...) {
    ended = GpulowerEndedThrown;
  }
  current = start.outer;
  return ended;
}

/// Goes back to where the program was started; returns if none was started on this thread.
void gpulowerLeaveProgram() {
  if (current)
    _longjmp(current->buffer, 1);
}

} // extern "C"
