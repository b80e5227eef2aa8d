/* Product of matrices of training: C = A B, with factors in float (AVX-512) or bf16 and sums in float. For bf16 the processor
needs the instruction `vdpbf16ps`, which multiplies 16 pairs of bf16 and adds the two products of each pair to a float.

A word is what one number of a sum in registers is multiplied by in one instruction: a float, or a pair of bf16 that are
neighbors along k. The loops are those of Goto & van de Geijn 2008, "Anatomy of high-performance matrix multiplication":
a block of B is packed to panels of PANEL_COLUMNS columns of words; a block of A stays in the second-level cache; a tile of
TILE_ROWS x PANEL_COLUMNS sums stays in registers. Packing transposes, rounds float to bf16 and fills up with zeros. Each
sum is computed by one thread, in the order of k, in blocks that depend only on k and on the types.

The parameter `is_bf16` of the functions is a constant: the type of the factors. */
#ifndef TRAINING_PRODUCT_H
#define TRAINING_PRODUCT_H
#if defined(_WIN32) /* kernels of training have one thread (parallel.c), and each thread of the process would copy blocks_of_thread */
#define PRODUCT_TYPES 0
#elif defined(__AVX512BF16__)
#define PRODUCT_TYPES 3 /* float: 1, bf16: 2 */
#elif defined(__AVX512F__)
#define PRODUCT_TYPES 1
#else
#define PRODUCT_TYPES 0
#endif
#if PRODUCT_TYPES
#include "training.h"
#include "transpose.h"
#include "vector.h"

#define TILE_ROWS 8
#define PANEL_COLUMNS 32
#define MAX_K_BLOCK 2048    /* of a float result; a bf16 result has one block */
#define A_BYTES (1 << 19)   /* half the second-level cache */
#define B_BYTES (3 << 19)
#define MAX_COLUMNS 4096    /* of a block of B */
#define PREFETCH_ROWS 32    /* rows of a transposed source are far apart, and the processor does not fetch them early */

typedef struct {
  uint8_t b[B_BYTES], a[A_BYTES];
  float bias[MAX_COLUMNS];
} __attribute__((aligned(64))) PackedBlocks;
static __thread PackedBlocks blocks_of_thread;

INLINE int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
INLINE int64_t round_up(int64_t a, int64_t multiple) { return (a + multiple - 1) / multiple * multiple; }
/* The lowest n bits, n clamped to 0..32. */
INLINE uint32_t low_bits(int64_t n) { return n >= 32 ? ~0u : n <= 0 ? 0 : (1u << n) - 1; }

/* Row i of B, whose rows are in up to MAX_PIECES matrices; null: there is no such row. */
static const uint8_t *row_of_b(const ProductArguments *p, int64_t i) {
  for (int piece = 0; piece < MAX_PIECES; i -= p->b_rows[piece], piece++)
    if (i < p->b_rows[piece]) return (const uint8_t *)p->b[piece] + i * p->b_stride * (p->b_is_bf16 ? 2 : 4);
  return NULL;
}

INLINE int64_t n_words(int64_t n, const int is_bf16) { return is_bf16 ? (n + 1) / 2 : n; }

/* sums + a b, for words */
INLINE __m512 add_products(__m512 sums, __m512i a, __m512i b, const int is_bf16) {
#if defined(__AVX512BF16__)
  if (is_bf16) return _mm512_dpbf16_ps(sums, (__m512bh)a, (__m512bh)b);
#endif
  (void)is_bf16;
  return _mm512_fmadd_ps((__m512)a, (__m512)b, sums);
}

INLINE __m512i ones(const int is_bf16) { return is_bf16 ? _mm512_set1_epi16(0x3f80) : (__m512i)_mm512_set1_ps(1.f); }

#if defined(__AVX512BF16__)
/* 32 numbers of a row from number i, of which the mask says which exist; the others are 0. */
INLINE __m512i row_to_bf16(const uint8_t *row, int64_t i, uint32_t mask, int source_is_bf16) {
  if (source_is_bf16) return _mm512_maskz_loadu_epi16(mask, row + 2 * i);
  __m512 low = _mm512_maskz_loadu_ps((__mmask16)mask, row + 4 * i);
  __m512 high = _mm512_maskz_loadu_ps((__mmask16)(mask >> 16), row + 4 * i + 64);
  return (__m512i)_mm512_cvtne2ps_pbh(high, low);
}
#endif

