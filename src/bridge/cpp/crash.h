#pragma once

#include <csignal>
#include <cstddef>

namespace gpulower {

/// What a handler saw.
struct Crash {
  int signal;
  int code;
  void *address;
  bool atEndOfStack;
};

/// Makes sure that the handlers are there, and that this thread has a stack for them. Nothing, where crashes are not
/// contained.
void prepareForCrashes();

/// Room for the words of a crash.
inline constexpr size_t maximalDescription = 256;

/// Says what happened, without allocating.
void describe(const Crash &crash, char (&text)[maximalDescription]);

/// The handlers of all signals, as they were when it was made.
class SignalHandlers {
public:
  SignalHandlers();

  /// Puts back what is another now.
  void restore() const;

private:
  struct sigaction saved[NSIG];
};

} // namespace gpulower
