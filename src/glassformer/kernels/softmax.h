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

/* The exponentials of the elements of a row less the largest, which is returned, and their sum. */
INLINE float exponentials_of_row(const void *row, int64_t n, float *exponentials, float *sum_of_them, int is_bf16) {
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
  *sum_of_them = sum(total);
  return top[0];
}

INLINE float *memory_of_rows(int64_t n_rows, int64_t n) {
  float *memory = malloc(sizeof(float) * (size_t)(n_rows * (n + 16)));
  if (!memory) abort();
  return memory;
}

INLINE void softmax_of_rows(const SoftmaxArguments *a, int64_t begin, int64_t end, int is_bf16) {
  int64_t n = a->n;
  float *exponentials = memory_of_rows(1, n), sum_of_them;
  for (int64_t r = begin; r < end; r++) {
    void *row = element(a->logits, r * n, is_bf16);
    float top = exponentials_of_row(row, n, exponentials, &sum_of_them, is_bf16);
    a->log_sum_exp[r] = top + logf(sum_of_them);
    V factor = all(1.f / sum_of_them);
    for (int64_t i = 0; i < n; i += LANES) store_probabilities(row, i, n, load(exponentials + i) * factor, is_bf16);
  }
  free(exponentials);
}

/* Pairs of rows x, y with softmax p, q: their divergence KL(p, q) + KL(q, p) = sum (p - q) (x - y), and in place of x
   and y the gradients of -log p - log q at the targets, without the terms of the targets, + weight * divergence. */
INLINE void softmax_of_pairs(const SoftmaxArguments *a, int64_t begin, int64_t end, int is_bf16) {
  int64_t n = a->n;
  float *p = memory_of_rows(2, n), *q = p + n + 16, sums[2];
  V c = all(a->weight);
  for (int64_t r = begin; r < end; r++) {
    void *x = element(a->logits, 2 * r * n, is_bf16), *y = element(a->logits, (2 * r + 1) * n, is_bf16);
    a->log_sum_exp[2 * r] = exponentials_of_row(x, n, p, sums, is_bf16) + logf(sums[0]);
    a->log_sum_exp[2 * r + 1] = exponentials_of_row(y, n, q, sums + 1, is_bf16) + logf(sums[1]);
    V factor_p = all(1.f / sums[0]), factor_q = all(1.f / sums[1]);
    V under_p[PARTS], under_q[PARTS]; /* expectations of x - y */
    for (int part = 0; part < PARTS; part++) under_p[part] = under_q[part] = all(0);
    for (int64_t i = 0; i < n; i += 16)
      for (int part = 0; part < PARTS && i + part * LANES < n; part++) {
        int64_t at = i + part * LANES;
        V difference = load_logits(x, at, n, is_bf16) - load_logits(y, at, n, is_bf16);
        difference = (V)choose(difference == difference, (I)difference, (I)all(0)); /* beyond the end */
        V in_p = load(p + at) * factor_p, in_q = load(q + at) * factor_q;
        store(p + at, in_p);
        store(q + at, in_q);
        under_p[part] += in_p * difference;
        under_q[part] += in_q * difference;
      }
    float mean_p = sum(under_p), mean_q = sum(under_q);
    a->divergence[r] = mean_p - mean_q;
    for (int64_t i = 0; i < n; i += LANES) {
      V difference = load_logits(x, i, n, is_bf16) - load_logits(y, i, n, is_bf16), in_p = load(p + i), in_q = load(q + i);
      store_probabilities(x, i, n, in_p + c * (in_p * (difference - all(mean_p)) + in_p - in_q), is_bf16);
      store_probabilities(y, i, n, in_q + c * (in_q * (all(mean_q) - difference) + in_q - in_p), is_bf16);
    }
  }
  free(p);
}
#endif
