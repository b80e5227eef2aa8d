/* Product of bytes: y[r][c] = activation(scale_r * scale_c * sum_k (a[r][k] - 128) w[c][k] + bias_c), or y + residual.

a: uint8 [rows][k], 128 added; or, if the inputs are not negative, all of 0..255 and nothing added.
w: int8 [n / 64][64 / STRIP][k / 4][STRIP][4]: panels of 64 columns, in which the 4 bytes that one instruction
multiplies are adjacent.
The sums are exact, in 32 bits, so they do not depend on the instruction set. A tile of TILE_ROWS rows and TILE_COLUMNS
columns is kept in registers while k runs. */
#ifndef PRODUCT_H
#define PRODUCT_H
#include "product_float.h"
#include "program.h"
#include "rows.h"
#include "vector.h"

#if defined(__wasm__) /* has no instruction that requests memory, which is read fastest in order: by strips of a tile */
#define STRIP 8
#else
#define STRIP PANEL
#endif
#define MIN_ROWS 48 /* for fewer, reading the weights takes longer than the product */

/* For each instruction set: Sums, a vector of 32-bit sums; SUMS, the number of them for TILE_COLUMNS columns; repeat,
   4 bytes of a row in a vector; dot, which multiplies them by 4 bytes of each column and adds. */
#if defined(__AVX512VNNI__)
#define TILE_ROWS 6
#define TILE_COLUMNS 64
#define SUMS 4
typedef __m512i Sums;
INLINE Sums repeat(const uint8_t *a) { int32_t x; memcpy(&x, a, 4); return _mm512_set1_epi32(x); }
INLINE Sums weights(const int8_t *w) { return _mm512_loadu_si512(w); }
INLINE Sums dot(Sums s, Sums a, Sums w) { return _mm512_dpbusd_epi32(s, a, w); }
#define WEIGHTS_STEP 64
#elif defined(__AVXVNNI__)
#define TILE_ROWS 6
#define TILE_COLUMNS 16
#define SUMS 2
typedef __m256i Sums;
INLINE Sums repeat(const uint8_t *a) { int32_t x; memcpy(&x, a, 4); return _mm256_set1_epi32(x); }
INLINE Sums weights(const int8_t *w) { return _mm256_loadu_si256((const void *)w); }
INLINE Sums dot(Sums s, Sums a, Sums w) { return _mm256_dpbusd_avx_epi32(s, a, w); }
#define WEIGHTS_STEP 32
#elif defined(__AVX2__) /* products of 16 bits, added in pairs: two sums for each column */
#define WIDENS
#define MIN_WIDE 16 /* rows for which it pays to convert a whole panel to 16 bits */
#define TILE_ROWS 6
#define TILE_COLUMNS 16
#define SUMS 4
#define SUMS_STEP 2
#define FINISH(a, b) _mm256_permute4x64_epi64(_mm256_hadd_epi32(a, b), 0xd8) /* the sums of pairs, in order */
typedef __m256i Sums;
INLINE Sums repeat(const uint8_t *a) { int32_t x; memcpy(&x, a, 4); return _mm256_cvtepu8_epi16(_mm_set1_epi32(x)); }
INLINE Sums weights(const int8_t *w) { return _mm256_cvtepi8_epi16(_mm_loadu_si128((const void *)w)); }
INLINE Sums dot(Sums s, Sums a, Sums w) { return _mm256_add_epi32(s, _mm256_madd_epi16(a, w)); }
#define WEIGHTS_STEP 16
#elif defined(__ARM_FEATURE_MATMUL_INT8)
#define PAIRS_ROWS /* tiles of 2 rows and more: one instruction multiplies 2 rows by 2 columns */
#define TILE_ROWS 6
#define TILE_COLUMNS 16
#define SUMS 4
typedef int32x4_t Sums;
INLINE uint8x16_t repeat(const uint8_t *a) {
  uint32_t x; memcpy(&x, a, 4); return vreinterpretq_u8_u32(vdupq_n_u32(x));
}
INLINE int8x16_t weights(const int8_t *w) { return vld1q_s8(w); }
INLINE Sums dot(Sums s, uint8x16_t a, int8x16_t w) { return vusdotq_s32(s, a, w); }
#define WEIGHTS_STEP 16
#elif defined(__ARM_FEATURE_DOTPROD) /* signed bytes: 128 is subtracted from all inputs */
#define TILE_ROWS 6
#define TILE_COLUMNS 16
#define SUMS 4
#define SIGNED
typedef int32x4_t Sums;
INLINE int8x16_t repeat(const uint8_t *a) {
  uint32_t x; memcpy(&x, a, 4); return vreinterpretq_s8_u32(vdupq_n_u32(x ^ 0x80808080));
}
INLINE int8x16_t weights(const int8_t *w) { return vld1q_s8(w); }
INLINE Sums dot(Sums s, int8x16_t a, int8x16_t w) { return vdotq_s32(s, a, w); }
#define WEIGHTS_STEP 16
#elif defined(__wasm_relaxed_simd__)
/* WebAssembly with relaxed SIMD: what the instruction does with bytes above 127 depends on the browser and the processor.
   It is exact as u8 x i8 (x86 with VNNI), or with -DSIGNED as i8 x i8 (Arm); the page tests which, and else takes SIMD. */
