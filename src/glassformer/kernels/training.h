/* Kernels of training: functions of whole tensors, whose rows or heads are divided among threads.

Tensors are bf16 or float (`is_bf16`), computation is in float. Results do not depend on the thread that computes a part,
only on the number of parts. */
#ifndef TRAINING_H
#define TRAINING_H
#include <stdint.h>

enum TrainingKernel { ATTENTION, ATTENTION_BACKWARD, RESIDUAL, RESIDUAL_BACKWARD, SOFTMAX, PRODUCT, ROTATION };

/* A tensor [batch, heads, length, d_head] whose features are contiguous. Strides in elements. */
typedef struct { void *data; int64_t batch, head, row; } Heads;

typedef struct {
  Heads q, k, v, out;            /* backward: out is the gradient of the output */
  Heads d_q, d_k, d_v;           /* backward: gradients */
  const uint8_t *mask;           /* [batch, n_keys], 1 at the keys that may be attended to; or null */
  int64_t mask_stride;           /* from one batch entry to the next; 0: the same mask for all */
  int64_t n_batch, n_heads, n_queries, n_keys, d_head;
  int32_t is_causal, is_bf16;
  float scale;
} AttentionArguments;

typedef struct {
  const void *x, *z;             /* [rows, n]: input of the sub-layer, and its output, to which dropout is applied */
  const float *gain, *bias;      /* [n], of LayerNorm; null: no normalization */
  void *sum;                     /* [rows, n]: x + dropout(z) */
  void *out;                     /* [rows, n]: normalized sum */
  float *statistics;             /* [rows, 2]: mean and 1 / standard deviation of the sum */
  const void *d_out;             /* backward: gradient of the result */
  void *d_x, *d_z;               /* backward: gradients */
  float *d_gain, *d_bias;        /* backward: [parts, n], sums over the rows of each part */
  int64_t n_rows, n;             /* n: a multiple of 16 */
  uint32_t seed[2], threshold;   /* an element is dropped if its 32 random bits are below `threshold` */
  float keep_scale, eps;         /* 1 / (1 - p); epsilon of LayerNorm */
  int32_t is_bf16;
} ResidualArguments;

typedef struct {
  void *logits;                  /* [rows, n]; overwritten by the probabilities */
  float *log_sum_exp;            /* [rows] */
  int64_t n_rows, n;
  int32_t is_bf16;
} SoftmaxArguments;

typedef struct {
  Heads x, out;
  const float *cosines, *sines;  /* [batch, length, half], of the angles of the positions */
  int64_t angles_stride;         /* from one batch entry to the next; 0: the same angles for all */
  int64_t n_batch, n_heads, length, half; /* half: d_head / 2, a multiple of 16 */
  float direction;               /* 1, or -1: rotates back */
  int32_t is_bf16;
} RotationArguments;

/* C = A B, A [m, k], B [k, n]. Strides: elements from a row to the next. B may be the rows of several matrices together. */
enum { MAX_PIECES = 3 };
typedef struct {
  const void *a, *mask;          /* bf16 or float; where the mask, of the same type, is not positive, A is taken as 0; null: no mask */
  const void *b[MAX_PIECES];     /* as A, or float, which is rounded to bf16 */
  const float *bias[MAX_PIECES]; /* of B's columns, if B is transposed; added to C; null: no bias */
  void *c;                       /* float; for a bf16 A also bf16 */
  float *sums;                   /* [m]: sums of the rows of A, if A is transposed; null: not needed */
  int64_t a_stride, mask_stride, b_stride, c_stride;
  int64_t b_rows[MAX_PIECES];    /* rows of each matrix as it is stored */
  int64_t m, n, k;
  int32_t a_is_transposed;       /* A and its mask are stored as [k, m]; C must be float */
  int32_t b_is_transposed;       /* B is stored as [n, k] */
  int32_t a_is_bf16, b_is_bf16, c_is_bf16;
  int32_t relu;                  /* C = max(C, 0) */
  int32_t adds;                  /* float only: the product is added to C; no bias */
} ProductArguments;
#endif
