/* Sums of a tile of bytes without an instruction for dot products of bytes: bytes are widened to 16 bits, so that the sums
are exact. 16 columns of the panel are widened once for all rows of the tile; pairs of rows are kept in registers. */
#ifndef PRODUCT_AVX2_H
#define PRODUCT_AVX2_H
#include "vector.h"

#define TILE_ROWS 8

/* `rows` (1 or 2) rows and 16 columns; a: 16-bit [rows][k], w: 16-bit [k / 4][16][4] -> out[row][64] */
INLINE void pair_of_rows(const int rows, const int16_t *a, const int16_t *w, int64_t k, int32_t *out) {
  __m256i s[2][4];
  UNROLL for (int i = 0; i < rows; i++) UNROLL for (int j = 0; j < 4; j++) s[i][j] = _mm256_setzero_si256();
  for (int64_t at = 0; at < k; at += 4, w += 64)
    UNROLL for (int j = 0; j < 4; j++) {
      __m256i columns = _mm256_load_si256((const void *)(w + 16 * j));
      UNROLL for (int i = 0; i < rows; i++) {
        int64_t four;
        memcpy(&four, a + i * k + at, sizeof four);
        s[i][j] = _mm256_add_epi32(s[i][j], _mm256_madd_epi16(_mm256_set1_epi64x(four), columns));
      }
    }
  UNROLL for (int i = 0; i < rows; i++) UNROLL for (int j = 0; j < 4; j += 2) /* add the two sums of each column */
    _mm256_storeu_si256((void *)(out + i * 64 + 4 * j),
                        _mm256_permute4x64_epi64(_mm256_hadd_epi32(s[i][j], s[i][j + 1]), 0xd8));
}

static void tile(int rows, const uint8_t *a, int64_t stride, const int8_t *panel, int64_t k, int32_t *out) {
  int16_t wide_a[TILE_ROWS * k] __attribute__((aligned(32))), wide_w[16 * k] __attribute__((aligned(32)));
  for (int i = 0; i < rows; i++)
    for (int64_t at = 0; at < k; at += 16)
      _mm256_store_si256((void *)(wide_a + i * k + at),
                         _mm256_cvtepu8_epi16(_mm_loadu_si128((const void *)(a + i * stride + at))));
  for (int c = 0; c < 64; c += 16) {
    for (int64_t at = 0; at < k; at += 4)
      UNROLL for (int j = 0; j < 4; j++)
        _mm256_store_si256((void *)(wide_w + 16 * at + 16 * j),
                           _mm256_cvtepi8_epi16(_mm_loadu_si128((const void *)(panel + 64 * at + 4 * c + 16 * j))));
    int i = 0;
    for (; i + 2 <= rows; i += 2) pair_of_rows(2, wide_a + i * k, wide_w, k, out + i * 64 + c);
    if (i < rows) pair_of_rows(1, wide_a + i * k, wide_w, k, out + i * 64 + c);
  }
}
#endif
