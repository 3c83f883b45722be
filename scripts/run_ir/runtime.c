// What stands for a GPU of NVIDIA's when a kernel's LLVM IR is compiled for this machine's processor: blocks one after the other, the threads of
// a block as fibers, which switch where they wait for each other. scripts/run_ir.py compiles kernels with it.

#include <dlfcn.h>
#include <fenv.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

enum { WARP = 32, MOST = 1024, STACK = 1 << 18, GAP = 256, FILLING = 0xA5 };
typedef enum { RUNS, AT_BARRIER, IN_WARP, ENDED } State;

typedef struct {
  ucontext_t context;
  char *stack;
  State state;
  uint32_t lanes;      // that it waits for
  uint32_t value;      // what it brings
  uint32_t seen[WARP]; // what all brought
} Thread;

static Thread all[MOST];
static ucontext_t scheduler;
static uint32_t now, threads, block, blocks;
static void (*kernel)(void *);
static void *arguments;
static const char *trap;

static void give_way(State state) {
  all[now].state = state;
  swapcontext(&all[now].context, &scheduler);
}

static void stop(const char *why) {
  trap = why;
  give_way(ENDED);
}

static void begin(void) {
  kernel(arguments);
  give_way(ENDED);
}

// The threads that need not wait any longer; 0 if there are none.
static int release(void) {
  int released = 0, waiting = 0, left = 0;
  for (uint32_t t = 0; t < threads; ++t) {
    left += all[t].state != ENDED;
    waiting += all[t].state == AT_BARRIER;
  }
  if (waiting == left)
    for (uint32_t t = 0; t < threads; ++t)
      if (all[t].state == AT_BARRIER)
        all[t].state = RUNS, ++released;
  for (uint32_t t = 0; t < threads; ++t) {
    if (all[t].state != IN_WARP)
      continue;
    Thread *warp = all + t / WARP * WARP;
    uint32_t lanes = 0, size = threads - t / WARP * WARP < WARP ? threads - t / WARP * WARP : WARP, wanted = all[t].lanes;
    int together = 1;
    for (uint32_t l = 0; l < size; ++l)
      if (wanted >> l & 1 && warp[l].state != ENDED) {
        lanes |= 1u << l;
        together &= warp[l].state == IN_WARP && warp[l].lanes == wanted;
      }
    if (!together)
      continue;
    uint32_t values[WARP] = {0};
    for (uint32_t l = 0; l < size; ++l)
      values[l] = warp[l].value;
    for (uint32_t l = 0; l < size; ++l)
      if (lanes >> l & 1) {
        memcpy(warp[l].seen, values, sizeof values);
        warp[l].lanes = lanes;
        warp[l].state = RUNS;
        ++released;
      }
  }
  return released;
}

static void run_block(void) {
  for (uint32_t t = 0; t < threads; ++t) {
    Thread *one = all + t;
    if (!one->stack)
      one->stack = malloc(STACK);
    getcontext(&one->context);
    one->context.uc_stack.ss_sp = one->stack;
    one->context.uc_stack.ss_size = STACK;
    one->context.uc_link = &scheduler;
    makecontext(&one->context, begin, 0);
    one->state = RUNS;
  }
  do {
    for (now = 0; now < threads && !trap; ++now)
      if (all[now].state == RUNS)
        swapcontext(&scheduler, &all[now].context);
  } while (!trap && release());
  for (uint32_t t = 0; t < threads && !trap; ++t)
    if (all[t].state != ENDED)
      trap = "threads wait for each other for ever";
}

#define NAMED(name) __asm__(name)
#define REGISTER(name, value) \
  uint32_t name##_x(void) NAMED("nvvm.read.ptx.sreg." #name ".x"); \
  uint32_t name##_x(void) { return value; }
