/* Softmax of the rows of a matrix, in place, with the logarithm of the sum of exponentials of each row. */
#ifndef SOFTMAX_H
#define SOFTMAX_H
#include <stdlib.h>
#include "element.h"
#include "training.h"

/* Vector i of a row of n elements. After the last element: minus infinity. */
INLINE V load_logits(const void *row, int64_t i, int64_t n, int is_bf16) {
  if (i + LANES <= n) return load_element(row, i, is_bf16);
  float x[LANES];
  for (int lane = 0; lane < LANES; lane++) {
    uint32_t bits = 0xff800000u;
    if (i + lane < n) {
      if (is_bf16) bits = (uint32_t)((const uint16_t *)row)[i + lane] << 16;
      else memcpy(&bits, (const float *)row + i + lane, 4);
    }
    memcpy(x + lane, &bits, 4);
  }
  return load(x);
}

INLINE void store_probabilities(void *row, int64_t i, int64_t n, V x, int is_bf16) {
  if (i + LANES <= n) {
    store_element(row, i, x, is_bf16);
    return;
  }
  char last[4 * LANES];
  store_element(last, 0, x, is_bf16);
  memcpy(element(row, i, is_bf16), last, (size_t)(n - i) * element_size(is_bf16));
}

INLINE void softmax_of_rows(const SoftmaxArguments *a, int64_t begin, int64_t end, int is_bf16) {
  int64_t n = a->n;
  float *exponentials = malloc(sizeof(float) * (size_t)(n + 16)); /* of a row */
  if (!exponentials) abort();
  for (int64_t r = begin; r < end; r++) {
    void *row = element(a->logits, r * n, is_bf16);
    V most[PARTS], total[PARTS];
    for (int part = 0; part < PARTS; part++) most[part] = all(-INFINITY), total[part] = all(0);
    for (int64_t i = 0; i < n; i += 16)
      for (int part = 0; part < PARTS && i + part * LANES < n; part++)
        most[part] = larger(most[part], load_logits(row, i + part * LANES, n, is_bf16));
    V top = all(largest(most));
    for (int64_t i = 0; i < n; i += 16)
      for (int part = 0; part < PARTS && i + part * LANES < n; part++) {
        V x = load_logits(row, i + part * LANES, n, is_bf16), e = exponential(x - top);
        store(exponentials + i + part * LANES, e);
        total[part] += (V)choose(x == all(-INFINITY), (I)all(0), (I)e); /* e is clamped from below */
      }
    float all_of_them = sum(total);
    a->log_sum_exp[r] = top[0] + logf(all_of_them);
    V factor = all(1.f / all_of_them);
    for (int64_t i = 0; i < n; i += LANES) store_probabilities(row, i, n, load(exponentials + i) * factor, is_bf16);
  }
  free(exponentials);
}
#endif