#define TILE_ROWS 4
#define TILE_COLUMNS 8
#define SUMS 2
#define PARTS_OF_SUMS(rows) ((rows) > 2 ? 1 : 4 / (rows))
typedef v128_t Sums;
#if defined(SIGNED)
INLINE Sums repeat(const uint8_t *a) {
  int32_t x; memcpy(&x, a, 4); return wasm_i32x4_splat(x ^ (int32_t)0x80808080);
}
#else
INLINE Sums repeat(const uint8_t *a) { return wasm_v128_load32_splat(a); }
#endif
INLINE Sums weights(const int8_t *w) { return wasm_v128_load(w); }
INLINE Sums dot(Sums s, Sums a, Sums w) { return wasm_i32x4_relaxed_dot_i8x16_i7x16_add(w, a, s); }
#define WEIGHTS_STEP 16
#elif defined(__wasm_simd128__) /* products of 16 bits, added in pairs: two sums for each column */
#define TILE_ROWS 2
#define TILE_COLUMNS 8
#define SUMS 4
#define SUMS_STEP 2
#define FINISH(a, b) wasm_i32x4_add(wasm_i32x4_shuffle(a, b, 0, 2, 4, 6), wasm_i32x4_shuffle(a, b, 1, 3, 5, 7))
typedef v128_t Sums;
INLINE Sums repeat(const uint8_t *a) { return wasm_u16x8_extend_low_u8x16(wasm_v128_load32_splat(a)); }
INLINE Sums weights(const int8_t *w) { return wasm_i16x8_load8x8(w); }
INLINE Sums dot(Sums s, Sums a, Sums w) { return wasm_i32x4_add(s, wasm_i32x4_dot_i16x8(a, w)); }
#define WEIGHTS_STEP 8
#else /* any processor: 4 columns */
#define TILE_ROWS 4
#define TILE_COLUMNS 4
#define SUMS 1
typedef int32_t Sums __attribute__((vector_size(16)));
typedef struct { int16_t x[16]; } Shorts;
INLINE Shorts repeat(const uint8_t *a) { Shorts s; for (int i = 0; i < 16; i++) s.x[i] = a[i & 3]; return s; }
INLINE Shorts weights(const int8_t *w) { Shorts s; for (int i = 0; i < 16; i++) s.x[i] = w[i]; return s; }
INLINE Sums dot(Sums s, Shorts a, Shorts w) {
  for (int i = 0; i < 16; i++) s[i / 4] += a.x[i] * w.x[i];
  return s;
}
#define WEIGHTS_STEP 16
#endif

#if defined(WIDENS)
#define MAX_TILE 2
#else
#define MAX_TILE TILE_ROWS
#endif
#define REQUESTS(rows) (STRIP == PANEL && rows < TILE_ROWS) /* for more rows, `prefetch` does */
#define MAX_PARTS 4
#if !defined(PARTS_OF_SUMS) /* into which sums are divided, so that several products of few rows run at a time */
#define PARTS_OF_SUMS(rows) 1
#endif
#if !defined(FINISH)
#define SUMS_STEP 1
#define FINISH(a, b) (a)
#endif

