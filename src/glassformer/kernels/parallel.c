/* Divides a kernel of training among the threads of the OpenMP library that PyTorch has loaded. Threads of our own would
compete with PyTorch's, which wait actively between its functions. */
#define _GNU_SOURCE
#ifndef _WIN32
#include <dlfcn.h>
#endif
#include <stdatomic.h>
#include <stddef.h>
#include "parallel.h"

typedef void (*Parallel)(void (*run)(void *), void *data, unsigned n_threads, unsigned flags);
typedef struct { Part run; int kernel; const void *arguments; int n_parts; atomic_int n_taken; } Task;

static Parallel openmp(void) {
  static Parallel parallel;
#ifndef _WIN32 /* PyTorch for Windows has an OpenMP library with another interface */
  if (!parallel) parallel = (Parallel)dlsym(RTLD_DEFAULT, "GOMP_parallel");
#ifdef __linux__ /* on ARM, only PyTorch's libraries have it */
  void *torch = parallel ? NULL : dlopen("libtorch_cpu.so", RTLD_LAZY | RTLD_NOLOAD);
  if (torch) parallel = (Parallel)dlsym(torch, "GOMP_parallel");
#endif
#endif
  return parallel;
}

int has_openmp(void) { return openmp() != 0; }

static void take_parts(void *data) {
  Task *task = data;
  for (int part; (part = atomic_fetch_add(&task->n_taken, 1)) < task->n_parts;)
    task->run(task->kernel, task->arguments, part, task->n_parts);
}

void run_parts(Part run, int kernel, const void *arguments, int n_parts) {
  Task task = {run, kernel, arguments, n_parts, 0};
  if (n_parts > 1 && openmp()) openmp()(take_parts, &task, (unsigned)n_parts, 0);
  else take_parts(&task);
}
