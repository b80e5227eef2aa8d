/* Threads that execute a program together.

One pool for the process. Its threads wait actively for a short time after a program, then sleep. If the pool is in use
by another thread of the caller, a program runs in the calling thread alone; the result is the same. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include "program.h"

#define MAX_THREADS 256
#define SPINS 20000      /* active waiting for the other threads of a program; then the core is yielded */
#define IDLE_SPINS 10000 /* active waiting for the next program; then the thread sleeps */

struct Barrier { atomic_int arrived, phase; };

static inline void relax(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

/* Returns when all threads of the program have called it. */
void wait_for_all(Thread t) {
  if (t.n == 1) return;
  struct Barrier *b = t.barrier;
  int phase = atomic_load_explicit(&b->phase, memory_order_relaxed);
  if (atomic_fetch_add(&b->arrived, 1) == t.n - 1) {
    atomic_store_explicit(&b->arrived, 0, memory_order_relaxed);
    atomic_store_explicit(&b->phase, phase + 1, memory_order_release);
    return;
  }
  for (int i = 0; atomic_load_explicit(&b->phase, memory_order_acquire) == phase; i++)
    if (i < SPINS) relax();
    else sched_yield();
}

static struct { Run run; const Program *program; const Rows *rows; int n; } task;
static struct { atomic_int n_tasks; char padding[60]; } workers[MAX_THREADS]; /* n_tasks: given to this thread */
static struct Barrier barrier;
static int n_started = 1; /* threads of the pool, with the caller */
static atomic_int n_sleeping;
static pthread_mutex_t pool = PTHREAD_MUTEX_INITIALIZER, sleep_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER;

static void *work(void *argument) {
  int id = (int)(intptr_t)argument;
  for (int done = 0;; done++) {
    for (int i = 0; atomic_load(&workers[id].n_tasks) == done && i < IDLE_SPINS; i++) relax();
    if (atomic_load(&workers[id].n_tasks) == done) {
      pthread_mutex_lock(&sleep_lock);
      atomic_fetch_add(&n_sleeping, 1);
      while (atomic_load(&workers[id].n_tasks) == done) pthread_cond_wait(&wake, &sleep_lock);
      atomic_fetch_sub(&n_sleeping, 1);
      pthread_mutex_unlock(&sleep_lock);
    }
    task.run((Thread){id, task.n, &barrier}, task.program, task.rows);
  }
  return NULL;
}

/* In a forked process, the threads do not exist. */
static void after_fork(void) {
  n_started = 1;
  atomic_store(&n_sleeping, 0);
  memset(workers, 0, sizeof workers);
  memset(&barrier, 0, sizeof barrier);
  pthread_mutex_init(&pool, NULL);
  pthread_mutex_init(&sleep_lock, NULL);
  pthread_cond_init(&wake, NULL);
}

static void start_threads(int n) {
  static int is_registered;
  if (!is_registered) is_registered = !pthread_atfork(NULL, NULL, after_fork);
  for (pthread_t thread; n_started < n; n_started++) {
    if (pthread_create(&thread, NULL, work, (void *)(intptr_t)n_started)) return;
    pthread_detach(thread);
  }
}

void run_on_threads(Run run, int n_threads, const Program *program, const Rows *rows) {
  if (n_threads > MAX_THREADS) n_threads = MAX_THREADS;
  if (n_threads <= 1 || pthread_mutex_trylock(&pool)) {
    run((Thread){0, 1, NULL}, program, rows);
    return;
  }
  start_threads(n_threads);
  if (n_threads > n_started) n_threads = n_started;
  task.run = run, task.program = program, task.rows = rows, task.n = n_threads;
  for (int i = 1; i < n_threads; i++) atomic_fetch_add(&workers[i].n_tasks, 1);
  if (atomic_load(&n_sleeping)) {
    pthread_mutex_lock(&sleep_lock);
    pthread_cond_broadcast(&wake);
    pthread_mutex_unlock(&sleep_lock);
  }
  run((Thread){0, n_threads, &barrier}, program, rows);
  pthread_mutex_unlock(&pool);
}
