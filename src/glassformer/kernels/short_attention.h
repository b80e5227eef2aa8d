/* Attention of training for short sequences, one head of one sequence at a time, forward and backward:

  S = scale Q K^T, P = softmax(S), O = P V
  dV = P^T dO, dP = dO V^T, dS = P (dP - rowsum(P dP)), dQ = scale dS K, dK = scale dS^T Q

The backward pass computes P again, so that only the inputs are kept. All matrices of a head are in the second-level
cache. The queries are at the last key positions.

S, P, dP and dS are kept transposed, with a row for each key: vectors are then of queries, and maxima and sums over keys
need no sums across a vector. Where the processor multiplies pairs of bf16 and the tensors are bf16, it computes all
products: S and dP from the elements as they are in memory, the others with P and dS rounded to bf16. */
#ifndef SHORT_ATTENTION_H
#define SHORT_ATTENTION_H
#include <stdlib.h>
#include "small_product.h"
#include "training.h"
#include "transpose.h"

#define MASKED -1e30f
#define TAKES_PAIRS(is_bf16) (HAS_PAIRS && (is_bf16))

/* Matrices of one head. A row is an odd multiple of 16 floats, so that columns do not share the same lines of the
   first-level cache. What is beyond the last query in the rows of transposed matrices is finite and not used. */
typedef struct {
  void *memory;
  int64_t d_stride, n_stride;            /* floats from row to row of [positions, d_head] and of [.., n_queries] */
  float *q, *k, *v, *d_out;              /* [positions, d_head] */
  float *q_transposed, *d_out_transposed; /* [d_head, n_queries], or pairs of bf16 [d_head / 2, n_queries, 2] */
  float *p, *d_p;                        /* [n_keys, n_queries] */
  float *d_s_pairs;                      /* pairs of dS [n_keys / 2, n_queries, 2] */
  float *mask;                           /* [n_keys]: 0, or MASKED */
  float *factor;                         /* [n_queries]: 1 / sum over keys of e^(score - largest) */
} Head;

static Head new_head(const AttentionArguments *a) {
  int64_t longest = a->n_queries > a->n_keys ? a->n_queries : a->n_keys;
  Head h = {.d_stride = a->d_head | 16, .n_stride = (a->n_queries + 15) / 16 * 16 | 16};
  int64_t by_position = longest * h.d_stride, by_feature = (a->d_head + 16) * h.n_stride, by_key = a->n_keys * h.n_stride;
  int64_t n_keys = (a->n_keys + 15) / 16 * 16;
  h.memory = malloc(64 + sizeof(float) * (size_t)(4 * by_position + 2 * by_feature + 3 * by_key + n_keys + h.n_stride));
  h.q = (float *)(((uintptr_t)h.memory + 63) / 64 * 64);
  h.k = h.q + by_position, h.v = h.k + by_position, h.d_out = h.v + by_position;
  h.q_transposed = h.d_out + by_position, h.d_out_transposed = h.q_transposed + by_feature;
  h.p = h.d_out_transposed + by_feature, h.d_p = h.p + by_key, h.d_s_pairs = h.d_p + by_key;
  h.mask = h.d_s_pairs + by_key, h.factor = h.mask + n_keys;
  return h;
}

INLINE void *first_row(Heads x, int64_t batch, int64_t head, int is_bf16) {
  return element(x.data, batch * x.batch + head * x.head, is_bf16);
}

/* Requests the cache lines of a head that will be read or written: head number `next` of all. Its rows are far apart in
   memory, and the processor does not foresee their addresses. */
INLINE void prefetch_head(const AttentionArguments *a, Heads x, int64_t next, int64_t n_rows, int is_bf16) {
  const void *row = first_row(x, next / a->n_heads, next % a->n_heads, is_bf16);
  for (int64_t i = 0; i < n_rows; i++, row = element(row, x.row, is_bf16))
    for (int64_t j = 0; j < a->d_head; j += is_bf16 ? 32 : 16) __builtin_prefetch(element(row, j, is_bf16), 0, 2);
}