REGISTER(tid, now)
REGISTER(ntid, threads)
REGISTER(ctaid, block)
REGISTER(nctaid, blocks)
uint32_t laneid(void) NAMED("nvvm.read.ptx.sreg.laneid");
uint32_t laneid(void) { return now % WARP; }
uint32_t warpsize(void) NAMED("nvvm.read.ptx.sreg.warpsize");
uint32_t warpsize(void) { return WARP; }
#define OTHER(name, axis, value) \
  uint32_t name##_##axis(void) NAMED("nvvm.read.ptx.sreg." #name "." #axis); \
  uint32_t name##_##axis(void) { return value; }
OTHER(tid, y, 0) OTHER(tid, z, 0) OTHER(ntid, y, 1) OTHER(ntid, z, 1)
OTHER(ctaid, y, 0) OTHER(ctaid, z, 0) OTHER(nctaid, y, 1) OTHER(nctaid, z, 1)

void barrier0(void) NAMED("nvvm.barrier0");
void barrier0(void) { give_way(AT_BARRIER); }
void barrier_all(uint32_t which) NAMED("nvvm.barrier.cta.sync.aligned.all");
void barrier_all(uint32_t which) { give_way(AT_BARRIER); }
void barrier_any(uint32_t which) NAMED("nvvm.barrier.cta.sync.all");
void barrier_any(uint32_t which) { give_way(AT_BARRIER); }

static uint32_t *meet(uint32_t lanes, uint32_t value) {
  all[now].lanes = lanes;
  all[now].value = value;
  give_way(IN_WARP);
  return all[now].seen;
}
void bar_warp(uint32_t lanes) NAMED("nvvm.bar.warp.sync");
void bar_warp(uint32_t lanes) { meet(lanes, 0); }

// "shfl.sync" of the PTX ISA. The lowest bit of the upper half of the result says whether the lane that is read is one.
uint64_t host_shuffle(uint32_t mode, uint32_t lanes, uint32_t value, uint32_t b, uint32_t c) {
  uint32_t *seen = meet(lanes, value);
  int lane = now % WARP, segment = c >> 8 & 31, by = b & 31;
  int most = (lane & segment) | (c & 31 & ~segment), from = 0;
  switch (mode) {
  case 0: from = lane - by; break;
  case 1: from = lane + by; break;
  case 2: from = lane ^ by; break;
  default: from = (lane & segment) | (by & ~segment); break;
  }
  int valid = mode == 0 ? from >= most : from <= most;
  return (uint64_t)valid << 32 | seen[valid ? from : lane];
}

#define REDUCE(name, type, operation) \
  type redux_##name(type value, uint32_t lanes) NAMED("nvvm.redux.sync." #name); \
  type redux_##name(type value, uint32_t lanes) { \
    uint32_t *seen = meet(lanes, (uint32_t)value), members = all[now].lanes; \
    int first = 1; \
    type a = 0; \
    for (uint32_t l = 0; l < WARP; ++l) \
      if (members >> l & 1) { \
        type b = (type)seen[l]; \
        a = first ? b : (operation); \
        first = 0; \
      } \
    return a; \
  }
REDUCE(add, uint32_t, a + b)
REDUCE(and, uint32_t, a & b)
REDUCE(or, uint32_t, a | b)
REDUCE(xor, uint32_t, a ^ b)
REDUCE(min, int32_t, a < b ? a : b)
REDUCE(max, int32_t, a > b ? a : b)
REDUCE(umin, uint32_t, a < b ? a : b)
REDUCE(umax, uint32_t, a > b ? a : b)

uint32_t difference(int32_t one, int32_t other, uint32_t added) NAMED("nvvm.sad.i");
uint32_t difference(int32_t one, int32_t other, uint32_t added) {
  return (one < other ? (uint32_t)other - (uint32_t)one : (uint32_t)one - (uint32_t)other) + added;
}

// libdevice rounds with these.
#define TOWARDS_ZERO(name, type, letter) \
  type name(type one, type other) NAMED("nvvm.add.rz." letter); \
  type name(type one, type other) { \
    volatile type left = one, right = other; \
    fesetround(FE_TOWARDZERO); \
    volatile type sum = left + right; \
    fesetround(FE_TONEAREST); \
    return sum; \
  }
