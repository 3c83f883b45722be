#include "contain.h"

#include "llvm/Support/ErrorHandling.h"

#include <mutex>

namespace gpulower {

thread_local Frame *currentFrame = nullptr;

/// Outside of `contain` this returns, and LLVM goes on as it would have without us.
static void handleFatalError(void *, const char *reason, bool) {
  Frame *frame = currentFrame;
  if (!frame)
    return;
  frame->text = copyText(reason ? reason : "unknown fatal error");
  _longjmp(frame->buffer, JumpOfFatalError);
}

/// LLVM's word for it varies, and says no more.
static void handleBadAllocation(void *closure, const char *, bool genCrashDiag) {
  handleFatalError(closure, "out of memory", genCrashDiag);
}

void installFatalErrorHandler() {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::install_fatal_error_handler(handleFatalError);
    llvm::install_bad_alloc_error_handler(handleBadAllocation);
  });
}

} // namespace gpulower
