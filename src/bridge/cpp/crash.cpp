// Crashes of what runs inside `contain`.
//
// The handlers are installed once, and stay. They take a signal only where the processor raised it on a thread that is
// inside of `contain`; every other one goes to the handler that was there before, with all that came with it, or to the
// system's default. They call nothing that is not async-signal-safe.
//
// A crash inside the C library, or wherever `malloc` comes from, is not taken, but for functions like `memcpy`: it may hold
// the lock of the heap, and the next allocation would wait for ever. Damage to the heap shows itself there, mostly, and ends the process. So an `abort`
// is taken where other code called it, or called `__assert_fail`, and not where the C library did.

#include "crash.h"

#include "contain.h"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <mutex>

#include <dlfcn.h>
#include <link.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

namespace {

using gpulower::Crash;
using gpulower::currentFrame;
using gpulower::Frame;

/// SIGTRAP: what runs off the end of a function, where LLVM says that nothing can come, meets the filling between two.
constexpr int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT};
struct sigaction before[std::size(signals)];

std::atomic<bool> contained = true;

/// Addresses of code.
struct Range {
  uintptr_t begin = 0;
  uintptr_t end = 0;

  bool contains(uintptr_t address) const { return begin <= address && address < end; }
};
Range allocator;
Range library;
/// `__assert_fail`, which calls `abort` for others.
const void *assertion;
/// Functions of the C library that hold no lock, and are given addresses by others.
const void *copying[6];

/// The code of the loaded object that has this address in it.
Range codeAround(uintptr_t address) {
  struct Search {
    uintptr_t address;
    Range found;
  } search = {address, {}};
  dl_iterate_phdr(
      [](dl_phdr_info *object, size_t, void *closure) {
        auto &search = *static_cast<Search *>(closure);
        for (int index = 0; index < object->dlpi_phnum; ++index) {
          const auto &segment = object->dlpi_phdr[index];
          Range range;
          range.begin = object->dlpi_addr + segment.p_vaddr;
          range.end = range.begin + segment.p_memsz;
          if (segment.p_type == PT_LOAD && (segment.p_flags & PF_X) && range.contains(search.address)) {
            search.found = range;
            return 1;
          }
        }
        return 0;
      },
      &search);
  return search.found;
}

#if defined(__x86_64__)
uintptr_t codeAddress(const ucontext_t *state) { return state->uc_mcontext.gregs[REG_RIP]; }
uintptr_t stackAddress(const ucontext_t *state) { return state->uc_mcontext.gregs[REG_RSP]; }
#elif defined(__aarch64__)
uintptr_t codeAddress(const ucontext_t *state) { return state->uc_mcontext.pc; }
uintptr_t stackAddress(const ucontext_t *state) { return state->uc_mcontext.sp; }
#else
#error "where a signal was raised is known for x86-64 and AArch64"
#endif

/// A larger frame than this is entered page by page.
constexpr uintptr_t farFromStack = 1 << 16;

/// Where a walk over the frames of an `abort` has come to.
struct AbortWalk {
  bool isBehindHandler = false;
  const void *lastOfLibrary = nullptr;
  bool isSound = false;
};

_Unwind_Reason_Code visit(_Unwind_Context *context, void *closure) {
  auto &walk = *static_cast<AbortWalk *>(closure);
  int isBefore = 0;
  uintptr_t address = _Unwind_GetIPInfo(context, &isBefore);
  // The frame that the signal interrupted is the one whose address is that of an instruction, and not behind a call.
  walk.isBehindHandler |= isBefore != 0;
  if (!walk.isBehindHandler)
    return _URC_NO_REASON;
  if (library.contains(address) || allocator.contains(address)) {
    walk.lastOfLibrary = reinterpret_cast<const void *>(_Unwind_GetRegionStart(context));
    return _URC_NO_REASON;
  }
  walk.isSound = walk.lastOfLibrary &&
                 (walk.lastOfLibrary == reinterpret_cast<const void *>(&abort) || walk.lastOfLibrary == assertion);
  return _URC_END_OF_STACK;
}