INLINE void read_head(const Head *h, Heads x, int64_t batch, int64_t head, int64_t n_rows, int64_t d, int is_bf16,
                      float *to) {
  const void *row = first_row(x, batch, head, is_bf16);
  for (int64_t i = 0; i < n_rows; i++, to += h->d_stride, row = element(row, x.row, is_bf16))
    for (int64_t j = 0; j < d; j += LANES) store(to + j, load_element(row, j, is_bf16));
}

/* The second factor of a product, whose first factor is P or dS: floats, or pairs of bf16 of two positions,
   [positions / 2, d_head, 2], with zeros after an odd last position. */
INLINE void read_factor(const Head *h, Heads x, int64_t batch, int64_t head, int64_t n_rows, int64_t d, int is_bf16,
                        float *to) {
  if (!TAKES_PAIRS(is_bf16)) {
    read_head(h, x, batch, head, n_rows, d, is_bf16, to);
    return;
  }
  for (int64_t i = 0; i < n_rows; i += 2, to += h->d_stride) {
    const void *row = element(first_row(x, batch, head, 1), i * x.row, 1);
    for (int64_t j = 0; j < d; j += LANES) {
      I even = (I)load_element(row, j, 1), odd = i + 1 < n_rows ? (I)load_element(row, x.row + j, 1) : (I){0};
      store(to + j, (V)((even >> 16 & 0xffff) | odd));
    }
  }
}

/* The transpose of a head, with the last row repeated up to a multiple of LANES rows. Pairs of bf16 are transposed as
   words, and divided into two rows of floats if there is no product of pairs. */
INLINE void read_transposed(const Head *h, Heads x, int64_t batch, int64_t head, int64_t n_rows, int64_t d, int is_bf16,
                            float *to) {
  int64_t n_words = is_bf16 ? d / 2 : d;
  const void *rows = first_row(x, batch, head, is_bf16);
  for (int64_t i = 0; i < n_rows; i += LANES)
    for (int64_t w = 0; w < n_words; w += LANES) {
      V block[LANES];
      UNROLL for (int r = 0; r < LANES; r++) {
        int64_t row = i + r < n_rows ? i + r : n_rows - 1;
        const void *at = element(rows, row * x.row + (is_bf16 ? 2 * w : w), is_bf16);
        block[r] = all(0);
        if (LANES <= 8 || n_words - w >= LANES) block[r] = load(at);
        else memcpy(&block[r], at, 32); /* n_words is a multiple of 8 */
      }
      transpose_block(block);
      UNROLL for (int c = 0; c < LANES; c++)
        if (!is_bf16 || HAS_PAIRS) store(to + (w + c) * h->n_stride + i, block[c]);
        else {
          store(to + 2 * (w + c) * h->n_stride + i, (V)((I)block[c] << 16));
          store(to + (2 * (w + c) + 1) * h->n_stride + i, (V)((I)block[c] & -0x10000));
        }
    }
}

/* scale X Y^T -> to: X, the keys or values, is read to `copy` unless the product takes the pairs in memory; Y, the
   queries or gradients of the output, is given transposed. */
INLINE void scores(const Head *h, const AttentionArguments *a, Heads x, int64_t batch, int64_t head, float *copy,
                   const float *transposed, const float *scale, int is_bf16, float *to) {
  Matrices m = {copy, h->d_stride, 1, transposed, h->n_stride, to, h->n_stride, scale, 0};
#if HAS_PAIRS
  if (is_bf16) {
    m.a = first_row(x, batch, head, 1), m.a_row = x.row, m.a_column = 2;
    product_of_pairs(&m, a->n_keys, a->n_queries, a->d_head / 2);
    return;
  }
#endif
  read_head(h, x, batch, head, a->n_keys, a->d_head, is_bf16, copy);
  product_to_float(&m, a->n_keys, a->n_queries, a->d_head);
}

