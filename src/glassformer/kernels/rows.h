/* Operations on one row: sums of embeddings, residual connections, activations, rotary positions. */
#ifndef ROWS_H
#define ROWS_H
#include "program.h"
#include "vector.h"

INLINE V sigmoid(V x) { return 1.f / (1.f + exponential(-x)); }

/* erf(x) with an absolute error of 1.5e-7. Source: Abramowitz & Stegun 1964, equation 7.1.26. */
INLINE V erf_of(V x) {
  V a = magnitude(x), t = 1.f / (1.f + 0.3275911f * a), p = all(1.061405429f);
  p = p * t - 1.453152027f;
  p = p * t + 1.421413741f;
  p = p * t - 0.284496736f;
  p = p * t + 0.254829592f;
  V e = 1.f - p * t * exponential(-a * a);
  return (V)((I)e | ((I)x & (int32_t)0x80000000)); /* odd */
}

enum Activation { NO_ACTIVATION, RELU, GELU, GELU_TANH, SILU, TANH };

INLINE void activate(enum Activation kind, const float *a, int64_t n, float *out) {
  for (int64_t i = 0; i < n; i += LANES) {
    V x = load(a + i), y;
    if (kind == RELU) y = larger(x, all(0));
    else if (kind == GELU) y = 0.5f * x * (1.f + erf_of(x * 0.70710678f));
    else if (kind == GELU_TANH) y = x * sigmoid(1.5957691f * (x + 0.044715f * x * x * x)); /* (1 + tanh z) / 2 = sigmoid 2z */
    else if (kind == SILU) y = x * sigmoid(x);
    else y = 2.f * sigmoid(2.f * x) - 1.f;
    store(out + i, y);
  }
}

/* Rotates each pair (x_i, x_(i + d_head / 2)) of each head by the angle of the row's position. Rows of `cosines` and
   `sines`: d_head / 2 floats. */
INLINE void rotate(const float *a, int64_t n, int64_t d_head, const float *cosines, const float *sines, float *out) {
  int64_t half = d_head / 2;
  for (int64_t head = 0; head < n; head += d_head)
    for (int64_t i = head; i < head + half; i++) {
      float x = a[i], y = a[i + half], c = cosines[i - head], s = sines[i - head];
      out[i] = x * c - y * s;
      out[i + half] = y * c + x * s;
    }
}

static void store_cached(const float *a, int64_t n, void *cache, int64_t at, int is_half) {
  if (!is_half) memcpy((float *)cache + at, a, (size_t)n * sizeof(float));
  else for (int64_t i = 0; i < n; i += LANES) store_half((uint16_t *)cache + at + i, load(a + i));
}
#endif