TOWARDS_ZERO(add_single, float, "f")
TOWARDS_ZERO(add_double, double, "d")

#define NARROWED(name, direction) \
  float narrowed_##name(double one) NAMED("nvvm.d2f." #name); \
  float narrowed_##name(double one) { \
    volatile double wide = one; \
    fesetround(direction); \
    volatile float narrow = (float)wide; \
    fesetround(FE_TONEAREST); \
    return narrow; \
  }
NARROWED(rn, FE_TONEAREST)
NARROWED(rz, FE_TOWARDZERO)
NARROWED(rm, FE_DOWNWARD)
NARROWED(rp, FE_UPWARD)

void assertion(const char *message, const char *file, uint32_t line, const char *function, uint64_t size) NAMED("__assertfail");
void assertion(const char *message, const char *file, uint32_t line, const char *function, uint64_t size) { stop("an assertion"); }

// GCC 12's library has no conversions to bfloat. Once, to the nearest.
static uint16_t to_bfloat(double value) {
  float nearest = (float)value;
  uint32_t bits;
  memcpy(&bits, &nearest, 4);
  if (value != value)
    return bits >> 16 | 0x40;
  if ((double)nearest != value) { // To odd, so that the next rounding is right.
    double of = __builtin_fabs(value), less = __builtin_fabs((double)nearest);
    bits = less > of ? (bits - 1) | 1 : bits | 1;
  }
  return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
}
__bf16 from_single(float value) NAMED("__truncsfbf2");
__bf16 from_single(float value) {
  uint16_t bits = to_bfloat(value);
  __bf16 result;
  memcpy(&result, &bits, 2);
  return result;
}
__bf16 from_double(double value) NAMED("__truncdfbf2");
__bf16 from_double(double value) {
  uint16_t bits = to_bfloat(value);
  __bf16 result;
  memcpy(&result, &bits, 2);
  return result;
}

static void take(void *into, size_t size) {
  if (fread(into, 1, size, stdin) != size)
    exit(feof(stdin) ? 0 : 1);
}
static uint32_t number(void) {
  uint32_t value;
  take(&value, sizeof value);
  return value;
}

// Launches from the input, what memory holds after them to the output: see `Program.run` in run_ir.py.
int main(void) {
  for (;;) {
    char name[256] = "launch.";
    uint32_t length = number();
    take(name + 7, length);
    blocks = number();
    threads = number();
    uint32_t count = number(), sizes[64];
    char *storages[64];
    for (uint32_t s = 0; s < count; ++s) {
      sizes[s] = number();
      storages[s] = (char *)malloc(sizes[s] + 2 * GAP) + GAP;
      memset(storages[s] - GAP, FILLING, sizes[s] + 2 * GAP);
      take(storages[s], sizes[s]);
    }
    uint64_t slots[256] = {0};
    uint32_t given = number();
    for (uint32_t a = 0; a < given; ++a) {
      uint32_t size = number();
      if (size)
        take(&slots[a], size);
      else {
        uint32_t storage = number();
        slots[a] = (uint64_t)(storages[storage] + number());
      }
    }
    *(void **)&kernel = dlsym(0, name);
    arguments = slots;
    trap = kernel && threads <= MOST ? 0 : "no such kernel";
    for (block = 0; block < blocks && !trap; ++block)
      run_block();
    for (uint32_t s = 0; s < count; ++s)
      for (uint32_t g = 0; g < GAP; ++g)
        if (((uint8_t *)storages[s])[(int)g - GAP] != FILLING || ((uint8_t *)storages[s])[sizes[s] + g] != FILLING)
          trap = "a store outside of every buffer";
    uint32_t said = trap ? strlen(trap) : 0;
    fwrite(&said, 4, 1, stdout);
    fwrite(trap, 1, said, stdout);
    for (uint32_t s = 0; s < count && !said; ++s)
      fwrite(storages[s], 1, sizes[s], stdout);
    for (uint32_t s = 0; s < count; ++s)
      free(storages[s] - GAP);
    fflush(stdout);
  }
}
