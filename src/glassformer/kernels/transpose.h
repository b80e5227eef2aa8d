/* Transposition of a block of LANES x LANES words of 32 bits in registers. */
#ifndef TRANSPOSE_H
#define TRANSPOSE_H
#include "vector.h"

/* In each group of four words: the words i, j, k, l of the group, where LANES and above are those of b. */
#define QUAD(i, j, k, l, at) (i) + (at), (j) + (at), (k) + (at), (l) + (at)
#if LANES == 16
#define QUADS(a, b, i, j, k, l) \
  __builtin_shufflevector(a, b, QUAD(i, j, k, l, 0), QUAD(i, j, k, l, 4), QUAD(i, j, k, l, 8), QUAD(i, j, k, l, 12))
#elif LANES == 8
#define QUADS(a, b, i, j, k, l) __builtin_shufflevector(a, b, QUAD(i, j, k, l, 0), QUAD(i, j, k, l, 4))
#else
#define QUADS(a, b, i, j, k, l) __builtin_shufflevector(a, b, i, j, k, l)
#endif

INLINE void transpose_block(V x[LANES]) {
  /* Rows 4 g to 4 g + 3: their words of column 4 q + c become group q of vector 4 g + c. */
  UNROLL for (int g = 0; g < LANES; g += 4) {
    V low = QUADS(x[g], x[g + 1], 0, LANES, 1, LANES + 1), high = QUADS(x[g], x[g + 1], 2, LANES + 2, 3, LANES + 3);
    V low2 = QUADS(x[g + 2], x[g + 3], 0, LANES, 1, LANES + 1), high2 = QUADS(x[g + 2], x[g + 3], 2, LANES + 2, 3, LANES + 3);
    x[g] = QUADS(low, low2, 0, 1, LANES, LANES + 1), x[g + 1] = QUADS(low, low2, 2, 3, LANES + 2, LANES + 3);
    x[g + 2] = QUADS(high, high2, 0, 1, LANES, LANES + 1), x[g + 3] = QUADS(high, high2, 2, 3, LANES + 2, LANES + 3);
  }
  /* Transposition of groups. */
#if LANES == 16
#define GROUPS(a, b, i, j, k, l) \
  __builtin_shufflevector(a, b, QUAD(0, 1, 2, 3, i), QUAD(0, 1, 2, 3, j), QUAD(0, 1, 2, 3, k), QUAD(0, 1, 2, 3, l))
  UNROLL for (int c = 0; c < 4; c++) {
    V low = GROUPS(x[c], x[c + 4], 0, 4, 16, 20), high = GROUPS(x[c], x[c + 4], 8, 12, 24, 28);
    V low2 = GROUPS(x[c + 8], x[c + 12], 0, 4, 16, 20), high2 = GROUPS(x[c + 8], x[c + 12], 8, 12, 24, 28);
    x[c] = GROUPS(low, low2, 0, 8, 16, 24), x[c + 4] = GROUPS(low, low2, 4, 12, 20, 28);
    x[c + 8] = GROUPS(high, high2, 0, 8, 16, 24), x[c + 12] = GROUPS(high, high2, 4, 12, 20, 28);
  }
#undef GROUPS
#elif LANES == 8
  UNROLL for (int c = 0; c < 4; c++) {
    V a = x[c], b = x[c + 4];
    x[c] = __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11);
    x[c + 4] = __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15);
  }
#endif
}
#undef QUADS
#undef QUAD
#endif
