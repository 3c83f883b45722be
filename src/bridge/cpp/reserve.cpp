#include "reserve.h"

#include "contain.h"

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>

#include <pthread.h>
#include <sys/mman.h>

namespace {

/// Never touched, so that it is address space alone: that, and not pages, is what a limit counts.
class Reserve {
public:
  explicit constexpr Reserve(size_t size) : size(size) {}

  bool fill() {
    if (pages.load(std::memory_order_relaxed))
      return true;
    void *made = map();
    if (!made)
      return false;
    void *none = nullptr;
    if (!pages.compare_exchange_strong(none, made))
      munmap(made, size);
    return true;
  }

  /// Gives it back, or shows that there is as much.
  bool release(bool again) {
    void *made = pages.exchange(nullptr);
    if (!made && again)
      made = map();
    return made && munmap(made, size) == 0;
  }

private:
  void *map() const {
    void *made = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return made == MAP_FAILED ? nullptr : made;
  }

  size_t size;
  std::atomic<void *> pages = nullptr;
};

/// Outside of `contain`.
Reserve reserve(8 << 20);
/// Inside: to come to the next step of the work, where it can be left without a lock that is held.
Reserve toNextStep(4 << 20);

/// How often the reserve was given back since the last `contain` began. Where memory is to be had again, it is made anew; but
/// not for ever, for what is larger than that.
std::atomic<unsigned> releases = 0;
constexpr unsigned mostReleases = 10'000;

/// Whether an allocation failed for good since then.
std::atomic<bool> refused = false;

/// What the contained call of a thread did about allocations that failed, as a number that is never 0 in such a call: so the
/// key has its room in the thread before memory ends. In a key for the reason that `currentFrame` gives.
pthread_key_t attemptsKey;
std::atomic<bool> hasAttemptsKey = false;
constexpr uintptr_t isContained = 1;
/// It lives on its reserve, and is to end.
constexpr uintptr_t isShort = 2;
/// How often it tried again.
constexpr uintptr_t oneRetry = 4;
/// There may be none for something so large, although there is memory.
constexpr uintptr_t mostRetries = mostReleases * oneRetry;

uintptr_t attempts() {
  return hasAttemptsKey.load(std::memory_order_acquire) ? reinterpret_cast<uintptr_t>(pthread_getspecific(attemptsKey)) : 0;
}

bool setAttempts(uintptr_t value) { return pthread_setspecific(attemptsKey, reinterpret_cast<void *>(value)) == 0; }

std::new_handler before;

/// Called when `operator new` has failed; it tries again when this returns.
void handleFailedAllocation() {
  if (gpulower::mayTryAgain())
    return;
  if (gpulower::Frame *frame = gpulower::currentFrame()) {
    // No exception: the destructors on its way would meet objects of LLVM's that are half changed.
    frame->text = nullptr;
    _longjmp(frame->buffer, gpulower::JumpOfFatalError);
  }
  gpulower::noteRefusal();
  // An exception would come to frames of Rust, whose words for that say nothing of memory.
  if (gpulower::hasWordsForDeath())
    std::abort();
  if (!before)
    throw std::bad_alloc();
  before();
}

} // namespace

void gpulower::installNewHandler() {
  hasAttemptsKey.store(pthread_key_create(&attemptsKey, nullptr) == 0, std::memory_order_release);
  before = std::set_new_handler(handleFailedAllocation);
}

bool gpulower::fillReserve() {
  if (releases.load(std::memory_order_relaxed) || refused.load(std::memory_order_relaxed)) {
    releases.store(0);
    refused.store(false);
  }
  return reserve.fill() && toNextStep.fill() && hasAttemptsKey && setAttempts(isContained);
}

bool gpulower::releaseReserve() {
  if (releases.fetch_add(1) >= mostReleases)
    return false;
  return reserve.release(/*again=*/true);
}

bool gpulower::mayTryAgain() {
  if (!currentFrame())
    return releaseReserve();
  uintptr_t now = attempts();
  if (now < mostRetries && !isMemoryExhausted())
    return setAttempts(now + oneRetry);
  return toNextStep.release(/*again=*/false) && setAttempts(now | isShort);
}

bool gpulower::livesOnReserve() { return currentFrame() && (attempts() & isShort); }

void gpulower::noteRefusal() { refused.store(true); }

bool gpulower::isMemoryExhausted() {
  if (refused.load())
    return true;
  constexpr size_t little = 1 << 20;
  void *pages = mmap(nullptr, little, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED)
    return true;
  munmap(pages, little);
  return false;
}

extern "C" {

bool gpulowerReleaseReserve() { return gpulower::releaseReserve(); }

/// For an allocation of Rust's.
void gpulowerMemoryWasRefused() { gpulower::noteRefusal(); }
}
