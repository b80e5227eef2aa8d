/* Vectors of floats: the widest that the instruction set has, in GCC's and Clang's vector extensions.

Sums are kept in 16 partial sums for every instruction set and added in one order, so that rounding does not depend on
the width of the vectors. */
#ifndef VECTOR_H
#define VECTOR_H
#include <math.h>
#include <stdint.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#elif defined(__wasm_simd128__)
#include <wasm_simd128.h>
#endif

#if defined(__AVX512F__)
#define LANES 16
#elif defined(__AVX2__)
#define LANES 8
#else
#define LANES 4
#endif
#define PARTS (16 / LANES) /* vectors that hold 16 floats */
#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 16")

typedef float V __attribute__((vector_size(4 * LANES)));
typedef int32_t I __attribute__((vector_size(4 * LANES)));
typedef uint32_t U __attribute__((vector_size(4 * LANES))); /* for sums that may overflow, as of the bits of NaN */
typedef int16_t H __attribute__((vector_size(2 * LANES))); /* signed: the sign is extended to 32 bits */
typedef uint8_t B __attribute__((vector_size(LANES)));
typedef float V4 __attribute__((vector_size(16)));
typedef struct { V v __attribute__((packed)); } __attribute__((may_alias)) AnyV; /* at any address */

INLINE V load(const float *p) { return ((const AnyV *)p)->v; }
INLINE void store(float *p, V x) { ((AnyV *)p)->v = x; }
INLINE V all(float x) { return x - (V){0}; }
INLINE I choose(I condition, I yes, I no) { return (condition & yes) | (~condition & no); }

INLINE V larger(V a, V b) {
#if LANES == 16
  return (V)_mm512_max_ps((__m512)a, (__m512)b);
#elif LANES == 8
  return (V)_mm256_max_ps((__m256)a, (__m256)b);
#elif defined(__wasm_simd128__)
  return (V)wasm_f32x4_pmax((v128_t)b, (v128_t)a); /* b < a ? a : b */
#else
  return (V)choose((I)(a > b), (I)a, (I)b);
#endif
}
/* Whether an element of a is at least that of b. */
INLINE int any_at_least(V a, V b) {
#if LANES == 16
  return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_GE_OQ) != 0;
#elif LANES == 8
  return _mm256_movemask_ps((__m256)(a >= b)) != 0;
#elif defined(__wasm_simd128__)
  return wasm_v128_any_true((v128_t)(a >= b));
#else
  I c = a >= b;
  return (c[0] | c[1] | c[2] | c[3]) != 0;
#endif
}
INLINE V magnitude(V x) { return (V)((I)x & 0x7fffffff); }

