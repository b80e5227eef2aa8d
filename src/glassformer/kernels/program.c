/* Executes a program. Compiled once for each instruction set, with -DSUFFIX=name. */
#include "program.h"
#include "vector.h"
#include "attention.h"
#include "normalize.h"
#include "product.h"
#include "quantize.h"
#include "rows.h"
#include "topk.h"

#define BLOCK_ROWS 64     /* maximum number of rows of a block */
#define MIN_BLOCK_ROWS 16 /* for fewer, reading the weights takes longer than the products */

static int is_on_rows(const Op *op) { return op->kind < PRODUCT; }

INLINE void run_on_row(const Op *op, const Program *p, const Rows *r, int64_t row) {
  float *out = (float *)p->buffers[op->out] + row * p->strides[op->out] + op->out_at;
  const float *a = (const float *)p->buffers[op->a] + row * p->strides[op->a] + op->a_at;
  int32_t second = op->b < 0 ? op->a : op->b;
  const float *b = (const float *)p->buffers[second] + row * p->strides[second] + op->b_at;
  const float *table = op->tables[0];
  int64_t n = op->n;
  switch (op->kind) {
    case GATHER: {
      int64_t index = r->index[op->option][row];
      int64_t at = index * divide_up(n, 16) * 16;
      if (op->tables[1]) load_column(op->tables[0], op->tables[1], index, n, out);
      else if (op->tables[2]) memcpy(out, (const float *)op->tables[2] + at, (size_t)n * sizeof(float));
      else for (int64_t i = 0; i < n; i += LANES) store(out + i, load_half((const uint16_t *)op->tables[0] + at + i));
      break;
    }
    case SCALE: for (int64_t i = 0; i < n; i += LANES) store(out + i, load(a + i) * op->number); break;
    case ADD: for (int64_t i = 0; i < n; i += LANES) store(out + i, load(a + i) + load(b + i)); break;
    case MULTIPLY: for (int64_t i = 0; i < n; i += LANES) store(out + i, load(a + i) * load(b + i)); break;
    case ACTIVATE: activate(op->activation, a, n, out); break;
    case NORMALIZE: normalize(a, n, op->option, op->number, table, op->tables[1], out); break;
    case ROTATE: {
      int64_t at = (int64_t)r->index[1][row] * (op->m / 2);
      rotate(a, n, op->m, table + at, (const float *)op->tables[1] + at, out);
      break;
    }
    case QUANTIZE:
      quantize(a, table, n, op->option, (uint8_t *)p->buffers[op->out] + row * p->strides[op->out],
               (float *)p->buffers[op->out + 1] + row);
      break;
    case STORE: {
      int64_t at = r->slot[row] * p->cache_strides[op->cache];
      store_cached(a, n, p->caches[2 * op->cache], at, p->has_halves);
      store_cached(b, n, p->caches[2 * op->cache + 1], at, p->has_halves);
      break;
    }
  }
}

#define CONCATENATE(a, b) a##b
#define NAME(a, b) CONCATENATE(a, b)

/* The part of thread t in all rows. Consecutive operations on rows are one phase, in which a row stays in the
   first-level cache. */
static void run_phases(Thread t, const Program *p, const Rows *r) {
  for (int64_t i = 0; i < p->n_ops; i++) {
    const Op *op = p->ops + i;
    Phase *phase = t.phases + i;
    if (is_on_rows(op)) {
      int64_t last = i, size = unit_size(r->n_rows, t.n, 8), units = divide_up(r->n_rows, size);
      while (last + 1 < p->n_ops && is_on_rows(p->ops + last + 1)) last++;
      FOR_UNITS(unit, phase, units)
        for (int64_t row = unit * size; row < unit * size + size && row < r->n_rows; row++)
          for (int64_t j = i; j <= last; j++) run_on_row(p->ops + j, p, r, row);
      wait_for(phase, units);
      i = last;
    } else if (op->kind == PRODUCT) {
      product(t, phase, op, p, r);
    } else if (op->kind == ATTEND) {
      attention(t, phase, op, p, r);
    } else {
      best_of_pieces(t, phase, op, p, r);
      best_of_rows(phase + 1, p, r);
    }
  }
}

/* First row of block i of n. A block contains whole sequences: rows of which self-attention uses the same part of the
   list are adjacent. */
static int64_t block_begin(const Rows *r, int64_t i, int64_t n) {
  int64_t row = r->n_rows * i / n;
  while (row > 0 && row < r->n_rows && r->begin[0][row] == r->begin[0][row - 1]) row++;
  return row;
}

/* Number of blocks of rows, or 0 if some would be too small or too large. */
static int64_t n_blocks(const Rows *r, int n_threads) {
  int64_t n = n_threads * divide_up(r->n_rows, n_threads * BLOCK_ROWS), mean = r->n_rows / n;
  for (int64_t i = 0; i < n; i++) {
    int64_t size = block_begin(r, i + 1, n) - block_begin(r, i, n);
    if (size < MIN_BLOCK_ROWS || 4 * size > 5 * mean + 4) return 0;
  }
  return n;
}

/* The whole program for rows [first, last), by one thread. */
static void run_block(Thread t, const Program *p, const Rows *r, int64_t first, int64_t last) {
  void *buffers[p->n_buffers];
  Program part = *p;
  Rows rows = *r;
  for (int64_t i = 0; i < p->n_buffers; i++) buffers[i] = (float *)p->buffers[i] + first * p->strides[i];
  part.buffers = buffers;
  part.workspace = (float *)p->workspace + first * PIECES * (2 * 16 + 2 * p->k); /* as allocated in program.py */
  part.least += first, part.best += first * p->k, part.best_ids += first * p->k;
  rows.n_rows = last - first, rows.slot += first;
  for (int i = 0; i < 3; i++) rows.index[i] += first;
  for (int i = 0; i < 2; i++) rows.begin[i] += first, rows.length[i] += first;
  if (rows.shortlist) rows.shortlist += first;
  Thread alone = {t.id, 1, t.phases + (t.id + 1) * (p->n_ops + 1)};
  memset(alone.phases, 0, (size_t)(p->n_ops + 1) * sizeof(Phase));
  run_phases(alone, &part, &rows);
}

/* The part of thread t. Many rows are divided into blocks, each for one thread, in whose second-level cache all buffers
   of the block stay; with few rows, the threads share each operation. */
void NAME(run_, SUFFIX)(Thread t, const Program *p, const Rows *r) {
  int64_t n = n_blocks(r, t.n);
  if (n == 0) {
    run_phases(t, p, r);
    return;
  }
  FOR_UNITS(i, t.phases, n) run_block(t, p, r, block_begin(r, i, n), block_begin(r, i + 1, n));
  wait_for(t.phases, n);
}