/* P X or P^T X, multiplied by a scale for each row -> to. Pairs of P are of two keys for P X, of two queries for P^T X. */
INLINE void product_of_head(const Head *h, const float *p, int is_transposed, const float *x, int64_t n_rows, int64_t n_k,
                            int64_t d, const float *scale, int64_t scale_step, Heads to, int64_t batch, int64_t head,
                            int is_bf16) {
  int64_t size = TAKES_PAIRS(is_bf16) ? 2 : 1, row = size * h->n_stride;
  Matrices m = {p, is_transposed ? row : size, is_transposed ? size : row, x, h->d_stride,
                first_row(to, batch, head, is_bf16), to.row, scale, scale_step};
#if HAS_PAIRS
  if (is_bf16) {
    product_of_pairs_to_bf16(&m, n_rows, d, (n_k + 1) / 2);
    return;
  }
#endif
  if (is_bf16) product_to_bf16(&m, n_rows, d, n_k);
  else product_to_float(&m, n_rows, d, n_k);
}

/* Score of key i and the queries from j, or MASKED */
INLINE V masked_score(const Head *h, int64_t i, int64_t j, int64_t n_before, int is_causal) {
  V x = load(h->p + i * h->n_stride + j) + all(h->mask[i]);
  return is_causal ? first_lanes(i - n_before - j, all(MASKED), x) : x;
}

/* e^(score - top), 0 for masked keys */
INLINE V exponential_of_score(const Head *h, int64_t i, int64_t j, int64_t n_before, int is_causal, V top) {
  V x = masked_score(h, i, j, n_before, is_causal);
  return (V)choose(x > all(MASKED / 2), (I)exponential_below_87(x - top), (I)all(0));
}

/* Scores of the queries from j -> e^(score - largest), and the factors that make them probabilities. In the backward
   pass, scores -> probabilities, and dP -> dS.

   If products take pairs: pairs of two keys replace the scores, row i / 2 those of rows i and i + 1, which have been read.
   In the backward pass, rows of bf16 replace P and dP in place: those of these queries are where floats of these or of
   earlier queries were. */
INLINE void softmax_of_queries(const Head *h, const AttentionArguments *a, int64_t j, int is_causal, int is_backward,
                               int is_bf16) {
  int64_t n_k = a->n_keys, n_before = n_k - a->n_queries, stride = h->n_stride;
  float *p = h->p + j, *d_p = h->d_p + j;
  V top = all(MASKED), total = all(0), product = all(0);
  for (int64_t i = 0; i < n_k; i++) top = larger(top, masked_score(h, i, j, n_before, is_causal));
  if (TAKES_PAIRS(is_bf16) && !is_backward) {
    for (int64_t i = 0; i < n_k; i += 2) {
      V even = exponential_of_score(h, i, j, n_before, is_causal, top), odd = all(0);
      if (i + 1 < n_k) odd = exponential_of_score(h, i + 1, j, n_before, is_causal, top);
      store(p + i / 2 * stride, pairs_of(even, odd));
      total = total + even + odd;
    }
    store(h->factor + j, 1.f / total);
    return;
  }
  for (int64_t i = 0; i < n_k; i++) {
    V e = exponential_of_score(h, i, j, n_before, is_causal, top);
    store(p + i * stride, e);
    total += e;
    if (is_backward) product += e * load(d_p + i * stride);
  }
  V factor = 1.f / total;
  if (!is_backward) {
    store(h->factor + j, factor);
    return;
  }
  V mean = product * factor;
  for (int64_t i = 0; i < n_k; i += 2) {
    V d_s[2] = {all(0), all(0)};
    for (int odd = 0; odd < 2 && i + odd < n_k; odd++) {
      int64_t row = (i + odd) * stride;
      V x = load(p + row) * factor;
      d_s[odd] = x * (load(d_p + row) - mean);
      store_element(h->p + row, j, x, TAKES_PAIRS(is_bf16));
      store_element(h->d_p + row, j, d_s[odd], TAKES_PAIRS(is_bf16));
    }
    if (TAKES_PAIRS(is_bf16)) store(h->d_s_pairs + i / 2 * stride + j, pairs_of(d_s[0], d_s[1]));
  }
}

INLINE void softmax_of_head(const Head *h, const AttentionArguments *a, int is_backward, int is_bf16) {
  for (int64_t j = 0; j < a->n_queries; j += LANES)
    if (a->is_causal) softmax_of_queries(h, a, j, 1, is_backward, is_bf16);
    else softmax_of_queries(h, a, j, 0, is_backward, is_bf16);
}

