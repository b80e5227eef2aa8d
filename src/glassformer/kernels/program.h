/* A program: operations on the rows of named buffers, recorded from a model and executed for any number of rows.

A row is one token of one sequence. Rows do not depend on one another, except that attention reads keys and values that
other rows stored in a cache. All buffers are [rows, width]; widths are multiples of 64, with zeros after the last
feature. */
#ifndef PROGRAM_H
#define PROGRAM_H
#include "phases.h"

enum Kind {
  /* Operations on a row by itself. */
  GATHER,     /* out = entry of a table [entries, n padded to a multiple of 16]. tables[0]: in half precision; or with
                 tables[1]: a weight of [entries, n] and its scales, as of a PRODUCT; or tables[2]: in floats */
  SCALE,      /* out = a * number */
  ADD,        /* out = a + b */
  MULTIPLY,   /* out = a * b */
  ACTIVATE,   /* out = activation(a) */
  NORMALIZE,  /* out = LayerNorm or RMSNorm of a; tables: gain, bias */
  ROTATE,     /* out = rotary position embedding of a; tables: cosines, sines, each [positions, m / 2]; m = d_head */
  QUANTIZE,   /* out = bytes of a; out + 1 = their scale; tables[0]: factor of each column, or null */
  STORE,      /* keys a and values b -> cache `cache`, at the row's slot */
  /* Operations in which the threads share each row. */
  PRODUCT,    /* out = activation(a W^T + bias), or with a buffer b: a W^T + bias + b; a is quantized if W is */
  ATTEND,     /* out = attention with queries a over the keys and values in the row's list */
  BEST,       /* the k best columns of a W^T + bias and their log-probabilities */
};

typedef struct {
  int32_t kind, out, a, b;          /* buffers */
  int32_t out_at, a_at, b_at;       /* first column in them */
  int32_t n, m;                     /* width; a second size */
  int32_t option;                   /* GATHER: index; NORMALIZE: is RMSNorm; ATTEND: list; QUANTIZE: not negative;
                                       PRODUCT, BEST: a is not negative */
  int32_t cache;
  float number;                     /* SCALE: factor; NORMALIZE: epsilon; ATTEND: scale of the scores */
  int32_t group;                    /* ATTEND: query heads per key head */
  int32_t reach;                    /* ATTEND: largest distance in the table of biases */
  int32_t activation;               /* PRODUCT, ACTIVATE */
  const void *tables[4];
} Op;

/* The weight of a PRODUCT, in `tables`:
     0: int8 [n / 64][k / 4][64][4], n and k padded with zeros; k is a multiple of 64: column n, input k -> byte
     1: float [n], scale of each output column;  2: float [n], bias;  3: int32 [n], 128 * sum of the bytes of the column
   Or in floats: 0: float [n][k], k a multiple of 16 and n without padding;  2: bias, n padded. */

/* Some columns of the weight of BEST. */
typedef struct {
  int64_t n;
  const int32_t *ids;               /* columns, ascending; 0 up to a multiple of 64 */
  const void *tables[4];            /* weight of these columns */
} Shortlist;

typedef struct {
  int64_t n_rows;
  const int32_t *index[3];          /* of each row: token id, position, token type */
  const int32_t *slot;              /* of each row: where its keys and values are stored */
  const int32_t *list[2];           /* slots that rows attend to: in self-attention, in cross-attention */
  const int32_t *begin[2], *length[2]; /* of each row: its part of `list` */
  const Shortlist *shortlists;
  const int32_t *shortlist;         /* BEST: of each row, an index of `shortlists`, or -1: all columns. null: all */
} Rows;

typedef struct {
  int64_t n_ops, n_buffers, k, scratch_size; /* k of BEST; scratch_size: floats per thread */
  int64_t has_halves;               /* the caches are in half precision, not floats */
  const Op *ops;
  void *const *buffers;             /* each has memory for n_rows x stride floats */
  const int64_t *strides;           /* of the buffers, in elements */
  void *const *caches;              /* keys of cache c: 2 c, values: 2 c + 1; each [slots, stride] */
  const int64_t *cache_strides;
  Phase *phases;                    /* n_ops + 1 shared by the threads, then n_ops + 1 of each thread */
  float *scratch;
  void *workspace;                  /* of BEST */
  float *least;                     /* of BEST: -infinity for each row */
  float *best;                      /* result of BEST: [rows, k] log-probabilities */
  int32_t *best_ids;
} Program;

typedef void (*Run)(Thread, const Program *, const Rows *);
void run_on_threads(Run run, int n_threads, const Program *program, const Rows *rows);
#endif
