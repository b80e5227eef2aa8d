/* The kernels of decoding as a module of WebAssembly, in one thread. Takes the place of library.c and threads.c. */
#include <string.h>
#include "insert.h"
#include "program.h"
#include "vector.h"

void run_web(Thread t, const Program *p, const Rows *r);

__attribute__((export_name("run"))) void run(const Program *p, const Rows *r) {
  memset(p->phases, 0, (size_t)(p->n_ops + 1) * sizeof(Phase));
  run_web((Thread){0, 1, p->phases}, p, r);
}

/* The logarithm of the sum of the exponentials of n numbers, which have memory for a multiple of 16. */
__attribute__((export_name("log_sum_exp"))) float log_sum_exp(const float *x, int n) {
  V most[PARTS], total[PARTS];
  for (int j = 0; j < PARTS; j++) most[j] = all(-INFINITY), total[j] = all(0);
  for (int i = 0; i < n; i += 16)
    for (int j = 0; j < PARTS; j++) {
      int at = i + j * LANES;
      most[j] = larger(most[j], first_lanes(n - at, load(x + at), all(-INFINITY)));
    }
  V top = all(largest(most));
  for (int i = 0; i < n; i += 16)
    for (int j = 0; j < PARTS; j++) {
      int at = i + j * LANES;
      total[j] += first_lanes(n - at, exponential_below_87(load(x + at) - top), all(0));
    }
  return top[0] + logarithm(sum(total));
}

/* The k largest of n numbers and their indices, the largest first; of equal numbers, the first. */
__attribute__((export_name("largest"))) void largest_of(const float *x, int n, int k, float *values, int32_t *indices) {
  for (int i = 0; i < k; i++) values[i] = -INFINITY, indices[i] = -1;
  for (int i = 0; i < n; i += LANES)
    if (any_at_least(load(x + i), all(values[k - 1])))
      for (int j = i; j < n && j < i + LANES; j++)
        if (x[j] > values[k - 1]) insert(values, indices, k, x[j], j);
}

/* The number of those of n numbers that are larger than one. */
__attribute__((export_name("n_larger"))) int n_larger(const float *x, int n, float than) {
  int count = 0;
  for (int i = 0; i < n; i++) count += x[i] > than;
  return count;
}

/* Sizes of the structures that JavaScript writes. */
__attribute__((export_name("size_of"))) int size_of(int which) {
  const int sizes[] = {sizeof(Op), sizeof(Program), sizeof(Rows), sizeof(Phase)};
  return sizes[which];
}

/* The sources that the module was built from. */
__attribute__((export_name("source_hash"))) const char *source_hash(void) { return SOURCE_HASH; }