/* Head number i of all; `next` is the one that follows. */
INLINE void attention_of_head(const Head *h, const AttentionArguments *a, int64_t i, int64_t next, int is_bf16) {
  int64_t batch = i / a->n_heads, head = i % a->n_heads, d = a->d_head, n_q = a->n_queries, n_k = a->n_keys;
  read_transposed(h, a->q, batch, head, n_q, d, is_bf16, h->q_transposed);
  prefetch_head(a, a->q, next, n_q, is_bf16);
  scores(h, a, a->k, batch, head, h->k, h->q_transposed, &a->scale, is_bf16, h->p);
  prefetch_head(a, a->k, next, n_k, is_bf16);
  prefetch_head(a, a->out, next, n_q, is_bf16);
  softmax_of_head(h, a, 0, is_bf16);
  read_factor(h, a->v, batch, head, n_k, d, is_bf16, h->v);
  prefetch_head(a, a->v, next, n_k, is_bf16);
  product_of_head(h, h->p, 0, h->v, n_q, n_k, d, h->factor, 1, a->out, batch, head, is_bf16);
}

INLINE void gradients_of_head(const Head *h, const AttentionArguments *a, int64_t i, int64_t next, int is_bf16) {
  static const float ONE = 1;
  int64_t batch = i / a->n_heads, head = i % a->n_heads, d = a->d_head, n_q = a->n_queries, n_k = a->n_keys;
  read_transposed(h, a->q, batch, head, n_q, d, is_bf16, h->q_transposed);
  prefetch_head(a, a->q, next, n_q, is_bf16);
  scores(h, a, a->k, batch, head, h->k, h->q_transposed, &a->scale, is_bf16, h->p);
  read_transposed(h, a->out, batch, head, n_q, d, is_bf16, h->d_out_transposed);
  prefetch_head(a, a->k, next, n_k, is_bf16);
  scores(h, a, a->v, batch, head, h->v, h->d_out_transposed, &ONE, is_bf16, h->d_p);
  prefetch_head(a, a->out, next, n_q, is_bf16);
  prefetch_head(a, a->d_v, next, n_k, is_bf16);
  softmax_of_head(h, a, 1, is_bf16);
  read_factor(h, a->out, batch, head, n_q, d, is_bf16, h->d_out);
  prefetch_head(a, a->v, next, n_k, is_bf16);
  product_of_head(h, h->p, 1, h->d_out, n_k, n_q, d, &ONE, 0, a->d_v, batch, head, is_bf16);
  read_factor(h, a->q, batch, head, n_q, d, is_bf16, h->q);
  prefetch_head(a, a->d_k, next, n_k, is_bf16);
  product_of_head(h, h->d_p, 1, h->q, n_k, n_q, d, &a->scale, 0, a->d_k, batch, head, is_bf16);
  if (TAKES_PAIRS(is_bf16)) read_factor(h, a->k, batch, head, n_k, d, is_bf16, h->k);
  prefetch_head(a, a->d_q, next, n_q, is_bf16);
  product_of_head(h, TAKES_PAIRS(is_bf16) ? h->d_s_pairs : h->d_p, 0, h->k, n_q, n_k, d, &a->scale, 0, a->d_q, batch, head,
                  is_bf16);
}

INLINE void heads_of_part(const AttentionArguments *a, int64_t begin, int64_t end, int is_backward, int is_bf16) {
  Head h = new_head(a);
  for (int64_t i = begin; i < end; i++) {
    int64_t batch = i / a->n_heads, head = i % a->n_heads, next = i + 1 < end ? i + 1 : i;
    if (i == begin || head == 0)
      for (int64_t j = 0; j < a->n_keys; j++)
        h.mask[j] = !a->mask || a->mask[batch * a->mask_stride + j] ? 0 : MASKED;
    if (is_backward) gradients_of_head(&h, a, i, next, is_bf16);
    else attention_of_head(&h, a, i, next, is_bf16);
  }
  free(h.memory);
}
#endif