/// Whether this thread is in an `abort` that something other than the C library or the heap called. Walking the stack does
/// not allocate.
bool isAbortOfOthers(const siginfo_t *info) {
  if (info->si_code != SI_TKILL || info->si_pid != getpid())
    return false;
  AbortWalk walk;
  _Unwind_Backtrace(visit, &walk);
  return walk.isSound;
}

/// Where the function begins that has this instruction. The unwinder takes what it is given for an address to return to, and
/// looks at the byte before, which for the first instruction of a function is none of it.
const void *functionAround(uintptr_t address) {
  return _Unwind_FindEnclosingFunction(reinterpret_cast<void *>(address + 1));
}

/// Whether a signal was raised where a lock of the heap may be held.
bool isInHeap(uintptr_t address) {
  if (!library.contains(address) && !allocator.contains(address))
    return false;
  const void *function = functionAround(address);
  return !function || std::find(std::begin(copying), std::end(copying), function) == std::end(copying);
}

void take(int signal, siginfo_t *info, void *context) {
  auto *state = static_cast<ucontext_t *>(context);
  Frame *frame = currentFrame();
  bool synchronous = info->si_code > 0;
  bool isCrash = signal == SIGABRT ? frame && isAbortOfOthers(info) : synchronous && !isInHeap(codeAddress(state));
  if (frame && isCrash && contained.load(std::memory_order_relaxed)) {
    frame->crash.signal = signal;
    frame->crash.code = info->si_code;
    frame->crash.address = info->si_addr;
    uintptr_t distance = reinterpret_cast<uintptr_t>(frame->crash.address) - stackAddress(state);
    frame->crash.atEndOfStack = signal == SIGSEGV && distance + farFromStack < 2 * farFromStack;
    _longjmp(frame->buffer, gpulower::JumpOfCrash);
  }
  for (size_t index = 0; index < std::size(signals); ++index) {
    if (signals[index] != signal)
      continue;
    const struct sigaction &other = before[index];
    if (other.sa_flags & SA_SIGINFO) {
      other.sa_sigaction(signal, info, context);
    } else if (other.sa_handler == SIG_DFL || (other.sa_handler == SIG_IGN && synchronous)) {
      // The instruction is run again, and then there is no handler; but a trap is behind its instruction.
      struct sigaction standard = {};
      standard.sa_handler = SIG_DFL;
      sigaction(signal, &standard, nullptr);
      if (!synchronous || signal == SIGTRAP)
        raise(signal);
    } else if (other.sa_handler != SIG_IGN) {
      other.sa_handler(signal);
    }
  }
}

void install() {
  allocator = codeAround(reinterpret_cast<uintptr_t>(&malloc));
  library = codeAround(reinterpret_cast<uintptr_t>(&abort));
  assertion = dlsym(RTLD_DEFAULT, "__assert_fail");
  constexpr const char *names[] = {"memcpy", "memmove", "memset", "memcmp", "memchr", "strlen"};
  static_assert(std::size(names) == std::size(copying));
  for (size_t index = 0; index < std::size(names); ++index)
    // The library chooses among several for the processor.
    if (void *function = dlsym(RTLD_DEFAULT, names[index]))
      copying[index] = functionAround(reinterpret_cast<uintptr_t>(function));
  // A program that is linked statically is one object: nothing can be told apart.
  for (Range *range : {&allocator, &library})
    if (range->contains(reinterpret_cast<uintptr_t>(&install)))
      *range = Range();
  struct sigaction action = {};
  action.sa_sigaction = take;
  // The mask of signals stays as it is, so that a jump need not restore it.
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  // What was there before is known before the handler may ask for it, on another thread.
  for (size_t index = 0; index < std::size(signals); ++index)
    if (sigaction(signals[index], nullptr, &before[index]) == 0)
      sigaction(signals[index], &action, nullptr);
}

