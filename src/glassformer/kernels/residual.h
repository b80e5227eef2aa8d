/* Residual connection with dropout and LayerNorm, forward and backward:

  s = x + dropout(z);  out = LayerNorm(s), or s if there is no normalization

Dropout is not stored: the bits of element i are a hash of i and the seed, computed again in the backward pass. */
#ifndef RESIDUAL_H
#define RESIDUAL_H
#include "element.h"
#include "training.h"

typedef uint32_t U __attribute__((vector_size(4 * LANES)));

/* 32 random bits of each element from `index` on. Source of the mixing function: lowbias32, Wellons 2018. */
INLINE U random_bits(uint32_t index, const uint32_t *seed) {
  U x = {0};
  for (int lane = 0; lane < LANES; lane++) x[lane] = (uint32_t)lane;
  x = (x + index) ^ seed[0];
  for (int i = 0; i < 2; i++) {
    x = (x ^ (x >> 16)) * 0x7feb352du;
    x = (x ^ (x >> 15)) * 0x846ca68bu;
    x = (x ^ (x >> 16)) + seed[1];
  }
  return x;
}

/* 1 / (1 - p) for the elements that are kept, 0 for the others. */
INLINE V dropout_factor(uint32_t index, const ResidualArguments *a) {
  if (!a->threshold) return all(1);
  return (V)choose((I)(random_bits(index, a->seed) < a->threshold), (I)all(0), (I)all(a->keep_scale));
}

INLINE void residual_rows(const ResidualArguments *a, int64_t begin, int64_t end, int is_bf16) {
  int64_t n = a->n;
  for (int64_t row = begin; row < end; row++) {
    void *x = element(a->x, row * n, is_bf16), *z = element(a->z, row * n, is_bf16);
    void *sums = element(a->sum, row * n, is_bf16);
    V total[PARTS], squares[PARTS];
    for (int part = 0; part < PARTS; part++) total[part] = squares[part] = all(0);
    for (int64_t i = 0; i < n; i += 16)
      for (int part = 0; part < PARTS; part++) {
        int64_t at = i + part * LANES;
        V s = load_element(x, at, is_bf16) + load_element(z, at, is_bf16) * dropout_factor((uint32_t)(row * n + at), a);
        store_element(sums, at, s, is_bf16);
        total[part] += load_element(sums, at, is_bf16); /* as rounded */
      }
    if (!a->gain) continue;
    V mean = all(sum(total) / (float)n);
    for (int64_t i = 0; i < n; i += 16)
      for (int part = 0; part < PARTS; part++) {
        V d = load_element(sums, i + part * LANES, is_bf16) - mean;
        squares[part] += d * d;
      }
    float factor = 1.f / sqrtf(sum(squares) / (float)n + a->eps);
    a->statistics[2 * row] = mean[0], a->statistics[2 * row + 1] = factor;
    void *out = element(a->out, row * n, is_bf16);
    for (int64_t i = 0; i < n; i += LANES)
      store_element(out, i, (load_element(sums, i, is_bf16) - mean) * factor * load(a->gain + i) + load(a->bias + i), is_bf16);
  }
}

/* With y = (s - mean) / deviation and g = gain * d_out: d_s = (g - mean(g) - y mean(g y)) / deviation. */
INLINE void residual_gradients(const ResidualArguments *a, int64_t part_index, int64_t begin, int64_t end, int is_bf16) {
  int64_t n = a->n;
  float *d_gain = a->d_gain + part_index * n, *d_bias = a->d_bias + part_index * n;
  if (a->gain)
    for (int64_t i = 0; i < n; i++) d_gain[i] = d_bias[i] = 0;
  for (int64_t row = begin; row < end; row++) {
    void *sums = element(a->sum, row * n, is_bf16), *d_out = element(a->d_out, row * n, is_bf16);
    void *d_x = element(a->d_x, row * n, is_bf16), *d_z = element(a->d_z, row * n, is_bf16);
    V mean = all(0), factor = all(1), mean_g = all(0), mean_gy = all(0);
    if (a->gain) {
      mean = all(a->statistics[2 * row]), factor = all(a->statistics[2 * row + 1]);
      V total[PARTS], products[PARTS];
      for (int part = 0; part < PARTS; part++) total[part] = products[part] = all(0);
      for (int64_t i = 0; i < n; i += 16)
        for (int part = 0; part < PARTS; part++) {
          int64_t at = i + part * LANES;
          V d = load_element(d_out, at, is_bf16), y = (load_element(sums, at, is_bf16) - mean) * factor;
          store(d_gain + at, load(d_gain + at) + d * y);
          store(d_bias + at, load(d_bias + at) + d);
          V g = d * load(a->gain + at);
          total[part] += g;
          products[part] += g * y;
        }
      mean_g = all(sum(total) / (float)n), mean_gy = all(sum(products) / (float)n);
    }
    for (int64_t i = 0; i < n; i += LANES) {
      V d = load_element(d_out, i, is_bf16);
      if (a->gain) {
        V y = (load_element(sums, i, is_bf16) - mean) * factor;
        d = (d * load(a->gain + i) - mean_g - y * mean_gy) * factor;
      }
      store_element(d_x, i, d, is_bf16);
      store_element(d_z, i, d * dropout_factor((uint32_t)(row * n + i), a), is_bf16);
    }
  }
}
#endif
