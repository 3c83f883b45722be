// `malloc` and its like for a program that is linked with `--wrap`: what fails is tried again as reserve.h says, and
// what is free is kept for the next call.
//
// LLVM's containers and MLIR's operations use plain `malloc`, and end or crash where it fails: `operator new` asks its
// handler first, and `malloc` nobody. Nothing refers to this file in other programs, and it is left out of them.

#include "reserve.h"

#include <cstddef>
#include <cstdint>

#include <malloc.h>

extern "C" {
void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
}

namespace {

/// What is larger fails: the reserves are not for it, and who asks for so much may have an answer.
constexpr size_t largest = 1 << 20;

template <typename Allocate> void *again(size_t size, Allocate &&allocate) {
  void *memory = allocate();
  while (!memory && size != 0 && size <= largest && gpulower::mayTryAgain())
    memory = allocate();
  return memory;
}

/// NVIDIA's compiler frees some megabytes at the end of each call, and takes as many in the next one. glibc's defaults
/// give them back to the system in between: a tenth of the time of small kernels went into page faults.
[[gnu::constructor]] void keepWhatIsFreed() {
  mallopt(M_TRIM_THRESHOLD, 64 << 20);
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
}

} // namespace

extern "C" {

void *__wrap_malloc(size_t size) {
  return again(size, [=] { return __real_malloc(size); });
}

void *__wrap_calloc(size_t count, size_t size) {
  size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes))
    bytes = SIZE_MAX;
  return again(bytes, [=] { return __real_calloc(count, size); });
}

void *__wrap_realloc(void *memory, size_t size) {
  return again(size, [=] { return __real_realloc(memory, size); });
}
}
