/* The kernels of decoding as a module of WebAssembly, in one thread. Takes the place of library.c and threads.c. */
#include <string.h>
#include "program.h"

void run_web(Thread t, const Program *p, const Rows *r);

__attribute__((export_name("run"))) void run(const Program *p, const Rows *r) {
  memset(p->phases, 0, (size_t)(p->n_ops + 1) * sizeof(Phase));
  run_web((Thread){0, 1, p->phases}, p, r);
}

/* Sizes of the structures that JavaScript writes. */
__attribute__((export_name("size_of"))) int size_of(int which) {
  const int sizes[] = {sizeof(Op), sizeof(Program), sizeof(Rows), sizeof(Phase)};
  return sizes[which];
}

/* The sources that the module was built from. */
__attribute__((export_name("source_hash"))) const char *source_hash(void) { return SOURCE_HASH; }
