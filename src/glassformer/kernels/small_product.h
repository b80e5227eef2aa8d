/* Products of small matrices: c[i][j] = scale[i] * sum over k of a(i, k) * b[k][j].

a(i, k) = a[i * a_row + k * a_column], so that a may be read transposed. b has rows of b_stride floats, c of c_stride
elements, bf16 or float. Six rows and two vectors of columns are computed at a time, with sums in registers. */
#ifndef SMALL_PRODUCT_H
#define SMALL_PRODUCT_H
#include "element.h"

#define NOT_INLINE static __attribute__((noinline))
#define MOST_ROWS 6 /* 12 sums, 2 vectors of b and one of a: 15 of the 16 registers of AVX2 */

/* Whether a product can take pairs of bf16, of which b holds [k / 2, columns, 2]. */
#if defined(__AVX512BF16__) || defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
#define HAS_PAIRS 1
#else
#define HAS_PAIRS 0
#endif

typedef struct {
  const void *a; int64_t a_row, a_column; /* floats, or bf16 with a_column = 2: elements from one pair to the next */
  const float *b; int64_t b_stride;
  void *c; int64_t c_stride;
  const float *scale; int64_t scale_step; /* from row to row: 0, one scale for all */
} Matrices;
typedef struct { int32_t v __attribute__((packed)); } __attribute__((may_alias)) AnyPair; /* at any address */

/* Both rounded to bf16, lane by lane: `even` is in the lower half of each word. */
INLINE V pairs_of(V even, V odd) {
#if defined(__AVX512BF16__)
  static const uint16_t ORDER[32] = {0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23,
                                     8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  return (V)_mm512_permutexvar_epi16(_mm512_loadu_si512(ORDER), (__m512i)_mm512_cvtne2ps_pbh((__m512)odd, (__m512)even));
#elif HAS_PAIRS
  bfloat16x8_t low = vcvtq_low_bf16_f32((float32x4_t)even), high = vcvtq_low_bf16_f32((float32x4_t)odd);
  return (V)vzip1q_u16(vreinterpretq_u16_bf16(low), vreinterpretq_u16_bf16(high));
#else
  (void)odd;
  return even;
#endif
}

/* total + a * b, where a is the same in all lanes */
INLINE V add_product(V total, const void *a, int64_t i, V b, int is_pair) {
#if HAS_PAIRS
  if (is_pair) {
    I pair = ((const AnyPair *)((const uint16_t *)a + i))->v - (I){0};
#if defined(__AVX512BF16__)
    return (V)_mm512_dpbf16_ps((__m512)total, (__m512bh)pair, (__m512bh)b);
#else
    return (V)vbfdotq_f32((float32x4_t)total, (bfloat16x8_t)pair, (bfloat16x8_t)b);
#endif
  }
#endif
  (void)is_pair;
  return total + all(((const float *)a)[i]) * b;
}

/* Stores a block of sums as bf16. Not inlined: the compiler would keep the constants of rounding in registers during the
   product, which needs all of them. */
NOT_INLINE void round_block(const float *block, const Matrices *m, int64_t i, int64_t j, int n_rows, int n_vectors) {
  for (int r = 0; r < n_rows; r++)
    for (int v = 0; v < n_vectors; v++)
      store_element(m->c, (i + r) * m->c_stride + j + v * LANES, load(block + (2 * r + v) * LANES), 1);
}

INLINE void product_block(const Matrices *m, int64_t i, int64_t j, int64_t n_k, const int n_rows, const int n_vectors,
                          int is_pair, int c_is_bf16) {
  V total[MOST_ROWS][2];
  UNROLL for (int r = 0; r < n_rows; r++) total[r][0] = total[r][1] = all(0);
  const void *a = element(m->a, i * m->a_row, is_pair);
  const float *b = m->b + j;
  for (int64_t k = 0; k < n_k; k++, a = element(a, m->a_column, is_pair), b += m->b_stride) {
    V b0 = load(b), b1 = n_vectors > 1 ? load(b + LANES) : all(0);
    UNROLL for (int r = 0; r < n_rows; r++) {
      total[r][0] = add_product(total[r][0], a, r * m->a_row, b0, is_pair);
      if (n_vectors > 1) total[r][1] = add_product(total[r][1], a, r * m->a_row, b1, is_pair);
    }
  }
  float block[MOST_ROWS * 2 * LANES];
  UNROLL for (int r = 0; r < n_rows; r++) {
    V scale = all(m->scale[(i + r) * m->scale_step]);
    UNROLL for (int v = 0; v < n_vectors; v++) {
      V x = total[r][v] * scale;
      if (c_is_bf16 && !HAS_PAIRS) store(block + (2 * r + v) * LANES, x);
      else store_element(m->c, (i + r) * m->c_stride + j + v * LANES, x, c_is_bf16);
    }
  }
  if (c_is_bf16 && !HAS_PAIRS) round_block(block, m, i, j, n_rows, n_vectors);
}

INLINE void product_columns(const Matrices *m, int64_t n_rows, int64_t j, int64_t n_k, const int n_vectors, int is_pair,
                            int c_is_bf16) {
  /* Blocks of nearly equal size: few sums at a time would wait for each other. */
  for (int64_t i = 0, left = (n_rows + MOST_ROWS - 1) / MOST_ROWS; left; left--) {
    int64_t n = (n_rows - i + left - 1) / left;
#define CASE(rows) case rows: product_block(m, i, j, n_k, rows, n_vectors, is_pair, c_is_bf16); break;
    switch (n) { CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) }
#undef CASE
    i += n;
  }
}

/* n_columns is rounded up to a multiple of LANES. n_k: of pairs, if a and b hold pairs. */
INLINE void product_of_type(const Matrices *m, int64_t n_rows, int64_t n_columns, int64_t n_k, int is_pair, int c_is_bf16) {
  int64_t j = 0;
  for (; j + LANES < n_columns; j += 2 * LANES) product_columns(m, n_rows, j, n_k, 2, is_pair, c_is_bf16);
  if (j < n_columns) product_columns(m, n_rows, j, n_k, 1, is_pair, c_is_bf16);
}

NOT_INLINE void product_to_float(const Matrices *m, int64_t n_rows, int64_t n_columns, int64_t n_k) {
  product_of_type(m, n_rows, n_columns, n_k, 0, 0);
}
NOT_INLINE void product_to_bf16(const Matrices *m, int64_t n_rows, int64_t n_columns, int64_t n_k) {
  product_of_type(m, n_rows, n_columns, n_k, 0, 1);
}
#if HAS_PAIRS
NOT_INLINE void product_of_pairs(const Matrices *m, int64_t n_rows, int64_t n_columns, int64_t n_k) {
  product_of_type(m, n_rows, n_columns, n_k, 1, 0);
}
NOT_INLINE void product_of_pairs_to_bf16(const Matrices *m, int64_t n_rows, int64_t n_columns, int64_t n_k) {
  product_of_type(m, n_rows, n_columns, n_k, 1, 1);
}
#endif
#endif
