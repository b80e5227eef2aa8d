/* Division of work into parts, on several threads. */
#ifndef PARALLEL_H
#define PARALLEL_H
#include <stdint.h>

typedef void (*Part)(int kernel, const void *arguments, int64_t part, int64_t n_parts);
void run_parts(Part run, int kernel, const void *arguments, int n_parts);
int has_openmp(void);
#endif
