/* Elements of tensors of training: bf16 or float in memory, float in registers. `is_bf16` is a constant where these
functions are used, so that each use is compiled for one type. */
#ifndef ELEMENT_H
#define ELEMENT_H
#include "vector.h"

INLINE size_t element_size(int is_bf16) { return is_bf16 ? 2 : 4; }
INLINE void *element(const void *p, int64_t i, int is_bf16) { return (char *)p + i * (int64_t)element_size(is_bf16); }

INLINE V load_element(const void *p, int64_t i, int is_bf16) {
  if (!is_bf16) return load((const float *)p + i);
#if LANES == 16 /* GCC 12 converts two halves and joins them */
  return (V)(I)_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const void *)((const uint16_t *)p + i))), 16);
#else
  return (V)(__builtin_convertvector(((const AnyH *)((const uint16_t *)p + i))->v, I) << 16);
#endif
}

/* Rounds to nearest, ties to even; not-a-number stays not-a-number. */
INLINE void store_element(void *p, int64_t i, V x, int is_bf16) {
  if (!is_bf16) {
    store((float *)p + i, x);
    return;
  }
#if defined(__AVX512BF16__)
  _mm256_storeu_si256((void *)((uint16_t *)p + i), (__m256i)_mm512_cvtneps_pbh((__m512)x));
#elif defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
  vst1_u16((uint16_t *)p + i, vreinterpret_u16_bf16(vcvt_bf16_f32((float32x4_t)x)));
#else
  I bits = (I)x, rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  I half = choose(x != x, (I){0} + 0x7fc0, rounded);
  ((AnyH *)((uint16_t *)p + i))->v = __builtin_convertvector(half, H);
#endif
}
#endif