#if defined(WIDENS)
/* For MIN_WIDE rows and more, the bytes of a panel are converted to 16 bits once, and the rows once for each tile.
   The panel: [64 / 8][k / 4][8][4]; the rows: [TILE_ROWS][k]. `wide` has memory for (64 + TILE_ROWS) k numbers. */
#define KEEP(x) __asm__("" : "+x"(x)) /* in a register: compilers would compute all products before the sums */
INLINE void widen(const uint8_t *a, int16_t *to) {
  _mm256_storeu_si256((void *)to, _mm256_cvtepu8_epi16(_mm_loadu_si128((const void *)a)));
}
static void widen_panel(const int8_t *panel, int64_t k, int16_t *wide) {
  for (int c = 0; c < PANEL; c += 8)
    for (int64_t at = 0; at < k; at += 4)
      for (int half = 0; half < 32; half += 16, wide += 16)
        _mm256_storeu_si256((void *)wide, weights(panel + PANEL * at + 4 * c + half));
}
__attribute__((noinline)) static void wide_tile(int rows, const uint8_t *a, int64_t stride, int64_t k, int16_t *wide,
                                                int32_t *out) {
  int16_t *wide_rows = wide + PANEL * k;
  for (int i = 0; i < TILE_ROWS; i++) /* the last row again, if there are fewer */
    for (int64_t at = 0; at < k; at += 16) widen(a + (i < rows ? i : rows - 1) * stride + at, wide_rows + i * k + at);
  for (int c = 0; c < PANEL; c += 8) {
    Sums s[TILE_ROWS][2];
    UNROLL for (int i = 0; i < TILE_ROWS; i++) s[i][0] = s[i][1] = (Sums){0};
    for (int64_t at = 0; at < k; at += 4, wide += 32) {
      Sums first = _mm256_loadu_si256((const void *)wide), second = _mm256_loadu_si256((const void *)(wide + 16));
      UNROLL for (int i = 0; i < TILE_ROWS; i++) {
        int64_t four;
        memcpy(&four, wide_rows + i * k + at, sizeof four);
        Sums row = _mm256_set1_epi64x(four);
        s[i][0] = dot(s[i][0], row, first);
        KEEP(s[i][0]);
        s[i][1] = dot(s[i][1], row, second);
        KEEP(s[i][1]);
      }
    }
    UNROLL for (int i = 0; i < TILE_ROWS; i++) {
      Sums x = FINISH(s[i][0], s[i][1]);
      memcpy(out + i * PANEL + c, &x, sizeof x);
    }
  }
}
#endif

/* Sums of `rows` (a constant) rows and one panel -> out[row][64]

With few rows, there are few operations for each byte of the weights, and memory decides: it is read fastest in order. A
tile of fewer columns than a strip has does not read it in order, so it requests the next panel meanwhile. */
INLINE void tile_of(const int rows, const uint8_t *a, int64_t stride, const int8_t *panel, const int8_t *next, int64_t k,
                    int32_t *out) {
  const int8_t *ahead = TILE_COLUMNS < PANEL ? next : panel + 4096;
  const int n_parts = PARTS_OF_SUMS(rows);
  for (int c = 0; c < PANEL; c += TILE_COLUMNS) {
    const int8_t *w = panel + c / STRIP * STRIP * k + c % STRIP * 4;
    Sums parts[MAX_PARTS][MAX_TILE][SUMS], (*s)[SUMS] = parts[0];
    UNROLL for (int part = 0; part < n_parts; part++)
      UNROLL for (int i = 0; i < rows; i++) UNROLL for (int j = 0; j < SUMS; j++) parts[part][i][j] = (Sums){0};
    for (int64_t at = 0; at < k; at += 4 * n_parts)
      UNROLL for (int part = 0; part < n_parts; part++, w += 4 * STRIP) {
        if (REQUESTS(rows))
          UNROLL for (int j = 0; j < TILE_COLUMNS; j += 16)
            __builtin_prefetch(ahead + c * k + at * TILE_COLUMNS + 4 * j, 0, 3);
        __typeof__(weights(w)) factors[SUMS];
        UNROLL for (int j = 0; j < SUMS; j++) factors[j] = weights(w + j * WEIGHTS_STEP);
        UNROLL for (int i = 0; i < rows; i++) {
          __typeof__(repeat(a)) bytes = repeat(a + i * stride + at + 4 * part);
          UNROLL for (int j = 0; j < SUMS; j++) parts[part][i][j] = dot(parts[part][i][j], bytes, factors[j]);
        }
      }
    UNROLL for (int i = 0; i < rows; i++) {
      UNROLL for (int j = 0; j < SUMS; j++)
        UNROLL for (int part = 1; part < n_parts; part++) s[i][j] = (Sums)((I)s[i][j] + (I)parts[part][i][j]);
      UNROLL for (int j = 0; j < SUMS; j += SUMS_STEP) { /* one by one: a copy of the array would keep it in memory */
        Sums x = FINISH(s[i][j], s[i][j + SUMS_STEP - 1]);
        memcpy(out + i * PANEL + c + j / SUMS_STEP * sizeof x / 4, &x, sizeof x);
      }
    }
  }
}
#if defined(PAIRS_ROWS)
/* The same for 2 rows and more, 8 inputs at a time. A vector has the sums of 2 rows and 2 columns: s[i][j] those of
   rows i and i + 1 and the first 2 of 4 columns, s[i + 1][j] those of the same rows and the other 2. If the number of
   rows is odd, the last is taken twice. */
