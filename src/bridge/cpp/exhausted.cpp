// A crash for want of memory says so.
//
// MLIR allocates its operations with a plain malloc, and writes through the null pointer that it gets when there is no
// more memory: a segmentation fault like any other, but for this.

#include <csignal>
#include <sys/mman.h>
#include <unistd.h>

namespace {

struct sigaction previous;

// What the parser of messages in `src/compiler/worker/process.rs` looks for.
constexpr char text[] = "segmentation fault with no memory left\n";

void onFault(int signal, siginfo_t *info, void *context) {
  void *probe = mmap(nullptr, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (probe == MAP_FAILED) {
    // Nothing can be done about a failed write here.
    [[maybe_unused]] ssize_t written = write(STDERR_FILENO, text, sizeof(text) - 1);
  } else {
    munmap(probe, 1 << 20);
  }
  // Rust's handler tells of overflowed stacks; else it leaves the default action behind, and the fault happens again.
  if (previous.sa_flags & SA_SIGINFO) {
    previous.sa_sigaction(signal, info, context);
    return;
  }
  struct sigaction byDefault = {};
  byDefault.sa_handler = SIG_DFL;
  sigaction(SIGSEGV, &byDefault, nullptr);
}

} // namespace

// Called once, by a worker process when it starts.
extern "C" void gpulowerTellOfExhaustedMemory() {
  struct sigaction action = {};
  action.sa_sigaction = onFault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  sigaction(SIGSEGV, &action, &previous);
}
