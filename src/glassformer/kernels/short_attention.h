/* Attention of training for short sequences, one head of one sequence at a time, forward and backward:

  S = scale Q K^T, P = softmax(S), O = P V
  dV = P^T dO, dP = dO V^T, dS = P (dP - rowsum(P dP)), dQ = scale dS K, dK = scale dS^T Q

The backward pass computes P again, so that only the inputs are kept. All matrices of a head are in the second-level
cache. The queries are at the last key positions. */
#ifndef SHORT_ATTENTION_H
#define SHORT_ATTENTION_H
#include <stdlib.h>
#include "element.h"
#include "small_product.h"
#include "training.h"

#define MASKED -1e30f

/* Matrices of one head. Rows are padded with zeros to a multiple of 32 features or keys; 16 more floats between rows
   keep columns from sharing the same lines of the first-level cache. */
typedef struct {
  int64_t d_stride, n_stride;            /* floats from row to row of [positions, d_head] and of [.., n_keys] */
  float *q, *k, *v, *out;                /* [positions, d_head] */
  float *k_transposed, *v_transposed;    /* [d_head, n_keys] */
  float *p, *d_p;                        /* [n_queries, n_keys] */
  float *mask;                           /* [n_keys] */
} Head;

INLINE int64_t rounded_up(int64_t n) { return (n + 31) & ~31L; }

static Head new_head(const AttentionArguments *a) {
  int64_t longest = a->n_queries > a->n_keys ? a->n_queries : a->n_keys;
  Head h = {.d_stride = rounded_up(a->d_head) + 16, .n_stride = rounded_up(a->n_keys) + 16};
  int64_t by_position = longest * h.d_stride, by_feature = rounded_up(a->d_head) * h.n_stride;
  int64_t by_query = a->n_queries * h.n_stride;
  h.q = aligned_alloc(64, (size_t)(4 * by_position + 2 * by_feature + 2 * by_query + h.n_stride + 16) / 16 * 64);
  h.k = h.q + by_position, h.v = h.k + by_position, h.out = h.v + by_position;
  h.k_transposed = h.out + by_position, h.v_transposed = h.k_transposed + by_feature;
  h.p = h.v_transposed + by_feature, h.d_p = h.p + by_query, h.mask = h.d_p + by_query;
  return h;
}

INLINE void read_head(const Head *h, Heads x, int64_t batch, int64_t head, int64_t n_rows, int64_t d, float scale,
                      int is_bf16, float *to) {
  for (int64_t i = 0; i < n_rows; i++, to += h->d_stride) {
    void *row = element(x.data, batch * x.batch + head * x.head + i * x.row, is_bf16);
    for (int64_t j = 0; j < d; j += LANES) store(to + j, load_element(row, j, is_bf16) * scale);
    for (int64_t j = d; j < rounded_up(d); j += LANES) store(to + j, all(0));
  }
}

INLINE void write_head(const Head *h, const float *from, Heads x, int64_t batch, int64_t head, int64_t n_rows, int64_t d,
                       float scale, int is_bf16) {
  for (int64_t i = 0; i < n_rows; i++, from += h->d_stride) {
    void *row = element(x.data, batch * x.batch + head * x.head + i * x.row, is_bf16);
    for (int64_t j = 0; j < d; j += LANES) store_element(row, j, load(from + j) * scale, is_bf16);
  }
}

static void transpose(const Head *h, const float *x, int64_t n, int64_t d, float *to) {
  for (int64_t j = 0; j < d; j++, to += h->n_stride) {
    for (int64_t i = 0; i < n; i++) to[i] = x[i * h->d_stride + j];
    for (int64_t i = n; i < rounded_up(n); i++) to[i] = 0;
  }
}

/* Rows of scores -> rows of probabilities; 0 for masked keys and in the padding. */
static void softmax_rows(const Head *h, const AttentionArguments *a) {
  int64_t width = rounded_up(a->n_keys), n_before = a->n_keys - a->n_queries;
  for (int64_t i = 0; i < a->n_queries; i++) {
    float *s = h->p + i * h->n_stride;
    if (a->is_causal)
      for (int64_t j = i + n_before + 1; j < a->n_keys; j++) s[j] = MASKED;
    V most[PARTS], total[PARTS];
    for (int part = 0; part < PARTS; part++) most[part] = all(MASKED), total[part] = all(0);
    for (int64_t j = 0; j < width; j += 16)
      for (int part = 0; part < PARTS; part++) {
        float *at = s + j + part * LANES;
        store(at, load(at) + load(h->mask + j + part * LANES));
        most[part] = larger(most[part], load(at));
      }
    V top = all(largest(most));
    for (int64_t j = 0; j < width; j += 16)
      for (int part = 0; part < PARTS; part++) {
        float *at = s + j + part * LANES;
        V x = load(at), e = exponential(x - top);
        e = (V)choose(x > all(MASKED / 2), (I)e, (I)all(0));
        store(at, e);
        total[part] += e;
      }
    V factor = all(1.f / sum(total));
    for (int64_t j = 0; j < width; j += LANES) store(s + j, load(s + j) * factor);
  }
}