INLINE void tile_of_pairs(const int rows, const uint8_t *a, int64_t stride, const int8_t *panel, const int8_t *next,
                          int64_t k, int32_t *out) {
  (void)next;
  const int quads = rows > 4 ? 2 : 4; /* groups of 4 columns: 24 sums and the factors do not fit in the registers */
  for (int c = 0; c < PANEL; c += 4 * quads) {
    const int8_t *w = panel + 4 * c;
    Sums s[TILE_ROWS][4];
    UNROLL for (int i = 0; i < rows + rows % 2; i++) UNROLL for (int j = 0; j < quads; j++) s[i][j] = (Sums){0};
    for (int64_t at = 0; at < k; at += 8, w += 8 * PANEL) {
      if (quads > 2) UNROLL for (int j = 0; j < 2; j++) __builtin_prefetch(w + 4096 + 4 * PANEL * j, 0, 3);
      uint8x16_t bytes[TILE_ROWS];
      UNROLL for (int i = 0; i < rows; i += 2) {
        const uint8_t *row = a + i * stride + at;
        bytes[i] = vcombine_u8(vld1_u8(row), vld1_u8(i + 1 < rows ? row + stride : row));
      }
      UNROLL for (int j = 0; j < quads; j++) {
        int32x4_t low = vreinterpretq_s32_s8(weights(w + 16 * j));
        int32x4_t high = vreinterpretq_s32_s8(weights(w + 16 * j + 4 * PANEL));
        int8x16_t first = vreinterpretq_s8_s32(vzip1q_s32(low, high));
        int8x16_t second = vreinterpretq_s8_s32(vzip2q_s32(low, high));
        UNROLL for (int i = 0; i < rows; i += 2) {
          s[i][j] = vusmmlaq_s32(s[i][j], bytes[i], first);
          s[i + 1][j] = vusmmlaq_s32(s[i + 1][j], bytes[i], second);
        }
      }
    }
    UNROLL for (int i = 0; i < rows; i += 2) {
      UNROLL for (int j = 0; j < quads; j++) {
        int64x2_t first = vreinterpretq_s64_s32(s[i][j]), second = vreinterpretq_s64_s32(s[i + 1][j]);
        int32_t *to = out + i * PANEL + c + 4 * j;
        vst1q_s32(to, vreinterpretq_s32_s64(vzip1q_s64(first, second)));
        if (i + 1 < rows) vst1q_s32(to + PANEL, vreinterpretq_s32_s64(vzip2q_s64(first, second)));
      }
    }
  }
}
#define TILE_OF(ROWS) (ROWS > 1 ? tile_of_pairs : tile_of)
#else
#define TILE_OF(ROWS) tile_of
#endif
/* Not inlined: in a larger function, compilers move the sums from registers to memory. */
#define TILE(ROWS)                                                                                         \
  __attribute__((noinline)) static void tile_##ROWS(const uint8_t *a, int64_t stride, const int8_t *panel, \
                                                    const int8_t *next, int64_t k, int32_t *out) {         \
    TILE_OF(ROWS)(ROWS, a, stride, panel, next, k, out);                                                   \
  }