/* 16 words of a row from number i, of n_left numbers that exist from there. */
INLINE __m512i words_of_row(const uint8_t *row, int64_t i, int64_t n_left, const int is_bf16, const int source_is_bf16) {
#if defined(__AVX512BF16__)
  if (is_bf16) return row_to_bf16(row, i, low_bits(n_left), source_is_bf16);
#endif
  (void)is_bf16, (void)source_is_bf16;
  return (__m512i)_mm512_maskz_loadu_ps((__mmask16)low_bits(n_left), row + 4 * i);
}

/* Two rows -> 16 pairs, of columns 0..15 and of columns 16..31. */
INLINE void interleave(__m512i even, __m512i odd, __m512i *low, __m512i *high) {
  const __m512i first = _mm512_set_epi32(0x2f000f, 0x2e000e, 0x2d000d, 0x2c000c, 0x2b000b, 0x2a000a, 0x290009, 0x280008,
                                         0x270007, 0x260006, 0x250005, 0x240004, 0x230003, 0x220002, 0x210001, 0x200000);
  *low = _mm512_permutex2var_epi16(even, first, odd);
  *high = _mm512_permutex2var_epi16(even, _mm512_add_epi32(first, _mm512_set1_epi32(0x100010)), odd);
}

/* A block of B to panels [word][columns]. The last panel has 16 columns if that is enough, else 32. */
INLINE void pack_b(const ProductArguments *p, int64_t column, int64_t n, int64_t k, int64_t n_k, uint8_t *to,
                   const int is_bf16, const int source_is_bf16) {
  const int64_t words = n_words(n_k, is_bf16), width = round_up(n, 16), numbers = is_bf16 ? 2 : 1;
  if (p->b_is_transposed) { /* rows of the source: columns of B */
    for (int64_t c = 0; c < width; c += 16) {
      const uint8_t *rows[16];
      for (int i = 0; i < 16; i++) rows[i] = c + i < n ? row_of_b(p, column + c + i) : NULL;
      const int64_t panel = c / PANEL_COLUMNS * PANEL_COLUMNS, step = 4 * least(PANEL_COLUMNS, width - panel);
      uint8_t *out = to + panel * words * 4 + (c - panel) * 4;
      for (int64_t i = 0; i < words; i += 16) {
        V x[LANES];
        const int64_t at = numbers * i;
        UNROLL for (int r = 0; r < 16; r++)
          x[r] = rows[r] ? (V)words_of_row(rows[r], k + at, n_k - at, is_bf16, source_is_bf16) : all(0);
        transpose_block(x);
        const int n_stored = (int)least(16, words - i);
        if (n_stored == 16) UNROLL for (int r = 0; r < 16; r++) _mm512_store_ps(out + (i + r) * step, (__m512)x[r]);
        else for (int r = 0; r < n_stored; r++) _mm512_store_ps(out + (i + r) * step, (__m512)x[r]);
      }
    }
    return;
  }
  for (int64_t first = 0; first < words; first += 16) { /* rows of the source: rows of B */
    const uint8_t *rows[32];
    const int64_t last = least(first + 16, words);
    for (int64_t i = numbers * first; i < numbers * last; i++) rows[i - numbers * first] = i < n_k ? row_of_b(p, k + i) : NULL;
    for (int64_t c = 0; c < width; c += PANEL_COLUMNS) {
      const uint32_t mask = low_bits(n - c);
      const int64_t step = 4 * least(PANEL_COLUMNS, width - c);
      uint8_t *out = to + c * words * 4 + first * step;
      for (int64_t i = 0; i < last - first; i++, out += step) {
        __m512i low, high;
#if defined(__AVX512BF16__)
        if (is_bf16) {
          const uint8_t *even = rows[2 * i], *odd = rows[2 * i + 1];
          __m512i x = row_to_bf16(even, column + c, mask, source_is_bf16), y = _mm512_setzero_si512();
          if (odd) y = row_to_bf16(odd, column + c, mask, source_is_bf16);
          interleave(x, y, &low, &high);
        } else
#endif
        {
          low = words_of_row(rows[i], column + c, n - c, 0, 0);
          high = words_of_row(rows[i], column + c + 16, n - c - 16, 0, 0);
        }
        _mm512_store_si512(out, low);
        if (step > 64) _mm512_store_si512(out + 64, high);
      }
    }
  }
}

