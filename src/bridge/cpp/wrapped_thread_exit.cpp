// Destructors of thread-local values, for a program that is linked with `--wrap`.
//
// The C library ends the process where it has no memory to note one, and Rust notes some whenever a thread begins. Here such an
// allocation is tried again as others are (wrapped_malloc.cpp). They run when their thread ends; those of the thread that ends
// the process do not, which Rust does not promise either.

#include <cstdlib>
#include <pthread.h>

#include "reserve.h"

extern "C" {
void *__wrap_malloc(size_t size);
int __real___cxa_thread_atexit_impl(void (*run)(void *), void *object, void *library);
}

namespace {

struct Destructor {
  void (*run)(void *);
  void *object;
  Destructor *next;
};

pthread_key_t makeKey();

pthread_key_t key() {
  static const pthread_key_t made = makeKey();
  return made;
}

/// The last one first. One that runs may note others.
void runAll(void *list) {
  pthread_setspecific(key(), list);
  while (auto *first = static_cast<Destructor *>(pthread_getspecific(key()))) {
    pthread_setspecific(key(), first->next);
    first->run(first->object);
    std::free(first);
  }
}

pthread_key_t makeKey() {
  pthread_key_t made;
  // No program has used up its keys when it begins.
  if (pthread_key_create(&made, runAll) != 0)
    std::abort();
  return made;
}

bool note(void (*run)(void *), void *object) {
  auto *made = static_cast<Destructor *>(__wrap_malloc(sizeof(Destructor)));
  if (!made)
    return false;
  *made = {run, object, static_cast<Destructor *>(pthread_getspecific(key()))};
  while (pthread_setspecific(key(), made) != 0) {
    if (!gpulower::mayTryAgain()) {
      std::free(made);
      return false;
    }
  }
  return true;
}

} // namespace

extern "C" {

/// Rust's.
int __wrap___cxa_thread_atexit_impl(void (*run)(void *), void *object, void *library) {
  return note(run, object) ? 0 : __real___cxa_thread_atexit_impl(run, object, library);
}

/// That of C++, which is the same.
int __wrap___cxa_thread_atexit(void (*run)(void *), void *object, void *library) {
  return __wrap___cxa_thread_atexit_impl(run, object, library);
}
}
