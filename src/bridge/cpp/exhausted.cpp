// The end of a process for want of memory has words.
//
// A failed allocation of Rust's aborts, an exception of C++ that comes to Rust's frames does, and MLIR allocates its
// operations with a plain malloc and writes through the null pointer that it gets: deaths like any others, but for this.

#include "reserve.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <iterator>
#include <fcntl.h>
#include <unistd.h>

namespace {

/// Before main: Rust's runtime puts /dev/null in the place of what is closed.
const bool outputWasClosed = fcntl(STDOUT_FILENO, F_GETFD) == -1 && errno == EBADF;

constexpr int signals[] = {SIGSEGV, SIGABRT};
struct sigaction previous[std::size(signals)];

const char *words;
bool ends;

void onDeath(int signal, siginfo_t *info, void *context) {
  if (gpulower::isMemoryExhausted()) {
    // Nothing can be done about a failed write here.
    [[maybe_unused]] ssize_t written = write(STDERR_FILENO, words, std::strlen(words));
    if (ends)
      _exit(1);
  }
  // Rust's handler tells of overflowed stacks; else it leaves the default action behind, and the fault happens again.
  const struct sigaction &other = previous[signal == SIGABRT];
  if (other.sa_flags & SA_SIGINFO) {
    other.sa_sigaction(signal, info, context);
    return;
  }
  // What aborts does so again, and a fault happens again.
  struct sigaction byDefault = {};
  byDefault.sa_handler = SIG_DFL;
  sigaction(signal, &byDefault, nullptr);
}

} // namespace

bool gpulower::hasWordsForDeath() { return words != nullptr; }

// Called by a process that is ours when it starts, and once more where that becomes a worker. `text` lives as long as the
// process; `end`: whether it ends with status 1.
extern "C" void gpulowerTellOfExhaustedMemory(const char *text, bool end) {
  bool isInstalled = words != nullptr;
  words = text;
  ends = end;
  if (isInstalled)
    return;
  struct sigaction action = {};
  action.sa_sigaction = onDeath;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  for (size_t index = 0; index < std::size(signals); ++index)
    sigaction(signals[index], &action, &previous[index]);
}

// A file that may not grow is a failed write, and not the end of the process.
extern "C" void gpulowerIgnoreFileSizeSignal() { signal(SIGXFSZ, SIG_IGN); }

/// Whether the process, or the library, began with a closed standard output.
extern "C" bool gpulowerOutputWasClosed() { return outputWasClosed; }