INLINE void probabilities(const Head *h, const AttentionArguments *a, int64_t batch, int64_t head, int is_bf16) {
  int64_t d = a->d_head, width = rounded_up(a->n_keys);
  read_head(h, a->q, batch, head, a->n_queries, d, a->scale, is_bf16, h->q);
  read_head(h, a->k, batch, head, a->n_keys, d, 1, is_bf16, h->k);
  read_head(h, a->v, batch, head, a->n_keys, d, 1, is_bf16, h->v);
  transpose(h, h->k, a->n_keys, d, h->k_transposed);
  for (int64_t j = 0; j < width; j++)
    h->mask[j] = j < a->n_keys && (!a->mask || a->mask[batch * a->mask_stride + j]) ? 0 : MASKED;
  small_product((Matrices){h->q, h->d_stride, 1, h->k_transposed, h->n_stride, h->p, h->n_stride}, a->n_queries, width, d);
  softmax_rows(h, a);
}

INLINE void attention_of_head(const Head *h, const AttentionArguments *a, int64_t batch, int64_t head, int is_bf16) {
  probabilities(h, a, batch, head, is_bf16);
  small_product((Matrices){h->p, h->n_stride, 1, h->v, h->d_stride, h->out, h->d_stride}, a->n_queries,
                rounded_up(a->d_head), a->n_keys);
  write_head(h, h->out, a->out, batch, head, a->n_queries, a->d_head, 1, is_bf16);
}

INLINE void gradients_of_head(const Head *h, const AttentionArguments *a, int64_t batch, int64_t head, int is_bf16) {
  int64_t d = a->d_head, n_q = a->n_queries, n_k = a->n_keys, width = rounded_up(n_k), d_width = rounded_up(d);
  int64_t ds = h->d_stride, ns = h->n_stride;
  probabilities(h, a, batch, head, is_bf16);
  read_head(h, a->out, batch, head, n_q, d, 1, is_bf16, h->out);
  transpose(h, h->v, n_k, d, h->v_transposed);
  small_product((Matrices){h->out, ds, 1, h->v_transposed, ns, h->d_p, ns}, n_q, width, d);
  small_product((Matrices){h->p, 1, ns, h->out, ds, h->v, ds}, n_k, d_width, n_q);
  write_head(h, h->v, a->d_v, batch, head, n_k, d, 1, is_bf16);
  for (int64_t i = 0; i < n_q; i++) { /* dP -> dS */
    float *p = h->p + i * ns, *d_p = h->d_p + i * ns;
    V total[PARTS];
    for (int part = 0; part < PARTS; part++) total[part] = all(0);
    for (int64_t j = 0; j < width; j += 16)
      for (int part = 0; part < PARTS; part++) total[part] += load(p + j + part * LANES) * load(d_p + j + part * LANES);
    V mean = all(sum(total));
    for (int64_t j = 0; j < width; j += LANES) store(d_p + j, load(p + j) * (load(d_p + j) - mean));
  }
  /* h->q has been multiplied by the scale already. */
  small_product((Matrices){h->d_p, 1, ns, h->q, ds, h->v, ds}, n_k, d_width, n_q);
  write_head(h, h->v, a->d_k, batch, head, n_k, d, 1, is_bf16);
  small_product((Matrices){h->d_p, ns, 1, h->k, ds, h->out, ds}, n_q, d_width, n_k);
  write_head(h, h->out, a->d_q, batch, head, n_q, d, a->scale, is_bf16);
}

INLINE void heads_of_part(const AttentionArguments *a, int64_t begin, int64_t end, int is_backward, int is_bf16) {
  Head h = new_head(a);
  for (int64_t i = begin; i < end; i++) {
    int64_t batch = i / a->n_heads, head = i % a->n_heads;
    if (is_backward) gradients_of_head(&h, a, batch, head, is_bf16);
    else attention_of_head(&h, a, batch, head, is_bf16);
  }
  free(h.q);
}
#endif
