#include "reserve.h"

#include "contain.h"

#include <atomic>
#include <cstdlib>
#include <new>

#include <sys/mman.h>

namespace {

/// Never touched, so that it is address space alone: that, and not pages, is what a limit counts.
constexpr size_t size = 8 << 20;
std::atomic<void *> reserve = nullptr;

/// How often the reserve was given back since the last `contain` began. Where memory is to be had again, it is made anew; but
/// not for ever, for what is larger than that.
std::atomic<unsigned> releases = 0;
constexpr unsigned mostReleases = 64;

/// Whether an allocation failed for good since then.
std::atomic<bool> refused = false;

std::new_handler before;

/// Called when `operator new` has failed; it tries again when this returns.
void handleFailedAllocation() {
  if (gpulower::Frame *frame = gpulower::currentFrame()) {
    // No exception: the destructors on its way would meet objects of LLVM's that are half changed.
    frame->text = nullptr;
    _longjmp(frame->buffer, gpulower::JumpOfFatalError);
  }
  if (gpulower::releaseReserve())
    return;
  gpulower::noteRefusal();
  // An exception would come to frames of Rust, whose words for that say nothing of memory.
  if (gpulower::hasWordsForDeath())
    std::abort();
  if (!before)
    throw std::bad_alloc();
  before();
}

void *map() {
  void *pages = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return pages == MAP_FAILED ? nullptr : pages;
}

} // namespace

void gpulower::installNewHandler() { before = std::set_new_handler(handleFailedAllocation); }

bool gpulower::fillReserve() {
  if (releases.load(std::memory_order_relaxed) || refused.load(std::memory_order_relaxed)) {
    releases.store(0);
    refused.store(false);
  }
  if (reserve.load(std::memory_order_relaxed))
    return true;
  void *pages = map();
  if (!pages)
    return false;
  void *none = nullptr;
  if (!reserve.compare_exchange_strong(none, pages))
    munmap(pages, size);
  return true;
}

bool gpulower::releaseReserve() {
  if (releases.fetch_add(1) >= mostReleases)
    return false;
  void *pages = reserve.exchange(nullptr);
  if (!pages)
    pages = map();
  return pages && munmap(pages, size) == 0;
}

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
