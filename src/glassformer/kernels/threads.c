/* Threads that execute a program together.

One pool for the process. Its threads wait actively for a short time after a program, then sleep; a program begins
without waiting for them. If the pool is in use by another thread of the caller, a program runs in the calling thread
alone; the result is the same. */
#include <pthread.h>
#include <string.h>
#include "program.h"

#define MAX_THREADS 256
#define IDLE_SPINS 100000 /* iterations of active waiting for the next program, some milliseconds; then the thread sleeps */

static struct { Run run; const Program *program; const Rows *rows; int n; } task;
static atomic_int n_tasks;  /* number of the last task */
static atomic_int open_task; /* the task that threads may join; 0: none */
static atomic_int n_inside, n_sleeping;
static int n_started = 1; /* threads of the pool, with the caller */
static pthread_mutex_t pool = PTHREAD_MUTEX_INITIALIZER, sleep_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER;

static void *work(void *argument) {
  int id = (int)(intptr_t)argument;
  for (int last = 0;;) {
    for (int i = 0; atomic_load(&n_tasks) == last && i < IDLE_SPINS; i++) relax();
    if (atomic_load(&n_tasks) == last) {
      pthread_mutex_lock(&sleep_lock);
      atomic_fetch_add(&n_sleeping, 1);
      while (atomic_load(&n_tasks) == last) pthread_cond_wait(&wake, &sleep_lock);
      atomic_fetch_sub(&n_sleeping, 1);
      pthread_mutex_unlock(&sleep_lock);
    }
    last = atomic_load(&n_tasks);
    atomic_fetch_add(&n_inside, 1); /* from here on, the caller does not return while the task is open */
    if (atomic_load(&open_task) == last && id < task.n)
      task.run((Thread){id, task.n, task.program->phases}, task.program, task.rows);
    atomic_fetch_sub(&n_inside, 1);
  }
  return NULL;
}

/* In a forked process, the threads do not exist. */
#ifndef _WIN32
static void after_fork(void) {
  n_started = 1;
  atomic_store(&n_sleeping, 0);
  atomic_store(&n_inside, 0);
  atomic_store(&open_task, 0);
  pthread_mutex_init(&pool, NULL);
  pthread_mutex_init(&sleep_lock, NULL);
  pthread_cond_init(&wake, NULL);
}
#endif

static void start_threads(int n) {
#ifndef _WIN32 /* which has no fork */
  static int is_registered;
  if (!is_registered) is_registered = !pthread_atfork(NULL, NULL, after_fork);
#endif
  for (pthread_t thread; n_started < n; n_started++) {
    if (pthread_create(&thread, NULL, work, (void *)(intptr_t)n_started)) return;
    pthread_detach(thread);
  }
}

void run_on_threads(Run run, int n_threads, const Program *program, const Rows *rows) {
  memset(program->phases, 0, (size_t)(program->n_ops + 1) * sizeof(Phase));
  if (n_threads > MAX_THREADS) n_threads = MAX_THREADS;
  if (n_threads <= 1 || pthread_mutex_trylock(&pool)) {
    run((Thread){0, 1, program->phases}, program, rows);
    return;
  }
  start_threads(n_threads);
  if (n_threads > n_started) n_threads = n_started;
  task.run = run, task.program = program, task.rows = rows, task.n = n_threads;
  int number = atomic_load(&n_tasks) + 1;
  if (number <= 0) number = 1;
  atomic_store(&open_task, number);
  atomic_store(&n_tasks, number);
  if (atomic_load(&n_sleeping)) {
    pthread_mutex_lock(&sleep_lock);
    pthread_cond_broadcast(&wake);
    pthread_mutex_unlock(&sleep_lock);
  }
  run((Thread){0, n_threads, program->phases}, program, rows);
  atomic_store(&open_task, 0);
  for (int i = 0; atomic_load(&n_inside); i++)
    if (i < SPINS) relax();
    else sched_yield();
  pthread_mutex_unlock(&pool);
}
