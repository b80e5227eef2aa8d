/* Row -> bytes: q_i = round(127 x_i / max|x|) + 128, and the scale max|x| / 127. If no x_i is negative (after ReLU), all
values of a byte are used: q_i = round(255 x_i / max x).

x: n floats, padded with zeros to a multiple of 64; so is q. columns, if not null: x_i is multiplied by columns_i first. */
#ifndef QUANTIZE_H
#define QUANTIZE_H
#include "vector.h"

/* 16 integers of 0..255 */
INLINE void store_bytes(uint8_t *to, const I *x) {
#if LANES == 16
  _mm_storeu_si128((void *)to, _mm512_cvtepi32_epi8((__m512i)x[0]));
#elif defined(__wasm_simd128__)
  v128_t low = wasm_i16x8_narrow_i32x4((v128_t)x[0], (v128_t)x[1]), high = wasm_i16x8_narrow_i32x4((v128_t)x[2], (v128_t)x[3]);
  wasm_v128_store(to, wasm_u8x16_narrow_i16x8(low, high));
#else
  for (int j = 0; j < PARTS; j++) {
    B bytes = __builtin_convertvector(x[j], B);
    memcpy(to + j * LANES, &bytes, sizeof bytes);
  }
#endif
}

static void quantize(const float *x, const float *columns, int64_t n, int is_positive, uint8_t *q, float *scale) {
  const float round = 12582912.f; /* 1.5 * 2^23: adding it rounds to an integer, in the low bits */
  V m[PARTS], not_finite = all(0);
  for (int j = 0; j < PARTS; j++) m[j] = all(0);
  for (int64_t i = 0; i < n; i += 16)
    for (int j = 0; j < PARTS; j++) {
      V v = load(x + i + j * LANES);
      if (columns) v *= load(columns + i + j * LANES);
      m[j] = larger(m[j], magnitude(v));
      not_finite += v * 0.f;
    }
  float max = largest(m), top = is_positive ? 255.f : 127.f;
  if (max < 1e-30f) max = 1e-30f;
  for (int j = 0; j < LANES; j++) max += not_finite[j]; /* then the scale, and so all results, are not a number */
  *scale = max / top;
  V factor = all(top / max);
  int32_t zero = is_positive ? 0 : 128;
  for (int64_t i = 0; i < n; i += 16) {
    I rounded[PARTS];
    UNROLL for (int j = 0; j < PARTS; j++) {
      V v = load(x + i + j * LANES);
      if (columns) v *= load(columns + i + j * LANES);
      rounded[j] = (I)(v * factor + round) - 0x4b400000 + zero;
    }
    store_bytes(q + i, rounded);
  }
}
#endif