/* 16 partial sums -> 4 */
INLINE V4 fold(const V *s) {
#if LANES == 16
  typedef float V8 __attribute__((vector_size(32)));
  V8 a = __builtin_shufflevector(s[0], s[0], 0, 1, 2, 3, 4, 5, 6, 7) +
         __builtin_shufflevector(s[0], s[0], 8, 9, 10, 11, 12, 13, 14, 15);
#elif LANES == 8
  V a = s[0] + s[1];
#else
  V a = s[0] + s[2], b = s[1] + s[3];
  return a + b;
#endif
#if LANES > 4
  return __builtin_shufflevector(a, a, 0, 1, 2, 3) + __builtin_shufflevector(a, a, 4, 5, 6, 7);
#endif
}
INLINE float sum(const V *s) {
  V4 a = fold(s);
  return (a[0] + a[2]) + (a[1] + a[3]);
}
/* 16 partial sums of each of 4 sums -> the sums */
INLINE V4 transpose_sum(V s[4][PARTS]) {
  V4 a = fold(s[0]), b = fold(s[1]), c = fold(s[2]), d = fold(s[3]);
  V4 ab = __builtin_shufflevector(a, b, 0, 4, 1, 5) + __builtin_shufflevector(a, b, 2, 6, 3, 7);
  V4 cd = __builtin_shufflevector(c, d, 0, 4, 1, 5) + __builtin_shufflevector(c, d, 2, 6, 3, 7);
  return __builtin_shufflevector(ab, cd, 0, 1, 4, 5) + __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
}
INLINE float largest(const V *s) { /* of 16 floats */
#if LANES == 16
  return _mm512_reduce_max_ps((__m512)s[0]);
#else
  V a = s[0];
  for (int j = 1; j < PARTS; j++) a = larger(a, s[j]);
  float m = a[0];
  for (int i = 1; i < LANES; i++) m = a[i] > m ? a[i] : m;
  return m;
#endif
}
/* x where the number of the lane is less than n, elsewhere y */
INLINE V first_lanes(int64_t n, V x, V y) {
  static const int32_t NUMBERS[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  I lane;
  memcpy(&lane, NUMBERS, sizeof lane);
  return (V)choose(lane < (int32_t)n, (I)x, (I)y);
}

/* e^x for x <= 87 with a relative error of about 2e-7; for x < -87, e^-87.
   2^n p(r) with x log2(e) = n + r, |r| <= 1/2 */
INLINE V exponential_below_87(V x) {
  const float round = 12582912.f; /* 1.5 * 2^23: adding it rounds to an integer */
  x = larger(x, all(-87.f));
  V y = x * 1.44269504f, shifted = y + round, r = y - (shifted - round), p = all(1.5403530e-4f);
  p = p * r + 1.3333558e-3f;
  p = p * r + 9.6181291e-3f;
  p = p * r + 5.5504109e-2f;
  p = p * r + 0.24022651f;
  p = p * r + 0.69314718f;
  p = p * r + 1.f;
  return (V)((U)p + ((U)shifted << 23)); /* the low bits of `shifted` are n */
}
/* ln x for a positive finite x, in doubles: unlike logf, which differs between C libraries, the same bits everywhere.
   x = 2^e m with m in [sqrt(1/2), sqrt(2)); ln m = 2 artanh(s), s = (m - 1) / (m + 1). Not-a-number stays so. */
static inline float logarithm(float x) {
  uint32_t bits;
  float m;
  memcpy(&bits, &x, sizeof bits);
  int32_t e = (int32_t)(bits - 0x3f3504f3u) >> 23;
  bits -= (uint32_t)e << 23;
  memcpy(&m, &bits, sizeof m);
  double s = ((double)m - 1.) / ((double)m + 1.), q = s * s, p = 1. / 15.;
  for (int n = 13; n > 0; n -= 2) p = p * q + 1. / n;
  return (float)(e * 0.69314718055994530942 + 2. * s * p) + (x - x);
}
/* e^x for x clamped to [-87, 87] */
INLINE V exponential(V x) { return exponential_below_87(-larger(-x, all(-87.f))); }

/* Half precision (IEEE binary16), in which keys and values are stored. Conversion rounds to nearest, ties to even. */
typedef struct { H v __attribute__((packed)); } __attribute__((may_alias)) AnyH;
INLINE V load_half(const uint16_t *p) {
#if LANES == 16
  return (V)_mm512_cvtph_ps(_mm256_loadu_si256((const void *)p));
#elif LANES == 8
  return (V)_mm256_cvtph_ps(_mm_loadu_si128((const void *)p));
#elif defined(__aarch64__)
  return (V)vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p)));
#else /* the exponent's bias differs by 112; of the copies of the sign, the first one stays */
  I h = __builtin_convertvector(((const AnyH *)p)->v, I);
  return (V)((h << 13) & (int32_t)0x8fffe000) * 0x1p112f;
#endif
}
INLINE void store_half(uint16_t *p, V x) {
#if LANES == 16
  _mm256_storeu_si256((void *)p, _mm512_cvtps_ph((__m512)x, 0));
#elif LANES == 8
  _mm_storeu_si128((void *)p, _mm256_cvtps_ph((__m256)x, 0));
#elif defined(__aarch64__)
  vst1_u16(p, vreinterpret_u16_f16(vcvt_f16_f32((float32x4_t)x)));
#else /* below 2^-14, adding 1/2 rounds to the spacing of the small halves; above 65,519 the result is infinity */
  I bits = (I)magnitude(x), sign = ((I)x >> 16) & 0x8000;
  I normal = (bits - (112 << 23) + 0xfff + ((bits >> 13) & 1)) >> 13;
  I small = (I)((V)bits + 0.5f) - 0x3f000000, infinite = (I){0} + 0x7c00;
  I half = choose(bits < (113 << 23), small, choose(bits > 0x477fefff, infinite, normal)) | sign;
  ((AnyH *)p)->v = __builtin_convertvector(half, H);
#endif
}
#endif
