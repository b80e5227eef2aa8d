/* LayerNorm: y = (x - mean) / sqrt(variance + eps) * gain + bias; RMSNorm: y = x / sqrt(mean of x^2 + eps) * gain.

x: n floats, padded with zeros to a multiple of 64; so are gain and bias, hence y. */
#ifndef NORMALIZE_H
#define NORMALIZE_H
#include "vector.h"

static void normalize(const float *x, int64_t n, int is_rms, float eps, const float *gain, const float *bias, float *y) {
  V total[PARTS], squares[PARTS];
  for (int j = 0; j < PARTS; j++) total[j] = squares[j] = all(0);
  if (!is_rms)
    for (int64_t i = 0; i < n; i += 16)
      for (int j = 0; j < PARTS; j++) total[j] += load(x + i + j * LANES);
  V mean = all(is_rms ? 0 : sum(total) / (float)n);
  int64_t whole = n & ~15L;
  for (int64_t i = 0; i < whole; i += 16)
    for (int j = 0; j < PARTS; j++) {
      V d = load(x + i + j * LANES) - mean;
      squares[j] += d * d;
    }
  float variance = sum(squares);
  for (int64_t i = whole; i < n; i++) variance += (x[i] - mean[0]) * (x[i] - mean[0]);
  V factor = all(1.f / sqrtf(variance / (float)n + eps));
  for (int64_t i = 0; i < n; i += LANES) store(y + i, (load(x + i) - mean) * factor * load(gain + i) + load(bias + i));
}
#endif