/* The words of 32 columns of A's transposed source, from number k and column `row`. Where the mask is not positive, A is 0.
   first, second: which columns exist of the number, and of the next. */
INLINE void words_of_a(const ProductArguments *p, int64_t row, int64_t k, uint32_t first, uint32_t second, const int has_mask,
                       __m512i *low, __m512i *high, const int is_bf16) {
  if (!is_bf16) {
    const float *a = (const float *)p->a + k * p->a_stride + row;
    __mmask16 columns = (__mmask16)first, later_columns = (__mmask16)(first >> 16);
    if (has_mask) {
      const float *positive = (const float *)p->mask + k * p->mask_stride + row;
      const __m512 zero = _mm512_setzero_ps();
      columns = _mm512_mask_cmp_ps_mask(columns, _mm512_maskz_loadu_ps(columns, positive), zero, _CMP_GT_OQ);
      later_columns =
        _mm512_mask_cmp_ps_mask(later_columns, _mm512_maskz_loadu_ps(later_columns, positive + 16), zero, _CMP_GT_OQ);
    }
    *low = (__m512i)_mm512_maskz_loadu_ps(columns, a);
    *high = (__m512i)_mm512_maskz_loadu_ps(later_columns, a + 16);
    return;
  }
  const uint16_t *a = (const uint16_t *)p->a + k * p->a_stride + row;
  if (has_mask) {
    const uint16_t *positive = (const uint16_t *)p->mask + k * p->mask_stride + row;
    const __m512i zero = _mm512_setzero_si512();
    first = _mm512_mask_cmpgt_epi16_mask(first, _mm512_maskz_loadu_epi16(first, positive), zero);
    second = _mm512_mask_cmpgt_epi16_mask(second, _mm512_maskz_loadu_epi16(second, positive + p->mask_stride), zero);
  }
  interleave(_mm512_maskz_loadu_epi16(first, a), _mm512_maskz_loadu_epi16(second, a + p->a_stride), low, high);
}

/* A block of A whose source is transposed, to tiles [word][TILE_ROWS].
   sums: to the sum of each row of A is added; null: not needed. */
INLINE void pack_transposed_a(const ProductArguments *p, int64_t row, int64_t n, int64_t k, int64_t n_k, float *sums,
                              uint8_t *to, const int is_bf16) {
  const int64_t words = n_words(n_k, is_bf16), tile_bytes = words * TILE_ROWS * 4, numbers = is_bf16 ? 2 : 1;
  const int64_t size = is_bf16 ? 2 : 4;
  for (int64_t c = 0; c < n; c += 32, to += 4 * tile_bytes) {
    const uint32_t mask = low_bits(n - c);
    const __mmask16 low_mask = (__mmask16)mask, high_mask = (__mmask16)(mask >> 16);
    __m512 low_sums = _mm512_setzero_ps(), high_sums = low_sums;
    if (sums && k > 0) {
      low_sums = _mm512_maskz_loadu_ps(low_mask, sums + c);
      high_sums = _mm512_maskz_loadu_ps(high_mask, sums + c + 16);
    }
    for (int64_t i = 0; i < words; i++) {
      const int64_t at = numbers * i;
      const uint32_t second = at + 1 < n_k ? mask : 0;
      const uint8_t *later = (const uint8_t *)p->a + size * ((k + at + PREFETCH_ROWS) * p->a_stride + row + c);
      __builtin_prefetch(later, 0, 3);
      __builtin_prefetch(later + (is_bf16 ? 2 * p->a_stride : 64), 0, 3);
      __m512i low, high;
      if (p->mask) words_of_a(p, row + c, k + at, mask, second, 1, &low, &high, is_bf16);
      else words_of_a(p, row + c, k + at, mask, second, 0, &low, &high, is_bf16);
      low_sums = add_products(low_sums, low, ones(is_bf16), is_bf16);
      high_sums = add_products(high_sums, high, ones(is_bf16), is_bf16);
      uint8_t *out = to + i * TILE_ROWS * 4;
      _mm256_store_si256((void *)out, _mm512_castsi512_si256(low));
      _mm256_store_si256((void *)(out + tile_bytes), _mm512_extracti64x4_epi64(low, 1));
      _mm256_store_si256((void *)(out + 2 * tile_bytes), _mm512_castsi512_si256(high));
      _mm256_store_si256((void *)(out + 3 * tile_bytes), _mm512_extracti64x4_epi64(high, 1));
    }
    if (sums) {
      _mm512_mask_storeu_ps(sums + c, low_mask, low_sums);
      _mm512_mask_storeu_ps(sums + c + 16, high_mask, high_sums);
    }
  }
}