TILE(1) TILE(2)
#if MAX_TILE > 2
TILE(3) TILE(4)
#endif
#if MAX_TILE > 4
TILE(5) TILE(6)
#endif

/* next: the panel that is read next, or the same if there is none. */
static void tile(int rows, const uint8_t *a, int64_t stride, const int8_t *panel, const int8_t *next, int64_t k,
                 int32_t *out) {
#if defined(WIDENS)
  for (; rows > 2; rows -= 2, a += 2 * stride, out += 2 * PANEL) tile_2(a, stride, panel, next, k, out);
#endif
  switch (rows) {
    case 1: tile_1(a, stride, panel, next, k, out); break;
    case 2: tile_2(a, stride, panel, next, k, out); break;
#if MAX_TILE > 2
    case 3: tile_3(a, stride, panel, next, k, out); break;
    case 4: tile_4(a, stride, panel, next, k, out); break;
#endif
#if MAX_TILE > 4
    case 5: tile_5(a, stride, panel, next, k, out); break;
    case 6: tile_6(a, stride, panel, next, k, out);
#endif
  }
}

/* Rows of the next tile when `left` rows are left: full tiles, and at the end no tile with very few rows. */
static int tile_rows(int64_t left) {
  if (left < TILE_ROWS) return (int)left;
  return left > TILE_ROWS && left < TILE_ROWS + 3 ? (int)(left + 1) / 2 : TILE_ROWS;
}

typedef struct {
  const void *inputs;
  int64_t stride;      /* bytes from an input row to the next */
  const float *scales; /* of the input rows */
  const int8_t *bytes; /* or floats, without the scales and offsets */
  const float *scale, *bias;
  const int32_t *offset;
  int64_t n, k, panel_size;
  int32_t added; /* what the bytes of the inputs have added, in multiples of 128 */
  int32_t activation;
  int16_t *wide; /* memory for `wide_tile`; null: not used */
} Weight;
/* t: the thread that uses it */
static Weight weight_of(Thread t, const Op *op, const Program *p, int64_t n_rows) {
  int16_t *wide = NULL;
#if defined(WIDENS)
  if (n_rows >= MIN_WIDE) wide = (int16_t *)(p->scratch + t.id * p->scratch_size);
#else
  (void)t, (void)p, (void)n_rows;
#endif
#if defined(SIGNED)
  int32_t added = op->option ? -1 : 0;
#else
  int32_t added = op->option ? 0 : 1;
#endif
  int is_float = op->tables[1] == NULL;
  int64_t size = is_float ? sizeof(float) : 1;
  const void *inputs = p->buffers[op->a];
  return (Weight){
    is_float ? (const float *)inputs + op->a_at : inputs, p->strides[op->a] * size,
    is_float ? NULL : p->buffers[op->a + 1], op->tables[0], op->tables[1], op->tables[2], op->tables[3], op->n, op->m,
    PANEL * op->m * size, added, op->activation, is_float ? NULL : wide,
  };
}

/* The next `bytes` bytes that will be read are requested in parts, one with each tile. */
INLINE void prefetch(const int8_t *p, int64_t bytes, int64_t row, int rows, int64_t n_rows) {
  if (n_rows <= TILE_ROWS) return;
  for (int64_t i = (bytes * row / n_rows) & ~63L; i < bytes * (row + rows) / n_rows; i += 64)
    __builtin_prefetch(p + i, 0, 2);
}

/* To be called before the tiles of panel p. */
INLINE void begin_panel(const Weight *w, int64_t p) {
#if defined(WIDENS)
  if (w->wide) widen_panel(w->bytes + p * w->panel_size, w->k, w->wide);
#else
  (void)w, (void)p;
#endif
}

/* Sums of bytes, or of floats, -> y. */
INLINE void finish(const Weight *w, int64_t row, int rows, int64_t p, const int32_t *sums, const float *floats, float *y,
                   int64_t y_stride, const float *residual, const int is_relu) {
  const float *scales = w->scales + row;
  for (int j = 0; j < PANEL; j += LANES) {
    V bias = load(w->bias + p * PANEL + j), scale = all(0);
    I offset = {0};
    if (w->scale) {
      scale = load(w->scale + p * PANEL + j);
      memcpy(&offset, w->offset + p * PANEL + j, sizeof offset);
      offset *= w->added;
    }
    for (int i = 0; i < rows; i++) {
      I s;
      memcpy(&s, sums + i * PANEL + j, sizeof s);
      V v = w->scale ? __builtin_convertvector(s - offset, V) * (scales[i] * scale) + bias
                     : load(floats + i * PANEL + j) + bias;
      if (residual) v += load(residual + i * y_stride + j);
      store(y + i * y_stride + j, is_relu ? larger(v, all(0)) : v);
    }
  }
}