/// A stack for the handlers: at the end of a thread's own there is no room for them. Threads of Rust have one, and those
/// of a runtime that has handlers itself.
class HandlerStack {
public:
  HandlerStack() {
    stack_t now;
    if (sigaltstack(nullptr, &now) != 0 || !(now.ss_flags & SS_DISABLE))
      return;
    size = forHandlers + getauxval(AT_MINSIGSTKSZ);
    void *pages = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED)
      return;
    stack_t mine = {};
    mine.ss_sp = pages;
    mine.ss_size = size;
    if (sigaltstack(&mine, nullptr) == 0)
      base = pages;
    else
      munmap(pages, size);
  }

  ~HandlerStack() {
    stack_t now;
    if (!base || sigaltstack(nullptr, &now) != 0)
      return;
    if (now.ss_sp == base) {
      stack_t none = {};
      none.ss_flags = SS_DISABLE;
      sigaltstack(&none, nullptr);
    }
    munmap(base, size);
  }

private:
  /// For the handlers, ours and the one that was there before. What the processor's registers take the kernel says: 4 KiB
  /// and less, up to 11 KiB with AMX, 10 KiB with SVE, and more with the matrices of SME.
  static constexpr size_t forHandlers = 1 << 16;
  size_t size = 0;
  void *base = nullptr;
};

} // namespace

void gpulower::prepareForCrashes() {
  if (!contained.load(std::memory_order_relaxed))
    return;
  static std::once_flag once;
  std::call_once(once, install);
  thread_local HandlerStack stack;
  (void)stack;
}

void gpulower::describe(const Crash &crash, char (&text)[maximalDescription]) {
  auto say = [&](const char *words) { std::snprintf(text, sizeof text, "%s", words); };
  if (crash.atEndOfStack)
    return say("the end of the stack was reached (SIGSEGV)");
  switch (crash.signal) {
  case SIGSEGV:
    // Of an address that no process can have, x86-64 does not tell.
    if (crash.code != SEGV_MAPERR && crash.code != SEGV_ACCERR)
      return say("invalid access to memory (SIGSEGV)");
    std::snprintf(text, sizeof text, "invalid access to memory at 0x%zx (SIGSEGV)",
                  reinterpret_cast<uintptr_t>(crash.address));
    return;
  case SIGBUS:
    return say("invalid access to memory (SIGBUS)");
  case SIGFPE:
    return say(crash.code == FPE_INTDIV ? "division by zero (SIGFPE)" : "invalid arithmetic (SIGFPE)");
  case SIGTRAP:
    return say("code that cannot be reached was reached (SIGTRAP)");
  case SIGABRT:
    return say("it gave up (SIGABRT)");
  default:
    return say("invalid instruction (SIGILL)");
  }
}

gpulower::SignalHandlers::SignalHandlers() {
  for (int signal = 1; signal < NSIG; ++signal)
    if (sigaction(signal, nullptr, &saved[signal]) != 0)
      saved[signal].sa_handler = SIG_ERR;
}

void gpulower::SignalHandlers::restore() const {
  for (int signal = 1; signal < NSIG; ++signal) {
    struct sigaction now;
    if (saved[signal].sa_handler != SIG_ERR && sigaction(signal, nullptr, &now) == 0 &&
        now.sa_handler != saved[signal].sa_handler)
      sigaction(signal, &saved[signal], nullptr);
  }
}

extern "C" {

/// Whether crashes inside of `contain` are contained, in this process, from now on.
void gpulowerContainCrashes(bool enabled) { contained.store(enabled); }

/// Runs `call` inside of `contain`. What it calls may be cut short: its own frame must own nothing.
GpulowerOutcome gpulowerContain(void (*call)(void *), void *closure) {
  return gpulower::contain([&]() -> std::string {
    call(closure);
    return "";
  });
}

/// Suspends `contain` on this thread; returns what `gpulowerResume` takes.
void *gpulowerSuspend() {
  Frame *frame = currentFrame();
  if (frame)
    gpulower::setCurrentFrame(nullptr);
  return frame;
}

void gpulowerResume(void *frame) {
  if (frame)
    gpulower::setCurrentFrame(static_cast<Frame *>(frame));
}
}