/* Bytes from a packed row of A to the next. Not a multiple of 4096: the rows of a tile would share sets of the cache. */
INLINE int64_t packed_row_bytes(int64_t n_k, const int is_bf16) { return round_up((is_bf16 ? 2 : 4) * n_k, 64) + 64; }

/* Rows of A, up to a multiple of TILE_ROWS. Where the mask is not positive, A is 0. */
INLINE void pack_a(const ProductArguments *p, int64_t row, int64_t n, int64_t k, int64_t n_k, uint8_t *to, const int is_bf16) {
  const int64_t numbers = is_bf16 ? 32 : 16; /* in a vector */
  for (int64_t i = 0; i < round_up(n, TILE_ROWS); i++, to += packed_row_bytes(n_k, is_bf16))
    for (int64_t c = 0; c < n_k; c += numbers) {
      uint32_t columns = i < n ? low_bits(n_k - c) : 0;
      const int64_t at = (row + i) * p->a_stride + k + c, mask_at = (row + i) * p->mask_stride + k + c;
      __m512i x;
      if (is_bf16) {
        if (p->mask) {
          const __m512i positive = _mm512_maskz_loadu_epi16(columns, (const uint16_t *)p->mask + mask_at);
          columns = _mm512_mask_cmpgt_epi16_mask(columns, positive, _mm512_setzero_si512());
        }
        x = _mm512_maskz_loadu_epi16(columns, (const uint16_t *)p->a + at);
      } else {
        __mmask16 existing = (__mmask16)columns;
        if (p->mask) {
          const __m512 positive = _mm512_maskz_loadu_ps(existing, (const float *)p->mask + mask_at);
          existing = _mm512_mask_cmp_ps_mask(existing, positive, _mm512_setzero_ps(), _CMP_GT_OQ);
        }
        x = (__m512i)_mm512_maskz_loadu_ps(existing, (const float *)p->a + at);
      }
      _mm512_store_si512(to + c * 64 / numbers, x);
    }
}

typedef struct {
  uint8_t *c;             /* of the first row */
  int64_t stride;         /* bytes from a row to the next */
  const float *bias;
  float lower_limit;      /* of the results */
  uint32_t columns;       /* mask of the columns that exist */
  int first_row, n_rows;  /* the rows that are stored */
  int adds;               /* to C, instead of the bias */
} TileResult;

/* Sums of TILE_ROWS rows and a panel of `width` vectors, stored to C.
   a: row_step bytes from a row to the next, k_step bytes from a word to the next. */
