#include "contain.h"

#include "reserve.h"

#include "llvm/Support/ErrorHandling.h"

#include <atomic>
#include <cstdio>
#include <mutex>
#include <new>

#include <pthread.h>
#include <unistd.h>

namespace gpulower {

/// The innermost frame of each thread. Reading it never allocates.
static pthread_key_t frameKey;
/// Who sees this sees the key: a thread that never came to `contain` may fail to allocate while the first one that does
/// makes the key, and processors other than x86-64 order no two stores of another.
static std::atomic<bool> hasFrameKey = false;

/// Before the first `contain` there is no key.
Frame *currentFrame() {
  return hasFrameKey.load(std::memory_order_acquire) ? static_cast<Frame *>(pthread_getspecific(frameKey)) : nullptr;
}

void setCurrentFrame(Frame *frame) { pthread_setspecific(frameKey, frame); }

/// Outside of `contain` this returns, and LLVM goes on as it would have without us.
static void handleFatalError(void *, const char *reason, bool) {
  Frame *frame = currentFrame();
  if (!frame)
    return;
  frame->text = copyText(reason && *reason ? reason : "LLVM gave no reason");
  _longjmp(frame->buffer, JumpOfFatalError);
}

/// LLVM's word for it varies, and says no more. LLVM expects not to come back from here.
static void handleBadAllocation(void *closure, const char *, bool genCrashDiag) {
  handleFatalError(closure, outOfMemory, genCrashDiag);
  noteRefusal();
  // As LLVM says it without a handler.
  constexpr char text[] = "LLVM ERROR: out of memory\n";
  [[maybe_unused]] ssize_t written = write(STDERR_FILENO, text, sizeof text - 1);
  std::abort();
}

static std::terminate_handler terminateBefore;

/// An exception that cannot come as far as `contain`, such as one that leaves a function that says `noexcept`.
[[noreturn]] static void handleTermination() {
  if (Frame *frame = currentFrame()) {
    frame->text = nullptr;
    try {
      if (std::current_exception())
        throw;
    } catch (const std::exception &exception) {
      frame->text = copyText(exception.what());
    } catch (...) {
    }
    _longjmp(frame->buffer, JumpOfTermination);
  }
  if (terminateBefore)
    terminateBefore();
  std::abort();
}

static void install() {
  hasFrameKey.store(pthread_key_create(&frameKey, nullptr) == 0, std::memory_order_release);
  llvm::install_fatal_error_handler(handleFatalError);
  llvm::install_bad_alloc_error_handler(handleBadAllocation);
  terminateBefore = std::set_terminate(handleTermination);
  installNewHandler();
}

static ExceptionState &exceptionsOfThread() { return *reinterpret_cast<ExceptionState *>(abi::__cxa_get_globals()); }

static bool prepare() {
  static std::once_flag once;
  std::call_once(once, install);
  return fillReserve() && hasFrameKey;
}

bool enter(Frame &frame) {
  prepareForCrashes();
  if (!prepare())
    return false;
  frame.outer = currentFrame();
  frame.text = nullptr;
  // LLVM keeps a list of what it is doing, whose entries are on the stack that a jump leaves.
  frame.stackTrace = llvm::SavePrettyStackState();
  frame.exceptions = exceptionsOfThread();
  return pthread_setspecific(frameKey, &frame) == 0;
}

/// MLIR writes through the null pointer that a plain `malloc` gave it.
static bool isWantOfMemory(const Crash &crash) {
  return crash.signal == SIGSEGV && reinterpret_cast<uintptr_t>(crash.address) < (1 << 16) && isMemoryExhausted();
}

GpulowerOutcome leftByJump(const Frame &frame, int jump) {
  setCurrentFrame(frame.outer);
  llvm::RestorePrettyStackState(frame.stackTrace);
  exceptionsOfThread() = frame.exceptions;
  if (jump == JumpOfFatalError)
    return GpulowerOutcome{GpulowerFatal, frame.text ? frame.text : copyText(outOfMemory)};
  if (jump == JumpOfCrash && isWantOfMemory(frame.crash))
    return GpulowerOutcome{GpulowerFatal, copyText(outOfMemory)};
  char text[maximalDescription];
  if (jump == JumpOfTermination)
    std::snprintf(text, sizeof text, "a C++ exception that nothing catches: %s", frame.text ? frame.text : "unknown");
  else
    describe(frame.crash, text);
  std::free(frame.text);
  return GpulowerOutcome{GpulowerCrashed, copyText(text)};
}

GpulowerOutcome leftByException(const Frame &frame, const char *what) {
  setCurrentFrame(frame.outer);
  llvm::RestorePrettyStackState(frame.stackTrace);
  if (what && std::strcmp(what, std::bad_alloc().what()) == 0)
    return GpulowerOutcome{GpulowerFatal, copyText(outOfMemory)};
  char text[maximalDescription];
  std::snprintf(text, sizeof text, "a C++ exception: %s", what && *what ? what : "of an unknown type");
  return GpulowerOutcome{GpulowerFatal, copyText(text)};
}

} // namespace gpulower

/// For what begins with calls outside of `contain`: sees to allocations that fail from now on.
extern "C" void gpulowerPrepareForWant() { gpulower::prepare(); }
