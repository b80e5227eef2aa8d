/* Runs a part of a kernel of training. Compiled once for each instruction set, with -DSUFFIX=name. */
#include "residual.h"
#include "rotation.h"
#include "short_attention.h"
#include "softmax.h"
#include "training_product.h"

#define CONCATENATE(a, b) a##b
#define NAME(a, b) CONCATENATE(a, b)
#define BY_TYPE(arguments, call_bf16, call_float) if ((arguments)->is_bf16) call_bf16; else call_float

const int NAME(product_types_, SUFFIX) = PRODUCT_TYPES;

/* Number of heads or rows, which parts divide. */
static int64_t n_units(int kernel, const void *arguments) {
  const AttentionArguments *a = arguments;
  const ResidualArguments *r = arguments;
  const RotationArguments *p = arguments;
  const SoftmaxArguments *s = arguments;
  switch (kernel) {
    case ATTENTION: case ATTENTION_BACKWARD: return a->n_batch * a->n_heads;
    case RESIDUAL: case RESIDUAL_BACKWARD: return r->n_rows;
    case ROTATION: return p->n_batch * p->length;
    default: return s->n_rows;
  }
}

void NAME(train_, SUFFIX)(int kernel, const void *arguments, int64_t part, int64_t n_parts) {
  if (kernel == PRODUCT) {
#if PRODUCT_TYPES
    product_part(arguments, part, n_parts);
#endif
    return;
  }
  const AttentionArguments *a = arguments;
  const ResidualArguments *r = arguments;
  const RotationArguments *p = arguments;
  const SoftmaxArguments *s = arguments;
  int64_t n = n_units(kernel, arguments), begin = n * part / n_parts, end = n * (part + 1) / n_parts;
  switch (kernel) {
    case ATTENTION: BY_TYPE(a, heads_of_part(a, begin, end, 0, 1), heads_of_part(a, begin, end, 0, 0)); break;
    case ATTENTION_BACKWARD: BY_TYPE(a, heads_of_part(a, begin, end, 1, 1), heads_of_part(a, begin, end, 1, 0)); break;
    case RESIDUAL: BY_TYPE(r, residual_rows(r, begin, end, 1), residual_rows(r, begin, end, 0)); break;
    case RESIDUAL_BACKWARD:
      BY_TYPE(r, residual_gradients(r, part, begin, end, 1), residual_gradients(r, part, begin, end, 0));
      break;
    case ROTATION: BY_TYPE(p, rotate_rows(p, begin, end, 1), rotate_rows(p, begin, end, 0)); break;
    case SOFTMAX: BY_TYPE(s, softmax_of_rows(s, begin, end, 1), softmax_of_rows(s, begin, end, 0)); break;
  }
}