INLINE void tile_of(const int width, const int is_bf16, const int c_is_bf16, const uint8_t *a, int64_t row_step,
                    int64_t k_step, const uint8_t *b, int64_t words, const TileResult *result) {
  __m512 s[TILE_ROWS][2];
  UNROLL for (int i = 0; i < TILE_ROWS; i++) UNROLL for (int j = 0; j < width; j++) s[i][j] = _mm512_setzero_ps();
  uint8_t *c = result->c;
  for (int i = 0; i < TILE_ROWS; i++)
    for (int j = 0; j < (c_is_bf16 ? 1 : width); j++) __builtin_prefetch(c + i * result->stride + 64 * j, 1, 3);
  for (int64_t at = 0; at < words; at++, a += k_step, b += 64 * width) {
    __m512i columns[2];
    UNROLL for (int j = 0; j < width; j++) columns[j] = _mm512_load_si512(b + 64 * j);
    UNROLL for (int i = 0; i < TILE_ROWS; i++) {
      int32_t word;
      memcpy(&word, a + i * row_step, sizeof word);
      __m512i row = _mm512_set1_epi32(word);
      UNROLL for (int j = 0; j < width; j++) s[i][j] = add_products(s[i][j], row, columns[j], is_bf16);
    }
  }
  const __m512 lower_limit = _mm512_set1_ps(result->lower_limit);
  UNROLL for (int i = 0; i < TILE_ROWS; i++, c += result->stride) {
    if (i < result->first_row || i >= result->n_rows) continue;
    UNROLL for (int j = 0; j < width; j++) {
      const __mmask16 mask = (__mmask16)(result->columns >> 16 * j);
      __m512 added = result->adds ? _mm512_maskz_loadu_ps(mask, c + 64 * j) : _mm512_loadu_ps(result->bias + 16 * j);
      __m512 x = _mm512_max_ps(lower_limit, _mm512_add_ps(s[i][j], added)); /* not-a-number stays so */
#if defined(__AVX512BF16__)
      if (c_is_bf16) _mm256_mask_storeu_epi16(c + 32 * j, mask, (__m256i)_mm512_cvtneps_pbh(x));
      else
#endif
      _mm512_mask_storeu_ps(c + 64 * j, mask, x);
    }
  }
}
typedef void Tile(const uint8_t *a, int64_t row_step, int64_t k_step, const uint8_t *b, int64_t words, const TileResult *);
#define TILE_FUNCTION(NAME, WIDTH, IS_BF16, C_IS_BF16)                                                               \
  __attribute__((noinline)) static void NAME(const uint8_t *a, int64_t row_step, int64_t k_step, const uint8_t *b,   \
                                             int64_t words, const TileResult *result) {                              \
    tile_of(WIDTH, IS_BF16, C_IS_BF16, a, row_step, k_step, b, words, result);                                       \
  }
TILE_FUNCTION(tile_float_16, 1, 0, 0)
TILE_FUNCTION(tile_float_32, 2, 0, 0)
static Tile *const FLOAT_TILES[2][2] = {{tile_float_16, tile_float_32}};
#if defined(__AVX512BF16__)
TILE_FUNCTION(tile_bf16_to_float_16, 1, 1, 0)
TILE_FUNCTION(tile_bf16_to_float_32, 2, 1, 0)
TILE_FUNCTION(tile_bf16_16, 1, 1, 1)
TILE_FUNCTION(tile_bf16_32, 2, 1, 1)
/* By the type of C and the number of vectors. */
static Tile *const BF16_TILES[2][2] = {{tile_bf16_to_float_16, tile_bf16_to_float_32}, {tile_bf16_16, tile_bf16_32}};
#endif

