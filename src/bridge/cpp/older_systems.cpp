// What LLVM takes from the newest glibc and libstdc++ where it is built on Debian 12, so that the programs and
// libraries run where these are older: glibc 2.34 and the libstdc++ of GCC 11 (docs/c.md).

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstdint>
#include <ctime>
#include <sys/random.h>

/// In glibc from 2.36 on. For names of temporary files, which are tried until one is new.
extern "C" __attribute__((visibility("hidden"))) uint32_t arc4random() {
  uint32_t value = 0;
  // So few bytes come whole, once the system has any.
  while (getrandom(&value, sizeof value, 0) != sizeof value)
    if (errno != EINTR) {
      // A sandbox may forbid the call.
      static std::atomic<uint32_t> count = 0;
      timespec now = {};
      clock_gettime(CLOCK_MONOTONIC, &now);
      return uint32_t(now.tv_nsec) ^ uint32_t(reinterpret_cast<uintptr_t>(&now) >> 4) ^ (++count << 16);
    }
  return value;
}

#if defined(_GLIBCXX_RELEASE) && _GLIBCXX_RELEASE >= 12
/// As in libstdc++, which gave it a new version when it lost its `noexcept`.
void std::condition_variable::wait(std::unique_lock<std::mutex> &lock) {
  pthread_cond_wait(native_handle(), lock.mutex()->native_handle());
}
#endif