/* Rows [row, row + rows) of panel p -> y, of which consecutive rows are `y_stride` floats apart; so are those of
   `residual`, which is added unless it is null. next: see `tile`. */
INLINE void product_tile(const Weight *w, int64_t row, int rows, int64_t p, int64_t next, float *y, int64_t y_stride,
                         const float *residual) {
  int32_t sums[TILE_ROWS * PANEL] __attribute__((aligned(64)));
  float floats[TILE_ROWS * PANEL] __attribute__((aligned(64)));
  const uint8_t *a = (const uint8_t *)w->inputs + row * w->stride;
  if (!w->scale)
    float_panel(rows, (const float *)a, w->stride / 4, (const float *)w->bytes, p * PANEL, w->n, w->k, floats);
#if defined(WIDENS)
  else if (w->wide) wide_tile(rows, a, w->stride, w->k, w->wide, sums);
#endif
  else tile(rows, a, w->stride, w->bytes + p * w->panel_size, w->bytes + next * w->panel_size, w->k, sums);
  if (residual) finish(w, row, rows, p, sums, floats, y, y_stride, residual, w->activation == RELU);
  else if (w->activation == RELU) finish(w, row, rows, p, sums, floats, y, y_stride, NULL, 1);
  else finish(w, row, rows, p, sums, floats, y, y_stride, NULL, 0);
  if (w->activation > RELU)
    for (int i = 0; i < rows; i++) activate(w->activation, y + i * y_stride, PANEL, y + i * y_stride);
}

/* out = one column of a weight of k inputs, up to a multiple of 64. */
static void load_column(const int8_t *w, const float *scales, int64_t column, int64_t k, float *out) {
  int64_t panels = divide_up(k, PANEL);
  const int8_t *bytes = w + column / STRIP * STRIP * PANEL * panels + column % STRIP * 4;
  for (int64_t i = 0; i < panels * PANEL; i += 4)
    for (int j = 0; j < 4; j++) out[i + j] = bytes[i * STRIP + j] * scales[column];
}

static void product(Thread t, Phase *phase, const Op *op, const Program *p, const Rows *r) {
  Weight w = weight_of(t, op, p, r->n_rows);
  float *y = p->buffers[op->out];
  const float *residual = op->b >= 0 ? p->buffers[op->b] : NULL;
  int64_t y_stride = p->strides[op->out], panels = divide_up(op->n, PANEL);
  /* A unit: some panels, and all rows; with many threads, some rows. */
  int64_t size = unit_size(panels, t.n, 8), groups = divide_up(panels, size);
  int64_t block = groups >= 2 * t.n ? r->n_rows : divide_up(r->n_rows, 2 * t.n);
  block = block < MIN_ROWS ? MIN_ROWS : block;
  int64_t blocks = divide_up(r->n_rows, block);
  FOR_UNITS(unit, phase, groups * blocks) {
    int64_t last_panel = unit / blocks * size + size, first_row = unit % blocks * block, last_row = first_row + block;
    if (last_panel > panels) last_panel = panels;
    if (last_row > r->n_rows) last_row = r->n_rows;
    for (int64_t panel = unit / blocks * size; panel < last_panel; panel++) {
      begin_panel(&w, panel);
      for (int64_t row = first_row, rows; row < last_row; row += rows) {
        rows = tile_rows(last_row - row);
        int64_t next = panel + 1 < last_panel ? panel + 1 : panel + 1 + (t.n - 1) * size, at = row * y_stride + panel * PANEL;
        if (next < panels)
          prefetch(w.bytes + next * w.panel_size, w.panel_size, row - first_row, rows, last_row - first_row);
        else next = panel;
        product_tile(&w, row, (int)rows, panel, next, y + at, y_stride, residual ? residual + at : NULL);
      }
    }
  }
  wait_for(phase, groups * blocks);
}
#endif
