/* Products of small float matrices: c[i][j] = sum over k of a(i, k) * b[k][j].

a(i, k) = a[i * a_row + k * a_column], so that a may be read transposed. b has rows of b_stride floats, c of c_stride;
n_columns is a multiple of 16. Four rows and two vectors of columns are computed at a time, with sums in registers. */
#ifndef SMALL_PRODUCT_H
#define SMALL_PRODUCT_H
#include "vector.h"

typedef struct { const float *a; int64_t a_row, a_column; const float *b; int64_t b_stride; float *c; int64_t c_stride; } Matrices;

INLINE void product_block(const Matrices *m, int64_t i, int64_t j, int64_t n_k, const int n_rows) {
  V total[4][2];
  for (int r = 0; r < n_rows; r++) total[r][0] = total[r][1] = all(0);
  const float *a = m->a + i * m->a_row, *b = m->b + j;
  for (int64_t k = 0; k < n_k; k++, a += m->a_column, b += m->b_stride) {
    V b0 = load(b), b1 = load(b + LANES);
    UNROLL for (int r = 0; r < n_rows; r++) {
      V x = all(a[r * m->a_row]);
      total[r][0] += x * b0;
      total[r][1] += x * b1;
    }
  }
  for (int r = 0; r < n_rows; r++)
    for (int half = 0; half < 2; half++) store(m->c + (i + r) * m->c_stride + j + half * LANES, total[r][half]);
}

/* n_columns is a multiple of 2 LANES: the caller pads matrices to a multiple of 32 columns. */
static void small_product(Matrices m, int64_t n_rows, int64_t n_columns, int64_t n_k) {
  for (int64_t j = 0; j < n_columns; j += 2 * LANES) {
    int64_t i = 0;
    for (; i + 4 <= n_rows; i += 4) product_block(&m, i, j, n_k, 4);
    for (; i < n_rows; i++) product_block(&m, i, j, n_k, 1);
  }
}
#endif
