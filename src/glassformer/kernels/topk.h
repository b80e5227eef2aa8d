/* The k largest logits of each row and their log-probabilities, logit - log(sum of e^logits).

The logits of a panel of 64 vocabulary entries are used while they are in the first-level cache and are not stored. The
vocabulary is divided into PIECES, each processed by one thread, with 16 partial maxima and sums per piece; so the
result does not depend on the number of threads. Of equal logits, the one with the lower id is first. */
#ifndef TOPK_H
#define TOPK_H
#include "insert.h"
#include "product.h"

#define PIECES 16
typedef struct { V max[PARTS], sum[PARTS]; } LogSumExp; /* sum of e^(x - max), in 16 lanes */

/* panel_ids: the ids of the 64 logits, or null: first_id and the following.
   least: a lower bound of the k-th largest logit of the row, which the pieces share. */
INLINE void update(const float *y, const int32_t *panel_ids, int32_t first_id, float *values, int32_t *ids, int64_t k,
                   LogSumExp *l, _Atomic float *least) {
  float bound = atomic_load_explicit(least, memory_order_relaxed);
  V best[PARTS], lowest = all(bound);
  int is_larger = 0, enters = 0;
  UNROLL for (int j = 0; j < PARTS; j++) {
    best[j] = load(y + j * LANES);
    for (int i = 16; i < PANEL; i += 16) best[j] = larger(best[j], load(y + i + j * LANES));
    is_larger |= any_at_least(best[j], l->max[j]), enters |= any_at_least(best[j], lowest);
  }
  UNROLL for (int j = 0; j < PARTS; j++) {
    if (is_larger) {
      V m = larger(best[j], l->max[j]);
      l->sum[j] *= exponential_below_87(l->max[j] - m);
      l->max[j] = m;
    }
    for (int i = 0; i < PANEL; i += 16) l->sum[j] += exponential_below_87(load(y + i + j * LANES) - l->max[j]);
  }
  if (!enters) return;
  for (int i = 0; i < PANEL; i += LANES)
    if (any_at_least(load(y + i), lowest))
      for (int j = i; j < i + LANES; j++)
        if (y[j] >= bound && y[j] > values[k - 1]) insert(values, ids, k, y[j], panel_ids ? panel_ids[j] : first_id + j);
  if (values[k - 1] > bound) atomic_store_explicit(least, values[k - 1], memory_order_relaxed);
}

/* Program.workspace: for each piece and row, the LogSumExp; then k values; then k ids. */
typedef struct { LogSumExp *sums; float *values; int32_t *ids; } Pieces;
static Pieces pieces_of(const Program *p, const Rows *r) {
  LogSumExp *sums = p->workspace;
  float *values = (float *)(sums + PIECES * r->n_rows);
  return (Pieces){sums, values, (int32_t *)(values + PIECES * r->n_rows * p->k)};
}

static const Shortlist *shortlist_of(const Rows *r, int64_t row) {
  return r->shortlist && r->shortlist[row] >= 0 ? r->shortlists + r->shortlist[row] : NULL;
}

/* Rows [first, last), which have the same shortlist, and one piece of their columns. */
static void best_of_piece(Thread t, const Op *op, const Program *p, const Rows *r, int64_t first, int64_t last,
                          int64_t piece) {
  Pieces pieces = pieces_of(p, r);
  const Shortlist *shortlist = shortlist_of(r, first);
  Op columns = *op;
  if (shortlist) {
    columns.n = (int32_t)shortlist->n;
    memcpy(columns.tables, shortlist->tables, sizeof columns.tables);
  }
  Weight w = weight_of(t, &columns, p, last - first);
  int64_t k = p->k, panels = divide_up(columns.n, PANEL), n = last - first;
  LogSumExp *l = pieces.sums + piece * r->n_rows;
  float *v = pieces.values + piece * r->n_rows * k;
  int32_t *id = pieces.ids + piece * r->n_rows * k;
  for (int64_t panel = panels * piece / PIECES; panel < panels * (piece + 1) / PIECES; panel++) {
    const int32_t *ids = shortlist ? shortlist->ids + panel * PANEL : NULL;
    begin_panel(&w, panel);
    for (int64_t row = first, rows; row < last; row += rows) {
      float y[TILE_ROWS * PANEL] __attribute__((aligned(64)));
      rows = tile_rows(last - row);
      int64_t next = panel + 1 < panels ? panel + 1 : panel;
      if (next > panel) prefetch(w.bytes + next * w.panel_size, w.panel_size, row - first, rows, n);
      product_tile(&w, row, (int)rows, panel, next, y, PANEL, NULL);
      for (int64_t i = 0; i < rows; i++)
        update(y + i * PANEL, ids, panel * PANEL, v + (row + i) * k, id + (row + i) * k, k, l + row + i,
               (_Atomic float *)p->least + row + i);
    }
  }
}

static void best_of_pieces(Thread t, Phase *phase, const Op *op, const Program *p, const Rows *r) {
  Pieces pieces = pieces_of(p, r);
  int64_t k = p->k, n = r->n_rows;
  FOR_UNITS(piece, phase, PIECES) {
    LogSumExp *l = pieces.sums + piece * n;
    float *v = pieces.values + piece * n * k;
    int32_t *id = pieces.ids + piece * n * k;
    for (int64_t i = 0; i < n * k; i++) v[i] = -INFINITY, id[i] = 0;
    for (int64_t i = 0; i < n; i++)
      for (int j = 0; j < PARTS; j++) l[i].max[j] = all(LOWEST), l[i].sum[j] = all(0);
    for (int64_t first = 0, last; first < n; first = last) {
      for (last = first + 1; last < n && shortlist_of(r, last) == shortlist_of(r, first); last++) {}
      best_of_piece(t, op, p, r, first, last, piece);
    }
  }
  wait_for(phase, PIECES);
}

/* Merges the pieces of each row. */
static void best_of_rows(Phase *phase, const Program *p, const Rows *r) {
  Pieces pieces = pieces_of(p, r);
  int64_t n = r->n_rows, k = p->k;
  FOR_UNITS(row, phase, n) {
    float *best = p->best + row * k;
    int32_t *best_ids = p->best_ids + row * k;
    V m[PARTS], total[PARTS];
    for (int j = 0; j < PARTS; j++) m[j] = all(LOWEST), total[j] = all(0);
    for (int64_t i = 0; i < k; i++) best[i] = -INFINITY, best_ids[i] = 0;
    for (int64_t piece = 0; piece < PIECES; piece++) {
      const LogSumExp *l = pieces.sums + piece * n + row;
      for (int j = 0; j < PARTS; j++) m[j] = larger(m[j], l->max[j]);
      for (int64_t i = (piece * n + row) * k, last = i + k; i < last && pieces.values[i] > best[k - 1]; i++)
        insert(best, best_ids, k, pieces.values[i], pieces.ids[i]);
    }
    V top = all(largest(m));
    for (int64_t piece = 0; piece < PIECES; piece++) {
      const LogSumExp *l = pieces.sums + piece * n + row;
      for (int j = 0; j < PARTS; j++) total[j] += l->sum[j] * exponential_below_87(l->max[j] - top);
    }
    float log_sum = top[0] + logarithm(sum(total));
    for (int64_t i = 0; i < k; i++) best[i] = best[i] <= LOWEST ? -INFINITY : best[i] - log_sum;
  }
  wait_for(phase, n);
}
#endif