/* Rows [row, last_row) and columns [column, last_column) of C */
INLINE void product_of_range(const ProductArguments *p, int64_t row, int64_t last_row, int64_t column, int64_t last_column,
                             Tile *const tiles[2][2], const int is_bf16) {
  if (row >= last_row || column >= last_column) return;
  PackedBlocks *blocks = &blocks_of_thread;
  const int64_t size = is_bf16 ? 2 : 4, c_size = p->c_is_bf16 ? 2 : 4;
  const int64_t k_blocks = p->c_is_bf16 || !p->k ? 1 : (p->k + MAX_K_BLOCK - 1) / MAX_K_BLOCK;
  const int64_t k_block = p->k ? round_up((p->k + k_blocks - 1) / k_blocks, 2) : 2;
  const int packs_a = p->a_is_transposed || p->mask || (is_bf16 && p->k % 2) || p->m < TILE_ROWS;
  const int64_t row_multiple = p->a_is_transposed ? 32 : TILE_ROWS;
  int64_t rows = A_BYTES / packed_row_bytes(k_block, is_bf16) / row_multiple * row_multiple;
  int64_t columns = least(MAX_COLUMNS, B_BYTES / (size * k_block) / PANEL_COLUMNS * PANEL_COLUMNS);
  /* blocks of equal size */
  const int64_t row_blocks = (last_row - row + rows - 1) / rows;
  const int64_t column_blocks = (last_column - column + columns - 1) / columns;
  rows = round_up((last_row - row + row_blocks - 1) / row_blocks, row_multiple);
  columns = round_up((last_column - column + column_blocks - 1) / column_blocks, PANEL_COLUMNS);
  for (int64_t c = column; c < last_column; c += columns) {
    const int64_t n = least(columns, last_column - c);
    memset(blocks->bias, 0, sizeof(float) * round_up(n, PANEL_COLUMNS));
    for (int64_t piece = 0, at = 0; piece < MAX_PIECES; at += p->b_rows[piece++])
      if (p->bias[piece])
        for (int64_t i = c > at ? c : at; i < least(c + n, at + p->b_rows[piece]); i++) blocks->bias[i - c] = p->bias[piece][i - at];
    for (int64_t k = 0; k == 0 || k < p->k; k += k_block) {
      const int64_t n_k = least(k_block, p->k - k), words = n_words(n_k, is_bf16);
      if (is_bf16 && p->b_is_bf16) pack_b(p, c, n, k, n_k, blocks->b, is_bf16, 1);
      else pack_b(p, c, n, k, n_k, blocks->b, is_bf16, 0);
      for (int64_t r = row; r < last_row; r += rows) {
        const int64_t m = least(rows, last_row - r);
        float *sums = p->sums && c == 0 ? p->sums + r : NULL;
        if (p->a_is_transposed) pack_transposed_a(p, r, m, k, n_k, sums, blocks->a, is_bf16);
        else if (packs_a) pack_a(p, r, m, k, n_k, blocks->a, is_bf16);
        for (int64_t j = 0; j < n; j += PANEL_COLUMNS) {
          for (int64_t i = 0; i < m; i += TILE_ROWS) {
            /* If A is not packed, the last tile begins earlier, so that it reads only rows that exist. */
            const int64_t first = packs_a ? r + i : least(r + i, p->m - TILE_ROWS);
            const uint8_t *a = blocks->a + i * (p->a_is_transposed ? 4 * words : packed_row_bytes(n_k, is_bf16));
            if (!packs_a) a = (const uint8_t *)p->a + size * (first * p->a_stride + k);
            const int64_t row_step = p->a_is_transposed ? 4 : packs_a ? packed_row_bytes(n_k, is_bf16) : size * p->a_stride;
            const int64_t k_step = p->a_is_transposed ? 4 * TILE_ROWS : 4;
            TileResult result = {
              (uint8_t *)p->c + c_size * (first * p->c_stride + c + j), c_size * p->c_stride, blocks->bias + j,
              p->relu && k + n_k == p->k ? 0.f : -INFINITY, low_bits(n - j), (int)(r + i - first),
              (int)least(TILE_ROWS, r + m - first), p->adds || k > 0,
            };
            tiles[p->c_is_bf16][n - j > 16](a, row_step, k_step, blocks->b + 4 * j * words, words, &result);
          }
        }
      }
    }
  }
}

/* C is divided into parts of equal size, in the way that needs the least work. */
static void product_part(const ProductArguments *p, int64_t part, int64_t n_parts) {
  const int64_t tiles = (p->m + TILE_ROWS - 1) / TILE_ROWS, panels = (p->n + PANEL_COLUMNS - 1) / PANEL_COLUMNS;
  const int64_t pack_cost = 4; /* of a number, in multiply-adds of the time of 32 numbers */
  int64_t groups = 1, least_work = INT64_MAX; /* groups of rows */
  for (int64_t g = 1; g <= n_parts; g++) {
    if (n_parts % g) continue;
    const int64_t rows = (tiles + g - 1) / g * TILE_ROWS, columns = (panels * g + n_parts - 1) / n_parts * PANEL_COLUMNS;
    const int64_t work = rows * columns + pack_cost * (columns + (p->a_is_transposed || p->mask ? rows : 0));
    if (work < least_work) least_work = work, groups = g;
  }
  const int64_t row_part = part % groups, column_part = part / groups, column_parts = n_parts / groups;
  const int64_t row = tiles * row_part / groups * TILE_ROWS, column = panels * column_part / column_parts * PANEL_COLUMNS;
  const int64_t last_row = least(p->m, tiles * (row_part + 1) / groups * TILE_ROWS);
  const int64_t last_column = least(p->n, panels * (column_part + 1) / column_parts * PANEL_COLUMNS);
#if defined(__AVX512BF16__)
  if (p->a_is_bf16) {
    product_of_range(p, row, last_row, column, last_column, BF16_TILES, 1);
    return;
  }
#endif
  product_of_range(p, row, last_row, column, last_column, FLOAT_TILES, 0);
}
#endif
#endif
