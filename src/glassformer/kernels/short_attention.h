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

#define MAX_SHORT 128      /* largest number of queries and of keys */
#define MAX_D_HEAD 128
#define MASKED -1e30f

/* Matrices of one head; rows of d_head or n_keys are padded with zeros to MAX_... columns. */
typedef struct {
  float q[MAX_SHORT][MAX_D_HEAD], k[MAX_SHORT][MAX_D_HEAD], v[MAX_SHORT][MAX_D_HEAD], out[MAX_SHORT][MAX_D_HEAD];
  float k_transposed[MAX_D_HEAD][MAX_SHORT], v_transposed[MAX_D_HEAD][MAX_SHORT];
  float p[MAX_SHORT][MAX_SHORT], d_p[MAX_SHORT][MAX_SHORT];
  float mask[MAX_SHORT];
} Head;

INLINE int64_t rounded_up(int64_t n) { return (n + 31) & ~31L; }

INLINE void read_head(Heads x, int64_t batch, int64_t head, int64_t n_rows, int64_t d, float scale, int is_bf16,
                      float (*to)[MAX_D_HEAD]) {
  for (int64_t i = 0; i < n_rows; i++) {
    void *row = element(x.data, batch * x.batch + head * x.head + i * x.row, is_bf16);
    for (int64_t j = 0; j < d; j += LANES) store(to[i] + j, load_element(row, j, is_bf16) * scale);
    for (int64_t j = d; j < rounded_up(d); j += LANES) store(to[i] + j, all(0));
  }
}

INLINE void write_head(float (*from)[MAX_D_HEAD], Heads x, int64_t batch, int64_t head, int64_t n_rows, int64_t d,
                       float scale, int is_bf16) {
  for (int64_t i = 0; i < n_rows; i++) {
    void *row = element(x.data, batch * x.batch + head * x.head + i * x.row, is_bf16);
    for (int64_t j = 0; j < d; j += LANES) store_element(row, j, load(from[i] + j) * scale, is_bf16);
  }
}

static void transpose(float (*x)[MAX_D_HEAD], int64_t n, int64_t d, float (*to)[MAX_SHORT]) {
  for (int64_t j = 0; j < d; j++) {
    for (int64_t i = 0; i < n; i++) to[j][i] = x[i][j];
    for (int64_t i = n; i < rounded_up(n); i++) to[j][i] = 0;
  }
}

/* Rows of scores -> rows of probabilities; 0 for masked keys and in the padding. */
static void softmax_rows(Head *h, const AttentionArguments *a) {
  int64_t width = rounded_up(a->n_keys), n_before = a->n_keys - a->n_queries;
  for (int64_t i = 0; i < a->n_queries; i++) {
    float *s = h->p[i];
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

INLINE void probabilities(Head *h, const AttentionArguments *a, int64_t batch, int64_t head, int is_bf16) {
  int64_t d = a->d_head, width = rounded_up(a->n_keys);
  read_head(a->q, batch, head, a->n_queries, d, a->scale, is_bf16, h->q);
  read_head(a->k, batch, head, a->n_keys, d, 1, is_bf16, h->k);
  read_head(a->v, batch, head, a->n_keys, d, 1, is_bf16, h->v);
  transpose(h->k, a->n_keys, d, h->k_transposed);
  for (int64_t j = 0; j < width; j++)
    h->mask[j] = j < a->n_keys && (!a->mask || a->mask[batch * a->mask_stride + j]) ? 0 : MASKED;
  small_product((Matrices){h->q[0], MAX_D_HEAD, 1, h->k_transposed[0], MAX_SHORT, h->p[0], MAX_SHORT}, a->n_queries, width, d);
  softmax_rows(h, a);
}

INLINE void attention_of_head(Head *h, const AttentionArguments *a, int64_t batch, int64_t head, int is_bf16) {
  probabilities(h, a, batch, head, is_bf16);
  small_product((Matrices){h->p[0], MAX_SHORT, 1, h->v[0], MAX_D_HEAD, h->out[0], MAX_D_HEAD}, a->n_queries,
                rounded_up(a->d_head), a->n_keys);
  write_head(h->out, a->out, batch, head, a->n_queries, a->d_head, 1, is_bf16);
}

INLINE void gradients_of_head(Head *h, const AttentionArguments *a, int64_t batch, int64_t head, int is_bf16) {
  int64_t d = a->d_head, n_q = a->n_queries, n_k = a->n_keys, width = rounded_up(n_k), d_width = rounded_up(d);
  probabilities(h, a, batch, head, is_bf16);
  read_head(a->out, batch, head, n_q, d, 1, is_bf16, h->out);
  transpose(h->v, n_k, d, h->v_transposed);
  small_product((Matrices){h->out[0], MAX_D_HEAD, 1, h->v_transposed[0], MAX_SHORT, h->d_p[0], MAX_SHORT}, n_q, width, d);
  small_product((Matrices){h->p[0], 1, MAX_SHORT, h->out[0], MAX_D_HEAD, h->v[0], MAX_D_HEAD}, n_k, d_width, n_q);
  write_head(h->v, a->d_v, batch, head, n_k, d, 1, is_bf16);
  for (int64_t i = 0; i < n_q; i++) { /* dP -> dS */
    V total[PARTS];
    for (int part = 0; part < PARTS; part++) total[part] = all(0);
    for (int64_t j = 0; j < width; j += 16)
      for (int part = 0; part < PARTS; part++) {
        int64_t at = j + part * LANES;
        total[part] += load(h->p[i] + at) * load(h->d_p[i] + at);
      }
    V mean = all(sum(total));
    for (int64_t j = 0; j < width; j += LANES)
      store(h->d_p[i] + j, load(h->p[i] + j) * (load(h->d_p[i] + j) - mean));
  }
  /* h->q has been multiplied by the scale already. */
  small_product((Matrices){h->d_p[0], 1, MAX_SHORT, h->q[0], MAX_D_HEAD, h->v[0], MAX_D_HEAD}, n_k, d_width, n_q);
  write_head(h->v, a->d_k, batch, head, n_k, d, 1, is_bf16);
  small_product((Matrices){h->d_p[0], MAX_SHORT, 1, h->k[0], MAX_D_HEAD, h->out[0], MAX_D_HEAD}, n_q, d_width, n_k);
  write_head(h->out, a->d_q, batch, head, n_q, d, a->scale, is_bf16);
}

INLINE void heads_of_part(const AttentionArguments *a, int64_t begin, int64_t end, int is_backward, int is_bf16) {
  Head *h = aligned_alloc(64, (sizeof(Head) + 63) / 64 * 64);
  for (int64_t i = begin; i < end; i++) {
    int64_t batch = i / a->n_heads, head = i % a->n_heads;
    if (is_backward) gradients_of_head(h, a, batch, head, is_bf16);
    else attention_of_head(h, a, batch, head, is_bf16);
  }
  free(h);
}
#endif
