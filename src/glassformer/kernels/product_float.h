/* Product of floats: y[r][c] = sum_k a[r][k] w[c][k] for the 64 columns of a panel.

a: [rows][k]. w: [n][k], as the model has it, so that it is not copied; k is a multiple of 16. Each sum has 16 partial
sums, in blocks of FLOAT_BLOCK inputs, whatever the number of rows and the width of the vectors; with a fused
multiply-add, so all instruction sets that have it compute the same bits. A tile of rows and 4 columns is kept in
registers while k runs. */
#ifndef PRODUCT_FLOAT_H
#define PRODUCT_FLOAT_H
#include "vector.h"

#define PANEL 64
#define FLOAT_BLOCK 512 /* inputs of a tile that stay in the first-level cache */
#if LANES == 16 || defined(__aarch64__)
#define FLOAT_ROWS 6
#elif LANES == 8
#define FLOAT_ROWS 3
#else
#define FLOAT_ROWS 1
#endif

INLINE V multiply_add(V a, V b, V sum) {
#if LANES == 16
  return (V)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)sum);
#elif LANES == 8
  return (V)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)sum);
#elif defined(__aarch64__)
  return (V)vfmaq_f32((float32x4_t)sum, (float32x4_t)a, (float32x4_t)b);
#else
  return a * b + sum;
#endif
}

/* Adds the sums of `rows` (a constant) rows and 4 columns to out[row][64]. next: what is read after these columns, or
   null: it is in a cache. */
INLINE void float_tile_of(const int rows, const float *a, int64_t stride, const float *const w[4], int64_t k,
                          const float *next, float *out) {
  V s[FLOAT_ROWS][4][PARTS];
  for (int j = 0; j < PARTS; j++) { /* one after the other: registers hold the sums of one part */
    V part[FLOAT_ROWS][4];
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int c = 0; c < 4; c++) part[r][c] = all(0);
    for (int64_t i = j * LANES; i < k; i += 16) {
      V columns[4];
      UNROLL for (int c = 0; c < 4; c++) {
        if (next) __builtin_prefetch(next + c * (w[1] - w[0]) + i, 0, 3);
        columns[c] = load(w[c] + i);
      }
      UNROLL for (int r = 0; r < rows; r++) {
        V x = load(a + r * stride + i);
        UNROLL for (int c = 0; c < 4; c++) part[r][c] = multiply_add(x, columns[c], part[r][c]);
      }
    }
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int c = 0; c < 4; c++) s[r][c][j] = part[r][c];
  }
  UNROLL for (int r = 0; r < rows; r++) {
    V4 four;
    memcpy(&four, out + r * PANEL, sizeof four);
    four += transpose_sum(s[r]);
    memcpy(out + r * PANEL, &four, sizeof four);
  }
}
/* Not inlined: in a larger function, compilers move the sums from registers to memory. */
#define FLOAT_TILE(ROWS)                                                                                             \
  __attribute__((noinline)) static void float_tile_##ROWS(const float *a, int64_t stride, const float *const w[4],  \
                                                          int64_t k, const float *next, float *out) {               \
    float_tile_of(ROWS, a, stride, w, k, next, out);                                                                 \
  }
FLOAT_TILE(1)
#if FLOAT_ROWS > 1
FLOAT_TILE(2) FLOAT_TILE(3)
#endif
#if FLOAT_ROWS > 3
FLOAT_TILE(4) FLOAT_TILE(5) FLOAT_TILE(6)
#endif

/* Sums of some rows and the panel that begins at column `first` of n -> out[row][64]; 0 for columns that are not. */
static void float_panel(int64_t rows, const float *a, int64_t stride, const float *w, int64_t first, int64_t n,
                        int64_t k, float *out) {
  int is_few = rows < FLOAT_ROWS; /* few operations for each byte of the weights: memory decides */
  memset(out, 0, (size_t)(rows * PANEL) * sizeof(float));
  for (int64_t block = 0; block < k; block += FLOAT_BLOCK) {
    int64_t size = k - block < FLOAT_BLOCK ? k - block : FLOAT_BLOCK;
    for (int64_t c = 0; c < PANEL && first + c < n; c += 4) {
      const float *columns[4], *next = NULL;
      for (int j = 0; j < 4; j++) columns[j] = w + (first + c + j < n ? first + c + j : n - 1) * k + block;
      if (is_few && first + c + 8 <= n) next = columns[0] + 4 * k;
      for (int64_t row = 0; row < rows; row += FLOAT_ROWS) {
        const float *x = a + row * stride + block;
        float *to = out + row * PANEL + c;
        switch (rows - row < FLOAT_ROWS ? rows - row : FLOAT_ROWS) {
          case 1: float_tile_1(x, stride, columns, size, next, to); break;
#if FLOAT_ROWS > 1
          case 2: float_tile_2(x, stride, columns, size, next, to); break;
          case 3: float_tile_3(x, stride, columns, size, next, to); break;
#endif
#if FLOAT_ROWS > 3
          case 4: float_tile_4(x, stride, columns, size, next, to); break;
          case 5: float_tile_5(x, stride, columns, size, next, to); break;
          case 6: float_tile_6(x, stride, columns, size, next, to);
#endif
        }
      }
    }
  }
  for (int64_t c = n - first; c < PANEL; c++)
    for (int64_t row = 0; row < rows; row++) out[row * PANEL + c] = 0;
}
#endif
