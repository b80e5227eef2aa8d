/* The functions of the library, and the choice of the instruction set. VARIANTS(X) is defined by build.py: for each
instruction set, the fastest first, X(name, condition under which the processor has it). */
#include <stddef.h>
#include "parallel.h"
#include "program.h"
#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#elif defined(__aarch64__) && defined(__APPLE__)
#include <sys/sysctl.h>
#endif

#if defined(_WIN32)
#define PUBLIC __declspec(dllexport)
#else
#define PUBLIC __attribute__((visibility("default")))
#endif
#define MAYBE_UNUSED __attribute__((unused))

#if defined(__x86_64__)
/* Bits of the instruction CPUID; XGETBV says whether the system saves the registers. */
static unsigned cpuid(unsigned leaf, unsigned subleaf, int which) {
  unsigned r[4] = {0};
  return __get_cpuid_count(leaf, subleaf, &r[0], &r[1], &r[2], &r[3]) ? r[which] : 0;
}
enum { EAX, EBX, ECX };
static int saves(unsigned registers) {
  unsigned low = 0, high;
  if (cpuid(1, 0, ECX) >> 27 & 1) __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (low & registers) == registers;
}
MAYBE_UNUSED static int has_avx2(void) {
  const unsigned fma_f16c = 1u << 12 | 1u << 29;
  return saves(0x6) && (cpuid(1, 0, ECX) & fma_f16c) == fma_f16c && (cpuid(7, 0, EBX) >> 5 & 1);
}
MAYBE_UNUSED static int has_avx_vnni(void) { return has_avx2() && (cpuid(7, 1, EAX) >> 4 & 1); }
MAYBE_UNUSED static int has_avx512_vnni(void) {
  const unsigned f_dq_bw_vl = 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31;
  return has_avx2() && saves(0xe6) && (cpuid(7, 0, EBX) & f_dq_bw_vl) == f_dq_bw_vl && (cpuid(7, 0, ECX) >> 11 & 1);
}
MAYBE_UNUSED static int has_avx512_bf16(void) { return has_avx512_vnni() && (cpuid(7, 1, EAX) >> 5 & 1); }
#elif defined(__aarch64__)
MAYBE_UNUSED static int has_dot_product(void) {
#if defined(__linux__)
  return (getauxval(AT_HWCAP) >> 20 & 1); /* HWCAP_ASIMDDP */
#else
  return 1; /* Apple */
#endif
}
#if defined(__APPLE__)
MAYBE_UNUSED static int has_feature(const char *name) {
  int value = 0;
  size_t size = sizeof value;
  return sysctlbyname(name, &value, &size, NULL, 0) == 0 && value;
}
#endif
MAYBE_UNUSED static int has_i8mm_bf16(void) {
#if defined(__linux__)
  return (getauxval(AT_HWCAP2) >> 13 & 3) == 3; /* HWCAP2_I8MM, HWCAP2_BF16 */
#elif defined(__APPLE__)
  return has_feature("hw.optional.arm.FEAT_I8MM") && has_feature("hw.optional.arm.FEAT_BF16");
#else
  return 0;
#endif
}
#endif

#define DECLARE(name, is_supported) \
  void run_##name(Thread, const Program *, const Rows *); \
  void train_##name(int, const void *, int64_t, int64_t); \
  extern const int product_types_##name;
VARIANTS(DECLARE)

static const struct { const char *name; Run run; Part train; const int *product_types; } TABLE[] = {
#define ENTRY(name, is_supported) {#name, run_##name, train_##name, &product_types_##name},
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

/* The types of factors for which variant i has the kernel PRODUCT: float 1, bf16 2, added up. */
PUBLIC int kernels_product_types(int i) { return *TABLE[i].product_types; }

/* Whether kernels of training have several threads. */
PUBLIC int kernels_has_openmp(void) { return has_openmp(); }
