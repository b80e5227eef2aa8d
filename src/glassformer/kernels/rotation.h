/* Rotary positions: rotates each pair (x_i, x_(i + d_head / 2)) of each head by the angle of its position, or back. */
#ifndef ROTATION_H
#define ROTATION_H
#include "element.h"
#include "training.h"

/* Rows: positions of all batch entries. */
INLINE void rotate_rows(const RotationArguments *a, int64_t begin, int64_t end, int is_bf16) {
  int64_t half = a->half;
  for (int64_t row = begin; row < end; row++) {
    int64_t batch = row / a->length, position = row % a->length, angle = batch * a->angles_stride + position * half;
    for (int64_t head = 0; head < a->n_heads; head++) {
      void *x = element(a->x.data, batch * a->x.batch + head * a->x.head + position * a->x.row, is_bf16);
      void *out = element(a->out.data, batch * a->out.batch + head * a->out.head + position * a->out.row, is_bf16);
      for (int64_t i = 0; i < half; i += LANES) {
        V first = load_element(x, i, is_bf16), second = load_element(x, half + i, is_bf16);
        V cosine = load(a->cosines + angle + i), sine = load(a->sines + angle + i) * a->direction;
        store_element(out, i, first * cosine - second * sine, is_bf16);
        store_element(out, half + i, second * cosine + first * sine, is_bf16);
      }
    }
  }
}
#endif
