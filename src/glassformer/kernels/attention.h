/* Attention of one query over the keys and values in a list of cache slots: softmax(scale * q K^T + bias) V.

q, out: [heads, d_head]. K, V: half precision or floats, [slots][heads / group * d_head]; consecutive heads share a key
head in groups. bias[head][reach + distance]: added to the score of the key at list index i, distance = i - position of the
query, limited to [-reach, reach]; null: none. Nothing is copied when hypotheses are reordered: only the list changes. */
#ifndef ATTENTION_H
#define ATTENTION_H
#include "program.h"
#include "vector.h"

#define KEYS 4    /* keys processed together */
#define CHUNK (LANES == 4 ? 32 : 64) /* features of the values processed together, in 8 registers or fewer */
#define LOWEST -1e30f

typedef struct {
  const void *keys, *values;
  int64_t stride;
  const int32_t *list;
  int64_t n, d_head, group, position, reach;
  const float *bias;
  float scale;
} Attention;

INLINE V load_cached(const void *cache, int64_t at, const int is_half) {
  return is_half ? load_half((const uint16_t *)cache + at) : load((const float *)cache + at);
}

/* scores[head - first][i] of heads [first, last); queries: padded to a multiple of 16 features per head with zeros */
INLINE void attention_scores(const Attention *a, int64_t first, int64_t last, const int64_t padded, const int is_half,
                             const float *queries, float *scores, int64_t width) {
  for (int64_t t = 0; t < a->n; t += KEYS) {
    int64_t key[KEYS];
    for (int i = 0; i < KEYS; i++) key[i] = a->list[t + i < a->n ? t + i : a->n - 1] * a->stride;
    for (int64_t head = first; head < last; head++) {
      const float *q = queries + (head - first) * padded;
      int64_t at = (a->group == 1 ? head : head / a->group) * a->d_head;
      V s[KEYS][PARTS];
      UNROLL for (int j = 0; j < PARTS; j++) { /* one after the other: registers hold the sums of one part */
        UNROLL for (int i = 0; i < KEYS; i++) s[i][j] = all(0);
        for (int64_t f = j * LANES; f < padded; f += 16) {
          V x = load(q + f);
          UNROLL for (int i = 0; i < KEYS; i++) s[i][j] += x * load_cached(a->keys, key[i] + at + f, is_half);
        }
      }
      V4 four = transpose_sum(s);
      memcpy(scores + (head - first) * width + t, &four, sizeof four);
    }
  }
}

/* scores[n] -> e^(score - largest score); returns 1 / their sum. `scores` has memory for a multiple of 16. */
INLINE float softmax_numerators(float *scores, int64_t n) {
  V m[PARTS], total[PARTS];
  for (int j = 0; j < PARTS; j++) m[j] = all(LOWEST), total[j] = all(0);
  for (int64_t i = 0; i < n; i += 16)
    for (int j = 0; j < PARTS; j++) {
      int64_t at = i + j * LANES;
      m[j] = larger(m[j], first_lanes(n - at, load(scores + at), all(LOWEST)));
    }
  V top = all(largest(m));
  for (int64_t i = 0; i < n; i += 16)
    for (int j = 0; j < PARTS; j++) {
      int64_t at = i + j * LANES;
      V e = first_lanes(n - at, exponential_below_87(load(scores + at) - top), all(0));
      store(scores + at, e);
      total[j] += e;
    }
  return 1.f / sum(total);
}

INLINE void attend(const Attention *a, int64_t first, int64_t last, const int64_t padded, const int is_half,
                   const float *q, float *out, float *scratch) {
  int64_t width = (a->n + 15) & ~15L;
  float *queries = scratch + (last - first) * width;
  if (padded == a->d_head) {
    for (int64_t i = 0; i < (last - first) * padded; i += LANES) store(queries + i, load(q + first * padded + i) * a->scale);
  } else {
    memset(queries, 0, (size_t)((last - first) * padded) * sizeof(float));
    for (int64_t head = first; head < last; head++)
      for (int64_t i = 0; i < a->d_head; i++) queries[(head - first) * padded + i] = q[head * a->d_head + i] * a->scale;
  }
  attention_scores(a, first, last, padded, is_half, queries, scratch, width);
  for (int64_t head = first; head < last; head++) {
    float *scores = scratch + (head - first) * width;
    if (a->bias)
      for (int64_t i = 0; i < a->n; i++) {
        int64_t distance = i - a->position, d = distance < -a->reach ? -a->reach : distance > a->reach ? a->reach : distance;
        scores[i] += a->bias[head * (2 * a->reach + 1) + a->reach + d];
      }
    float factor = softmax_numerators(scores, a->n);
    int64_t values = head / a->group * a->d_head;
    for (int64_t f = 0; f < padded; f += CHUNK) {
      V o[CHUNK / LANES];
      int used = (int)(padded - f < CHUNK ? padded - f : CHUNK) / LANES;
      UNROLL for (int j = 0; j < CHUNK / LANES; j++) o[j] = all(0);
      for (int64_t t = 0; t < a->n; t++) {
        int64_t v = values + a->list[t] * a->stride + f;
        V weight = all(scores[t]);
        UNROLL for (int j = 0; j < CHUNK / LANES; j++) if (j < used) o[j] += weight * load_cached(a->values, v + j * LANES, is_half);
      }
      float last_features[CHUNK], *to = out + head * a->d_head + f;
      int64_t left = a->d_head - f;
      UNROLL for (int j = 0; j < CHUNK / LANES; j++) store((left < CHUNK ? last_features : to) + j * LANES, o[j] * factor);
      if (left < CHUNK) memcpy(to, last_features, (size_t)left * sizeof(float));
    }
  }
}

static void attention(Thread t, Phase *phase, const Op *op, const Program *p, const Rows *r) {
  int64_t n_heads = op->n / op->m, which = op->option, padded = (op->m + 15) & ~15L;
  const int32_t *positions = r->index[1];
  float *scratch = p->scratch + t.id * p->scratch_size;
  Attention a = {
    .keys = p->caches[2 * op->cache], .values = p->caches[2 * op->cache + 1], .stride = p->cache_strides[op->cache],
    .d_head = op->m, .group = op->group, .reach = op->reach, .bias = op->tables[0], .scale = op->number,
  };
  int64_t size = unit_size(r->n_rows * n_heads, t.n, n_heads), groups = divide_up(n_heads, size); /* heads of one row */
  FOR_UNITS(unit, phase, r->n_rows * groups) {
    int64_t row = unit / groups, first = unit % groups * size, last = first + size < n_heads ? first + size : n_heads;
    a.list = r->list[which] + r->begin[which][row];
    a.n = r->length[which][row];
    a.position = positions[row];
    const float *q = (const float *)p->buffers[op->a] + row * p->strides[op->a] + op->a_at;
    float *out = (float *)p->buffers[op->out] + row * p->strides[op->out] + op->out_at;
    if (op->m == 64 && p->has_halves) attend(&a, first, last, 64, 1, q, out, scratch); /* constants: loops are unrolled */
    else if (op->m == 64) attend(&a, first, last, 64, 0, q, out, scratch);
    else attend(&a, first, last, padded, (int)p->has_halves, q, out, scratch);
  }
  wait_for(phase, r->n_rows * groups);
}
#endif
