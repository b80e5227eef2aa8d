/* Work that threads share: a phase is a number of units, each processed by the thread that takes it first.

A thread continues with the next phase when all units are done. It does not wait for threads that have taken no unit: a
thread that the system has suspended delays the others by one unit at most. */
#ifndef PHASES_H
#define PHASES_H
#if !defined(__wasm__)
#include <sched.h>
#endif
#include <stdatomic.h>
#include <stdint.h>

#define SPINS 500 /* iterations of active waiting; then the core is yielded */

typedef struct { atomic_int taken, done; char padding[56]; } Phase;
typedef struct { int id, n; Phase *phases; } Thread;

static inline void relax(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

/* for (units of `total` that this thread takes) */
#define FOR_UNITS(unit, phase, total)                                                            \
  for (int64_t unit; (unit = atomic_fetch_add(&(phase)->taken, 1)) < (total); atomic_fetch_add(&(phase)->done, 1))

#if defined(__wasm__) /* one thread */
static inline void wait_for(Phase *phase, int64_t total) { (void)phase, (void)total; }
#else
static inline void wait_for(Phase *phase, int64_t total) {
  for (int i = 0; atomic_load_explicit(&phase->done, memory_order_acquire) < total; i++)
    if (i < SPINS) relax();
    else sched_yield();
}
#endif

/* Size of the units when n_threads share `total` items: about 4 units for each thread, of at most `most` items. */
static inline int64_t unit_size(int64_t total, int n_threads, int64_t most) {
  int64_t size = total / (4 * n_threads);
  return size < 1 ? 1 : size > most ? most : size;
}
static inline int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }
#endif
