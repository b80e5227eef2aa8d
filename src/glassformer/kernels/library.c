/* The functions of the library, and the choice of the instruction set. VARIANTS(X) is defined by build.py: for each
instruction set, the fastest first, X(name, condition under which the processor has it). */
#include <stddef.h>
#include "parallel.h"
#include "program.h"
#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

#define PUBLIC __attribute__((visibility("default")))
#define MAYBE_UNUSED __attribute__((unused))

#if defined(__x86_64__)
MAYBE_UNUSED static int has_avx512_vnni(void) {
  return __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
}
MAYBE_UNUSED static int has_avx2(void) { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
MAYBE_UNUSED static int has_avx_vnni(void) {
  unsigned a = 0, b, c, d;
  return has_avx2() && __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 4 & 1);
}
#elif defined(__aarch64__)
MAYBE_UNUSED static int has_dot_product(void) {
#if defined(__linux__)
  return (getauxval(AT_HWCAP) >> 20 & 1); /* HWCAP_ASIMDDP */
#else
  return 1; /* Apple */
#endif
}
#endif

#define DECLARE(name, is_supported) \
  void run_##name(Thread, const Program *, const Rows *); \
  void train_##name(int, const void *, int64_t, int64_t);
VARIANTS(DECLARE)

static const struct { const char *name; Run run; Part train; } TABLE[] = {
#define ENTRY(name, is_supported) {#name, run_##name, train_##name},
  VARIANTS(ENTRY)
};

/* Name of variant i; null after the last. */
PUBLIC const char *kernels_variant(int i) { return i < (int)(sizeof TABLE / sizeof *TABLE) ? TABLE[i].name : NULL; }

/* Whether the processor has the instruction set of variant i. */
PUBLIC int kernels_is_supported(int i) {
  int supported[] = {
#define SUPPORT(name, is_supported) is_supported,
    VARIANTS(SUPPORT)
  };
  return supported[i];
}

/* The sources that the library was built from. */
PUBLIC const char *kernels_source_hash(void) { return SOURCE_HASH; }

PUBLIC void kernels_run(int variant, int n_threads, const Program *program, const Rows *rows) {
  run_on_threads(TABLE[variant].run, n_threads, program, rows);
}

/* Runs a kernel of training in n_parts parts, each by one thread. */
PUBLIC void kernels_train(int variant, int kernel, const void *arguments, int n_parts) {
  run_parts(TABLE[variant].train, kernel, arguments, n_parts);
}

/* Whether kernels of training have several threads. */
PUBLIC int kernels_has_openmp(void) { return has_openmp(); }
