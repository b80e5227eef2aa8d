/* A list of the k largest numbers and their ids, the largest first. */
#ifndef INSERT_H
#define INSERT_H
#include "vector.h"

/* A number that is larger than the last one takes its place. */
INLINE void insert(float *values, int32_t *ids, int64_t k, float value, int32_t id) {
  int64_t i = k - 1;
  for (; i > 0 && values[i - 1] < value; i--) values[i] = values[i - 1], ids[i] = ids[i - 1];
  values[i] = value, ids[i] = id;
}
#endif
